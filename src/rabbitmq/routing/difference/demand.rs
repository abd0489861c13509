//! Finds a message that matches one binding of each wanted bundle and no unwanted binding.

use super::budget::{Budget, TooComplex};
use super::headers::find_headers;
use super::walk::shortest_key;
use crate::model::{Arguments, Binding, BrokerVersion};
use crate::rabbitmq::routing::keys::words;
use crate::rabbitmq::routing::{Certainty, Keys, Kind, Message, TopicIndex};
use std::collections::BTreeSet;

/// Bindings of one exchange, with the kind of the exchange.
#[derive(Clone, Debug)]
pub(super) struct Bundle<'a> {
    pub(super) kind: Kind,
    pub(super) bindings: Vec<&'a Binding>,
}

/// The requirements for a message.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand<'a> {
    /// At least one binding of each bundle must match the message.
    pub(super) wanted: Vec<Bundle<'a>>,
    /// No binding of these bundles may match the message.
    pub(super) unwanted: Vec<Bundle<'a>>,
    /// True if each `#` of a wanted pattern must match at least one word. Longer keys are better examples: for
    /// `order.#`, `order.x` rather than `order`.
    pub(super) has_longer_keys: bool,
}

/// A message with a known routing key and known headers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExampleMessage {
    /// The routing key.
    pub routing_key: String,
    /// The headers.
    pub headers: Arguments,
}

impl ExampleMessage {
    /// Converts the example to a message for the simulation.
    pub fn message(&self) -> Message {
        Message::published(&self.routing_key, &self.headers)
    }
}

impl Demand<'_> {
    /// Returns a message with the shortest possible routing key and only the headers that the chosen bindings require;
    /// `None` if no message meets the demand.
    pub(super) fn message(
        &self,
        version: BrokerVersion,
        budget: &Budget,
    ) -> Result<Option<ExampleMessage>, TooComplex> {
        let is_unavoidable = |it: &Bundle<'_>| matches!(it.kind, Kind::Fanout | Kind::OneOf) && !it.bindings.is_empty();
        if self.unwanted.iter().any(is_unavoidable) || self.wanted.iter().any(|it| it.bindings.is_empty()) {
            return Ok(None);
        }
        let Some(routing_key) = self.routing_key(budget)? else { return Ok(None) };
        let headers = find_headers(
            &headers_bindings(&self.wanted),
            &headers_bindings(&self.unwanted).concat(),
            (version, budget),
        )?;
        Ok(headers.map(|headers| ExampleMessage { routing_key, headers }))
    }

    fn routing_key(&self, budget: &Budget) -> Result<Option<String>, TooComplex> {
        if let Some(direct) = self.wanted.iter().find(|it| it.kind == Kind::Direct) {
            let mut keys: Vec<&str> = direct.bindings.iter().map(|it| it.routing_key.as_str()).collect();
            keys.sort_by_key(|key| (key.is_empty(), key.len(), *key));
            let compared: usize = self.wanted.iter().chain(&self.unwanted).map(|bundle| bundle.bindings.len()).sum();
            for key in keys {
                budget.take(1 + compared / 8)?;
                if self.accepts(key) {
                    return Ok(Some(key.to_owned()));
                }
            }
            return Ok(None);
        }
        let is_topic = |bundle: &&Bundle<'_>| bundle.kind == Kind::Topic;
        // Exchanges on the same path often have the same patterns.
        let patterns: BTreeSet<BTreeSet<&str>> = (self.wanted.iter().filter(is_topic))
            .map(|bundle| bundle.bindings.iter().map(|binding| binding.routing_key.as_str()).collect())
            .collect();
        let wanted_index: Vec<TopicIndex<'_>> =
            patterns.iter().map(|patterns| index_patterns(patterns.iter().copied(), self.has_longer_keys)).collect();
        let unwanted = self.unwanted.iter().filter(is_topic).flat_map(|it| it.bindings.iter().copied());
        let unwanted: BTreeSet<&str> = unwanted.map(|binding| binding.routing_key.as_str()).collect();
        budget.take(unwanted.len() / 8)?;
        let mut unwanted_index = index_patterns(unwanted.into_iter(), false);
        // The search never tries a key with a wildcard word, so direct bindings with such keys are irrelevant.
        let direct = self.unwanted.iter().filter(|it| it.kind == Kind::Direct).flat_map(|it| &it.bindings);
        for binding in direct.filter(|it| !Keys::is_pattern(&it.routing_key)) {
            unwanted_index.add(&binding.routing_key, 0);
        }
        let all = self.wanted.iter().chain(&self.unwanted).flat_map(|it| &it.bindings);
        let used: BTreeSet<&str> = all.flat_map(|it| words(&it.routing_key)).collect();
        shortest_key(&wanted_index, &unwanted_index, &|word| used.contains(word), budget)
    }

    /// Returns true if a key meets the demand, ignoring headers.
    fn accepts(&self, key: &str) -> bool {
        let keys = Keys::One(key.to_owned());
        let matches = |bundle: &Bundle<'_>| match bundle.kind {
            Kind::Direct => bundle.bindings.iter().any(|it| it.routing_key == key),
            Kind::Topic => bundle.bindings.iter().any(|it| keys.match_topic(&it.routing_key) == Certainty::Always),
            Kind::Default | Kind::Fanout | Kind::Headers | Kind::OneOf | Kind::Unknown => false,
        };
        let has_key = |bundle: &&Bundle<'_>| matches!(bundle.kind, Kind::Direct | Kind::Topic);
        self.wanted.iter().filter(has_key).all(matches) && !self.unwanted.iter().filter(has_key).any(matches)
    }
}

fn index_patterns<'a>(patterns: impl Iterator<Item = &'a str>, is_longer: bool) -> TopicIndex<'a> {
    let mut index = TopicIndex::new();
    let longer = |word: &'a str| [Some("*").filter(|_| is_longer && word == "#"), Some(word)].into_iter().flatten();
    for (number, pattern) in patterns.enumerate() {
        index.add_words(words(pattern).flat_map(longer), number);
    }
    index
}

fn headers_bindings<'a>(bundles: &[Bundle<'a>]) -> Vec<Vec<&'a Binding>> {
    bundles.iter().filter(|it| it.kind == Kind::Headers).map(|it| it.bindings.clone()).collect()
}
