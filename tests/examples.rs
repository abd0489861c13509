//! Every example is valid, plans from empty, and its plan is the schema's.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::Topo;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn examples() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let mut specs: Vec<PathBuf> =
        folders.map(|folder| folder.join("topology.yaml")).filter(|spec| spec.exists()).collect();
    specs.sort();
    assert!(!specs.is_empty());
    specs
}

fn schema(name: &str) -> jsonschema::Validator {
    let text = std::fs::read_to_string(root().join("schema").join(name)).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

#[test]
fn every_example_plans_from_empty() {
    let plans = schema("plan.schema.json");
    for example in examples() {
        let path = example.to_str().unwrap();
        Topo::offline().run(["validate", path]).expect_code(0).expect_text("Valid.");
        let plan = Topo::offline().run(["plan", path, "--against", "empty", "--format", "json"]).expect_code(0);
        let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
        assert!(plan["summary"]["create"].as_u64().unwrap() > 0, "{path}");
        let errors: Vec<String> = plans.iter_errors(&plan).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{path}: {errors:?}");
    }
}
