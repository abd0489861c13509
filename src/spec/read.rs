//! Adds a checked document to the spec of its vhost or of the cluster. Invalid values have already been reported, and
//! omitted or replaced with null, so this module mainly reports conflicts between two settings or declarations.

use super::convert::{
    arguments, boolean, declared_twice, entries, items, on_conflict, sourced, text_or, value_of, with_variants_hint,
};
use super::diagnostic::{Diagnostic, Diagnostics};
use super::lint_keys::Level;
use super::node::{Entry, Keyed, Location, Node, Sourced, Value};
use super::queue::QueueKeys;
use super::records;
use super::spec_types::{
    BindingSpec, DeadLetterQueueSpec, ExchangeSpec, PolicySpec, QueueSpec, RetryKeys, SetBy, Spec,
};
use super::super_streams;
use super::thresholds::ThresholdsSpec;
use crate::model::{
    ApplyTo, ArgumentValue, Binding, Destination, ExchangeName, Glob, ObjectId, Places, PolicyName, Priority,
    QueueName, SetIn,
};
use std::collections::BTreeMap;

/// Adds a document to the spec. `spec.default_queue_type` must already contain the default type, because any document
/// for the vhost can set it.
pub(crate) fn document(node: &Node, spec: &mut Spec, diagnostics: &mut Diagnostics) {
    for (key, globs) in [("owns", &mut spec.owns), ("protect", &mut spec.protect), ("ignore", &mut spec.ignore)] {
        let texts = items(node, key).filter_map(|item| item.text().map(|text| (text, item.at)));
        globs.extend(texts.map(|(text, at)| Sourced::new(Glob::new(text), at)));
    }
    if let Some(removed) = node.get("removed") {
        spec.removed.extend(removed_objects(removed, diagnostics));
    }
    let defaults = node.get("defaults");
    let queue_defaults = defaults.and_then(|defaults| defaults.get("queue"));
    let mut keys =
        queue_defaults.map_or_else(QueueKeys::default, |node| QueueKeys::read(node, SetBy::Defaults, diagnostics));
    let vhost_default_type = node.get("vhost").and_then(|vhost| vhost.get("defaultQueueType"));
    if vhost_default_type.is_some_and(|word| word.text().is_none()) {
        keys.mark_type_invalid();
    }
    let dead_letter_queue_keys = keys.without_dead_letter();
    if let Some(entry) = defaults.and_then(|defaults| defaults.entry("deadLetter")) {
        keys.set_dead_letter(entry);
    }
    let default_thresholds =
        defaults.map_or_else(ThresholdsSpec::default, |node| ThresholdsSpec::read(node, diagnostics));
    if let Some(defaults) = defaults {
        keys.retry = RetryKeys::read(defaults, SetBy::Defaults, diagnostics);
        spec.retry_uses.extend(keys.retry.policy_reference());
    }
    for entry in entries(node, "exchanges") {
        exchange(entry, spec, diagnostics);
    }
    let no_defaults = QueueKeys::default();
    let queues = entries(node, "queues").map(|entry| (entry, &keys));
    for (entry, defaults) in
        queues.chain(super_streams::streams(node).flat_map(|(_, streams)| streams).map(|entry| (entry, &no_defaults)))
    {
        let name = QueueName::new(&*entry.key);
        incoming_bindings(entry, &Destination::Queue(name.clone()), spec, diagnostics);
        let thresholds = ThresholdsSpec::read(&entry.node, diagnostics);
        let Some(queue) = queue(entry, defaults, spec, diagnostics) else { continue };
        let queue = QueueSpec { thresholds, ..queue };
        if check_first_declaration(&name, &queue, spec, diagnostics) {
            spec.queues.insert(name, queue);
        }
    }
    for entry in entries(node, "deadLetterQueues") {
        let name = QueueName::new(&*entry.key);
        incoming_bindings(entry, &Destination::Queue(name.clone()), spec, diagnostics);
        let thresholds = ThresholdsSpec::read(&entry.node, diagnostics).or(&default_thresholds);
        let Some(queue) = queue(entry, &dead_letter_queue_keys, spec, diagnostics) else { continue };
        let queue = QueueSpec { thresholds, ..queue };
        if check_first_declaration(&name, &queue, spec, diagnostics) {
            spec.dead_letter_queues.insert(name, dead_letter_queue(&entry.node, queue));
        }
    }
    for item in items(node, "bindings") {
        if let Some((binding, written)) = binding(item) {
            add_binding(binding, written, item, spec, diagnostics);
        }
    }
    for entry in entries(node, "policies") {
        policy(entry, spec, diagnostics);
    }
    for (name, streams) in super_streams::streams(node) {
        let streams = streams.iter().map(|entry| QueueName::new(&*entry.key));
        spec.super_streams.entry(ExchangeName::new(name)).or_default().extend(streams);
    }
    records::read(node, spec, diagnostics);
    for entry in entries(node, "lint") {
        level(entry, spec, diagnostics);
    }
}

