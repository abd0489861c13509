//! Arguments: what stands in the `arguments` table of a queue, an exchange or a binding, and in a policy's definition.

use super::printable::clean;
use schemars::JsonSchema;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// One value, with the types that JSON and YAML can tell apart.
///
/// AMQP knows more (short, int32, timestamp, …); the management API shows them as these, and the broker compares all
/// integers by value (`rabbit_misc:assert_args_equivalence`). An integer and a float are never equal to the broker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
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

/// How many levels of lists and tables topo reads. A spec cannot nest as many, so a deeper value differs from every
/// declared one. The broker stores any depth; recursion over it would overflow the stack.
pub const MOST_LEVELS: usize = 64;

impl ArgumentValue {
    /// Whether topo read only its first [`MOST_LEVELS`] levels: the value cannot be sent back.
    pub fn is_cut(&self) -> bool {
        self.levels() > MOST_LEVELS
    }

    fn levels(&self) -> usize {
        match self {
            Self::List(values) => 1 + values.iter().map(Self::levels).max().unwrap_or_default(),
            Self::Table(table) => 1 + table.values().map(Self::levels).max().unwrap_or_default(),
            Self::Null | Self::Boolean(_) | Self::Integer(_) | Self::Float(_) | Self::Text(_) => 0,
        }
    }

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

impl<'de> Deserialize<'de> for ArgumentValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Levels(MOST_LEVELS))
    }
}

/// Reads a value that may nest this many more levels of lists and tables.
#[derive(Clone, Copy)]
struct Levels(usize);

impl Levels {
    /// What is read in place of a list or table that is too deep: one level too many.
    fn cut() -> ArgumentValue {
        ArgumentValue::List(vec!["…".into()])
    }
}

impl<'de> DeserializeSeed<'de> for Levels {
    type Value = ArgumentValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ArgumentValue, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Levels {
    type Value = ArgumentValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value of an argument")
    }

    fn visit_unit<E: de::Error>(self) -> Result<ArgumentValue, E> {
        Ok(ArgumentValue::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<ArgumentValue, E> {
        Ok(ArgumentValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<ArgumentValue, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<ArgumentValue, E> {
        Ok(ArgumentValue::Boolean(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<ArgumentValue, E> {
        Ok(ArgumentValue::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<ArgumentValue, E> {
        Ok(i64::try_from(value).map_or(ArgumentValue::Float(Float(value as f64)), ArgumentValue::Integer))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<ArgumentValue, E> {
        Ok(ArgumentValue::Float(Float(value)))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<ArgumentValue, E> {
        Ok(value.into())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<ArgumentValue, E> {
        Ok(value.into())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<ArgumentValue, S::Error> {
        let Some(left) = self.0.checked_sub(1) else {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Self::cut());
        };
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Self(left))? {
            values.push(value);
        }
        Ok(ArgumentValue::List(values))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<ArgumentValue, M::Error> {
        let Some(left) = self.0.checked_sub(1) else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Self::cut());
        };
        let mut table = BTreeMap::new();
        while let Some(key) = map.next_key()? {
            table.insert(key, map.next_value_seed(Self(left))?);
        }
        Ok(ArgumentValue::Table(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_bounded_and_a_cut_is_known() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let read = |text: &str| serde_json::from_str::<ArgumentValue>(text).unwrap();
        let whole = read(&nested(MOST_LEVELS));
        assert!(!whole.is_cut() && serde_json::to_string(&whole).unwrap() == nested(MOST_LEVELS));
        for levels in [MOST_LEVELS + 1, 5_000, 1_000_000] {
            assert!(read(&nested(levels)).is_cut(), "{levels}");
        }
        let tables = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
        assert!(read(&tables).is_cut());
        assert_eq!(read("18446744073709551615"), ArgumentValue::Float(Float(18_446_744_073_709_551_615.0)));
        assert_eq!(read(r#"[null,true,-1,1.5,"é"]"#).to_string(), "[null, true, -1, 1.5, é]");
    }
}
