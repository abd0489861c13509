//! Bindings, which are identified by all of their fields. Therefore, no field of a binding can change in place.

use super::arguments::Arguments;
use super::names::{ExchangeName, QueueName};
use super::printable::clean;
use super::units::value_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A binding from an exchange to a queue or another exchange.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    /// The exchange whose messages the binding routes.
    pub source: ExchangeName,
    /// The queue or exchange that receives the messages.
    pub destination: Destination,
    /// The routing key; can be empty.
    pub routing_key: String,
    /// The arguments, mostly for headers exchanges. Bindings with different arguments are different bindings.
    pub arguments: Arguments,
}

/// The destination of a binding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Destination {
    /// A queue.
    Queue(QueueName),
    /// An exchange.
    Exchange(ExchangeName),
}

impl Destination {
    /// Returns the name of the queue or exchange.
    pub fn name(&self) -> &str {
        match self {
            Self::Queue(name) => name.as_str(),
            Self::Exchange(name) => name.as_str(),
        }
    }
}

impl Binding {
    /// Returns true if `GET /api/bindings/VHOST` fails while this binding exists. topo cannot plan without this list.
    ///
    /// `rabbit_mgmt_format:pack_binding_props` escapes each `~` in the routing key with `re:replace`, and appends the
    /// hash of the arguments to the result with `++`. `re:replace` can return an improper list, for which `++` fails.
    /// On RabbitMQ 3.10.8, the POST that creates the binding also returns 500.
    pub fn breaks_bindings_list(&self) -> bool {
        // The list is proper if the key contains `~` only at its end.
        !self.arguments.is_empty() && self.routing_key.trim_end_matches('~').contains('~')
    }

    /// Returns true if the queue is the destination of the binding.
    pub fn leads_to_queue(&self, queue: &QueueName) -> bool {
        matches!(&self.destination, Destination::Queue(name) if name == queue)
    }

    /// Returns true if the exchange is the source or the destination of the binding.
    pub fn touches_exchange(&self, exchange: &ExchangeName) -> bool {
        self.source == *exchange || matches!(&self.destination, Destination::Exchange(name) if name == exchange)
    }
}

/// Writes `orders ─ order.# → orders.work`. Arguments follow the routing key.
impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ─ {} → {}", self.source, KeyAndArguments(self), clean(self.destination.name()))
    }
}

/// The routing key and the arguments of a binding, for display. An empty routing key is omitted if the binding has
/// arguments, and otherwise written as `""`.
pub struct KeyAndArguments<'a>(pub &'a Binding);

impl fmt::Display for KeyAndArguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { routing_key, arguments, .. } = self.0;
        if !routing_key.is_empty() {
            f.write_str(&clean(routing_key))?;
        } else if arguments.is_empty() {
            f.write_str("\"\"")?;
        }
        if !arguments.is_empty() {
            f.write_str(if routing_key.is_empty() { "{" } else { " {" })?;
            for (index, (key, value)) in arguments.iter().enumerate() {
                write!(f, "{}{}: {}", if index == 0 { "" } else { ", " }, clean(key), value_text(value))?;
            }
            f.write_str("}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tilde_before_another_character_breaks_the_list() {
        let some: Arguments = [("n".to_owned(), 1.into())].into();
        for (key, arguments, expected) in [
            ("a~b", &some, true),
            ("~b", &some, true),
            ("~", &some, false),
            ("ab", &some, false),
            ("a~b", &Arguments::new(), false),
        ] {
            let binding = Binding {
                source: "e".into(),
                destination: Destination::Queue("q".into()),
                routing_key: key.to_owned(),
                arguments: arguments.clone(),
            };
            assert_eq!(binding.breaks_bindings_list(), expected, "{key}");
        }
    }
}
