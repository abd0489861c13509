//! The places in a spec that set the arguments of an object, for precise advice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The place in a spec that sets a value of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SetIn {
    /// The key of the object.
    Key,
    /// The `arguments` of the object.
    Arguments,
    /// A key of the document's `defaults.queue` or `defaults`, on this line.
    Defaults(usize),
    /// `defaults.queue.arguments`, on this line.
    DefaultArguments(usize),
}

/// The places that set each argument, by argument name; the effective place first. Arguments that only a key of the
/// object sets are omitted.
pub type Places = BTreeMap<String, Vec<SetIn>>;
