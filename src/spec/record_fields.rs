//! Derives the grammar of record fields from the table of record kinds.

use super::convert::value_of;
use super::node::Node;
use super::secrets;
use super::shape::{Forms, Key, Keys, Object, Shape, key};
use crate::model::record_kinds::{FieldShape, MEMBER_NAME, RecordField, member_fields};
use crate::model::retry::MAX_DELAY;
use crate::model::{ArgumentValue, Arguments};
use std::sync::LazyLock;

impl From<FieldShape> for Shape {
    fn from(shape: FieldShape) -> Self {
        match shape {
            FieldShape::Text | FieldShape::Pattern | FieldShape::BindingKey => Self::Text,
            FieldShape::Words(words) => Self::OneOf(words),
            FieldShape::Number => Self::Number,
            FieldShape::Definition => Self::Definition,
            FieldShape::Limit => Self::Count(-1, i64::MAX),
            FieldShape::Any => Self::Any,
            FieldShape::Tags => Self::List(&Shape::Tag),
            FieldShape::Secret { can_be_none } => Self::Secret(can_be_none),
            FieldShape::Boolean | FieldShape::Flag => Self::Boolean,
            FieldShape::Count(min, max) => Self::Count(min, max),
            FieldShape::Milliseconds => Self::Duration(0, MAX_DELAY),
            FieldShape::Seconds => Self::Seconds,
            FieldShape::Arguments => Self::Arguments(true),
            FieldShape::Table => Self::FreeMap(&Shape::Any),
            FieldShape::Uris { .. } => Self::OneForm(&URIS),
            FieldShape::Members => Self::List(&MEMBER),
        }
    }
}

/// Returns the key that sets a field in a spec.
pub(super) fn field_key(field: &RecordField) -> Key {
    Key {
        is_required: field.is_required(),
        default: field.default,
        example: field.example,
        ..key(field.key, field.shape.into(), field.doc)
    }
}

/// A URI, a reference to a URI, or a list of URIs and references.
static URIS: Forms = Forms {
    what: "a URI, a list of URIs, `{env: NAME}` or `{file: PATH}`",
    scalar: Some(Shape::Uri),
    integer: None,
    list: Some(Shape::NonEmptyList(&Shape::OneForm(&URI))),
    map: None,
    tables: secrets::REFERENCES,
};

static URI: Forms = Forms {
    what: "a URI, `{env: NAME}` or `{file: PATH}`",
    scalar: Some(Shape::Uri),
    integer: None,
    list: None,
    map: None,
    tables: secrets::REFERENCES,
};

/// A member of an upstream set: the name of an upstream, or a mapping that overrides keys of the upstream.
static MEMBER: Shape = Shape::Either(&Shape::Name, &[&MEMBER_OBJECT]);

static MEMBER_OBJECT: Object = Object {
    what: "a member of an upstream set",
    name: "UpstreamSetMember",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            let name = key(MEMBER_NAME, Shape::Name, "The name of the upstream.").required().with_example("us");
            // If a member omits a key, the value of the upstream applies instead of the default.
            let overridden = member_fields().map(|field| Key { default: "", is_required: false, ..field_key(field) });
            std::iter::once(name).chain(overridden).collect()
        });
        &KEYS
    }),
    external: &[],
    is_queue: false,
};

/// Returns the members of an upstream set, with the field names used in requests to the broker.
pub(super) fn members(node: &Node) -> ArgumentValue {
    let name =
        |key: &str| member_fields().find(|field| field.key == key).map_or(key.to_owned(), |it| it.name.to_owned());
    let member = |item: &Node| match item.entries() {
        [] => value_of(item),
        entries => {
            let fields = entries.iter().map(|entry| (name(&entry.key), value_of(&entry.node)));
            ArgumentValue::Table(fields.collect::<Arguments>())
        }
    };
    ArgumentValue::List(node.items().iter().map(member).collect())
}
