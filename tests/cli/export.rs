//! Tests `topo export` without a broker, from definitions files.

use serde_json::json;

use crate::support::Topo;

fn definitions() -> String {
    let queue = |vhost: &str, name: &str| json!({"name": name, "vhost": vhost, "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "quorum"}});
    let file = json!({
        "rabbit_version": "4.0.5", "vhosts": [{"name": "shop"}, {"name": "/"}], "exchanges": [], "bindings": [], "policies": [],
        "queues": [queue("shop", "orders"), queue("/", "a/b")],
    });
    file.to_string()
}

fn topo() -> Topo {
    Topo::offline().file("definitions.json", &definitions())
}

const FROM: [&str; 3] = ["export", "--definitions", "definitions.json"];
const ROOT: &str = "version: 1\nvhost: /\n\nqueues:\n  a/b: {type: quorum}\n";
const SHOP: &str = "version: 1\nvhost: shop\n\nqueues:\n  orders: {type: quorum}\n";

fn with<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    FROM.iter().chain(flags).copied().collect()
}

#[test]
fn several_vhosts_are_documents_of_one_file() {
    let output = topo().run(FROM).expect_code(0);
    assert_eq!(output.stdout, format!("{ROOT}---\n{SHOP}"));
    let reported = "vhost /: 0 exchanges, 1 queue, 0 bindings, 0 policies\nvhost shop: 0 exchanges, 1 queue, 0 bindings, 0 policies\n";
    assert_eq!(output.stderr, reported);
    let output = topo().run(with(&["--vhost", "shop", "--quiet"])).expect_code(0);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (SHOP, ""));
}

#[test]
fn folder_gets_one_file_per_vhost() {
    let topo = topo();
    topo.run(with(&["--out", "specs"])).expect_code(0).expect_no_result();
    assert_eq!([topo.read("specs/%2F.yaml"), topo.read("specs/shop.yaml")], [ROOT, SHOP]);
    topo.run(with(&["--out", "new/all.yaml"])).expect_code(0).expect_no_result();
    assert_eq!(topo.read("new/all.yaml"), format!("{ROOT}---\n{SHOP}"));
    // The exported files are valid specs.
    let plan = ["plan", "--against", "definitions.json", "--detailed-exitcode"];
    topo.run(plan.into_iter().chain(["specs"])).expect_code(0).expect_text("No changes");
    topo.run(plan.into_iter().chain(["new/all.yaml"])).expect_code(0).expect_text("No changes");
}

#[test]
fn existing_files_need_force() {
    let topo = topo().file("specs/shop.yaml", "mine\n");
    let refused = topo.run(with(&["--out", "specs"])).expect_code(64);
    refused.expect_error("specs/shop.yaml already exists; nothing was written").expect_text("--force");
    assert_eq!(topo.read("specs/shop.yaml"), "mine\n");
    assert!(!topo.path("specs/%2F.yaml").exists());
    topo.run(with(&["--out", "specs", "--force"])).expect_code(0);
    assert_eq!(topo.read("specs/shop.yaml"), SHOP);
}

#[test]
fn only_matching_objects_are_exported() {
    topo()
        .run(with(&["--match", "order*", "--vhost", "shop", "-q"]))
        .expect_code(0)
        .expect_text("orders: {type: quorum}");
    let nothing = topo().run(with(&["--match", "mail*"])).expect_code(1).expect_no_result();
    let nothing = nothing.expect_error("no object matches --match");
    nothing.expect_no_text("hint:");
    for near in ["order", "rder", "ordres", "ORDERS"] {
        let near = topo().run(with(&["--match", near, "--vhost", "shop"])).expect_code(1).expect_no_result();
        near.expect_error("no object matches --match").expect_text("did you mean `orders`?");
    }
}

#[test]
fn omitted_matches_are_reported() {
    let queue = |vhost: &str, name: &str, durable: bool| json!({"name": name, "vhost": vhost, "durable": durable, "auto_delete": durable, "arguments": {}});
    let of = |vhosts: &[&str]| {
        let queues: Vec<_> =
            vhosts.iter().flat_map(|it| [queue(it, "adel", true), queue(it, "atrans", false)]).collect();
        let vhosts: Vec<_> = vhosts.iter().map(|it| json!({"name": it})).collect();
        let file =
            json!({"rabbit_version": "3.13.7", "vhosts": vhosts, "queues": queues, "exchanges": [], "bindings": []});
        let topo = Topo::offline().file("definitions.json", &file.to_string());
        topo.run(with(&["--match", "a*"])).expect_code(1).expect_no_result()
    };
    let both = "1 auto-delete queue: adel; 1 transient queue: atrans";
    let left_out = "all objects that --match matches are omitted";
    of(&["shop"]).expect_error(&format!("{left_out}: {both}")).expect_no_text("no object matches");
    of(&["a", "b"]).expect_error(&format!("{left_out}: vhost a: 1 auto-delete queue: adel; vhost a: 1 transient"));
}

