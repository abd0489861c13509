//! Indexes the bindings of one exchange, to find the few candidates for a message among thousands of bindings. Topic
//! patterns are indexed by their words, as on the broker. The index finds the patterns that cover or overlap another
//! pattern, without comparing each pair.

use super::Keys;
use super::keys::words;
use crate::model::Binding;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

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

    /// Sorts the bindings. Must be called after all bindings are added.
    pub(super) fn sort(&mut self) {
        self.by_key.sort_by_key(|binding| binding.routing_key.as_str());
    }

    pub(super) fn all(&self) -> &[&'a Binding] {
        &self.all
    }

    /// Returns all bindings that can match a message with these keys at an exchange of this kind, and possibly a few
    /// others.
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

    /// Returns the bindings whose routing key, as a topic pattern, overlaps a pattern.
    fn overlapping(&self, pattern: &str) -> Vec<&'a Binding> {
        let mut pattern: Vec<&str> = words(pattern).collect();
        // The search starts at the end that has more words before the first `#`, because `#` matches anything.
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

/// The method by which an exchange selects bindings.
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

/// An index of topic patterns, each with a number.
pub struct TopicIndex<'a> {
    /// The nodes; the first one is the root.
    nodes: Vec<Node<'a>>,
}

/// A node of the index, which represents all patterns that begin with the same words.
#[derive(Default)]
struct Node<'a> {
    next: BTreeMap<&'a str, usize>,
    /// True if the last word is `#`, which matches any number of words.
    is_hash: bool,
    /// The number of the pattern that ends at this node.
    end: Option<usize>,
}

/// A word of a key; `None` is a word that no pattern contains.
type Word<'k> = Option<&'k str>;

