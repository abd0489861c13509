//! Formats the parts of a change: its symbol, the details of its object, the values of a setting, and the activity of a
//! queue.

use super::style::{GREEN, RED, YELLOW, clean};
use crate::model::count::{count, number};
use crate::model::record_kinds::{
    FieldShape, Layout, MEMBER_NAME, PASSWORD_IS_SET, PASSWORDS_DIFFER, RECORD_KINDS, RecordField,
};
use crate::model::units::with_unit;
use crate::model::{
    ArgumentValue, Arguments, Binding, Destination, Object, Policy, Queue, Record, RecordKind, SecretRef,
};
use crate::plan::{ChangeKind, FieldVerdict, PlannedChange, QueueActivity, Source, Verdict};
use anstyle::Style;
use std::collections::BTreeMap;

/// Returns the symbol before an object, and its style.
pub(super) fn symbol(kind: ChangeKind) -> (&'static str, Style) {
    match kind {
        ChangeKind::Create => ("  +", GREEN),
        ChangeKind::Change => ("  ~", YELLOW),
        ChangeKind::Recreate => ("-/+", RED),
        ChangeKind::Delete => ("  -", RED),
        ChangeKind::Conflict => ("  !", RED),
    }
}

/// Returns the file and line where the spec declares the object, such as `topology.yaml:12`. Returns `None` if the spec
/// does not declare the object.
pub(super) fn spec_line(change: &PlannedChange) -> Option<String> {
    change.source.as_ref().map(place)
}

/// Formats a position in a spec, such as `shop.yaml:14`. Omits the folder of the file.
pub(super) fn place(source: &Source) -> String {
    let file = source.file.rsplit('/').next().unwrap_or(&source.file);
    format!("{}:{}", clean(file), source.line)
}

/// Returns the details of a change, which are printed next to the object or below its name.
pub(super) fn details(change: &PlannedChange) -> Vec<String> {
    let fields = change.fields.iter().filter(|field| field.verdict != Verdict::Unknown).count() as u64;
    let drift = change.conflict.as_ref().is_some_and(|conflict| conflict.broker_error.is_none());
    match change.kind {
        ChangeKind::Create => change.after.as_ref().map(object_details).unwrap_or_default(),
        ChangeKind::Change => vec![format!("change in place: {}", count(fields, "setting"))],
        ChangeKind::Recreate if drift => {
            vec![format!("recreate: {}", drift_summary(fields))]
        }
        ChangeKind::Conflict if drift => vec![format!("drift: {}", drift_summary(fields))],
        ChangeKind::Recreate => vec![format!("recreate: {} cannot change in place", count(fields, "setting"))],
        ChangeKind::Conflict => vec![format!("conflict: {} cannot change in place", count(fields, "setting"))],
        ChangeKind::Delete => {
            let why = match change.reason {
                Some(crate::diff::DeleteReason::Removed) => "listed under `removed`",
                Some(crate::diff::DeleteReason::Unmanaged) => "unmanaged, to be pruned",
                Some(crate::diff::DeleteReason::Unset) if is_flag(change) => "set to false in the spec",
                Some(crate::diff::DeleteReason::Unset) => "not set in the spec",
                Some(crate::diff::DeleteReason::Retired) => "retired",
                None => "deleted",
            };
            [Some(why.to_owned()), change.live.as_ref().map(activity)].into_iter().flatten().collect()
        }
    }
}

/// Returns true if the change concerns a record that a spec declares with `true` or `false`.
fn is_flag(change: &PlannedChange) -> bool {
    let has_flag = |record: &Record| record.id.fields().iter().any(|field| field.shape == FieldShape::Flag);
    matches!(&change.before, Some(Object::Record(record)) if has_flag(record))
}

fn drift_summary(fields: u64) -> String {
    let verb = if fields == 1 { "differs" } else { "differ" };
    format!("{} {verb}; redeclaring is a no-op", count(fields, "argument"))
}

fn object_details(object: &Object) -> Vec<String> {
    match object {
        Object::Vhost(vhost) => {
            let kind = vhost.default_queue_type.as_ref().map(|kind| format!("default queue type {}", clean(kind)));
            let tags = vhost.tags.iter().flatten().map(|tag| clean(tag)).collect::<Vec<_>>().join(", ");
            let tags = (!tags.is_empty()).then(|| format!("tags {tags}"));
            let description = vhost.description.as_ref().map(|text| format!("{:?}", clean(text)));
            description.into_iter().chain(tags).chain(kind).collect()
        }
        Object::Exchange(_, exchange) => {
            let mut details = vec![clean(&exchange.kind)];
            details.extend((!exchange.durable).then(|| "transient".to_owned()));
            details.extend(exchange.auto_delete.then(|| "auto-delete".to_owned()));
            details.extend(exchange.internal.then(|| "internal".to_owned()));
            details.extend(arguments(&exchange.arguments, ""));
            details
        }
        Object::Policy(_, policy) => policy_details(policy),
        Object::Record(record) => match record.operator_policy() {
            Some((_, policy)) => policy_details(&policy),
            None => record_details(record),
        },
        Object::Queue(_, queue) => queue_details(queue),
        Object::Binding(_) => Vec::new(),
    }
}

