//! Messages with their headers, which can be partly unknown, and how a headers exchange matches them.

use super::keys::{Certainty, Keys};
use crate::model::{ArgumentValue, Arguments, BrokerVersion};
use std::collections::BTreeMap;

/// The prefixes of headers that only the broker sets, when it dead-letters a message. They are absent unless they are known.
const OF_THE_BROKER: [&str; 3] = ["x-death", "x-first-death-", "x-last-death-"];

/// The headers of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Headers {
    /// The known headers; `None` for an unknown value.
    known: BTreeMap<String, Option<ArgumentValue>>,
    /// True if there are no other headers.
    are_all: bool,
}

impl Headers {
    /// Creates headers that are known completely.
    pub fn exactly(headers: &Arguments) -> Self {
        let known = headers.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
        Self { known, are_all: true }
    }

    /// Creates unknown headers of a publisher.
    pub fn any() -> Self {
        Self { known: BTreeMap::new(), are_all: false }
    }

    /// Returns true if a header is known to exist.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Sets a header; `None` for an unknown value.
    pub(super) fn set(&mut self, name: &str, value: Option<ArgumentValue>) {
        self.known.insert(name.to_owned(), value);
    }

    /// Returns the certainty that they match a binding with these arguments.
    ///
    /// `rabbit_exchange_type_headers`, 3.8.9 to 4.3.5: names that begin with `x-` are only compared with `…-with-x`, which exists
    /// since 3.10, and `x-match` itself is never compared.
    pub fn matches(&self, binding: &Arguments, version: BrokerVersion) -> Certainty {
        let mode = binding.get("x-match").and_then(ArgumentValue::as_text).unwrap_or("all");
        let with_x = mode.ends_with("-with-x") && version.is_at_least(3, 10);
        let is_compared = |name: &str| name != "x-match" && (with_x || !name.starts_with("x-"));
        let each = binding
            .iter()
            .filter(|(name, _)| is_compared(name))
            .map(|(name, desired)| self.has_value(name, desired, version));
        if mode.starts_with("any") {
            each.max().unwrap_or(Certainty::Never)
        } else {
            each.min().unwrap_or(Certainty::Always)
        }
    }

    fn has_value(&self, name: &str, desired: &ArgumentValue, version: BrokerVersion) -> Certainty {
        match (self.known.get(name), desired) {
            (Some(_), ArgumentValue::Null) => Certainty::Always,
            (Some(Some(value)), desired) => is_same(value, desired, version),
            (Some(None), _) => Certainty::Perhaps,
            (None, _) if self.are_all || OF_THE_BROKER.iter().any(|own| name.starts_with(own)) => Certainty::Never,
            (None, _) => Certainty::Perhaps,
        }
    }
}

/// Returns the certainty that two values are equal for a headers exchange: `==` up to 3.12, where 1 equals 1.0, and `=:=` since
/// 3.13.
fn is_same(value: &ArgumentValue, desired: &ArgumentValue, version: BrokerVersion) -> Certainty {
    match (value, desired) {
        (ArgumentValue::Integer(whole), ArgumentValue::Float(float))
        | (ArgumentValue::Float(float), ArgumentValue::Integer(whole)) => {
            Certainty::of(!version.is_at_least(3, 13) && *whole as f64 == float.0)
        }
        // The AMQP types of nested values matter, and they are unknown.
        (ArgumentValue::List(_), ArgumentValue::List(_)) | (ArgumentValue::Table(_), ArgumentValue::Table(_)) => {
            Certainty::Perhaps
        }
        (value, desired) => Certainty::of(value == desired),
    }
}

/// A message, or all messages with these keys and headers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// The routing keys.
    pub keys: Keys,
    /// The headers.
    pub headers: Headers,
}

impl Message {
    /// Creates a message with one of these keys and any headers.
    pub fn with(keys: Keys) -> Self {
        Self { keys, headers: Headers::any() }
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
    fn unknown_headers_can_match_except_those_of_the_broker() {
        let version = BrokerVersion::new(4, 0, 5);
        let matches = |binding: &[(&str, &str)]| Headers::any().matches(&arguments(binding), version);
        assert_eq!(matches(&[("region", "eu")]), Perhaps);
        assert_eq!(matches(&[]), Always);
        assert_eq!(matches(&[("x-last-death-reason", "expired"), ("x-match", "all-with-x")]), Never);
    }
}