#[test]
fn export_errors_are_reported() {
    topo().run(with(&["--vhost", "elsewhere"])).expect_code(1).expect_error("vhost `elsewhere` does not exist");
    topo().run(["export", "--definitions", "none.json"]).expect_code(64).expect_error("cannot read none.json");
    let wrong = Topo::offline().file("definitions.json", "[]").run(FROM).expect_code(65);
    wrong.expect_error("definitions.json is not a usable definitions file");
    // The definitions of a single vhost do not contain the name of the vhost.
    let of_one =
        json!({"rabbit_version": "3.8.9", "queues": [], "exchanges": [], "bindings": [], "policies": []}).to_string();
    let topo = Topo::offline().file("definitions.json", &of_one);
    topo.run(FROM).expect_code(64).expect_error("does not specify a vhost").expect_text("--vhost NAME");
    let named = topo.run(with(&["--vhost", "shop", "-q"])).expect_code(0);
    assert_eq!(named.stdout, "version: 1\nvhost: shop\n");
    let from_input = Topo::offline().input(&definitions()).run(["export", "--definitions", "-", "-q"]).expect_code(0);
    assert_eq!(from_input.stdout, format!("{ROOT}---\n{SHOP}"));
}

#[test]
fn output_target_is_a_spec_a_folder_or_standard_output() {
    let topo = topo().file("there", "mine\n");
    let output = topo.run(with(&["--out", "-", "--vhost", "shop", "-q"])).expect_code(0);
    assert_eq!(output.stdout, SHOP);
    topo.run(with(&["--out", "all.YAML"])).expect_code(0).expect_no_result();
    assert_eq!(topo.read("all.YAML"), format!("{ROOT}---\n{SHOP}"));
    for (place, error, hint) in [
        ("a.json", "a.json does not have the extension .yaml or .yml", "--out a.yaml"),
        ("specs.d", "specs.d does not have the extension .yaml or .yml", "--out specs.d/"),
        ("there", "there is neither a directory nor a .yaml or .yml file", "`-` for standard output"),
    ] {
        topo.run(with(&["--out", place, "--force"])).expect_code(64).expect_error(error).expect_text(hint);
    }
    assert_eq!(topo.read("there"), "mine\n");
    assert!(!topo.path("specs.d").exists() && !topo.path("a.json").exists());
    topo.run(with(&["--out", "specs.d/"])).expect_code(0);
    assert_eq!(topo.read("specs.d/shop.yaml"), SHOP);
    // Without a flag, the argument is invalid.
    let stray = topo.run(["export", "definitions.json"]).expect_code(64);
    stray.expect_error("unexpected argument `definitions.json`").expect_text("--definitions definitions.json");
}

