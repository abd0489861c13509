//! Adds the blockers, hazards and notes for created, changed and deleted users.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, PlannedChange, VhostPlan};
use super::hazard::HazardKind;
use super::permissions::record;
use crate::model::count::{count, number};
use crate::model::{Address, ArgumentValue, ObjectId, Record, RecordKind};
use std::collections::BTreeMap;

/// The spec fields that set a user's password.
const PASSWORD_FIELDS: [&str; 3] = ["password", "initialPassword", "passwordHash"];
/// The tags that allow a user to change everything, or only policies and runtime parameters.
const WRITER_TAGS: [&str; 2] = ["administrator", "policymaker"];

/// The maximum number of shovels and upstreams that a message lists.
const MAX_NAMED: usize = 3;

/// Returns true if a plan changes or deletes users. In that case, topo reads the connections to all vhosts.
pub fn changes_users(part: &VhostPlan) -> bool {
    part.changes.iter().any(|change| change.kind != ChangeKind::Create && changed_user(change).is_some())
}

/// Returns the users that a plan changes or deletes, including users whose limits change. The value is true for a
/// deleted user.
pub fn affected_users(part: &VhostPlan) -> BTreeMap<String, bool> {
    let mut affected: BTreeMap<String, bool> = BTreeMap::new();
    for change in part.changes.iter().filter(|change| change.kind != ChangeKind::Create) {
        let Some(ObjectId::Record(id)) = change.id() else { continue };
        if let (RecordKind::User | RecordKind::UserLimit, Some(name)) = (id.kind, id.name()) {
            let is_deleted = id.kind == RecordKind::User && change.kind == ChangeKind::Delete;
            *affected.entry(name.to_owned()).or_default() |= is_deleted;
        }
    }
    affected
}

/// A created, changed or deleted user.
pub(super) struct ChangedUser {
    pub(super) name: String,
    pub(super) address: Address,
    /// `None` if the plan creates the user.
    pub(super) before: Option<Record>,
    /// `None` if the plan deletes the user.
    pub(super) after: Option<Record>,
}

fn changed_user(change: &PlannedChange) -> Option<ChangedUser> {
    let user = |object| record(object, RecordKind::User).cloned();
    let (before, after) = (user(change.before.as_ref()), user(change.after.as_ref()));
    let name = before.as_ref().or(after.as_ref())?.id.name()?.to_owned();
    Some(ChangedUser { name, address: change.address.clone(), before, after })
}

/// Returns the users that the plan creates, changes or deletes.
pub(super) fn changed_users(builder: &PlanBuilder) -> Vec<ChangedUser> {
    builder.changes.iter().filter_map(changed_user).collect()
}

/// Returns true unless the user has `password: none`.
pub(super) fn has_password(user: &Record) -> bool {
    user.fields.get("password").and_then(ArgumentValue::as_text) != Some("none")
}

/// Returns true if a change sets, changes or deletes the password of an existing user.
pub(super) fn changes_password(before: &Record, after: &Record) -> bool {
    let is_set = |field: &&str| {
        let desired = after.fields.get(*field);
        desired.is_some() && desired != before.fields.get(*field)
    };
    ["password", "passwordHash"].iter().any(is_set)
}

