//! Checks the reports of incomplete applies in text and JSON, and the second run that completes an apply.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Argument, Fault, Gate, NONE, Node, Proxy, Topo, Vhost, any, deletes, gets, posts, puts, until, writes,
};

const SPEC: &str = "exchanges: {orders: {type: topic}}\nqueues:\n  a: {type: classic, bindings: [{exchange: orders, \
                    routingKey: a}]}\n  b: {type: classic, bindings: [{exchange: orders, routingKey: b}]}\n";

/// Returns the command at the end of a report, without its first word, split as a shell does.
fn next_command(output: &str) -> Vec<String> {
    let line =
        output.lines().rev().find(|line| line.trim_start().starts_with("topo apply")).expect("a command at the end");
    line.split_whitespace().skip(1).map(|word| word.trim_matches('\'').to_owned()).collect()
}

fn what<'a>(report: &'a Value, list: &str) -> Vec<&'a str> {
    let steps = report["vhosts"][0][list].as_array().expect("a list");
    steps.iter().filter_map(|step| step["what"].as_str()).collect()
}

#[test]
fn partial_apply_lists_every_step_and_can_be_repeated() {
    let vhost = Node::shared().vhost("partial");
    let path = format!("/{}/b", vhost.name());
    let proxy = Proxy::to(Node::shared()).on(puts().path(&path), Fault::Status(400));
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    let partial = topo.run(["apply", "-y"]).expect_code(4);
    let partial = partial
        .expect_text("  done          declare exchange orders\n")
        .expect_text("  done          declare queue a\n")
        .expect_text("  failed        declare queue b\n")
        .expect_text("status 400 for the test")
        .expect_text("  not attempted bind orders ─ a → a\n")
        .expect_text("  not attempted bind orders ─ b → b\n")
        .expect_text("Stopped: 2 of 5 steps done, 1 failed, 2 not attempted.");
    assert_eq!((vhost.names("queues"), vhost.list("bindings").len()), (vec!["a".to_owned()], 0), "no lock is left");
    proxy.reset();
    let mut again = next_command(&partial.stdout);
    assert_eq!(again[0], "apply");
    again.push("-y".to_owned());
    topo.run(again.iter().map(String::as_str)).expect_code(0).expect_text("Applied: 3 of 3 steps done. Verified");
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0);
}

#[test]
fn exceeded_allowance_is_reported() {
    let vhost = Node::shared().vhost("limit");
    let amqp = vhost.amqp();
    amqp.declare_queue("old", NONE).unwrap();
    amqp.fill("old", 3);
    vhost.until_counted("old", 3);
    let topo = Topo::new(&vhost).spec("queues: {new: {type: classic}}\nremoved: {queues: [old]}\n");
    let flag = |limit: u32| format!("--allow=message-loss@queues/{}/old:{limit}", vhost.name());
    let refused = topo.run(["apply", "-y", &flag(2)]).expect_code(3);
    refused.expect_text(&format!(
        "is too small for the 3 messages at risk; use --allow message-loss@queues/{}/old:3\n",
        vhost.name()
    ));
    let refused = topo.run(["apply", "-y", &flag(1), &flag(2)]).expect_code(3);
    assert_eq!(refused.stderr.matches("is too small").count(), 1, "{refused}");
    let applied = topo.run(["apply", "-y", &flag(2), &flag(3)]).expect_code(0);
    assert!(!applied.stderr.contains("too small"), "{applied}");
}

#[test]
fn suggested_command_keeps_the_flags() {
    let vhost = Node::shared().vhost("flags");
    vhost.amqp().declare_queue("it's old", NONE).unwrap();
    let path = format!("/{}/b", vhost.name());
    let proxy = Proxy::to(Node::shared()).on(puts().path(&path), Fault::Status(400));
    let topo = Topo::new(&vhost).through(&proxy);
    topo.write("my spec.yaml", &format!("version: 1\nvhost: {{vhost}}\nowns: [\"*\"]\n{SPEC}"));
    let partial = topo.run(["apply", "-y", "my spec.yaml", "--prune=queues", "--allow=routing-gap"]).expect_code(4);
    let last = partial.stdout.trim_end().lines().last().unwrap().trim();
    assert!(last.starts_with("topo apply 'my spec.yaml' "), "{last}");
    assert!(last.contains(" --prune=queues") && last.contains(" --allow routing-gap"), "{last}");
}

