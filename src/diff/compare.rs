//! Compares the current topology of a vhost with the desired topology.

use super::{Change, DeleteReason, Field, FieldChange};
use crate::model::record_kinds::{Comparison, FieldShape, RecordField};
use crate::model::{
    ArgumentValue, Arguments, Binding, Destination, Exchange, Object, ObjectId, Policy, Queue, Record, Scope, Topology,
    Vhost,
};
use std::collections::BTreeSet;

/// Returns the differences between the current and the desired topology of a vhost. Creations and alterations come
/// before deletions. Each of these groups is sorted by kind and then by name.
///
/// A declared object is created if it does not exist, and altered if it differs. Argument differences that `scope`
/// accepts on an existing queue are ignored. An undeclared current object is deleted if `removed` lists it, if `owns`
/// matches it, or if it is a setting that the spec omits. See [`binding_reason`] for bindings. External objects,
/// objects that `ignore` matches, and all other undeclared objects are not deleted. If the spec does not have the
/// section for a record, the record is deleted only if `removed` lists it. Records without effect are neither created
/// nor deleted.
pub fn diff(current: &Topology, desired: &Topology, scope: &Scope) -> Vec<Change> {
    let mut changes = Vec::new();
    let settings = desired.settings.clone().unwrap_or_default();
    match &current.settings {
        None => changes.push(Change::Create(Object::Vhost(settings))),
        Some(live) => changes.extend(create_or_alter(Some(live), &settings, |it| Object::Vhost(it.clone()))),
    }
    for (name, exchange) in &desired.exchanges {
        let object = |it: &Exchange| Object::Exchange(name.clone(), it.clone());
        changes.extend(create_or_alter(current.exchanges.get(name), exchange, object));
    }
    for (name, policy) in &desired.policies {
        let object = |it: &Policy| Object::Policy(name.clone(), it.clone());
        changes.extend(create_or_alter(current.policies.get(name), policy, object));
    }
    for (name, queue) in &desired.queues {
        let object = |it: &Queue| Object::Queue(name.clone(), it.clone());
        let is_optional = |field: &Field| field.argument().is_some_and(|argument| scope.is_optional(name, argument));
        let is_accepted =
            |field: &Field| field.argument().is_some_and(|argument| scope.is_accepted_on_existing(name, argument));
        let is_allowed = |change: &FieldChange| {
            change.before.is_none() && is_optional(&change.field)
                || change.after.is_none() && is_accepted(&change.field)
        };
        match create_or_alter(current.queues.get(name), queue, object) {
            Some(Change::Alter { before, after, mut fields }) => {
                fields.retain(|change| !is_allowed(change));
                if !fields.is_empty() {
                    changes.push(Change::Alter { before, after, fields });
                }
            }
            other => changes.extend(other),
        }
    }
    for binding in desired.bindings.difference(&current.bindings) {
        changes.push(Change::Create(Object::Binding(binding.clone())));
    }
    for (id, record) in &desired.records {
        if record.is_without_effect() && !current.records.contains_key(id) {
            continue;
        }
        changes.extend(create_or_alter(current.records.get(id), record, |it| Object::Record(it.clone())));
    }
    add_deletions(&mut changes, current, desired, scope);
    changes
}

/// Returns the change from the current object to the desired object. Returns `None` if they do not differ. Copies the
/// objects only if they differ, because most objects of a large vhost are unchanged.
fn create_or_alter<T: PartialEq>(live: Option<&T>, desired: &T, object: impl Fn(&T) -> Object) -> Option<Change> {
    match live {
        None => Some(Change::Create(object(desired))),
        Some(live) if live == desired => None,
        Some(live) => {
            let (before, after) = (object(live), object(desired));
            let fields = fields(&before, &after);
            (!fields.is_empty()).then_some(Change::Alter { before, after, fields })
        }
    }
}

