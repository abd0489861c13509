//! The table of known exchange arguments: the arguments from the broker itself, from the bundled plugins, and from one
//! widely used plugin.
//!
//! When an exchange is redeclared, every exchange type compares only `alternate-exchange`. This includes plugin types,
//! because all types use `rabbit_exchange:assert_args_equivalence` (3.8 to 4.3). The only exception is
//! `x-federation-upstream`, the internal exchange type of federation. An exchange reads its other arguments when it is
//! created, or for each message. These arguments can change only if the exchange is recreated. Sources: `validate/1`,
//! `create/2` and `route/3` of `rabbit_exchange_type_*`, 3.8 to 4.3. The types `direct`, `fanout`, `topic`, `headers`,
//! `x-random`, `x-local-random`, `x-modulus-hash`, `x-jms-topic` and `x-event` read no arguments of their own.

use super::argument::{ANY, ValueKind, Versions};

/// An exchange argument.
#[derive(Clone, Copy, Debug)]
pub struct KnownExchangeArgument {
    /// The name on the wire, for example `hash-header`.
    pub name: &'static str,
    /// The key in a spec; `None` if a spec sets the argument under `arguments`.
    pub key: Option<&'static str>,
    /// The exchange types for which the argument is meaningful; empty if it is meaningful for all types.
    pub exchange_types: &'static [&'static str],
    /// The valid values.
    pub value: ValueKind,
    /// The versions that support the argument.
    pub accepted: Versions,
    /// True if the broker compares the argument when the exchange is redeclared.
    pub is_compared: bool,
    /// True if the broker rejects a declaration with an invalid [`value`](Self::value).
    pub is_checked: bool,
    /// The policy key with the same effect, if there is one.
    pub policy_key: Option<&'static str>,
    /// The documentation, in Markdown.
    pub doc: &'static str,
}

const CONSISTENT_HASH: &[&str] = &["x-consistent-hash"];

/// All known exchange arguments.
pub const EXCHANGE_ARGUMENTS: &[KnownExchangeArgument] = &[
    KnownExchangeArgument {
        name: "alternate-exchange",
        key: Some("alternateExchange"),
        exchange_types: &[],
        value: ValueKind::Text,
        accepted: Versions::ALL,
        is_compared: true,
        is_checked: true,
        policy_key: Some("alternate-exchange"),
        doc: "The exchange that receives messages that this exchange cannot route. The alternate exchange does not have \
              to exist.",
    },
    KnownExchangeArgument {
        name: "hash-header",
        key: None,
        exchange_types: CONSISTENT_HASH,
        value: ValueKind::Text,
        accepted: Versions::ALL,
        is_compared: false,
        is_checked: false,
        policy_key: None,
        doc: "The header whose value is hashed instead of the routing key; cannot be combined with `hash-property`.",
    },
    KnownExchangeArgument {
        name: "hash-property",
        key: None,
        exchange_types: CONSISTENT_HASH,
        value: ValueKind::OneOf(&["correlation_id", "message_id", "timestamp"]),
        accepted: Versions::ALL,
        is_compared: false,
        is_checked: true,
        policy_key: None,
        doc: "The message property that is hashed instead of the routing key; cannot be combined with `hash-header`.",
    },
    KnownExchangeArgument {
        name: "x-recent-history-length",
        key: None,
        exchange_types: &["x-recent-history"],
        value: ValueKind::Count(1, ANY),
        accepted: Versions::ALL,
        is_compared: false,
        is_checked: true,
        policy_key: None,
        doc: "The number of messages that a newly bound queue receives; 20 by default.",
    },
    KnownExchangeArgument {
        name: "x-super-stream",
        key: None,
        exchange_types: &["direct"],
        value: ValueKind::Boolean,
        accepted: Versions::since(3, 10),
        is_compared: false,
        is_checked: false,
        policy_key: None,
        doc: "The argument that the `rabbitmq_stream` plugin sets on the exchange of a super stream.",
    },
    // `rabbit_federation_upstream_exchange` compares this argument, in all versions.
    KnownExchangeArgument {
        name: "x-max-hops",
        key: None,
        exchange_types: &["x-federation-upstream"],
        value: ValueKind::Count(1, ANY),
        accepted: Versions::ALL,
        is_compared: true,
        is_checked: false,
        policy_key: None,
        doc: "The maximum number of hops; federation sets it on its internal exchanges.",
    },
    // An argument of rabbitmq-delayed-message-exchange, a widely used plugin that is not bundled.
    KnownExchangeArgument {
        name: "x-delayed-type",
        key: None,
        exchange_types: &["x-delayed-message"],
        value: ValueKind::Text,
        accepted: Versions::ALL,
        is_compared: false,
        is_checked: true,
        policy_key: None,
        doc: "The exchange type that routes a message after its delay.",
    },
];

impl KnownExchangeArgument {
    /// Returns the argument with this name on the wire; `None` for an unknown name.
    pub fn named(name: &str) -> Option<&'static Self> {
        EXCHANGE_ARGUMENTS.iter().find(|known| known.name == name)
    }

    /// Returns true if the argument is meaningful for exchanges of this type.
    pub fn is_read_by(&self, exchange_type: &str) -> bool {
        self.exchange_types.is_empty() || self.exchange_types.contains(&exchange_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redeclaration_compares_only_the_alternate_exchange() {
        let compared = EXCHANGE_ARGUMENTS.iter().filter(|known| known.is_compared && known.is_read_by("topic"));
        assert_eq!(compared.map(|known| known.name).collect::<Vec<_>>(), ["alternate-exchange"]);
        let hash = KnownExchangeArgument::named("hash-header").unwrap();
        assert!(hash.is_read_by("x-consistent-hash") && !hash.is_read_by("topic"));
    }
}
