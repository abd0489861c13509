//! Protects the access of this user, so that topo can apply further plans.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{PlannedChange, Step};
use super::permissions::{permission, record};
use super::rights::{Needs, Permission};
use crate::model::names::LOCK_QUEUE;
use crate::model::{ObjectId, RecordKind};

/// The maximum number of objects that a text lists for each permission.
const NAMED: usize = 3;

/// Returns true if the object is a record of this user, such as its permissions. topo does not prune such records.
pub(super) fn is_of_this_user(context: &PlanContext<'_>, id: &ObjectId) -> bool {
    match id {
        ObjectId::Record(id) => {
            let is_of_user = id.kind.row().is_named_after_users();
            is_of_user && context.records.user.as_deref().is_some_and(|user| id.name() == Some(user))
        }
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Queue(_) | ObjectId::Binding(_) => {
            false
        }
    }
}

/// Blocks the plan if this user would lose permissions that topo requires for this plan or for its lock.
pub(super) fn check(builder: &mut PlanBuilder, context: &PlanContext<'_>, steps: &[Step]) {
    let Some(own) = &context.records.user else { return };
    let of_own = |change: &PlannedChange| {
        let record = record(change.after.as_ref().or(change.before.as_ref()), RecordKind::Permission);
        record.is_some_and(|record| record.id.name() == Some(own))
    };
    let Some(change) = builder.changes.iter().find(|change| of_own(change)) else { return };
    let address = change.address.clone();
    let after = record(change.after.as_ref(), RecordKind::Permission).map(permission);
    // The broker grants all permissions to the user that creates a vhost.
    let all = || ".*".to_owned();
    let creator = Permission { configure: all(), write: all(), read: all() };
    let before = match record(change.before.as_ref(), RecordKind::Permission) {
        Some(before) => permission(before),
        None if context.current.settings.is_none() => creator,
        None => return,
    };
    let remedy = || Some("keep these permissions, or apply the plan as a different administrator".to_owned());
    let Some(after) = after else {
        let text = format!("the plan deletes the permissions of user {own}, as which topo connects");
        builder.block(&address, text, remedy());
        return;
    };
    let lock = context.activity.lock_queue.as_ref().map_or(LOCK_QUEUE, |lock| lock.as_str());
    let needs = Needs::of(steps, lock);
    let (before, after) = (needs.missing_from(&before), needs.missing_from(&after));
    let lost: Vec<String> = after
        .by_permission()
        .into_iter()
        .zip(before.by_permission())
        .filter_map(|((right, after), (_, before))| {
            let mut names: Vec<&str> = after.difference(before).map(String::as_str).collect();
            let more = names.len().saturating_sub(NAMED);
            names.truncate(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            (!names.is_empty()).then(|| format!("{right} on {}{more}", names.join(", ")))
        })
        .collect();
    if !lost.is_empty() {
        let text = format!(
            "the plan removes permissions of user {own}, as which topo connects, that topo requires: {}",
            lost.join("; ")
        );
        builder.block(&address, text, remedy());
    }
}