/// Adds the deletions that [`diff`] describes for undeclared current objects.
fn add_deletions(changes: &mut Vec<Change>, current: &Topology, desired: &Topology, scope: &Scope) {
    let reason = |id: &ObjectId, declared: bool| {
        if declared || scope.ignores_object(id) || scope.external.contains(id) {
            None
        } else if scope.removed.contains(id) {
            Some(DeleteReason::Removed)
        } else {
            scope.owns_object(id).then_some(DeleteReason::Unmanaged)
        }
    };
    let mut delete = |object: Object, reason| changes.push(Change::Delete { object, reason });
    for (name, exchange) in &current.exchanges {
        let id = ObjectId::Exchange(name.clone());
        if let Some(reason) = reason(&id, desired.exchanges.contains_key(name)) {
            delete(Object::Exchange(name.clone(), exchange.clone()), reason);
        }
    }
    for (name, policy) in &current.policies {
        let id = ObjectId::Policy(name.clone());
        if let Some(reason) = reason(&id, desired.policies.contains_key(name)) {
            delete(Object::Policy(name.clone(), policy.clone()), reason);
        }
    }
    for (name, queue) in &current.queues {
        let id = ObjectId::Queue(name.clone());
        if let Some(reason) = reason(&id, desired.queues.contains_key(name)) {
            delete(Object::Queue(name.clone(), queue.clone()), reason);
        }
    }
    for binding in current.bindings.difference(&desired.bindings) {
        if let Some(reason) = binding_reason(binding, desired, scope) {
            delete(Object::Binding(binding.clone()), reason);
        }
    }
    for (id, record) in &current.records {
        let is_compared =
            scope.sections.contains_key(&id.kind) || scope.removed.contains(&ObjectId::Record(id.clone()));
        let is_declared = desired.records.contains_key(id);
        let unset = (!is_declared && scope.leaves_unset(id)).then_some(DeleteReason::Unset);
        let reason = unset.or_else(|| reason(&ObjectId::Record(id.clone()), is_declared));
        if let Some(reason) = reason.filter(|_| is_compared && !record.is_without_effect()) {
            delete(Object::Record(record.clone()), reason);
        }
    }
}

/// Returns the reason for deleting a current binding that the spec does not declare. Returns `None` if `ignore` matches
/// the source or the destination, or if the spec neither removes nor owns the binding.
///
/// A spec owns a binding if the spec declares the destination, `owns` matches the destination, and the source is not
/// external.
pub fn binding_reason(binding: &Binding, desired: &Topology, scope: &Scope) -> Option<DeleteReason> {
    if scope.ignores(binding.source.as_str()) || scope.ignores(binding.destination.name()) {
        return None;
    }
    if scope.removed.contains(&ObjectId::Binding(binding.clone())) {
        return Some(DeleteReason::Removed);
    }
    let is_declared = match &binding.destination {
        Destination::Queue(name) => desired.queues.contains_key(name),
        Destination::Exchange(name) => desired.exchanges.contains_key(name),
    };
    let is_external = scope.external.contains(&ObjectId::Exchange(binding.source.clone()));
    (is_declared && !is_external && scope.owns(binding.destination.name())).then_some(DeleteReason::Unmanaged)
}

/// Returns the fields in which two states of an object differ, in the order of the variants of [`Field`]. Arguments are
/// sorted by name. The fields of a record are in the order of the table of record kinds. Returns no fields for bindings
/// and for objects of different kinds.
pub fn fields(before: &Object, after: &Object) -> Vec<FieldChange> {
    let mut found = Fields(Vec::new());
    match (before, after) {
        (Object::Vhost(before), Object::Vhost(after)) => compare_vhost(&mut found, before, after),
        (Object::Exchange(_, before), Object::Exchange(_, after)) => compare_exchange(&mut found, before, after),
        (Object::Policy(_, before), Object::Policy(_, after)) => compare_policy(&mut found, before, after),
        (Object::Queue(_, before), Object::Queue(_, after)) => compare_queue(&mut found, before, after),
        (Object::Record(before), Object::Record(after)) => compare_record(&mut found, before, after),
        (
            Object::Vhost(_)
            | Object::Exchange(..)
            | Object::Policy(..)
            | Object::Queue(..)
            | Object::Binding(_)
            | Object::Record(_),
            _,
        ) => {}
    }
    found.0
}

/// The fields that differ.
struct Fields(Vec<FieldChange>);

