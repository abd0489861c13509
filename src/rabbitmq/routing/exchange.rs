//! Routes a message through one exchange, according to the exchange type.

use super::keys::Certainty;
use super::message::Message;
use super::outgoing::{Kind, of_type};
use super::{Keys, Routing};
use crate::model::{ArgumentValue, Arguments, Binding, Destination, Exchange, ExchangeName, ObjectId, QueueName};
use crate::rabbitmq::effective::effective_alternate;
use crate::rabbitmq::governing::Governed;
use crate::rabbitmq::profile::predeclared_type;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// The destinations of a message at one exchange.
#[derive(Debug, Default)]
pub(super) struct Hop {
    /// The destinations of the bindings that match the message, or that may match it.
    pub(super) destinations: Vec<(Destination, Certainty)>,
    /// The alternate exchange; several if it is uncertain which policy sets it.
    pub(super) alternates: Vec<(ExchangeName, Certainty)>,
    /// True if the exchange routes the message to exactly one of the destinations, but topo cannot predict which one.
    pub(super) routes_to_one: bool,
    /// The reason why the destinations are uncertain; `None` if they are certain.
    pub(super) unclear: Option<Unclear>,
    /// True if the exchange may have bindings that the topology does not contain.
    pub(super) is_open: bool,
}

impl Hop {
    /// Returns the certainty that at least one binding of the exchange matches the message.
    pub(super) fn match_certainty(&self) -> Certainty {
        if self.routes_to_one {
            return Certainty::Always;
        }
        let sent = self.destinations.iter().map(|(_, certainty)| *certainty).max().unwrap_or(Certainty::Never);
        if self.is_open { sent.max(Certainty::Perhaps) } else { sent }
    }
}

impl<'a> Routing<'a> {
    /// Returns the kind of an exchange; `None` if the exchange does not exist.
    pub fn kind(&self, name: &ExchangeName) -> Option<Kind> {
        if let Some(exchange) = self.topology.exchanges.get(name) {
            // An `x-delayed-message` exchange delays the message, and then routes it like the exchange type in its
            // argument.
            let delayed = exchange.arguments.get("x-delayed-type").filter(|_| exchange.kind == "x-delayed-message");
            return Some(of_type(delayed.and_then(ArgumentValue::as_text).unwrap_or(&exchange.kind)));
        }
        let is_external = self.external.contains(&ObjectId::Exchange(name.clone()));
        if name.as_str().is_empty() {
            return Some(Kind::Default);
        }
        predeclared_type(name).map(of_type).or(is_external.then_some(Kind::Unknown))
    }

    /// Returns true if the exchange may have bindings that the topology does not contain, because the topology does not
    /// declare the exchange and was not read from a broker.
    pub(super) fn is_open(&self, name: &ExchangeName) -> bool {
        !self.is_complete && !self.topology.exchanges.contains_key(name)
    }

    /// Returns the destinations of a message at an exchange; `None` if the exchange does not exist.
    pub(super) fn hop(&self, name: &ExchangeName, message: &Message) -> Option<Hop> {
        let kind = self.kind(name)?;
        if kind == Kind::Default {
            return Some(self.default_exchange(message));
        }
        let mut destinations: Vec<_> = self
            .candidates_for(name, kind, message)
            .into_iter()
            .map(|binding| (binding.destination.clone(), self.matches(kind, binding, message)))
            .filter(|(_, certainty)| *certainty > Certainty::Never)
            .collect();
        let unclear = destinations.iter().any(|(_, certainty)| *certainty == Certainty::Perhaps).then(|| match kind {
            Kind::Default | Kind::Direct | Kind::Fanout | Kind::Topic => Unclear::Key(name.clone()),
            Kind::Headers => Unclear::Headers(name.clone()),
            Kind::OneOf | Kind::Unknown => Unclear::Type(name.clone()),
        });
        let routes_to_one = kind == Kind::OneOf && !destinations.is_empty();
        let external = self.external_bindings.get(name).into_iter().flatten();
        destinations.extend(external.map(|queue| (Destination::Queue((*queue).clone()), Certainty::Perhaps)));
        let is_open = self.is_open(name) || kind == Kind::Unknown || self.external_bindings.contains_key(name);
        let unclear = unclear.or_else(|| is_open.then(|| Unclear::UnknownBindings(name.clone())));
        Some(Hop { destinations, alternates: self.alternates(name), routes_to_one, unclear, is_open })
    }

