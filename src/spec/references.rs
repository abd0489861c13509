//! Checks names that refer to other objects or to retry policies. Each referenced object must be declared, possibly as
//! external, or predeclared by the broker. Declared names come from the unchecked tree, so that a mistake in an object
//! does not cause errors about its bindings. Also checks declared names against `removed` and `ignore`.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::hints::{closest, means_none};
use super::node::{Entry, Location, Node, Value};
use super::records;
use super::spec_types::{DeadLetter, Spec};
use super::super_streams;
use crate::model::names::{DEAD_LETTER_EXCHANGE_SUFFIX, is_reserved};
use crate::model::record_kinds::RECORD_KINDS;
use crate::model::{ArgumentValue, Binding, Destination, ExchangeName, ObjectId, RecordId, RecordKind, Strategy};
use std::collections::BTreeMap;

/// The number of errors after which topo stops searching for suggestions.
const MAX_SUGGESTIONS: usize = 200;

/// The names declared in the documents of a vhost or of the cluster, with their positions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    exchanges: BTreeMap<String, Location>,
    queues: BTreeMap<String, Location>,
    dead_letter_queues: BTreeMap<String, Location>,
    policies: BTreeMap<String, Location>,
    records: BTreeMap<RecordId, Location>,
    retry_policies: BTreeMap<String, Location>,
    /// The positions of external objects.
    external: Vec<Location>,
    /// True if some queue declarations cannot be read, so that some names are unknown.
    are_queues_unknown: bool,
    /// True if some exchange declarations cannot be read.
    are_exchanges_unknown: bool,
    /// True if some retry policies cannot be read.
    are_retry_policies_unknown: bool,
}

impl Declared {
    /// Adds the declarations of a document, valid or not.
    pub(crate) fn add(&mut self, document: &Node) {
        let entries = |key: &str| document.get(key).map_or(&[][..], Node::entries).iter();
        let named = |entry: &Entry| (entry.key.clone(), entry.at);
        let is_invalid =
            |key: &str| document.get(key).is_some_and(|node| !matches!(node.value, Value::Table(_) | Value::Null(_)));
        self.are_queues_unknown |= is_invalid("queues") || is_invalid("deadLetterQueues");
        self.are_exchanges_unknown |= is_invalid("exchanges");
        self.are_retry_policies_unknown |= is_invalid("retryPolicies");
        self.exchanges.extend(entries("exchanges").map(named));
        self.queues.extend(entries("queues").map(named));
        self.queues.extend(super_streams::streams(document).flat_map(|(_, streams)| streams).map(named));
        self.dead_letter_queues.extend(entries("deadLetterQueues").map(named));
        self.policies.extend(entries("policies").map(named));
        for row in RECORD_KINDS {
            let named = records::declarations(row, document).into_iter().flatten();
            let id = |key: Vec<&str>| RecordId { kind: row.kind, key: key.into_iter().map(str::to_owned).collect() };
            self.records.extend(named.filter(|it| !it.key.is_empty()).map(|it| (id(it.key), it.at)));
        }
        self.retry_policies.extend(entries("retryPolicies").map(named));
        for entry in entries("deadLetterQueues") {
            let explicit = entry.node.get("exchange").and_then(|exchange| exchange.get("name")).and_then(Node::text);
            let name = explicit.map_or_else(|| format!("{}{DEAD_LETTER_EXCHANGE_SUFFIX}", entry.key), str::to_owned);
            self.exchanges.entry(name).or_insert(entry.at);
        }
        for kind in ["exchanges", "queues", "deadLetterQueues"] {
            let is_external = |entry: &&Entry| entry.node.get("external").is_some_and(Node::is_true);
            self.external.extend(entries(kind).filter(is_external).map(|entry| entry.at));
        }
    }

    /// Marks the declared names as incomplete: a file or document that cannot be read may declare more names.
    pub(crate) fn set_unknown(&mut self) {
        (self.are_queues_unknown, self.are_exchanges_unknown, self.are_retry_policies_unknown) = (true, true, true);
    }

