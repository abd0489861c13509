//! The table of the arguments of exchanges: those of the broker itself and of the bundled plugins.
//!
//! When an exchange is redeclared, every exchange type compares only `alternate-exchange`, including the types of
//! plugins: all of them use `rabbit_exchange:assert_args_equivalence` (3.8 to 4.3). The only exception is the internal
//! type of federation. The other arguments are read when the exchange is created, or for each message. They change only
//! with the exchange. Sources: `validate/1`, `create/2` and `route/3` of `rabbit_exchange_type_*`, 3.8 to 4.3. The
//! types `direct`, `fanout`, `topic`, `headers`, `x-random`, `x-local-random`, `x-modulus-hash`, `x-jms-topic` and
//! `x-event` read no argument of their own.

use super::argument::{ANY, ValueKind, Versions};

/// One argument of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct KnownExchangeArgument {
    /// The name on the wire, for example `hash-header`.
    pub name: &'static str,
    /// The key in a spec; `None` if it is set under `arguments`.
    pub key: Option<&'static str>,
    /// The exchange types that read it; empty for all.
    pub exchange_types: &'static [&'static str],
    /// The valid values.
    pub value: ValueKind,
    /// The versions that support it.
    pub taken: Versions,
    /// True if the broker compares the argument when the exchange is redeclared.
    pub is_compared: bool,
    /// True if the broker rejects a declaration with an invalid [`value`](Self::value).
    pub is_checked: bool,
    /// The policy key with the same effect, if there is one.
    pub policy_key: Option<&'static str>,
    /// The documentation: one sentence.
    pub doc: &'static str,
}

const CONSISTENT_HASH: &[&str] = &["x-consistent-hash"];

/// All arguments.
pub const EXCHANGE_ARGUMENTS: &[KnownExchangeArgument] = &[
    KnownExchangeArgument {
        name: "alternate-exchange",
        key: Some("alternateExchange"),
        exchange_types: &[],
        value: ValueKind::Text,
        taken: Versions::ALL,
        is_compared: true,
        is_checked: true,
        policy_key: Some("alternate-exchange"),
        doc: "The exchange that receives messages that this one cannot route; it need not exist.",
    },
    KnownExchangeArgument {
        name: "hash-header",
        key: None,
        exchange_types: CONSISTENT_HASH,
        value: ValueKind::Text,
        taken: Versions::ALL,
        is_compared: false,
        is_checked: false,
        policy_key: None,
        doc: "The header whose value is hashed instead of the routing key; not together with `hash-property`.",
    },
    KnownExchangeArgument {
        name: "hash-property",
        key: None,
        exchange_types: CONSISTENT_HASH,
        value: ValueKind::OneOf(&["correlation_id", "message_id", "timestamp"]),
        taken: Versions::ALL,
        is_compared: false,
        is_checked: true,
        policy_key: None,
        doc: "The property of a message that is hashed instead of the routing key; not together with `hash-header`.",
    },
    KnownExchangeArgument {
        name: "x-recent-history-length",
        key: None,
        exchange_types: &["x-recent-history"],
        value: ValueKind::Count(1, ANY),
        taken: Versions::ALL,
        is_compared: false,
        is_checked: true,
        policy_key: None,
        doc: "The number of messages that a newly bound queue gets; 20 by default.",
    },
    KnownExchangeArgument {
        name: "x-super-stream",
        key: None,
        exchange_types: &["direct"],
        value: ValueKind::Boolean,
        taken: Versions::since(3, 10),
        is_compared: false,
        is_checked: false,
        policy_key: None,
        doc: "Set by rabbitmq_stream on the exchange of a super stream.",
    },
    // Compared by `rabbit_federation_upstream_exchange`, in all versions.
    KnownExchangeArgument {
        name: "x-max-hops",
        key: None,
        exchange_types: &["x-federation-upstream"],
        value: ValueKind::Count(1, ANY),
        taken: Versions::ALL,
        is_compared: true,
        is_checked: false,
        policy_key: None,
        doc: "The maximum number of hops; federation sets it on its internal exchanges.",
    },
    // Of a plugin that is not bundled but widely used (rabbitmq-delayed-message-exchange).
    KnownExchangeArgument {
        name: "x-delayed-type",
        key: None,
        exchange_types: &["x-delayed-message"],
        value: ValueKind::Text,
        taken: Versions::ALL,
        is_compared: false,
        is_checked: true,
        policy_key: None,
        doc: "The exchange type that routes a message after its delay.",
    },
];

impl KnownExchangeArgument {
    /// Returns the argument with this name on the wire.
    pub fn named(name: &str) -> Option<&'static Self> {
        EXCHANGE_ARGUMENTS.iter().find(|known| known.name == name)
    }

    /// Returns true if exchanges of this type read the argument.
    pub fn is_read_by(&self, exchange_type: &str) -> bool {
        self.exchange_types.is_empty() || self.exchange_types.contains(&exchange_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redeclare_compares_only_the_alternate_exchange() {
        let compared = EXCHANGE_ARGUMENTS.iter().filter(|known| known.is_compared && known.is_read_by("topic"));
        assert_eq!(compared.map(|known| known.name).collect::<Vec<_>>(), ["alternate-exchange"]);
        let hash = KnownExchangeArgument::named("hash-header").unwrap();
        assert!(hash.is_read_by("x-consistent-hash") && !hash.is_read_by("topic"));
    }
}
