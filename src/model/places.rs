//! Where a spec says the arguments of an object, for advice that can be followed to the letter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a spec says a value of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SetIn {
    /// By its own key.
    Key,
    /// In its own `arguments`.
    Arguments,
    /// By a key of the document's `defaults.queue`, or `defaults`, on that line.
    Defaults(usize),
    /// In `defaults.queue.arguments`, on that line.
    DefaultArguments(usize),
}

/// By the names of arguments, all places that say one, the one that holds first. What only a key of the object itself
/// says is left out.
pub type Places = BTreeMap<String, Vec<SetIn>>;
