//! Adds hazards for changed permissions and topic permissions: the objects and routing keys that a user can no longer
//! use, and the connections that keep the old permissions.
//!
//! The broker matches permission patterns in the same way as policy patterns (measured with 684 declarations on 3.8.9
//! to 4.3.6). An open channel caches permissions while it is busy, and consumers keep receiving messages until they
//! are canceled (measured on the same versions).

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, PlannedChange, VhostPlan};
use super::hazard::HazardKind;
use super::request::path;
use super::rights::{Permission, permission_name};
use crate::model::count::{count, number};
use crate::model::{Address, ArgumentValue, Object, Record, RecordId, RecordKind, TopicPermission};
use crate::rabbitmq::Pattern;
use crate::rabbitmq::profile::predeclared_in_every_vhost;
use std::collections::BTreeSet;

/// The topic permission patterns that topo treats as matching every routing key.
const EVERYTHING: [&str; 7] = [".*", "^.*", ".*$", "^.*$", ".+", "^", "."];
/// The maximum number of objects that a message lists for each permission.
const MAX_NAMED: usize = 3;

/// Returns true if a plan changes or deletes permissions, or writes or deletes topic permissions. In that case, topo
/// reads the connections to the vhost.
pub fn changes_permissions(part: &VhostPlan) -> bool {
    part.changes.iter().any(|change| changed_permission(change).is_some() || topic_permissions(change).is_some())
}

/// A permission that a plan changes or deletes.
struct ChangedPermission {
    user: String,
    address: Address,
    before: Permission,
    /// `None` if the permission is deleted.
    after: Option<Permission>,
}

fn changed_permission(change: &PlannedChange) -> Option<ChangedPermission> {
    if !matches!(change.kind, ChangeKind::Change | ChangeKind::Delete) {
        return None;
    }
    let before = record(change.before.as_ref(), RecordKind::Permission)?;
    Some(ChangedPermission {
        user: before.id.name()?.to_owned(),
        address: change.address.clone(),
        before: permission(before),
        after: record(change.after.as_ref(), RecordKind::Permission).map(permission),
    })
}

/// Returns the record if the object is a record of this kind.
pub(super) fn record(object: Option<&Object>, kind: RecordKind) -> Option<&Record> {
    match object? {
        Object::Record(record) => (record.id.kind == kind).then_some(record),
        Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_) => None,
    }
}

/// Returns the patterns of a permission.
pub(super) fn permission(record: &Record) -> Permission {
    let pattern =
        |field: &str| record.fields.get(field).and_then(ArgumentValue::as_text).unwrap_or_default().to_owned();
    Permission { configure: pattern("configure"), write: pattern("write"), read: pattern("read") }
}

/// Returns the topic permissions before and after a change; `None` if the change affects a different kind of object. A
/// topic permission that has no effect is treated as missing.
fn topic_permissions(change: &PlannedChange) -> Option<(Option<TopicPermission>, Option<TopicPermission>)> {
    let of = |object: &Option<Object>| {
        let record = record(object.as_ref(), RecordKind::TopicPermission)?;
        Some(record.topic_permission().filter(|_| !record.is_without_effect()))
    };
    let (before, after) = (of(&change.before), of(&change.after));
    (before.is_some() || after.is_some()).then(|| (before.flatten(), after.flatten()))
}

/// Adds a hazard for each permission change that revokes access, and for each topic permission change that revokes or
/// grants access.
pub(super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    permission_hazards(builder, context);
    topic_hazards(builder, context);
}

