//! Predicts which exchanges the broker deletes when bindings are deleted. In all versions, the broker deletes an
//! auto-delete exchange together with the last binding *from* the exchange. The broker then also deletes the bindings
//! *to* the exchange.

use crate::model::{Binding, ExchangeName};
use std::collections::BTreeSet;

/// Removes from `bound` the bindings in `lost` and the bindings that the broker deletes as a result. Returns the
/// exchanges that the broker deletes together with their last binding, each with the bindings to the exchange.
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

/// Returns the bindings for which `matches` returns true.
pub(super) fn matching_bindings(bound: &BTreeSet<Binding>, matches: impl Fn(&Binding) -> bool) -> Vec<Binding> {
    bound.iter().filter(|binding| matches(binding)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arguments, Destination};

    fn binding(source: &str, destination: Destination) -> Binding {
        Binding { source: source.into(), destination, routing_key: String::new(), arguments: Arguments::new() }
    }

    #[test]
    fn deletion_cascades_to_auto_delete_sources() {
        let exchange = |name: &str| Destination::Exchange(name.into());
        let queue = Destination::Queue("q".into());
        let last = binding("c", queue.clone());
        let all = [binding("a", exchange("b")), binding("b", exchange("c")), last.clone(), binding("a", queue)];
        let mut bound = BTreeSet::from(all.clone());
        let deleted = unbind(&mut bound, [last], |name| name.as_str() != "x");
        let names: Vec<&str> = deleted.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["c", "b"], "a still has a binding");
        assert_eq!(deleted[0].1, BTreeSet::from([all[1].clone()]));
        assert_eq!(bound, BTreeSet::from([all[3].clone()]));
    }
}
