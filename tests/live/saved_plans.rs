//! Tests that a saved plan is applied unchanged or not at all, and that every format contains the same plan.

use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{Argument, Fault, NONE, Node, Proxy, Topo, any, gets, posts, puts, valid_plan};

const SPEC: &str = "exchanges: {orders: {type: topic}}\nqueues:\n  orders.work:\n    type: classic\n    bindings: \
                    [{exchange: orders, routingKey: \"order.#\"}]\n  orders.mail: {type: classic}\n";
/// An invalid spec.
const GONE: &str = "version: 1\nnothing: here\n";
/// An unreachable documentation address (RFC 5737).
const NOWHERE: &str = "http://192.0.2.1:15672";

fn saved(topo: &Topo) -> Value {
    let plan = serde_json::from_str(&topo.read("plan.json")).unwrap();
    valid_plan(&plan);
    plan
}

#[test]
fn saved_plan_is_applied_without_its_spec() {
    let vhost = Node::shared().vhost("saved");
    let user = Node::shared().user("administrator").may_everything(&vhost);
    let topo = Topo::new(&vhost).user(&user).spec(SPEC);
    let made = topo.run(["plan", "--out=plan.json", "--allow=message-loss"]).expect_code(0);
    made.expect_text("\ntopo apply --plan plan.json\n").expect_no_text(&user.password);
    let text = topo.read("plan.json");
    assert!(!text.contains(&user.password) && !text.contains("allow"), "{text}");
    let printed = topo.run(["plan", "--format=json"]).expect_code(0);
    assert_eq!(printed.plan(), saved(&topo), "--out and --format json write the same");
    topo.rewrite(GONE);
    topo.run(["apply", "--plan", "plan.json"]).expect_code(0).expect_text("Applied: 4 of 4 steps done.");
    assert_eq!(vhost.names("queues"), ["orders.mail", "orders.work"]);
    // Completed steps do not make the plan stale.
    topo.run(["apply", "--plan", "plan.json"]).expect_code(0).expect_text("No changes");
}

/// Every format equals the output of `topo plan`. topo does not contact the broker, which has changed.
#[test]
fn saved_plan_is_shown_as_printed() {
    let vhost = Node::shared().vhost("shown-again");
    vhost.amqp().declare_queue("orders.mail", &[("x-max-length", Argument::LongInt(1))]).unwrap();
    let topo = Topo::new(&vhost).spec(SPEC);
    let own = "plan --out plan.json --color always --detailed-exitcode";
    let offline = Topo::offline().env("TOPO_URL", "http://127.0.0.1:1");
    for more in ["", "--short", "-v", "--show all", "--format json", "--format markdown", "--format github"] {
        let planned = topo.run(own.split(' ').chain(more.split_whitespace())).expect_code(3);
        offline.write("plan.json", &topo.read("plan.json"));
        let show = "show plan.json --color always --detailed-exitcode";
        let shown = offline.run(show.split(' ').chain(more.split_whitespace())).expect_code(3);
        // The file replaces the spec, and the suggested command applies it.
        let url = format!("topo apply --plan plan.json --url {}", vhost.node().url());
        let told =
            shown.stdout.replace("spec plan.json", "spec topology.yaml").replace(&url, "topo apply --plan plan.json");
        let planned = planned.stdout.replace("spec  topology.yaml", "spec topology.yaml");
        assert_eq!(told, planned, "{more}");
    }
    let colored = offline.run(["show", "plan.json", "--color", "always"]).expect_code(0);
    assert!(colored.stdout.contains('\u{1b}'), "{colored}");
    vhost.http().delete(&vhost.path("queues", &["orders.mail"])).expect_status(204);
    topo.run(["plan", "--out=plan.json"]).expect_code(0);
    offline.write("plan.json", &topo.read("plan.json"));
    offline.run(["show", "plan.json"]).expect_code(0);
    offline.run(["show", "plan.json", "--detailed-exitcode"]).expect_code(2);
    offline.run(["show", "missing.json"]).expect_code(65).expect_error("cannot read missing.json");
    offline.run(["show"]).expect_code(64).expect_text("Usage: topo show [OPTIONS] [FILE]");
}

