//! Plans the cluster: the records that belong to no vhost. [`plan_vhost`] plans these records like the objects of a
//! vhost whose name is [`VhostName::cluster`](crate::model::VhostName::cluster).

use super::activity::Enabled;
use super::context::PlanContext;
use super::document::{Block, ClusterPlan, Info, Options, VhostPlan};
use super::planner::plan_vhost;
use crate::model::count::count;
use crate::model::requirements::Requirements;
use crate::model::{Address, BrokerVersion, ObjectId};

/// The properties of a cluster that a plan requires in addition to the cluster's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// The name of the cluster; empty for a plan without a broker.
    pub name: String,
    /// The plugins that are enabled on every running node, if the spec requires plugins.
    pub plugins: Enabled,
    /// The enabled feature flags, if the spec requires feature flags.
    pub feature_flags: Enabled,
}

/// Computes the plan for the cluster.
pub fn plan_cluster(context: &PlanContext<'_>, facts: &ClusterFacts, options: &Options) -> ClusterPlan {
    let mut part = plan_vhost(context, options);
    // Unlike a vhost, the cluster has no settings of its own.
    part.compared_objects -= 1;
    let record_blocks = std::mem::take(&mut part.blocks);
    let cluster = context.address(&ObjectId::Vhost);
    if let Some(name) = &context.desired.scope.cluster_name
        && !facts.name.is_empty()
        && facts.name != *name
    {
        let text = format!("the spec is for cluster {name}, but this broker belongs to cluster {}", facts.name);
        let remedy = match &options.environment {
            Some(_) => format!("connect to cluster {name}, or select a different environment"),
            None => format!("connect to cluster {name}, or change `cluster.name` in the spec"),
        };
        part.blocks.push(block(&cluster, text, remedy));
    }
    check_requirements(&mut part, &context.desired.scope.requires, (facts, context.profile.version), &cluster);
    part.blocks.extend(record_blocks);
    ClusterPlan::new(part)
}

/// Blocks the plan if the cluster does not meet a requirement of the spec, or if the connected user is not allowed to
/// read the plugins or feature flags. Adds a note if topo did not read them.
fn check_requirements(
    part: &mut VhostPlan,
    requires: &Requirements,
    (facts, version): (&ClusterFacts, BrokerVersion),
    cluster: &Address,
) {
    if let Some(range) = requires.version.as_ref().filter(|range| !range.contains(version)) {
        let text = format!("the spec requires RabbitMQ {range}; the broker is {version}");
        let remedy = "connect to a broker with such a version, or change `requires.version` in the spec";
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
                    let text = format!("the spec requires the {name} {word}, which is not enabled");
                    part.blocks.push(block(cluster, text, remedy.replace("NAME", name)));
                }
            }
            Enabled::NotReadable(tag) if !required.is_empty() => {
                let text =
                    format!("topo could not check the {word}s that the spec requires: this user cannot read them");
                part.blocks.push(block(cluster, text, format!("connect as a user with the {tag} tag")));
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

fn block(address: &Address, text: String, remedy: String) -> Block {
    Block { address: address.clone(), text, remedy: Some(remedy), flag: None }
}