#[test]
fn apply_without_any_finished_step_is_not_partial() {
    let vhost = Node::shared().vhost("first");
    let proxy = Proxy::to(Node::shared()).on(puts().path("/orders"), Fault::Status(400));
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    let failed = topo.run(["apply", "-y"]).expect_code(1);
    failed.expect_text("Stopped: 0 of 5 steps done, 1 failed, 4 not attempted.");
    assert_eq!((vhost.names("exchanges"), vhost.names("queues")), (Vec::new(), Vec::new()));
}

#[test]
fn json_report_matches_the_text() {
    let vhost = Node::shared().vhost("machines");
    let path = format!("/{}/e/orders/q/a", vhost.name());
    let proxy = Proxy::to(Node::shared()).on(posts().path(&path), Fault::Status(400));
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    let plan = topo.run(["plan", "--format=json"]).expect_code(0).plan();
    let partial = topo.run(["apply", "-y", "--format=json"]).expect_code(4).json();
    assert_eq!(partial["result"], "partial");
    assert_eq!(partial["fingerprint"], plan["fingerprint"]);
    assert_eq!(what(&partial, "failed"), ["bind orders ─ a → a"], "{partial:#}");
    let error = partial["vhosts"][0]["failed"][0]["error"].as_str().unwrap();
    assert!(error.contains("status 400 for the test"), "{error}");
}

#[test]
fn json_report_lists_every_step() {
    let vhost = Node::shared().vhost("json");
    let topo = Topo::new(&vhost).spec(SPEC);
    let done = topo.run(["apply", "-y", "--format=json"]).expect_code(0).json();
    assert_eq!((&done["result"], &done["formatVersion"], &done["left"]), (&json!("applied"), &json!(1), &json!([])));
    // The order inside a wave is undefined.
    let mut steps = what(&done, "done");
    assert_eq!(steps[0], "declare exchange orders");
    steps.sort_unstable();
    assert_eq!(
        steps,
        ["bind orders ─ a → a", "bind orders ─ b → b", "declare exchange orders", "declare queue a", "declare queue b"]
    );
    assert_eq!((what(&done, "failed"), what(&done, "notAttempted")), (Vec::new(), Vec::new()));
    let nothing = topo.run(["apply", "-y", "--format=json"]).expect_code(0).json();
    assert_eq!((&nothing["result"], &nothing["vhosts"]), (&json!("nothing to do"), &json!([])));
    topo.rewrite("queues: {a: {type: classic, maxLength: 1}}");
    let blocked = topo.run(["apply", "-y", "--format=json"]).expect_code(3);
    assert_eq!(blocked.json()["result"], "blocked");
}

#[test]
fn apply_without_a_terminal_requires_yes() {
    // topo fails before it reads the spec or contacts the broker.
    let topo = Topo::offline().url("http://192.0.2.1:15672").timeout(Duration::from_secs(5));
    let refused = topo.run(["apply", "missing.yaml"]).expect_code(64);
    refused.expect_text("no terminal is available to ask for confirmation").expect_text("topo apply --yes");
    let vhost = Node::shared().vhost("yes");
    let topo = Topo::new(&vhost).spec(SPEC).env("TOPO_YES", "true").env("TOPO_ALLOW", "message-loss");
    topo.run(["apply"]).expect_code(64);
    assert_eq!(vhost.names("queues"), [""; 0]);
    topo.run(["apply", "-auto-approve"]).expect_code(0);
    assert_eq!(vhost.names("queues"), ["a", "b"]);
}

