//! Definitions of queues in the three forms of the test: HTTP, AMQP and topo's model.

use std::collections::BTreeMap;

use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use serde_json::{Map, Value, json};
use topo::model::{Arguments, Queue};

/// A queue without its name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition {
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) arguments: Map<String, Value>,
}

/// The width of an integer in AMQP. HTTP uses only the last variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::live) enum Width {
    Short,
    Int,
    Long,
}

/// A definition, and the way in which it is declared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Live {
    pub(super) definition: Definition,
    /// The widths of integers, if they fit, in a declaration over AMQP; `None` for a declaration over HTTP.
    pub(super) widths: Option<BTreeMap<String, Width>>,
}

impl Definition {
    pub(super) fn durable(arguments: Map<String, Value>) -> Self {
        Self { durable: true, auto_delete: false, arguments }
    }

    /// Returns the body of a PUT.
    pub(super) fn body(&self) -> Value {
        json!({"durable": self.durable, "auto_delete": self.auto_delete, "arguments": self.arguments})
    }

    /// Returns the queue of topo's model.
    pub(super) fn queue(&self) -> Queue {
        let arguments: Arguments = serde_json::from_value(Value::Object(self.arguments.clone())).unwrap();
        Queue { durable: self.durable, auto_delete: self.auto_delete, exclusive: false, arguments }
    }

    /// Returns the options of an application's declaration.
    pub(super) fn options(&self) -> QueueDeclareOptions {
        QueueDeclareOptions { durable: self.durable, auto_delete: self.auto_delete, ..Default::default() }
    }

    /// Returns the arguments of a declaration over AMQP.
    pub(super) fn table(&self, widths: &BTreeMap<String, Width>) -> Vec<(&str, AMQPValue)> {
        let width = |name: &str| widths.get(name).copied().unwrap_or(Width::Long);
        self.arguments.iter().map(|(name, value)| (name.as_str(), on_the_wire(value, width(name)))).collect()
    }

    /// Returns true if HTTP cannot represent the definition, because it contains a null.
    pub(super) fn contains_null(&self) -> bool {
        fn null(value: &Value) -> bool {
            match value {
                Value::Null => true,
                Value::Array(values) => values.iter().any(null),
                Value::Object(table) => table.values().any(null),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            }
        }
        self.arguments.values().any(null)
    }
}

pub(in crate::live) fn on_the_wire(value: &Value, width: Width) -> AMQPValue {
    match value {
        Value::Null => AMQPValue::Void,
        Value::Bool(value) => AMQPValue::Boolean(*value),
        Value::Number(number) => match (number.as_i64(), width) {
            (Some(whole), Width::Short) => {
                i16::try_from(whole).map_or(AMQPValue::LongLongInt(whole), AMQPValue::ShortInt)
            }
            (Some(whole), Width::Int) => i32::try_from(whole).map_or(AMQPValue::LongLongInt(whole), AMQPValue::LongInt),
            (Some(whole), Width::Long) => AMQPValue::LongLongInt(whole),
            (None, _) => AMQPValue::Double(number.as_f64().unwrap()),
        },
        Value::String(text) => AMQPValue::LongString(text.as_str().into()),
        Value::Array(values) => {
            let values: Vec<AMQPValue> = values.iter().map(|value| on_the_wire(value, Width::Long)).collect();
            AMQPValue::FieldArray(FieldArray::from(values))
        }
        Value::Object(table) => {
            let mut fields = FieldTable::default();
            for (name, value) in table {
                fields.insert(name.as_str().into(), on_the_wire(value, Width::Long));
            }
            AMQPValue::FieldTable(fields)
        }
    }
}