    fn has_queue(&self, name: &str) -> bool {
        self.are_queues_unknown || self.queues.contains_key(name) || self.dead_letter_queues.contains_key(name)
    }

    fn has_exchange(&self, name: &ExchangeName) -> bool {
        self.are_exchanges_unknown || name.is_predeclared() || self.exchanges.contains_key(name.as_str())
    }

    fn queue_names(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().chain(self.dead_letter_queues.keys()).map(String::as_str)
    }

    /// Returns the position at which an object is declared. Returns `None` if the object is not declared or has no
    /// name.
    fn position(&self, id: &ObjectId) -> Option<Location> {
        match id {
            ObjectId::Queue(name) => {
                self.queues.get(name.as_str()).or_else(|| self.dead_letter_queues.get(name.as_str())).copied()
            }
            ObjectId::Exchange(name) => self.exchanges.get(name.as_str()).copied(),
            ObjectId::Policy(name) => self.policies.get(name.as_str()).copied(),
            ObjectId::Record(id) => self.records.get(id).copied(),
            ObjectId::Vhost | ObjectId::Binding(_) => None,
        }
    }
}

/// Checks every reference in the spec of a vhost or of the cluster, and the names in `removed` and `ignore`.
pub(crate) fn check(spec: &Spec, declared: &Declared, diagnostics: &mut Diagnostics) {
    let mut check = Check { declared, diagnostics };
    for (binding, written) in &spec.bindings {
        check.binding(binding, written.source_at, written.destination_at, &|_| false);
    }
    for (name, exchange) in &spec.exchanges {
        if let Some(alternate) = &exchange.alternate_exchange {
            check.exchange(&alternate.value, alternate.at, &format!("the alternate exchange of `{name}`"), &|_| false);
        }
    }
    let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, entry)| (name, &entry.queue));
    for (name, queue) in spec.queues.iter().chain(dead_letter_queues) {
        let Some(setting) = &queue.dead_letter else { continue };
        match &setting.value {
            DeadLetter::Nowhere => {}
            DeadLetter::Queue { name: target, .. } => check.dead_letter_queue(target.as_str(), setting.at),
            DeadLetter::Exchange { exchange, .. } => {
                check
                    .exchange(exchange, setting.at, &format!("the dead-letter exchange of queue `{name}`"), &|_| false);
            }
        }
    }
    for (name, policy) in &spec.policies {
        for key in ["dead-letter-exchange", "alternate-exchange"] {
            if let Some((ArgumentValue::Text(exchange), at)) = policy.definition.get(key).map(|it| (&it.value, it.at)) {
                check.exchange(&ExchangeName::new(exchange), at, &format!("the {key} of policy `{name}`"), &|_| false);
            }
        }
    }
    for (id, record) in &spec.records {
        if let (RecordKind::TopicPermission, [user, exchange]) = (id.kind, &id.key[..]) {
            check.exchange_of_topic_permission(user, exchange, record.at);
        }
    }
    for used in &spec.retry_uses {
        check.retry_policy(&used.value, used.at);
    }
    check.check_removed(spec);
    check.check_ignored(spec);
}

struct Check<'a> {
    declared: &'a Declared,
    diagnostics: &'a mut Diagnostics,
}

