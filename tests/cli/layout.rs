//! Tests the layout of plans at several widths.

use super::expect_file;
use crate::support::{Output, Topo};

const SPEC: &str = "\
version: 1
vhost: shop
queues:
  orders.work: {type: quorum, retry: {delays: [5s, 30s]}, deadLetter: orders.dead}
  orders.worked-off-slowly: {type: classic, messageTtl: 30s, deadLetter: none}
deadLetterQueues:
  orders.dead: {type: classic}
";

/// A broker on which the queue has a different TTL, and which has an obsolete tier.
const LIVE: &str = r#"{
  "vhosts": [{"name": "shop"}], "exchanges": [], "bindings": [], "policies": [],
  "queues": [
    {"name": "orders.worked-off-slowly", "vhost": "shop", "durable": true, "auto_delete": false,
     "arguments": {"x-queue-type": "classic", "x-message-ttl": 60000}},
    {"name": "orders.work.retry.1.5s", "vhost": "shop", "durable": true, "auto_delete": false,
     "arguments": {"x-queue-type": "quorum", "x-message-ttl": 5000, "x-dead-letter-exchange": "orders.work.return",
                   "x-dead-letter-routing-key": "orders.work.retry.1"}}
  ]
}"#;

fn plan(columns: usize, against: &str, more: &[&str]) -> Output {
    let topo = Topo::offline().env("COLUMNS", &columns.to_string()).spec(SPEC).file("live.json", LIVE);
    topo.run(["plan", "--against", against].into_iter().chain(more.iter().copied())).expect_code(0)
}

#[track_caller]
fn fits(output: &Output, columns: usize) {
    let wide = output.stdout.lines().find(|line| line.chars().count() > columns);
    assert_eq!(wide, None, "{columns} columns: {output}");
}

#[test]
fn generated_objects_are_listed_with_their_queue() {
    for columns in [80, 120] {
        let output = plan(columns, "empty", &["--show", "all"]);
        fits(&output, columns);
        expect_file(&output, &format!("plan-show-all-{columns}.txt"));
        // Lists the exchanges in the order in which a failed message passes them, each once.
        let suffixes = ["dlx", "retry", "retry.switch", "retry.over", "retry.first", "retry.first.switch"];
        let exchanges = suffixes.map(|it| format!("        + exchange orders.work.{it}\n"));
        let tiers = ["1.5s", "2.30s"].map(|it| format!("        + queue orders.work.retry.{it}\n"));
        let last = ["        + exchange orders.work.return\n".to_owned()];
        let family = exchanges.iter().chain(&tiers).chain(&last);
        let mut rest = output.stdout.split_once("  + queue orders.work ").expect("the queue").1;
        for member in family {
            assert_eq!(output.stdout.matches(member.trim_start()).count(), 1, "{member}: {output}");
            rest = rest.split_once(member.as_str()).unwrap_or_else(|| panic!("{member} is not in order: {output}")).1;
        }
    }
}

#[test]
fn sentences_wrap_between_words() {
    for columns in [80, 100, 120] {
        let conflict = plan(columns, "live.json", &["--target", "queues/shop/orders.worked-off-slowly"]);
        fits(&conflict, columns);
        let words = |output: &Output| output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let error = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'orders.worked-off-slowly' in vhost \
                     'shop': received '30000' but current is '60000'";
        assert!(words(&conflict).contains(error), "{conflict}");
        let noted = plan(columns, "live.json", &[]);
        let (_, note) = noted.stdout.split_once("\ninfo ").unwrap_or_else(|| panic!("no note: {noted}"));
        let note: Vec<&str> = note.lines().take_while(|line| !line.is_empty()).collect();
        assert!(note.iter().all(|line| line.chars().count() <= columns), "{noted}");
        let reported =
            "queues/shop/orders.work.retry.1.5s it was created without x-dead-letter-strategy and x-overflow";
        assert!(words(&noted).contains(reported), "{noted}");
    }
}

