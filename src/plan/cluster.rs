//! Plans the cluster: the records that belong to no vhost. [`plan_vhost`] plans these records as the only objects of a
//! part without a vhost ([`VhostName::cluster`](crate::model::VhostName::cluster)).

use super::context::PlanContext;
use super::document::{Block, ChangeKind, ClusterPlan, Info, Options, VhostPlan};
use super::planner::plan_vhost;
use crate::model::count::count;
use crate::model::requirements::Requirements;
use crate::model::{Address, BrokerVersion, ObjectId, ObjectKind, RecordKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The properties of a cluster that a plan requires in addition to the cluster's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// The name of the cluster; empty for a plan without a broker.
    pub name: String,
    /// For each record kind, the names of the existing objects to which its records belong, such as users. The value is
    /// `None` if this user may not read these objects. A kind has no entry if topo did not read its objects.
    pub owners: BTreeMap<RecordKind, Option<BTreeSet<String>>>,
    /// The kinds whose records this user may not read.
    pub unreadable: BTreeSet<RecordKind>,
    /// The plugins that are enabled on every running node, if the spec requires plugins.
    pub plugins: Enabled,
    /// The enabled feature flags, if the spec requires feature flags.
    pub feature_flags: Enabled,
}

/// The enabled plugins or feature flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Enabled {
    /// topo did not read them.
    #[default]
    NotRead,
    /// This user may not read them. The text is the required tag.
    NotReadable(&'static str),
    /// Their names.
    Names(BTreeSet<String>),
}

/// Computes the plan of the cluster.
pub fn plan_cluster(context: &PlanContext<'_>, facts: &ClusterFacts, options: &Options) -> ClusterPlan {
    let mut readable = Arc::clone(context.desired);
    if !facts.unreadable.is_empty() {
        let desired = Arc::make_mut(&mut readable);
        desired.topology.records.retain(|id, _| !facts.unreadable.contains(&id.kind));
        desired.scope.sections.retain(|kind, _| !facts.unreadable.contains(kind));
    }
    let mut part = plan_vhost(&PlanContext { desired: &readable, ..*context }, options);
    part.compared_objects = readable.topology.records.len();
    part.desired = Arc::clone(context.desired);
    let is_reported = |address: &Address| {
        options.targets.is_empty() || options.targets.iter().any(|target| target.matches(address.as_str()))
    };
    let cluster = context.address(&ObjectId::Vhost);
    if let Some(name) = &context.desired.scope.cluster_name
        && !facts.name.is_empty()
        && facts.name != *name
    {
        let text = format!("the spec is for cluster {name}, and this broker belongs to cluster {}", facts.name);
        let remedy = format!("connect to cluster {name}, or change `cluster.name` in the spec");
        part.blocks.push(block(&cluster, text, remedy));
    }
    check_requirements(&mut part, &context.desired.scope.requires, (facts, context.profile.version), &cluster);
    for kind in &facts.unreadable {
        let row = kind.row();
        let declared = context.desired.topology.records.keys().filter(|id| id.kind == *kind);
        let scope = &context.desired.scope;
        let removed = scope.removed.iter().filter(|id| id.kind() == ObjectKind::Record(*kind)).cloned();
        let named = declared.map(|id| ObjectId::Record(id.clone())).chain(removed);
        let named = named.map(|id| context.address(&id)).filter(is_reported).count();
        let remedy = format!("use a user with the tag {}", row.writer.as_str());
        if named > 0 {
            let text = format!("{} not compared: this user may not read {}", row.format_count(named), row.plural);
            part.blocks.push(block(&cluster, text, remedy));
        } else if options.prune.contains(&ObjectKind::Record(*kind)) {
            let text = format!("{} cannot be pruned: this user may not read them", row.plural);
            part.blocks.push(block(&cluster, text, remedy));
        } else if scope.sections.contains_key(kind) {
            let text = format!("{} are not compared: this requires the tag {}", row.plural, row.writer.as_str());
            part.infos.push(Info { address: cluster.clone(), text });
        }
    }
    block_missing_owners(&mut part, facts, context.profile.version, &cluster);
    ClusterPlan::new(part)
}

