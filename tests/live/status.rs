//! Tests `topo status`: the counts, ages and thresholds of queues, and the notes about the vhost. `topo status` never
//! writes.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::lock::{LONG, put_lock};
use crate::support::{Fault, Node, Options, Output, Proxy, Topo, Vhost, any, gets, until, valid_status};

const SPEC: &str = "\
owns: ['*']
exchanges: {orders: {type: topic}}
deadLetterQueues:
  orders.dead: {type: classic, thresholds: {depth: {warning: 2, critical: 4}}}
queues:
  orders.work: {type: classic, deadLetter: orders.dead, bindings: [{exchange: orders, routingKey: 'order.#'}]}
";

/// Returns a runner with an applied spec.
fn applied(vhost: &Vhost<'_>, spec: &str) -> Topo {
    let topo = Topo::new(vhost).spec(spec);
    topo.run(["apply", "--yes"]).expect_code(0);
    topo
}

/// Runs `topo status --format json`, checks the document against the schema, and returns it.
fn status(topo: &Topo, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = topo.run(["status", "--format", "json"].iter().chain(arguments).copied());
    let document = output.json();
    valid_status(&document);
    (output.code, document)
}

/// Returns the status of a queue in the first vhost.
fn queue(document: &Value, name: &str) -> Value {
    let lists = ["deadLetterQueues", "queues"].map(|list| document["vhosts"][0][list].as_array().unwrap().clone());
    let found = lists.concat().into_iter().find(|queue| queue["queue"] == name);
    found.unwrap_or_else(|| panic!("no queue {name} in {document:#}"))
}

/// Waits until the status of a queue satisfies the condition.
fn until_queue(topo: &Topo, arguments: &[&str], name: &str, is_met: impl Fn(&Value) -> bool) -> Value {
    until("the status of a queue", || {
        let (_, document) = status(topo, arguments);
        is_met(&queue(&document, name)).then_some(document)
    })
}

fn problems(document: &Value, name: &str) -> Vec<String> {
    let problems = queue(document, name)["problems"].clone();
    problems.as_array().unwrap().iter().map(|it| format!("{} {}", it["state"].as_str().unwrap(), it["kind"])).collect()
}

#[test]
fn thresholds_determine_the_exit_code() {
    let vhost = Node::shared().vhost("status-codes");
    let topo = applied(&vhost, SPEC);
    let fine = topo.run(["status"]).expect_code(0);
    fine.expect_text("No problems in 2 queues.").expect_text("no changes pending").expect_no_text("Next:");
    let amqp = vhost.amqp();
    amqp.fill("orders.dead", 2);
    let warning = topo.run(["status"]).expect_code(2).expect_text("warning: depth 2");
    warning.expect_text(&format!("Next: topo dlq list orders.dead --vhost {}", vhost.name()));
    amqp.fill("orders.dead", 2);
    topo.run(["status"]).expect_code(3).expect_text("critical: depth 4").expect_text("Critical: 1 of 2 queues.");
    let (code, document) = status(&topo, &[]);
    assert_eq!((code, &document["state"], problems(&document, "orders.dead").len()), (Some(3), &json!("critical"), 1));
    assert_eq!(
        queue(&document, "orders.dead")["problems"][0],
        json!({"kind": "depth", "state": "critical", "limit": 4})
    );
    // Unacknowledged messages count, too.
    let held = amqp.hold("orders.dead", 3);
    let is_held = |queue: &Value| queue["ready"] == 1 && queue["unacknowledged"] == 3 && queue["messages"] == 4;
    until_queue(&topo, &[], "orders.dead", is_held);
    topo.run(["status"]).expect_code(3);
    let consumed = until_queue(&topo, &[], "orders.dead", |queue| queue["consumers"] == 1);
    assert_eq!(queue(&consumed, "orders.work")["consumers"], 0);
    drop(held);
    topo.run(["status", "--color", "always"]).expect_code(3).expect_text("\u{1b}[31m! orders.dead");
}

