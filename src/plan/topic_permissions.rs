//! Restores the topic permissions of exchanges that a plan deletes. A broker that stores its metadata in Khepri (4.3;
//! 4.0 to 4.2 with the feature flag `khepri_db`) deletes them with their exchange. A user without topic permissions is
//! not restricted, so topo must restore them after it recreates an exchange.

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

/// The type of exchange to which topic permissions apply.
const RESTRICTED_TYPE: &str = "topic";
/// The maximum number of users in a text.
const NAMED: usize = 3;

/// Returns true if a plan deletes or recreates an exchange, or resumes a run that must restore the
/// topic permissions of one. topo reads topic permissions only in that case.
pub fn deletes_exchanges(part: &VhostPlan, current: &Topology) -> bool {
    let is_kept = |exchange: &Exchange| read_keep(exchange).is_some_and(|kept| !kept.topic_permissions.is_empty());
    !deleted(&part.steps, current).is_empty() || current.exchanges.values().any(is_kept)
}

/// Returns the current exchanges that steps delete, directly or with their last binding, and true for each that is
/// declared again.
fn deleted(steps: &[Step], current: &Topology) -> BTreeMap<ExchangeName, bool> {
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

/// Returns the topic permissions that the broker deletes with an exchange.
pub(super) fn on(context: &PlanContext<'_>, exchange: &ExchangeName) -> Vec<TopicPermission> {
    kept(context, &ObjectId::Exchange(exchange.clone())).unwrap_or_default()
}

/// Returns the same topic permissions; `None` if they are unknown, or are not deleted.
pub(super) fn kept(context: &PlanContext<'_>, id: &ObjectId) -> Option<Vec<TopicPermission>> {
    match (id, &context.activity.topic_permissions) {
        (ObjectId::Exchange(name), TopicPermissions::Known(all)) => {
            Some(all.iter().filter(|permission| permission.exchange == *name).cloned().collect())
        }
        (_, _) => None,
    }
}

/// Returns the missing topic permissions of an exchange that an interrupted run recreates. A newer topic permission of
/// a user is never overwritten.
pub(super) fn missing(context: &PlanContext<'_>, kept: Vec<TopicPermission>) -> Vec<TopicPermission> {
    let TopicPermissions::Known(all) = &context.activity.topic_permissions else { return Vec::new() };
    let known: BTreeSet<_> = all.iter().map(|live| (&live.user, &live.exchange)).collect();
    kept.into_iter().filter(|permission| !known.contains(&(&permission.user, &permission.exchange))).collect()
}

/// Adds a hazard for topic permissions of a keep that may not come from an interrupted recreation. topo restores topic
/// permissions before bindings, and any user who may declare exchanges can forge a keep.
pub(super) fn restored(
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
        .take(NAMED)
        .map(|TopicPermission { user, write, read, .. }| format!("user {user}: write {write:?}, read {read:?}"))
        .collect();
    let more = match permissions.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let text = format!(
        "{} from {}, which an interrupted recreation or another user declared: {}{more}",
        count(permissions.len() as u64, "topic permission"),
        keeps::keep(id, &[], &[]).0,
        shown.join("; ")
    );
    builder.hazard(HazardKind::AccessLoss, &context.address(id), text, None);
}

/// Adds a note for the topic permissions that are restored, and a hazard for those that are lost.
pub(super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>, steps: &[Step]) {
    for (name, is_declared) in deleted(steps, context.current) {
        let address = context.address(&ObjectId::Exchange(name.clone()));
        let is_topic = |exchange: Option<&Exchange>| exchange.is_some_and(|exchange| exchange.kind == RESTRICTED_TYPE);
        match &context.activity.topic_permissions {
            TopicPermissions::NotRead | TopicPermissions::Kept => {}
            TopicPermissions::Hidden => {
                let ends = [&context.desired.topology, context.current];
                if ends.iter().any(|end| is_topic(end.exchanges.get(&name))) {
                    let then = if is_declared {
                        "users that they restrict may then"
                    } else {
                        "if it is declared again, users that they restrict may"
                    };
                    let text = format!(
                        "the broker deletes the topic permissions on it, if there are any, and this user may not read them \
                         (tag `administrator`): {then} use any routing key"
                    );
                    builder.hazard(HazardKind::AccessGain, &address, text, None);
                }
            }
            TopicPermissions::Known(_) => {
                let permissions = on(context, &name);
                if permissions.is_empty() {
                    continue;
                }
                let permissions = described(&permissions);
                if is_declared {
                    builder.info(&address, format!("{permissions} on it: will be restored before its bindings"));
                } else {
                    let text = format!(
                        "{permissions} on it: will be deleted with it; if it is declared again, any routing key may be \
                         used"
                    );
                    builder.hazard(HazardKind::AccessGain, &address, text, None);
                }
            }
        }
    }
}

/// Formats topic permissions: `2 topic permissions (users alice, bob)`.
pub(super) fn described(permissions: &[TopicPermission]) -> String {
    let mut users: Vec<String> = permissions.iter().take(NAMED).map(|it| it.user.to_string()).collect();
    if let more @ 1.. = permissions.len().saturating_sub(NAMED) {
        users.push(format!("{more} more"));
    }
    let noun = if users.len() == 1 { "user" } else { "users" };
    format!("{} ({noun} {})", count(permissions.len() as u64, "topic permission"), users.join(", "))
}
