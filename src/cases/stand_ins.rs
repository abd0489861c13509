//! Stand-ins: exchanges and queues that a test file declares in place of the external objects of its spec.

use crate::model::names::DEAD_LETTER_EXCHANGE_SUFFIX;
use crate::model::{ArgumentValue, Binding, Destination, ExchangeName, Places, QueueName, QueueType};
use crate::simulation::RoutingPart;
use crate::spec::{
    BindingSpec, DeadLetterQueueSpec, Diagnostic, Diagnostics, Entry, ExchangeSpec, Keyed, Location, Node, QueueSpec,
    SetBy, Setting, Sourced, Spec, closest, value_of,
};
use std::collections::BTreeMap;

/// The stand-ins of a test file. The positions refer to the test file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StandIns {
    exchanges: BTreeMap<ExchangeName, StandInExchange>,
    queues: BTreeMap<QueueName, StandInQueue>,
    bindings: Vec<Sourced<Binding>>,
}

/// An exchange in place of an external one.
#[derive(Clone, Debug, PartialEq)]
struct StandInExchange {
    at: Location,
    kind: Sourced<String>,
    alternate: Option<Sourced<ExchangeName>>,
    arguments: BTreeMap<String, Sourced<ArgumentValue>>,
}

/// A queue in place of an external one.
#[derive(Clone, Debug, PartialEq)]
struct StandInQueue {
    at: Location,
    queue_type: Option<Sourced<QueueType>>,
    arguments: BTreeMap<String, Sourced<ArgumentValue>>,
}

impl StandIns {
    /// Reads the checked value of `standIns`.
    pub(super) fn read(node: &Node) -> Self {
        let mut read = Self::default();
        for entry in node.get("exchanges").map_or(&[][..], Node::entries) {
            let name = ExchangeName::new(entry.key.as_str());
            read.add_bindings(entry, &Destination::Exchange(name.clone()));
            let kind = text(&entry.node, "type").unwrap_or_else(|| Sourced::new(String::new(), entry.at));
            let alternate = text(&entry.node, "alternateExchange");
            let exchange = StandInExchange {
                at: entry.at,
                kind,
                alternate: alternate.map(|it| Sourced::new(ExchangeName::new(it.value), it.at)),
                arguments: arguments(&entry.node),
            };
            read.exchanges.insert(name, exchange);
        }
        for entry in node.get("queues").map_or(&[][..], Node::entries) {
            let name = QueueName::new(entry.key.as_str());
            read.add_bindings(entry, &Destination::Queue(name.clone()));
            let queue_type =
                text(&entry.node, "type").and_then(|it| Some(Sourced::new(QueueType::named(&it.value)?, it.at)));
            let queue = StandInQueue { at: entry.at, queue_type, arguments: arguments(&entry.node) };
            read.queues.insert(name, queue);
        }
        read
    }

    fn add_bindings(&mut self, entry: &Entry, destination: &Destination) {
        for item in entry.node.get("bindings").map_or(&[][..], Node::items) {
            let Some(source) = text(item, "exchange") else { continue };
            let binding = Binding {
                source: ExchangeName::new(source.value),
                destination: destination.clone(),
                routing_key: text(item, "routingKey").map(|key| key.value).unwrap_or_default(),
                arguments: arguments(item).into_iter().map(|(name, value)| (name, value.value)).collect(),
            };
            self.bindings.push(Sourced::new(binding, source.at));
        }
    }

