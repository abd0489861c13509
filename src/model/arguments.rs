//! The values and names of arguments. Policy definitions and record fields use the same types.

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

/// An argument value. The types are the types of JSON, but integers and floats are distinct.
///
/// AMQP has more types (short, int32, timestamp, …). The management API converts their values to JSON types. The
/// broker compares all integers by value (`rabbit_misc:assert_args_equivalence`). An integer never equals a float.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ArgumentValue {
    /// AMQP `void`. The management API refuses null in requests (status 500 for bindings, 400 for queues), and returns
    /// the string `undefined` for a void value.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// An integer of up to 64 bits; sent as AMQP `long`.
    Integer(i64),
    /// A number with a fraction or an exponent, or a larger integer; sent as AMQP `double`.
    Float(Float),
    /// A string; sent as AMQP `longstr`.
    Text(String),
    /// A list of values.
    List(Vec<Self>),
    /// A mapping from strings to values.
    Table(BTreeMap<String, Self>),
}

/// A float with the total order of [`f64::total_cmp`], for ordered collections.
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

/// The maximum depth of nested lists and mappings that topo reads. No spec can contain a deeper value, so a deeper
/// value differs from every declared value. The broker stores values of any depth, but recursion over a deeper value
/// could overflow the stack.
pub const MAX_LEVELS: usize = 64;

/// The maximum number of values that topo reads in one argument, at any depth. A declaration must fit into one AMQP
/// frame (128 KiB by default), so clients rarely declare more values. The limit protects memory: the decoded mapping
/// `{"":1}` takes more than 100 times the memory of its JSON text.
pub const MAX_VALUES: usize = 10_000;

impl ArgumentValue {
    /// Returns true if topo did not read the whole value. Such a value has more than [`MAX_LEVELS`] levels or
    /// [`MAX_VALUES`] values, or the arguments of its document exceed the memory limit ([`memory`]). topo cannot send a
    /// truncated value to the broker.
    pub fn is_truncated(&self) -> bool {
        self.levels() > MAX_LEVELS
    }

    /// Describes the size of an argument that topo did not read completely, for messages.
    pub fn too_large() -> String {
        format!("more than {MAX_LEVELS} levels or {} values, or takes too much memory", number(MAX_VALUES as u64))
    }

    fn levels(&self) -> usize {
        match self {
            Self::List(values) => 1 + values.iter().map(Self::levels).max().unwrap_or_default(),
            Self::Table(table) => 1 + table.values().map(Self::levels).max().unwrap_or_default(),
            Self::Null | Self::Boolean(_) | Self::Integer(_) | Self::Float(_) | Self::Text(_) => 0,
        }
    }

    /// Returns the broker's name for the AMQP type of the value: `longstr`, `table`. The management API converts the
    /// values in requests to these types.
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

    /// Returns the value if it is an integer.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Null | Self::Boolean(_) | Self::Float(_) | Self::Text(_) | Self::List(_) | Self::Table(_) => None,
        }
    }

    /// Returns the value if it is an integer or a float.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(value.0),
            Self::Null | Self::Boolean(_) | Self::Text(_) | Self::List(_) | Self::Table(_) => None,
        }
    }

    /// Returns the items if the value is a list.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            Self::Null | Self::Boolean(_) | Self::Integer(_) | Self::Float(_) | Self::Text(_) | Self::Table(_) => None,
        }
    }

    /// Returns the value if it is a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(value) => Some(value),
            Self::Null | Self::Boolean(_) | Self::Integer(_) | Self::Float(_) | Self::List(_) | Self::Table(_) => None,
        }
    }
}

/// Writes the value in the style of the broker's messages, with unquoted strings. Escapes hidden characters, and writes
/// `…` for a list or mapping that topo did not read completely.
impl fmt::Display for ArgumentValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(_) | Self::Table(_) if self.is_truncated() => f.write_str("…"),
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

/// The values of arguments, by argument name.
pub type Arguments = BTreeMap<String, ArgumentValue>;

/// Returns true if at least one argument has a value that topo did not read completely.
pub fn has_truncated_value(arguments: &Arguments) -> bool {
    arguments.values().any(ArgumentValue::is_truncated)
}

impl<'de> Deserialize<'de> for ArgumentValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Decoding skips the rest of the argument after the first value that exceeds the limit.
        let values = Cell::new(MAX_VALUES + 1);
        let value = Part { levels: MAX_LEVELS, values: &values }.deserialize(deserializer)?;
        let is_whole = values.get() > 0;
        Ok(if is_whole { value } else { (0..MAX_LEVELS).fold(Part::truncated(), |inner, _| Self::List(vec![inner])) })
    }
}

