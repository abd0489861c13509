//! The grammar's words: what may stand at a place of a spec. `keys` builds the grammar of them, `check` reads trees
//! with it, `schema` prints it; so the parser and the JSON Schema cannot disagree about what a key is.

use crate::model::known_arguments::ValueKind;

/// What may stand at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Any text.
    Text,
    /// The name of an object: 1 to 255 bytes.
    Name,
    /// A routing key: at most 255 bytes, and not a word that the management API cannot delete.
    RoutingKey,
    /// The version of the format.
    Version,
    /// `true` or `false`.
    Boolean,
    /// Milliseconds between the two.
    Duration(i64, i64),
    /// Milliseconds of one wait, at least one; with a unit, because a bare `5` is meant as seconds.
    Delay,
    /// A number that is at least 1.
    Factor,
    /// Bytes, at most this.
    Size(i64),
    /// A count between the two.
    Count(i64, i64),
    /// RabbitMQ's own notation of an age.
    MaxAge,
    /// Any number.
    Number,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A type of exchange: one of the four, or a plugin's `x-…`.
    ExchangeType,
    /// Arguments as they stand; the flag says whether the known ones of queues are among them.
    Arguments(bool),
    /// What a policy sets.
    Definition,
    /// A list.
    List(&'static Self),
    /// A list with something in it.
    Filled(&'static Self),
    /// Names to values.
    Map(&'static Self),
    /// A table with these keys.
    Object(&'static Object),
    /// A text, or one of these tables: the one whose first key is there.
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
    /// The table that stands there, if it is always one.
    pub(crate) fn table(&self) -> Option<&'static Object> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }
}

/// A table with known keys.
#[derive(Debug)]
pub(crate) struct Object {
    /// What it is, for people: `a queue`.
    pub(crate) what: &'static str,
    /// Its name among the definitions of the schema.
    pub(crate) name: &'static str,
    /// Its keys.
    pub(crate) keys: fn() -> &'static [Key],
    /// The keys that it may have with `external: true`; empty when it cannot be external.
    pub(crate) external: &'static [&'static str],
    /// Whether the queue's type decides which keys it may have.
    pub(crate) is_queue: bool,
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Its name.
    pub(crate) name: &'static str,
    /// What may stand there.
    pub(crate) shape: Shape,
    /// Whether it must be there; not on an external object.
    pub(crate) is_required: bool,
    /// What holds when it is absent, as YAML; empty when nothing does.
    pub(crate) default: &'static str,
    /// A value to show, as YAML; empty when none is needed.
    pub(crate) example: &'static str,
    /// What it is, for people; Markdown.
    pub(crate) doc: &'static str,
    /// Whether streams do not take it, for a key of queues that is no argument.
    pub(crate) not_of_streams: bool,
}

/// A key that may be left out.
pub(crate) const fn key(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key { name, shape, is_required: false, default: "", example: "", doc, not_of_streams: false }
}

impl Key {
    /// It must be there.
    pub(crate) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// Not of streams.
    pub(crate) const fn not_of_streams(self) -> Self {
        Self { not_of_streams: true, ..self }
    }

    /// With what holds when it is absent.
    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// With a value to show.
    pub(crate) const fn like(self, example: &'static str) -> Self {
        Self { example, ..self }
    }
}
