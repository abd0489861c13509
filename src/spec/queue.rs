//! A checked table of a queue into what is known of the queue: its own keys, then the document's defaults, then the
//! vhost's default type. A default applies only where the queue's type carries it.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Entry, Node, Value};
use super::position::Location;
use super::read::{on_conflict, value_of};
use super::retry::{RetryKeys, RetrySpec};
use super::retry_layers::Layers;
use super::suggest::listed;
use super::written::{DeadLetter, QueueSpec, SaidBy, Setting, Spec, Wiring};
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use crate::model::{ArgumentValue, ExchangeName, OnConflict, Places, QueueName, QueueType, SaidIn};
use std::collections::{BTreeMap, BTreeSet};

/// What a table says of queues: a queue's own, or `defaults.queue`.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueKeys {
    queue_type: Option<Setting<QueueType>>,
    durable: Option<Setting<bool>>,
    auto_delete: Option<Setting<bool>>,
    arguments: BTreeMap<String, Setting<ArgumentValue>>,
    dead_letter: Option<Setting<DeadLetter>>,
    on_conflict: Option<Setting<OnConflict>>,
    /// How failed messages are tried again; not in `defaults.queue`, but beside it.
    pub(crate) retry: RetryKeys,
    /// The known ones that stand in `arguments`, and not under keys of their own.
    in_arguments: BTreeSet<String>,
    /// A type was said, but wrong; so nothing can be said about the type.
    is_type_wrong: bool,
    /// Arguments whose value is wrong, and where it stands.
    wrong: BTreeMap<String, Location>,
}

impl QueueKeys {
    /// Reads a table; `said_by` is whose it is.
    pub(crate) fn read(node: &Node, said_by: SaidBy, diagnostics: &mut Diagnostics) -> Self {
        let boolean = |key: &str| {
            let entry = node.entry(key)?;
            Some(Setting { value: entry.node.boolean()?, at: entry.at, said_by })
        };
        let mut keys = Self {
            durable: boolean("durable"),
            auto_delete: boolean("autoDelete"),
            on_conflict: node
                .entry("onConflict")
                .and_then(|entry| Some(Setting { value: on_conflict(entry.node.text()?)?, at: entry.at, said_by })),
            dead_letter: node
                .entry("deadLetter")
                .and_then(|entry| Some(Setting { value: dead_letter(&entry.node)?, at: place(entry), said_by })),
            retry: RetryKeys::read(node, said_by, diagnostics),
            ..Self::default()
        };
        let mut said: BTreeMap<&str, (&Entry, &Node)> = BTreeMap::new();
        for entry in node.entries() {
            let typed = KNOWN_ARGUMENTS.iter().find(|known| known.key == entry.key && entry.key != "deadLetter");
            if let Some(known) = typed {
                said.insert(known.name, (entry, &entry.node));
            }
        }
        for entry in node.get("arguments").map_or(&[][..], Node::entries) {
            let key = KnownArgument::named(&entry.key).map_or("", |known| known.key);
            if let Some(first) = node.entry(key) {
                let message = format!("`{key}` is said twice: as a key and as the argument `{}`", entry.key);
                let diagnostic = Diagnostic::error("said-twice", message, entry.at).also(first.at, "first here");
                diagnostics.push(diagnostic.hint(format!("keep `{key}`")));
            } else {
                said.insert(&entry.key, (entry, &entry.node));
                if !key.is_empty() {
                    keys.in_arguments.insert(entry.key.clone());
                }
            }
        }
        keys.dead_letter_arguments(&mut said, said_by, diagnostics);
        if let Some((entry, node)) = said.remove("x-queue-type") {
            keys.queue_type =
                node.text().and_then(QueueType::named).map(|value| Setting { value, at: entry.at, said_by });
            keys.is_type_wrong = keys.queue_type.is_none();
        }
        let is_wrong = |(_, (_, node)): &(&&str, &(&Entry, &Node))| matches!(node.value, Value::Null(_));
        keys.wrong = said.iter().filter(is_wrong).map(|(name, (_, node))| ((*name).to_owned(), node.at)).collect();
        let settings = said
            .into_iter()
            .map(|(name, (entry, node))| (name.to_owned(), Setting { value: value_of(node), at: entry.at, said_by }));
        keys.arguments = settings.collect();
        keys
    }

