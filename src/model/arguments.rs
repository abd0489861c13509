//! Arguments: what stands in the `arguments` table of a queue, an exchange or a binding, and in a policy's definition.

use super::count::number;
use super::memory;
use super::printable::clean;
use schemars::JsonSchema;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
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

/// How many values one argument may hold at any depth before topo stops to read it. An AMQP client cannot declare much more: a
/// declare is one frame, of 128 KiB by default. Decoded, a value takes up to 340 times its JSON.
pub const MOST_VALUES: usize = 10_000;

impl ArgumentValue {
    /// Whether topo did not read all of it, because it has more than [`MOST_LEVELS`] levels or [`MOST_VALUES`] values, or
    /// because the arguments of the document take too much memory: the value cannot be sent back.
    pub fn is_cut(&self) -> bool {
        self.levels() > MOST_LEVELS
    }

    /// When an argument is cut, for people: it has that much.
    pub fn too_large() -> String {
        format!("more than {MOST_LEVELS} levels or {} values, or takes too much memory", number(MOST_VALUES as u64))
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

    /// The integer or float, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(value.0),
            Self::Null | Self::Boolean(_) | Self::Text(_) | Self::List(_) | Self::Table(_) => None,
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
            Self::List(_) | Self::Table(_) if self.is_cut() => f.write_str("…"),
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

/// Returns whether topo did not read one of the values to its end.
pub fn has_cut(arguments: &Arguments) -> bool {
    arguments.values().any(ArgumentValue::is_cut)
}

impl<'de> Deserialize<'de> for ArgumentValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The first that is one too many ends the reading.
        let values = Cell::new(MOST_VALUES + 1);
        let value = Part { levels: MOST_LEVELS, values: &values }.deserialize(deserializer)?;
        let is_whole = values.get() > 0;
        Ok(if is_whole { value } else { (0..MOST_LEVELS).fold(Part::cut(), |cut, _| Self::List(vec![cut])) })
    }
}

/// Reads a part of an argument that may nest this many more levels of lists and tables, and hold this many more values.
#[derive(Clone, Copy)]
struct Part<'a> {
    levels: usize,
    values: &'a Cell<usize>,
}

impl Part<'_> {
    /// The value in place of a list or table that is not read: at the last level, one level too many.
    fn cut() -> ArgumentValue {
        ArgumentValue::List(vec!["…".into()])
    }

    /// A part of this one, a level deeper; `None` if no more is read.
    fn within(self) -> Option<Self> {
        if memory::is_used_up() {
            self.values.set(0);
        }
        if self.values.get() == 0 {
            return None;
        }
        Some(Self { levels: self.levels.checked_sub(1)?, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ArgumentValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ArgumentValue, D::Error> {
        self.values.set(self.values.get().saturating_sub(1));
        if self.levels < MOST_LEVELS {
            memory::take(size_of::<ArgumentValue>());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
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
        let mut values = Vec::new();
        while let Some(part) = self.within() {
            let Some(value) = list.next_element_seed(part)? else { return Ok(ArgumentValue::List(values)) };
            values.push(value);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::cut())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<ArgumentValue, M::Error> {
        memory::take(memory::TABLE);
        let mut table = BTreeMap::new();
        while let Some(part) = self.within() {
            let Some(key) = map.next_key()? else { return Ok(ArgumentValue::Table(table)) };
            memory::take(memory::ENTRY);
            table.insert(key, map.next_value_seed(part)?);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::cut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_values_is_bounded_and_a_cut_is_known() {
        let read = |text: &str| serde_json::from_str::<ArgumentValue>(text).unwrap();
        let list = |length: usize| format!("[{}]", vec!["1"; length].join(","));
        assert!(!read(&list(MOST_VALUES - 1)).is_cut());
        for length in [MOST_VALUES, 1_000_000] {
            let cut = read(&list(length));
            assert!(cut.is_cut(), "{length}");
            // In a saved plan, it is the same.
            assert_eq!(read(&serde_json::to_string(&cut).unwrap()), cut);
            assert!(read(&format!(r#"{{"a":{{"b":[0,{}],"c":[1]}},"d":2}}"#, list(length))).is_cut());
        }
        let tables = format!(r#"{{"a":[{}]}}"#, vec![r#"{"":1}"#; MOST_VALUES / 2].join(","));
        assert!(read(&tables).is_cut());
    }

    #[test]
    fn memory_of_all_arguments_is_bounded_in_proportion_to_the_text() {
        let table = r#"{"":1}"#;
        let read = |text: &str| serde_json::from_str::<Vec<ArgumentValue>>(text).unwrap();
        // The values behind the bound are cut, each by itself, and plain ones are read.
        let many = format!("[{},1,\"a\"]", vec![table; 1_000_000].join(","));
        let values = memory::bounded(many.len(), || read(&many));
        let cut = values.iter().position(ArgumentValue::is_cut).unwrap();
        assert!((30_000..60_000).contains(&cut), "{cut}");
        assert!(values[cut..1_000_000].iter().all(ArgumentValue::is_cut));
        assert_eq!(values[1_000_000..], [1.into(), "a".into()]);
        // Typical arguments of a real broker's queues.
        let queue = r#"{"x-queue-type":"quorum","x-max-length":1000,"x-dead-letter-exchange":"orders.dlx"}"#;
        let real = format!("[{}]", vec![queue; 300_000].join(","));
        let real = memory::bounded(real.len(), || serde_json::from_str::<Vec<Arguments>>(&real)).unwrap();
        assert!(real.len() == 300_000 && !real.iter().any(has_cut));
        assert!(!read(&format!("[{table}]"))[0].is_cut(), "there is no bound afterwards");
    }

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