/// Either each vhost has a file, regardless of its name, or topo writes no file.
#[test]
fn every_vhost_name_yields_a_readable_file() {
    let queue = |vhost: &str| json!({"name": "q", "vhost": vhost, "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "quorum"}});
    let names = [".hidden".to_owned(), "..".to_owned(), "a/".repeat(127), "a/".repeat(126) + "b"];
    let file = json!({
        "rabbit_version": "4.0.5", "exchanges": [], "bindings": [], "policies": [],
        "vhosts": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "queues": names.iter().map(|name| queue(name)).collect::<Vec<_>>(),
    });
    let topo = Topo::offline().file("definitions.json", &file.to_string());
    topo.run(with(&["--out", "specs"])).expect_code(0);
    let mut written: Vec<String> = std::fs::read_dir(topo.path("specs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    written.sort();
    assert_eq!(written.len(), 4, "{written:?}");
    assert_eq!(written[..2], ["%2E..yaml", "%2Ehidden.yaml"]);
    let plan = ["plan", "--against", "definitions.json", "specs", "--detailed-exitcode"];
    topo.run(plan).expect_code(0).expect_text("No changes").expect_text("vhost .hidden");
    // A failed export leaves no files.
    topo.run(with(&["--out", "specs", "--force"])).expect_code(0);
    std::fs::remove_file(topo.path("specs/%2E..yaml")).unwrap();
    let last = topo.path(&format!("specs/{}", written[3]));
    std::fs::remove_file(&last).unwrap();
    std::fs::create_dir_all(last.join("in-the-way")).unwrap();
    topo.run(with(&["--out", "specs", "--force"])).expect_code(64).expect_error("is a directory; nothing was written");
    assert_eq!(std::fs::read_dir(topo.path("specs")).unwrap().count(), 3);
}

#[test]
fn other_files_are_not_definitions_files() {
    let nothing = "it contains no queues, exchanges, bindings or vhosts";
    for (text, cause) in [
        ("{}", nothing),
        ("{\"name\": \"shop\", \"version\": \"1.0.0\"}", nothing),
        ("{\"users\": [], \"permissions\": []}", nothing),
        ("{\"queues\": [", "EOF while parsing"),
    ] {
        let topo = Topo::offline().file("definitions.json", text);
        topo.run(FROM).expect_code(65).expect_error("is not a usable definitions file").expect_text(cause);
    }
    let hint = "use a file that `rabbitmqctl export_definitions FILE` wrote, or a response to GET /api/definitions";
    let spec = Topo::offline().file("definitions.json", SHOP);
    spec.run(FROM).expect_code(65).expect_text("caused by: it is a spec").expect_text(hint);
    spec.run(["plan", "--against", "definitions.json", "definitions.json"]).expect_code(65).expect_text("it is a spec");
    let other = Topo::offline().file("definitions.json", "name: shop\nversion: 1.0.0\n").run(FROM).expect_code(65);
    other.expect_text("expected ").expect_text(hint).expect_no_text("it is a spec");
    let topo = Topo::offline();
    for (bytes, cause) in [(&b"\xff\xfe{\0}\0"[..], "it is UTF-16"), (b"{\"a\": \"\xe9\"}", "it is not UTF-8")] {
        std::fs::write(topo.path("definitions.json"), bytes).unwrap();
        topo.run(FROM).expect_code(65).expect_error("is not a usable definitions file").expect_text(cause);
    }
    std::fs::write(topo.path("definitions.json"), format!("\u{feff}{}", definitions())).unwrap();
    assert_eq!(topo.run(with(&["--vhost", "shop", "-q"])).expect_code(0).stdout, SHOP);
    std::fs::create_dir(topo.path("folder")).unwrap();
    topo.run(["export", "--definitions", "folder"])
        .expect_code(64)
        .expect_error("cannot read folder")
        .expect_text("it is a directory");
    let missing = topo.run(with(&["--vhost", "nope"])).expect_code(1);
    missing.expect_error("vhost `nope` does not exist").expect_text("existing vhosts: `/`, `shop`");
    topo.run(with(&["--vhost", "shpo"])).expect_code(1).expect_text("did you mean `shop`?");
}

#[test]
fn unsupported_objects_are_counted() {
    let queue = |limit: u64| json!({"name": "q", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "classic", "x-max-length": limit}});
    let file = json!({
        "rabbit_version": "4.0.5", "vhosts": [{"name": "shop", "tags": ["production"]}], "policies": [], "queues": [queue(1), queue(2)],
        "exchanges": [{"name": "e", "vhost": "shop", "type": "fanout", "durable": true, "auto_delete": false, "internal": false, "arguments": {}}],
        "bindings": [{"source": "e", "vhost": "shop", "destination": "gone", "destination_type": "queue", "routing_key": "k", "arguments": {}}],
        "parameters": [
            {"component": "operator_policy", "vhost": "shop", "name": "cap", "value": {"pattern": "^q", "apply-to": "queues", "priority": 0, "definition": {"max-length": 5}}},
            {"component": "shovel", "vhost": "shop", "name": "to-other", "value": {}},
            {"component": "vhost-limits", "vhost": "shop", "name": "limits", "value": {"max-queues": 9}},
        ],
    });
    let topo = Topo::offline().file("definitions.json", &file.to_string());
    let output = topo.run(with(&["--out", "spec.yaml"])).expect_code(0);
    for line in [
        "1 operator policy: cap",
        "1 shovel: to-other",
        "1 vhost limit: max-queues 9",
        "1 repeated queue: q",
        "1 binding to objects that do not exist: e ─ k → gone",
    ] {
        assert!(output.says(&format!("not in the spec: {line}")), "{line}\n{output}");
        assert!(topo.read("spec.yaml").contains(&format!("#   {line}\n")), "{line}");
    }
    assert!(topo.read("spec.yaml").contains("tags: [production]"), "{}", topo.read("spec.yaml"));
    // topo uses the first of two duplicates, as a broker does.
    assert!(topo.read("spec.yaml").contains("maxLength: 1"), "{}", topo.read("spec.yaml"));
    // A plan against the file takes into account policies of the file that govern new objects.
    let topo = topo.file("more.yaml", "version: 1\nvhost: shop\nqueues: {q2: {type: classic}}\n");
    let plan = topo.run(["plan", "--against", "definitions.json", "more.yaml"]).expect_code(0);
    plan.expect_text("operator policy cap will govern queue q2, which this plan creates: max-length 5");
}

fn object(fields: serde_json::Value, arguments: serde_json::Value) -> serde_json::Value {
    let mut object = json!({"vhost": "/", "durable": true, "auto_delete": false, "arguments": arguments});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    object
}

fn exchange(name: &str, kind: &str) -> serde_json::Value {
    object(json!({"name": name, "type": kind, "internal": false}), json!({}))
}

fn binding(source: &str, queue: &str, key: &str) -> serde_json::Value {
    json!({"source": source, "vhost": "/", "destination": queue, "destination_type": "queue", "routing_key": key, "arguments": {}})
}

/// Exports a definitions file, and returns the spec and the report.
fn export_of(file: serde_json::Value) -> (String, String) {
    let output = Topo::offline().file("definitions.json", &file.to_string()).run(FROM).expect_code(0);
    (output.stdout.split_whitespace().filter(|word| *word != "#").collect::<Vec<_>>().join(" "), output.stderr)
}

#[test]
fn objects_of_a_vhost_that_the_file_does_not_list_are_exported() {
    let queue = object(json!({"name": "work"}), json!({}));
    let file = json!({"vhosts": [{"name": "shop"}], "queues": [queue]}).to_string();
    let topo = Topo::offline().file("definitions.json", &file);
    let output = topo.run(FROM).expect_code(0);
    let root = "version: 1\nvhost: /\n\nqueues:\n  work: {type: classic}\n";
    assert_eq!(output.stdout, format!("{root}---\nversion: 1\nvhost: shop\n"));
    assert_eq!(topo.run(with(&["--vhost", "/", "-q"])).expect_code(0).stdout, root);
    let topo = topo.file("topology.yaml", root);
    topo.run(["plan", "--against", "definitions.json", "topology.yaml"]).expect_code(0).expect_text("No changes");
}

#[test]
fn vhosts_that_only_parameters_or_permissions_name_are_exported() {
    let file = json!({
        "vhosts": [{"name": "shop"}],
        "permissions": [{"user": "worker", "vhost": "p", "configure": "", "write": "", "read": ".*"}],
        "topic_permissions": [{"user": "worker", "vhost": "t", "exchange": "e", "write": "", "read": ".*"}],
        "parameters": [{"component": "shovel", "vhost": "s", "name": "move", "value": {}}],
    });
    let topo = Topo::offline().file("definitions.json", &file.to_string());
    let output = topo.run(FROM).expect_code(0);
    for (vhost, left_out) in
        [("p", "1 permission: worker"), ("s", "1 shovel: move"), ("t", "1 topic permission: worker e")]
    {
        let spec = format!("#   {left_out}\nversion: 1\nvhost: {vhost}\n");
        assert!(output.stdout.contains(&spec) && output.stderr.contains(&format!("vhost {vhost}: ")), "{output}");
        topo.run(with(&["--vhost", vhost])).expect_code(0).expect_text(left_out);
    }
}

#[test]
fn shared_retry_queue_is_not_the_retry_of_one_queue() {
    let queue = |name: &str| object(json!({"name": name}), json!({}));
    let wait = object(json!({"name": "wait"}), json!({"x-message-ttl": 5000, "x-dead-letter-exchange": "ev"}));
    let bindings = [
        binding("ev", "a", "order.*"),
        binding("ev", "b", "order.created"),
        binding("ev", "c", "#"),
        binding("retry", "wait", "#"),
    ];
    let exchanges = [exchange("ev", "topic"), exchange("retry", "topic")];
    let file = |queues: Vec<serde_json::Value>| json!({"vhosts": [{"name": "/"}], "queues": queues, "exchanges": exchanges, "bindings": bindings});
    let (spec, _) = export_of(file(vec![queue("a"), queue("b"), queue("c"), wait.clone()]));
    assert!(spec.contains("messages wait here for 5s, and then go to exchange `ev`"), "{spec}");
    assert!(!spec.contains("manual retr") && !spec.contains("delays"), "{spec}");
    // The queues of the workers dead-letter to the retry queue.
    let rejecting = |name: &str| object(json!({"name": name}), json!({"x-dead-letter-exchange": "retry"}));
    let (spec, _) = export_of(file(vec![rejecting("a"), rejecting("b"), queue("c"), wait]));
    let shared = "a manual retry that several queues share: messages that the workers of `a`, `b` reject wait here for 5s, and \
                  then go to exchange `ev`, which routes them to every queue with a matching binding";
    assert!(spec.contains(shared) && !spec.contains("delays"), "{spec}");
}

#[test]
fn work_queue_behind_a_retry_queue_without_ttl_is_not_a_dead_letter_queue() {
    let queues = [
        object(json!({"name": "orders"}), json!({})),
        object(json!({"name": "orders.retry"}), json!({"x-dead-letter-exchange": "orders.x"})),
    ];
    let exchanges = [exchange("orders.x", "direct"), exchange("orders.r", "direct")];
    let bindings = [binding("orders.x", "orders", "orders"), binding("orders.r", "orders.retry", "orders")];
    let (spec, _) =
        export_of(json!({"vhosts": [{"name": "/"}], "queues": queues, "exchanges": exchanges, "bindings": bindings}));
    assert!(!spec.contains("deadLetterQueues") && spec.contains("orders: {type: classic, bindings: ["), "{spec}");
}

#[test]
fn binding_from_a_missing_exchange_is_omitted() {
    let queues = [object(json!({"name": "orders"}), json!({}))];
    let (spec, reported) = export_of(
        json!({"vhosts": [{"name": "/"}], "queues": queues, "exchanges": [], "bindings": [binding("nope", "orders", "k")]}),
    );
    let line = "1 binding from an exchange that does not exist: nope ─ k → orders";
    assert!(spec.contains(line) && reported.contains(line) && !reported.contains("external"), "{spec}\n{reported}");
}

#[test]
fn users_permissions_and_global_parameters_are_counted() {
    let file = json!({
        "vhosts": [{"name": "/"}, {"name": "shop"}], "queues": [], "exchanges": [], "bindings": [],
        "users": [{"name": "ann", "password_hash": "c2VjcmV0", "tags": []}, {"name": "bob", "password_hash": "", "tags": []}],
        "permissions": [
            {"user": "ann", "vhost": "/", "configure": "", "write": ".*", "read": ".*"},
            {"user": "bob", "vhost": "/", "configure": "", "write": "", "read": ".*"},
            {"user": "bob", "vhost": "shop", "configure": "", "write": "", "read": ""}],
        "topic_permissions": [{"user": "ann", "vhost": "/", "exchange": "amq.topic", "write": "^a", "read": ""}],
        "global_parameters": [{"name": "cluster_name", "value": "prod"}],
    });
    let output = Topo::offline().file("definitions.json", &file.to_string()).run(FROM).expect_code(0);
    let reported = "vhost /: 0 exchanges, 0 queues, 0 bindings, 0 policies
  not in the spec: 2 permissions: ann, bob
  not in the spec: 1 topic permission: ann amq.topic
vhost shop: 0 exchanges, 0 queues, 0 bindings, 0 policies
  not in the spec: 1 permission: bob
not in any spec: 1 global parameter: cluster_name
not in any spec: 2 users: ann, bob
";
    assert_eq!(output.stderr, reported);
    assert!(output.stdout.contains("#   2 permissions: ann, bob\n") && !output.stdout.contains("c2VjcmV0"), "{output}");
}

#[test]
fn entry_that_the_broker_would_refuse_is_named_with_its_line() {
    let file = "{\n  \"rabbit_version\": \"3.10.8\",\n  \"queues\": [\n    {\"name\": \"ok\", \"vhost\": \"/\", \"durable\": true, \
                \"auto_delete\": false},\n    {\"name\": \"work\", \"vhost\": \"/\"}\n  ]\n}\n";
    let topo = Topo::offline().file("definitions.json", file);
    topo.run(FROM).expect_code(65).expect_error("definitions.json is not a usable definitions file").expect_text(
        "queue `work` (line 5): missing field `durable`, which has no default in RabbitMQ 3.10.8 (only in 4.0 and later)",
    );
    topo.run(with(&["--broker-version", "4.0.5"])).expect_code(0).expect_text("work");
}
