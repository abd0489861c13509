//! An exchange as the broker stores it.

use super::Arguments;
use super::names::OWN_ARGUMENT_PREFIX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An exchange without its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Exchange {
    /// `direct`, `fanout`, `topic`, `headers`, or the type of a plugin such as `x-consistent-hash`.
    #[serde(rename = "type")]
    pub kind: String,
    /// True if it survives a restart of the broker.
    pub durable: bool,
    /// True if the broker deletes it with its last binding.
    pub auto_delete: bool,
    /// True if only other exchanges can publish to it.
    pub internal: bool,
    /// The arguments. On a redeclare, the broker compares only `alternate-exchange`.
    pub arguments: Arguments,
}

impl Exchange {
    /// Returns the exchange for messages that this one cannot route, if an argument sets it.
    pub fn alternate_exchange(&self) -> Option<&str> {
        self.arguments.get("alternate-exchange").and_then(|value| value.as_text())
    }

    /// Returns true if topo created it for its own use, such as a tap. topo neither manages nor reports such exchanges.
    pub fn is_topos_own(&self) -> bool {
        self.arguments.keys().any(|key| key.starts_with(OWN_ARGUMENT_PREFIX))
    }
}