#[test]
fn dry_run_changes_nothing() {
    let vhost = Node::shared().vhost("dry");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    topo.run(["apply", "--dry-run"]).expect_code(0).expect_text("Plan: 3 objects and 2 bindings to create");
    let json = topo.run(["apply", "--dry-run", "--format", "json"]).expect_code(0).json();
    assert_eq!((&json["result"], &json["vhosts"]), (&json!("dry run"), &json!([])));
    assert_eq!(proxy.count(&any()), proxy.count(&gets()));
    let destroy = topo.run(["destroy"]).expect_code(64);
    destroy.expect_text("list the objects to delete under `removed:`").expect_text("topo apply --prune");
    assert_eq!(vhost.names("queues"), [""; 0]);
}

#[test]
fn findings_stop_the_apply_before_it_locks() {
    let vhost = Node::shared().vhost("findings");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec("queues: {work: {type: quorum, maxRetries: 3}}\n");
    let apply = ["apply", "-y", "--fail-on", "warning"];
    let stopped = topo.run(apply).expect_code(1).expect_error("1 finding at or above --fail-on warning");
    stopped.expect_text("warning[no-dead-letter]").expect_text("+ queue work");
    let stopped = topo.run([&apply[..], &["--format=json"]].concat()).expect_code(1);
    assert_eq!((&stopped.json()["result"], &stopped.json()["vhosts"]), (&json!("failed"), &json!([])));
    topo.run([&apply[..], &["--dry-run"]].concat()).expect_code(1);
    assert_eq!((proxy.count(&writes()), vhost.names("queues")), (0, Vec::new()));
    // The suggested command keeps the flags, so it fails for the same reason.
    let flags = ["plan", "--lint", "no-dead-letter=off,unbounded-queue=warning", "--fail-on", "warning"];
    let plan = topo.run(flags).expect_code(1).expect_text("warning[unbounded-queue]");
    let pasted = next_command(&plan.stdout);
    assert_eq!(
        &pasted[pasted.len() - 4..],
        &["--lint", "no-dead-letter=off,unbounded-queue=warning", "--fail-on", "warning"]
    );
    let pasted: Vec<&str> = pasted.iter().map(String::as_str).chain(["-y"]).collect();
    topo.run(pasted.iter().copied()).expect_code(1).expect_text("warning[unbounded-queue]");
    assert_eq!(proxy.count(&writes()), 0);
    let quiet = Topo::new(&vhost).env("TOPO_LINT", "no-dead-letter=info").env("TOPO_FAIL_ON", "warning");
    let quiet = quiet.spec("queues: {work: {type: quorum, maxRetries: 3}}\n");
    let plan = quiet.run(["plan"]).expect_code(0);
    assert!(!next_command(&plan.stdout).iter().any(|word| word == "--fail-on" || word == "--lint"), "{plan}");
    quiet.run(["apply", "-y"]).expect_code(0);
    assert_eq!(vhost.names("queues"), ["work"]);
    // Findings do not stop a saved plan, because it was reviewed.
    quiet.rewrite("queues: {work: {type: quorum, maxRetries: 3}, more: {type: quorum, maxRetries: 3}}\n");
    quiet.run(["plan", "--out", "plan.json"]).expect_code(0);
    quiet.env("TOPO_LINT", "no-dead-letter=error").run(["apply", "--plan", "plan.json"]).expect_code(0);
}

/// Starts an apply, and sends a signal while the first matching request is in progress.
fn interrupted(
    topo: &Topo,
    proxy: &Proxy,
    at: crate::support::Matching,
    signal: &str,
    flags: &[&str],
) -> crate::support::Output {
    let gate = Gate::default();
    proxy.add(at.clone().nth(1), gate.fault());
    let running = topo.start(["apply", "-y"].into_iter().chain(flags.iter().copied()));
    until("the request to interrupt", || (proxy.count(&at) > 0).then_some(()));
    running.interrupt(signal);
    gate.open();
    let output = running.wait();
    proxy.reset();
    output
}

#[test]
fn signal_finishes_the_step_and_prints_the_report() {
    for signal in ["INT", "TERM", "HUP"] {
        let vhost = Node::shared().vhost("signal");
        let proxy = Proxy::to(Node::shared());
        let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
        let at = puts().path(&format!("/{}/orders", vhost.name()));
        let stopped = interrupted(&topo, &proxy, at, signal, &[]).expect_code(4);
        let stopped = stopped
            .expect_text("stopping after the current step")
            .expect_text("  done          declare exchange orders\n")
            .expect_text("  not attempted declare queue a\n");
        stopped.expect_text("Interrupted: 1 of 5 steps done, 0 failed, 4 not attempted.");
        assert_eq!((vhost.names("exchanges"), vhost.names("queues")), (vec!["orders".to_owned()], Vec::new()));
        topo.run(["apply", "-y"]).expect_code(0);
    }
}

