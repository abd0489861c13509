//! The simulated routing of a spec, computed once for all queues of a vhost.

use crate::expand::Expansion;
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::routing::{Arrivals, Routing};
use crate::spec::Spec;

/// The spec of one vhost, its topology, and the routing of its messages.
pub(crate) struct Context<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) expansion: &'a Expansion,
    pub(crate) profile: &'a BrokerProfile,
    pub(super) routing: Routing<'a>,
    pub(super) arrivals: Arrivals,
}

impl<'a> Context<'a> {
    /// Simulates the routing of a vhost.
    pub(crate) fn new(spec: &'a Spec, expansion: &'a Expansion, profile: &'a BrokerProfile) -> Self {
        let scope = &expansion.scope;
        let routing = Routing::new(&expansion.topology, [], &scope.external, profile)
            .with_bound_by_others(&scope.external_dead_letter_queues);
        let arrivals = Arrivals::new(&routing, &expansion.scope.families);
        Self { spec, expansion, profile, routing, arrivals }
    }
}
