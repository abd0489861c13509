//! Converts the checked mapping of a queue into a [`QueueSpec`]. The queue's own keys take precedence over the
//! document's defaults. The vhost's default type applies last. A default applies only if the queue type supports it.

use super::convert::{on_conflict, value_of};
use super::diagnostic::{Diagnostic, Diagnostics};
use super::hints::join_or;
use super::node::{Entry, Location, Node, Value};
use super::retry_layers::Layers;
use super::spec_types::{DeadLetter, QueueSpec, RetryKeys, RetrySpec, SetBy, Setting, Spec, Wiring};
use super::thresholds::ThresholdsSpec;
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use crate::model::{ArgumentValue, ExchangeName, OnConflict, Places, QueueName, QueueType, SetIn};
use std::collections::{BTreeMap, BTreeSet};

/// The keys of a queue, or of `defaults.queue`.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueKeys {
    queue_type: Option<Setting<QueueType>>,
    durable: Option<Setting<bool>>,
    auto_delete: Option<Setting<bool>>,
    arguments: BTreeMap<String, Setting<ArgumentValue>>,
    dead_letter: Option<Setting<DeadLetter>>,
    on_conflict: Option<Setting<OnConflict>>,
    /// The retry keys. Default retries are set in `defaults`, not in `defaults.queue`.
    pub(crate) retry: RetryKeys,
    /// The known arguments that are set under `arguments` rather than with their own keys.
    in_arguments: BTreeSet<String>,
    /// True if a type is set but invalid, so that the type is unknown.
    is_type_invalid: bool,
    /// The positions of invalid values, by argument.
    invalid: BTreeMap<String, Location>,
}

impl QueueKeys {
    /// Reads the keys of a checked mapping. `set_by` is the origin of the settings.
    pub(crate) fn read(node: &Node, set_by: SetBy, diagnostics: &mut Diagnostics) -> Self {
        let boolean = |key: &str| {
            let entry = node.entry(key)?;
            Some(Setting { value: entry.node.boolean()?, at: entry.at, set_by })
        };
        let mut keys = Self {
            durable: boolean("durable"),
            auto_delete: boolean("autoDelete"),
            on_conflict: node
                .entry("onConflict")
                .and_then(|entry| Some(Setting { value: on_conflict(entry.node.text()?)?, at: entry.at, set_by })),
            dead_letter: node.entry("deadLetter").and_then(|entry| {
                Some(Setting { value: dead_letter(&entry.node)?, at: target_location(entry), set_by })
            }),
            retry: RetryKeys::read(node, set_by, diagnostics),
            ..Self::default()
        };
        let mut set: BTreeMap<&str, (&Entry, &Node)> = BTreeMap::new();
        for entry in node.entries() {
            let typed = KNOWN_ARGUMENTS.iter().find(|known| known.key == entry.key && entry.key != "deadLetter");
            if let Some(known) = typed {
                set.insert(known.name, (entry, &entry.node));
            }
        }
        for entry in node.get("arguments").map_or(&[][..], Node::entries) {
            let key = KnownArgument::named(&entry.key).map_or("", |known| known.key);
            if let Some(first) = node.entry(key) {
                let message = format!("`{key}` is set twice: as a key and as the `{}` argument", entry.key);
                let diagnostic = Diagnostic::error("set-twice", message, entry.at).also(first.at, "first set here");
                diagnostics.push(diagnostic.hint(format!("keep `{key}`")));
            } else {
                set.insert(&entry.key, (entry, &entry.node));
                if !key.is_empty() {
                    keys.in_arguments.insert(entry.key.clone());
                }
            }
        }
        keys.take_dead_letter_arguments(&mut set, set_by, diagnostics);
        if let Some((entry, node)) = set.remove("x-queue-type") {
            keys.queue_type =
                node.text().and_then(QueueType::named).map(|value| Setting { value, at: entry.at, set_by });
            keys.is_type_invalid = keys.queue_type.is_none();
        }
        let is_invalid = |(_, (_, node)): &(&&str, &(&Entry, &Node))| matches!(node.value, Value::Null(_));
        keys.invalid = set.iter().filter(is_invalid).map(|(name, (_, node))| ((*name).to_owned(), node.at)).collect();
        let settings = set
            .into_iter()
            .map(|(name, (entry, node))| (name.to_owned(), Setting { value: value_of(node), at: entry.at, set_by }));
        keys.arguments = settings.collect();
        keys
    }