#[test]
fn age_is_a_lower_bound_of_the_elapsed_time() {
    let vhost = Node::shared().vhost("status-age");
    let spec = "deadLetterQueues: {dead: {type: classic, thresholds: {depth: {warning: 5}, age: {warning: 5s}}}}\n";
    let topo = applied(&vhost, spec);
    until_queue(&topo, &[], "dead", |queue| queue["consumers"] == 0);
    let before = Instant::now();
    vhost.amqp().fill("dead", 1);
    let seconds = |queue: &Value| queue["notEmptyForSeconds"].as_u64();
    let document = until_queue(&topo, &[], "dead", |queue| {
        assert!(seconds(queue).is_none_or(|age| age <= before.elapsed().as_secs()), "{queue}");
        seconds(queue).is_some_and(|age| age >= 5)
    });
    assert_eq!(problems(&document, "dead"), ["warning \"age\""]);
    topo.run(["status"]).expect_code(2).expect_text("≥ ").expect_text("warning: age 5s");
    vhost.amqp().get_all("dead");
    until_queue(&topo, &[], "dead", |queue| queue["notEmptyForSeconds"].is_null() && queue["messages"] == 0);
    topo.run(["status"]).expect_code(0);
}

#[test]
fn growth_is_known_only_with_evidence() {
    let vhost = Node::shared().vhost("status-growth");
    let growth = "{critical: {messages: 3, within: 5m}}";
    let spec = format!("deadLetterQueues: {{dead: {{type: classic, thresholds: {{growth: {growth}}}}}}}\n");
    applied(&vhost, &spec);
    vhost.amqp().fill("dead", 3);
    let node = vhost.queue("dead")["node"].clone();
    let with_uptime = |minutes: u64| {
        let nodes = json!([{"name": node, "running": true, "uptime": minutes * 60_000}]);
        let proxy =
            Proxy::to(Node::shared()).on(gets().path("/api/nodes"), Fault::Instead(Box::new(move || nodes.clone())));
        let topo = Topo::new(&vhost).spec(&spec).through(&proxy);
        // The broker reports the consumers before the samples.
        let is_complete =
            |queue: &Value| queue["consumers"] == 0 && (minutes < 10 || !queue["growthIn5Minutes"].is_null());
        let document = until_queue(&topo, &[], "dead", is_complete);
        let (code, _) = status(&topo, &[]);
        (code, queue(&document, "dead")["growthIn5Minutes"].clone(), document)
    };
    let (code, growth, document) = with_uptime(60);
    assert_eq!((code, growth), (Some(3), json!(3)));
    assert_eq!(problems(&document, "dead"), ["critical \"growth\""]);
    // The node started 2 minutes ago. The broker returns 0 also for the time before.
    let (code, growth, document) = with_uptime(2);
    assert_eq!((code, growth), (Some(0), json!(null)));
    assert_eq!(queue(&document, "dead")["unchecked"], json!(["growth"]));
}

#[test]
fn queue_without_consumers_is_a_warning() {
    let vhost = Node::shared().vhost("status-consumers");
    let topo = applied(&vhost, "queues: {work: {type: classic, thresholds: {noConsumers: 5s}}}\n");
    topo.run(["status"]).expect_code(0);
    let amqp = vhost.amqp();
    amqp.fill("work", 1);
    let document = until_queue(&topo, &[], "work", |queue| queue["state"] == "warning");
    assert_eq!(problems(&document, "work"), ["warning \"noConsumers\""]);
    topo.run(["status"]).expect_code(2).expect_text("warning: no consumers, not empty for 5s");
    let _held = amqp.hold("work", 1);
    until_queue(&topo, &[], "work", |queue| queue["state"] == "fine" && queue["consumers"] == 1);
}