/// A deserializer for an argument, or for a value nested in it.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// The remaining levels of nesting.
    levels: usize,
    /// The remaining number of values in the whole argument.
    values: &'a Cell<usize>,
}

impl Part<'_> {
    /// Returns the replacement for a list or mapping that topo does not read completely. At the last level, the
    /// replacement is one level too deep, so [`ArgumentValue::is_truncated`] returns true.
    fn truncated() -> ArgumentValue {
        ArgumentValue::List(vec!["…".into()])
    }

    /// Returns the deserializer for the next level; `None` if a limit is reached.
    fn nested(self) -> Option<Self> {
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
        if self.levels < MAX_LEVELS {
            memory::consume(size_of::<ArgumentValue>());
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
        while let Some(part) = self.nested() {
            let Some(value) = list.next_element_seed(part)? else { return Ok(ArgumentValue::List(values)) };
            values.push(value);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::truncated())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<ArgumentValue, M::Error> {
        memory::consume(TABLE_SIZE);
        let mut table = BTreeMap::new();
        while let Some(part) = self.nested() {
            let Some(key) = map.next_key()? else { return Ok(ArgumentValue::Table(table)) };
            memory::consume(ENTRY_SIZE);
            table.insert(key, map.next_value_seed(part)?);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::truncated())
    }
}

/// The size of a mapping with few entries, in bytes. A B-tree node has room for eleven entries.
const TABLE_SIZE: usize = 11 * (size_of::<String>() + size_of::<ArgumentValue>()) + 24;

/// The additional size of each entry in a mapping, in bytes.
const ENTRY_SIZE: usize = 2 * size_of::<String>();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_above_the_limit_are_truncated() {
        let read = |text: &str| serde_json::from_str::<ArgumentValue>(text).unwrap();
        let list = |length: usize| format!("[{}]", vec!["1"; length].join(","));
        assert!(!read(&list(MAX_VALUES - 1)).is_truncated());
        for length in [MAX_VALUES, 1_000_000] {
            let cut = read(&list(length));
            assert!(cut.is_truncated(), "{length}");
            // A saved plan preserves a truncated value.
            assert_eq!(read(&serde_json::to_string(&cut).unwrap()), cut);
            assert!(read(&format!(r#"{{"a":{{"b":[0,{}],"c":[1]}},"d":2}}"#, list(length))).is_truncated());
        }
        let tables = format!(r#"{{"a":[{}]}}"#, vec![r#"{"":1}"#; MAX_VALUES / 2].join(","));
        assert!(read(&tables).is_truncated());
    }

    #[test]
    fn memory_of_arguments_is_limited_in_proportion_to_the_document() {
        let table = r#"{"":1}"#;
        let read = |text: &str| serde_json::from_str::<Vec<ArgumentValue>>(text).unwrap();
        // After the limit is reached, each list or mapping is truncated individually, and scalars are still read.
        let many = format!("[{},1,\"a\"]", vec![table; 1_000_000].join(","));
        let values = memory::decode(many.len(), || read(&many));
        let cut = values.iter().position(ArgumentValue::is_truncated).unwrap();
        assert!((30_000..60_000).contains(&cut), "{cut}");
        assert!(values[cut..1_000_000].iter().all(ArgumentValue::is_truncated));
        assert_eq!(values[1_000_000..], [1.into(), "a".into()]);
        // Typical arguments of a real broker's queues.
        let queue = r#"{"x-queue-type":"quorum","x-max-length":1000,"x-dead-letter-exchange":"orders.dlx"}"#;
        let real = format!("[{}]", vec![queue; 300_000].join(","));
        let real = memory::decode(real.len(), || serde_json::from_str::<Vec<Arguments>>(&real)).unwrap();
        assert!(real.len() == 300_000 && !real.iter().any(has_truncated_value));
        assert!(!read(&format!("[{table}]"))[0].is_truncated(), "the limit applies to one document only");
    }

    #[test]
    fn levels_above_the_limit_are_truncated() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let read = |text: &str| serde_json::from_str::<ArgumentValue>(text).unwrap();
        let whole = read(&nested(MAX_LEVELS));
        assert!(!whole.is_truncated() && serde_json::to_string(&whole).unwrap() == nested(MAX_LEVELS));
        for levels in [MAX_LEVELS + 1, 5_000, 1_000_000] {
            assert!(read(&nested(levels)).is_truncated(), "{levels}");
        }
        let tables = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
        assert!(read(&tables).is_truncated());
        assert_eq!(read("18446744073709551615"), ArgumentValue::Float(Float(18_446_744_073_709_551_615.0)));
        assert_eq!(read(r#"[null,true,-1,1.5,"é"]"#).to_string(), "[null, true, -1, 1.5, é]");
    }
}
