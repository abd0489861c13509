//! Generates the JSON Schema for a status from the types that serialize it.

use super::document::Status;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the JSON Schema for a status. It uses draft-07, like the schema for specs.
pub fn schema() -> Value {
    let mut schema =
        SchemaSettings::draft07().for_serialize().into_generator().into_root_schema_for::<Status>().to_value();
    schema["title"] = Value::from("topo status");
    schema["description"] = Value::from("The document that `topo status --format json` prints.");
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `TOPO_UPDATE=1`, the test regenerates the file.
    #[test]
    fn committed_schema_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/status.schema.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "schema/status.schema.json is outdated: run the tests with TOPO_UPDATE=1");
    }
}