#[test]
fn concurrent_change_makes_a_saved_plan_stale() {
    let vhost = Node::shared().vhost("stale");
    let amqp = vhost.amqp();
    amqp.declare_queue("orders.extra", NONE).unwrap();
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec(&format!("owns: [\"orders.*\"]\n{SPEC}"));
    topo.run(["plan", "--prune", "--out=plan.json"]).expect_code(0);
    amqp.declare_queue("orders.new", NONE).unwrap();
    let stale = topo.run(["apply", "--plan", "plan.json", "--allow=mass-delete"]).expect_code(5);
    let stale = stale.expect_text("the broker no longer matches the plan; nothing was changed");
    stale
        .expect_text(&format!("queues/{}/orders.new: DELETE /api/queues/", vhost.name()))
        .expect_no_text("orders.extra:");
    assert_eq!(proxy.count(&any()), proxy.count(&gets()));
    assert_eq!(vhost.names("queues"), ["orders.extra", "orders.new"]);
    vhost.http().delete(&vhost.path("queues", &["orders.new"])).expect_status(204);

    // A new conflict makes the plan stale, too.
    amqp.declare_queue("orders.mail", &[("x-max-length", Argument::LongInt(1))]).unwrap();
    topo.run(["apply", "--plan", "plan.json"]).expect_code(5).expect_text("orders.mail");
    vhost.http().delete(&vhost.path("queues", &["orders.mail"])).expect_status(204);

    // The broker changes during the apply, between the plan and the plan under the lock.
    let late = vhost.amqp();
    proxy.add(
        puts().path("topo.lock").nth(1),
        Fault::Meanwhile(Box::new(move || late.declare_queue("orders.late", NONE).unwrap())),
    );
    topo.run(["apply", "--plan", "plan.json", "--allow=mass-delete"]).expect_code(5).expect_text("orders.late");
    assert_eq!(vhost.names("queues"), ["orders.extra", "orders.late"], "no lock is left");
}

#[test]
fn remaining_steps_are_applied() {
    let vhost = Node::shared().vhost("rest");
    let proxy = Proxy::to(Node::shared()).on(posts().nth(1), Fault::Status(400));
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    topo.run(["plan", "--out=plan.json"]).expect_code(0);
    let partial = topo.run(["apply", "--plan", "plan.json"]).expect_code(4);
    partial.expect_text("failed        bind").expect_text("topo apply --plan plan.json");
    assert_eq!((vhost.names("queues").len(), vhost.list("bindings").len()), (2, 0));
    let rest = topo.run(["apply", "--plan", "plan.json"]).expect_code(0);
    rest.expect_text("Applied: 1 of 1 step done.");
    assert_eq!(vhost.list("bindings").len(), 1);
}

#[test]
fn fingerprint_pins_a_plan_without_a_file() {
    let vhost = Node::shared().vhost("expect");
    let topo = Topo::new(&vhost).spec(SPEC);
    let print = |topo: &Topo| topo.run(["plan", "--format=json"]).plan()["fingerprint"].as_str().unwrap().to_owned();
    let first = print(&topo);
    assert_eq!(first, print(&topo), "the same twice");
    let elsewhere = Node::shared().vhost("expect");
    assert_ne!(first, print(&Topo::new(&elsewhere).spec(SPEC)), "the fingerprint includes the target");
    topo.run(["apply", "-y", "--expect", "0123"]).expect_code(5).expect_text(&first);
    assert_eq!(vhost.names("queues"), [""; 0]);
    // Changed message counts do not make a plan stale.
    vhost.amqp().declare_queue("orders.mail", NONE).unwrap();
    let second = print(&topo);
    assert_ne!(first, second);
    vhost.amqp().fill("orders.mail", 1);
    assert_eq!(second, print(&topo));
    topo.run(["apply", "-y", "--expect", &first]).expect_code(5);
    topo.run(["apply", "-y", "--expect", &second]).expect_code(0);
}

