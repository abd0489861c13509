//! Replaces the placeholders for passwords in shovels and federation upstreams with references to environment
//! variables. The records never contain the passwords.

use crate::model::record_kinds::{FieldShape, PASSWORD_IS_SET, PASSWORDS_DIFFER, RecordField};
use crate::model::{AmqpUri, ArgumentValue, Record, SecretRef, Topology};
use std::collections::BTreeSet;

/// Replaces the placeholders for passwords in the records of a topology with references to environment variables. The
/// name of a variable consists of the names of the record, the mapping and the key, such as `FROM_OLD_SOURCE_PASSWORD`.
/// `variables` contains the variables that other vhosts use, and receives the new variables.
pub fn reference_passwords(topology: &mut Topology, variables: &mut BTreeSet<String>) {
    for (id, record) in topology.records.iter_mut().filter(|(id, _)| id.kind.row().has_uris()) {
        for field in id.kind.row().settings() {
            let is_set = record.fields.get(field.name).and_then(ArgumentValue::as_text) == Some(PASSWORD_IS_SET);
            if !is_set || !matches!(field.shape, FieldShape::Secret { .. }) {
                continue;
            }
            let components = [id.name().unwrap_or_default(), field.group, field.key];
            let words: Vec<String> = components.iter().filter(|it| !it.is_empty()).map(|it| word(it)).collect();
            let name = words.join("_");
            // topo itself reads variables such as TOPO_PASSWORD.
            let is_reserved = ["TOPO_", "RABBITMQADMIN_"].iter().any(|prefix| name.starts_with(prefix));
            let name = unused(&if is_reserved { format!("LINK_{name}") } else { name }, variables);
            record.fields.insert(field.name.to_owned(), SecretRef::Env(name.clone()).value());
            variables.insert(name);
        }
    }
}

/// Converts a name to a component of an environment variable name.
fn word(name: &str) -> String {
    let word: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if word.starts_with(|c: char| c.is_ascii_digit()) { format!("_{word}") } else { word }
}

fn unused(name: &str, used: &BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let candidates = std::iter::once(name.to_owned()).chain(numbered);
    candidates.into_iter().find(|name| !used.contains(name)).unwrap_or_default()
}

/// Returns the reason why a spec cannot represent a record; `None` if it can.
pub(super) fn reason_for_link(record: &Record) -> Option<String> {
    let row = record.id.kind.row();
    if !row.has_uris() {
        return None;
    }
    let is_unknown = |name: &&String| row.settings().iter().all(|field| field.name != **name);
    if let Some(unknown) = record.fields.keys().find(is_unknown) {
        return Some(format!("topo does not support {unknown}"));
    }
    let is_different = |value: &ArgumentValue| value.as_text() == Some(PASSWORDS_DIFFER);
    if record.fields.values().any(is_different) {
        return Some("its URIs have different passwords".to_owned());
    }
    let has_uris = |field: &&RecordField| matches!(field.shape, FieldShape::Uris { .. });
    let mut uris = row.settings().iter().filter(has_uris).flat_map(|field| record.items(field.name));
    let is_invalid = |uri: &ArgumentValue| {
        uri.as_text().is_some_and(|text| AmqpUri::parse(text).map_or(true, |it| it.has_key_password()))
    };
    uris.any(is_invalid).then(|| "a URI is not valid, or contains the password of a private key".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arguments, RecordId, RecordKind};

    fn upstream(name: &str) -> Topology {
        let fields: Arguments = serde_json::from_str(r#"{"uri": "amqp://u@h", "uri-password": "set"}"#).unwrap();
        let record = Record::new(RecordId::named(RecordKind::Upstream, name), fields).unwrap();
        Topology { records: [(record.id.clone(), record)].into(), ..Topology::missing("v".into()) }
    }

    #[test]
    fn variables_are_unique_across_vhosts() {
        let mut variables = BTreeSet::new();
        let mut found = Vec::new();
        for name in ["us", "us", "1-ü", "topo"] {
            let mut topology = upstream(name);
            reference_passwords(&mut topology, &mut variables);
            let secrets = topology.records.values().flat_map(Record::secrets);
            found.extend(secrets.filter_map(|(_, secret)| secret.variable().map(str::to_owned)));
        }
        assert_eq!(found, ["US_PASSWORD", "US_PASSWORD_2", "_1___PASSWORD", "LINK_TOPO_PASSWORD"]);
    }
}