/// Returns the details of a record: its value, its shorthand, or the fields that differ from their defaults. Returns
/// all fields if none differs.
fn record_details(record: &Record) -> Vec<String> {
    let row = record.id.kind.row();
    if let Layout::Value([field]) = row.layout {
        return record.fields.values().map(|value| clean(&with_unit_of(field, value))).collect();
    }
    if let Layout::Settings(_) = row.layout {
        return record.fields.values().map(|value| clean(&value.to_string())).collect();
    }
    if let Some(word) = record.shorthand() {
        return vec![word.to_owned()];
    }
    let differs = |field: &&RecordField| record.fields.get(field.name) != field.default_value().as_ref();
    let differing: Vec<&RecordField> = row.settings().iter().filter(differs).collect();
    let fields = if differing.is_empty() { row.settings().iter().collect() } else { differing };
    let detail = |field: &RecordField| {
        let value = record.fields.get(field.name)?;
        let key = match field.group {
            "" => field.key.to_owned(),
            group => format!("{group}.{}", field.key),
        };
        Some(match (secret_of(field.name, value), field.shape) {
            (Some(secret), _) => format!("{key} from {}", clean(&secret.to_string())),
            (None, FieldShape::Tags) if record.tags().next().is_none() => "no tags".to_owned(),
            (None, FieldShape::Tags) => {
                format!("{key} {}", clean(&record.tags().collect::<Vec<_>>().join(", ")))
            }
            (None, _) => format!("{key} {}", clean(&with_unit_of(field, value))),
        })
    };
    fields.into_iter().filter_map(detail).collect()
}

fn policy_details(policy: &Policy) -> Vec<String> {
    let mut details =
        vec![format!("\"{}\" on {}, priority {}", clean(&policy.pattern), policy.apply_to, policy.priority)];
    details.extend(arguments(&policy.definition, ""));
    details
}

fn queue_details(queue: &Queue) -> Vec<String> {
    let mut details = vec![clean(queue.type_name())];
    details.extend((!queue.durable).then(|| "transient".to_owned()));
    details.extend(queue.auto_delete.then(|| "auto-delete".to_owned()));
    details.extend(arguments(&queue.arguments, "x-queue-type"));
    details
}

fn arguments(arguments: &Arguments, except: &str) -> Vec<String> {
    let shown = |(key, value): (&String, _)| format!("{} {}", clean(key), clean(&with_unit(key, value)));
    arguments.iter().filter(|(key, _)| *key != except).map(shown).collect()
}

/// Returns the name of a setting, its current value and its desired value.
pub(super) fn field_values(field: &FieldVerdict) -> (String, String, String) {
    let value = |value: &Option<_>| match value {
        Some(value) => shown(&field.field, value),
        None => "absent".to_owned(),
    };
    let secret = field.after.as_ref().and_then(|after| secret_of(&field.field, after));
    let before = match (&field.before, &field.after, &secret) {
        (None, Some(_), Some(_)) if is_user_secret(&field.field) => "a different value".to_owned(),
        (Some(before), _, Some(_)) if is_set(before) => "a different value".to_owned(),
        (None, Some(after), None) if field.field == "password" && after.as_text() == Some("none") => "set".to_owned(),
        (before, _, _) => value(before),
    };
    (clean(&field.field), before, value(&field.after))
}

/// Returns true if the value represents a password on the broker that differs from the password in the spec.
fn is_set(value: &ArgumentValue) -> bool {
    [Some(PASSWORD_IS_SET), Some(PASSWORDS_DIFFER)].contains(&value.as_text())
}

/// Returns true if the setting is a user's password. The current record contains the reference to the password only if
/// the password matches the hash on the broker.
fn is_user_secret(name: &str) -> bool {
    let is_secret = |field: &RecordField| field.name == name && matches!(field.shape, FieldShape::Secret { .. });
    RecordKind::User.row().settings().iter().any(is_secret)
}

/// Returns the reference to a secret if the setting is a password or a URI. Values of other settings can have the same
/// form.
fn secret_of(name: &str, value: &ArgumentValue) -> Option<SecretRef> {
    let is_secret = |field: &RecordField| {
        field.name == name && matches!(field.shape, FieldShape::Secret { .. } | FieldShape::Uris { .. })
    };
    let is_in_table = RECORD_KINDS.iter().any(|row| row.settings().iter().any(is_secret));
    SecretRef::of(value).filter(|_| is_in_table)
}