/// Reads the level of a rule. Reports an error if documents for the same vhost set different levels, because topo lints
/// them together.
fn level(entry: &Entry, spec: &mut Spec, diagnostics: &mut Diagnostics) {
    let Some(level) = entry.node.text().and_then(Level::named) else { return };
    match spec.lint.get(&entry.key) {
        Some(first) if first.value != level => {
            let message = format!("two documents set different levels for the `{}` rule", entry.key);
            let diagnostic = Diagnostic::error("set-twice", message, entry.node.at).also(first.at, "first set here");
            diagnostics.push(diagnostic.hint(with_variants_hint("set it once", entry.node.at, first.at)));
        }
        Some(_) => {}
        None => {
            spec.lint.insert(entry.key.clone(), Sourced::new(level, entry.node.at));
        }
    }
}

/// The stand-ins in a test file.
pub(crate) struct StandInObjects {
    pub(crate) exchanges: BTreeMap<ExchangeName, ExchangeSpec>,
    pub(crate) queues: BTreeMap<QueueName, QueueSpec>,
    pub(crate) bindings: BTreeMap<Binding, BindingSpec>,
}

/// Reads the checked stand-ins in a test file in the same way as the objects in a spec. Leaves the spec's own
/// exchanges, queues and bindings unchanged.
pub(crate) fn read_stand_ins(node: &Node, spec: &mut Spec, diagnostics: &mut Diagnostics) -> StandInObjects {
    let known = StandInObjects {
        exchanges: std::mem::take(&mut spec.exchanges),
        queues: std::mem::take(&mut spec.queues),
        bindings: std::mem::take(&mut spec.bindings),
    };
    for entry in entries(node, "exchanges") {
        exchange(entry, spec, diagnostics);
    }
    for entry in entries(node, "queues") {
        let name = QueueName::new(&*entry.key);
        incoming_bindings(entry, &Destination::Queue(name.clone()), spec, diagnostics);
        if let Some(queue) = queue(entry, &QueueKeys::default(), spec, diagnostics) {
            spec.queues.insert(name, queue);
        }
    }
    StandInObjects {
        exchanges: std::mem::replace(&mut spec.exchanges, known.exchanges),
        queues: std::mem::replace(&mut spec.queues, known.queues),
        bindings: std::mem::replace(&mut spec.bindings, known.bindings),
    }
}

