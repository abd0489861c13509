//! Indexes the bindings of one exchange, to find the few candidates for a message among thousands of bindings.

use super::Keys;
use super::keys::words;
use super::topic_index::TopicIndex;
use crate::model::Binding;
use std::cell::OnceCell;

/// The bindings whose source is one exchange.
#[derive(Default)]
pub(super) struct Outgoing<'a> {
    all: Vec<&'a Binding>,
    /// The bindings, sorted by routing key.
    by_key: Vec<&'a Binding>,
    /// The routing keys as topic patterns, each with its first index in `by_key`. Created on first use.
    patterns: OnceCell<TopicIndex<'a>>,
    /// The index of the routing keys with their words in reverse order. Created on first use.
    reversed: OnceCell<TopicIndex<'a>>,
}

impl<'a> Outgoing<'a> {
    pub(super) fn add(&mut self, binding: &'a Binding) {
        self.all.push(binding);
        self.by_key.push(binding);
    }

    /// Sorts the bindings. Must be called after all bindings have been added.
    pub(super) fn sort(&mut self) {
        self.by_key.sort_by_key(|binding| binding.routing_key.as_str());
    }

    pub(super) fn all(&self) -> &[&'a Binding] {
        &self.all
    }

    /// Returns all bindings that can match a message with these keys at an exchange of this kind, and possibly a few
    /// bindings that cannot.
    pub(super) fn candidates(&self, kind: Kind, keys: &Keys) -> Vec<&'a Binding> {
        match (kind, keys) {
            (Kind::Direct, Keys::One(key)) => self.with_key(key).to_vec(),
            // Nearly all bindings match.
            (Kind::Direct | Kind::Topic, Keys::Like(pattern)) if pattern == "#" => self.all.clone(),
            (Kind::Topic, Keys::One(pattern)) | (Kind::Direct | Kind::Topic, Keys::Like(pattern)) => {
                self.overlapping(pattern)
            }
            (Kind::Default | Kind::Fanout | Kind::Headers | Kind::OneOf | Kind::Unknown, _) => self.all.clone(),
        }
    }

    /// Returns the bindings whose routing key, as a topic pattern, overlaps `pattern`.
    fn overlapping(&self, pattern: &str) -> Vec<&'a Binding> {
        let mut pattern: Vec<&str> = words(pattern).collect();
        // The search starts at whichever end of the pattern has more words before a `#`, because `#` matches anything.
        let is_hash = |word: &&str| *word == "#";
        let (before, after) = (pattern.iter().position(is_hash), pattern.iter().rev().position(is_hash));
        let index = if before < after {
            pattern.reverse();
            self.reversed.get_or_init(|| self.index(|index, key, at| index.add_words(words(key).rev(), at)))
        } else {
            self.patterns.get_or_init(|| self.index(|index, key, at| index.add_words(words(key), at)))
        };
        let starts = index.overlapping(&pattern).into_iter().filter_map(|start| self.by_key.get(start));
        starts.flat_map(|first| self.with_key(&first.routing_key)).copied().collect()
    }

    fn index(&self, add: impl Fn(&mut TopicIndex<'a>, &'a str, usize)) -> TopicIndex<'a> {
        let mut index = TopicIndex::new();
        // The index keeps the first of several bindings with the same key.
        self.by_key.iter().enumerate().for_each(|(at, binding)| add(&mut index, &binding.routing_key, at));
        index
    }

    fn with_key(&self, key: &str) -> &[&'a Binding] {
        let start = self.by_key.partition_point(|binding| binding.routing_key.as_str() < key);
        let end = self.by_key.partition_point(|binding| binding.routing_key.as_str() <= key);
        &self.by_key[start..end]
    }
}

/// How an exchange selects bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The default exchange has no explicit bindings: the routing key is the name of a queue.
    Default,
    /// The exchange selects the bindings whose key equals the routing key.
    Direct,
    /// The exchange selects all bindings.
    Fanout,
    /// The exchange selects the bindings whose pattern matches the routing key.
    Topic,
    /// The exchange selects the bindings whose arguments match the headers.
    Headers,
    /// The exchange selects exactly one of the bindings: `x-consistent-hash`, `x-modulus-hash`, `x-random`.
    OneOf,
    /// An unknown or unpredictable method.
    Unknown,
}

/// Returns the kind of an exchange type.
pub(super) fn of_type(word: &str) -> Kind {
    match word {
        "direct" => Kind::Direct,
        // `x-recent-history` also stores the last messages.
        "fanout" | "x-recent-history" => Kind::Fanout,
        "topic" => Kind::Topic,
        "headers" => Kind::Headers,
        "x-consistent-hash" | "x-modulus-hash" | "x-random" => Kind::OneOf,
        _ => Kind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Destination;
    use crate::rabbitmq::routing::keys::Certainty;

    fn bindings(keys: impl IntoIterator<Item = String>) -> Vec<Binding> {
        let binding = |routing_key| Binding {
            source: "orders".into(),
            destination: Destination::Queue("work".into()),
            routing_key,
            arguments: Default::default(),
        };
        keys.into_iter().map(binding).collect()
    }

    fn outgoing(bindings: &[Binding]) -> Outgoing<'_> {
        let mut outgoing = Outgoing::default();
        bindings.iter().for_each(|binding| outgoing.add(binding));
        outgoing.sort();
        outgoing
    }

    #[test]
    fn every_matching_binding_is_a_candidate() {
        let words =
            ["", "a", "b", "*", "#", "a.b", "a.*", "*.a", "#.a", "a.#", "#.a.b", "#.b.*", "a.#.b", "#.#", "a.b.a"];
        let bindings = bindings(words.map(str::to_owned));
        let outgoing = outgoing(&bindings);
        for keys in words.iter().flat_map(|word| [Keys::of_topic(word), Keys::One((*word).to_owned())]) {
            for (kind, certainty) in
                [(Kind::Topic, Keys::match_topic as fn(&Keys, &str) -> Certainty), (Kind::Direct, Keys::match_key)]
            {
                let candidates = outgoing.candidates(kind, &keys);
                for binding in &bindings {
                    let matches = certainty(&keys, &binding.routing_key) > Certainty::Never;
                    assert!(!matches || candidates.contains(&binding), "{keys:?} to {kind:?}: {}", binding.routing_key);
                }
            }
        }
    }

    /// If a queue has thousands of bindings and dead-letters to their source exchange, this search runs for each key.
    #[test]
    fn keys_among_thousands_have_few_candidates() {
        for shape in ["order.N.#", "order.N", "*.N", "#.N", "#.order.N", "a.#.b.N.*"] {
            let bindings = bindings((0..2_000).map(|n| shape.replace('N', &n.to_string())));
            let outgoing = outgoing(&bindings);
            let keys = bindings.iter().map(|binding| Keys::of_topic(&binding.routing_key));
            let compared: usize = keys.map(|keys| outgoing.candidates(Kind::Topic, &keys).len()).sum();
            assert_eq!(compared, bindings.len(), "{shape}");
        }
    }
}
