//! Predicts which declarations of new objects a broker refuses, and why.
//!
//! topo adds a few refusals of its own, for declarations that the broker accepts but that have an unintended effect.
//! For example, the broker stores the object under a different name.

mod exchange;
mod policy;
mod queue;
mod refusal;
mod vhost;

pub(crate) use exchange::is_known_type;
pub use exchange::{Ends, binding_refusals};
pub use policy::{plugin_keys, policy_keys};
pub use queue::with_default_type;
pub use refusal::Refusal;
pub(crate) use refusal::contains_null;
pub use vhost::vhost_change_refusals;

use super::profile::BrokerProfile;
use crate::model::Object;

/// Returns all refusals of a new object, in the order of the broker's checks. The broker usually reports only the first
/// one. If the list is empty, topo knows of no reason for a refusal.
///
/// For a binding, the checks do not take the declared source exchange or destination queue into account. Call
/// [`binding_refusals`] to include them.
pub fn refusals(object: &Object, profile: &BrokerProfile) -> Vec<Refusal> {
    match object {
        Object::Queue(name, queue) => {
            let mut found = refusal::name_refusals(name.as_str(), "queue");
            found.extend(queue::refusals(queue, profile));
            found
        }
        Object::Exchange(name, exchange) => exchange::refusals(name, exchange, profile),
        Object::Policy(name, policy) => policy::refusals(name, policy, profile),
        Object::Vhost(vhost) => vhost::refusals(vhost, profile),
        Object::Binding(binding) => binding_refusals(binding, Ends::default(), profile),
        Object::Record(record) => policy::record_refusals(record, profile),
    }
}
