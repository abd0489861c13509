//! Shapes: the values that a key of a spec accepts. `keys` builds the grammar from shapes, `check` validates trees
//! against the grammar, and `schema` renders it. Therefore, the parser and the JSON Schema agree about every key.

use crate::model::known_arguments::ValueKind;

/// The values that a key or list entry accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Any string.
    Text,
    /// The name of an object: 1 to 255 bytes.
    Name,
    /// A routing key of at most 255 bytes. Words with which the management API cannot delete a binding are invalid.
    RoutingKey,
    /// The format version.
    Version,
    /// `true` or `false`.
    Boolean,
    /// A duration in milliseconds, in this range.
    Duration(i64, i64),
    /// A delay in milliseconds, at least 1. The unit is required, because a plain `5` usually means seconds.
    Delay,
    /// A number that is at least 1.
    Factor,
    /// A size in bytes, at most this number.
    Size(i64),
    /// A count in this range.
    Count(i64, i64),
    /// An age in RabbitMQ's notation.
    MaxAge,
    /// Any number.
    Number,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// An exchange type: one of the four built-in types, or the `x-…` type of a plugin.
    ExchangeType,
    /// Arguments that are sent unchanged; the flag is true if they can contain known queue arguments.
    Arguments(bool),
    /// The definition of a policy.
    Definition,
    /// A list.
    List(&'static Self),
    /// A list that is not empty.
    NonEmptyList(&'static Self),
    /// A mapping from names to values.
    Map(&'static Self),
    /// A mapping with these keys.
    Object(&'static Object),
    /// A string, or one of these mappings. Each mapping has a different first key, which identifies it.
    Either(&'static Self, &'static [&'static Object]),
}

impl From<ValueKind> for Shape {
    fn from(kind: ValueKind) -> Self {
        match kind {
            ValueKind::Duration(least, most) => Self::Duration(least, most),
            ValueKind::Size(most) => Self::Size(most),
            ValueKind::Count(least, most) => Self::Count(least, most),
            ValueKind::Boolean => Self::Boolean,
            ValueKind::Text => Self::Text,
            ValueKind::OneOf(words) => Self::OneOf(words),
            ValueKind::MaxAge => Self::MaxAge,
        }
    }
}

impl Shape {
    /// Returns the mapping, if the shape is always a mapping.
    pub(crate) fn table(&self) -> Option<&'static Object> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }
}

/// A mapping with known keys.
#[derive(Debug)]
pub(crate) struct Object {
    /// The description in messages: `a queue`.
    pub(crate) what: &'static str,
    /// The name in the definitions of the schema.
    pub(crate) name: &'static str,
    /// The keys.
    pub(crate) keys: Keys,
    /// The keys that are valid together with `external: true`; empty if the object cannot be external.
    pub(crate) external: &'static [&'static str],
    /// True if the queue type determines the valid keys.
    pub(crate) is_queue: bool,
}

/// The keys of a mapping.
#[derive(Debug)]
pub(crate) enum Keys {
    /// A static table of keys.
    Fixed(fn() -> &'static [Key]),
    /// Keys that are built from another table.
    Built(Vec<Key>),
}

impl Object {
    /// Returns the keys.
    pub(crate) fn keys(&self) -> &[Key] {
        match &self.keys {
            Keys::Fixed(keys) => keys(),
            Keys::Built(keys) => keys,
        }
    }
}

/// A key of a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The name.
    pub(crate) name: &'static str,
    /// The values that the key accepts.
    pub(crate) shape: Shape,
    /// True if the key is required, except on an external object.
    pub(crate) is_required: bool,
    /// The default, as YAML; empty if there is none.
    pub(crate) default: &'static str,
    /// An example value, as YAML; empty if none is needed.
    pub(crate) example: &'static str,
    /// The documentation, in Markdown.
    pub(crate) doc: &'static str,
    /// True for a queue key that streams do not support and that is not an argument.
    pub(crate) excludes_streams: bool,
}

/// Creates an optional key.
pub(crate) const fn key(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key { name, shape, is_required: false, default: "", example: "", doc, excludes_streams: false }
}

impl Key {
    /// Makes the key required.
    pub(crate) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// Marks the key as unsupported on streams.
    pub(crate) const fn excludes_streams(self) -> Self {
        Self { excludes_streams: true, ..self }
    }

    /// Sets the default.
    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// Sets the example.
    pub(crate) const fn like(self, example: &'static str) -> Self {
        Self { example, ..self }
    }
}
