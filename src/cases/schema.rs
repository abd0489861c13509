//! Renders the grammar of test files as a JSON Schema for editors.

use super::keys::TEST_DOCUMENT;
use crate::spec::schema::document_schema;
use serde_json::Value;

/// Returns the JSON Schema for test files. The schema cannot check whether the named queues and exchanges exist.
pub fn schema() -> Value {
    let description = "Tests of a topology: the queues that messages reach, and the queues in which they end up. `topo test` runs these tests.";
    document_schema(&TEST_DOCUMENT, "urn:topo:test:1", "A topo test file", description)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the generated schema with the committed file. With `TOPO_UPDATE=1`, updates the file.
    #[test]
    fn committed_schema_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/test.schema.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "schema/test.schema.json is outdated: run the tests with TOPO_UPDATE=1");
    }
}
