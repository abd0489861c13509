//! Arguments: what stands in the `arguments` table of a queue, an exchange or a binding, and in a policy's definition.

use super::printable::clean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// One value, with the types that JSON and YAML can tell apart.
///
/// AMQP knows more (short, int32, timestamp, …); the management API shows them as these, and the broker compares all
/// integers by value (`rabbit_misc:assert_args_equivalence`). An integer and a float are never equal to the broker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ArgumentValue {
    /// AMQP void. HTTP cannot send it (500 on bindings, 400 on queues), and lists it as the text `undefined`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// Any integer; sent as AMQP `long`.
    Integer(i64),
    /// A number with a fraction or an exponent; sent as AMQP `double`.
    Float(Float),
    /// Text; sent as AMQP `longstr`.
    Text(String),
    /// A list of values.
    List(Vec<Self>),
    /// A table of values.
    Table(BTreeMap<String, Self>),
}

/// A float with the total order of [`f64::total_cmp`], so that it can stand in ordered collections.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Float(pub f64);

impl Ord for Float {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Float {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Float {}

impl ArgumentValue {
    /// The name of the AMQP type that the broker gives a value sent over HTTP, as its error sentences print it.
    pub fn amqp_type(&self) -> &'static str {
        match self {
            Self::Null => "void",
            Self::Boolean(_) => "bool",
            Self::Integer(_) => "long",
            Self::Float(_) => "double",
            Self::Text(_) => "longstr",
            Self::List(_) => "array",
            Self::Table(_) => "table",
        }
    }

    /// The integer, if it is one.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Null | Self::Boolean(_) | Self::Float(_) | Self::Text(_) | Self::List(_) | Self::Table(_) => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(value) => Some(value),
            Self::Null | Self::Boolean(_) | Self::Integer(_) | Self::Float(_) | Self::List(_) | Self::Table(_) => None,
        }
    }
}

/// The bare value, as the broker's sentences print it: no quotes around text, hidden characters escaped.
impl fmt::Display for ArgumentValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{:?}", value.0),
            Self::Text(value) => f.write_str(&clean(value)),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Table(table) => {
                f.write_str("{")?;
                for (index, (key, value)) in table.iter().enumerate() {
                    write!(f, "{}{}: {value}", if index == 0 { "" } else { ", " }, clean(key))?;
                }
                f.write_str("}")
            }
        }
    }
}

impl From<i64> for ArgumentValue {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<bool> for ArgumentValue {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<&str> for ArgumentValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for ArgumentValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// Names to values, in the order of the names.
pub type Arguments = BTreeMap<String, ArgumentValue>;
