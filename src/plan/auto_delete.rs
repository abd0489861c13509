//! Predicts further deletions when bindings are deleted. The broker deletes an auto-delete exchange with the last
//! binding *from* it (all versions), and with it the bindings *to* it.
//!
//! Plans exchanges that the broker stores without `auto_delete`, as an import does up to 4.2.
//!
//! Such an exchange routes messages and is never deleted automatically. The broker rejects every declaration of such an
//! exchange, with either value (`rabbit_exchange:assert_equivalence`, 3.8 to 4.2). The only repair is to recreate the
//! exchange.

use super::changes_by_kind::PlanBuilder;
use super::conflict::{alter, on_conflict};
use super::context::PlanContext;
use super::document::Options;
use super::verdict::broker_error;
use crate::diff::{Field, FieldChange};
use crate::model::{Binding, ExchangeName, Object, ObjectId, OnConflict};
use std::collections::BTreeSet;

/// Removes these bindings. Returns the exchanges that the broker deletes with their last binding, each with the
/// bindings to it.
pub(super) fn unbind(
    bound: &mut BTreeSet<Binding>,
    lost: impl IntoIterator<Item = Binding>,
    is_auto_delete: impl Fn(&ExchangeName) -> bool,
) -> Vec<(ExchangeName, BTreeSet<Binding>)> {
    let lost = lost.into_iter().filter(|binding| bound.remove(binding));
    let mut sources: BTreeSet<ExchangeName> = lost.map(|binding| binding.source).collect();
    let mut deleted: Vec<(ExchangeName, BTreeSet<Binding>)> = Vec::new();
    while let Some(source) = sources.pop_first() {
        let is_known = deleted.iter().any(|(name, _)| *name == source);
        if is_known || !is_auto_delete(&source) || bound.iter().any(|binding| binding.source == source) {
            continue;
        }
        let into: BTreeSet<Binding> =
            bound.iter().filter(|binding| binding.touches_exchange(&source)).cloned().collect();
        bound.retain(|binding| !into.contains(binding));
        sources.extend(into.iter().map(|binding| binding.source.clone()));
        deleted.push((source, into));
    }
    deleted
}

/// Returns the bindings that match.
pub(super) fn matching(bound: &BTreeSet<Binding>, matches: impl Fn(&Binding) -> bool) -> Vec<Binding> {
    bound.iter().filter(|binding| matches(binding)).cloned().collect()
}

/// Recreates such an exchange if the spec or a flag allows it, and otherwise adds a note.
pub(super) fn plan(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    for name in context.lacks_auto_delete {
        let id = ObjectId::Exchange(name.clone());
        let (Some(before), Some(after)) = (context.current.object(&id), context.desired.topology.object(&id)) else {
            continue;
        };
        let address = context.address(&id);
        // The object also conflicts in a different field. Recreating the object repairs both fields.
        if builder.changes.iter().any(|change| change.address == address && change.conflict.is_some()) {
            continue;
        }
        let Object::Exchange(_, exchange) = &after else { continue };
        let field = FieldChange { field: Field::AutoDelete, before: None, after: Some(exchange.auto_delete.into()) };
        if on_conflict(&context.desired.scope, options, &id, &address) == OnConflict::Refuse {
            let error = broker_error(&context.current.vhost, &after, &field, context.profile);
            let text = format!(
                "it was imported without auto_delete: it routes messages, but the broker refuses every declare of it \
                 ({error}); --recreate {address}=discard repairs it"
            );
            builder.info(&address, text);
        } else {
            alter(builder, context, options, (before, after), &[field]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arguments, Destination};

    fn binding(source: &str, destination: Destination) -> Binding {
        Binding { source: source.into(), destination, routing_key: String::new(), arguments: Arguments::new() }
    }

    #[test]
    fn deleted_exchange_can_delete_its_source() {
        let exchange = |name: &str| Destination::Exchange(name.into());
        let queue = Destination::Queue("q".into());
        let last = binding("c", queue.clone());
        let all = [binding("a", exchange("b")), binding("b", exchange("c")), last.clone(), binding("a", queue)];
        let mut bound = BTreeSet::from(all.clone());
        let deleted = unbind(&mut bound, [last], |name| name.as_str() != "x");
        let names: Vec<&str> = deleted.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["c", "b"], "a has another binding");
        assert_eq!(deleted[0].1, BTreeSet::from([all[1].clone()]));
        assert_eq!(bound, BTreeSet::from([all[3].clone()]));
    }
}
