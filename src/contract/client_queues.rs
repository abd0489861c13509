//! Collects the queues in a vhost, with the properties that the configuration of a client framework requires.

use super::context::{Context, EffectiveQueue};
use super::declaration::Declaration;
use super::document::Contract;
use super::terms::contract_of;
use crate::expand::Expansion;
use crate::model::{ExchangeName, QueueName, QueueType, VhostName};
use crate::rabbitmq::BrokerProfile;
use crate::spec::Spec;
use std::collections::{BTreeMap, BTreeSet};

/// The queues in a vhost, for a client's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientVhost {
    /// The name of the vhost.
    pub vhost: VhostName,
    /// The queue type that the broker adds to a declaration without `x-queue-type`; `None` if the spec does not set it.
    pub default_queue_type: Option<QueueType>,
    /// The selected queues, sorted by name.
    pub queues: Vec<ClientQueue>,
    /// The declarations of all queues that topo declares in the vhost.
    pub declared: BTreeMap<QueueName, Declaration>,
}

/// A queue in a client's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientQueue {
    /// The properties of the queue.
    pub declaration: Declaration,
    /// An exchange and a routing key that route a message to the queue through a binding in the spec; `None` if there
    /// is no suitable binding.
    pub route: Option<PublishRoute>,
    /// A worker's reaction to a failed message; `None` if the queue does not retry, dead-letter or intentionally drop
    /// failed messages.
    pub on_failure: Option<OnFailure>,
}

/// An exchange in the spec, and the routing key of one of its bindings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishRoute {
    /// The exchange.
    pub exchange: ExchangeName,
    /// The type of the exchange.
    pub exchange_type: String,
    /// The routing key.
    pub routing_key: String,
}

/// A worker's reaction to a failed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Rejects the message without requeueing it.
    Reject,
    /// Requeues the message with `basic.reject`.
    Requeue,
    /// Publishes a copy, and acknowledges the message.
    Publish,
}

impl OnFailure {
    fn of(contract: &Contract) -> Option<Self> {
        let kind = match (&contract.on_failure.publish, contract.on_failure.requeue) {
            (Some(_), _) => Self::Publish,
            (None, Some(true)) => Self::Requeue,
            (None, Some(false) | None) => Self::Reject,
        };
        contract.has_duties().then_some(kind)
    }
}

/// Returns the vhost with the classic and quorum queues in `only`. If `only` is empty, selects all classic and quorum
/// queues in the `queues` section of the spec. `only` can also contain dead-letter queues, which are not selected by
/// default because workers do not consume from them.
pub fn client_vhost(
    spec: &Spec,
    expansion: &Expansion,
    profile: &BrokerProfile,
    only: &BTreeSet<QueueName>,
) -> ClientVhost {
    let operator_policies = expansion.topology.operator_policies();
    let context = Context::new((spec, expansion), &operator_policies, profile);
    let of_name = |name: &QueueName| {
        let queue = EffectiveQueue::of(name, &context).filter(|queue| queue.queue_type != QueueType::Stream)?;
        let contract = contract_of(&queue);
        let on_failure = OnFailure::of(&contract);
        Some(ClientQueue { declaration: contract.declaration, route: route(name, spec, expansion), on_failure })
    };
    let names: Vec<&QueueName> = if only.is_empty() { spec.queues.keys().collect() } else { only.iter().collect() };
    let declared = expansion.topology.queues.iter().map(|(name, queue)| (name.clone(), Declaration::of(name, queue)));
    ClientVhost {
        vhost: spec.vhost.value.clone(),
        default_queue_type: spec.default_queue_type.as_ref().map(|it| it.value),
        queues: names.into_iter().filter_map(of_name).collect(),
        declared: declared.collect(),
    }
}

/// Returns the route of the first binding in the spec through which a client can publish to the queue. The binding must
/// have no arguments, and its source must be a declared direct, fanout or topic exchange that is not internal. The
/// routing key of a topic binding must not contain wildcards.
fn route(queue: &QueueName, spec: &Spec, expansion: &Expansion) -> Option<PublishRoute> {
    spec.bindings.keys().filter(|binding| binding.leads_to_queue(queue) && binding.arguments.is_empty()).find_map(
        |binding| {
            let exchange = expansion.topology.exchanges.get(&binding.source).filter(|exchange| !exchange.internal)?;
            let is_usable = match exchange.kind.as_str() {
                "direct" | "fanout" => true,
                "topic" => !binding.routing_key.split('.').any(|word| matches!(word, "*" | "#")),
                _ => false,
            };
            is_usable.then(|| PublishRoute {
                exchange: binding.source.clone(),
                exchange_type: exchange.kind.clone(),
                routing_key: binding.routing_key.clone(),
            })
        },
    )
}
