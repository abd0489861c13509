//! Converts exchanges, bindings, policies and records to YAML trees. The table of record kinds determines the sections
//! and the keys of records.

use super::recognize::DeadLetterQueue;
use crate::model::record_kinds::{
    FieldShape, Layout, MEMBER_NAME, Place, RECORD_KINDS, RecordField, RecordRow, RecordScope, member_fields,
};
use crate::model::yaml::value::{arguments, exact, with_unit, without_key};
use crate::model::yaml::{Entry, Tree, entry};
use crate::model::{
    ApplyTo, ArgumentValue, Arguments, Binding, Exchange, ObjectId, Policy, Priority, QueueName, Record, RecordId,
    Records, Topology,
};
use crate::plan::spec_keys::{self, key_and_arguments};
use crate::rabbitmq::policy_keys::PolicyKey;
use std::collections::BTreeMap;

/// A function that creates the entry for an object, including its comments.
type WriteObject<'a> = &'a dyn Fn(ObjectId, &str, Tree) -> Entry;

/// Returns the sections that contain records.
pub(super) fn sections(kept: &Topology, write: WriteObject<'_>) -> Vec<Entry> {
    let rows = RecordRow::of_scope(RecordScope::Vhost).filter(|row| row.place == Place::Section);
    non_empty_tables(rows.map(|row| (row.section, record_entries(kept, write, row))))
}

/// Returns the entries of the `vhost` section that contain records.
pub(super) fn vhost_keys(kept: &Topology, write: WriteObject<'_>) -> Vec<Entry> {
    let rows = RECORD_KINDS.iter().filter_map(|row| match row.place {
        Place::Vhost(key) if matches!(row.layout, Layout::Value(_)) => {
            let record = kept.records.values().find(|record| record.id.kind == row.kind)?;
            Some(write(ObjectId::Record(record.id.clone()), key, record_tree(record, row)))
        }
        Place::Vhost(key) => {
            let settings = settings_of(&kept.records, row, None).into_iter();
            let entries = settings.map(|(id, key, value)| write(ObjectId::Record(id), key, value));
            let entries: Vec<Entry> = entries.collect();
            (!entries.is_empty()).then(|| entry(key, Tree::table(entries)))
        }
        Place::Section | Place::Entry(..) | Place::Entries(_) => None,
    });
    rows.collect()
}

