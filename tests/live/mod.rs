//! Tests of topo on real RabbitMQ nodes.

mod action;
mod application_declares;
mod apply_report;
mod binding_keys;
mod confirm;
mod conflicts;
mod connection_faults;
mod contract;
mod convergence;
mod counts;
mod credentials;
mod dead_letter_destinations;
mod dead_letter_wiring;
mod differential;
mod differential_objects;
mod differential_report;
mod effective;
mod environment;
mod examples;
pub(crate) mod export;
mod failures;
pub(crate) mod guide;
mod harness;
mod hostile_text;
mod imported_definitions;
mod interrupted_recreates;
mod library;
mod lint_hints;
mod live_findings;
mod lock;
mod lock_command;
mod memory;
mod message_drop;
mod message_loss;
mod migrate;
mod names;
mod operator_policies;
mod ownership;
mod plugin_exchanges;
mod quickstart;
mod recreated_exchanges;
mod requests;
mod resolutions;
mod retry;
mod rights;
mod routing;
mod saved_plans;
mod shovel_interference;
mod static_binary;
mod tls;
mod topic_permissions;
mod transport;
mod unmanaged_objects;
mod versions;
mod vhost_limits;

use crate::support::Node;

/// The intervals of a node, for tests of the library.
pub(crate) fn intervals_of(node: &Node) -> topo::model::Intervals {
    let [statistics, tick] = node.broker_intervals();
    topo::model::Intervals::new(Some(statistics), Some(tick))
}