#[test]
fn tiers_with_messages_are_shown() {
    let vhost = Node::shared().vhost("status-tiers");
    let spec = "\
deadLetterQueues: {dead: {type: classic}}
queues: {work: {type: quorum, deadLetter: dead, retry: {delays: [1h, 2h]}}}
";
    let topo = applied(&vhost, spec);
    let amqp = vhost.amqp();
    amqp.fill("work", 3);
    assert_eq!(amqp.reject("work", 3), 3);
    let tiers = |document: &Value| document["vhosts"][0]["retries"].clone();
    let document = until("messages in a tier", || {
        let (_, document) = status(&topo, &[]);
        (tiers(&document)[0]["messages"] == 3).then_some(document)
    });
    let tier = json!({"tier": "work.retry.1.1h", "retry": 1, "delayMilliseconds": 3_600_000, "messages": 3});
    assert_eq!(tiers(&document), json!([{"queue": "work", "messages": 3, "tiers": [tier]}]));
    topo.run(["status"]).expect_code(0).expect_text("1h: 3");
    // Without a spec, the dead-letter queue is recognized, and a tier is not a queue.
    let (code, all) = status(&topo, &["--vhost", "{vhost}", "--all"]);
    assert_eq!((code, tiers(&all)), (Some(0), tiers(&document)));
    let names = |list: &str| {
        let queues = all["vhosts"][0][list].as_array().unwrap().clone();
        queues.iter().map(|queue| queue["queue"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names("deadLetterQueues"), names("queues")), (vec!["dead".to_owned()], vec!["work".to_owned()]));
}

#[test]
fn drift_lock_and_missing_queues_are_notes() {
    let vhost = Node::shared().vhost("status-notes");
    let topo = Topo::new(&vhost).spec(SPEC);
    let missing = topo.run(["status"]).expect_code(2).expect_text("warning: does not exist");
    missing.expect_text("pending; run `topo plan topology.yaml").expect_text("Next: topo plan topology.yaml");
    topo.run(["apply", "--yes"]).expect_code(0);
    vhost.amqp().declare_queue("stray", &[]).unwrap();
    topo.rewrite(&SPEC.replace("order.#", "order.*"));
    put_lock(&vhost, "topo.lock", "me@far-away", LONG);
    let (code, document) = status(&topo, &[]);
    let vhost_status = &document["vhosts"][0];
    assert_eq!(code, Some(0));
    assert_eq!(vhost_status["drift"], json!({"changes": 1, "conflicts": 0, "unmanaged": 2}));
    assert_eq!(vhost_status["lock"], json!({"holder": "me@far-away", "isLock": true, "nodeIsUp": true}));
    let text = topo.run(["status"]).expect_code(0).expect_text("held by me@far-away");
    text.expect_text("1 change pending, 2 unmanaged objects");
    put_lock(&vhost, "my.lock", "me@other", LONG);
    topo.run(["status", "--lock-name", "my.lock"]).expect_code(0).expect_text("held by me@other");
}

/// Any user can forge the mark of a migration, which this test does.
#[test]
fn interrupted_migration_is_a_warning() {
    let vhost = Node::shared().vhost("status-migration");
    let topo = applied(&vhost, SPEC);
    let hold = json!({"durable": true, "arguments": {"x-topo-migrates": "orders.work"}});
    vhost.http().put(&vhost.path("queues", &["orders.work.topo.hold"]), &hold).expect_status(201);
    let text = "a migration of queue orders.work was interrupted";
    topo.run(["status"]).expect_code(2).expect_text(text);
    let (code, document) = status(&topo, &["--vhost", "{vhost}", "--all"]);
    let migration = &document["vhosts"][0]["interruptedMigrations"][0];
    assert_eq!((code, &migration["inProgress"]), (Some(2), &json!(false)));
    assert_eq!(migration["address"], format!("queues/{}/orders.work", vhost.name()));
    // An apply that holds the lock may complete the migration.
    put_lock(&vhost, "topo.lock", "me@far-away, pid 7, since now", LONG);
    topo.run(["status"]).expect_code(0).expect_text("is in progress").expect_text("held by me@far-away");
    topo.run(["status", "--vhost", "{vhost}", "--all"]).expect_code(0).expect_text("is in progress");
}

#[test]
fn queues_without_a_spec_have_default_thresholds() {
    let vhost = Node::shared().vhost("status-all");
    let all = ["--vhost", "{vhost}", "--all"];
    let topo = applied(&vhost, SPEC);
    let amqp = vhost.amqp();
    amqp.fill("orders.dead", 49);
    amqp.fill("orders.work", 300);
    let run = |code: i32| topo.run(["status"].iter().chain(&all).copied()).expect_code(code);
    run(0).expect_text("dead-letter queues");
    amqp.fill("orders.dead", 1);
    run(2).expect_text("warning: depth 50").expect_no_text("drift");
    amqp.fill("orders.dead", 150);
    run(3).expect_text("critical: depth 200");
    let exclusive = lapin::options::QueueDeclareOptions { exclusive: true, ..Default::default() };
    amqp.declare_queue_as("reply", exclusive, &[]).unwrap();
    let (_, document) = status(&topo, &all);
    assert_eq!(document["vhosts"][0]["temporaryQueues"], 1);
    assert_eq!(document["vhosts"][0]["drift"], json!(null));
    run(3).expect_text("1 exclusive or server-named queue").expect_no_text("reply");
    // One request reads the samples of all queues, and nothing is written.
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).spec(SPEC).through(&proxy);
    topo.run(["status"].iter().chain(&all).copied()).expect_code(3);
    assert_eq!(proxy.count(&gets().path("lengths_age=600")), 1);
    topo.run(["status"]).expect_code(3);
    assert_eq!(proxy.count(&gets()), proxy.count(&any()));
}