    /// Moves `x-dead-letter-exchange` and `x-dead-letter-routing-key` to the dead-letter target, as if `deadLetter` had
    /// set them.
    fn take_dead_letter_arguments(
        &mut self,
        set: &mut BTreeMap<&str, (&Entry, &Node)>,
        set_by: SetBy,
        diagnostics: &mut Diagnostics,
    ) {
        let exchange = set.remove("x-dead-letter-exchange");
        let routing_key = set.remove("x-dead-letter-routing-key");
        let text = |(_, node): (&Entry, &Node)| node.text().unwrap_or_default().to_owned();
        match (exchange, routing_key) {
            (Some((entry, node)), routing_key) => {
                let value = DeadLetter::Exchange {
                    exchange: ExchangeName::new(node.text().unwrap_or_default()),
                    routing_key: routing_key.map(text),
                    wiring: Wiring::Arguments,
                };
                self.dead_letter = Some(Setting { value, at: target_location(entry), set_by });
            }
            (None, Some((entry, _))) => {
                let message = "the broker refuses `x-dead-letter-routing-key` without `x-dead-letter-exchange`";
                let hint = "use `deadLetter: {exchange: …, routingKey: …}` to set both";
                diagnostics.push(Diagnostic::error("missing-key", message, entry.at).hint(hint));
            }
            (None, None) => {}
        }
    }

    /// Marks the default type as invalid, unless `defaults.queue` sets a type. Called if the vhost's `defaultQueueType`
    /// is set but invalid.
    pub(crate) fn mark_type_invalid(&mut self) {
        self.is_type_invalid |= self.queue_type.is_none();
    }

    /// Sets the default dead-letter target from the document's `defaults.deadLetter`.
    pub(crate) fn set_dead_letter(&mut self, entry: &Entry) {
        let value = dead_letter(&entry.node);
        self.dead_letter = value.map(|value| Setting { value, at: target_location(entry), set_by: SetBy::Defaults });
    }

    /// Returns the defaults for dead-letter queues: these keys without the dead-letter and retry settings.
    pub(crate) fn without_dead_letter(&self) -> Self {
        Self { dead_letter: None, retry: RetryKeys::default(), ..self.clone() }
    }

    /// Builds the queue from its own keys and the defaults. The keys of the queue take precedence. Reports unsupported
    /// settings. Returns `None` if the type is missing or invalid, and reports a missing type.
    pub(crate) fn resolve(
        self,
        name: &str,
        at: Location,
        defaults: &Self,
        spec: &Spec,
        diagnostics: &mut Diagnostics,
    ) -> Option<QueueSpec> {
        if self.is_type_invalid || self.queue_type.is_none() && defaults.is_type_invalid {
            return None;
        }
        let of_vhost = spec.default_queue_type.as_ref();
        let by_vhost = || of_vhost.map(|it| Setting { value: it.value, at: it.at, set_by: SetBy::Vhost });
        let queue_type = self.queue_type.clone().or_else(|| defaults.queue_type.clone()).or_else(by_vhost);
        let Some(queue_type) = queue_type else {
            let hint = "add `type: quorum`, or set a default in `defaults.queue` or in the vhost's `defaultQueueType`";
            diagnostics.push(Diagnostic::error("missing-key", format!("queue `{name}` has no `type`"), at).hint(hint));
            return None;
        };
        let kind = queue_type.value;
        self.refuse_unsupported_keys(name, &queue_type, diagnostics);
        let can_be_transient = kind == QueueType::Classic;
        let supports =
            |argument: &str| KnownArgument::named(argument).is_none_or(|known| known.support_for(kind).is_some());
        let retry = self.retry(name, &queue_type, defaults, spec, diagnostics);
        let places = self.places(defaults, supports);
        let mut arguments: BTreeMap<_, _> =
            defaults.arguments.iter().filter(|(name, _)| supports(name)).map(|(k, v)| (k.clone(), v.clone())).collect();
        arguments.extend(self.arguments);
        let default_dead_letter = defaults.dead_letter.clone().filter(|_| supports("x-dead-letter-exchange"));
        Some(QueueSpec {
            at,
            is_external: false,
            durable: self.durable.or_else(|| defaults.durable.clone().filter(|_| can_be_transient)),
            auto_delete: self.auto_delete.or_else(|| defaults.auto_delete.clone().filter(|_| can_be_transient)),
            arguments,
            // A queue whose type does not support dead-lettering can only set `none`.
            dead_letter: self.dead_letter.filter(|_| supports("x-dead-letter-exchange")).or(default_dead_letter),
            retry,
            places,
            thresholds: ThresholdsSpec::default(),
            on_conflict: self.on_conflict.or_else(|| defaults.on_conflict.clone()),
            queue_type: Some(queue_type),
        })
    }

    /// Returns the places that set the queue's known arguments. Places in the queue itself precede places in the
    /// defaults. Omits arguments that only a queue key sets.
    fn places(&self, defaults: &Self, supports: impl Fn(&str) -> bool) -> Places {
        let mut all: Places = self.in_arguments.iter().map(|name| (name.clone(), vec![SetIn::Arguments])).collect();
        let is_known = |name: &str| KnownArgument::named(name).is_some() && supports(name);
        for (name, setting) in defaults.arguments.iter().filter(|(name, _)| is_known(name)) {
            let in_queue = if self.arguments.contains_key(name) { vec![SetIn::Key] } else { Vec::new() };
            let line = setting.at.line;
            let by_key = !defaults.in_arguments.contains(name);
            let place = if by_key { SetIn::Defaults(line) } else { SetIn::DefaultArguments(line) };
            all.entry(name.clone()).or_insert(in_queue).push(place);
        }
        let dead_letter = "x-dead-letter-exchange";
        if let Some(setting) = defaults.dead_letter.as_ref().filter(|_| is_known(dead_letter)) {
            let in_queue = if self.dead_letter.is_some() { vec![SetIn::Key] } else { Vec::new() };
            all.entry(dead_letter.to_owned()).or_insert(in_queue).push(SetIn::Defaults(setting.at.line));
        }
        all
    }

