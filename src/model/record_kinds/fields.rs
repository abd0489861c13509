//! The fields of records: their names in specs and requests, their values, and how topo compares them with the broker.

use crate::model::arguments::ArgumentValue;
use crate::model::version::BrokerVersion;

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub struct RecordField {
    /// The key in a spec.
    pub key: &'static str,
    /// The name in requests.
    pub name: &'static str,
    /// The values that the field accepts.
    pub shape: FieldShape,
    /// The default, as written in a spec; empty if there is none.
    pub default: &'static str,
    /// When topo compares the field with the broker.
    pub comparison: Comparison,
    /// An example value, as written in a spec; empty if none is needed.
    pub example: &'static str,
    /// The documentation of the key.
    pub doc: &'static str,
    /// The mapping in a spec that contains the key, such as `source`; empty if the entry itself contains the key.
    pub group: &'static str,
    /// The first RabbitMQ version with this field; `None` if every supported version has it.
    pub since: Option<BrokerVersion>,
    /// An older name of the field, which brokers still accept and store; empty if there is none.
    pub old_name: &'static str,
}

/// When topo compares a field with the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Always. The field is required if it has no default.
    Always,
    /// Always. The field is optional and has no default, so a missing field differs from every value.
    Optional,
    /// Only if the spec sets the field. Otherwise, topo keeps the current value.
    IfSet,
    /// Never. The field affects only the creation of the record.
    Never,
}

/// The values that a field accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// Any string.
    Text,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A regular expression for the names of objects, or for routing keys. The empty pattern is equivalent to `^$`,
    /// which matches no object.
    Pattern,
    /// Any number.
    Number,
    /// Policy keys with their values.
    Definition,
    /// A maximum number of objects. -1 means no limit. Brokers can list other negative numbers, which have the same
    /// meaning.
    Limit,
    /// Any value except null.
    Any,
    /// A list of tags. RabbitMQ 3.8 returns a comma-separated string.
    Tags,
    /// A reference to a secret. If `can_be_none` is true, the word `none` is also valid.
    Secret {
        /// Whether the word `none` is valid.
        can_be_none: bool,
    },
    /// `true` or `false`.
    Boolean,
    /// `true` or `false`. A record with `false` is equivalent to a missing record.
    Flag,
    /// An integer between this minimum and this maximum.
    Count(i64, i64),
    /// A duration that requests express in milliseconds.
    Milliseconds,
    /// A duration that requests express in seconds.
    Seconds,
    /// The routing key of a binding. The empty key is equivalent to a missing key.
    BindingKey,
    /// The arguments of a queue.
    Arguments,
    /// A mapping from any keys to any values.
    Table,
    /// One or more AMQP URIs without passwords, or references to complete URIs. If `has_default_vhost` is true, a URI
    /// without a vhost refers to the `/` vhost.
    Uris {
        /// Whether a URI without a vhost refers to the `/` vhost.
        has_default_vhost: bool,
    },
    /// The members of an upstream set.
    Members,
}

impl RecordField {
    /// The template for field definitions: a required string field without a name. Each definition overrides some of
    /// its values.
    pub const NEW: Self = Self {
        key: "",
        name: "",
        shape: FieldShape::Text,
        default: "",
        comparison: Comparison::Always,
        example: "",
        doc: "",
        group: "",
        since: None,
        old_name: "",
    };

    /// Returns true if a spec must set the field.
    pub fn is_required(&self) -> bool {
        self.comparison == Comparison::Always && self.default.is_empty()
    }

    /// Returns the default value of the field; `None` if the field has no default.
    pub fn default_value(&self) -> Option<ArgumentValue> {
        match self.shape {
            _ if self.default.is_empty() => None,
            FieldShape::Number | FieldShape::Limit | FieldShape::Count(..) | FieldShape::Milliseconds => {
                self.default.parse().ok().map(ArgumentValue::Integer)
            }
            FieldShape::Seconds => self.default.trim_end_matches('s').parse().ok().map(ArgumentValue::Integer),
            FieldShape::Boolean => self.default.parse().ok().map(ArgumentValue::Boolean),
            FieldShape::Text
            | FieldShape::BindingKey
            | FieldShape::Flag
            | FieldShape::Pattern
            | FieldShape::Words(_)
            | FieldShape::Definition
            | FieldShape::Tags
            | FieldShape::Secret { .. }
            | FieldShape::Arguments
            | FieldShape::Table
            | FieldShape::Uris { .. }
            | FieldShape::Members
            | FieldShape::Any => Some(self.default.into()),
        }
    }
}
