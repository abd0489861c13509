//! Headers that are known, partly known or not at all, and what a headers exchange makes of them.

use super::Certainty;
use crate::model::{ArgumentValue, Arguments, BrokerVersion};
use std::collections::BTreeMap;

/// What the broker alone writes, when a message dies: absent unless it is known.
const OF_THE_BROKER: [&str; 3] = ["x-death", "x-first-death-", "x-last-death-"];

/// The headers of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Headers {
    /// `None`: it is there, with any value.
    known: BTreeMap<String, Option<ArgumentValue>>,
    /// Whether there are no others.
    are_all: bool,
}

impl Headers {
    /// These, and no others.
    pub fn exactly(headers: &Arguments) -> Self {
        let known = headers.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
        Self { known, are_all: true }
    }

    /// Whatever a publisher writes.
    pub fn any() -> Self {
        Self { known: BTreeMap::new(), are_all: false }
    }

    /// Whether this one is known to be there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// With one more; `None` is any value.
    pub(super) fn set(&mut self, name: &str, value: Option<ArgumentValue>) {
        self.known.insert(name.to_owned(), value);
    }

    /// Whether a headers exchange takes them for a binding with these arguments.
    ///
    /// `rabbit_exchange_type_headers`, 3.8.9 to 4.3.5: names that begin with `x-` count for `…-with-x` only, which is there
    /// since 3.10, and `x-match` itself never.
    pub fn matches(&self, binding: &Arguments, version: BrokerVersion) -> Certainty {
        let how = binding.get("x-match").and_then(ArgumentValue::as_text).unwrap_or("all");
        let with_x = how.ends_with("-with-x") && version.is_at_least(3, 10);
        let counts = |name: &str| name != "x-match" && (with_x || !name.starts_with("x-"));
        let each = binding
            .iter()
            .filter(|(name, _)| counts(name))
            .map(|(name, desired)| self.has_value(name, desired, version));
        if how.starts_with("any") {
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

/// Whether two values are the same to a headers exchange: `==` up to 3.12, where 1 is 1.0, and `=:=` since.
fn is_same(value: &ArgumentValue, desired: &ArgumentValue, version: BrokerVersion) -> Certainty {
    match (value, desired) {
        (ArgumentValue::Integer(whole), ArgumentValue::Float(float))
        | (ArgumentValue::Float(float), ArgumentValue::Integer(whole)) => {
            Certainty::of(!version.is_at_least(3, 13) && *whole as f64 == float.0)
        }
        // Inside, the types on the wire count, which are not known.
        (ArgumentValue::List(_), ArgumentValue::List(_)) | (ArgumentValue::Table(_), ArgumentValue::Table(_)) => {
            Certainty::Perhaps
        }
        (value, desired) => Certainty::of(value == desired),
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
    fn what_begins_with_x_counts_only_where_it_is_said() {
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
    fn unknown_headers_may_match_but_for_those_of_the_broker() {
        let version = BrokerVersion::new(4, 0, 5);
        let matches = |binding: &[(&str, &str)]| Headers::any().matches(&arguments(binding), version);
        assert_eq!(matches(&[("region", "eu")]), Perhaps);
        assert_eq!(matches(&[]), Always);
        assert_eq!(matches(&[("x-last-death-reason", "expired"), ("x-match", "all-with-x")]), Never);
    }
}