/// The short plan has one line per object, which begins with a symbol, so that a log is readable.
#[test]
fn short_plan_has_one_line_per_object() {
    let spec = "\
version: 1
vhost: shop
owns: ['*']
exchanges: {orders: {type: topic}}
queues:
  orders: {type: quorum, maxLength: 10, bindings: [{exchange: orders, routingKey: 'order.#'}], onConflict: discard}
  orders.mail: {type: classic, messageTtl: 30s}
  orders.new: {type: quorum, retry: {delays: [5s, 30s]}, deadLetter: orders.dead}
deadLetterQueues:
  orders.dead: {type: classic}
policies:
  limits: {pattern: '^orders.mail$', definition: {maxLength: 20}}
";
    let live = r#"{
  "vhosts": [{"name": "shop"}], "exchanges": [], "bindings": [],
  "policies": [{"name": "limits", "vhost": "shop", "pattern": "^orders.mail$", "apply-to": "all", "priority": 0,
                "definition": {"max-length": 10}}],
  "queues": [
    {"name": "orders", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "classic"}},
    {"name": "orders.mail", "vhost": "shop", "durable": true, "auto_delete": false,
     "arguments": {"x-queue-type": "classic", "x-message-ttl": 60000}},
    {"name": "orders.old", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "classic"}}
  ]
}"#;
    let topo = Topo::offline().spec(spec).file("live.json", live);
    let run = |more: &str| topo.run(format!("plan --against live.json {more}").split_whitespace()).expect_code(0);
    for (name, more) in [("plan-short.txt", "--short --prune"), ("plan-short-all.txt", "--short --prune --show all")] {
        let output = run(more);
        expect_file(&output, name);
    }
    let output = run("--short");
    output
        .expect_text("unmanaged objects that match `owns`: 1 (kept; --prune deletes them)")
        .expect_no_text("orders.old");
    // The complete plan has the same summary. Additional files contain the complete plan.
    let output = run("--short --also text=whole.txt --also markdown=plan.md");
    let summary = output.stdout.lines().find(|line| line.starts_with("Plan: ")).unwrap_or_else(|| panic!("{output}"));
    assert!(topo.read("whole.txt").contains(summary) && topo.read("whole.txt").contains("applications that"));
    assert!(topo.read("plan.md").contains("### topo plan"));
    let refused = topo.run(["plan", "--against", "live.json", "--short", "--format", "json"]).expect_code(64);
    refused.expect_no_result().expect_error("--short cannot be used with --format json");
    let same = Topo::offline().spec("owns: []\n").env("TOPO_SHORT", "1").run(["plan", "--against", "empty"]);
    same.expect_code(0).expect_text("  + vhost /\nPlan: ");
    let several = Topo::offline()
        .file("a.yaml", "version: 1\nvhost: a\nqueues: {q: {type: classic}}\n")
        .file("b.yaml", "version: 1\nvhost: b\nqueues: {q: {type: classic}}\n");
    let output = several.run(["plan", "--short", "--against", "empty", "a.yaml", "b.yaml"]).expect_code(0);
    output.expect_text("vhost a\n  + vhost a\n  + queue q\nvhost b\n  + vhost b\n  + queue q\nPlan: ");
}

/// Headings and details of an object wrap between their parts, or between words if a part is too long.
#[test]
fn plans_and_headings_fit_60_columns() {
    for columns in [60, 80] {
        let output = plan(columns, "live.json", &[]);
        // topo does not wrap commands and YAML, because users copy them.
        let is_copied = |line: &str| line.contains("--recreate ") || line.contains(" pattern: ");
        let wide = output.stdout.lines().find(|line| line.chars().count() > columns && !is_copied(line));
        assert_eq!(wide, None, "{columns} columns: {output}");
        let heading: Vec<&str> = output.stdout.lines().take_while(|line| !line.is_empty()).collect();
        assert_eq!(heading.join(" ").replace(" · ", " "), {
            "vhost shop no broker: compared with live.json, assuming RabbitMQ 4.3.6 spec topology.yaml"
        });
        let topo = Topo::offline().env("COLUMNS", &columns.to_string()).spec(SPEC);
        for command in [&["explain", "orders.work"][..], &["contract"], &["validate"]] {
            let output = topo.run(command.iter().copied()).expect_code(0);
            let heading = output.stdout.lines().take_while(|line| !line.is_empty());
            let wide = heading.clone().find(|line| line.chars().count() > columns);
            assert_eq!(wide, None, "{columns} columns: {output}");
            assert!(heading.count() >= 1);
        }
    }
}