#[test]
fn invalid_plan_file_is_reported() {
    let vhost = Node::shared().vhost("garbage");
    let topo = Topo::new(&vhost).spec(SPEC);
    topo.run(["plan", "--out=plan.json"]).expect_code(0);
    let mut plan = saved(&topo);
    plan["formatVersion"] = json!(99);
    let cases = [
        ("garbage", "not json".to_owned(), "garbage.json is not a plan"),
        ("empty", String::new(), "empty.json is not a plan"),
        ("other", "{\"a\": 1}".to_owned(), "other.json is not a plan"),
        ("version", plan.to_string(), "has format version 99, but this version of topo reads 1"),
    ];
    for (name, text, words) in cases {
        topo.write(&format!("{name}.json"), &text);
        let file = format!("{name}.json");
        for command in [&["apply", "--plan", &file][..], &["show", &file]] {
            let refused = topo.run(command.iter().copied()).expect_code(65).expect_no_result();
            refused.expect_text(words).expect_text("topo plan --out plan.json");
        }
    }
    topo.run(["apply", "--plan", "missing.json"]).expect_code(65).expect_text("cannot read missing.json");
    topo.run(["plan", "--against=empty", "--out=offline.json"]).expect_code(0);
    topo.run(["apply", "--plan", "offline.json"]).expect_code(64).expect_text("created without a broker");
    topo.run(["apply", "--plan", "plan.json", "--prune"]).expect_code(64);
    assert_eq!(vhost.names("queues"), [""; 0]);
}

#[test]
fn plan_for_another_cluster_is_refused() {
    let vhost = Node::shared().vhost("cluster");
    let topo = Topo::new(&vhost).spec(SPEC);
    topo.run(["plan", "--out=plan.json"]).expect_code(0);
    let cluster = saved(&topo)["target"]["cluster"].as_str().unwrap().to_owned();
    let mut overview = vhost.http().get("/api/overview").expect_status(200);
    overview["cluster_name"] = json!("rabbit@elsewhere");
    let other = Fault::Instead(Box::new(move || overview.clone()));
    let proxy = Proxy::to(Node::shared()).on(gets().path("/api/overview"), other);
    let topo = topo.through(&proxy);
    let refused = topo.run(["apply", "--plan", "plan.json", "--allow-other-broker"]).expect_code(5);
    let text = format!("the plan is for cluster {cluster}, but this broker belongs to cluster rabbit@elsewhere");
    refused.expect_text(&text);
}

#[test]
fn plan_for_another_url_requires_allow() {
    let vhost = Node::shared().vhost("other-url");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).spec(SPEC);
    topo.run(["plan", "--out=plan.json"]).expect_code(0);
    let topo = topo.through(&proxy);
    let refused = topo.run(["apply", "--plan", "plan.json"]).expect_code(64);
    let words = format!("the plan was made for {}, not for {}", vhost.node().url(), proxy.url());
    refused.expect_text(&words).expect_text("--allow-other-broker");
    assert_eq!((vhost.names("queues"), proxy.count(&any())), (Vec::new(), 0));
    topo.run(["apply", "--plan", "plan.json", "--allow-other-broker"]).expect_code(0);
    assert_eq!(vhost.names("queues").len(), 2);
    topo.run(["apply", "-y", "--allow-other-broker"]).expect_code(64);
}

/// Edits each part of a plan that a reviewer reads or that affects the apply.
#[test]
fn edited_plan_is_refused() {
    let vhost = Node::shared().vhost("edited");
    vhost.amqp().declare_queue("old", NONE).unwrap();
    vhost.amqp().fill("old", 2);
    let topo = Topo::new(&vhost).spec(&format!("{SPEC}removed: {{queues: [old]}}\n"));
    topo.run(["plan", "--out=plan.json"]).expect_code(0);
    let plan = saved(&topo);
    let edits: [(&str, Value); 12] = [
        ("/fingerprint", json!("0123456789abcdef0123456789abcdef")),
        ("/summary/create", json!(1)),
        ("/target/cluster", json!("rabbit@elsewhere")),
        ("/options/prune", json!(["queue"])),
        ("/vhosts/0/changes/0/kind", json!("delete")),
        ("/vhosts/0/steps/0/request/path", json!("/api/queues/x/other")),
        // These parts are not covered by the fingerprint.
        ("/target/url", json!("http://attacker.example:15672")),
        ("/target/version", json!("4.0.0")),
        ("/target/product", json!("Rabbit")),
        ("/vhosts/0/hazards", json!([])),
        ("/vhosts/0/hazards/0/messages", json!(0)),
        ("/contentHash", json!("")),
    ];
    for (place, value) in edits {
        let mut edited = plan.clone();
        match edited.pointer_mut(place) {
            Some(old) => *old = value,
            None if place == "/options/prune" => edited["options"]["prune"] = value,
            None => panic!("there is no {place}: {plan:#}"),
        }
        assert_ne!(edited, plan, "{place}");
        topo.write("edited.json", &edited.to_string());
        for command in [
            &["apply", "--plan", "edited.json"][..],
            &["graph", "--plan", "edited.json"],
            &["show", "edited.json"],
            &["show", "edited.json", "--format", "json"],
        ] {
            let refused = topo.run(command.iter().copied()).expect_code(65);
            refused.expect_error("edited.json was edited after topo wrote it").expect_text("caused by: ");
        }
    }
    assert_eq!(vhost.names("queues"), ["old"]);
    topo.run(["apply", "--plan", "plan.json", "--allow=message-loss"]).expect_code(0);
}

