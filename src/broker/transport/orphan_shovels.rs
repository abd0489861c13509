//! Finds shovels of killed runs by their consumers. Only policymakers may read shovel definitions, but every user with
//! access to a queue may see its consumers.

use super::shovel::{PRIORITY, ShovelTransport};
use crate::broker::error::BrokerError;
use crate::model::{BrokerVersion, QueueName};
use serde_json::Value;
use std::collections::BTreeSet;

impl ShovelTransport {
    /// Returns the queues from which a shovel moves messages that this user cannot remove. The broker lists consumers
    /// some seconds after they subscribed, or not at all if statistics are disabled.
    pub async fn unreachable(&self, queues: &[QueueName]) -> Result<BTreeSet<QueueName>, BrokerError> {
        match self.leftovers().await {
            // Without the plugin, no shovels exist.
            Ok(_) | Err(BrokerError::NotFound { .. }) => return Ok(BTreeSet::new()),
            Err(BrokerError::AccessRefused { .. } | BrokerError::WrongTag { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut found = BTreeSet::new();
        for queue in queues {
            let shown = match self.read("queues", queue.as_str(), "").await {
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

/// Returns true if a consumer is internal to the broker and, if recognizable, of a shovel of topo.
fn is_shovel(consumer: &Value, version: BrokerVersion) -> bool {
    let is_internal = consumer["channel_details"]["user"] == "none";
    is_internal && (version < BrokerVersion::new(3, 9, 0) || consumer["arguments"]["x-priority"] == PRIORITY)
}
