//! The grammar of records: one section or key of `vhost` for each row of the kinds.

use super::shape::{Key, Keys, Object, Shape, key};
use crate::model::record_kinds::{FieldShape, Place, RECORD_KINDS, RecordField, RecordRow};
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
            FieldShape::Limit => Self::Count(-1, i64::MAX),
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
    let rows = RECORD_KINDS.iter().zip(SHAPES.iter()).filter(|(row, _)| row.place == Place::Section);
    rows.map(|(row, shape)| key(row.section, Shape::Map(shape), row.doc))
}

/// Returns the keys of `vhost` that are records.
pub(super) fn vhost_keys() -> impl Iterator<Item = Key> {
    RECORD_KINDS.iter().zip(SHAPES.iter()).filter_map(|(row, shape)| match row.place {
        Place::Vhost(name) => Some(key(name, *shape, row.doc)),
        Place::Section => None,
    })
}

/// Returns the keys of `removed` that list records.
pub(super) fn removed_sections() -> impl Iterator<Item = Key> {
    RECORD_KINDS.iter().filter(|row| row.place == Place::Section).map(|row| key(row.section, NAMES, row.removed_doc))
}