impl Fields {
    fn compare(&mut self, field: Field, before: Option<ArgumentValue>, after: Option<ArgumentValue>) {
        if before != after {
            self.0.push(FieldChange { field, before, after });
        }
    }

    fn compare_tables(&mut self, field: fn(String) -> Field, before: &Arguments, after: &Arguments) {
        let added = after.keys().filter(|key| !before.contains_key(*key));
        let mut keys: Vec<&String> = before.keys().chain(added).collect();
        keys.sort();
        for key in keys {
            self.compare(field(key.clone()), before.get(key).cloned(), after.get(key).cloned());
        }
    }
}

/// Compares the current and the desired settings of a vhost. Settings that the spec does not specify are not compared.
fn compare_vhost(found: &mut Fields, before: &Vhost, after: &Vhost) {
    let text = |value: &Option<String>| value.clone().map(ArgumentValue::Text);
    if after.description.is_some() {
        found.compare(Field::Description, text(&before.description), text(&after.description));
    }
    if after.tags.is_some() {
        let list = |tags: &Option<BTreeSet<String>>| {
            Some(ArgumentValue::List(tags.iter().flatten().map(|tag| tag.as_str().into()).collect()))
        };
        found.compare(Field::Tags, list(&before.tags), list(&after.tags));
    }
    if after.default_queue_type.is_some() {
        found.compare(Field::DefaultQueueType, text(&before.default_queue_type), text(&after.default_queue_type));
    }
}

fn compare_exchange(found: &mut Fields, before: &Exchange, after: &Exchange) {
    found.compare(Field::Type, Some(before.kind.as_str().into()), Some(after.kind.as_str().into()));
    found.compare(Field::Durable, Some(before.durable.into()), Some(after.durable.into()));
    found.compare(Field::AutoDelete, Some(before.auto_delete.into()), Some(after.auto_delete.into()));
    found.compare(Field::Internal, Some(before.internal.into()), Some(after.internal.into()));
    found.compare_tables(Field::Argument, &before.arguments, &after.arguments);
}

fn compare_queue(found: &mut Fields, before: &Queue, after: &Queue) {
    found.compare(Field::Durable, Some(before.durable.into()), Some(after.durable.into()));
    found.compare(Field::AutoDelete, Some(before.auto_delete.into()), Some(after.auto_delete.into()));
    found.compare_tables(Field::Argument, &before.arguments, &after.arguments);
}

fn compare_policy(found: &mut Fields, before: &Policy, after: &Policy) {
    found.compare(Field::Pattern, Some(before.pattern.as_str().into()), Some(after.pattern.as_str().into()));
    found.compare(Field::ApplyTo, Some(before.apply_to.as_str().into()), Some(after.apply_to.as_str().into()));
    found.compare(Field::Priority, Some(before.priority.into()), Some(after.priority.into()));
    found.compare_tables(Field::Definition, &before.definition, &after.definition);
}

/// Compares two states of a record, field by field in the order of the table of record kinds. If both states contain a
/// definition, compares the definitions key by key. For a wrapped record, also compares the unknown fields of its
/// value.
fn compare_record(found: &mut Fields, before: &Record, after: &Record) {
    let is_compared = |field: &RecordField| match field.comparison {
        Comparison::Always | Comparison::Optional => true,
        Comparison::IfSet => after.fields.contains_key(field.name),
        Comparison::Never => false,
    };
    for field in after.id.fields().into_iter().filter(is_compared) {
        let value = |record: &Record| record.fields.get(field.name).cloned();
        match (field.shape, before.table(field.name), after.table(field.name)) {
            (FieldShape::Definition, Some(before), Some(after)) => {
                found.compare_tables(Field::Definition, before, after)
            }
            (_, _, _) => found.compare(Field::Record(field.name), value(before), value(after)),
        }
    }
    if after.id.kind.row().is_wrapped {
        let unknown = |record: &Record| {
            let fields = record.fields.iter().filter(|(name, _)| !after.id.fields().iter().any(|it| it.name == *name));
            fields.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        found.compare_tables(Field::Definition, &unknown(before), &unknown(after));
    }
}
