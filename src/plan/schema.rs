//! The JSON Schema of a plan, from the same types that write it.

use super::Plan;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Draft-07, as the spec's schema.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Plan>().to_value();
    schema["title"] = Value::from("topo plan");
    schema["description"] = Value::from("What `topo plan --format json` prints and `--out` saves.");
    schema
}