    /// Resolves the retries of the queue. Default retries do not apply to streams, or to queues that accept message
    /// loss with `deadLetter: none`. Reports retries on a stream.
    fn retry(
        &self,
        name: &str,
        queue_type: &Setting<QueueType>,
        defaults: &Self,
        spec: &Spec,
        diagnostics: &mut Diagnostics,
    ) -> Option<RetrySpec> {
        if queue_type.value == QueueType::Stream {
            for at in self.retry.places() {
                let message = format!("stream `{name}` cannot retry messages: consuming does not remove them");
                let diagnostic = Diagnostic::error("wrong-queue-type", message, *at);
                diagnostics.push(diagnostic.hint("remove the key").also(queue_type.at, "the type is set here"));
            }
            return None;
        }
        let is_lossy = self.dead_letter.as_ref().is_some_and(|setting| setting.value == DeadLetter::Nowhere);
        let defaults = Some(&defaults.retry).filter(|_| !is_lossy);
        Layers::of(&self.retry, defaults, &spec.retry_policies).resolve(name, diagnostics)
    }

    fn refuse_unsupported_keys(&self, name: &str, queue_type: &Setting<QueueType>, diagnostics: &mut Diagnostics) {
        let kind = queue_type.value;
        let mut refuse = |known: &KnownArgument, at: Location| {
            if known.support_for(kind).is_some() {
                return;
            }
            // If the key is unsupported, its invalid value is not reported as a second mistake.
            if let Some(value) = self.invalid.get(known.name) {
                diagnostics.remove_at(*value);
            }
            let message = format!("{} `{name}` does not support `{}`", noun(kind), known.key);
            let types = join_or(known.queue_types().map(QueueType::as_str));
            let hint = format!("only queues of type {types} support it");
            let diagnostic = Diagnostic::error("wrong-queue-type", message, at).hint(hint);
            diagnostics.push(diagnostic.also(queue_type.at, "the type is set here"));
        };
        for (argument, setting) in &self.arguments {
            if let Some(known) = KnownArgument::named(argument) {
                refuse(known, setting.at);
            }
        }
        // Streams do not dead-letter messages, so a stream can set `none`.
        let dead_letter = self.dead_letter.as_ref().filter(|setting| setting.value != DeadLetter::Nowhere);
        if let (Some(setting), Some(known)) = (dead_letter, KnownArgument::named("x-dead-letter-exchange")) {
            refuse(known, setting.at);
        }
        if kind == QueueType::Classic {
            return;
        }
        for (setting, invalid, words) in
            [(&self.durable, false, "must be durable"), (&self.auto_delete, true, "cannot be auto-delete")]
        {
            if let Some(setting) = setting.as_ref().filter(|setting| setting.value == invalid) {
                let message = format!("{} `{name}` {words}", noun(kind));
                let diagnostic = Diagnostic::error("wrong-queue-type", message, setting.at);
                let diagnostic = diagnostic.hint("remove the key, or use `type: classic`");
                diagnostics.push(diagnostic.also(queue_type.at, "the type is set here"));
            }
        }
    }
}

/// Returns the noun for a queue of this type.
fn noun(kind: QueueType) -> &'static str {
    match kind {
        QueueType::Classic => "classic queue",
        QueueType::Quorum => "quorum queue",
        QueueType::Stream => "stream",
    }
}

/// Returns the position of the dead-letter target's name, or of the key if the value contains no name.
fn target_location(entry: &Entry) -> Location {
    let named = || entry.node.get("queue").or_else(|| entry.node.get("exchange"));
    let name = if entry.node.text().is_some() { Some(&entry.node) } else { named() };
    name.map_or(entry.at, |node| node.at)
}

fn dead_letter(node: &Node) -> Option<DeadLetter> {
    let wiring = match node.get("wiring").and_then(Node::text) {
        Some("policy") => Wiring::Policy,
        Some(_) | None => Wiring::Arguments,
    };
    match (node.text(), node.get("queue").and_then(Node::text), node.get("exchange").and_then(Node::text)) {
        (Some("none"), _, _) => Some(DeadLetter::Nowhere),
        (Some(name), _, _) | (None, Some(name), _) => Some(DeadLetter::Queue { name: QueueName::new(name), wiring }),
        (None, None, Some(exchange)) => Some(DeadLetter::Exchange {
            exchange: ExchangeName::new(exchange),
            routing_key: node.get("routingKey").and_then(Node::text).map(str::to_owned),
            wiring,
        }),
        (None, None, None) => None,
    }
}