#[test]
fn names_are_shown_and_quoted() {
    let vhost = Node::shared().vhost("status a/b%é");
    let names = ["a/b", "a b", "%", "ünïcödé", "x'y", "..."];
    let queues: Vec<String> = names.iter().map(|name| format!("  {}: {{type: classic}}\n", json!(name))).collect();
    let topo = applied(&vhost, &format!("deadLetterQueues:\n{}", queues.concat()));
    let amqp = vhost.amqp();
    names.iter().for_each(|name| amqp.fill(name, 1));
    amqp.fill("a b", 60);
    for arguments in [vec![], vec!["--vhost", "{vhost}", "--all"]] {
        let (_, document) = status(&topo, &arguments);
        for name in names {
            assert_eq!(queue(&document, name)["messages"], if name == "a b" { 61 } else { 1 });
        }
    }
    let text = topo.run(["status"]).expect_code(2);
    text.expect_text(&format!("Next: topo dlq list 'a b' --vhost '{}'", vhost.name()));
}

/// A user can read a vhost with any permission, even one that matches no object.
#[test]
fn tags_monitoring_and_management_are_sufficient() {
    let vhost = Node::shared().vhost("status-tags");
    let topo = applied(&vhost, SPEC);
    vhost.amqp().fill("orders.dead", 2);
    // Otherwise, the statistics of the new queues are unknown, too.
    until_queue(&topo, &[], "orders.dead", |queue| queue["consumers"] == 0);
    for (tag, unknown) in [("monitoring", 0), ("management", 1)] {
        let user = Node::shared().user(tag).may(&vhost, "^$", "^$", "^$");
        let topo = Topo::new(&vhost).spec(SPEC).user(&user);
        for arguments in [vec![], vec!["--vhost", "{vhost}", "--all"]] {
            let (code, document) = status(&topo, &arguments);
            assert_eq!(code, Some(if arguments.is_empty() { 2 } else { 0 }), "{tag}");
            assert_eq!(queue(&document, "orders.dead")["messages"], 2);
            let unknowns = document["vhosts"][0]["unknown"].as_array().unwrap().len();
            assert_eq!(unknowns, unknown, "{tag}: {document:#}");
        }
        if tag == "management" {
            topo.run(["status"]).expect_code(2).expect_text("lacks the `monitoring` tag");
        }
        // Without a permission, the broker refuses every list of the vhost.
        let user = Node::shared().user(tag);
        let topo = Topo::new(&vhost).spec(SPEC).user(&user);
        topo.run(["status", "--vhost", "{vhost}", "--all"]).expect_code(1).expect_no_result();
    }
}

#[test]
fn unreadable_drift_is_unknown() {
    let vhost = Node::shared().vhost("status-rights");
    applied(&vhost, SPEC);
    let proxy =
        Proxy::to(Node::shared()).on(gets().path("/api/bindings/"), Fault::Reason(401, "Access refused.".to_owned()));
    let topo = Topo::new(&vhost).spec(SPEC).through(&proxy);
    let (code, document) = status(&topo, &[]);
    assert_eq!((code, &document["vhosts"][0]["drift"]), (Some(0), &json!(null)));
    topo.run(["status"]).expect_code(0).expect_text("drift and migrations: ").expect_text("Access refused.");
}

