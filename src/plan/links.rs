//! Adds the hazards of changing and deleting shovels, federation upstreams and upstream sets. Blocks plans that require
//! a disabled plugin.
//!
//! The broker restarts a shovel or the links of an upstream after any change (RabbitMQ 3.8 to 4.3). The source then
//! redelivers unacknowledged messages. With `no-ack`, the messages in flight are lost.

use super::activity::Enabled;
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, PlannedChange};
use super::hazard::HazardKind;
use crate::model::record_kinds::{MEMBER_NAME, RecordRow};
use crate::model::{Address, ArgumentValue, Object, ObjectId, Record, RecordId, RecordKind, Topology};
use std::collections::BTreeSet;

/// The acknowledgement mode in which a restart loses the messages in flight.
const NO_ACK: &str = "no-ack";
/// The field with the acknowledgement mode.
const ACK_MODE: &str = "ack-mode";

/// Adds the hazards of changing and deleting shovels, upstreams and upstream sets.
pub(super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let of_change = |change: &PlannedChange| {
        let before = record(change.before.as_ref())?;
        let (kind, text) = hazard(before, record(change.after.as_ref()), context)?;
        Some((change.address.clone(), kind, text))
    };
    let found: Vec<(Address, HazardKind, String)> = builder.changes.iter().filter_map(of_change).collect();
    for (address, kind, text) in found {
        builder.hazard(kind, &address, text, None);
    }
}

fn record(object: Option<&Object>) -> Option<&Record> {
    if let Some(Object::Record(record)) = object { Some(record) } else { None }
}

fn hazard(before: &Record, after: Option<&Record>, context: &PlanContext<'_>) -> Option<(HazardKind, String)> {
    let name = before.id.name().unwrap_or_default();
    let is_lossy = before.fields.get(ACK_MODE).and_then(ArgumentValue::as_text) == Some(NO_ACK);
    match (before.id.kind, after) {
        (RecordKind::Shovel, None) => Some((HazardKind::RoutingGap, format!("shovel {name} no longer moves messages"))),
        (RecordKind::Shovel, Some(_)) => Some(restart(&format!("shovel {name} restarts"), is_lossy)),
        (RecordKind::Upstream, None) => {
            let text = format!("the links to upstream {name} stop: no more messages arrive from it");
            Some((HazardKind::RoutingGap, text))
        }
        (RecordKind::Upstream, Some(_)) => Some(restart(&format!("the links to upstream {name} restart"), is_lossy)),
        (RecordKind::UpstreamSet, after) => set_hazard(before, after, context),
        (
            RecordKind::OperatorPolicy
            | RecordKind::VhostLimit
            | RecordKind::UserLimit
            | RecordKind::GlobalParameter
            | RecordKind::Permission
            | RecordKind::TopicPermission
            | RecordKind::User
            | RecordKind::Parameter
            | RecordKind::DeletionProtection,
            _,
        ) => None,
    }
}

/// Returns the hazard for an upstream set that loses or changes members. The broker restarts the links of a changed
/// member.
fn set_hazard(before: &Record, after: Option<&Record>, context: &PlanContext<'_>) -> Option<(HazardKind, String)> {
    let set = before.id.name().unwrap_or_default();
    let upstream = |name: &str| context.current.records.get(&RecordId::named(RecordKind::Upstream, name));
    let kept: BTreeSet<&str> = after.into_iter().flat_map(Record::upstreams).collect();
    let lost: Vec<&str> = before.upstreams().filter(|name| !kept.contains(name) && upstream(name).is_some()).collect();
    if !lost.is_empty() {
        let text = format!("objects that use the upstream set {set} lose their links to {}", lost.join(", "));
        return Some((HazardKind::RoutingGap, text));
    }
    let desired: Vec<&ArgumentValue> = after.into_iter().flat_map(|after| after.items("value")).collect();
    let is_changed = |member: &&ArgumentValue| !desired.contains(member);
    let mut changed = before.items("value").iter().filter(is_changed).filter_map(|member| {
        let ArgumentValue::Table(fields) = member else { return None };
        let name = fields.get(MEMBER_NAME)?.as_text()?;
        let of_upstream = upstream(name)?.fields.get(ACK_MODE);
        let is_lossy = fields.get(ACK_MODE).or(of_upstream).and_then(ArgumentValue::as_text) == Some(NO_ACK);
        Some((name, is_lossy))
    });
    let (first, is_lossy) = changed.next()?;
    let is_lossy = is_lossy || changed.any(|(_, is_lossy)| is_lossy);
    Some(restart(&format!("the links to upstream {first} in the set {set} restart"), is_lossy))
}