    /// The dead-letter exchange by its arguments is the same as by its key.
    fn dead_letter_arguments(
        &mut self,
        said: &mut BTreeMap<&str, (&Entry, &Node)>,
        said_by: SaidBy,
        diagnostics: &mut Diagnostics,
    ) {
        let exchange = said.remove("x-dead-letter-exchange");
        let routing_key = said.remove("x-dead-letter-routing-key");
        let text = |(_, node): (&Entry, &Node)| node.text().unwrap_or_default().to_owned();
        match (exchange, routing_key) {
            (Some((entry, node)), routing_key) => {
                let value = DeadLetter::Exchange {
                    exchange: ExchangeName::new(node.text().unwrap_or_default()),
                    routing_key: routing_key.map(text),
                    wiring: Wiring::Arguments,
                };
                self.dead_letter = Some(Setting { value, at: place(entry), said_by });
            }
            (None, Some((entry, _))) => {
                let message = "`x-dead-letter-routing-key` without `x-dead-letter-exchange`: the broker refuses it";
                let hint = "say both with `deadLetter: {exchange: …, routingKey: …}`";
                diagnostics.push(Diagnostic::error("missing-key", message, entry.at).hint(hint));
            }
            (None, None) => {}
        }
    }

    /// The vhost's default type was said, but wrong.
    pub(crate) fn set_type_wrong(&mut self) {
        self.is_type_wrong |= self.queue_type.is_none();
    }

    /// Where dead letters go by default: the document's `defaults.deadLetter`.
    pub(crate) fn set_dead_letter(&mut self, node: &Entry) {
        self.dead_letter =
            dead_letter(&node.node).map(|value| Setting { value, at: place(node), said_by: SaidBy::Defaults });
    }

    /// The same without what dead-letter queues do not take.
    pub(crate) fn without_dead_letter(&self) -> Self {
        Self { dead_letter: None, retry: RetryKeys::default(), ..self.clone() }
    }

    /// The queue: these keys first, then the defaults.
    pub(crate) fn resolve(
        self,
        name: &str,
        at: Location,
        defaults: &Self,
        spec: &Spec,
        diagnostics: &mut Diagnostics,
    ) -> Option<QueueSpec> {
        if self.is_type_wrong || self.queue_type.is_none() && defaults.is_type_wrong {
            return None;
        }
        let of_vhost = spec.default_queue_type.as_ref();
        let by_vhost = || of_vhost.map(|it| Setting { value: it.value, at: it.at, said_by: SaidBy::Vhost });
        let queue_type = self.queue_type.clone().or_else(|| defaults.queue_type.clone()).or_else(by_vhost);
        let Some(queue_type) = queue_type else {
            let hint =
                "add `type: quorum`, or say it for all queues in `defaults.queue` or in the vhost's `defaultQueueType`";
            diagnostics.push(Diagnostic::error("missing-key", format!("queue `{name}` has no `type`"), at).hint(hint));
            return None;
        };
        let kind = queue_type.value;
        self.refuse_what_the_type_does_not_take(name, &queue_type, diagnostics);
        let can_be_transient = kind == QueueType::Classic;
        let takes =
            |argument: &str| KnownArgument::named(argument).is_none_or(|known| known.support_for(kind).is_some());
        let retry = self.retry(name, &queue_type, defaults, spec, diagnostics);
        let places = self.places(defaults, takes);
        let mut arguments: BTreeMap<_, _> =
            defaults.arguments.iter().filter(|(name, _)| takes(name)).map(|(k, v)| (k.clone(), v.clone())).collect();
        arguments.extend(self.arguments);
        let default_dead_letter = defaults.dead_letter.clone().filter(|_| takes("x-dead-letter-exchange"));
        Some(QueueSpec {
            at,
            is_external: false,
            durable: self.durable.or_else(|| defaults.durable.clone().filter(|_| can_be_transient)),
            auto_delete: self.auto_delete.or_else(|| defaults.auto_delete.clone().filter(|_| can_be_transient)),
            arguments,
            // Where a type takes none, that is all there is to say of it.
            dead_letter: self.dead_letter.filter(|_| takes("x-dead-letter-exchange")).or(default_dead_letter),
            retry,
            places,
            on_conflict: self.on_conflict.or_else(|| defaults.on_conflict.clone()),
            queue_type: Some(queue_type),
        })
    }

