//! The parts of a topology that route messages. Each part can be removed from a simulation.

use crate::model::{Binding, ExchangeName, QueueName, Topology};
use crate::rabbitmq::routing::Reason;

/// A part of a topology that routes messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoutingPart {
    /// A binding.
    Binding(Binding),
    /// The alternate exchange of an exchange.
    Alternate(ExchangeName),
    /// Dead-lettering from a queue for a reason.
    DeadLettering(QueueName, Reason),
}

impl RoutingPart {
    /// The exchange argument that sets the alternate exchange.
    pub const ALTERNATE: &str = "alternate-exchange";

    /// Removes a binding or an alternate exchange from a topology. Returns true if the topology contained the part.
    /// Returns false for dead-lettering, which
    /// [`Simulation::without_dead_lettering`](super::Simulation::without_dead_lettering) removes.
    pub fn remove_from(&self, topology: &mut Topology) -> bool {
        match self {
            Self::Binding(binding) => topology.bindings.remove(binding),
            Self::Alternate(exchange) => topology
                .exchanges
                .get_mut(exchange)
                .is_some_and(|exchange| exchange.arguments.remove(Self::ALTERNATE).is_some()),
            Self::DeadLettering(..) => false,
        }
    }
}
