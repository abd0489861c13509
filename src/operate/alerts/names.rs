//! Finds names that break one of the broker's metrics endpoints.

use super::Metrics;
use crate::model::names::breaks_metrics;
use crate::model::{BrokerVersion, Topology};

/// A name that makes the response from the metrics endpoint invalid, so that Prometheus reads no metrics at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableName {
    /// The kind of the object: `vhost` or `queue`.
    pub kind: &'static str,
    /// The name.
    pub name: String,
    /// True if the other endpoint on the same broker supports the name.
    pub is_usable_elsewhere: bool,
}

/// Returns the topology's first name that contains a double quote or a backslash, if the endpoint does not escape
/// these characters. One such name makes the entire response invalid, including the metrics of all other queues.
pub fn unusable_name(topology: &Topology, metrics: Metrics, version: BrokerVersion) -> Option<UnusableName> {
    if !is_broken(metrics, version) {
        return None;
    }
    let other = match metrics {
        Metrics::Detailed => Metrics::PerObject,
        Metrics::PerObject => Metrics::Detailed,
    };
    let is_usable_elsewhere = !is_broken(other, version);
    let queues = topology.queues.keys().map(|name| ("queue", name.as_str()));
    let all = std::iter::once(("vhost", topology.vhost.as_str())).chain(queues);
    all.filter(|(_, name)| breaks_metrics(name))
        .map(|(kind, name)| UnusableName { kind, name: name.to_owned(), is_usable_elsewhere })
        .next()
}

/// Returns true if the endpoint does not escape names. In tests, RabbitMQ 3.8 and 4.0 escaped names at both endpoints.
/// 3.10 escaped names at neither endpoint, and 4.3 did not escape names in the Raft metrics at the per-object endpoint.
/// If the nearest tested versions before and after a version differ, topo assumes that the version does not escape
/// names.
fn is_broken(metrics: Metrics, version: BrokerVersion) -> bool {
    let is_since = |major, minor| version.is_at_least(major, minor);
    match metrics {
        Metrics::Detailed => is_since(3, 9) && !is_since(4, 0),
        Metrics::PerObject => is_since(3, 9) && !is_since(4, 0) || is_since(4, 1),
    }
}
