//! Generates the JSON Schema for contracts from the serialized types.

use super::document::Contracts;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the JSON Schema for the contract output. Like the schema for specs, it uses Draft-07.
pub fn schema() -> Value {
    let mut schema =
        SchemaSettings::draft07().for_serialize().into_generator().into_root_schema_for::<Contracts>().to_value();
    schema["title"] = Value::from("topo contract");
    schema["description"] = Value::from(
        "The output of `topo contract --format json`: what workers must do, for each queue that retries, dead-letters or intentionally drops messages.",
    );
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the generated schema with the committed file. With `TOPO_UPDATE=1`, updates the file.
    #[test]
    fn committed_schema_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/contract.schema.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "schema/contract.schema.json is outdated: run the tests with TOPO_UPDATE=1");
    }
}