impl Check<'_> {
    fn binding(&mut self, binding: &Binding, source_at: Location, at: Location, is_known: &dyn Fn(&ObjectId) -> bool) {
        self.exchange(&binding.source, source_at, "the source of this binding", is_known);
        match &binding.destination {
            Destination::Exchange(name) => self.exchange(name, at, "the destination of this binding", is_known),
            Destination::Queue(name) => {
                if !self.declared.has_queue(name.as_str()) && !is_known(&ObjectId::Queue(name.clone())) {
                    let suggestion = self.closest(name.as_str(), self.declared.queue_names());
                    let is_exchange = self.declared.exchanges.contains_key(name.as_str());
                    let hint = if is_exchange {
                        Some("it is an exchange: add `destinationType: exchange`".to_owned())
                    } else {
                        None
                    };
                    self.report_undeclared(
                        "the destination of this binding",
                        "queue",
                        name.as_str(),
                        at,
                        suggestion,
                        hint,
                    );
                }
            }
        }
    }

    fn exchange(&mut self, name: &ExchangeName, at: Location, what: &str, is_known: &dyn Fn(&ObjectId) -> bool) {
        if !self.declared.has_exchange(name) && !is_known(&ObjectId::Exchange(name.clone())) {
            let suggestion = self.closest(name.as_str(), self.declared.exchanges.keys().map(String::as_str));
            self.report_undeclared(what, "exchange", name.as_str(), at, suggestion, None);
        }
    }

    fn exchange_of_topic_permission(&mut self, user: &str, exchange: &str, at: Location) {
        if exchange.is_empty() {
            let message = format!("the exchange name in a topic permission of user `{user}` is empty");
            let hint = "use the name of a topic exchange; the default exchange is a direct exchange";
            self.diagnostics.push(Diagnostic::error("name", message, at).hint(hint));
            return;
        }
        self.exchange(&ExchangeName::new(exchange), at, "the exchange of this topic permission", &|_| false);
    }

    fn dead_letter_queue(&mut self, name: &str, at: Location) {
        if self.declared.are_queues_unknown || self.declared.dead_letter_queues.contains_key(name) {
            return;
        }
        let message = format!("dead-letter queue `{name}` is not declared");
        let suggestion = self.closest(name, self.declared.dead_letter_queues.keys().map(String::as_str));
        let hint = match suggestion {
            _ if self.declared.queues.contains_key(name) => format!(
                "it is an ordinary queue: move it to `deadLetterQueues:`, or \
                 write `deadLetter: {{exchange: \"\", routingKey: {name}}}`"
            ),
            _ if self.declared.exchanges.contains_key(name) => {
                format!("it is an exchange: write `deadLetter: {{exchange: {name}}}`")
            }
            _ if means_none(name) => "write `none` to drop rejected and expired messages intentionally".to_owned(),
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None => format!("add `{name}: {{}}` under `deadLetterQueues:`, or write `deadLetter: {{exchange: …}}`"),
        };
        let diagnostic = Diagnostic::error("undeclared", message, at).label("not in `deadLetterQueues`");
        self.diagnostics.push(diagnostic.hint(hint));
    }

    fn retry_policy(&mut self, name: &str, at: Location) {
        if self.declared.are_retry_policies_unknown || self.declared.retry_policies.contains_key(name) {
            return;
        }
        let known = self.declared.retry_policies.keys().map(String::as_str);
        let hint = match (self.closest(name, known), Strategy::named(name)) {
            (_, _) if means_none(name) => "write `none` to disable retries, or remove the key".to_owned(),
            (Some(suggestion), _) => format!("did you mean `{suggestion}`?"),
            (None, Some(strategy)) => format!("to choose a strategy, write `retry: {{strategy: {strategy}}}`"),
            (None, None) => {
                format!(
                    "add `{name}` under `retryPolicies:`, or write a mapping such as `retry: {{delays: [5s, 30s]}}`"
                )
            }
        };
        let diagnostic = Diagnostic::error("undeclared", format!("retry policy `{name}` is not declared"), at);
        self.diagnostics.push(diagnostic.label("not in `retryPolicies`").hint(hint));
    }

    /// Suggests a name, but only for the first [`MAX_SUGGESTIONS`] errors, because the search is slow.
    fn closest<'a>(&self, name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        if self.diagnostics.iter().len() < MAX_SUGGESTIONS { closest(name, names) } else { None }
    }

    fn report_undeclared(
        &mut self,
        what: &str,
        kind: &str,
        name: &str,
        at: Location,
        suggestion: Option<&str>,
        hint: Option<String>,
    ) {
        let declare = format!("declare it under `{kind}s:`; add `external: true` there if it is managed elsewhere");
        let hint = hint.unwrap_or_else(|| match suggestion {
            Some(suggestion) => format!("did you mean `{suggestion}`? Otherwise, {declare}"),
            None => declare,
        });
        let message = format!("{what}, {kind} `{name}`, is not declared");
        let diagnostic = Diagnostic::error("undeclared", message, at).label(format!("no such {kind}"));
        self.diagnostics.push(diagnostic.hint(hint));
    }

    /// Reports objects listed under `removed` that are also declared or that topo cannot remove. Also reports removed
    /// bindings that refer to unknown objects.
    fn check_removed(&mut self, spec: &Spec) {
        let is_removed = |id: &ObjectId| spec.removed.iter().any(|removed| removed.value == *id);
        for removed in &spec.removed {
            let declared = match &removed.value {
                ObjectId::Binding(binding) => spec.bindings.get(binding).map(|written| written.at),
                ObjectId::Vhost
                | ObjectId::Exchange(_)
                | ObjectId::Policy(_)
                | ObjectId::Queue(_)
                | ObjectId::Record(_) => self.declared.position(&removed.value),
            };
            if let Some(declared) = declared {
                let message = format!("{} is both declared and listed under `removed`", describe(&removed.value));
                let diagnostic = Diagnostic::error("removed-and-declared", message, removed.at).label("removed here");
                self.diagnostics.push(diagnostic.also(declared, "declared here").hint("keep one of the two"));
            } else if let Some(name) = removed.value.name().filter(|name| name.starts_with("amq.") || is_reserved(name))
            {
                let message = format!("cannot remove `{name}`: the name is reserved for the broker or topo");
                self.diagnostics.push(Diagnostic::error("name", message, removed.at).label("removed here"));
            } else if let ObjectId::Binding(binding) = &removed.value {
                self.binding(binding, removed.at, removed.at, &is_removed);
            }
        }
    }

    /// Reports declared objects that `ignore` matches, except external objects.
    fn check_ignored(&mut self, spec: &Spec) {
        let declared = self.declared;
        let named = [
            ("exchange", &declared.exchanges),
            ("queue", &declared.queues),
            ("queue", &declared.dead_letter_queues),
            ("policy", &declared.policies),
        ];
        let named =
            named.into_iter().flat_map(|(kind, names)| names.iter().map(move |(name, at)| (kind, name.as_str(), at)));
        let (of_users, of_spec): (Vec<_>, Vec<_>) =
            declared.records.iter().partition(|(id, _)| id.kind.row().is_named_after_users());
        for (id, at) in of_users {
            let Some(name) = id.name() else { continue };
            if spec.users.ignore.iter().any(|glob| glob.matches(name)) {
                let word = id.kind.row().word;
                let message = format!("{word} `{name}` is declared, but `ignore` in the cluster document matches it");
                let diagnostic = Diagnostic::error("ignored-and-declared", message, *at);
                self.diagnostics.push(diagnostic.hint("make the glob narrower, or remove the declaration"));
            }
        }
        let records = of_spec.into_iter().filter_map(|(id, at)| Some((id.kind.row().word, id.name()?, at)));
        for (kind, name, at) in named.chain(records) {
            let glob = spec.ignore.iter().find(|glob| glob.value.matches(name));
            if let Some(glob) = glob.filter(|_| !declared.external.contains(at)) {
                let message = format!("{kind} `{name}` is declared, but `ignore` matches it");
                let diagnostic = Diagnostic::error("ignored-and-declared", message, *at).label("declared here");
                let diagnostic = diagnostic.also(glob.at, "ignored here");
                self.diagnostics.push(diagnostic.hint("make the glob narrower, or remove the declaration"));
            }
        }
    }
}

fn describe(id: &ObjectId) -> String {
    match id {
        ObjectId::Vhost => "the vhost".to_owned(),
        ObjectId::Exchange(name) => format!("exchange `{name}`"),
        ObjectId::Policy(name) => format!("policy `{name}`"),
        ObjectId::Queue(name) => format!("queue `{name}`"),
        ObjectId::Binding(binding) => format!("binding `{binding}`"),
        ObjectId::Record(id) => format!("{} `{}`", id.kind.row().word, id.key.join(" ")),
    }
}
