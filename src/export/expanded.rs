//! Writes an expanded topology as a spec without short forms. Each object has its own entry.

use super::document::Document;
use super::left_out::LeftOut;
use super::recognize::patterns::Recognized;
use super::{CurrentVhost, RecordKind};
use crate::model::Topology;
use crate::rabbitmq::BrokerProfile;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the YAML document of an expanded topology. The document shows the objects that topo declares. It is not
/// always a valid spec, because generated objects have reserved names.
pub fn expanded_text(topology: &Topology, profile: &BrokerProfile) -> String {
    let record_kinds: BTreeSet<RecordKind> = topology.records.keys().map(|id| id.kind).collect();
    let live = CurrentVhost {
        topology,
        untouchable: &BTreeSet::new(),
        properties_keys: &BTreeMap::new(),
        unsupported_objects: &BTreeMap::new(),
        record_kinds: &record_kinds,
        lock_holder: None,
        includes_transient_queues: true,
        profile,
    };
    let (recognized, left_out) = (Recognized::default(), LeftOut::default());
    let document = Document {
        live: &live,
        kept: topology,
        recognized: &recognized,
        left_out: &left_out,
        is_plain: true,
        comments: None,
    };
    document.text().text
}
