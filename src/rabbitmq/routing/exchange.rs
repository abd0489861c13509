//! What one exchange does with a message, by its type.

use super::{Certainty, Keys, Message, Routing, Unclear};
use crate::model::{ArgumentValue, Binding, Destination, ExchangeName, ObjectId, QueueName};
use crate::rabbitmq::Governed;
use crate::rabbitmq::effective::effective_alternate;
use crate::rabbitmq::predeclared_type;

/// How an exchange chooses among its bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The default exchange: the key is a queue's name.
    Default,
    /// The key is the binding's.
    Direct,
    /// All of them.
    Fanout,
    /// The key fits the binding's pattern.
    Topic,
    /// The headers are those of the binding's arguments.
    Headers,
    /// One of its bindings, always: `x-consistent-hash`, `x-modulus-hash`, `x-random`.
    OneOf,
    /// Not known, or nothing that could be told beforehand.
    Unknown,
}

/// What one exchange does with a message.
#[derive(Debug, Default)]
pub(super) struct Hop {
    /// Where it sends it, by its own bindings.
    pub(super) own: Vec<(Destination, Certainty)>,
    /// Where it sends it when it has no other place; several where it is not known which.
    pub(super) alternates: Vec<(ExchangeName, Certainty)>,
    /// Whether one of its own is surely taken, although it is not known which.
    pub(super) takes_one: bool,
    /// Why it cannot be told.
    pub(super) unclear: Option<Unclear>,
    /// There may be bindings that are not known.
    pub(super) is_open: bool,
}

impl Hop {
    /// Whether it is sent anywhere, by its own bindings.
    pub(super) fn is_sent(&self) -> Certainty {
        if self.takes_one {
            return Certainty::Always;
        }
        let sent = self.own.iter().map(|(_, certainty)| *certainty).max().unwrap_or(Certainty::Never);
        if self.is_open { sent.max(Certainty::Perhaps) } else { sent }
    }
}

fn of_type(word: &str) -> Kind {
    match word {
        "direct" => Kind::Direct,
        // It keeps the last messages beside.
        "fanout" | "x-recent-history" => Kind::Fanout,
        "topic" => Kind::Topic,
        "headers" => Kind::Headers,
        "x-consistent-hash" | "x-modulus-hash" | "x-random" => Kind::OneOf,
        _ => Kind::Unknown,
    }
}

impl<'a> Routing<'a> {
    /// The type of an exchange; `None` where there is no such exchange.
    pub fn kind(&self, name: &ExchangeName) -> Option<Kind> {
        if let Some(exchange) = self.topology.exchanges.get(name) {
            // It delays, and then it does what the type in its argument does.
            let delayed = exchange.arguments.get("x-delayed-type").filter(|_| exchange.kind == "x-delayed-message");
            return Some(of_type(delayed.and_then(ArgumentValue::as_text).unwrap_or(&exchange.kind)));
        }
        let is_external = self.external.contains(&ObjectId::Exchange(name.clone()));
        if name.as_str().is_empty() {
            return Some(Kind::Default);
        }
        predeclared_type(name).map(of_type).or(is_external.then_some(Kind::Unknown))
    }

    /// Whether others may have bound it: whatever the topology does not declare.
    fn is_open(&self, name: &ExchangeName) -> bool {
        !self.topology.exchanges.contains_key(name)
    }

    /// What an exchange does with a message; `None` where there is no such exchange.
    pub(super) fn hop(&self, name: &ExchangeName, message: &Message) -> Option<Hop> {
        let kind = self.kind(name)?;
        if kind == Kind::Default {
            return Some(self.default_exchange(&message.keys));
        }
        let mut own: Vec<_> = self
            .candidates(name, kind, &message.keys)
            .into_iter()
            .map(|binding| (binding.destination.clone(), self.is_taken(kind, binding, message)))
            .filter(|(_, certainty)| *certainty > Certainty::Never)
            .collect();
        let unclear = own.iter().any(|(_, certainty)| *certainty == Certainty::Perhaps).then(|| match kind {
            Kind::Default | Kind::Direct | Kind::Fanout | Kind::Topic => Unclear::Key(name.clone()),
            Kind::Headers => Unclear::Headers(name.clone()),
            Kind::OneOf | Kind::Unknown => Unclear::Type(name.clone()),
        });
        let takes_one = kind == Kind::OneOf && !own.is_empty();
        let others = self.bound_by_others.get(name).into_iter().flatten();
        own.extend(others.map(|queue| (Destination::Queue((*queue).clone()), Certainty::Perhaps)));
        let is_open = self.is_open(name) || kind == Kind::Unknown || self.bound_by_others.contains_key(name);
        let unclear = unclear.or_else(|| is_open.then(|| Unclear::Foreign(name.clone())));
        Some(Hop { own, alternates: self.alternates(name), takes_one, unclear, is_open })
    }

    fn is_taken(&self, kind: Kind, binding: &Binding, message: &Message) -> Certainty {
        match kind {
            Kind::Default => Certainty::Never,
            Kind::Direct => message.keys.are(&binding.routing_key),
            Kind::Fanout => Certainty::Always,
            Kind::Topic => message.keys.match_topic(&binding.routing_key),
            Kind::Headers => message.headers.matches(&binding.arguments, self.profile.version),
            Kind::OneOf if self.bindings_of(&binding.source).len() == 1 => Certainty::Always,
            Kind::OneOf | Kind::Unknown => Certainty::Perhaps,
        }
    }

    /// The key is the name of the queue. That there is no such queue is only said of one name.
    fn default_exchange(&self, keys: &Keys) -> Hop {
        let to = |name: &QueueName| Destination::Queue(name.clone());
        match keys {
            Keys::One(key) => {
                let name = QueueName::new(key.as_str());
                let own = if self.has_queue(&name) { vec![(to(&name), Certainty::Always)] } else { Vec::new() };
                Hop { own, ..Hop::default() }
            }
            Keys::Like(_) => {
                let fitting = self.topology.queues.keys().filter(|name| keys.are(name.as_str()) > Certainty::Never);
                let own = fitting.map(|name| (to(name), Certainty::Perhaps)).collect();
                let unclear = Some(Unclear::Key(ExchangeName::new("")));
                Hop { own, unclear, is_open: true, ..Hop::default() }
            }
        }
    }

    /// Its alternate exchange, as far as it is there. The default exchange has no bindings, so it is none that takes
    /// anything (measured on all four versions).
    pub fn alternates(&self, name: &ExchangeName) -> Vec<(ExchangeName, Certainty)> {
        let Some(exchange) = self.topology.exchanges.get(name) else { return Vec::new() };
        let governing = self.policies.governing(name.as_str(), Governed::Exchange);
        let mut found: Vec<ExchangeName> = Vec::new();
        let mut may_be_none = false;
        for policy in governing.possible() {
            let alternate = effective_alternate(exchange, *policy);
            match alternate.as_ref().and_then(|it| it.value.as_text()).filter(|it| !it.is_empty()) {
                Some(alternate) => found.push(ExchangeName::new(alternate)),
                None => may_be_none = true,
            }
        }
        found.sort();
        found.dedup();
        let is_clear = found.len() == 1 && !may_be_none;
        let certainty = if is_clear { Certainty::Always } else { Certainty::Perhaps };
        let there = found.into_iter().filter(|name| self.kind(name).is_some());
        there.map(|name| (name, certainty)).collect()
    }
}