/// Adds the hazards for topic permissions. A user without a topic permission for an exchange may use any routing key.
fn topic_hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let changed =
        builder.changes.iter().filter_map(|change| Some((change.address.clone(), topic_permissions(change)?)));
    let changed: Vec<_> = changed.collect();
    for (address, (before, after)) in changed {
        let Some(TopicPermission { user, exchange, .. }) = before.as_ref().or(after.as_ref()) else { continue };
        let is_open = |pattern: &str| EVERYTHING.contains(&pattern);
        let patterns = |it: &Option<TopicPermission>| match it {
            Some(it) => [it.write.clone(), it.read.clone()],
            None => [".*".to_owned(), ".*".to_owned()],
        };
        let (from, to) = (patterns(&before), patterns(&after));
        let gained = from.iter().zip(&to).zip(["publish", "bind"]);
        let gained: Vec<&str> =
            gained.filter(|((from, to), _)| !is_open(from) && is_open(to)).map(|(_, verb)| verb).collect();
        let has_gain = !gained.is_empty() && has_permission(builder, context, user.as_str(), When::After);
        let is_restricted = from.iter().zip(&to).any(|(from, to)| from != to && !is_open(to));
        let exists = context.current.exchanges.contains_key(exchange) || exchange.is_predeclared();
        let has_loss = is_restricted && exists && has_permission(builder, context, user.as_str(), When::Before);
        if has_gain {
            let verbs = gained.join(" and ");
            let text = format!("after the apply, user {user} may {verbs} with any routing key on exchange {exchange}");
            builder.hazard(HazardKind::AccessGain, &address, text, None);
        }
        if has_loss {
            let [write, read] = &to;
            let connections = connections(context, user.as_str(), false);
            let text = format!(
                "after the apply, user {user} may publish to exchange {exchange} only with routing keys that match \
                 `{write}`, and bind only with routing keys that match `{read}`; existing bindings remain{connections}"
            );
            builder.hazard(HazardKind::AccessLoss, &address, text, None);
        }
    }
}

/// The point in time at which permissions are checked: before or after the plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Before,
    After,
}

/// Returns true if the user has permissions at the given point in time, or if topo does not know the permissions.
fn has_permission(builder: &PlanBuilder, context: &PlanContext<'_>, user: &str, when: When) -> bool {
    if !context.desired.scope.sections.contains_key(&RecordKind::Permission) {
        return true;
    }
    let id = RecordId::named(RecordKind::Permission, user);
    let exists = context.current.records.contains_key(&id);
    let mut changed = builder.changes.iter().filter_map(changed_permission);
    let is_deleted = changed.any(|changed| changed.user == user && changed.after.is_none());
    match when {
        When::Before => exists,
        When::After => context.desired.topology.records.contains_key(&id) || exists && !is_deleted,
    }
}

/// Adds a hazard for each permission change that revokes access to an object or to the vhost. Adds a note for each
/// change that grants access to an object.
fn permission_hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let changed: Vec<ChangedPermission> = builder.changes.iter().filter_map(changed_permission).collect();
    if changed.is_empty() {
        return;
    }
    let names = Names::of(context);
    for ChangedPermission { user, address, before, after } in changed {
        let none = Permission::default();
        let to = after.as_ref().unwrap_or(&none);
        let patterns = [
            ("configure", &before.configure, &to.configure, &names.declared),
            ("write", &before.write, &to.write, &names.all),
            ("read", &before.read, &to.read, &names.all),
        ];
        let lost: Vec<String> = patterns
            .iter()
            .filter_map(|(right, before, after, names)| difference(before, after, names).describe(right))
            .collect();
        let gained: Vec<String> = patterns
            .iter()
            .filter_map(|(right, before, after, names)| difference(after, before, names).describe(right))
            .collect();
        if !gained.is_empty() {
            builder.info(&address, format!("user {user} gains {}", gained.join("; ")));
        }
        let text = match (&after, &lost[..]) {
            (Some(_), []) => continue,
            (Some(_), lost) => format!("user {user} loses {}", lost.join("; ")),
            (None, []) => format!("user {user} loses access to the vhost"),
            (None, lost) => format!("user {user} loses access to the vhost: {}", lost.join("; ")),
        };
        let text = text + &connections(context, &user, true);
        builder.hazard(HazardKind::AccessLoss, &address, text, None);
    }
}