/// Blocks the plan if the cluster does not meet a requirement of the spec, or if topo may not check it.
fn check_requirements(
    part: &mut VhostPlan,
    requires: &Requirements,
    (facts, version): (&ClusterFacts, BrokerVersion),
    cluster: &Address,
) {
    if let Some(range) = requires.version.as_ref().filter(|range| !range.contains(version)) {
        let text = format!("the spec requires RabbitMQ {range}; the broker is {version}");
        let remedy = "connect to a broker of such a version, or change `requires.version` in the spec";
        part.blocks.push(block(cluster, text, remedy.to_owned()));
    }
    for (word, required, enabled, remedy) in [
        ("plugin", &requires.plugins, &facts.plugins, "enable it on every node: rabbitmq-plugins enable NAME"),
        (
            "feature flag",
            &requires.feature_flags,
            &facts.feature_flags,
            "enable it: rabbitmqctl enable_feature_flag NAME",
        ),
    ] {
        match enabled {
            Enabled::Names(names) => {
                for name in required.difference(names) {
                    let text = format!("the spec requires the {word} {name}, which is not enabled");
                    part.blocks.push(block(cluster, text, remedy.replace("NAME", name)));
                }
            }
            Enabled::NotReadable(tag) if !required.is_empty() => {
                let text =
                    format!("topo could not check the {word}s that the spec requires: this user may not read them");
                part.blocks.push(block(cluster, text, format!("use a user with the tag {tag}")));
            }
            Enabled::NotRead if !required.is_empty() => {
                let text = format!(
                    "topo did not check the broker for {} that the spec requires",
                    count(required.len() as u64, word)
                );
                part.infos.push(Info { address: cluster.clone(), text });
            }
            Enabled::NotReadable(_) | Enabled::NotRead => {}
        }
    }
}

/// Blocks the plan if it creates records that belong to an object that does not exist. Adds one block for each such
/// object, and a note if topo did not read the existing objects.
fn block_missing_owners(part: &mut VhostPlan, facts: &ClusterFacts, version: BrokerVersion, cluster: &Address) {
    let mut seen: BTreeSet<(RecordKind, String)> = BTreeSet::new();
    let mut unknown: BTreeMap<RecordKind, u64> = BTreeMap::new();
    for change in part.changes.iter().filter(|change| change.kind == ChangeKind::Create) {
        let Some(ObjectId::Record(id)) = change.id() else { continue };
        let row = id.kind.row();
        let (Some(owners), Some(name)) = (row.owners, id.name()) else { continue };
        let is_unsupported = row.since.is_some_and(|since| version < since);
        if is_unsupported || !seen.insert((id.kind, name.to_owned())) {
            continue;
        }
        match facts.owners.get(&id.kind) {
            Some(Some(known)) if known.contains(name) => {}
            Some(Some(_)) => {
                let text = format!("{} `{name}` does not exist", owners.word);
                part.blocks.push(block(&change.address, text, owners.remedy.replace("NAME", name)));
            }
            Some(None) | None => *unknown.entry(id.kind).or_default() += 1,
        }
    }
    for (row, owners, many) in unknown.iter().filter_map(|(kind, many)| Some((kind.row(), kind.row().owners?, many))) {
        let right = match facts.owners.contains_key(&row.kind) {
            true => format!(": this check requires the tag {}", row.writer.as_str()),
            false => String::new(),
        };
        let text =
            format!("topo did not check the broker for {} that the spec names{right}", count(*many, owners.word));
        part.infos.push(Info { address: cluster.clone(), text });
    }
}

fn block(address: &Address, text: String, remedy: String) -> Block {
    Block { address: address.clone(), text, remedy: Some(remedy), flag: None }
}
