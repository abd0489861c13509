//! Protects the connected user's access, so that topo can apply further plans.
//!
//! A pattern that topo cannot evaluate counts as lost access, unless the plan keeps the pattern.

use super::action::Action;
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{PlannedChange, Step};
use super::permissions::{pattern, permission, record};
use super::rights::{Needs, Permission};
use super::users::{self, ChangedUser};
use crate::model::names::LOCK_QUEUE;
use crate::model::{Binding, ExchangeName, ObjectId, Record, RecordKind};
use crate::rabbitmq::predeclared_type;
use std::collections::BTreeSet;

/// The maximum number of objects that a message lists for each permission.
const MAX_NAMED: usize = 3;
const ADMINISTRATOR: &str = "administrator";
const REMEDY: &str = "keep these permissions, or apply the plan as a different administrator";

/// Returns true if the object is a record of the connected user, such as its permissions. topo does not prune such
/// records.
pub(super) fn belongs_to_this_user(context: &PlanContext<'_>, id: &ObjectId) -> bool {
    match id {
        ObjectId::Record(id) => {
            let is_of_user = id.kind == RecordKind::User || id.kind.row().is_named_after_users();
            is_of_user && context.records.user.as_deref().is_some_and(|user| id.name() == Some(user))
        }
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Queue(_) | ObjectId::Binding(_) => {
            false
        }
    }
}

