//! Generates the JSON Schema for a plan from the types that serialize it.

use super::document::Plan;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the JSON Schema for a plan. The schema uses draft-07, like the schema for the spec.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Plan>().to_value();
    schema["title"] = Value::from("topo plan");
    schema["description"] = Value::from("The document that `topo plan --format json` prints and `--out` saves.");
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `TOPO_UPDATE=1`, the test regenerates the file.
    #[test]
    fn committed_schema_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/plan.schema.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap();
        assert!(committed == text, "schema/plan.schema.json is outdated: run the tests with TOPO_UPDATE=1");
    }
}