/// Returns an edited plan with a recomputed content hash, which is not a secret.
fn sealed(mut plan: Value) -> String {
    plan.as_object_mut().unwrap().remove("contentHash");
    let digest = Sha256::digest(plan.to_string());
    plan["contentHash"] = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>().into();
    plan.to_string()
}

/// Edits parts that are not covered by the fingerprint: the displayed fields of a change, and the desired topology.
#[test]
fn plan_must_equal_the_plan_under_the_lock() {
    let vhost = Node::shared().vhost("shown");
    vhost
        .http()
        .put(
            &vhost.path("policies", &["p"]),
            &json!({"pattern": "^x", "definition": {"max-length": 5}, "apply-to": "queues"}),
        )
        .expect_status(201);
    let topo = Topo::new(&vhost).spec("policies: {p: {pattern: ^x, applyTo: queues, definition: {maxLength: 6}}}\n");
    topo.run(["plan", "--out=plan.json"]).expect_code(0);
    let plan = saved(&topo);
    let mut edited = plan.clone();
    let shown = edited.pointer_mut("/vhosts/0/changes/0/fields/0/after").unwrap();
    assert_eq!(*shown, json!(6));
    *shown = json!(5_000_000);
    topo.write("edited.json", &sealed(edited));
    let refused = topo.run(["apply", "--plan", "edited.json"]).expect_code(5);
    refused.expect_text(&format!("policies/{}/p", vhost.name())).expect_text("contains a different change");
    topo.run(["apply", "--plan", "plan.json"]).expect_code(0);
}

/// Prepares a plan with creations, a conflict, a recreation, hazards, pruned objects and infos.
fn everything(hint: &str) -> (crate::support::Vhost<'static>, Topo) {
    let vhost = Node::shared().vhost(hint);
    let amqp = vhost.amqp();
    amqp.declare_queue("differs", &[("x-max-length", Argument::LongInt(1))]).unwrap();
    amqp.declare_queue("again", &[("x-max-length", Argument::LongInt(1)), ("x-own", Argument::LongInt(1))]).unwrap();
    amqp.declare_queue("un|de`cl`ared<b>", NONE).unwrap();
    amqp.bind_queue("amq.topic", "again", "```", NONE);
    amqp.fill("again", 1);
    let topo = Topo::new(&vhost).spec(
        "owns: [\"*\"]\nexchanges: {new: {type: topic}}\nqueues:\n  differs: {type: classic, maxLength: 2}\n  again:\n    \
         type: classic\n    maxLength: 2\n    onConflict: discard\n    bindings: [{exchange: new, routingKey: a@b|c}]\n",
    );
    (vhost, topo)
}

