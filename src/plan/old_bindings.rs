//! Reports bindings that a changed spec leaves behind. A binding is identified by all its fields, so a binding with a
//! changed routing key is a new binding. If no `owns` pattern matches the destination, the old binding silently
//! continues to route messages.
//!
//! A vhost contains many bindings that this spec does not declare and that other teams use. Therefore, topo reports
//! only bindings that the plan probably replaces. Such a binding has the same destination as a new binding. Its source
//! is the source of a new binding or, if this spec declares the destination, a different exchange in this spec. A later
//! apply does not report the binding again.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::ChangeKind;
use super::spec_keys;
use super::super_streams;
use crate::diff::binding_reason;
use crate::model::yaml::scalar;
use crate::model::{Binding, Destination, ExchangeName, Object, ObjectId};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of bindings that a note lists, in the text and in its YAML.
const MAX_NAMED: usize = 3;

/// Adds notes about old bindings that remain alongside new bindings.
pub(super) fn report(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let (topology, scope) = (&context.desired.topology, &context.desired.scope);
    // Generated retry bindings are retired, so they are not reported.
    let generated: BTreeSet<&ObjectId> = scope.families.iter().flat_map(|family| &family.members).collect();
    let mut new: BTreeMap<&Destination, BTreeSet<&ExchangeName>> = BTreeMap::new();
    for change in builder.changes.iter().filter(|change| change.kind == ChangeKind::Create) {
        if let Some(Object::Binding(binding)) = &change.after
            && !generated.contains(&ObjectId::Binding(binding.clone()))
        {
            new.entry(&binding.destination).or_default().insert(&binding.source);
        }
    }
    if new.is_empty() {
        return;
    }
    let deleted = builder.undesired_bindings();
    let is_declared = |id: &ObjectId| match id {
        ObjectId::Queue(name) => topology.queues.contains_key(name),
        ObjectId::Exchange(name) => topology.exchanges.contains_key(name),
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => false,
    };
    let mut old: BTreeMap<&Destination, Vec<&Binding>> = BTreeMap::new();
    for binding in context.current.bindings.difference(&topology.bindings) {
        let Some(sources) = new.get(&binding.destination) else { continue };
        let (source, id) = (ObjectId::Exchange(binding.source.clone()), ObjectId::Binding(binding.clone()));
        let is_likely = sources.contains(&binding.source)
            || is_declared(&source) && is_declared(&binding.destination.id()) && !generated.contains(&source);
        let is_invisible = scope.ignores(binding.source.as_str()) || scope.ignores(binding.destination.name());
        // A `removed` or owned binding is deleted, or listed as unmanaged.
        // `super_streams` blocks the plan if the spec does not declare a partition.
        let is_partition =
            scope.super_streams.contains_key(&binding.source) && super_streams::is_stream(context, binding);
        let is_reported =
            is_partition || deleted.contains(binding) || binding_reason(binding, topology, scope).is_some();
        if is_likely && !is_invisible && !is_reported && !context.is_untouchable(&id) {
            old.entry(&binding.destination).or_default().push(binding);
        }
    }
    let infos: Vec<_> = old
        .into_iter()
        .map(|(destination, bindings)| {
            let id = destination.id();
            // `owns` matches a binding only if its destination is declared and its source is not external.
            let is_owned = |binding: &&Binding| !scope.external.contains(&ObjectId::Exchange(binding.source.clone()));
            let may_own = is_declared(&id) && bindings.iter().all(is_owned);
            (context.address(&id), text(destination, &bindings, may_own))
        })
        .collect();
    for (address, text) in infos {
        builder.info(&address, text);
    }
}

fn text(destination: &Destination, bindings: &[&Binding], may_own: bool) -> String {
    let named: Vec<String> = bindings.iter().take(MAX_NAMED).map(|binding| format!("`{binding}`")).collect();
    let more = match bindings.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (bindings_stay, it_is) = match bindings.len() {
        1 => ("1 binding that is not in this spec will remain".to_owned(), "the spec used to declare it, delete it"),
        many => (
            format!("{many} bindings that are not in this spec will remain"),
            "the spec used to declare them, delete them",
        ),
    };
    let owned = match may_own {
        true => format!(", or use `owns: [{}]` and --prune", scalar::text(destination.name())),
        false => String::new(),
    };
    let written: Vec<String> =
        bindings.iter().take(MAX_NAMED).map(|binding| spec_keys::binding(binding).to_string()).collect();
    format!(
        "{bindings_stay} alongside the new ones: {}{more}. If {it_is}: `removed: {{bindings: [{}]}}`{owned}",
        named.join(", "),
        written.join(", ")
    )
}
