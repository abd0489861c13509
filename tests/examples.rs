//! Tests that every example has only the intended findings, can be planned against an empty broker, and has the
//! contract in its folder. `live::examples` applies the examples.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Topo, valid_contract};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the folders in `examples` with their specs.
pub(crate) fn examples() -> Vec<(PathBuf, String)> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The folder `library` contains a program, which `live::library` runs. The folder `whole-broker` contains several specs,
    // which `live::whole_broker` applies.
    folders.retain(|folder| !folder.ends_with("library") && !folder.ends_with("whole-broker"));
    folders.sort();
    assert!(folders.len() >= 7, "{folders:?}");
    let spec = |folder: PathBuf| {
        let path = folder.join("topology.yaml");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (folder, text)
    };
    folders.into_iter().map(spec).collect()
}

fn schema(name: &str) -> jsonschema::Validator {
    let text = std::fs::read_to_string(root().join("schema").join(name)).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// Returns the intended findings of an example for a version. A comment in the spec explains each finding.
fn meant(example: &str, version: &str) -> Vec<&'static str> {
    let is_old = matches!(version, "3.8" | "3.10");
    let count = match (example, is_old) {
        // The queue in the article is classic, and a classic queue does not count crashes.
        ("event-horizon", _) => 1,
        // Quorum queues have a default delivery limit since 4.0.
        ("backoff" | "retry-ladder", true) => 1,
        ("criticality", true) => 4,
        (_, _) => 0,
    };
    vec!["info crash-loop-not-counted"; count]
}

#[test]
fn every_example_plans_from_empty() {
    let plans = schema("plan.schema.json");
    for (folder, text) in examples() {
        let path = folder.display();
        let topo = Topo::offline().file("topology.yaml", &text);
        let example = folder.file_name().unwrap().to_string_lossy();
        for version in ["3.8", "3.10", "4.0", "4.3"] {
            let validate = ["validate", "--format", "json", "--broker-version", version];
            let found = topo.run(validate).expect_code(0).json();
            let word = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
            let found = found["diagnostics"].as_array().unwrap().iter();
            let found: Vec<String> = found.map(|it| format!("{} {}", word(it, "severity"), word(it, "code"))).collect();
            assert_eq!(found, meant(&example, version), "{path} on {version}");
            assert!(
                found.is_empty() || text.contains("crash-loop-not-counted"),
                "{path}: no comment about its findings"
            );
            let against = ["plan", "--against", "empty", "--broker-version", version, "--format", "json"];
            let plan = topo.run(against).expect_code(0).json();
            assert!(plan["summary"]["create"].as_u64().unwrap() > 0, "{path}");
            let errors: Vec<String> = plans.iter_errors(&plan).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{path}: {errors:?}");
        }
    }
}

/// Runs the test file of each example, for each version.
#[test]
fn test_files_of_examples_pass() {
    for (folder, text) in examples() {
        let tests = std::fs::read_to_string(folder.join("topology.test.yaml"))
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let topo = Topo::offline().file("topology.yaml", &text).file("topology.test.yaml", &tests);
        for version in ["3.8", "3.10", "4.0", "4.3"] {
            let result = topo.run(["test", "--broker-version", version, "--format", "json"]).expect_code(0).json();
            assert!(result["passed"].as_u64() > Some(0) && result["failed"] == 0, "{}: {result}", folder.display());
        }
    }
}

/// Checks the file `contract.txt` of each example. `TOPO_UPDATE=1` rewrites the files.
#[test]
fn examples_have_the_current_contract() {
    for (folder, text) in examples() {
        let topo = Topo::offline().file("topology.yaml", &text);
        let printed = topo.run(["contract"]).expect_code(0).stdout;
        let file = folder.join("contract.txt");
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&file, &printed).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(expected == printed, "{} is old: run the tests with TOPO_UPDATE=1\n{printed}", file.display());
        for columns in [80, 120] {
            let narrow =
                Topo::offline().env("COLUMNS", &columns.to_string()).file("topology.yaml", &text).run(["contract"]);
            let long = narrow.stdout.lines().find(|line| line.chars().count() > columns);
            assert_eq!(long, None, "{} at {columns}", folder.display());
        }
        let document: Value = topo.run(["contract", "--format", "json"]).expect_code(0).json();
        valid_contract(&document);
    }
}

