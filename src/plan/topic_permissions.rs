//! Finds the topic permissions on exchanges that a plan deletes. A broker that stores its metadata in Khepri (RabbitMQ
//! 4.3, or 4.0 to 4.2 with the `khepri_db` feature flag) deletes topic permissions together with their exchange. A user
//! without topic permissions is not restricted, so topo must restore topic permissions after it recreates an exchange.

use super::action::Action;
use super::activity::TopicPermissions;
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{Step, VhostPlan};
use super::hazard::HazardKind;
use super::keeps::{self, read_keep};
use crate::model::count::count;
use crate::model::{Exchange, ExchangeName, ObjectId, TopicPermission, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// The exchange type to which topic permissions apply.
const RESTRICTED_TYPE: &str = "topic";
/// The maximum number of users that a message lists.
const MAX_NAMED: usize = 3;

/// Returns true if a plan deletes or recreates an exchange, or if an interrupted run left topic permissions to restore.
/// topo reads topic permissions only in these cases.
pub fn deletes_exchanges(part: &VhostPlan, current: &Topology) -> bool {
    let is_kept = |exchange: &Exchange| read_keep(exchange).is_some_and(|kept| !kept.topic_permissions.is_empty());
    !deleted_exchanges(&part.steps, current).is_empty() || current.exchanges.values().any(is_kept)
}

/// Returns the current exchanges that the steps delete or declare again. The value is true if a step declares the
/// exchange again. In that case, the exchange may have been deleted together with its last binding.
fn deleted_exchanges(steps: &[Step], current: &Topology) -> BTreeMap<ExchangeName, bool> {
    let mut deleted = BTreeMap::new();
    for step in steps {
        let (name, is_declared) = match &step.action {
            Action::DeclareExchange { name, .. } => (name, true),
            Action::DeleteExchange { name } => (name, false),
            Action::PutVhost { .. }
            | Action::PutTopicPermission { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. }
            | Action::Bind { .. }
            | Action::Unbind { .. }
            | Action::DeleteQueue { .. }
            | Action::DeletePolicy { .. }
            | Action::MoveMessages { .. }
            | Action::PutRecord { .. }
            | Action::DeleteRecord { .. } => continue,
        };
        if current.exchanges.get(name).is_some_and(|exchange| !exchange.is_created_by_topo()) {
            *deleted.entry(name.clone()).or_default() |= is_declared;
        }
    }
    deleted
}

/// Returns the topic permissions that the broker deletes together with an exchange. Returns an empty list if they are
/// unknown, or if the broker does not delete topic permissions.
pub(super) fn on_exchange(context: &PlanContext<'_>, exchange: &ExchangeName) -> Vec<TopicPermission> {
    deleted_with(context, &ObjectId::Exchange(exchange.clone())).unwrap_or_default()
}

/// Returns the topic permissions that the broker deletes together with an object; `None` if the topic permissions are
/// unknown, or if the broker does not delete topic permissions.
pub(super) fn deleted_with(context: &PlanContext<'_>, id: &ObjectId) -> Option<Vec<TopicPermission>> {
    match (id, &context.activity.topic_permissions) {
        (ObjectId::Exchange(name), TopicPermissions::Known(all)) => {
            Some(all.iter().filter(|permission| permission.exchange == *name).cloned().collect())
        }
        (_, _) => None,
    }
}

/// Returns the topic permissions in a keep exchange that do not exist on the broker. topo never overwrites a newer
/// topic permission of a user.
pub(super) fn missing_permissions(context: &PlanContext<'_>, kept: Vec<TopicPermission>) -> Vec<TopicPermission> {
    let TopicPermissions::Known(all) = &context.activity.topic_permissions else { return Vec::new() };
    let known: BTreeSet<_> = all.iter().map(|live| (&live.user, &live.exchange)).collect();
    kept.into_iter().filter(|permission| !known.contains(&(&permission.user, &permission.exchange))).collect()
}

/// Adds a hazard if the topic permissions in a keep exchange might not come from an interrupted recreation. topo
/// restores topic permissions before bindings, so an exchange with bindings is suspicious. Any user who may declare
/// exchanges can forge a keep exchange.
pub(super) fn restore_hazard(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    id: &ObjectId,
    permissions: &[TopicPermission],
) {
    let ObjectId::Exchange(name) = id else { return };
    let is_in_use = context.current.bindings.iter().any(|binding| binding.source == *name);
    if permissions.is_empty() || !is_in_use {
        return;
    }
    let shown: Vec<String> = permissions
        .iter()
        .take(MAX_NAMED)
        .map(|TopicPermission { user, write, read, .. }| format!("user {user}: write {write:?}, read {read:?}"))
        .collect();
    let more = match permissions.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let text = format!(
        "{} will be restored from {}, which an interrupted recreation or another user declared: {}{more}",
        count(permissions.len() as u64, "topic permission"),
        keeps::keep(id, &[], &[]).0,
        shown.join("; ")
    );
    builder.hazard(HazardKind::AccessLoss, &context.address(id), text, None);
}

/// Adds notes about topic permissions that will be restored, and hazards for topic permissions that will be lost.
pub(super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>, steps: &[Step]) {
    for (name, is_declared) in deleted_exchanges(steps, context.current) {
        let address = context.address(&ObjectId::Exchange(name.clone()));
        let is_topic = |exchange: Option<&Exchange>| exchange.is_some_and(|exchange| exchange.kind == RESTRICTED_TYPE);
        match &context.activity.topic_permissions {
            TopicPermissions::NotRead | TopicPermissions::Kept => {}
            TopicPermissions::Hidden => {
                let topologies = [&context.desired.topology, context.current];
                if topologies.iter().any(|topology| is_topic(topology.exchanges.get(&name))) {
                    let then = if is_declared {
                        "restricted users may then"
                    } else {
                        "if the exchange is declared again, restricted users may"
                    };
                    let text = format!(
                        "the broker deletes any topic permissions on this exchange, and this user cannot read them \
                         (reading them requires the administrator tag): {then} use any routing key"
                    );
                    builder.hazard(HazardKind::AccessGain, &address, text, None);
                }
            }
            TopicPermissions::Known(_) => {
                let permissions = on_exchange(context, &name);
                if permissions.is_empty() {
                    continue;
                }
                let permissions = describe(&permissions);
                if is_declared {
                    builder.info(
                        &address,
                        format!("topo will restore {permissions} on this exchange before its bindings"),
                    );
                } else {
                    let text = format!(
                        "the broker will also delete {permissions} on this exchange; if the exchange is declared again, \
                         users may use any routing key"
                    );
                    builder.hazard(HazardKind::AccessGain, &address, text, None);
                }
            }
        }
    }
}

/// Formats topic permissions: `2 topic permissions (users alice, bob)`.
pub(super) fn describe(permissions: &[TopicPermission]) -> String {
    let mut users: Vec<String> = permissions.iter().take(MAX_NAMED).map(|it| it.user.to_string()).collect();
    if let more @ 1.. = permissions.len().saturating_sub(MAX_NAMED) {
        users.push(format!("{more} more"));
    }
    let noun = if users.len() == 1 { "user" } else { "users" };
    format!("{} ({noun} {})", count(permissions.len() as u64, "topic permission"), users.join(", "))
}