/// Converts non-empty tables to entries.
fn non_empty_tables(tables: impl Iterator<Item = (&'static str, Vec<Entry>)>) -> Vec<Entry> {
    let non_empty = tables.filter(|(_, entries)| !entries.is_empty());
    non_empty.map(|(key, entries)| entry(key, Tree::table(entries))).collect()
}

/// Returns the settings of an owner, each with the ID of its record and its spec key. The owner is `None` for the
/// settings of the vhost itself.
pub(super) fn settings_of(
    records: &Records,
    row: &RecordRow,
    owner: Option<&str>,
) -> Vec<(RecordId, &'static str, Tree)> {
    let setting = |field: &RecordField| {
        let key = owner.into_iter().chain([field.name]).map(str::to_owned).collect();
        let record = records.get(&RecordId { kind: row.kind, key })?;
        Some((record.id.clone(), field.key, field_tree(field, record.fields.get("value")?)))
    };
    row.settings().iter().filter_map(setting).collect()
}

fn record_entries(kept: &Topology, write: WriteObject<'_>, row: &RecordRow) -> Vec<Entry> {
    let records_of_kind = kept.records.values().filter(|record| record.id.kind == row.kind);
    let written = |record: &Record| {
        let segment = record.id.key.last().map_or("", String::as_str);
        write(ObjectId::Record(record.id.clone()), segment, record_tree(record, row))
    };
    if row.key.len() < 2 {
        return records_of_kind.map(written).collect();
    }
    let mut by_name: BTreeMap<&str, Vec<Entry>> = BTreeMap::new();
    for record in records_of_kind {
        by_name.entry(record.id.name().unwrap_or_default()).or_default().push(written(record));
    }
    by_name.into_iter().map(|(name, entries)| entry(name, Tree::table(entries))).collect()
}

/// Returns the YAML tree of a record: its value, its shorthand, or its settings that differ from their defaults.
pub(super) fn record_tree(record: &Record, row: &RecordRow) -> Tree {
    let fields = row.settings().iter().filter_map(|field| Some((field, record.fields.get(field.name)?)));
    match row.layout {
        Layout::Value(_) => fields.map(|(field, value)| field_tree(field, value)).next().unwrap_or(Tree::table([])),
        Layout::Fields(_) | Layout::Settings(_) => {
            if let Some(word) = record.shorthand() {
                return Tree::text(word);
            }
            Tree::table(field_entries(record, row))
        }
    }
}

/// Returns the settings of a record that differ from their defaults.
pub(super) fn field_entries(record: &Record, row: &RecordRow) -> Vec<Entry> {
    let fields = row.settings().iter().filter_map(|field| Some((field, record.fields.get(field.name)?)));
    let mut entries: Vec<Entry> = Vec::new();
    let mut groups: Vec<(&str, Vec<Entry>)> = Vec::new();
    for (field, value) in fields.filter(|(field, value)| field.default_value().as_ref() != Some(value)) {
        let of_field = entry(field.key, field_tree(field, value));
        match groups.iter_mut().find(|(group, _)| *group == field.group) {
            _ if field.group.is_empty() => entries.push(of_field),
            Some((_, group)) => group.push(of_field),
            None => groups.push((field.group, vec![of_field])),
        }
    }
    groups.into_iter().map(|(group, keys)| entry(group, Tree::table(keys))).chain(entries).collect()
}

fn field_tree(field: &RecordField, value: &ArgumentValue) -> Tree {
    match (field.shape, value) {
        (FieldShape::Definition, ArgumentValue::Table(table)) => definition_tree(table),
        (FieldShape::Number, ArgumentValue::Float(float)) => number_tree(float.0),
        (FieldShape::Any | FieldShape::Tags, value) => exact(value),
        (
            FieldShape::Secret { .. } | FieldShape::Uris { .. } | FieldShape::Table | FieldShape::Arguments,
            value @ (ArgumentValue::List(_) | ArgumentValue::Table(_)),
        ) => exact(value),
        (FieldShape::Members, ArgumentValue::List(members)) => Tree::list(members.iter().map(member_tree)),
        (FieldShape::Seconds, ArgumentValue::Integer(seconds)) => Tree::text(&format!("{seconds}s")),
        (_, ArgumentValue::Text(text)) => Tree::text(text),
        (_, value) => Tree::plain(value),
    }
}

/// Converts a member of an upstream set to YAML. A member without overrides is written as just its name.
fn member_tree(member: &ArgumentValue) -> Tree {
    let ArgumentValue::Table(fields) = member else { return exact(member) };
    let name = fields.get(MEMBER_NAME).and_then(ArgumentValue::as_text);
    let overrides: Vec<Entry> = member_fields()
        .filter_map(|field| Some(entry(field.key, field_tree(field, fields.get(field.name)?))))
        .collect();
    match name {
        Some(name) if fields.len() == 1 => Tree::text(name),
        name => Tree::table(name.map(|name| entry(MEMBER_NAME, Tree::text(name))).into_iter().chain(overrides)),
    }
}

pub(super) fn exchange_tree(exchange: &Exchange, bindings: Option<Entry>) -> Tree {
    let alternate = exchange.alternate_exchange().map(|it| entry("alternateExchange", Tree::text(it)));
    let has_key = |name: &str| name == "alternate-exchange" && alternate.is_some();
    let others = arguments(without_key(&exchange.arguments, has_key));
    let kind = entry("type", Tree::text(&exchange.kind));
    let internal = exchange.internal.then(|| entry("internal", Tree::plain(true)));
    Tree::table([kind].into_iter().chain(internal).chain(alternate.clone()).chain(others).chain(bindings))
}

/// Returns the `exchange` entry of a dead-letter queue, with the keys that differ from the defaults; `None` if no key
/// differs.
pub(super) fn dead_letter_exchange(name: &QueueName, it: &DeadLetterQueue) -> Option<Entry> {
    let has_default_name = it.exchange == crate::model::naming::dead_letter_exchange(name);
    let exchange_name = (!has_default_name).then(|| entry("name", Tree::text(it.exchange.as_str())));
    let kind = (it.kind != "fanout").then(|| entry("type", Tree::text(&it.kind)));
    let internal = it.internal.then(|| entry("internal", Tree::plain(true)));
    let key = it.routing_key.as_ref().map(|key| entry("routingKey", Tree::text(key)));
    let keys: Vec<Entry> = exchange_name.into_iter().chain(kind).chain(internal).chain(key).collect();
    (!keys.is_empty()).then(|| entry("exchange", Tree::table(keys)))
}

/// Converts a binding to an item of its destination's `bindings`.
pub(super) fn destination_binding(binding: &Binding) -> Tree {
    let source = entry("exchange", Tree::text(binding.source.as_str()));
    Tree::table([source].into_iter().chain(key_and_arguments(binding))).about(ObjectId::Binding(binding.clone()))
}

/// Converts a binding to an item of the top-level `bindings`.
pub(super) fn binding_tree(binding: &Binding) -> Tree {
    spec_keys::binding(binding).about(ObjectId::Binding(binding.clone()))
}

pub(super) fn policy_tree(policy: &Policy) -> Tree {
    let apply_to = (policy.apply_to != ApplyTo::All).then(|| entry("applyTo", Tree::plain(policy.apply_to)));
    let priority = (policy.priority != Priority(0.0)).then(|| entry("priority", number_tree(policy.priority.0)));
    let pattern = entry("pattern", Tree::text(&policy.pattern));
    let keys = [pattern].into_iter().chain(apply_to).chain(priority);
    Tree::table(keys.chain([entry("definition", definition_tree(&policy.definition))]))
}

/// Converts a number to a YAML integer if possible, otherwise to a YAML float.
fn number_tree(number: f64) -> Tree {
    let is_integer = number.fract() == 0.0 && number.abs() < 9e15;
    Tree::plain(if is_integer { format!("{number:.0}") } else { format!("{number:?}") })
}

/// Converts a policy definition to the keys and units that a spec uses.
fn definition_tree(definition: &Arguments) -> Tree {
    Tree::table(definition.iter().map(|(name, value)| {
        let key = PolicyKey::spelling(name).unwrap_or(name);
        entry(key, with_unit(name, value))
    }))
}
