//! The reachability of a queue for dead-lettered messages.

use schemars::JsonSchema;
use serde::Serialize;

/// The reachability of a queue for dead-lettered messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// The broker drops all messages.
    Never,
    /// The result depends on the routing key, on the headers, or on bindings that the spec does not declare.
    Maybe,
    /// All messages arrive.
    Always,
}
