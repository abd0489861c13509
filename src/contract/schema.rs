//! The JSON Schema of contracts, from the same types that write them.

use super::Contracts;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Draft-07, as the spec's schema.
pub fn schema() -> Value {
    let mut schema =
        SchemaSettings::draft07().for_serialize().into_generator().into_root_schema_for::<Contracts>().to_value();
    schema["title"] = Value::from("topo contract");
    schema["description"] =
        Value::from("What `topo contract --format json` prints: what the workers of each queue must know.");
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `TOPO_UPDATE=1` writes the file anew.
    #[test]
    fn the_committed_schema_is_this_one() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/contract.schema.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "schema/contract.schema.json is old: run the tests with TOPO_UPDATE=1");
    }
}
