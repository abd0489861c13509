//! An exchange, as the broker stores it.

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
    /// Whether it survives a restart of the broker.
    pub durable: bool,
    /// Whether it goes with its last binding.
    pub auto_delete: bool,
    /// Whether only other exchanges may publish to it.
    pub internal: bool,
    /// Arguments; the broker compares `alternate-exchange` alone on a redeclare.
    pub arguments: Arguments,
}

impl Exchange {
    /// The exchange that takes what this one cannot route, if one is set by argument.
    pub fn alternate_exchange(&self) -> Option<&str> {
        self.arguments.get("alternate-exchange").and_then(|value| value.as_text())
    }

    /// Whether topo made it for itself (a tap, say): such exchanges are neither managed nor reported.
    pub fn is_topos_own(&self) -> bool {
        self.arguments.keys().any(|key| key.starts_with(OWN_ARGUMENT_PREFIX))
    }
}