/// Blocks the plan if the connected user would lose permissions that topo requires for this plan or for its lock.
pub(super) fn check(builder: &mut PlanBuilder, context: &PlanContext<'_>, steps: &[Step]) {
    let Some(own) = &context.records.user else { return };
    check_topics(builder, context, own, steps);
    let of_own = |change: &PlannedChange| {
        let record = record(change.after.as_ref().or(change.before.as_ref()), RecordKind::Permission);
        record.is_some_and(|record| record.id.name() == Some(own))
    };
    let Some(change) = builder.changes.iter().find(|change| of_own(change)) else { return };
    let address = change.address.clone();
    let after = record(change.after.as_ref(), RecordKind::Permission).map(permission);
    // The broker grants all permissions to the user who creates a vhost.
    let all = || ".*".to_owned();
    let creator = Permission { configure: all(), write: all(), read: all() };
    let before = match record(change.before.as_ref(), RecordKind::Permission) {
        Some(before) => permission(before),
        None if context.current.settings.is_none() => creator,
        None => return,
    };
    let Some(after) = after else {
        let text = format!("the plan deletes the permissions of user {own}, which topo uses to connect");
        builder.block(&address, text, Some(REMEDY.to_owned()));
        return;
    };
    let lock = context.activity.lock_queue.as_ref().map_or(LOCK_QUEUE, |lock| lock.as_str());
    let needs = Needs::of(steps, lock);
    let kept = [before.configure == after.configure, before.write == after.write, before.read == after.read];
    let (before, after) = (needs.missing_from(&before), needs.not_certain_in(&after));
    let lost: Vec<String> = after
        .by_permission()
        .into_iter()
        .zip(before.by_permission())
        .zip(kept)
        .filter(|(_, is_kept)| !is_kept)
        .filter_map(|(((right, after), (_, before)), _)| {
            let mut names: Vec<&str> = after.difference(before).map(String::as_str).collect();
            let more = names.len().saturating_sub(MAX_NAMED);
            names.truncate(MAX_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            (!names.is_empty()).then(|| format!("{right} on {}{more}", names.join(", ")))
        })
        .collect();
    if !lost.is_empty() {
        let text = format!(
            "user {own}, which topo uses to connect, would lose permissions that topo requires: {}",
            lost.join("; ")
        );
        builder.block(&address, text, Some(REMEDY.to_owned()));
    }
}

/// Blocks the plan if a new or changed topic permission of the connected user does not permit a binding in the plan. To
/// add or remove a binding of a topic exchange, a user must have read permission for the routing key.
fn check_topics(builder: &mut PlanBuilder, context: &PlanContext<'_>, own: &str, steps: &[Step]) {
    let is_topic = |name: &ExchangeName| {
        let declared = context.current.exchanges.get(name).or_else(|| context.desired.topology.exchanges.get(name));
        declared.map(|exchange| exchange.kind.as_str()).or_else(|| predeclared_type(name)) == Some("topic")
    };
    let bindings: Vec<&Binding> = steps
        .iter()
        .flat_map(|step| match &step.action {
            Action::Bind { binding } | Action::Unbind { binding, .. } => std::slice::from_ref(binding),
            Action::DeclareExchange { bindings, .. } => &bindings[..],
            Action::PutVhost { .. }
            | Action::PutTopicPermission { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. }
            | Action::MoveMessages { .. }
            | Action::DeleteExchange { .. }
            | Action::DeleteQueue { .. }
            | Action::DeletePolicy { .. }
            | Action::PutRecord { .. }
            | Action::DeleteRecord { .. } => &[],
        })
        .filter(|binding| is_topic(&binding.source))
        .collect();
    let of_own = builder.changes.iter().filter_map(|change| {
        let record = record(change.after.as_ref(), RecordKind::TopicPermission)?;
        let permission = record.topic_permission().filter(|it| it.user.as_str() == own)?;
        let read = pattern(&permission.read);
        let refused = bindings.iter().find(|binding| {
            binding.source == permission.exchange && read.matches(&binding.routing_key) != Some(true)
        })?;
        Some((change.address.clone(), format!(
            "the topic permission of user {own}, which topo uses to connect, does not permit the binding {refused} in this plan"
        )))
    });
    for (address, text) in of_own.collect::<Vec<_>>() {
        builder.block(&address, text, Some(REMEDY.to_owned()));
    }
}

/// Blocks the plan if it deletes the connected user, removes the user's `administrator` tag or password, or sets a
/// password hash for the user. Also blocks the plan if no administrator with a password would remain.
pub(super) fn check_users(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let changed = users::changed_users(builder);
    let of_own = changed.iter().filter(|changed| context.records.user.as_ref() == Some(&changed.name));
    for ChangedUser { name, address, before, after } in of_own {
        let Some(before) = before else { continue };
        let loses_tag = |after: &Record| after.fields.contains_key("tags") && !after.has_tag(ADMINISTRATOR);
        let (text, remedy) = match after {
            None => (format!("the plan deletes user {name}"), "keep this user"),
            Some(after) if before.has_tag(ADMINISTRATOR) && loses_tag(after) => {
                (format!("the plan removes the administrator tag from user {name}"), "keep the tag")
            }
            Some(after) if !users::changes_password(before, after) => continue,
            Some(after) if !users::has_password(after) => {
                (format!("the plan removes the password of user {name}"), "keep the password")
            }
            Some(after) if after.fields.contains_key("passwordHash") => {
                (format!("the plan sets a password hash for user {name}"), "use `password`")
            }
            Some(_) => {
                let text = format!(
                    "topo connects as user {name}, so it changes this password last and then uses the new password"
                );
                builder.info(address, text);
                continue;
            }
        };
        let remedy = format!("{remedy}, or apply the plan as a different administrator");
        builder.block(address, format!("{text}, which topo uses to connect"), Some(remedy));
    }
    let can_administer =
        |tags: &Record, password: &Record| tags.has_tag(ADMINISTRATOR) && users::has_password(password);
    let of_users = context.current.records.values().filter(|record| record.id.kind == RecordKind::User);
    let administrators: BTreeSet<&str> =
        of_users.filter(|user| can_administer(user, user)).filter_map(|user| user.id.name()).collect();
    let mut remaining = administrators.clone();
    for ChangedUser { name, before, after, .. } in &changed {
        remaining.remove(name.as_str());
        let Some(after) = after else { continue };
        // If a key is missing, topo keeps the current value.
        let sets = |keys: &[&str]| before.is_none() || keys.iter().any(|key| after.fields.contains_key(*key));
        let effective = |keys| if sets(keys) { Some(after) } else { before.as_ref() };
        if let (Some(tags), Some(password)) = (effective(&["tags"]), effective(&["password", "passwordHash"]))
            && can_administer(tags, password)
        {
            remaining.insert(name);
        }
    }
    let lost = changed.iter().find(|changed| administrators.contains(changed.name.as_str()));
    if let Some(lost) = lost.filter(|_| remaining.is_empty()) {
        let text = "the plan leaves no user with the administrator tag and a password".to_owned();
        builder.block(
            &lost.address,
            text,
            Some("keep one such user, or create another administrator first".to_owned()),
        );
    }
}
