//! Whether messages arrive in a queue.

use schemars::JsonSchema;
use serde::Serialize;

/// Whether dead-lettered messages arrive in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// The broker drops all of them.
    Never,
    /// It depends on the key, on the headers, or on bindings that the spec does not declare.
    Maybe,
    /// All of them arrive.
    Always,
}