    /// Returns true if there are no stand-ins.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty() && self.queues.is_empty()
    }

    /// Returns true if a part of the routing belongs to a stand-in.
    pub(super) fn contains(&self, part: &RoutingPart) -> bool {
        match part {
            RoutingPart::Binding(binding) => self.bindings.iter().any(|it| it.value == *binding),
            RoutingPart::Alternate(exchange) => self.exchanges.contains_key(exchange),
            RoutingPart::DeadLettering(queue, _) => self.queues.contains_key(queue),
        }
    }

    /// Replaces the external objects of a spec. `file` is the name of the test file, to which the positions of the new
    /// objects refer. Returns an error for each stand-in without an external object, and for each reference to an unknown exchange.
    pub fn apply(&self, spec: &mut Spec, file: &str) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        let index = spec.files.len();
        spec.files.push(file.to_owned());
        let moved = |at: Location| Location { file: index, ..at };
        for (name, stand_in) in &self.exchanges {
            let external = spec.exchanges.iter().filter(|(_, exchange)| exchange.is_external);
            if !spec.exchanges.get(name).is_some_and(|exchange| exchange.is_external) {
                let names = external.map(|(name, _)| name.as_str());
                diagnostics.push(not_external("exchange", name.as_str(), names, stand_in.at));
                continue;
            }
            let keyed = |(name, value): (&String, &Sourced<ArgumentValue>)| {
                let at = moved(value.at);
                (name.clone(), Keyed { key_at: at, value: value.value.clone(), at })
            };
            let exchange = ExchangeSpec {
                at: moved(stand_in.at),
                is_external: false,
                is_optional: false,
                kind: Sourced::new(stand_in.kind.value.clone(), moved(stand_in.kind.at)),
                durable: true,
                auto_delete: false,
                internal: false,
                alternate_exchange: stand_in.alternate.clone().map(|it| Sourced::new(it.value, moved(it.at))),
                arguments: stand_in.arguments.iter().map(keyed).collect(),
                places: Places::new(),
                on_conflict: None,
            };
            spec.exchanges.insert(name.clone(), exchange);
        }
        for (name, stand_in) in &self.queues {
            let is_external = |queue: &QueueSpec| queue.is_external;
            let setting = |value: ArgumentValue, at| Setting { value, at: moved(at), set_by: SetBy::Itself };
            let queue = QueueSpec {
                is_external: false,
                queue_type: stand_in.queue_type.as_ref().map(|it| Setting {
                    value: it.value,
                    at: moved(it.at),
                    set_by: SetBy::Itself,
                }),
                arguments: stand_in
                    .arguments
                    .iter()
                    .map(|(n, it)| (n.clone(), setting(it.value.clone(), it.at)))
                    .collect(),
                ..QueueSpec::external(moved(stand_in.at))
            };
            let dead_letter_queue = spec.dead_letter_queues.get_mut(name).map(|it| &mut it.queue);
            match dead_letter_queue.or(spec.queues.get_mut(name)).filter(|it| is_external(it)) {
                Some(external) => *external = queue,
                None => {
                    let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
                    let all = spec.queues.iter().chain(dead_letter_queues);
                    let names = all.filter(|(_, it)| is_external(it)).map(|(name, _)| name.as_str());
                    diagnostics.push(not_external("queue", name.as_str(), names, stand_in.at));
                }
            }
        }
        let alternates = self.exchanges.values().filter_map(|exchange| exchange.alternate.as_ref());
        alternates.filter_map(|it| missing(spec, &it.value, it.at)).for_each(|it| diagnostics.push(it));
        for Sourced { value: binding, at } in &self.bindings {
            if let Some(diagnostic) = missing(spec, &binding.source, *at) {
                diagnostics.push(diagnostic);
                continue;
            }
            let place = moved(*at);
            let positions = BindingSpec {
                at: place,
                source_at: place,
                destination_at: place,
                key_at: place,
                arguments: binding.arguments.keys().map(|name| (name.clone(), place)).collect(),
            };
            spec.bindings.entry(binding.clone()).or_insert(positions);
        }
        diagnostics
    }
}

/// Returns an error if the exchange is neither declared in the spec nor predeclared by the broker.
fn missing(spec: &Spec, exchange: &ExchangeName, at: Location) -> Option<Diagnostic> {
    let of_dead_letter_queue = |(queue, it): (&QueueName, &DeadLetterQueueSpec)| match &it.exchange_name {
        Some(name) => name.value == *exchange,
        None => exchange.as_str().strip_suffix(DEAD_LETTER_EXCHANGE_SUFFIX) == Some(queue.as_str()),
    };
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

fn text(node: &Node, key: &str) -> Option<Sourced<String>> {
    let node = node.get(key)?;
    Some(Sourced::new(node.text()?.to_owned(), node.at))
}

fn arguments(node: &Node) -> BTreeMap<String, Sourced<ArgumentValue>> {
    let entries = node.get("arguments").map_or(&[][..], Node::entries).iter();
    entries.map(|entry| (entry.key.clone(), Sourced::new(value_of(&entry.node), entry.node.at))).collect()
}
