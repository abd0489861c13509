//! The names of RabbitMQ's objects, each a type of its own, so that a queue name cannot be used as an exchange name.

use super::printable::clean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The unencoded name.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// The unencoded name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        /// The name as a sentence shows it, with hidden characters escaped. What the broker is sent is [`Self::as_str`].
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&clean(&self.0))
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.to_owned())
            }
        }
    };
}

name!(
    /// The name of a virtual host, for example `/` or `shop`.
    VhostName
);
name!(
    /// The name of a queue: 1 to 255 bytes of UTF-8 without CR or LF.
    QueueName
);
name!(
    /// The name of an exchange: 1 to 255 bytes of UTF-8 without CR or LF; empty is the default exchange.
    ExchangeName
);
name!(
    /// The name of a policy.
    PolicyName
);

name!(
    /// The name of a user.
    UserName
);

/// The longest name that the broker takes, in bytes: an AMQP short string.
pub const LONGEST_NAME: usize = 255;

/// The queue whose existence is the lock of an apply, unless `--lock-name` says otherwise.
pub const LOCK_QUEUE: &str = "topo.lock";

/// What follows the name of a dead-letter queue in that of its exchange, unless the spec names the exchange.
pub const DEAD_LETTER_EXCHANGE_SUFFIX: &str = ".dlx";

/// Arguments that start so mark what topo made for itself: unknown `x-` arguments are kept by every broker.
pub const OWN_ARGUMENT_PREFIX: &str = "x-topo-";

/// Whether a name is one that topo gives to its own objects: a spec cannot declare it.
pub fn is_reserved(name: &str) -> bool {
    name == LOCK_QUEUE || name.contains(".topo.")
}

/// The pattern that matches an object of this name and no other.
pub fn pattern_of(name: &str) -> String {
    let mut pattern = String::from("^");
    for c in name.chars() {
        // PCRE takes a backslash before whatever is neither letter nor digit as the character itself; before one that
        // is, it would be a class. The broker matches bytes, so nothing beyond ASCII may be escaped.
        if c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' && c != '-' {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('$');
    pattern
}

impl ExchangeName {
    /// Whether the broker made it itself: the default exchange, and `amq.*`.
    pub fn is_predeclared(&self) -> bool {
        self.0.is_empty() || self.0.starts_with("amq.")
    }
}

impl QueueName {
    /// Whether the name is reserved: `amq.gen-…` and the like are named by the server.
    pub fn is_server_named(&self) -> bool {
        self.0.is_empty() || self.0.starts_with("amq.")
    }
}