    /// Where its arguments are said, its own first.
    fn places(&self, defaults: &Self, takes: impl Fn(&str) -> bool) -> Places {
        let mut all: Places = self.in_arguments.iter().map(|name| (name.clone(), vec![SaidIn::Arguments])).collect();
        let is_known = |name: &str| KnownArgument::named(name).is_some() && takes(name);
        for (name, setting) in defaults.arguments.iter().filter(|(name, _)| is_known(name)) {
            let own = if self.arguments.contains_key(name) { vec![SaidIn::Key] } else { Vec::new() };
            let line = setting.at.line;
            let by_key = !defaults.in_arguments.contains(name);
            let place = if by_key { SaidIn::Defaults(line) } else { SaidIn::DefaultArguments(line) };
            all.entry(name.clone()).or_insert(own).push(place);
        }
        let dead_letter = "x-dead-letter-exchange";
        if let Some(setting) = defaults.dead_letter.as_ref().filter(|_| is_known(dead_letter)) {
            let own = if self.dead_letter.is_some() { vec![SaidIn::Key] } else { Vec::new() };
            all.entry(dead_letter.to_owned()).or_insert(own).push(SaidIn::Defaults(setting.at.line));
        }
        all
    }

    /// A default applies only where it can: a stream has no retry, and who says that dead letters may be lost (`none`)
    /// wants no retry that others have.
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
                let message = format!("queue `{name}` is a stream, which retries nothing: reading does not remove");
                let diagnostic = Diagnostic::error("wrong-queue-type", message, *at);
                diagnostics.push(diagnostic.hint("remove the key").also(queue_type.at, "its type is said here"));
            }
            return None;
        }
        let is_lossy = self.dead_letter.as_ref().is_some_and(|setting| setting.value == DeadLetter::Nowhere);
        let defaults = Some(&defaults.retry).filter(|_| !is_lossy);
        Layers::of(&self.retry, defaults, &spec.retry_policies).resolve(name, diagnostics)
    }

    fn refuse_what_the_type_does_not_take(
        &self,
        name: &str,
        queue_type: &Setting<QueueType>,
        diagnostics: &mut Diagnostics,
    ) {
        let kind = queue_type.value;
        let mut refuse = |known: &KnownArgument, at: Location| {
            if known.support_for(kind).is_some() {
                return;
            }
            // What is wrong with the value of a key that goes away is no second mistake.
            if let Some(value) = self.wrong.get(known.name) {
                diagnostics.take_back(*value);
            }
            let message = format!("queue `{name}` is a {}, which takes no `{}`", shown(kind), known.key);
            let others = listed(known.queue_types().map(QueueType::as_str));
            let hint = format!("only queues of type {others} take it");
            let diagnostic = Diagnostic::error("wrong-queue-type", message, at).hint(hint);
            diagnostics.push(diagnostic.also(queue_type.at, "its type is said here"));
        };
        for (argument, setting) in &self.arguments {
            if let Some(known) = KnownArgument::named(argument) {
                refuse(known, setting.at);
            }
        }
        // `none` is what a stream does anyway.
        let dead_letter = self.dead_letter.as_ref().filter(|setting| setting.value != DeadLetter::Nowhere);
        if let (Some(setting), Some(known)) = (dead_letter, KnownArgument::named("x-dead-letter-exchange")) {
            refuse(known, setting.at);
        }
        if kind == QueueType::Classic {
            return;
        }
        for (setting, wrong, words) in
            [(&self.durable, false, "must be durable"), (&self.auto_delete, true, "cannot be deleted automatically")]
        {
            if let Some(setting) = setting.as_ref().filter(|setting| setting.value == wrong) {
                let message = format!("queue `{name}` is a {}, which {words}", shown(kind));
                let diagnostic = Diagnostic::error("wrong-queue-type", message, setting.at);
                let diagnostic = diagnostic.hint("remove the key, or use `type: classic`");
                diagnostics.push(diagnostic.also(queue_type.at, "its type is said here"));
            }
        }
    }
}

fn shown(kind: QueueType) -> &'static str {
    match kind {
        QueueType::Classic => "classic queue",
        QueueType::Quorum => "quorum queue",
        QueueType::Stream => "stream",
    }
}

/// The name that a dead letter goes to, or else the key.
fn place(entry: &Entry) -> Location {
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
