//! Tests users in a spec: topo sets, changes and deletes them, compares passwords without a write, never shows a secret, and
//! never locks itself out.

use serde_json::{Value, json};

use super::cluster::topo;
use crate::support::topic_permissions::restrict;
use crate::support::vhost::segment;
use crate::support::{Fault, Http, Node, Options, Output, Proxy, Topo, User, Vhost, gets, puts, until, writes};

/// Passwords with characters that could be changed on the way to the broker. The files of secrets contain them.
fn odd_passwords() -> Vec<String> {
    let fixed = [
        "a",
        "tulip",
        " tulip ",
        "tu lip",
        "tulip\n",
        "\ntulip",
        "tu\nlip",
        "tu\u{0}lip",
        "tu\tlip",
        "tülip",
        "ツ🌷",
        "e\u{301}",
        "%",
        "%41",
        "tu%2Flip",
        "tu/lip",
        "a:b",
        ":",
        "a@b",
        "#",
        "${TULIP}",
        "{tulip}",
        "\"tulip\"",
        "'tulip'",
        "\\",
        "\\n",
        "null",
        "true",
        "12",
        "none",
        "{env: TULIP}",
        "\u{feff}tulip",
        "\u{202e}tulip",
        "-",
        "--",
    ];
    fixed.into_iter().map(str::to_owned).chain(["x".repeat(300)]).collect()
}

/// Returns a client of the management API as this user.
fn client(user: &User<'_>, password: &str) -> Http {
    Http::to(&Node::shared().url(), &user.name, password)
}

fn can_log_in(user: &User<'_>, password: &str) -> bool {
    client(user, password).get("/api/whoami").status == 200
}

/// Returns users that a test creates, whose names start with the name of its vhost.
fn uncreated_users<const N: usize>(vhost: &Vhost<'_>) -> [User<'static>; N] {
    std::array::from_fn(|index| User::to_come(Node::shared(), &format!("{}.user.{index}", vhost.name())))
}

/// Returns the entry of a user on the broker.
fn live(user: &User<'_>) -> Value {
    Node::shared().http().get(&format!("/api/users/{}", segment(&user.name))).body
}

/// Returns the tags of a user, sorted.
fn tags(user: &User<'_>) -> Vec<String> {
    let tags = &live(user)["tags"];
    let mut tags: Vec<String> = match tags.as_array() {
        Some(tags) => tags.iter().map(|tag| tag.as_str().unwrap().to_owned()).collect(),
        None => tags.as_str().unwrap().split(',').map(str::to_owned).filter(|tag| !tag.is_empty()).collect(),
    };
    tags.sort();
    tags
}