#[test]
fn unavailable_queue_is_critical() {
    let vhost = Node::shared().vhost("status-down");
    applied(&vhost, SPEC);
    let queues = json!([{"name": "orders.dead", "state": "down", "node": "rabbit@b"}, {"name": "orders.work", "state": "running"}]);
    let proxy = Proxy::to(Node::shared())
        .on(gets().path("columns=name,state"), Fault::Instead(Box::new(move || queues.clone())));
    let topo = Topo::new(&vhost).spec(SPEC).through(&proxy);
    let (code, document) = status(&topo, &[]);
    assert_eq!((code, problems(&document, "orders.dead")), (Some(3), vec!["critical \"unavailable\"".to_owned()]));
    assert_eq!(queue(&document, "orders.dead")["messages"], json!(null));
    topo.run(["status"]).expect_code(3).expect_text("critical: down, node rabbit@b");
}

#[test]
fn quorum_queue_without_a_running_leader_is_critical() {
    let node = Node::start(Options::default());
    let vhost = node.vhost("status-leader");
    let topo = applied(&vhost, "queues: {orders: {type: quorum}}\n");
    let server = format!("{{list_to_atom(\"{}_orders\"), node()}}", vhost.name());
    let system = if node.at_least(3, 9) { "quorum_queues, " } else { "" };
    node.ctl(["eval", &format!("ra:stop_server({system}{server}).")]);
    let (code, document) = status(&topo, &[]);
    assert_eq!((code, problems(&document, "orders")), (Some(3), vec!["critical \"unavailable\"".to_owned()]));
    topo.run(["status"]).expect_code(3).expect_text("critical: down");
}

#[test]
fn disabled_statistics_leave_values_unknown() {
    let node = Node::start(Options::default().line("management.disable_stats = true"));
    let vhost = node.vhost("status-no-statistics");
    let topo = applied(&vhost, SPEC);
    vhost.amqp().fill("orders.dead", 2);
    let (code, document) = status(&topo, &[]);
    assert_eq!(code, Some(2));
    let dead = queue(&document, "orders.dead");
    assert_eq!(dead["messages"], 2);
    for value in ["growthIn5Minutes", "notEmptyForSeconds", "consumers"] {
        assert_eq!(dead[value], json!(null), "{value}");
    }
    topo.run(["status"]).expect_code(2).expect_text("the broker returned no statistics");
}

#[test]
fn missing_vhost_and_wrong_password_are_reported() {
    let vhost = Node::shared().vhost("status-missing");
    let topo = Topo::new(&vhost);
    let missing = topo.run(["status", "--vhost", "no-such-vhost", "--all"]).expect_code(1).expect_no_result();
    missing.expect_error("vhost `no-such-vhost` does not exist");
    topo.run(["status"]).expect_code(64).expect_text("topo status --vhost NAME --all");
    let wrong = Topo::new(&vhost).env("TOPO_PASSWORD", "S3CRET").run(["status", "--vhost", "{vhost}", "--all"]);
    wrong.expect_code(1).expect_no_result().expect_text("TOPO_PASSWORD").expect_no_text("S3CRET");
    let to_come = format!("version: 1\nvhost: {}-to-come\nqueues: {{q: {{type: classic}}}}\n", vhost.name());
    let missing = topo.file("later.yaml", &to_come).run(["status", "later.yaml"]).expect_code(2);
    missing.expect_text("-to-come does not exist").expect_text("Next: topo plan later.yaml");
}

/// Without a terminal, `--watch` prints successive blocks.
#[test]
fn watch_ends_with_a_signal() {
    let vhost = Node::shared().vhost("status-watch");
    let topo = applied(&vhost, SPEC);
    for signal in ["INT", "TERM"] {
        let watch = topo.start(["status", "--watch=100ms"]);
        until("two blocks", || (watch.printed().matches("No problems in 2 queues.").count() > 1).then_some(()));
        watch.signal(signal);
        watch.wait().expect_code(0).expect_no_text("\u{1b}[2J").expect_no_text("error");
    }
    let watch = topo.start(["status", "--watch", "100ms", "--format", "json"]);
    until("two documents", || (watch.printed().lines().count() > 1).then_some(()));
    watch.signal("INT");
    let output = watch.wait().expect_code(0);
    for line in output.stdout.lines() {
        valid_status(&serde_json::from_str(line).unwrap());
    }
}