fn restart(what: &str, is_lossy: bool) -> (HazardKind, String) {
    match is_lossy {
        true => (HazardKind::MessageLoss, format!("{what}; messages in flight are lost with ackMode {NO_ACK}")),
        false => (HazardKind::Duplicates, format!("{what}; messages in flight may be delivered twice")),
    }
}

/// Blocks the plan if it writes a shovel whose name belongs to a shovel that topo does not manage. Adds a note if the
/// spec lists such a shovel under `removed`.
pub(super) fn block_excluded(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let what = "a shovel that deletes itself, or that the broker created, has this name";
    for id in &context.records.excluded {
        let id = ObjectId::Record(id.clone());
        let address = context.address(&id);
        if builder.changes.iter().any(|change| change.address == address) {
            let remedy = "use a different name, or delete that shovel first".to_owned();
            builder.block(&address, format!("{what}, and topo does not change it"), Some(remedy));
        } else if context.desired.scope.removed.contains(&id) {
            builder.info(&address, format!("{what}, and topo does not delete it"));
        }
    }
}

/// Returns true if a record kind requires a plugin, and the desired records of this kind differ from the current
/// records. topo reads the enabled plugins only in that case.
pub fn needs_plugins(row: &RecordRow, desired: &Topology, current: &Topology) -> bool {
    let differs = |(id, record): (&RecordId, &Record)| current.records.get(id) != Some(record);
    !row.plugins.is_empty() && desired.records.iter().filter(|(id, _)| id.kind == row.kind).any(differs)
}

/// Blocks the plan if it writes records that belong to a disabled plugin, because the broker would refuse to write
/// such records. The broker still lists and deletes them. Adds a note if the connected user is not allowed to read the
/// enabled plugins.
pub(super) fn block_disabled_plugins(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let is_write = |change: &&PlannedChange| matches!(change.kind, ChangeKind::Create | ChangeKind::Change);
    let mut written: Vec<(&'static RecordRow, Address)> = Vec::new();
    for change in builder.changes.iter().filter(is_write) {
        let Some(ObjectId::Record(id)) = change.id() else { continue };
        if !id.kind.row().plugins.is_empty() {
            written.push((id.kind.row(), change.address.clone()));
        }
    }
    let mut unknown = BTreeSet::new();
    for (row, address) in written {
        let plugin = row.plugins[0];
        match &context.records.plugins {
            Enabled::Names(enabled) if row.plugins.iter().any(|plugin| enabled.contains(*plugin)) => {}
            Enabled::Names(_) => {
                let remedy = format!("enable it on every node: rabbitmq-plugins enable {plugin}");
                builder.block(&address, format!("the {plugin} plugin is not enabled"), Some(remedy));
            }
            Enabled::NotReadable(_) => drop(unknown.insert(plugin)),
            Enabled::NotRead => {}
        }
    }
    if !unknown.is_empty() {
        let (noun, are) = if unknown.len() == 1 { ("plugin", "is") } else { ("plugins", "are") };
        let names = unknown.into_iter().collect::<Vec<_>>().join(" and ");
        let right = match &context.records.plugins {
            Enabled::NotReadable(tag) => format!(": reading plugins requires the {tag} tag"),
            Enabled::Names(_) | Enabled::NotRead => String::new(),
        };
        let text = format!("topo did not check whether the {noun} {names} {are} enabled{right}");
        builder.info(&context.address(&ObjectId::Vhost), text);
    }
}
