//! A worker's declaration of a queue: the properties that the broker compares in `queue.declare`.

use crate::model::{Arguments, Queue, QueueName};
use schemars::JsonSchema;
use serde::Serialize;

/// The properties with which a worker must declare its queue. If the queue exists with other properties, the broker
/// refuses the declaration with a 406 error (`PRECONDITION_FAILED`). A passive declaration needs only the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Declaration {
    /// The name of the queue.
    pub queue: QueueName,
    /// True if the queue survives a broker restart.
    pub durable: bool,
    /// True if the broker deletes the queue when its last consumer is canceled.
    pub auto_delete: bool,
    /// Always false: a spec cannot declare a queue that is exclusive to one connection.
    pub exclusive: bool,
    /// The arguments, including `x-queue-type`. The settings of policies are not part of a declaration.
    pub arguments: Arguments,
}

impl Declaration {
    /// Returns the declaration of a queue in the topology, with the properties that topo itself sends.
    pub(crate) fn of(name: &QueueName, queue: &Queue) -> Self {
        Self {
            queue: name.clone(),
            durable: queue.durable,
            auto_delete: queue.auto_delete,
            exclusive: false,
            arguments: queue.arguments.clone(),
        }
    }
}