/// Describes how long a user's connections to the vhost keep the old permissions, and how to close the connections.
/// Returns an empty string if the user has no connections. `has_consumers` is true if consumers also keep the old
/// permissions.
fn connections(context: &PlanContext<'_>, user: &str, has_consumers: bool) -> String {
    let of_user = context.activity.connections.as_ref().map(|users| users.get(user).copied().unwrap_or_default());
    let open = match of_user {
        Some(0) => return String::new(),
        Some(1) => "1 open connection: its".to_owned(),
        Some(many) => format!("{} open connections: their", number(many)),
        None => "topo cannot count the open connections of this user: their".to_owned(),
    };
    let consumers = if has_consumers { ", and consumers keep receiving messages until they are canceled" } else { "" };
    let mut text =
        format!("; {open} channels keep the old permissions until they have been idle for about 1 s{consumers}");
    if context.profile.version.is_at_least(3, 10) {
        let path = path("connections", &["username", user]);
        text += &format!("; to close all connections of this user, in every vhost: DELETE {path}");
    }
    text
}

/// The names that permissions are checked against.
struct Names {
    /// The current and desired exchanges and queues.
    declared: Vec<String>,
    /// The declared names, and the names of the predeclared exchanges.
    all: Vec<String>,
}

impl Names {
    fn of(context: &PlanContext<'_>) -> Self {
        let mut declared: BTreeSet<String> = BTreeSet::new();
        for topology in [context.current, &context.desired.topology] {
            declared.extend(topology.exchanges.keys().map(|name| name.as_str().to_owned()));
            declared.extend(topology.queues.keys().map(|name| name.as_str().to_owned()));
        }
        let declared: Vec<String> = declared.into_iter().collect();
        let predeclared = predeclared_in_every_vhost().map(|name| name.as_str().to_owned());
        let default = [permission_name("").to_owned()];
        let all = declared.iter().cloned().chain(default).chain(predeclared).collect();
        Self { declared, all }
    }
}

/// The objects that the first pattern matches or might match, but that the second pattern does not match or might not
/// match.
#[derive(Default)]
struct Difference<'a> {
    names: Vec<&'a str>,
    /// The number of objects that the first pattern matches or may match.
    all: usize,
    /// True if topo could not evaluate one of the patterns for some object.
    is_uncertain: bool,
}

fn difference<'a>(from: &str, to: &str, names: &'a [String]) -> Difference<'a> {
    if from == to {
        return Difference::default();
    }
    let (from, to) = (pattern(from), pattern(to));
    let mut found = Difference::default();
    for name in names {
        match (from.matches(name), to.matches(name)) {
            (Some(true), Some(false)) => found.names.push(name),
            (Some(false), _) | (_, Some(true)) => {}
            (None, _) | (_, None) => {
                found.is_uncertain = true;
                found.names.push(name);
            }
        }
        found.all += usize::from(from.matches(name) != Some(false));
    }
    found
}

/// Compiles a permission pattern. The empty pattern matches no object.
pub(super) fn pattern(text: &str) -> Pattern {
    Pattern::new(if text.is_empty() { "^$" } else { text })
}

impl Difference<'_> {
    /// Describes the objects: `write on orders, events (2 of 9 objects)`. Returns `None` if there are no objects.
    fn describe(&self, right: &str) -> Option<String> {
        if self.names.is_empty() {
            return None;
        }
        let mut listed = self.names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
        if let more @ 1.. = self.names.len().saturating_sub(MAX_NAMED) {
            listed += &format!(" and {} more", number(more as u64));
        }
        let (lost, objects) = (number(self.names.len() as u64), count(self.all as u64, "object"));
        Some(match self.is_uncertain {
            true => format!("{right} on {listed} (at most {lost} of {objects}; topo cannot evaluate a pattern)"),
            false => format!("{right} on {listed} ({lost} of {objects})"),
        })
    }
}