#[test]
fn markdown_escapes_hostile_names() {
    let (_vhost, topo) = everything("markdown");
    let comment = topo.run(["plan", "--prune", "--format=markdown"]).expect_code(0);
    for part in [
        "| ! | queue differs | **conflict**: x-max-length 1 → 2 |",
        "| -/+ | queue again | **recreate**: ",
        "| - | queue un\\|de\\`cl\\`ared&lt;b&gt; | **delete** |",
        "| + | binding new ─ a@\u{200b}b\\|c → again | create |",
        "- **message-loss** `queues/",
        // This plan does not list the hazards of a possible recreation.
        "\n```sh\ntopo plan ",
        // The example contains five backticks, so the fence has six.
        "| routing key \\`\\`\\`\\`\\` | again | no queue |",
        "<details><summary>Complete plan</summary>\n\n``````diff\n",
        "\n``````\n\n</details>\n",
        "\nFingerprint `",
    ] {
        assert!(comment.stdout.contains(part), "no {part}: {comment}");
    }
    assert!(!comment.stdout.contains('\u{1b}'));
    // Every row of the first table has three cells, and every row of the table of routing changes has five.
    let mut cells = 0;
    for row in comment.stdout.lines().filter(|line| line.starts_with('|')) {
        let count = row.replace("\\|", "").matches('|').count() - 1;
        match row.contains("routing change |") || row.starts_with("| | object") {
            true => cells = count,
            false => assert_eq!(count, cells, "{row}"),
        }
    }
    assert_eq!(cells, 5, "{comment}");
}

#[test]
fn huge_comment_is_truncated_at_a_row() {
    let topo = Topo::offline();
    let mut spec = "version: 1\nvhost: big\nqueues:\n".to_owned();
    for number in 0..2000 {
        spec.push_str(&format!(
            "  queue-number-{number:04}: {{type: quorum, bindings: [{{exchange: amq.topic, routingKey: k}}]}}\n"
        ));
    }
    topo.write("topology.yaml", &spec);
    let comment = topo.run(["plan", "--against=empty", "--format=markdown"]).expect_code(0).stdout;
    let length = comment.chars().count();
    assert!((40_000..60_000).contains(&length), "{length}");
    assert_eq!(comment.matches("```").count() % 2, 0);
    assert!(comment.contains(" more |\n") && comment.contains("… truncated: run `topo plan`"));
    assert!(comment.contains("Plan: 2,001 objects") || comment.contains("Plan: 2001 objects"), "{}", &comment[..300]);
    assert!(comment.contains("\n```\n\n</details>\n\nFingerprint `"), "{}", &comment[comment.len() - 300..]);
    let plan = topo.run(["plan", "--against=empty", "--format=json"]).expect_code(0).plan();
    assert_eq!((&plan["summary"]["create"], &plan["summary"]["bind"]), (&json!(2001), &json!(2000)));
}

#[test]
fn annotations_have_the_line_of_the_object() {
    let (vhost, topo) = everything("github");
    let text = topo.run(["plan", "--prune", "--format=github"]).expect_code(0).stdout;
    let again = format!("queues/{}/again", vhost.name());
    for (start, part) in [
        ("::notice file=topology.yaml,line=4,col=13,title=topo plan::exchanges/", "/new will be created"),
        ("::notice file=topology.yaml,line=7,col=3,title=topo plan::queues/", "/again will be recreated"),
        ("::error file=topology.yaml,line=7,col=3,title=message-loss::", &format!("(--allow message-loss@{again})")),
        ("::error file=topology.yaml,line=6,col=3,title=conflict::", "%0APRECONDITION_FAILED - inequivalent arg"),
        ("::error title=topo plan::Plan: 1 object and 1 binding to create, 1 object to recreate, ", ""),
    ] {
        let found = text.lines().any(|line| line.starts_with(start) && line.contains(part));
        assert!(found, "no {start} … {part}: {text}");
    }
    assert!(text.lines().all(|line| line.starts_with("::")), "{text}");
}

