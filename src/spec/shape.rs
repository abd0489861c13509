//! Defines shapes, which describe the values that the keys of a spec accept. `keys` uses shapes to define the grammar,
//! `check` validates trees against the grammar, and `schema` renders the grammar as a JSON Schema. Therefore, the
//! parser and the JSON Schema accept the same keys.

use crate::model::known_arguments::ValueKind;

/// The values that a key or list entry accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Any string.
    Text,
    /// The name of an object: 1 to 255 bytes, without line breaks or NUL characters.
    Name,
    /// A routing key of at most 255 bytes. `null` and `undefined` are invalid, because the management API cannot delete
    /// a binding with such a routing key.
    RoutingKey,
    /// The format version.
    Version,
    /// `true` or `false`.
    Boolean,
    /// A duration in milliseconds, with its minimum and maximum.
    Duration(i64, i64),
    /// A delay of at least 1 ms, written with its unit, such as `5s`. A plain number is invalid, because `5` usually
    /// means seconds.
    Delay,
    /// A duration in whole seconds, written with its unit.
    Seconds,
    /// An AMQP URI without a password.
    Uri,
    /// A number that is at least 1.
    Factor,
    /// A size in bytes, from 0 to this maximum.
    Size(i64),
    /// A count, with its minimum and maximum.
    Count(i64, i64),
    /// An age in RabbitMQ's notation.
    MaxAge,
    /// Any number.
    Number,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// An exchange type: `direct`, `fanout`, `topic` or `headers`, or a type that starts with `x-`.
    ExchangeType,
    /// The arguments of a queue if the flag is true. Otherwise, the arguments of an exchange or binding. topo converts
    /// the values of known queue arguments, and sends all other arguments unchanged.
    Arguments(bool),
    /// The definition of a policy.
    Definition,
    /// Any value except null.
    Any,
    /// A user tag.
    Tag,
    /// A reference to a secret: a mapping with `env` or `file`. If the flag is true, the word `none` is also valid.
    Secret(bool),
    /// A list.
    List(&'static Self),
    /// A list that is not empty.
    NonEmptyList(&'static Self),
    /// A mapping from names to values.
    Map(&'static Self),
    /// A mapping from arbitrary strings, such as titles or routing keys, to values.
    FreeMap(&'static Self),
    /// A mapping with these keys.
    Object(&'static Object),
    /// A string, or one of these mappings. Each mapping has a different first key, which identifies it.
    Either(&'static Self, &'static [&'static Object]),
    /// A value that can take one of several forms: a single value, a list or a mapping.
    OneForm(&'static Forms),
}

/// The shapes of a value, by form. The shape of an invalid form is `None`.
#[derive(Debug)]
pub(crate) struct Forms {
    /// How messages describe the valid values: `a behavior or a list of behaviors`.
    pub(crate) what: &'static str,
    /// The shape of a single value.
    pub(crate) scalar: Option<Shape>,
    /// The shape of an integer, if it differs from [`Self::scalar`].
    pub(crate) integer: Option<Shape>,
    /// The shape of a list.
    pub(crate) list: Option<Shape>,
    /// The shape of a mapping, if [`Self::tables`] is empty.
    pub(crate) map: Option<Shape>,
    /// The mappings with known keys. Each has a different first key, which identifies it.
    pub(crate) tables: &'static [&'static Object],
}

impl From<ValueKind> for Shape {
    fn from(kind: ValueKind) -> Self {
        match kind {
            ValueKind::Duration(min, max) => Self::Duration(min, max),
            ValueKind::Size(max) => Self::Size(max),
            ValueKind::Count(min, max) => Self::Count(min, max),
            ValueKind::Boolean => Self::Boolean,
            ValueKind::Text => Self::Text,
            ValueKind::OneOf(words) => Self::OneOf(words),
            ValueKind::MaxAge => Self::MaxAge,
        }
    }
}

impl Shape {
    /// Returns the object if the shape is a mapping with known keys, or accepts either a word or one such mapping.
    pub(crate) fn table(&self) -> Option<&'static Object> {
        if let Self::Object(object) | Self::Either(Self::OneOf(_), [object]) = self { Some(object) } else { None }
    }
}

/// A mapping with known keys.
#[derive(Debug)]
pub(crate) struct Object {
    /// The description in messages: `a queue`.
    pub(crate) what: &'static str,
    /// The name in the schema's definitions.
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
    /// A function that returns a static table of keys.
    Fixed(fn() -> &'static [Key]),
    /// Keys that topo builds from the table of record kinds.
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

/// A key in a mapping.
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
    /// True for a queue key that is not an argument and that streams do not support.
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
    pub(crate) const fn with_default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// Sets the example.
    pub(crate) const fn with_example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }
}
