//! Converts arguments to an AMQP field table, with the types that the broker assigns to the same values over HTTP.
//! Integers are `long`, other numbers `double`, and strings `longstr`. Void is supported, too, which HTTP cannot carry.

use crate::model::{ArgumentValue, Arguments};
use lapin::types::{AMQPValue, FieldTable};

/// Converts arguments to a table.
pub(super) fn table(arguments: &Arguments) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, argument) in arguments {
        table.insert(name.as_str().into(), value(argument));
    }
    table
}

fn value(argument: &ArgumentValue) -> AMQPValue {
    match argument {
        ArgumentValue::Null => AMQPValue::Void,
        ArgumentValue::Boolean(value) => AMQPValue::Boolean(*value),
        ArgumentValue::Integer(value) => AMQPValue::LongLongInt(*value),
        ArgumentValue::Float(value) => AMQPValue::Double(value.0),
        ArgumentValue::Text(value) => AMQPValue::LongString(value.as_str().into()),
        ArgumentValue::List(values) => AMQPValue::FieldArray(values.iter().map(value).collect::<Vec<_>>().into()),
        ArgumentValue::Table(values) => AMQPValue::FieldTable(table(values)),
    }
}
