//! A binding: its identity is all of it, so there is nothing that could change in place.

use super::printable::clean;
use super::units::unmistakable;
use super::{Arguments, ExchangeName, ObjectId, QueueName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// From an exchange to a queue or another exchange, for a key and arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    /// Where messages come from.
    pub source: ExchangeName,
    /// Where they go.
    pub destination: Destination,
    /// May be empty.
    pub routing_key: String,
    /// For headers exchanges, mostly. Two bindings that differ only here are two bindings.
    pub arguments: Arguments,
}

/// The end of a binding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Destination {
    /// A queue.
    Queue(QueueName),
    /// Another exchange.
    Exchange(ExchangeName),
}

impl Destination {
    /// The name, whichever of the two it is.
    pub fn name(&self) -> &str {
        match self {
            Self::Queue(name) => name.as_str(),
            Self::Exchange(name) => name.as_str(),
        }
    }

    /// The object that it is.
    pub fn id(&self) -> ObjectId {
        match self {
            Self::Queue(name) => ObjectId::Queue(name.clone()),
            Self::Exchange(name) => ObjectId::Exchange(name.clone()),
        }
    }
}

impl Binding {
    /// Whether `GET /api/bindings/VHOST` fails for as long as this binding is there, and with it every plan.
    ///
    /// `rabbit_mgmt_format:pack_binding_props` appends the hash of the arguments with `++` to what `re:replace` made of
    /// the routing key, and that is an improper list when it replaced a `~` (seen live on 3.10.8: the POST answers 500,
    /// too, and the binding is there).
    pub fn breaks_the_list(&self) -> bool {
        // Nothing is behind a `~` at the end, and the list is a proper one.
        !self.arguments.is_empty() && self.routing_key.trim_end_matches('~').contains('~')
    }

    /// Whether it goes when this object goes.
    pub fn touches(&self, id: &ObjectId) -> bool {
        match id {
            ObjectId::Queue(name) => self.touches_queue(name),
            ObjectId::Exchange(name) => self.touches_exchange(name),
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => false,
        }
    }

    /// Whether it starts or ends at this queue.
    pub fn touches_queue(&self, queue: &QueueName) -> bool {
        matches!(&self.destination, Destination::Queue(name) if name == queue)
    }

    /// Whether it starts or ends at this exchange.
    pub fn touches_exchange(&self, exchange: &ExchangeName) -> bool {
        self.source == *exchange || matches!(&self.destination, Destination::Exchange(name) if name == exchange)
    }
}

/// `orders ─ order.# → orders.work`, with the arguments behind it when there are any.
impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ─ {} → {}", self.source, KeyAndArguments(self), clean(self.destination.name()))
    }
}

/// The middle of a binding: its key, or `""`, and its arguments.
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
                write!(f, "{}{}: {}", if index == 0 { "" } else { ", " }, clean(key), unmistakable(value))?;
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
    fn a_tilde_beside_arguments() {
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
            assert_eq!(binding.breaks_the_list(), expected, "{key}");
        }
    }
}