/// A watch continues after the broker was not available.
#[test]
fn watch_continues_after_an_error() {
    let vhost = Node::shared().vhost("status-watch-error");
    applied(&vhost, SPEC);
    let refused = Fault::Reason(400, "not now".to_owned());
    // The first two requests are those of the first block.
    let proxy = Proxy::to(Node::shared()).on(gets().path("/api/overview").nth(4), refused);
    let watch = Topo::new(&vhost).through(&proxy).start(["status", "--watch=100ms", "--vhost", "{vhost}", "--all"]);
    until("three blocks", || (watch.printed().matches("No problem").count() > 2).then_some(()));
    watch.signal("INT");
    watch.wait().expect_code(0).expect_text("not now");
}

/// `script` provides a terminal.
#[test]
fn watch_redraws_a_terminal() {
    let vhost = Node::shared().vhost("status-terminal");
    let run = format!(
        "{} status --watch=100ms --vhost {} --all & pid=$!\nuntil [ -e stop ]; do sleep 0.1; done\nkill -TERM $pid; wait $pid\n",
        env!("CARGO_BIN_EXE_topo"),
        vhost.name()
    );
    let topo =
        Topo::of(Path::new("/usr/bin/script")).url(&vhost.node().url()).env("SHELL", "/bin/sh").env("TERM", "xterm");
    topo.write("run.sh", &run);
    let watch = topo.start(["-qec", "sh run.sh", "/dev/null"]);
    until("two screens", || (watch.printed().matches("\u{1b}[2J").count() > 1).then_some(()));
    topo.write("stop", "");
    let output: Output = watch.wait();
    output.expect_code(0).expect_text("No problems in 0 queues.");
}

#[test]
fn several_vhosts_are_shown() {
    let (first, second) = (Node::shared().vhost("status-first"), Node::shared().vhost("status-second"));
    let topo = applied(&first, SPEC).timeout(Duration::from_secs(60));
    let other = format!("version: 1\nvhost: {}\nqueues: {{q: {{type: classic}}}}\n", second.name());
    topo.write("other.yaml", &other);
    let output = topo.run(["status", "topology.yaml", "other.yaml"]).expect_code(2);
    let output = output.expect_text(&format!("vhost {} ·", first.name()));
    output.expect_text(&format!("vhost {} ·", second.name())).expect_text("Warning: 1 of 3 queues.");
}

/// One request for each vhost reads all queues. The status changes no message.
#[test]
fn a_thousand_queues_are_read_at_once() {
    const QUEUES: usize = 1_000;
    let vhost = Node::shared().vhost("status-many");
    let queues: Vec<Value> = (0..QUEUES)
        .map(|number| json!({"name": format!("q{number}"), "durable": true, "auto_delete": false, "arguments": {}}))
        .collect();
    let definitions = json!({"queues": queues});
    assert!(vhost.http().post(&format!("/api/definitions/{}", vhost.name()), &definitions).is_success());
    let amqp = vhost.amqp();
    amqp.fill("q7", 3);
    vhost.until_counted("q7", 3);
    let proxy = Proxy::to(vhost.node());
    let topo = Topo::new(&vhost).url(&proxy.url());
    let (code, document) = status(&topo, &["--all", "--vhost", "{vhost}"]);
    assert_eq!(code, Some(0), "{document:#}");
    let listed = document["vhosts"][0]["queues"].as_array().unwrap();
    assert_eq!(listed.len(), QUEUES);
    assert_eq!(queue(&document, "q7")["messages"], 3);
    let lists = proxy.count(&gets().path("/api/queues/").but("topo.lock"));
    assert!((1..=3).contains(&lists), "{:?}", proxy.requests());
    let message = amqp.get("q7").unwrap();
    assert!(!message.redelivered);
}
