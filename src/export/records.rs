//! Writes the sections of records, as the table of record kinds defines them.

use super::document::{Document, definition_tree, number};
use crate::model::record_kinds::{FieldShape, Layout, Place, RECORD_KINDS, RecordField, RecordRow};
use crate::model::yaml::{Entry, Tree, entry};
use crate::model::{ArgumentValue, ObjectId, Priority, Record, RecordId};

/// Returns the sections that are not empty.
pub(super) fn sections(document: &Document<'_>) -> Vec<Entry> {
    let rows = RECORD_KINDS.iter().filter(|row| row.place == Place::Section);
    filled(rows.map(|row| (row.section, records(document, row))))
}

/// Returns the keys of `vhost` that are records.
pub(super) fn vhost_keys(document: &Document<'_>) -> Vec<Entry> {
    let rows = RECORD_KINDS.iter().filter_map(|row| match row.place {
        Place::Vhost(key) => Some((key, settings_of(document, row, None))),
        Place::Section => None,
    });
    filled(rows)
}

fn filled(tables: impl Iterator<Item = (&'static str, Vec<Entry>)>) -> Vec<Entry> {
    let filled = tables.filter(|(_, entries)| !entries.is_empty());
    filled.map(|(key, entries)| entry(key, Tree::table(entries))).collect()
}

/// Returns the settings of an owner, each of which is a record.
fn settings_of(document: &Document<'_>, row: &RecordRow, owner: Option<&str>) -> Vec<Entry> {
    let setting = |field: &RecordField| {
        let key = owner.into_iter().chain([field.name]).map(str::to_owned).collect();
        let record = document.kept.records.get(&RecordId { kind: row.kind, key })?;
        let value = written(field, record.fields.get("value")?);
        Some(document.object(ObjectId::Record(record.id.clone()), field.key, value))
    };
    row.settings().iter().filter_map(setting).collect()
}

fn records(document: &Document<'_>, row: &RecordRow) -> Vec<Entry> {
    let own = document.kept.records.values().filter(|record| record.id.kind == row.kind);
    let named = own.map(|record| {
        let id = ObjectId::Record(record.id.clone());
        document.object(id, record.id.name().unwrap_or_default(), settings(record, row))
    });
    named.collect()
}

/// Returns the settings of a record that differ from their defaults.
fn settings(record: &Record, row: &RecordRow) -> Tree {
    let Layout::Fields(fields) = row.layout else { return Tree::table([]) };
    let fields = fields.iter().filter_map(|field| Some((field, record.fields.get(field.name)?)));
    let differs = fields.filter(|(field, value)| field.default_value().as_ref() != Some(value));
    Tree::table(differs.map(|(field, value)| entry(field.key, written(field, value))))
}

fn written(field: &RecordField, value: &ArgumentValue) -> Tree {
    match (field.shape, value) {
        (FieldShape::Definition, ArgumentValue::Table(table)) => definition_tree(table),
        (FieldShape::Number, ArgumentValue::Float(float)) => number(Priority(float.0)),
        (_, ArgumentValue::Text(text)) => Tree::text(text),
        (_, value) => Tree::plain(value),
    }
}