pub(super) fn no_changes(topo: &Topo) {
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

fn declared(entries: &[(&User<'_>, &str)]) -> String {
    let entries: String = entries.iter().map(|(user, entry)| format!("  {}: {entry}\n", user.name)).collect();
    format!("version: 1\ncluster: {{}}\nusers:\n{entries}")
}

#[test]
fn users_are_created_changed_and_deleted() {
    let vhost = Node::shared().vhost("users");
    let [app, reports, certificate] = uncreated_users(&vhost);
    let proxy = Proxy::to(Node::shared());
    let entries = |app_is: &str| {
        declared(&[(&app, app_is), (&reports, "{initialPassword: {env: REPORTS}}"), (&certificate, "{password: none}")])
    };
    let spec = format!(
        "{}---\nversion: 1\nvhost: \"{{vhost}}\"\npermissions: {{{}: all}}\n",
        entries("{tags: [monitoring, management], password: {env: APP}}"),
        app.name
    );
    let topo = topo(&vhost).through(&proxy).env("APP", "tulip-1").env("REPORTS", "rose-1").spec(&spec);
    let plan = topo.run(["plan"]).expect_code(0).expect_text("Plan: 4 objects to create");
    plan.expect_text("tags management, monitoring · password from environment variable APP");
    topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified");
    assert!(can_log_in(&app, "tulip-1"));
    assert_eq!(tags(&app), ["management", "monitoring"]);
    assert_eq!((live(&certificate)["password_hash"].clone(), tags(&certificate)), (json!(""), Vec::new()));
    no_changes(&topo);
    let written = proxy.count(&writes());
    topo.run(["apply", "-y"]).expect_code(0).expect_text("No changes");
    assert_eq!(proxy.count(&writes()), written, "a second apply writes nothing");
    // topo does not compare an initial password.
    let topo = topo.env("REPORTS", "rose-2");
    no_changes(&topo);
    // A change of the tags keeps the password, and a change of the password keeps the tags.
    let hash = live(&app)["password_hash"].clone();
    topo.rewrite(&entries("{tags: [management], password: {env: APP}}"));
    topo.run(["apply", "-y"]).expect_code(3).expect_text(&format!("user {} loses the monitoring tag", app.name));
    topo.run(["apply", "-y", "--allow=access-loss"]).expect_code(0);
    assert_eq!((live(&app)["password_hash"].clone(), tags(&app)), (hash, vec!["management".to_owned()]));
    assert!(can_log_in(&app, "tulip-1"));
    topo.rewrite(&entries("{password: {env: APP}}"));
    no_changes(&topo);
    let topo = topo.env("APP", "tulip-2");
    topo.run(["plan"]).expect_code(0).expect_text("a different value → environment variable APP");
    topo.run(["apply", "-y"]).expect_code(0).expect_text("1 of 1 step done");
    assert_eq!((can_log_in(&app, "tulip-1"), can_log_in(&app, "tulip-2")), (false, true));
    assert_eq!(tags(&app), ["management"]);
    // `password: none` removes the password, and `password` sets it again.
    topo.rewrite(&declared(&[(&app, "{password: none}")]));
    topo.run(["apply", "-y"]).expect_code(0);
    assert!(!can_log_in(&app, "tulip-2"));
    no_changes(&topo);
    topo.rewrite(&entries("{tags: [], password: {env: APP}}"));
    topo.run(["apply", "-y", "--allow=access-loss"]).expect_code(0);
    assert_eq!(tags(&app), Vec::<String>::new());
    assert_ne!(live(&app)["password_hash"], "");
    no_changes(&topo);
    // The deletion.
    topo.rewrite(&format!("version: 1\ncluster: {{}}\nremoved: {{users: [{}, {}]}}\n", app.name, certificate.name));
    let loss = format!("the broker deletes the permissions of user {} in every vhost", app.name);
    topo.run(["apply", "-y"]).expect_code(3).expect_text(&loss);
    topo.run(["apply", "-y", "--allow=access-loss,mass-delete"]).expect_code(0);
    assert_eq!([&app, &certificate].map(|user| live(user)["name"].clone()), [Value::Null, Value::Null]);
    assert_eq!(live(&reports)["name"], *reports.name);
    no_changes(&topo);
}

#[test]
fn new_user_without_a_password_blocks_the_plan() {
    let vhost = Node::shared().vhost("users-new");
    let [user] = uncreated_users(&vhost);
    let topo = topo(&vhost).spec(&declared(&[(&user, "{tags: [management]}")]));
    let text = format!("user {} does not exist, and the spec sets no password", user.name);
    topo.run(["apply", "-y"]).expect_code(3).expect_text(&text);
    let created = Node::shared().user("monitoring");
    topo.rewrite(&declared(&[(&created, "{}")]));
    no_changes(&topo);
}

#[test]
fn odd_passwords_are_compared_and_sent() {
    let vhost = Node::shared().vhost("users-odd");
    let passwords = odd_passwords();
    let users: Vec<User<'_>> =
        (0..passwords.len()).map(|it| User::to_come(Node::shared(), &format!("{}.{it}", vhost.name()))).collect();
    let topo = topo(&vhost);
    let mut spec = "version: 1\ncluster: {}\nusers:\n".to_owned();
    for (index, (user, password)) in users.iter().zip(&passwords).enumerate() {
        topo.write(&format!("secret.{index}"), &format!("{password}\n"));
        let path = topo.path(&format!("secret.{index}")).display().to_string();
        spec += &format!("  {}: {{tags: [management], password: {{file: '{path}'}}}}\n", user.name);
    }
    let topo = topo.spec(&spec);
    topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified");
    no_changes(&topo);
    let refused: Vec<_> =
        users.iter().zip(&passwords).filter(|(user, password)| !can_log_in(user, password)).map(|it| it.1).collect();
    // HTTP basic authentication passes every password, so every login must succeed.
    assert_eq!(refused, Vec::<&String>::new());
    for (index, password) in passwords.iter().enumerate() {
        topo.write(&format!("secret.{index}"), &format!("{password}x\n"));
    }
    let changes = format!("Plan: {} objects to change", passwords.len());
    topo.run(["plan"]).expect_code(0).expect_text(&changes);
}

#[test]
fn hashes_are_compared_and_sent() {
    // From https://www.rabbitmq.com/docs/passwords#computing-password-hash: `test12` with SHA-256.
    let hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";
    let vhost = Node::shared().vhost("users-hash");
    let [legacy, long] = uncreated_users(&vhost);
    let sha512 = "FzWtNLXvzQPGX0fqaPwZTlmLbFV5kgAYZd+YLPbCE6zaqNwqJZEwIDdwCUPDzwOp5yK8jgVnNlW+HGm5hkJpMYLEIHU=";
    let entries = [
        (&legacy, "{tags: [management], passwordHash: {env: LEGACY}}"),
        (&long, "{passwordHash: {env: LONG}, hashingAlgorithm: sha512}"),
    ];
    let topo = topo(&vhost).env("LEGACY", hash).env("LONG", sha512).spec(&declared(&entries));
    topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified");
    assert!(can_log_in(&legacy, "test12"));
    assert_eq!(live(&long)["hashing_algorithm"], "rabbit_password_hashing_sha512");
    no_changes(&topo);
    // A change of the tags keeps the hash and its algorithm.
    let tagged = [entries[0], (&long, "{tags: [monitoring], passwordHash: {env: LONG}, hashingAlgorithm: sha512}")];
    topo.rewrite(&declared(&tagged));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!((live(&long)["password_hash"].clone(), tags(&long)), (json!(sha512), vec!["monitoring".to_owned()]));
    assert_eq!(live(&long)["hashing_algorithm"], "rabbit_password_hashing_sha512");
    let topo = topo.env("LEGACY", "test12");
    let wrong = "environment variable LEGACY: expected a sha256 password hash: 36 bytes in Base64";
    topo.run(["plan"]).expect_code(1).expect_text(wrong).expect_no_text("test12");
}

#[test]
fn unset_secret_is_not_compared_and_blocks_an_apply() {
    let vhost = Node::shared().vhost("users-unset");
    let user = Node::shared().user("management");
    let entry = "{tags: [monitoring], password: {env: UNSET}}";
    let spec = declared(&[(&user, entry)]) + "---\nversion: 1\nvhost: \"{vhost}\"\nqueues: {q: {type: classic}}\n";
    let topo = topo(&vhost).spec(&spec);
    let note = "the password is not compared: environment variable UNSET is not set";
    topo.run(["plan"]).expect_code(0).expect_text(note);
    let refused = topo.run(["apply", "-y", "--allow=access-loss"]).expect_code(1);
    refused.expect_text("environment variable UNSET is not set").expect_text("nothing was changed");
    assert_eq!((vhost.names("queues"), tags(&user)), (Vec::new(), vec!["management".to_owned()]));
    let topo = topo.env("UNSET", "");
    topo.run(["plan"])
        .expect_code(1)
        .expect_text("cannot use the secret from environment variable UNSET: the value is empty");
    let topo = topo.without_env("UNSET");
    topo.rewrite(&declared(&[(&user, "{password: {file: /nowhere/secret}}")]));
    topo.run(["apply", "-y"]).expect_code(1).expect_text("file /nowhere/secret does not exist");
}

/// The forms in which a secret could occur in an output: raw, percent-encoded, in Base64 and in JSON.
pub(super) fn forms(secret: &str) -> [String; 5] {
    use base64::Engine;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let every: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let json = json!(secret).to_string();
    let base64 = base64::engine::general_purpose::STANDARD.encode(secret);
    [secret.to_owned(), secret.bytes().map(encode).collect(), every, base64, json.trim_matches('"').to_owned()]
}

pub(super) fn expect_no_secret(secrets: &[&str], text: &str) {
    for form in secrets.iter().flat_map(|secret| forms(secret)) {
        assert!(!text.contains(&form), "{form} occurs in {text}");
    }
}

#[test]
fn no_output_contains_a_secret() {
    let vhost = Node::shared().vhost("users-secret");
    let [app, reports] = uncreated_users(&vhost);
    let (old, new, initial) = ("tulip/ä \"old\"\n<x>", "tulip/ä new", "rose%2F:@ initial");
    let secrets = [old, new, initial];
    let entries = declared(&[
        (&app, "{tags: [management], password: {env: APP}}"),
        (&reports, "{initialPassword: {env: REPORTS}}"),
    ]);
    let topo = topo(&vhost).env("APP", old).env("REPORTS", initial).spec(&entries);
    let check = |topo: &Topo, output: Output| {
        expect_no_secret(&secrets, &format!("{}{}", output.stdout, output.stderr));
        for file in std::fs::read_dir(topo.path(".")).unwrap() {
            let file = file.unwrap();
            // The backup must be able to restore hashes. It contains no secret as text.
            expect_no_secret(&secrets, &std::fs::read_to_string(file.path()).unwrap_or_default());
        }
    };
    let all = |topo: &Topo| {
        for format in ["text", "json", "markdown", "github", "short"] {
            check(topo, topo.run(["plan", "--format", format, "-v"]));
        }
        check(topo, topo.run(["plan", "--out=plan.json", "-v"]));
        check(topo, topo.run(["validate", "topology.yaml", "--format=json"]));
        check(topo, topo.run(["show", "--expanded"]));
    };
    all(&topo);
    check(&topo, topo.run(["apply", "-y", "--format=json"]).expect_code(0));
    let topo = topo.env("APP", new);
    all(&topo);
    check(&topo, topo.run(["apply", "--plan=plan.json", "-v"]).expect_code(0));
    assert!(can_log_in(&app, new));
    check(&topo, topo.run(["export", "--with=users", "--vhost", vhost.name()]).expect_code(0));
    // The broker repeats the secret or the hash in its reason.
    let hash = live(&app)["password_hash"].as_str().unwrap().to_owned();
    for (tags, repeated) in [("management", forms(old).join(" ")), ("monitoring", hash.clone())] {
        let fault = Fault::Reason(400, format!("refused: {repeated}"));
        let proxy = Proxy::to(Node::shared()).on(puts().path("/api/users"), fault);
        let entry = format!("{{tags: [{tags}], password: {{env: APP}}}}");
        let value = if tags == "management" { old } else { new };
        let refused = self::topo(&vhost).env("APP", value).through(&proxy).spec(&declared(&[(&app, &entry)]));
        let output = refused.run(["apply", "-y", "--allow=access-loss"]).expect_code(1);
        let output = output.expect_text("topo hides the broker's response").expect_no_text(&hash);
        check(&refused, output);
    }
}

/// topo changes the password of its own user last, and then uses the new password.
#[test]
fn own_password_changes_last() {
    let vhost = Node::shared().vhost("users-own-pw");
    let own = Node::shared().user("administrator").may_everything(&vhost);
    let [old] = uncreated_users(&vhost);
    Node::shared().http().put(&format!("/api/users/{}", old.name), &json!({"password": "x", "tags": ""}));
    let proxy = Proxy::to(Node::shared());
    let spec = declared(&[(&own, "{password: {env: OWN}}")])
        + &format!(
            "removed: {{users: [{}]}}\n---\nversion: 1\nvhost: \"{{vhost}}\"\nqueues: {{q: {{type: classic}}}}\n",
            old.name
        );
    let topo = topo(&vhost).through(&proxy).user(&own).env("OWN", "tulip-new").spec(&spec);
    topo.run(["plan"]).expect_code(0).expect_text("so it changes this password last and then uses the new password");
    topo.run(["apply", "-y", "--allow=access-loss"]).expect_code(0).expect_text("3 of 3 steps done. Verified");
    assert!(can_log_in(&own, "tulip-new"));
    let place = |part: &str| proxy.requests().iter().position(|seen| seen.method != "GET" && seen.path.ends_with(part));
    let places = [
        place("/q").unwrap(),
        place(&format!("/users/{}", old.name)).unwrap(),
        place(&format!("/users/{}", own.name)).unwrap(),
    ];
    assert!(places.is_sorted(), "{places:?}");
    let topo = topo.env("TOPO_PASSWORD", "tulip-new");
    no_changes(&topo);
}

/// The test has its own node, because all tests of a node share its users.
#[test]
fn plan_without_an_administrator_is_blocked() {
    let node = Node::start(Options::default());
    let vhost = node.vhost("users-last");
    // User `certificate` is an administrator without a password, so it does not count.
    let without_password = json!({"password_hash": "", "tags": "administrator"});
    node.http().put("/api/users/certificate", &without_password).expect_status(201);
    node.http().put("/api/users/second", &json!({"password": "tulip", "tags": "administrator"})).expect_status(201);
    let topo = topo(&vhost).env("TOPO_USERNAME", "second").env("TOPO_PASSWORD", "tulip");
    topo.rewrite("version: 1\ncluster: {}\nusers: {guest: {tags: []}, second: {tags: []}}\n");
    let text = "the plan leaves no user with the administrator tag and a password";
    topo.run(["plan"]).expect_code(0).expect_text(text);
    topo.rewrite("version: 1\ncluster: {}\nusers: {guest: {tags: []}}\n");
    topo.run(["plan"]).expect_code(0).expect_no_text(text);
}

/// topo neither deletes nor demotes the user as which it connects, and never removes its password.
#[test]
fn own_user_keeps_its_access() {
    let vhost = Node::shared().vhost("users-own");
    let own = Node::shared().user("administrator").may_everything(&vhost);
    let topo = topo(&vhost).user(&own).env("HASH", "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR");
    let name = &own.name;
    for (spec, expected) in [
        (format!("removed: {{users: [{name}]}}"), "the plan deletes user"),
        (format!("users: {{{name}: {{tags: []}}}}"), "the plan removes the administrator tag from user"),
        (format!("users: {{{name}: {{password: none}}}}"), "the plan removes the password of user"),
        (format!("users: {{{name}: {{passwordHash: {{env: HASH}}}}}}"), "the plan sets a password hash for user"),
    ] {
        topo.rewrite(&format!("version: 1\ncluster: {{}}\n{spec}\n"));
        let refused = topo.run(["apply", "-y", "--allow=access-loss,credential-change"]).expect_code(3);
        assert!(refused.says(&format!("{expected} {name}, which topo uses to connect")), "{refused}");
        refused.expect_text("or apply the plan as a different administrator");
    }
    assert!(can_log_in(&own, &own.password));
    assert_eq!(tags(&own), ["administrator"]);
}

/// A vhost document gives permissions to a user that the cluster document owns, but does not declare.
#[test]
fn user_with_declared_permissions_is_not_pruned() {
    let vhost = Node::shared().vhost("users-permitted");
    let [permitted, other] = [Node::shared().user(""), Node::shared().user("")];
    let topo = topo(&vhost).spec(&format!(
        "version: 1\ncluster: {{}}\nowns: [{0}, {1}]\nusers: {{}}\n---\nversion: 1\nvhost: {2}\n\
         permissions: {{{0}: all}}\n",
        permitted.name,
        other.name,
        json!(vhost.name())
    ));
    let applied =
        topo.run(["apply", "-y", "--prune=users", "--allow=access-loss,access-gain,mass-delete"]).expect_code(0);
    let kept = format!("user {} is unmanaged, but a vhost document in this run grants it permissions", permitted.name);
    assert!(applied.says(&kept), "{applied}");
    let users = vhost.http().get("/api/users?columns=name").expect_status(200);
    let exists = |user: &User<'_>| users.as_array().unwrap().iter().any(|it| it["name"] == *user.name);
    assert_eq!((exists(&permitted), exists(&other)), (true, false));
}

/// The broker accepts any text as a hash, and no password then matches it.
#[test]
fn hash_of_a_new_user_is_checked() {
    let vhost = Node::shared().vhost("users-new-hash");
    let [user] = uncreated_users(&vhost);
    let topo = topo(&vhost).env("APP", "HUNTER2pw").spec(&declared(&[(&user, "{passwordHash: {env: APP}}")]));
    for command in [&["plan"][..], &["apply", "-y"]] {
        let refused = topo.run(command.iter().copied());
        assert!(refused.code != Some(0) && refused.says("expected a sha256 password hash"), "{refused}");
        refused.expect_no_text("HUNTER2pw");
    }
    vhost.http().get(&format!("/api/users/{}", segment(&user.name))).expect_status(404);
}

/// Connections stay open when a password changes, and are closed when their user is deleted.
#[test]
fn open_connections_are_counted() {
    let vhost = Node::shared().vhost("users-open");
    let user = Node::shared().user("").may_everything(&vhost);
    let _connection = user.amqp(&vhost);
    until("the connection is listed", || {
        let listed = Node::shared().http().list("/api/connections?columns=user");
        listed.as_array().unwrap().iter().any(|it| it["user"] == *user.name).then_some(())
    });
    let topo = topo(&vhost).env("APP", "tulip").spec(&declared(&[(&user, "{password: {env: APP}}")]));
    let text = "clients that use the old password can no longer connect; 1 open connection stays open";
    let blocked = topo.run(["apply", "-y"]).expect_code(3).expect_text("credential-change");
    assert!(blocked.says(text), "{blocked}");
    topo.run(["apply", "-y", "--allow=credential-change"]).expect_code(0);
    topo.rewrite(&format!("version: 1\ncluster: {{}}\nremoved: {{users: [{}]}}\n", user.name));
    let closed = topo.run(["plan"]).expect_code(0);
    assert!(closed.says("in every vhost, and closes 1 open connection"), "{closed}");
}

#[test]
fn missing_administrator_tag_is_reported() {
    let vhost = Node::shared().vhost("users-tag");
    let monitor = Node::shared().user("monitoring").may_everything(&vhost);
    let topo = topo(&vhost).user(&monitor).spec("version: 1\ncluster: {}\nusers: {app: {tags: []}}\n");
    let text = "1 user cannot be compared: reading users requires the administrator tag";
    topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text(text);
}

/// Exports and definitions files contain no password, and a plan of an export has no changes.
#[test]
fn users_are_exported_and_read_from_definitions_files() {
    let vhost = Node::shared().vhost("users-export");
    let [app, certificate] = uncreated_users(&vhost);
    let entries = [(&app, "{tags: [b, a], password: {env: APP}}"), (&certificate, "{tags: [], password: none}")];
    let topo = topo(&vhost).env("APP", "tulip-export").spec(&declared(&entries));
    topo.run(["apply", "-y"]).expect_code(0);
    let pattern = format!("--match={}.user.*", vhost.name());
    let exported = topo
        .run(["export", "--with=users", &pattern, "--vhost", vhost.name()])
        .expect_code(0)
        .expect_no_text("tulip-export")
        .stdout;
    assert!(exported.contains(&format!("  {}: {{tags: [a, b]}}\n", app.name)), "{exported}");
    assert!(exported.contains("# The password is not exported."), "{exported}");
    assert!(exported.contains("password: none"), "{exported}");
    let cluster = exported.split("---\n").find(|document| document.contains("cluster:")).unwrap().to_owned();
    let definitions = Node::shared().http().list("/api/definitions");
    topo.write("definitions.json", &definitions.to_string());
    topo.rewrite(&cluster);
    no_changes(&topo);
    topo.rewrite(&declared(&entries));
    let against = ["plan", "--against=definitions.json", "--detailed-exitcode"];
    topo.run(against).expect_code(0).expect_text("No changes");
    let topo = topo.env("APP", "other");
    topo.run(against).expect_code(3).expect_text("a different value → environment variable APP");
    let from_file = topo
        .run(["export", "--definitions=definitions.json", "--with=users", &pattern, "--vhost", vhost.name()])
        .expect_code(0)
        .stdout;
    assert!(from_file.contains(&cluster), "{from_file}");
}

/// The next run completes a run that was interrupted before any write.
#[test]
fn interrupted_run_is_completed() {
    for write in 1..=4 {
        let vhost = Node::shared().vhost("users-stop");
        let [app, reports, old] = uncreated_users(&vhost);
        Node::shared().http().put(&format!("/api/users/{}", old.name), &json!({"password": "x", "tags": ""}));
        let spec = declared(&[
            (&app, "{password: {env: APP}, tags: [management]}"),
            (&reports, "{initialPassword: {env: APP}}"),
        ]) + &format!(
            "removed: {{users: [{}]}}\n---\nversion: 1\nvhost: \"{{vhost}}\"\npermissions: {{{}: all}}\n",
            old.name, app.name
        );
        // The names of the users contain the name of the vhost. The first two writes create users, the third one writes the
        // permission, and the fourth one deletes a user.
        let faulty = writes().path(&format!("{}.user", vhost.name())).from(write);
        let proxy = Proxy::to(Node::shared()).on(faulty, Fault::Status(400));
        let allowed = ["apply", "-y", "--allow=access-loss,mass-delete"];
        let first = topo(&vhost).env("APP", "tulip").through(&proxy).spec(&spec).run(allowed);
        assert_ne!(first.code, Some(0), "{first}");
        let second = topo(&vhost).env("APP", "tulip").spec(&spec);
        second.run(allowed).expect_code(0);
        no_changes(&second);
        assert!(can_log_in(&app, "tulip"));
        assert_eq!(live(&old)["name"], Value::Null);
    }
}

/// A request changed the password of topo's own user, and its response was lost.
#[test]
fn own_password_is_used_after_a_lost_response() {
    let vhost = Node::shared().vhost("users-own-lost");
    for fault in [Fault::CutAfter, Fault::CutWithin] {
        let own = Node::shared().user("administrator").may_everything(&vhost);
        let proxy = Proxy::to(Node::shared()).on(puts().path("/api/users").first(1), fault);
        let topo = topo(&vhost).through(&proxy).user(&own).env("OWN", "tulip-new");
        let topo = topo.spec(&declared(&[(&own, "{password: {env: OWN}}")]));
        topo.run(["apply", "-y"]).expect_code(0).expect_text("1 of 1 step done. Verified");
        assert!(can_log_in(&own, "tulip-new"));
    }
}

/// The value of another record can have the form of a reference to a secret. topo sends it unchanged.
#[test]
fn values_of_global_parameters_are_not_secrets() {
    let vhost = Node::shared().vhost("users-parameter");
    let names = ["secret", "current", "env"].map(|name| format!("{}.{name}", vhost.name()));
    let values = [json!({"$secret": {"env": "TOPO_PASSWORD"}}), json!({"$current": "tags"}), json!({"env": "NOT_SET"})];
    let entries: String = names.iter().zip(&values).map(|(name, value)| format!("  {name}: {value}\n")).collect();
    let topo = topo(&vhost).env("TOPO_PASSWORD", "guest");
    let topo = topo.spec(&format!("version: 1\ncluster: {{}}\nglobalParameters:\n{entries}"));
    let applied = topo.run(["apply", "-y"]).expect_code(0);
    for (name, value) in names.iter().zip(&values) {
        let path = format!("/api/global-parameters/{}", segment(name));
        assert_eq!(Node::shared().http().get(&path).expect_status(200)["value"], *value, "{applied}");
        Node::shared().http().send("DELETE", &path, None).unwrap();
    }
}

#[test]
fn new_administrator_is_a_hazard() {
    let vhost = Node::shared().vhost("users-admin");
    let [user] = uncreated_users(&vhost);
    let topo = topo(&vhost).env("APP", "tulip");
    let topo = topo.spec(&declared(&[(&user, "{tags: [administrator], password: {env: APP}}")]));
    topo.run(["apply", "-y"]).expect_code(3).expect_text("access-gain").expect_text("has the administrator tag");
}

#[test]
fn permissions_of_a_removed_user_are_an_error() {
    let spec = "version: 1\ncluster: {}\nremoved: {users: [app]}\n---\nversion: 1\nvhost: v\npermissions: {app: all}\n";
    let topo = Topo::offline().file("spec.yaml", spec);
    let refused = topo.run(["validate", "spec.yaml"]).expect_code(65);
    refused.expect_text("error[removed-and-declared]: the permission app belongs to a removed user");
}

/// A plan of users reads the list of users and topo's own user. A plan without users does not read them.
#[test]
fn plan_of_users_sends_two_more_requests() {
    let vhost = Node::shared().vhost("users-requests");
    let user = Node::shared().user("");
    let proxy = Proxy::to(Node::shared());
    let with_queue = "version: 1\nvhost: \"{vhost}\"\nqueues: {q: {type: classic}}\n";
    let topo = topo(&vhost).through(&proxy).spec(with_queue);
    topo.run(["apply", "-y"]).expect_code(0);
    let count = || {
        let before = proxy.count(&gets());
        no_changes(&topo);
        proxy.count(&gets()) - before
    };
    let alone = count();
    assert_eq!(proxy.count(&gets().path("/api/users")), 0);
    topo.rewrite(&(declared(&[(&user, "{tags: []}")]) + "---\n" + with_queue));
    assert_eq!(count(), alone + 2);
}

/// A backup contains the hashes of changed and deleted users, and the permissions of deleted users in all vhosts. Only its
/// owner can read it.
#[test]
fn backup_restores_users() {
    use std::os::unix::fs::PermissionsExt;
    let vhost = Node::shared().vhost("users-backup");
    let (gone, changed) = (Node::shared().user("monitoring").may(&vhost, "^a", "^b", "^c"), Node::shared().user(""));
    restrict(&vhost, &gone.name, "amq.topic", "^a");
    let before = [&gone, &changed].map(live);
    let spec = declared(&[(&changed, "{tags: [monitoring], password: {env: NEW}}")])
        + &format!("removed: {{users: [{}]}}\n", gone.name);
    let topo = topo(&vhost).env("NEW", "tulip").spec(&spec);
    let allowed = ["apply", "-y", "--backup=backup.json", "--allow=access-loss,mass-delete"];
    topo.run(allowed).expect_code(0).expect_text("backup of all objects to be deleted");
    assert_eq!(live(&gone)["name"], Value::Null);
    assert_eq!(std::fs::metadata(topo.path("backup.json")).unwrap().permissions().mode() & 0o777, 0o600);
    let backup: Value = serde_json::from_str(&topo.read("backup.json")).unwrap();
    until("the import", || Node::shared().http().post("/api/definitions", &backup).is_success().then_some(()));
    assert_eq!([&gone, &changed].map(live), before);
    assert!(can_log_in(&gone, &gone.password));
    let permissions = |kind: &str| {
        let path = format!("/api/users/{}/{kind}", segment(&gone.name));
        Node::shared().http().get(&path).expect_status(200).as_array().unwrap().len()
    };
    assert_eq!((permissions("permissions"), permissions("topic-permissions")), (1, 1));
}

/// The plan names the shovels that use the old password. A shovel needs its password only when it connects again.
#[test]
fn shovels_of_a_user_are_named() {
    let vhost = Node::shared().vhost("users-shovel");
    let user = Node::shared().user("").may_everything(&vhost);
    let uri =
        format!("amqp://{}:{}@127.0.0.1:{}/{}", user.name, user.password, Node::shared().amqp_port(), vhost.name());
    let shovel = json!({"value": {"src-uri": uri, "src-queue": "in", "dest-uri": uri, "dest-queue": "out"}});
    Node::shared().http().put(&vhost.path("parameters/shovel", &["s"]), &shovel).expect_status(201);
    let topo = topo(&vhost).env("APP", "tulip").spec(&declared(&[(&user, "{password: {env: APP}}")]));
    let named = format!("URIs that contain this user: shovel s in vhost {}", vhost.name());
    for format in ["text", "json"] {
        let plan = topo.run(["plan", "--format", format]).expect_code(0);
        assert!(plan.says(&named) && !plan.stdout.contains(&user.password), "{plan}");
    }
    topo.run(["apply", "-y"]).expect_code(3).expect_text("credential-change");
}