impl Default for TopicIndex<'_> {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl<'a> TopicIndex<'a> {
    /// Creates an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pattern. If the pattern already exists, it keeps its first number.
    pub fn add(&mut self, pattern: &'a str, number: usize) {
        self.add_words(words(pattern), number);
    }

    pub(super) fn add_words(&mut self, words: impl Iterator<Item = &'a str>, number: usize) {
        let mut at = 0;
        for word in words {
            at = self.child(at, word).unwrap_or_else(|| {
                let new = self.nodes.len();
                self.nodes[at].next.insert(word, new);
                self.nodes.push(Node { is_hash: word == "#", ..Node::default() });
                new
            });
        }
        self.nodes[at].end.get_or_insert(number);
    }

    /// Returns the numbers of all patterns that cover a pattern, and of a few other patterns. Each candidate matches
    /// two sample keys of the pattern: a key with the minimum number of words, and a longer key.
    pub fn candidates(&self, pattern: &str) -> BTreeSet<usize> {
        let with = |hash: &[Word<'static>]| self.matching(&key_for(pattern, hash));
        let shortest = with(&[]);
        if shortest.is_empty() || !words(pattern).any(|word| word == "#") {
            return shortest;
        }
        shortest.intersection(&with(&[None, None])).copied().collect()
    }

    /// Returns the numbers of all patterns that overlap a pattern: at least one key matches both.
    pub(super) fn overlapping(&self, pattern: &[&str]) -> BTreeSet<usize> {
        let ends = self.states(pattern).into_iter().filter(|(position, _)| *position == pattern.len());
        ends.filter_map(|(_, at)| self.nodes[at].end).collect()
    }

    /// Returns all pairs of a position in the pattern and a node of the index that the same key can reach.
    fn states(&self, pattern: &[&str]) -> BTreeSet<(usize, usize)> {
        let mut seen = BTreeSet::from([(0, 0)]);
        let mut todo = vec![(0, 0)];
        while let Some((position, at)) = todo.pop() {
            let mut next: Vec<(usize, usize)> = Vec::new();
            // `#` also matches zero words, in either pattern.
            next.extend(self.child(at, "#").map(|child| (position, child)));
            if let Some(word) = pattern.get(position) {
                let node = &self.nodes[at];
                let after = if *word == "#" { position } else { position + 1 };
                next.extend((*word == "#").then_some((position + 1, at)));
                next.extend(node.is_hash.then_some((after, at)));
                if matches!(*word, "*" | "#") {
                    next.extend(node.next.iter().filter(|(word, _)| **word != "#").map(|(_, child)| (after, *child)));
                } else {
                    next.extend(
                        [*word, "*"].iter().filter_map(|word| self.child(at, word)).map(|child| (after, child)),
                    );
                }
            }
            todo.extend(next.into_iter().filter(|state| seen.insert(*state)));
        }
        seen
    }

    /// Returns the numbers of the patterns that match a key.
    fn matching(&self, key: &[Word<'_>]) -> BTreeSet<usize> {
        let mut nodes = self.close([0]);
        for word in key {
            let next = nodes.iter().flat_map(|node| {
                let same = self.nodes[*node].is_hash.then_some(*node);
                same.into_iter().chain(self.child(*node, "*")).chain(word.and_then(|word| self.child(*node, word)))
            });
            nodes = self.close(next);
        }
        nodes.iter().filter_map(|node| self.nodes[*node].end).collect()
    }

    /// Adds the node after each `#`, because `#` also matches zero words.
    fn close(&self, nodes: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        for node in nodes {
            all.extend(std::iter::successors(Some(node), |node| self.child(*node, "#")));
        }
        all
    }

    fn child(&self, node: usize, word: &str) -> Option<usize> {
        self.nodes[node].next.get(word).copied()
    }
}

/// Returns a key that matches a pattern. The words in `hash` replace each `#`.
fn key_for<'k>(pattern: &'k str, hash: &[Word<'k>]) -> Vec<Word<'k>> {
    let mut key = Vec::new();
    for word in words(pattern) {
        match word {
            "#" => key.extend_from_slice(hash),
            "*" => key.push(None),
            literal => key.push(Some(literal)),
        }
    }
    key
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

    /// If a queue with thousands of bindings dead-letters to the exchange of these bindings, this search runs for each
    /// key.
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

#[cfg(test)]
mod index_tests {
    use super::*;
    use crate::rabbitmq::routing::Keys;
    use crate::rabbitmq::routing::keys::Certainty;

    /// Returns all patterns of up to three words from a small set of words.
    fn patterns() -> Vec<String> {
        let words = ["a", "b", "*", "#"];
        let longer = |all: &[String]| -> Vec<String> {
            all.iter().flat_map(|start| words.map(|word| format!("{start}.{word}"))).collect()
        };
        let one: Vec<String> = words.map(str::to_owned).to_vec();
        let two = longer(&one);
        [vec![String::new()], one.clone(), two.clone(), longer(&two)].concat()
    }

    #[test]
    fn every_covering_pattern_is_a_candidate() {
        let patterns = patterns();
        let mut index = TopicIndex::new();
        patterns.iter().enumerate().for_each(|(number, pattern)| index.add(pattern, number));
        let (mut covering, mut candidates) = (0, 0);
        for narrow in &patterns {
            let found = index.candidates(narrow);
            let covers = |wide: &String| Keys::of_topic(narrow).match_topic(wide) == Certainty::Always;
            for (number, wide) in patterns.iter().enumerate().filter(|(_, wide)| covers(wide)) {
                assert!(found.contains(&number), "{wide} covers {narrow}");
                covering += 1;
            }
            candidates += found.len();
        }
        // Each additional candidate costs an unnecessary comparison.
        assert!(candidates < covering + covering / 10, "{candidates} candidates for {covering}");
    }

    #[test]
    fn overlapping_patterns_share_a_key() {
        let patterns = patterns();
        let mut index = TopicIndex::new();
        patterns.iter().enumerate().for_each(|(number, pattern)| index.add(pattern, number));
        for one in &patterns {
            let found = index.overlapping(&words(one).collect::<Vec<_>>());
            for (number, other) in patterns.iter().enumerate() {
                let overlaps = Keys::of_topic(one).match_topic(other) > Certainty::Never;
                assert_eq!(found.contains(&number), overlaps, "{one} and {other}");
            }
        }
    }

    #[test]
    fn search_time_does_not_depend_on_the_number_of_patterns() {
        for shape in ["order.N.#", "*.N.created", "N.#", "eu.*.N"] {
            let work = |patterns: usize| {
                let patterns: Vec<String> = (0..patterns).map(|n| shape.replace('N', &n.to_string())).collect();
                let mut index = TopicIndex::new();
                patterns.iter().enumerate().for_each(|(number, pattern)| index.add(pattern, number));
                let states = patterns.iter().map(|one| index.states(&words(one).collect::<Vec<_>>()).len());
                states.sum::<usize>() / patterns.len()
            };
            let (few, many) = (work(100), work(2_000));
            assert!(many <= few + 1, "{shape}: {few} states in 100, {many} in 2,000");
        }
    }
}
