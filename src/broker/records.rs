//! Converts the entries in a broker's response or a definitions file to records, according to the row of each kind.

use crate::model::record_kinds::{Layout, RecordRow};
use crate::model::{ArgumentValue, Arguments, Record, RecordId, RecordKind, Records};
use std::collections::{BTreeMap, BTreeSet};

/// The records from a broker or a definitions file, and facts about them.
#[derive(Default)]
pub(super) struct ReadRecords {
    pub(super) records: Records,
    /// The records whose secrets topo could not compare, each with the reason.
    pub(super) not_compared: BTreeMap<RecordId, String>,
    /// The shovels that topo does not manage, because they delete themselves or the broker created them.
    pub(super) excluded: BTreeSet<RecordId>,
}

/// Converts the list that the broker returns for a kind. Omits entries that are not records of this kind, and entries
/// with reserved names.
pub(super) fn from_list(kind: RecordKind, entries: Vec<Arguments>) -> Records {
    let row = kind.row();
    let records = entries.into_iter().flat_map(|mut entry| {
        let segments = row.key.iter().map(|field| Some(entry.get(*field)?.as_text()?.to_owned()));
        let Some(key) = segments.collect::<Option<Vec<String>>>() else { return Vec::new() };
        if let Layout::Value([field]) = row.layout
            && let Some(value) = entry.remove(field.old_name)
        {
            entry.insert(field.name.to_owned(), value);
        }
        if key.first().is_some_and(|name| row.reserved.contains(&name.as_str())) {
            return Vec::new();
        }
        match row.layout {
            Layout::Fields(_) | Layout::Value(_) => from_fields(row, key, entry),
            Layout::Settings(_) => entry.remove("value").map_or_else(Vec::new, |value| from_value(row, key, value)),
        }
    });
    records.map(|record| (record.id.clone(), record)).collect()
}

/// Converts an owner's settings in a definitions file into records.
pub(super) fn from_owner(row: &RecordRow, owner: &str, settings: ArgumentValue) -> Vec<Record> {
    from_value(row, vec![owner.to_owned()], settings)
}

fn from_value(row: &RecordRow, key: Vec<String>, settings: ArgumentValue) -> Vec<Record> {
    match settings {
        ArgumentValue::Table(settings) => from_fields(row, key, settings),
        // On 3.10 and earlier, the broker returns an empty list if the owner has no settings.
        ArgumentValue::Null
        | ArgumentValue::Boolean(_)
        | ArgumentValue::Integer(_)
        | ArgumentValue::Float(_)
        | ArgumentValue::Text(_)
        | ArgumentValue::List(_) => Vec::new(),
    }
}

/// Converts the value of a runtime parameter in a definitions file into records.
pub(super) fn from_parameter(row: &RecordRow, name: &str, value: Arguments) -> Vec<Record> {
    from_fields(row, row.key.iter().map(|_| name.to_owned()).collect(), value)
}

/// Converts the fields of one entry, or the settings of one owner, into records.
fn from_fields(row: &RecordRow, key: Vec<String>, settings: Arguments) -> Vec<Record> {
    let id = |key: Vec<String>| RecordId { kind: row.kind, key };
    match row.layout {
        Layout::Fields(_) | Layout::Value(_) => Record::new(id(key), settings).into_iter().collect(),
        Layout::Settings(rows) => {
            let is_of_kind = |name: &String| rows.iter().any(|setting| setting.name == name);
            let of_kind = settings.into_iter().filter(|(name, _)| is_of_kind(name));
            let record = |(name, value): (String, ArgumentValue)| {
                let key = key.iter().cloned().chain([name]).collect();
                Record::new(id(key), Arguments::from([("value".to_owned(), value)]))
            };
            of_kind.filter_map(record).collect()
        }
    }
}
