//! A virtual host's own settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a vhost says of itself. `None` means "not said": topo then leaves what is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Vhost {
    /// Text for people; since RabbitMQ 3.8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Tags; never set by a spec, kept as they are: a PUT that leaves them out empties them (from 3.10).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The type of queues that are declared without one; since RabbitMQ 3.10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_queue_type: Option<String>,
}