/// The numbers of deliveries match the numbers in the articles.
#[test]
fn examples_match_their_articles() {
    let of = |name: &str, queue: &str| {
        let text = std::fs::read_to_string(root().join("examples").join(name).join("topology.yaml")).unwrap();
        let contract =
            Topo::offline().file("topology.yaml", &text).run(["contract", "--format", "json"]).expect_code(0).json();
        let vhosts = contract["vhosts"].as_object().unwrap();
        let contract = &vhosts.values().next().unwrap()["queues"][queue];
        let delays = contract["delays"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap().to_owned());
        let delays: Vec<String> = delays.collect();
        (contract["strategy"].as_str().unwrap().to_owned(), contract["deliveries"].as_u64().unwrap(), delays.join(" "))
    };
    let expect = |name: &str, queue: &str, strategy: &str, deliveries: u64, delays: &str| {
        assert_eq!(of(name, queue), (strategy.to_owned(), deliveries, delays.to_owned()), "{name} {queue}");
    };
    expect("event-horizon", "events.work", "republish", 3, "");
    expect("poison-quarantine", "jobs.main", "redeliver", 3, "");
    expect("all-dead-letters", "users.events", "redeliver", 2, "");
    expect("retry-ladder", "orders.process", "ladder", 4, "5s 30s 5m");
    expect("backoff", "orders.process", "republish", 6, "2s 4s 8s 16s 32s");
    expect("criticality", "payments.process", "ladder", 6, "2s 4s 8s 16s 32s");
    expect("criticality", "orders.fulfil", "ladder", 4, "5s 40s 5m");
    expect("criticality", "email.send", "ladder", 4, "30s 30s 30s");
    expect("criticality", "analytics.ingest", "redeliver", 2, "");
    expect("criticality", "audit.log", "ladder", 11, "1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 8m32s");
}

#[test]
fn snapshots_of_examples_cover_their_routing() {
    for (folder, spec) in examples() {
        for version in ["3.8", "3.10", "4.0", "4.3"] {
            let topo = Topo::offline().file("topology.yaml", &spec);
            topo.run(["test", "--init", "--broker-version", version]).expect_code(0);
            let covered = topo.run(["test", "--fail-under", "100", "--broker-version", version]);
            assert_eq!(covered.code, Some(0), "{}, {version}: {covered}", folder.display());
        }
    }
}

/// Copies the specs of `examples/whole-broker` to the folder of a program.
pub(crate) fn copy_whole_broker(topo: &Topo) {
    for entry in std::fs::read_dir(root().join("examples/whole-broker")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        topo.write(name.to_str().unwrap(), &std::fs::read_to_string(entry.path()).unwrap());
    }
}

/// All environments of the example are valid, and their plans have different fingerprints.
#[test]
fn whole_broker_is_valid_in_all_environments() {
    let topo = Topo::offline();
    copy_whole_broker(&topo);
    for version in ["3.10", "4.0", "4.3"] {
        let valid = topo.run(["validate", ".", "--broker-version", version, "--fail-on=warning"]).expect_code(0);
        assert_eq!(valid.stderr.matches("warning").count(), 0, "{valid}");
    }
    let plan = |environment: &str| {
        let environment = format!("--env={environment}");
        let plan = topo.run(["plan", ".", "--against=empty", "--format=json", &environment]).expect_code(0).json();
        assert_eq!(plan["summary"]["blocked"].as_u64().unwrap_or_default(), 0, "{plan}");
        plan
    };
    let (staging, prod) = (plan("staging"), plan("prod"));
    assert_ne!(staging["fingerprint"], prod["fingerprint"]);
    assert_eq!(
        (&staging["options"]["environment"], &prod["options"]["environment"]),
        (&"staging".into(), &"prod".into())
    );
    let addresses = |plan: &Value| {
        let part = |part: &Value| {
            part["changes"].as_array().unwrap().iter().map(|it| it["address"].clone()).collect::<Vec<_>>()
        };
        plan["vhosts"].as_array().unwrap().iter().flat_map(part).collect::<Vec<_>>()
    };
    assert_eq!(addresses(&staging), addresses(&prod));
    assert!(addresses(&prod).contains(&"shovels/shop/orders-returned".into()));
}
