//! The names of RabbitMQ objects. Vhosts, queues, exchanges, policies and users have different name types, so that a
//! queue name cannot be used as an exchange name.

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
            /// Creates a name from its unencoded form.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// Returns the unencoded name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        /// Writes the name for messages, with hidden characters escaped. Use [`Self::as_str`] for requests.
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
impl VhostName {
    /// Returns the empty name, which represents the cluster where a vhost name is required. No vhost has an empty name.
    pub fn cluster() -> Self {
        Self(String::new())
    }

    /// Returns true if the name represents the cluster.
    pub fn is_cluster(&self) -> bool {
        self.0.is_empty()
    }

    /// Describes the vhost or the cluster for messages: `vhost shop` or `cluster`.
    pub fn in_words(&self) -> String {
        if self.is_cluster() { "cluster".to_owned() } else { format!("vhost {self}") }
    }
}

name!(
    /// The name of a queue: 1 to 255 bytes of UTF-8 without CR or LF.
    QueueName
);
name!(
    /// The name of an exchange: 1 to 255 bytes of UTF-8 without CR or LF, or empty for the default exchange.
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

/// The maximum length of a name, in bytes. It is the maximum length of an AMQP short string.
pub const MAX_NAME_BYTES: usize = 255;

/// The vhost that exists on a new broker. The lock in this vhost also protects the cluster's records, unless
/// `--lock-vhost` sets a different vhost.
pub const DEFAULT_VHOST: &str = "/";

/// The exchange argument that marks a super stream.
pub const SUPER_STREAM: &str = "x-super-stream";
/// The binding argument that contains the position of a partition in its super stream.
pub const PARTITION_ORDER: &str = "x-stream-partition-order";

/// The queue that `topo apply` uses as its lock, unless `--lock-name` sets a different name.
pub const LOCK_QUEUE: &str = "topo.lock";

/// The suffix of the name that topo generates for a dead-letter queue's exchange. A spec can set a different name.
pub const DEAD_LETTER_EXCHANGE_SUFFIX: &str = ".dlx";

/// The prefix of arguments that mark topo's own objects. RabbitMQ stores unknown `x-` arguments without interpreting
/// them.
pub const OWN_ARGUMENT_PREFIX: &str = "x-topo-";

/// Returns true if topo reserves the name for its own objects. A spec cannot declare an object with a reserved name.
pub fn is_reserved(name: &str) -> bool {
    name == LOCK_QUEUE || name.contains(".topo.")
}

/// Returns a regular expression (PCRE) that matches only this name.
pub fn pattern_of(name: &str) -> String {
    let mut pattern = String::from("^");
    for c in name.chars() {
        // In PCRE, a backslash escapes a non-alphanumeric ASCII character. Before an alphanumeric character, a
        // backslash can have a special meaning. The broker matches bytes, so non-ASCII characters must not be escaped.
        if c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' && c != '-' {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('$');
    pattern
}

impl ExchangeName {
    /// Returns true for the default exchange, and for names with the `amq.` prefix. This prefix is reserved for the
    /// exchanges that the broker predeclares.
    pub fn is_predeclared(&self) -> bool {
        self.0.is_empty() || self.0.starts_with("amq.")
    }
}

impl QueueName {
    /// Returns true if the name is empty or has the `amq.` prefix, which is reserved for names that the broker
    /// generates, such as `amq.gen-…`.
    pub fn is_server_named(&self) -> bool {
        self.0.is_empty() || self.0.starts_with("amq.")
    }
}

/// Returns true if some brokers do not escape the name in their Prometheus metrics: it contains a double quote or a
/// backslash. Measured on 3.10 and 4.3.
pub fn breaks_metrics(name: &str) -> bool {
    name.contains(['"', '\\'])
}
