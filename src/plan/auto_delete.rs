//! Predicts further deletions when bindings are deleted: the broker deletes an auto-delete exchange with the last
//! binding *from* it (all versions), and with it the bindings *to* it.

use crate::model::{Binding, ExchangeName};
use std::collections::BTreeSet;

/// Removes these bindings, and returns the exchanges that went with their last one, each with the bindings that led to it.
pub(super) fn unbind(
    bound: &mut BTreeSet<Binding>,
    lost: impl IntoIterator<Item = Binding>,
    is_auto_delete: impl Fn(&ExchangeName) -> bool,
) -> Vec<(ExchangeName, BTreeSet<Binding>)> {
    let lost = lost.into_iter().filter(|binding| bound.remove(binding));
    let mut sources: BTreeSet<ExchangeName> = lost.map(|binding| binding.source).collect();
    let mut fallen: Vec<(ExchangeName, BTreeSet<Binding>)> = Vec::new();
    while let Some(source) = sources.pop_first() {
        let is_known = fallen.iter().any(|(name, _)| *name == source);
        if is_known || !is_auto_delete(&source) || bound.iter().any(|binding| binding.source == source) {
            continue;
        }
        let into: BTreeSet<Binding> =
            bound.iter().filter(|binding| binding.touches_exchange(&source)).cloned().collect();
        bound.retain(|binding| !into.contains(binding));
        sources.extend(into.iter().map(|binding| binding.source.clone()));
        fallen.push((source, into));
    }
    fallen
}

/// Those that go.
pub(super) fn going(bound: &BTreeSet<Binding>, goes: impl Fn(&Binding) -> bool) -> Vec<Binding> {
    bound.iter().filter(|binding| goes(binding)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arguments, Destination};

    fn binding(source: &str, destination: Destination) -> Binding {
        Binding { source: source.into(), destination, routing_key: String::new(), arguments: Arguments::new() }
    }

    #[test]
    fn one_takes_another_along() {
        let exchange = |name: &str| Destination::Exchange(name.into());
        let queue = Destination::Queue("q".into());
        let last = binding("c", queue.clone());
        let all = [binding("a", exchange("b")), binding("b", exchange("c")), last.clone(), binding("a", queue)];
        let mut bound = BTreeSet::from(all.clone());
        let fallen = unbind(&mut bound, [last], |name| name.as_str() != "x");
        let names: Vec<&str> = fallen.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["c", "b"], "a has another binding");
        assert_eq!(fallen[0].1, BTreeSet::from([all[1].clone()]));
        assert_eq!(bound, BTreeSet::from([all[3].clone()]));
    }
}
