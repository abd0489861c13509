//! Writes the sections of records, by the rows of their kinds.

use super::document::{Document, definition, number};
use crate::model::record_kinds::{FieldShape, Layout, RECORD_KINDS, RecordField, RecordRow};
use crate::model::yaml::{Entry, Tree, entry};
use crate::model::{ArgumentValue, ObjectId, Priority, Record};

/// Returns the sections that are not empty.
pub(super) fn sections(document: &Document<'_>) -> Vec<Entry> {
    let sections = RECORD_KINDS.iter().map(|row| (row.section, records(document, row)));
    let filled = sections.filter(|(_, records)| !records.is_empty());
    filled.map(|(section, records)| entry(section, Tree::table(records))).collect()
}

fn records(document: &Document<'_>, row: &RecordRow) -> Vec<Entry> {
    let own = document.kept.records.values().filter(|record| record.id.kind == row.kind);
    let named = own.map(|record| {
        let id = ObjectId::Record(record.id.clone());
        document.object(id, record.id.name().unwrap_or_default(), settings(record, row))
    });
    named.collect()
}

/// The settings of a record that differ from their defaults.
fn settings(record: &Record, row: &RecordRow) -> Tree {
    let Layout::Fields(fields) = row.layout else { return Tree::table([]) };
    let fields = fields.iter().filter_map(|field| Some((field, record.fields.get(field.name)?)));
    let differs = fields.filter(|(field, value)| field.default_value().as_ref() != Some(value));
    Tree::table(differs.map(|(field, value)| entry(field.key, written(field, value))))
}

fn written(field: &RecordField, value: &ArgumentValue) -> Tree {
    match (field.shape, value) {
        (FieldShape::Definition, ArgumentValue::Table(table)) => definition(table),
        (FieldShape::Number, ArgumentValue::Float(float)) => number(Priority(float.0)),
        (_, ArgumentValue::Text(text)) => Tree::text(text),
        (_, value) => Tree::plain(value),
    }
}
