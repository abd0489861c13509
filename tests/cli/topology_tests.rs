//! Tests `topo test` with the real binary.

use serde_json::Value;

use crate::support::Topo;

const SPEC: &str = "version: 1
vhost: shop
exchanges: {orders: {type: topic}}
queues:
  work: {type: quorum, deadLetter: dead, retry: {delays: [5s]}, bindings: [{exchange: orders, routingKey: 'order.#'}]}
deadLetterQueues: {dead: {type: quorum}}
";

const TESTS: &str = "version: 1
tests:
  routed: {publish: {exchange: orders, routingKey: order.paid}, to: [work]}
  retried:
    publish: {queue: work}
    workers: {work: fail}
    attempts: {work: 3}
";

fn topo() -> Topo {
    Topo::offline().file("topology.yaml", SPEC).file("topology.test.yaml", TESTS)
}

#[test]
fn failures_are_shown_with_their_positions() {
    let output = topo().run(["test"]).expect_code(1);
    let output = output.expect_text("  pass routed\n").expect_text("attempts in work: expected 3, got 2");
    let output = output.expect_text("topology.test.yaml:4").expect_text("topology.yaml:5");
    let output = output.expect_text("5s      work: attempt 2, fail").expect_text("ends: rejected in dead");
    output.expect_text("2 cases: 1 passed, 1 failed");
    topo().run(["test", "--run", "routed"]).expect_code(0).expect_text("1 case: 1 passed");
    // With --quiet, files without failures are not listed.
    let quiet = topo().run(["test", "--run", "routed", "--quiet"]).expect_code(0);
    assert_eq!(quiet.stdout, "1 case: 1 passed\n");
}