/// Formats the value of a setting. For a secret, formats the reference to the secret.
fn shown(name: &str, value: &ArgumentValue) -> String {
    let fields = RECORD_KINDS.iter().flat_map(|row| row.settings());
    let seconds_field = fields.into_iter().find(|field| field.name == name && field.shape == FieldShape::Seconds);
    let text = || {
        if let ArgumentValue::List(members) = value
            && !members.is_empty()
            && members.iter().all(is_member)
        {
            return members.iter().map(member).collect::<Vec<_>>().join(", ");
        }
        seconds_field.map_or_else(|| with_unit(name, value), |field| with_unit_of(field, value))
    };
    clean(&secret_of(name, value).map_or_else(text, |secret| secret.to_string()))
}

/// Formats the value of a record field with its unit.
fn with_unit_of(field: &RecordField, value: &ArgumentValue) -> String {
    match (field.shape, value) {
        (FieldShape::Seconds, ArgumentValue::Integer(seconds)) => format!("{seconds}s"),
        (FieldShape::Milliseconds, value) => with_unit(field.name, value),
        (FieldShape::Members, ArgumentValue::List(members)) => {
            members.iter().map(member).collect::<Vec<_>>().join(", ")
        }
        (_, value) => value.to_string(),
    }
}

fn is_member(value: &ArgumentValue) -> bool {
    matches!(value, ArgumentValue::Table(fields) if fields.contains_key(MEMBER_NAME))
}

/// Formats a member of an upstream set, such as `us` or `us (exchange orders-us)`.
fn member(member: &ArgumentValue) -> String {
    let ArgumentValue::Table(fields) = member else { return member.to_string() };
    let name = fields.get(MEMBER_NAME).and_then(ArgumentValue::as_text).unwrap_or_default();
    let others = fields.iter().filter(|(key, _)| *key != MEMBER_NAME);
    let overrides: Vec<String> = others.map(|(key, value)| format!("{key} {}", with_unit(key, value))).collect();
    if overrides.is_empty() { name.to_owned() } else { format!("{name} ({})", overrides.join(", ")) }
}

/// Formats the activity of a queue, such as `1,204 messages · 3 consumers (10.0.4.17 ×2, 10.0.4.9)`.
pub(super) fn activity(live: &QueueActivity) -> String {
    let messages = live.messages.map_or_else(|| "messages unknown".to_owned(), |messages| count(messages, "message"));
    let unacknowledged = live
        .unacknowledged
        .filter(|count| *count > 0)
        .map_or_else(String::new, |count| format!(" ({} unacknowledged)", number(count)));
    let consumers = match &live.consumers {
        None => "consumers unknown".to_owned(),
        // The consumer count is newer than the consumer list, which does not include new consumers yet.
        Some(hosts) if hosts.is_empty() && live.unlisted_consumers.is_some() => {
            format!("{} (not listed yet)", count(live.unlisted_consumers.unwrap_or(0), "consumer"))
        }
        Some(_) if live.held_by_unlisted().is_some() => "no consumers listed".to_owned(),
        Some(hosts) => {
            let mut by_host: BTreeMap<&str, usize> = BTreeMap::new();
            for host in hosts.iter().filter(|host| !host.is_empty()) {
                *by_host.entry(host).or_default() += 1;
            }
            let is_abbreviated = by_host.len() > MAX_HOSTS;
            let mut hosts_text: Vec<String> = by_host
                .into_iter()
                .take(MAX_HOSTS)
                .map(|(host, times)| if times == 1 { clean(host) } else { format!("{} ×{times}", clean(host)) })
                .collect();
            if is_abbreviated {
                hosts_text.push("…".to_owned());
            }
            let details = if hosts_text.is_empty() { String::new() } else { format!(" ({})", hosts_text.join(", ")) };
            format!("{}{details}", count(hosts.len() as u64, "consumer"))
        }
    };
    format!("{messages}{unacknowledged} · {consumers}")
}

/// The maximum number of hosts in a list of consumers.
const MAX_HOSTS: usize = 5;

/// Formats a binding with its destination, for lists that are not grouped by destination.
pub(super) fn full_binding(binding: &Binding) -> String {
    let kind = match binding.destination {
        Destination::Queue(_) => "",
        Destination::Exchange(_) => " (exchange)",
    };
    clean(&format!("{binding}{kind}"))
}

/// Returns a remark if a broker error contains the integer type that the management API sends. Otherwise, returns an
/// empty string. The error that an application receives can contain other types, because client libraries send other
/// integer types ([`Library::integer_type`]). Likewise, the type of the current value depends on the client that
/// declared the object.
///
/// [`Library::integer_type`]: crate::model::known_clients::Library::integer_type
pub(super) fn integer_remark(broker_error: &str) -> &'static str {
    match broker_error.contains("' of type 'long'") {
        true => " (the integer type depends on the client)",
        false => "",
    }
}