#[test]
fn signal_before_the_first_step_changes_nothing() {
    for signal in ["INT", "TERM", "HUP"] {
        let vhost = Node::shared().vhost("early");
        let proxy = Proxy::to(Node::shared());
        let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
        let stopped = interrupted(&topo, &proxy, puts().path("topo.lock"), signal, &["--format=json"]);
        assert_eq!(stopped.code, Some(130), "{stopped}");
        assert_eq!((vhost.names("exchanges"), vhost.names("queues")), (Vec::new(), Vec::new()), "no lock is left");
    }
}

#[test]
fn signal_ends_the_wait_for_a_lock() {
    let vhost = Node::shared().vhost("waits");
    let holder = [("x-topo-holder", crate::support::text("me@elsewhere")), ("x-expires", Argument::LongInt(600_000))];
    vhost.amqp().declare_queue("topo.lock", &holder).unwrap();
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    let running = topo.start(["apply", "-y", "--lock-timeout=5m"]);
    until("the second read of the lock", || (proxy.count(&gets().path("topo.lock")) > 1).then_some(()));
    let started = Instant::now();
    running.signal("INT");
    let stopped = running.wait();
    assert!(started.elapsed() < Duration::from_secs(60), "{stopped}");
    assert_eq!(stopped.code, Some(130), "{stopped}");
    assert_eq!(vhost.names("queues"), ["topo.lock"]);
}

/// Returns a spec with a queue to recreate, which has an unmanaged binding, and with a new queue.
fn to_recreate(vhost: &Vhost<'_>, proxy: &Proxy) -> Topo {
    let amqp = vhost.amqp();
    amqp.declare_queue("q", &[("x-max-length", Argument::LongInt(1))]).unwrap();
    amqp.bind_queue("amq.topic", "q", "theirs", NONE);
    Topo::new(vhost).through(proxy).spec(
        "queues:\n  q: {type: classic, maxLength: 2, onConflict: ifEmpty, bindings: [{exchange: amq.topic, routingKey: \
         mine}]}\nbindings: [{source: amq.topic, destination: amq.fanout, destinationType: exchange, routingKey: last}]\n",
    )
}

#[test]
fn signal_during_a_recreate_finishes_it() {
    let vhost = Node::shared().vhost("inside");
    let proxy = Proxy::to(Node::shared());
    let topo = to_recreate(&vhost, &proxy);
    let at = deletes().path("/q?");
    let stopped = interrupted(&topo, &proxy, at, "INT", &["--allow=routing-gap"]).expect_code(4);
    let stopped = stopped.expect_text("  done          bind amq.topic ─ theirs → q\n");
    stopped.expect_text("  not attempted bind amq.topic ─ last → amq.fanout\n");
    assert_eq!(vhost.queue("q")["arguments"]["x-max-length"], 2);
    assert_eq!((vhost.names("exchanges"), vhost.list("bindings").len()), (Vec::new(), 2));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(vhost.list("bindings").len(), 3);
}

#[test]
fn signal_before_the_deletion_rolls_back_the_preparations() {
    let vhost = Node::shared().vhost("before");
    let proxy = Proxy::to(Node::shared());
    let topo = to_recreate(&vhost, &proxy);
    let at = puts().path("q.topo.keep");
    let stopped = interrupted(&topo, &proxy, at, "TERM", &["--allow=routing-gap"]);
    assert_eq!(stopped.code, Some(130), "{stopped}");
    stopped.expect_text("  rolled back   declare exchange q.topo.keep\n");
    assert_eq!(vhost.queue("q")["arguments"]["x-max-length"], 1);
    assert_eq!((vhost.names("exchanges"), vhost.list("bindings").len()), (Vec::new(), 1));
}
