//! Tests `topo explain`: the lifecycle of a message word for word, and the pages of rules, hazards, keys and terms.

use super::expect_file;
use crate::support::{Output, Topo};

const SPEC: &str = "\
version: 1
vhost: shop
retryPolicies:
  slow: {delays: [5s, 30s]}
exchanges: {orders: {type: topic}}
queues:
  orders.work:
    type: quorum
    messageTtl: 1h
    retry: slow
    deadLetter: orders.dead
    bindings: [{exchange: orders, routingKey: \"order.#\"}]
  jobs: {type: quorum, maxRetries: 2}
  theirs: {external: true}
  lazy-mode: {type: classic}
deadLetterQueues:
  orders.dead: {type: classic}
";

fn at(columns: &str, arguments: &[&str]) -> Output {
    let topo = Topo::offline().env("COLUMNS", columns).spec(SPEC);
    topo.run(["explain"].into_iter().chain(arguments.iter().copied()))
}

#[test]
fn ladder_lifecycle_fits_80_columns() {
    let output = at("80", &["orders.work"]).expect_code(0);
    assert_eq!(output.stderr, "");
    expect_file(&output, "explain-ladder-80.txt");
}

#[test]
fn redeliver_lifecycle_fits_120_columns() {
    let output = at("120", &["jobs", "--broker-version", "4.0"]).expect_code(0);
    expect_file(&output, "explain-redeliver-120.txt");
}

#[test]
fn dead_letter_queue_lists_its_sources() {
    let output = at("80", &["orders.dead", "topology.yaml"]).expect_code(0);
    expect_file(&output, "explain-dead-letters-80.txt");
}

#[test]
fn tier_names_its_queue() {
    let output = at("80", &["orders.work.retry.2.30s", "-f", "topology.yaml"]).expect_code(0);
    expect_file(&output, "explain-tier-80.txt");
    let old = at("80", &["orders.work.retry.2.1m"]).expect_code(0);
    old.expect_text("The current spec does not generate this tier");
}

/// The suggested command repeats the specs and flags.
#[test]
fn suggested_commands_run() {
    let topo = Topo::offline().file("elsewhere.yaml", &SPEC.replace("5s, 30s", "\"${FIRST}\", 30s"));
    let typed = ["-f", "elsewhere.yaml", "--var", "FIRST=5s", "--broker-version", "4.0"];
    for name in ["orders.dead", "orders.work.retry.2.30s"] {
        let output = topo.run(["explain", name].into_iter().chain(typed)).expect_code(0);
        let line = output.stdout.lines().find(|line| line.starts_with("  topo explain "));
        let line = line.unwrap_or_else(|| panic!("{output}")).trim_start_matches("  topo ");
        let pasted = topo.run(line.split(' ')).expect_code(0);
        pasted.expect_text("orders.work · quorum queue").expect_text("RabbitMQ 4.0 (set by --broker-version)");
    }
    at("80", &["orders.dead"]).expect_text("\n  topo explain orders.work\n");
}

#[test]
fn heading_names_the_version_and_its_origin() {
    for name in ["jobs", "orders.dead", "orders.work.retry.2.30s"] {
        let heading = |output: Output| {
            let output = output.expect_code(0);
            output.stdout.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
        };
        let assumed = heading(at("120", &[name]));
        assert!(assumed.contains("RabbitMQ 4.3 (the newest known; override with --broker-version)"), "{assumed}");
        let reported = heading(at("120", &[name, "--broker-version", "3.13"]));
        assert!(reported.contains("RabbitMQ 3.13 (set by --broker-version)"), "{reported}");
    }
}

#[test]
fn output_fits_the_width() {
    for columns in [80, 120] {
        for queue in ["orders.work", "jobs", "orders.dead", "lazy-mode", "orders.work.retry.1.5s"] {
            let output = at(&columns.to_string(), &[queue, "-f", "topology.yaml"]).expect_code(0);
            assert!(output.stdout.lines().all(|line| line.chars().count() <= columns), "{output}");
            assert!(!output.stdout.contains('\u{1b}'), "{output}");
        }
    }
    let colored = at("80", &["jobs", "--color", "always"]).expect_code(0);
    assert!(colored.stdout.contains('\u{1b}'), "{colored}");
}

#[test]
fn unknown_names_are_reported() {
    let unknown = at("80", &["orders.wrok"]).expect_code(64).expect_no_result();
    unknown.expect_error("declares no queue `orders.wrok`").expect_text("did you mean `orders.work`?");
    at("80", &["theirs"]).expect_code(64).expect_no_result().expect_error("queue `theirs` is external");
    Topo::offline().run(["explain", "orders"]).expect_code(64).expect_error("no lint rule, hazard, key, error or term");
    Topo::offline().run(["explain"]).expect_code(64).expect_text("QUEUE|RULE|HAZARD|KEY");
}

#[test]
fn rule_page_needs_no_spec() {
    let page = Topo::offline().run(["explain", "transient-queue"]).expect_code(0);
    assert!(page.stdout.starts_with("# transient-queue"), "{page}");
    // If a queue has the name of a rule, an explicit spec selects the queue.
    assert!(at("80", &["lazy-mode"]).expect_code(0).stdout.starts_with("# lazy-mode"));
    at("80", &["lazy-mode", "-f", "topology.yaml"]).expect_code(0).expect_text("lazy-mode · classic queue");
    at("80", &["transient-queue", "-f", "topology.yaml"]).expect_code(0).expect_text("# transient-queue");
    let json = Topo::offline().run(["explain", "transient-queue", "--format", "json"]).expect_code(0).json();
    assert_eq!(json["explanations"][0]["kind"], "rule");
}

#[test]
fn hazards_and_keys_have_pages() {
    let page = |what: &str| Topo::offline().run(["explain", what]).expect_code(0).stdout;
    for hazard in ["message-loss", "message-drop", "routing-gap", "mass-delete", "reorder"] {
        assert!(page(hazard).starts_with(&format!("# {hazard}\n")), "{hazard}");
        assert!(page(hazard).contains(&format!("--allow {hazard}@ADDRESS")), "{hazard}");
    }
    assert!(page("maxRetries").contains("a retry policy, a queue: The number of"), "{}", page("maxRetries"));
    assert!(page("overflow").contains("A policy can set it with\n`overflow`"), "{}", page("overflow"));
    let json = |what: &str| Topo::offline().run(["explain", what, "--format", "json"]).expect_code(0).json();
    assert_eq!(
        (&json("reorder")["explanations"][0]["kind"], &json("reorder")["explanations"][0]["hazard"]),
        (&"hazard".into(), &"reorder".into())
    );
    assert_eq!(json("delays")["explanations"][0]["key"], "delays");
    at("80", &["messageTTL"]).expect_code(64).expect_text("did you mean `messageTtl`?");
}

#[test]
fn json_contains_the_explanation() {
    let json = at("80", &["orders.work", "--format", "json"]).expect_code(0).json();
    assert_eq!(json["formatVersion"], 1);
    let explanation = &json["explanations"][0];
    assert_eq!((&explanation["kind"], &explanation["queue"]), (&"queue".into(), &"orders.work".into()));
    assert_eq!(explanation["steps"][0]["state"]["waysIn"][0], "orders with order.#");
    assert_eq!(explanation["steps"][1]["state"]["name"], "attempt");
    assert_eq!(explanation["contract"]["deliveries"], 3);
    assert_eq!(explanation["deadLetteredMessage"]["xDeath"][0]["count"], 3);
    let tier = at("80", &["orders.work.retry.1.5s", "--format", "json"]).expect_code(0).json();
    assert_eq!(
        (&tier["explanations"][0]["kind"], &tier["explanations"][0]["isGenerated"]),
        (&"tier".into(), &true.into())
    );
}

/// `topo explain` finds a page by the name of a key in RabbitMQ or in a spec, or by a similar name. It needs no spec.
#[test]
fn pages_need_no_spec() {
    let explain = |what: &str| Topo::offline().env("COLUMNS", "80").run(["explain", what]);
    for what in ["message-ttl", "x-message-ttl", "messageTtl", "queues.NAME.messageTtl"] {
        explain(what).expect_code(0).expect_text("# messageTtl\n");
    }
    explain("wrong-type").expect_code(0).expect_text("A value has the wrong type");
    explain("unbond-queue")
        .expect_code(64)
        .expect_text("did you mean `unbound-queue`?")
        .expect_text("topo explain unbond-queue FILE");
    explain("zzz").expect_code(64).expect_no_text("did you mean");
    for page in ["unbound-queue", "messageTtl", "wrong-type"] {
        let output = explain(page);
        let mut is_code = false;
        for line in output.stdout.lines() {
            is_code ^= line.starts_with("```");
            assert!(is_code || line.chars().count() <= 80, "{page}: {line}");
        }
    }
}

#[test]
fn words_of_plans_and_reports_have_entries() {
    let topo = Topo::offline();
    for (word, expected) in [
        ("migrate", "returns all messages, oldest first"),
        ("406", "PRECONDITION_FAILED"),
        ("rolled back", "reverted"),
        ("IFEMPTY", "# ifEmpty"),
        ("tier", "# tier"),
        ("retry ladder", "# ladder"),
        ("lease", "topo lock --break"),
    ] {
        topo.run(["explain", word]).expect_code(0).expect_text(expected).expect_text("See also: ");
    }
    let json = topo.run(["explain", "drift", "--format", "json"]).expect_code(0).json();
    assert_eq!((&json["explanations"][0]["kind"], &json["explanations"][0]["word"]), (&"word".into(), &"drift".into()));
    topo.run(["explain", "migrat"]).expect_code(64).expect_text("did you mean `migrate`?");
    // A word that is both a term and an error code has two entries.
    let both = topo.run(["explain", "undeclared"]).expect_code(0).expect_text("that it does not declare");
    both.expect_text("In plans and reports: An object on the broker");
}

/// A page takes precedence over a queue of the default spec, and mentions this queue. An explicit spec selects the
/// queue.
#[test]
fn queue_with_the_name_of_a_term_is_mentioned() {
    let topo =
        Topo::offline().spec("version: 1\nvhost: shop\nqueues: {lock: {type: classic}, jobs: {type: classic}}\n");
    let page = topo.run(["explain", "lock"]).expect_code(0).expect_text("# lock");
    let page =
        page.expect_text("info: the spec also declares a queue `lock`; to explain it: topo explain lock topology.yaml");
    assert!(page.stderr.contains("info: "), "{page}");
    topo.run(["explain", "lock", "topology.yaml"]).expect_code(0).expect_text("lock · classic queue");
    topo.run(["explain", "drift"]).expect_code(0).expect_no_text("info:");
    topo.rewrite("queues: [\n");
    assert_eq!(topo.run(["explain", "lock"]).expect_code(0).stderr, "");
}
