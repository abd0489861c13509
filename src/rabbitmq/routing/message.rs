//! Defines messages, whose keys and headers can be partly unknown, and matches headers as a headers exchange does.

use super::keys::{Certainty, Keys};
use super::sender_selected::SenderSelected;
use crate::model::message_headers::BCC;
use crate::model::{ArgumentValue, Arguments, BrokerVersion};
use std::collections::BTreeMap;

/// The prefixes of headers that only the broker sets, when it dead-letters a message. Unknown headers of a message
/// never start with these prefixes.
const BROKER_HEADERS: [&str; 3] = ["x-death", "x-first-death-", "x-last-death-"];

/// The headers of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Headers {
    /// The known headers; `None` for an unknown value.
    known: BTreeMap<String, Option<ArgumentValue>>,
    /// True if the message has no headers other than the known headers.
    is_complete: bool,
}

impl Headers {
    /// Creates headers that are completely known.
    pub fn exactly(headers: &Arguments) -> Self {
        let known = headers.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
        Self { known, is_complete: true }
    }

    /// Creates unknown headers: any headers that a publisher can set.
    pub fn any() -> Self {
        Self { known: BTreeMap::new(), is_complete: false }
    }

    /// Returns true if the message is known to have a header.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Returns the value of a header. Returns `None` if the header is not known to exist, and `Some(None)` if its value
    /// is unknown.
    pub fn get(&self, name: &str) -> Option<Option<&ArgumentValue>> {
        self.known.get(name).map(Option::as_ref)
    }

    /// Removes the headers that the broker sets when it dead-letters a message.
    pub fn remove_deaths(&mut self) {
        self.known.retain(|name, _| !BROKER_HEADERS.iter().any(|prefix| name.starts_with(prefix)));
    }

    /// Removes a header.
    pub fn remove(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// Sets a header. `None` sets it to an unknown value.
    pub fn set(&mut self, name: &str, value: Option<ArgumentValue>) {
        self.known.insert(name.to_owned(), value);
    }

    /// Returns the certainty that a binding with these arguments matches the headers.
    ///
    /// A headers exchange compares headers that begin with `x-` only if `x-match` is `all-with-x` or `any-with-x`,
    /// which require RabbitMQ 3.10. The exchange never compares `x-match` itself (`rabbit_exchange_type_headers`, 3.8.9
    /// to 4.3.5).
    pub fn matches(&self, binding: &Arguments, version: BrokerVersion) -> Certainty {
        let (is_any, compared) = compared_headers(binding, version);
        let each = compared.map(|(name, desired)| self.has_value(name, desired, version));
        if is_any { each.max().unwrap_or(Certainty::Never) } else { each.min().unwrap_or(Certainty::Always) }
    }

    fn has_value(&self, name: &str, desired: &ArgumentValue, version: BrokerVersion) -> Certainty {
        match (self.known.get(name), desired) {
            (Some(_), ArgumentValue::Null) => Certainty::Always,
            (Some(Some(value)), desired) => is_same(value, desired, version),
            (Some(None), _) => Certainty::Perhaps,
            (None, _) if self.is_complete || BROKER_HEADERS.iter().any(|prefix| name.starts_with(prefix)) => {
                Certainty::Never
            }
            (None, _) => Certainty::Perhaps,
        }
    }
}

/// Returns true if one matching header suffices. Also returns the headers that the binding compares.
pub(super) fn compared_headers(
    binding: &Arguments,
    version: BrokerVersion,
) -> (bool, impl Iterator<Item = (&String, &ArgumentValue)>) {
    let mode = binding.get("x-match").and_then(ArgumentValue::as_text).unwrap_or("all");
    let with_x = mode.ends_with("-with-x") && version.is_at_least(3, 10);
    let is_compared = move |name: &str| name != "x-match" && (with_x || !name.starts_with("x-"));
    (mode.starts_with("any"), binding.iter().filter(move |(name, _)| is_compared(name)))
}

/// Returns the certainty that a headers exchange treats two values as equal. RabbitMQ 3.12 and earlier compare values
/// with `==`, so 1 equals 1.0. RabbitMQ 3.13 and later compare values with `=:=`.
pub(super) fn is_same(value: &ArgumentValue, desired: &ArgumentValue, version: BrokerVersion) -> Certainty {
    match (value, desired) {
        (ArgumentValue::Integer(whole), ArgumentValue::Float(float))
        | (ArgumentValue::Float(float), ArgumentValue::Integer(whole)) => {
            Certainty::of(!version.is_at_least(3, 13) && *whole as f64 == float.0)
        }
        // The result depends on the AMQP types of the nested values, which are unknown.
        (ArgumentValue::List(_), ArgumentValue::List(_)) | (ArgumentValue::Table(_), ArgumentValue::Table(_)) => {
            Certainty::Perhaps
        }
        (value, desired) => Certainty::of(value == desired),
    }
}

/// A message, or the set of all messages with these keys and headers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// The possible routing keys.
    pub keys: Keys,
    /// The additional routing keys.
    pub more_keys: SenderSelected,
    /// The headers.
    pub headers: Headers,
}

impl Message {
    /// Creates a message with one of these keys and any headers.
    pub fn with(keys: Keys) -> Self {
        Self { keys, more_keys: SenderSelected::default(), headers: Headers::any() }
    }

    /// Returns the certainty that at least one of the keys matches.
    pub(super) fn match_any(&self, certainty: impl Fn(&Keys) -> Certainty) -> Certainty {
        let more = self.more_keys.keys().map(|key| certainty(&Keys::One(key.to_owned())));
        more.fold(certainty(&self.keys), Ord::max)
    }

    /// Creates the message that an application publishes with this routing key and these headers. The broker removes
    /// the BCC header.
    pub fn published(routing_key: &str, headers: &Arguments) -> Self {
        let mut known = Headers::exactly(headers);
        known.remove(BCC);
        Self { keys: Keys::One(routing_key.to_owned()), more_keys: SenderSelected::of(headers), headers: known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Certainty::{Always, Never, Perhaps};

    fn arguments(of: &[(&str, &str)]) -> Arguments {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
    }

    #[test]
    fn x_headers_are_only_compared_with_x() {
        let version = BrokerVersion::new(4, 0, 5);
        let headers = Headers::exactly(&arguments(&[("region", "eu"), ("x-kind", "big")]));
        for (binding, expected) in [
            (&[][..], Always),
            (&[("x-match", "any")], Never),
            (&[("region", "eu")], Always),
            (&[("region", "eu"), ("x-kind", "small")], Always),
            (&[("region", "eu"), ("x-kind", "small"), ("x-match", "all-with-x")], Never),
            (&[("region", "us"), ("x-kind", "big"), ("x-match", "any")], Never),
            (&[("region", "us"), ("x-kind", "big"), ("x-match", "any-with-x")], Always),
        ] {
            assert_eq!(headers.matches(&arguments(binding), version), expected, "{binding:?}");
        }
    }

    #[test]
    fn unknown_headers_can_match_except_broker_headers() {
        let version = BrokerVersion::new(4, 0, 5);
        let matches = |binding: &[(&str, &str)]| Headers::any().matches(&arguments(binding), version);
        assert_eq!(matches(&[("region", "eu")]), Perhaps);
        assert_eq!(matches(&[]), Always);
        assert_eq!(matches(&[("x-last-death-reason", "expired"), ("x-match", "all-with-x")]), Never);
    }
}
