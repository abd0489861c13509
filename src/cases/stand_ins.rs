//! Replaces the external objects in a spec with the stand-ins from a test file.

use crate::model::{Destination, ExchangeName, QueueName};
use crate::spec::{
    DeadLetterQueueSpec, Diagnostic, Diagnostics, Location, Node, QueueSpec, Spec, StandInObjects, closest,
    read_stand_ins,
};

/// The stand-ins of a test file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StandIns {
    /// The checked value of `standIns`, with positions in the test file; `None` if the key is missing.
    node: Option<Node>,
}

impl StandIns {
    pub(super) fn new(node: Option<&Node>) -> Self {
        Self { node: node.cloned() }
    }

    /// Returns true if there are no stand-ins.
    pub fn is_empty(&self) -> bool {
        let is_empty = |key: &str, node: &Node| node.get(key).is_none_or(|it| it.entries().is_empty());
        self.node.as_ref().is_none_or(|node| is_empty("exchanges", node) && is_empty("queues", node))
    }

    /// Replaces the external objects in a spec with the stand-ins, and adds the bindings of the stand-ins. `file` is
    /// the name of the test file, to which the positions of the new objects refer. Returns an error for each stand-in
    /// that replaces no external object, and for each reference to an unknown exchange.
    pub fn apply(&self, spec: &mut Spec, file: &str) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        let Some(node) = &self.node else { return diagnostics };
        let index = spec.files.len();
        spec.files.push(file.to_owned());
        // Positions in errors refer to the test file alone. Positions in objects refer to the list of spec files.
        read_stand_ins(node, spec, &mut diagnostics);
        let read = read_stand_ins(&node.in_file(index), spec, &mut Diagnostics::new());
        let StandInObjects { exchanges, queues, bindings } = read;
        let in_test_file = |at: Location| Location { file: 0, ..at };
        let (mut replaced_exchanges, mut replaced_queues) = (Vec::new(), Vec::new());
        for (name, stand_in) in exchanges {
            match spec.exchanges.get_mut(&name).filter(|exchange| exchange.is_external) {
                Some(external) => {
                    *external = stand_in;
                    replaced_exchanges.push(name);
                }
                None => {
                    let external = spec.exchanges.iter().filter(|(_, exchange)| exchange.is_external);
                    let names = external.map(|(name, _)| name.as_str());
                    diagnostics.push(not_external("exchange", name.as_str(), names, in_test_file(stand_in.at)));
                }
            }
        }
        for (name, stand_in) in queues {
            let is_external = |queue: &QueueSpec| queue.is_external;
            if let Some(external) = spec.queues.get_mut(&name).filter(|it| is_external(it)) {
                *external = stand_in;
            } else if let Some(external) = spec.dead_letter_queues.get_mut(&name).filter(|it| is_external(&it.queue)) {
                external.queue = stand_in;
                external.is_exchange_declared = spec.exchanges.contains_key(&external.exchange(&name));
            } else {
                let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
                let all = spec.queues.iter().chain(dead_letter_queues);
                let names = all.filter(|(_, it)| is_external(it)).map(|(name, _)| name.as_str());
                diagnostics.push(not_external("queue", name.as_str(), names, in_test_file(stand_in.at)));
                continue;
            }
            replaced_queues.push(name);
        }
        for name in &replaced_exchanges {
            let alternate = spec.exchanges.get(name).and_then(|exchange| exchange.alternate_exchange.as_ref());
            let found = alternate.and_then(|it| missing(spec, &it.value, in_test_file(it.at)));
            found.into_iter().for_each(|it| diagnostics.push(it));
        }
        let found = dead_letter_exchanges(node).filter_map(|(name, at)| missing(spec, &name, at));
        found.for_each(|it| diagnostics.push(it));
        for (binding, positions) in bindings {
            let is_replaced = match &binding.destination {
                Destination::Exchange(name) => replaced_exchanges.contains(name),
                Destination::Queue(name) => replaced_queues.contains(name),
            };
            match missing(spec, &binding.source, in_test_file(positions.source_at)) {
                Some(diagnostic) => diagnostics.push(diagnostic),
                None if is_replaced => drop(spec.bindings.entry(binding).or_insert(positions)),
                None => {}
            }
        }
        diagnostics
    }
}

/// Returns the dead-letter exchanges in the arguments of stand-in queues, with their positions.
fn dead_letter_exchanges(node: &Node) -> impl Iterator<Item = (ExchangeName, Location)> {
    let queues = node.get("queues").map_or(&[][..], Node::entries).iter();
    queues.filter_map(|queue| {
        let exchange = queue.node.get("arguments")?.get("x-dead-letter-exchange")?;
        Some((ExchangeName::new(exchange.text()?), exchange.at))
    })
}

/// Returns an error unless the spec declares the exchange, the exchange belongs to a dead-letter queue in the spec, or
/// the broker predeclares the exchange.
fn missing(spec: &Spec, exchange: &ExchangeName, at: Location) -> Option<Diagnostic> {
    let of_dead_letter_queue = |(queue, it): (&QueueName, &DeadLetterQueueSpec)| it.exchange(queue) == *exchange;
    let is_declared = spec.exchanges.contains_key(exchange)
        || exchange.is_predeclared()
        || spec.dead_letter_queues.iter().any(of_dead_letter_queue);
    (!is_declared).then(|| {
        let near = closest(exchange.as_str(), spec.exchanges.keys().map(ExchangeName::as_str));
        let hint = near.map_or_else(|| "declare it in the spec".to_owned(), |it| format!("did you mean `{it}`?"));
        Diagnostic::error("unknown-name", format!("exchange `{exchange}` does not exist"), at).hint(hint)
    })
}

fn not_external<'n>(kind: &str, name: &str, external: impl Iterator<Item = &'n str>, at: Location) -> Diagnostic {
    let hint = match closest(name, external) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("remove the stand-in, or declare the {kind} with `external: true` in the spec"),
    };
    Diagnostic::error("unknown-name", format!("the spec has no external {kind} `{name}`"), at).hint(hint)
}