#[test]
fn results_are_written_in_each_format() {
    let topo = topo();
    let flags = ["test", "--format", "json", "--also", "junit=results.xml", "--also", "text=results.txt"];
    let document = topo.run(flags).expect_code(1).test_results();
    assert_eq!((&document["passed"], &document["failed"]), (&1.into(), &1.into()), "{document}");
    let failed = &document["cases"][1];
    assert_eq!((&failed["result"], &failed["mismatches"][0]["expected"]), (&"failed".into(), &Value::from("3")));
    assert_eq!(failed["source"], serde_json::json!({"file": "topology.test.yaml", "line": 4}));
    let junit = topo.read("results.xml");
    assert!(junit.contains("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{junit}");
    assert!(junit.contains("<failure message=\"attempts in work: expected 3, got 2\">"), "{junit}");
    assert!(topo.read("results.txt").contains("2 cases: 1 passed, 1 failed"));
    let annotated = topo.run(["test", "--format", "github"]).expect_code(1);
    annotated.expect_text("::error file=topology.test.yaml,line=4,col=3,title=topo test::retried (RabbitMQ ");
    topo.run(["test", "--also", "pdf=x"]).expect_code(64).expect_error("expected FORMAT=FILE");
}

#[test]
fn versions_come_from_the_file_or_the_flag() {
    let tests =
        "version: 1\nbrokers: ['3.10', '4.3']\ntests:\n  it: {publish: {queue: work}, never: [dead], only: '>= 4.0'}\n";
    let topo = Topo::offline().file("topology.yaml", SPEC).file("topology.test.yaml", tests);
    let results = topo.run(["test", "--format", "json"]).expect_code(0).test_results();
    assert_eq!((&results["passed"], &results["skipped"]), (&1.into(), &1.into()), "{results}");
    topo.run(["test", "--broker-version", "3.8"]).expect_code(0).expect_text("  skip it\n1 case: 1 skipped");
}

#[test]
fn test_files_and_their_specs_are_found() {
    let nested = TESTS.replacen("version: 1", "version: 1\nspec: ../topology.yaml", 1);
    let topo = Topo::offline().file("topology.yaml", SPEC).file("tests/routes.test.yaml", &nested);
    topo.run(["test"]).expect_code(1).expect_text("tests/routes.test.yaml · spec tests/../topology.yaml · vhost shop");
    topo.run(["test", "tests"]).expect_code(1);
    topo.run(["test", "tests/routes.test.yaml"]).expect_code(1);
    let none = Topo::offline().file("topology.yaml", SPEC);
    none.run(["test"]).expect_code(64).expect_error("no test cases found").expect_text("topology.test.yaml");
    let other = Topo::offline().file("orders.test.yaml", TESTS);
    other.run(["test"]).expect_code(65).expect_error("no spec found for orders.test.yaml");
    topo.run(["test", "missing.test.yaml"]).expect_code(65).expect_error("missing.test.yaml");
    // A folder of specs can contain test files.
    let folder = Topo::offline().file("topology/a.yaml", SPEC).file("topology/a.test.yaml", TESTS);
    folder.run(["validate", "topology"]).expect_code(0);
}

#[test]
fn errors_in_test_files_show_positions() {
    let run = |tests: &str| {
        let tests = format!("version: 1\n{tests}\n");
        Topo::offline().file("topology.yaml", SPEC).file("topology.test.yaml", &tests).run(["test"]).expect_code(65)
    };
    let output = run("tests:\n  it: {publish: {queue: wrok}, to: [work]}");
    output.expect_text("topology.test.yaml:3:25").expect_text("did you mean `work`?");
    run("tests:\n  it: {publish: {queue: work}, workers: {work: nak}, to: [work]}").expect_text("did you mean `nack`?");
    run("tests:\n  it: {publish: {queue: work}}").expect_text("this case cannot fail");
    run("tests: [").expect_text("topology.test.yaml:2");
    let two = format!("{SPEC}---\n{}", SPEC.replace("vhost: shop", "vhost: other"));
    let topo = Topo::offline().file("topology.yaml", &two).file("topology.test.yaml", TESTS);
    topo.run(["test"]).expect_code(65).expect_error("declare 2 vhosts").expect_text("add `vhost:` to the test file");
}

/// A broken file does not stop the others.
#[test]
fn invalid_file_does_not_stop_other_files() {
    let topo =
        topo().file("broken.test.yaml", "version: 1\nspec: topology.yaml\ntests:\n  it: {publish: {queue: work}}\n");
    let output = topo.run(["test"]).expect_code(65);
    output.expect_text("this case cannot fail").expect_text("2 cases: 1 passed, 1 failed");
    let annotated = topo.run(["test", "--format", "github"]).expect_code(65);
    annotated
        .expect_text("::error file=broken.test.yaml,line=4,")
        .expect_text("::error file=topology.test.yaml,line=4,");
}

#[test]
fn schema_of_results_is_printed() {
    let schema = Topo::offline().run(["schema", "--kind", "test-results"]).expect_code(0).json();
    assert_eq!(schema["title"], "topo test");
}

/// The schema accepts every test file of the examples, and refuses mistakes.
#[test]
fn schema_accepts_test_files() {
    let schema = Topo::offline().run(["schema", "--kind", "test"]).expect_code(0).json();
    let validator = jsonschema::draft7::new(&schema).unwrap();
    for (folder, _) in crate::examples::examples() {
        let text = std::fs::read_to_string(folder.join("topology.test.yaml")).unwrap();
        let document: Value = serde_yaml::from_str(&text).unwrap();
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", folder.display());
    }
    for invalid in [
        "{version: 1, tests: {it: {publish: {queue: q}, workers: {q: nak}, to: [q]}}}",
        "{version: 1, tests: {it: {publish: {queue: q}, ends: {q: gone}}}}",
        "{version: 1, tests: {it: {publish: {queue: q}, attempts: {q: many}}}}",
        "{version: 1, tests: {it: {routes: {a: [q]}}}}",
        "{version: 1, test: {}}",
    ] {
        let document: Value = serde_yaml::from_str(invalid).unwrap();
        assert!(!validator.is_valid(&document), "{invalid}");
    }
}

#[test]
fn coverage_lists_uncovered_elements() {
    let topo = topo();
    // The case that fails covers nothing.
    let output = topo.run(["test", "--coverage"]).expect_code(1);
    let output = output.expect_text("Coverage of topology.yaml · vhost shop: 1 of ").expect_text(" routing elements (");
    output.expect_text("dead-lettering from work (rejected): no case exercises it");
    topo.run(["test", "--run", "routed", "--fail-under", "90%"])
        .expect_code(1)
        .expect_error("the coverage of topology.yaml is ")
        .expect_text("topo test --init");
    topo.run(["test", "--run", "routed", "--fail-under", "1"]).expect_code(0);
    topo.run(["test", "--fail-under", "101"]).expect_code(64).expect_error("expected a number from 0 to 100");
    let flags =
        ["test", "--coverage", "--format", "json", "--also", "junit=results.xml", "--also", "markdown=results.md"];
    let coverage = topo.run(flags).expect_code(1).test_results()["coverage"][0].clone();
    let parts = coverage["elements"].as_array().unwrap();
    let of = |state: &str| parts.iter().filter(|part| part["state"] == state).count();
    assert_eq!((&coverage["covered"], of("covered")), (&1.into(), 1), "{coverage}");
    let binding = parts.iter().find(|part| part["state"] == "covered").unwrap();
    assert_eq!((&binding["binding"]["routing_key"], &binding["cases"][0]), (&"order.#".into(), &"routed".into()));
    let junit = topo.read("results.xml");
    assert!(junit.contains("<testsuite name=\"coverage, topology.yaml\""), "{junit}");
    assert!(topo.read("results.md").contains("**Coverage of topology.yaml · vhost shop: 1 of "));
    topo.run(["test", "--coverage", "--format", "github"]).expect_code(1).expect_text(
        "::notice file=topology.yaml,line=5,col=3,title=topo test%3A not covered::dead-lettering from work",
    );
}

#[test]
fn snapshots_record_the_routing() {
    let topo = Topo::offline().file("topology.yaml", SPEC);
    topo.run(["test", "--update"]).expect_code(64).expect_error("no snapshot found").expect_text("topo test --init");
    topo.run(["test", "--init"]).expect_code(0).expect_text("Wrote topology.routes.test.yaml: 7 cases.");
    topo.run(["test", "--init", "topology.yaml"])
        .expect_code(64)
        .expect_error("topology.routes.test.yaml already exists");
    topo.run(["test", "--fail-under", "100"]).expect_code(0).expect_text("routing elements (100%)");
    topo.run(["test", "--update"]).expect_code(0).expect_text("topology.routes.test.yaml is up to date.");
    let changed = SPEC.replace("order.#", "invoice.#");
    let topo = topo.file("topology.yaml", &changed);
    topo.run(["test"])
        .expect_code(1)
        .expect_text("to: expected work, got no queue")
        .expect_text("no binding of orders");
    let updated = topo.run(["test", "--update"]).expect_code(0);
    updated
        .expect_text("-      order.x.x: [work]\n+      invoice: [work]\n")
        .expect_text("Updated topology.routes.test.yaml");
    topo.run(["test"]).expect_code(0);
    // A test file without `snapshot: true` is never changed.
    let topo = topo.file("topology.test.yaml", TESTS);
    let before = topo.read("topology.test.yaml");
    topo.run(["test", "--update"]).expect_code(0);
    assert_eq!(topo.read("topology.test.yaml"), before);
}

#[test]
fn snapshots_require_a_vhost_if_specs_declare_several() {
    let other = "version: 1\nvhost: other\nqueues: {q: {type: classic, deadLetter: none}}\n";
    let spec = format!("{SPEC}---\n{other}");
    let topo = Topo::offline().file("topology.yaml", &spec);
    topo.run(["test", "--init"])
        .expect_code(64)
        .expect_error("the specs declare 2 vhosts")
        .expect_text("--vhost: other, shop");
    topo.run(["test", "--init", "--vhost", "shop"]).expect_code(0);
    assert!(topo.read("topology.shop.routes.test.yaml").contains("\nvhost: shop\n"));
    topo.run(["test", "--update"]).expect_code(0).expect_text("is up to date");
    topo.run(["test"]).expect_code(0);
    let none = Topo::offline();
    none.run(["test", "--init"]).expect_code(64).expect_error("no spec found");
    none.run(["test", "--init", "-"])
        .expect_code(64)
        .expect_error("cannot write a snapshot for a spec from standard input");
}

#[test]
fn pattern_as_published_routing_key_is_a_warning() {
    let tests = "version: 1\ntests: {it: {publish: {exchange: orders, routingKey: 'order.*'}, to: [work]}}\n";
    let topo = Topo::offline().file("topology.yaml", SPEC).file("topology.test.yaml", tests);
    let output = topo.run(["test"]).expect_code(0);
    output.expect_text("warning[pattern-published]").expect_text("the routing key `order.*` of a published message");
}

#[test]
fn snapshots_keep_their_versions() {
    let topo = Topo::offline().file("topology.yaml", SPEC);
    let versions = ["--broker-version", "3.10", "--broker-version", "4.3"];
    topo.run([&["test", "--init"], &versions[..]].concat()).expect_code(0);
    let text = topo.read("topology.routes.test.yaml");
    assert!(text.contains("brokers:\n  - \"3.10."), "{text}");
    // Before 4.0, quorum queues have no delivery limit.
    assert!(text.contains("attempts: {work: 21}\n") && text.contains("only: \">= 4.3."), "{text}");
    topo.run(["test"]).expect_code(0).expect_text("skip");
    topo.run(["test", "--update"]).expect_code(0).expect_text("is up to date");
    topo.run(["test", "--run", "absent"]).expect_code(64).expect_error("no case name contains `absent`");
}

#[test]
fn snapshots_of_folders_are_written_beside_them() {
    let topo = Topo::offline().file("topology/shop.yaml", SPEC);
    topo.run(["test", "--init"]).expect_code(0).expect_text("Wrote topology.routes.test.yaml");
    assert!(topo.read("topology.routes.test.yaml").contains("spec: topology\n"));
    topo.run(["test"]).expect_code(0);
    let cluster = Topo::offline().file("topology.yaml", "version: 1\ncluster: {}\n");
    cluster.run(["test", "--init"]).expect_code(64).expect_error("the specs declare no vhost");
    let alone = "version: 1\nvhost: shop\nqueues: {alone: {type: classic, deadLetter: none}}\n";
    let unrouted = Topo::offline().file("topology.yaml", alone);
    unrouted.run(["test", "--init"]).expect_code(64).expect_error("the specs contain no routing to record");
}