/// Adds the blockers, hazards and notes for created, changed and deleted users.
pub(super) fn check(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    for (id, reason) in &context.records.not_compared {
        let address = context.address(&ObjectId::Record(id.clone()));
        builder.info(&address, format!("the password is not compared: {reason}"));
    }
    for ChangedUser { name, address, before, after } in changed_users(builder) {
        match (before, after) {
            (None, Some(after)) if !PASSWORD_FIELDS.iter().any(|field| after.fields.contains_key(*field)) => {
                let remedy = "set `password`, `initialPassword` or `passwordHash`; for a user without a password, set \
                              `password: none`"
                    .to_owned();
                let text = format!("user {name} does not exist, and the spec sets no password");
                builder.block(&address, text, Some(remedy));
            }
            (Some(_), None) => {
                let connections = match connections(context, &name) {
                    Some(0) => String::new(),
                    Some(many) => format!(", and closes {}", count(many, "open connection")),
                    None => ", and closes its open connections (topo cannot count them)".to_owned(),
                };
                let links = links(context, &name);
                let text =
                    format!("the broker deletes the permissions of user {name} in every vhost{connections}{links}");
                builder.hazard(HazardKind::AccessLoss, &address, text, None);
            }
            (Some(before), Some(after)) => {
                tag_hazards(builder, (&name, &address), &before, &after);
                if changes_password(&before, &after) && !has_password(&before) {
                    builder.info(&address, format!("user {name} can connect with a password after the apply"));
                } else if changes_password(&before, &after) {
                    password_hazard(builder, context, (&name, &address), &after);
                }
            }
            (None, Some(after)) => {
                let gained: Vec<&str> = after.tags().filter(|tag| WRITER_TAGS.contains(tag)).collect();
                if !gained.is_empty() {
                    let text = format!("the new user {name} has the {}", tags(&gained));
                    builder.hazard(HazardKind::AccessGain, &address, text, None);
                }
            }
            (None, None) => {}
        }
    }
}

/// Formats tags: `monitoring tag`, `tags administrator, monitoring`.
fn tags(tags: &[&str]) -> String {
    match tags {
        [tag] => format!("{tag} tag"),
        _ => format!("tags {}", tags.join(", ")),
    }
}

fn tag_hazards(builder: &mut PlanBuilder, (name, address): (&str, &Address), before: &Record, after: &Record) {
    if !after.fields.contains_key("tags") {
        return;
    }
    let gained: Vec<&str> = after.tags().filter(|tag| !before.has_tag(tag)).collect();
    let lost: Vec<&str> = before.tags().filter(|tag| !after.has_tag(tag)).collect();
    if !gained.is_empty() {
        let text = format!("user {name} gains the {}", tags(&gained));
        match gained.iter().any(|tag| WRITER_TAGS.contains(tag)) {
            true => builder.hazard(HazardKind::AccessGain, address, text, None),
            false => builder.info(address, text),
        }
    }
    if !lost.is_empty() {
        let text = format!("user {name} loses the {}", tags(&lost));
        builder.hazard(HazardKind::AccessLoss, address, text, None);
    }
}

fn password_hazard(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    (name, address): (&str, &Address),
    after: &Record,
) {
    let effect = match has_password(after) {
        true => "clients that use the old password can no longer connect",
        false => "clients can no longer connect with a password",
    };
    let links = links(context, name);
    let open = match connections(context, name) {
        Some(0) if links.is_empty() => return builder.info(address, format!("user {name}: {effect}")),
        Some(0) => String::new(),
        Some(1) => "; 1 open connection stays open".to_owned(),
        Some(many) => format!("; {} open connections stay open", number(many)),
        None => "; open connections stay open (topo cannot count them)".to_owned(),
    };
    builder.hazard(HazardKind::CredentialChange, address, format!("user {name}: {effect}{open}{links}"), None);
}

/// Returns the number of a user's open connections across all vhosts; `None` if unknown.
pub(super) fn connections(context: &PlanContext<'_>, user: &str) -> Option<u64> {
    context.activity.connections.as_ref().map(|users| users.get(user).copied().unwrap_or_default())
}

/// Lists the shovels and federation upstreams that connect as a user. They keep running until they reconnect. Returns
/// an empty string if there are none.
fn links(context: &PlanContext<'_>, user: &str) -> String {
    let of_user = context.activity.links.as_ref().and_then(|links| links.get(user));
    let Some(of_user) = of_user.filter(|links| !links.is_empty()) else { return String::new() };
    let mut listed = of_user.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if let more @ 1.. = of_user.len().saturating_sub(MAX_NAMED) {
        listed += &format!(" and {} more", number(more as u64));
    }
    format!("; URIs that contain this user: {listed}")
}
