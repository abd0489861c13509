//! Validates JSON documents of topo against the committed schemas.

use std::sync::LazyLock;

use serde_json::Value;

/// Fails unless the document matches `schema/plan.schema.json`.
#[track_caller]
pub(crate) fn valid_plan(plan: &Value) {
    static SCHEMA: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| validator(include_str!("../../schema/plan.schema.json")));
    valid(&SCHEMA, plan);
}

/// Fails unless the document matches `schema/contract.schema.json`.
#[track_caller]
pub(crate) fn valid_contract(contract: &Value) {
    static SCHEMA: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| validator(include_str!("../../schema/contract.schema.json")));
    valid(&SCHEMA, contract);
}

/// Fails unless the document matches `schema/status.schema.json`.
#[track_caller]
pub(crate) fn valid_status(status: &Value) {
    static SCHEMA: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| validator(include_str!("../../schema/status.schema.json")));
    valid(&SCHEMA, status);
}

/// Fails unless the document matches `schema/test-results.schema.json`.
#[track_caller]
pub(crate) fn valid_test_results(results: &Value) {
    static SCHEMA: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| validator(include_str!("../../schema/test-results.schema.json")));
    valid(&SCHEMA, results);
}

fn validator(schema: &str) -> jsonschema::Validator {
    let schema = serde_json::from_str(schema).expect("the committed schema is JSON");
    jsonschema::validator_for(&schema).expect("the committed file is a schema")
}

#[track_caller]
fn valid(schema: &jsonschema::Validator, document: &Value) {
    let wrong: Vec<String> =
        schema.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "does not match the schema: {}", wrong.join("\n"));
}
