//! Finds shovels of killed runs by their consumers: only policymakers may read shovel definitions, but a queue's
//! consumers are visible to every user with access to the queue.

use super::shovel::{PRIORITY, ShovelTransport};
use crate::broker::error::BrokerError;
use crate::model::{BrokerVersion, QueueName};
use serde_json::Value;
use std::collections::BTreeSet;

impl ShovelTransport {
    /// Those of these queues from which a shovel moves messages that this user could not remove. Consumers are listed
    /// some seconds after they came, or not at all where statistics are disabled.
    pub async fn out_of_reach(&self, queues: &[QueueName]) -> Result<BTreeSet<QueueName>, BrokerError> {
        match self.leftovers().await {
            // Without the plugin, there are none.
            Ok(_) | Err(BrokerError::NotFound { .. }) => return Ok(BTreeSet::new()),
            Err(BrokerError::AccessRefused { .. } | BrokerError::WrongTag { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut found = BTreeSet::new();
        for queue in queues {
            let shown = match self.look("queues", queue.as_str(), "").await {
                Ok(shown) => shown,
                Err(BrokerError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            let consumers = shown.get("consumer_details").and_then(Value::as_array);
            if consumers.is_some_and(|consumers| consumers.iter().any(|consumer| is_shovel(consumer, self.version))) {
                found.insert(queue.clone());
            }
        }
        Ok(found)
    }
}

/// Whether a consumer is internal to the broker, and of a shovel of topo where that is recognizable.
fn is_shovel(consumer: &Value, version: BrokerVersion) -> bool {
    let is_inside = consumer["channel_details"]["user"] == "none";
    is_inside && (version < BrokerVersion::new(3, 9, 0) || consumer["arguments"]["x-priority"] == PRIORITY)
}
