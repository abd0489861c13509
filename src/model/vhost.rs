//! The settings of a virtual host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of a vhost. topo does not change a setting that is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Vhost {
    /// A description for readers; since RabbitMQ 3.8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tags. A spec never sets them, and topo preserves them: a PUT without tags removes them (from 3.10).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The type of queues that are declared without one; since RabbitMQ 3.10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_queue_type: Option<String>,
}