#[test]
fn json_matches_the_schema_and_is_deterministic() {
    let (vhost, topo) = everything("json");
    let run = || topo.run(["plan", "--prune", "--format=json"]).expect_code(0);
    let (one, two) = (run(), run());
    assert_eq!(one.stdout, two.stdout);
    let plan = one.plan();
    assert_eq!(plan["formatVersion"], 1);
    assert_eq!(plan["vhosts"][0]["vhost"], vhost.name());
    assert_eq!(plan["target"]["version"], Node::shared().version());
    let changes = plan["vhosts"][0]["changes"].as_array().unwrap();
    let kinds: Vec<&str> = changes.iter().filter_map(|change| change["kind"].as_str()).collect();
    for kind in ["create", "recreate", "delete", "conflict"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    assert_eq!(topo.run(["plan", "--prune"]).stdout, topo.run(["diff", "--prune"]).stdout, "diff is plan");
}

#[test]
fn target_includes_only_its_dependencies() {
    let vhost = Node::shared().vhost("target");
    let topo = Topo::new(&vhost).spec(
        "exchanges:\n  orders: {type: topic, alternateExchange: unrouted}\n  unrouted: {type: fanout}\n  other: {type: \
         topic}\nqueues:\n  orders.work: {type: classic, deadLetter: orders.dead, bindings: [{exchange: orders, routingKey: \
         a}]}\n  orders.mail: {type: classic, bindings: [{exchange: other, routingKey: a}]}\ndeadLetterQueues: \
         {orders.dead: {type: classic}}\n",
    );
    let work = format!("queues/{}/orders.work", vhost.name());
    let limited = topo.run(["plan", "--target", &work]).expect_code(0);
    limited.expect_text(&format!("--target {work}")).expect_text("--target excludes").expect_no_text("orders.mail");
    topo.run(["apply", "-y", "--target", &work]).expect_code(0);
    assert_eq!(vhost.names("exchanges"), ["orders", "orders.dead.dlx", "unrouted"]);
    // The dependencies include the dead-letter queue, without which messages would be dropped silently.
    assert_eq!(
        (vhost.names("queues"), vhost.list("bindings").len()),
        (vec!["orders.dead".to_owned(), "orders.work".to_owned()], 2)
    );
    topo.run(["apply", "-y", "--target", &format!("exchanges/{}/*", vhost.name())]).expect_code(0);
    assert_eq!(vhost.names("exchanges"), ["orders", "orders.dead.dlx", "other", "unrouted"]);
    topo.run(["plan", "--target", "orders.work"]).expect_code(64).expect_text("use the form queues/VHOST/NAME");
    topo.run(["apply", "-y"]).expect_code(0);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn plan_works_offline() {
    let vhost = Node::shared().vhost("against");
    let online = Topo::new(&vhost).spec(SPEC);
    online.run(["apply", "-y"]).expect_code(0);
    vhost.amqp().declare_queue("differs", &[("x-message-ttl", Argument::LongInt(60_000))]).unwrap();
    let all = vhost.http().list("/api/definitions");
    let own = vhost.http().get(&vhost.path("definitions", &[])).expect_status(200);

    let topo = Topo::offline().url(NOWHERE);
    let spec = |more: &str| format!("version: 1\nvhost: {}\n{SPEC}{more}", vhost.name());
    topo.write("topology.yaml", &spec(""));
    topo.write("all.json", &all.to_string());
    topo.write("own.json", &own.to_string());
    let empty = topo.run(["plan", "--against=empty", "--detailed-exitcode"]).expect_code(2);
    empty.expect_text("Plan: 4 objects").expect_no_text("192.0.2.1");
    for file in ["all.json", "own.json"] {
        topo.write("topology.yaml", &spec(""));
        topo.run(["plan", "--against", file, "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
        topo.write("topology.yaml", &spec("  differs: {type: classic, messageTtl: 30s}\n"));
        let conflict = topo.run(["plan", "--against", file, "--detailed-exitcode"]).expect_code(3);
        conflict.expect_text("60000 (1m) → 30000 (30s)").expect_text("recreate and keep its messages: --recreate");
        topo.run(["plan", "--against", file, "--format=json"]).expect_code(0).plan();
    }
    topo.write("topology.yaml", "version: 1\nvhost: v\nqueues: {s: {type: stream}}\n");
    let version =
        |version: &'static str| ["plan", "--against=empty", "--detailed-exitcode", "--broker-version", version];
    topo.run(version("3.8.9")).expect_code(3).expect_text("streams require RabbitMQ 3.9; the broker is 3.8.9");
    topo.run(version("3.10.8")).expect_code(2).expect_text("3.10.8");
    topo.run(["plan", "--broker-version=3.8.9"]).expect_code(64);
    topo.write("wrong.json", "[1]");
    topo.run(["plan", "--against=wrong.json"]).expect_code(65).expect_text("wrong.json");
    topo.run(["plan", "--against=missing.json"]).expect_code(64).expect_text("cannot read missing.json");
}

#[test]
fn printed_schema_matches_the_committed_file() {
    let committed = std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schema/plan.schema.json"));
    assert_eq!(Topo::offline().run(["schema", "--kind=plan"]).expect_code(0).stdout, committed.unwrap());
}
