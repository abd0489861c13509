//! Converts arguments to AMQP field tables.
//!
//! By default, values have the types that the broker assigns over HTTP: `long` for integers, `double` for other
//! numbers, and `longstr` for strings. Void, which HTTP cannot represent, is also supported.
//!
//! A binding from another client may have other types. The management API shows a timestamp, a short and a long as the
//! same number, and a void as the string `undefined`. It never shows the types, but a binding's properties key is a
//! hash that depends on the types. topo therefore binds with one combination of types after another until the keys
//! match.

use super::amqp::AmqpTransport;
use super::connection::short;
use crate::broker::error::BrokerError;
use crate::model::{ArgumentValue, Arguments, Binding, Destination};
use lapin::options::{ExchangeBindOptions, QueueBindOptions};
use lapin::types::{AMQPValue, FieldTable};

/// The AMQP types of a binding's numbers, and of the string `undefined`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typing {
    integers: Integers,
    /// True if the string `undefined` is a void.
    is_void: bool,
    /// True if numbers that are not integers have single precision.
    is_single: bool,
}

/// The type of all integers in a binding's arguments. The variants are in the order in which topo tries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Integers {
    Signed32,
    Timestamp,
    Signed16,
    Signed8,
    Signed64,
    Unsigned8,
    Unsigned16,
    Unsigned32,
}

impl Typing {
    /// Returns all combinations of types to try for these arguments, including the types that the broker assigns over
    /// HTTP.
    pub fn all(arguments: &Arguments) -> Vec<Self> {
        use Integers::{Signed8, Signed16, Signed32, Signed64, Timestamp, Unsigned8, Unsigned16, Unsigned32};
        let has = |predicate: fn(&ArgumentValue) -> bool| arguments.values().any(predicate);
        let integers: &[Integers] = match has(|value| matches!(value, ArgumentValue::Integer(_))) {
            true => &[Signed32, Timestamp, Signed16, Signed8, Signed64, Unsigned8, Unsigned16, Unsigned32],
            false => &[Signed64],
        };
        let either = |open: bool| if open { &[false, true][..] } else { &[false][..] };
        let voids = either(has(|value| value.as_text() == Some("undefined")));
        let singles = either(has(|value| matches!(value, ArgumentValue::Float(_))));
        let mut all = Vec::new();
        for integers in integers {
            for is_void in voids {
                all.extend(singles.iter().map(|is_single| Self {
                    integers: *integers,
                    is_void: *is_void,
                    is_single: *is_single,
                }));
            }
        }
        all
    }

    /// Returns the arguments as a table; `None` if a value does not fit its type.
    fn table(self, arguments: &Arguments) -> Option<FieldTable> {
        let mut table = FieldTable::default();
        for (name, argument) in arguments {
            table.insert(name.as_str().into(), self.value(argument)?);
        }
        Some(table)
    }

    fn value(self, argument: &ArgumentValue) -> Option<AMQPValue> {
        Some(match argument {
            ArgumentValue::Null => AMQPValue::Void,
            ArgumentValue::Boolean(value) => AMQPValue::Boolean(*value),
            ArgumentValue::Integer(value) => match self.integers {
                Integers::Signed8 => AMQPValue::ShortShortInt((*value).try_into().ok()?),
                Integers::Unsigned8 => AMQPValue::ShortShortUInt((*value).try_into().ok()?),
                Integers::Signed16 => AMQPValue::ShortInt((*value).try_into().ok()?),
                Integers::Unsigned16 => AMQPValue::ShortUInt((*value).try_into().ok()?),
                Integers::Signed32 => AMQPValue::LongInt((*value).try_into().ok()?),
                Integers::Unsigned32 => AMQPValue::LongUInt((*value).try_into().ok()?),
                Integers::Signed64 => AMQPValue::LongLongInt(*value),
                Integers::Timestamp => AMQPValue::Timestamp((*value).try_into().ok()?),
            },
            #[expect(clippy::cast_possible_truncation, reason = "the conversion to single precision is intentional")]
            ArgumentValue::Float(value) if self.is_single => AMQPValue::Float(value.0 as f32),
            ArgumentValue::Float(value) => AMQPValue::Double(value.0),
            ArgumentValue::Text(value) if self.is_void && value == "undefined" => AMQPValue::Void,
            ArgumentValue::Text(value) => AMQPValue::LongString(value.as_str().into()),
            ArgumentValue::List(values) => {
                let values: Option<Vec<AMQPValue>> = values.iter().map(|value| self.value(value)).collect();
                AMQPValue::FieldArray(values?.into())
            }
            ArgumentValue::Table(values) => AMQPValue::FieldTable(self.table(values)?),
        })
    }
}

impl AmqpTransport {
    /// Creates a binding with these types. Returns false without sending a request if a value does not fit its type.
    pub async fn bind_as(&self, binding: &Binding, typing: Typing) -> Result<bool, BrokerError> {
        let Some(arguments) = typing.table(&binding.arguments) else { return Ok(false) };
        let channel = self.0.channel().await?;
        let (source, key) = (short(binding.source.as_str()), short(&binding.routing_key));
        let request = format!("bind of {binding}");
        match &binding.destination {
            Destination::Queue(queue) => {
                let options = QueueBindOptions::default();
                let bind = channel.queue_bind(short(queue.as_str()), source, key, options, arguments);
                self.0.answer(&request, bind).await?;
            }
            Destination::Exchange(exchange) => {
                let options = ExchangeBindOptions::default();
                let bind = channel.exchange_bind(short(exchange.as_str()), source, key, options, arguments);
                self.0.answer(&request, bind).await?;
            }
        }
        // The binding already exists, so errors while the channel closes are ignored.
        let _ = channel.close(200, "done".into()).await;
        Ok(true)
    }
}

/// Converts arguments to a table with the default types.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fitting_types_are_tried() {
        let arguments = |value: ArgumentValue| -> Arguments { [("n".to_owned(), value)].into() };
        assert_eq!(Typing::all(&arguments("a".into())).len(), 1);
        assert_eq!(Typing::all(&arguments("undefined".into())).len(), 2);
        let big = arguments(5_000_000_000_i64.into());
        let fitting = Typing::all(&big).into_iter().filter(|typing| typing.table(&big).is_some());
        // A timestamp and a long.
        assert_eq!(fitting.count(), 2);
    }
}
