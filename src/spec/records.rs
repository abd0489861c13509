//! The sections of records: their keys in the grammar, and their conversion to records. Both follow the rows of the kinds.

use super::diagnostic::Diagnostics;
use super::node::{Entry, Node, Value};
use super::position::{Location, Sourced};
use super::read::{declared_twice, value_of};
use super::shape::{Key, Keys, Object, Shape, key};
use super::spec_types::{RecordSpec, Spec};
use crate::model::record_kinds::{FieldShape, RECORD_KINDS, RecordField, RecordRow};
use crate::model::{ArgumentValue, ObjectId, Record, RecordId};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The mapping of settings of each kind, in the order of the rows.
static OBJECTS: LazyLock<Vec<Object>> = LazyLock::new(|| RECORD_KINDS.iter().map(object).collect());

/// The value of a name of each kind.
static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| OBJECTS.iter().map(Shape::Object).collect());

const NAMES: Shape = Shape::List(&Shape::Name);

impl From<FieldShape> for Shape {
    fn from(shape: FieldShape) -> Self {
        match shape {
            FieldShape::Text => Self::Text,
            FieldShape::Words(words) => Self::OneOf(words),
            FieldShape::Number => Self::Number,
            FieldShape::Definition => Self::Definition,
            FieldShape::Limit => Self::Number,
        }
    }
}

fn object(row: &'static RecordRow) -> Object {
    let key = |field: &RecordField| Key {
        is_required: field.default.is_empty(),
        default: field.default,
        example: field.example,
        ..key(field.key, field.shape.into(), field.doc)
    };
    Object {
        what: row.what,
        name: row.schema,
        keys: Keys::Built(row.settings().iter().map(key).collect()),
        external: &[],
        is_queue: false,
    }
}

/// Returns the keys of a document that are sections of records.
pub(super) fn sections() -> impl Iterator<Item = Key> {
    RECORD_KINDS.iter().zip(SHAPES.iter()).map(|(row, shape)| key(row.section, Shape::Map(shape), row.doc))
}

/// Returns the keys of `removed` that list records.
pub(super) fn removed_sections() -> impl Iterator<Item = Key> {
    RECORD_KINDS.iter().map(|row| key(row.section, NAMES, row.removed_doc))
}

/// Returns the records under `removed`.
pub(super) fn removed(node: &Node) -> Vec<Sourced<ObjectId>> {
    let of_kind = |row: &'static RecordRow| {
        let names = node.get(row.section).map_or(&[][..], Node::items).iter();
        names.filter_map(|name| {
            let id = RecordId::named(row.kind, name.text()?);
            Some(Sourced::new(ObjectId::Record(id), name.at))
        })
    };
    RECORD_KINDS.iter().flat_map(of_kind).collect()
}

/// Adds the records of a document.
pub(super) fn read(document: &Node, spec: &mut Spec, diagnostics: &mut Diagnostics) {
    for row in RECORD_KINDS {
        let Some(section) = document.get(row.section) else { continue };
        spec.sections.insert(row.kind);
        for entry in section.entries() {
            let id = RecordId::named(row.kind, &*entry.key);
            let Some(record) = record(id, entry, row) else { continue };
            let id = record.record.id.clone();
            match spec.records.get(&id) {
                Some(first) => diagnostics.push(declared_twice(row.word, &entry.key, entry.at, first.at)),
                None => drop(spec.records.insert(id, record)),
            }
        }
    }
}

fn record(id: RecordId, entry: &Entry, row: &RecordRow) -> Option<RecordSpec> {
    let mut fields = BTreeMap::new();
    let mut places: BTreeMap<String, Location> = BTreeMap::new();
    for field in row.settings() {
        let Some(node) = entry.node.get(field.key).filter(|node| !matches!(node.value, Value::Null(_))) else {
            continue;
        };
        let value = value_of(node);
        places.insert(field.name.to_owned(), node.at);
        if let ArgumentValue::Table(_) = value {
            places.extend(node.entries().iter().map(|key| (key.key.clone(), key.at)));
        }
        fields.insert(field.name.to_owned(), value);
    }
    Some(RecordSpec { at: entry.at, record: Record::new(id, fields)?, places })
}