fn removed_objects(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Sourced<ObjectId>> {
    let named = |key: &str, id: fn(&str) -> ObjectId| {
        items(node, key).filter_map(sourced).map(move |name| Sourced::new(id(name.value), name.at)).collect()
    };
    let mut removed: Vec<_> = named("queues", |name| ObjectId::Queue(QueueName::new(name)));
    removed.extend::<Vec<_>>(named("exchanges", |name| ObjectId::Exchange(ExchangeName::new(name))));
    removed.extend::<Vec<_>>(named("policies", |name| ObjectId::Policy(PolicyName::new(name))));
    let bindings = items(node, "bindings").filter_map(binding);
    removed.extend(bindings.map(|(binding, written)| Sourced::new(ObjectId::Binding(binding), written.source_at)));
    removed.extend(records::removed_records(node, diagnostics));
    removed
}

fn queue(entry: &Entry, defaults: &QueueKeys, spec: &mut Spec, diagnostics: &mut Diagnostics) -> Option<QueueSpec> {
    if boolean(&entry.node, "external", false) {
        return Some(QueueSpec::external(entry.at));
    }
    let keys = QueueKeys::read(&entry.node, SetBy::Itself, diagnostics);
    spec.retry_uses.extend(keys.retry.policy_reference());
    keys.resolve(&entry.key, entry.at, defaults, spec, diagnostics)
}

/// Returns true if the spec does not declare a queue with this name yet. Otherwise, reports a duplicate declaration. If
/// both declarations are external, merges their thresholds instead, and reports different thresholds.
fn check_first_declaration(
    name: &QueueName,
    queue: &QueueSpec,
    spec: &mut Spec,
    diagnostics: &mut Diagnostics,
) -> bool {
    let dead_letter = spec.dead_letter_queues.get_mut(name).map(|known| &mut known.queue);
    let Some(first) = spec.queues.get_mut(name).or(dead_letter) else { return true };
    // Two documents can refer to the same external queue.
    if !(first.is_external && queue.is_external) {
        diagnostics.push(declared_twice("queue", name.as_str(), queue.at, first.at));
    } else if first.thresholds.is_unset() {
        first.thresholds = queue.thresholds.clone();
    } else if !queue.thresholds.is_unset() && !first.thresholds.has_same_values(&queue.thresholds) {
        let message = format!("two documents set different thresholds for external queue `{name}`");
        let diagnostic = Diagnostic::error("set-twice", message, queue.at).also(first.at, "first set here");
        diagnostics.push(diagnostic.hint(with_variants_hint("set them once", queue.at, first.at)));
    }
    false
}

fn dead_letter_queue(node: &Node, queue: QueueSpec) -> DeadLetterQueueSpec {
    let exchange = node.get("exchange");
    let get = |key: &str| exchange.and_then(|exchange| exchange.get(key));
    DeadLetterQueueSpec {
        exchange_type: text_or(get("type"), "fanout", queue.at),
        queue,
        exchange_name: get("name").and_then(sourced).map(|name| Sourced::new(ExchangeName::new(name.value), name.at)),
        exchange_internal: exchange.is_some_and(|exchange| boolean(exchange, "internal", false)),
        routing_key: get("routingKey").and_then(Node::text).map(str::to_owned),
        is_exchange_declared: false,
    }
}

fn exchange(entry: &Entry, spec: &mut Spec, diagnostics: &mut Diagnostics) {
    let (name, node) = (ExchangeName::new(&*entry.key), &entry.node);
    incoming_bindings(entry, &Destination::Exchange(name.clone()), spec, diagnostics);
    let mut arguments = arguments(node, "arguments");
    let typed = node.get("alternateExchange").and_then(sourced).map(|it| Sourced::new(it.value.to_owned(), it.at));
    let mut places = Places::new();
    if typed.is_none() && arguments.contains_key("alternate-exchange") {
        places.insert("alternate-exchange".to_owned(), vec![SetIn::Arguments]);
    }
    let alternate_exchange = match (typed, arguments.remove("alternate-exchange")) {
        (Some(typed), Some(argument)) => {
            let message = "`alternateExchange` is set twice: as a key and as the `alternate-exchange` argument";
            let diagnostic = Diagnostic::error("set-twice", message, argument.at).also(typed.at, "first set here");
            diagnostics.push(diagnostic.hint("keep `alternateExchange`"));
            Some(typed)
        }
        (None, Some(Keyed { value: ArgumentValue::Text(name), at, .. })) => Some(Sourced::new(name, at)),
        (None, Some(argument)) => {
            let diagnostic = Diagnostic::error("wrong-type", "expected a name for `alternate-exchange`", argument.at);
            diagnostics.push(diagnostic.label("expected a string"));
            None
        }
        (typed, None) => typed,
    };
    let exchange = ExchangeSpec {
        at: entry.at,
        is_external: boolean(node, "external", false),
        is_optional: boolean(node, "optional", false),
        kind: text_or(node.get("type"), "", entry.at),
        durable: boolean(node, "durable", true),
        auto_delete: boolean(node, "autoDelete", false),
        internal: boolean(node, "internal", false),
        alternate_exchange: alternate_exchange.map(|it| Sourced::new(ExchangeName::new(it.value), it.at)),
        arguments,
        places,
        on_conflict: node.get("onConflict").and_then(Node::text).and_then(on_conflict),
    };
    match spec.exchanges.get_mut(&name) {
        Some(first) if first.is_external && exchange.is_external => first.is_optional &= exchange.is_optional,
        Some(first) => diagnostics.push(declared_twice("exchange", &entry.key, entry.at, first.at)),
        None => {
            spec.exchanges.insert(name, exchange);
        }
    }
}

/// Reads the `bindings` of a queue or exchange, which is the destination of these bindings.
fn incoming_bindings(entry: &Entry, destination: &Destination, spec: &mut Spec, diagnostics: &mut Diagnostics) {
    for item in items(&entry.node, "bindings") {
        let Some(source) = item.get("exchange").and_then(sourced) else { continue };
        let binding = Binding {
            source: ExchangeName::new(source.value),
            destination: destination.clone(),
            routing_key: item.get("routingKey").and_then(Node::text).unwrap_or_default().to_owned(),
            arguments: entries(item, "arguments").map(|it| (it.key.clone(), value_of(&it.node))).collect(),
        };
        let written = binding_spec(item, source.at, entry.at);
        add_binding(binding, written, item, spec, diagnostics);
    }
}

fn binding(item: &Node) -> Option<(Binding, BindingSpec)> {
    let source = item.get("source").and_then(sourced)?;
    let destination = item.get("destination").and_then(sourced)?;
    let is_exchange = item.get("destinationType").and_then(Node::text) == Some("exchange");
    let binding = Binding {
        source: ExchangeName::new(source.value),
        destination: if is_exchange {
            Destination::Exchange(ExchangeName::new(destination.value))
        } else {
            Destination::Queue(QueueName::new(destination.value))
        },
        routing_key: item.get("routingKey").and_then(Node::text).unwrap_or_default().to_owned(),
        arguments: entries(item, "arguments").map(|it| (it.key.clone(), value_of(&it.node))).collect(),
    };
    Some((binding, binding_spec(item, source.at, destination.at)))
}

fn binding_spec(item: &Node, source_at: Location, destination_at: Location) -> BindingSpec {
    let arguments = entries(item, "arguments").map(|it| (it.key.clone(), it.node.at));
    BindingSpec {
        at: source_at,
        source_at,
        destination_at,
        key_at: item.get("routingKey").map_or(source_at, |key| key.at),
        arguments: arguments.collect(),
    }
}

fn add_binding(binding: Binding, written: BindingSpec, item: &Node, spec: &mut Spec, diagnostics: &mut Diagnostics) {
    // The checked tree contains null instead of an invalid value, so this binding might look identical to a different
    // binding.
    let is_invalid = item.entries().iter().any(|entry| matches!(entry.node.value, Value::Null(_)));
    if is_invalid && spec.bindings.contains_key(&binding) {
        return;
    }
    if let Some(first) = spec.bindings.get(&binding) {
        let diagnostic =
            Diagnostic::error("declared-twice", format!("binding `{binding}` is declared twice"), written.at);
        diagnostics
            .push(diagnostic.label("again here").also(first.at, "first declared here").hint("keep one of the two"));
    } else {
        spec.bindings.insert(binding, written);
    }
}

fn policy(entry: &Entry, spec: &mut Spec, diagnostics: &mut Diagnostics) {
    let node = &entry.node;
    let name = PolicyName::new(&*entry.key);
    let Some(pattern) = node.get("pattern").and_then(sourced) else { return };
    let priority = node.get("priority").and_then(|node| value_of(node).as_number()).unwrap_or_default();
    let apply_to = node.get("applyTo").and_then(|node| Some(Sourced::new(ApplyTo::named(node.text()?)?, node.at)));
    let policy = PolicySpec {
        at: entry.at,
        pattern: Sourced::new(pattern.value.to_owned(), pattern.at),
        apply_to: apply_to.unwrap_or(Sourced::new(ApplyTo::All, entry.at)),
        priority: Priority(priority),
        definition: arguments(node, "definition"),
    };
    if let Some(first) = spec.policies.get(&name) {
        diagnostics.push(declared_twice("policy", &entry.key, entry.at, first.at));
    } else {
        spec.policies.insert(name, policy);
    }
}