    /// Returns the certainty that a binding matches a message.
    pub(super) fn matches(&self, kind: Kind, binding: &Binding, message: &Message) -> Certainty {
        match kind {
            Kind::Default => Certainty::Never,
            Kind::Direct => message.match_any(|keys| keys.match_key(&binding.routing_key)),
            Kind::Fanout => Certainty::Always,
            Kind::Topic => message.match_any(|keys| keys.match_topic(&binding.routing_key)),
            Kind::Headers => message.headers.matches(&binding.arguments, self.profile.version),
            Kind::OneOf if self.bindings_of(&binding.source).len() == 1 => Certainty::Always,
            Kind::OneOf | Kind::Unknown => Certainty::Perhaps,
        }
    }

    /// Returns the destinations of a message at the default exchange, where each routing key is the name of a queue. If
    /// the main routing key is unknown, the destinations are uncertain.
    fn default_exchange(&self, message: &Message) -> Hop {
        let to = |name: &QueueName| Destination::Queue(name.clone());
        let keys = &message.keys;
        let main = match keys {
            Keys::One(key) => Some(key.as_str()),
            Keys::Like(_) => None,
        };
        let named: BTreeSet<QueueName> = main.into_iter().chain(message.more_keys.keys()).map(QueueName::new).collect();
        let certain = named.iter().filter(|name| self.has_queue(name)).map(|name| (to(name), Certainty::Always));
        let destinations = certain.collect();
        if main.is_some() {
            return Hop { destinations, ..Hop::default() };
        }
        let possible = self.topology.queues.keys().filter(|name| !named.contains(*name));
        let possible = possible.filter(|name| keys.match_key(name.as_str()) > Certainty::Never);
        let possible = possible.map(|name| (to(name), Certainty::Perhaps));
        let destinations = [destinations, possible.collect::<Vec<_>>()].concat();
        let unclear = Some(Unclear::Key(ExchangeName::new("")));
        Hop { destinations, unclear, is_open: true, ..Hop::default() }
    }

    /// Returns the possible alternate exchanges that exist. Omits the default exchange, which routes nothing as an
    /// alternate exchange, because it has no bindings (measured on all versions).
    pub fn alternates(&self, name: &ExchangeName) -> Vec<(ExchangeName, Certainty)> {
        let plain = || self.is_complete.then(|| predeclared_type(name).map(predeclared)).flatten().map(Cow::Owned);
        let declared = self.topology.exchanges.get(name).map(Cow::Borrowed);
        let Some(exchange) = declared.or_else(plain) else { return Vec::new() };
        let governing = self.policies.governing(name.as_str(), Governed::Exchange);
        let mut found: Vec<ExchangeName> = Vec::new();
        let mut may_be_none = false;
        for policy in governing.possible() {
            let alternate = effective_alternate(&exchange, *policy);
            match alternate.as_ref().and_then(|it| it.value.as_text()).filter(|it| !it.is_empty()) {
                Some(alternate) => found.push(ExchangeName::new(alternate)),
                None => may_be_none = true,
            }
        }
        found.sort();
        found.dedup();
        let is_certain = found.len() == 1 && !may_be_none;
        let certainty = if is_certain { Certainty::Always } else { Certainty::Perhaps };
        let existing = found.into_iter().filter(|name| self.kind(name).is_some());
        existing.map(|name| (name, certainty)).collect()
    }
}

/// Returns a predeclared exchange of this type. Policies can govern predeclared exchanges.
fn predeclared(kind: &str) -> Exchange {
    Exchange { kind: kind.to_owned(), durable: true, auto_delete: false, internal: false, arguments: Arguments::new() }
}

/// The reason why a route is uncertain, with the exchange that causes the uncertainty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unclear {
    /// The route depends on the routing key.
    Key(ExchangeName),
    /// The route depends on the headers.
    Headers(ExchangeName),
    /// The type of the exchange is unknown, or a plugin provides it.
    Type(ExchangeName),
    /// The exchange may have bindings that the topology does not contain.
    UnknownBindings(ExchangeName),
    /// It is unknown which policy sets the alternate exchange.
    Policy(ExchangeName),
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(exchange) => write!(f, "the route depends on the routing key at exchange `{exchange}`"),
            Self::Headers(exchange) => write!(f, "the route depends on the headers at exchange `{exchange}`"),
            Self::Type(exchange) => write!(f, "the type of exchange `{exchange}` is unknown or provided by a plugin"),
            Self::UnknownBindings(exchange) => write!(f, "exchange `{exchange}` may have unknown bindings"),
            Self::Policy(exchange) => write!(f, "the policy that governs exchange `{exchange}` is uncertain"),
        }
    }
}
