//! Indexes topic patterns by their words, as the broker does. The index finds the patterns that cover or overlap a
//! given pattern without comparing each pair of patterns.

use super::keys::words;
use std::collections::{BTreeMap, BTreeSet};

/// An index of topic patterns, each with a number.
pub struct TopicIndex<'a> {
    /// The nodes. The first node is the root.
    nodes: Vec<Node<'a>>,
}

/// A node of the index, which represents all patterns that begin with the same words.
#[derive(Default)]
struct Node<'a> {
    next: BTreeMap<&'a str, usize>,
    /// True if the last of these words is `#`, which matches any number of words.
    is_hash: bool,
    /// The number of the pattern that ends at this node.
    end: Option<usize>,
}

/// A word of a key. `None` represents a word that no pattern contains.
pub(super) type Word<'k> = Option<&'k str>;

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

    /// Returns the numbers of all patterns that cover a pattern, and possibly of a few patterns that do not. Each
    /// candidate matches two sample keys of the pattern: a key with the minimum number of words, and a longer key.
    pub fn candidates(&self, pattern: &str) -> BTreeSet<usize> {
        let with = |hash: &[Word<'static>]| self.matching(&key_for(pattern, hash));
        let shortest = with(&[]);
        if shortest.is_empty() || !words(pattern).any(|word| word == "#") {
            return shortest;
        }
        shortest.intersection(&with(&[None, None])).copied().collect()
    }

    /// Returns the numbers of all patterns that overlap a pattern: at least one key matches both patterns.
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
            nodes = nodes.iter().flat_map(|node| self.after(*node, *word)).collect();
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

    /// Returns the words that follow a node, without wildcards.
    pub(super) fn literals(&self, node: usize) -> impl Iterator<Item = &'a str> {
        self.nodes[node].next.keys().copied().filter(|word| !matches!(*word, "*" | "#"))
    }

    /// Returns the nodes that are reachable from a node through a given word.
    pub(super) fn after(&self, node: usize, word: Word<'_>) -> BTreeSet<usize> {
        let same = self.nodes[node].is_hash.then_some(node);
        let next = same.into_iter().chain(self.child(node, "*"));
        self.close(next.chain(word.and_then(|word| self.child(node, word))))
    }

    /// Returns the nodes before the first word.
    pub(super) fn start(&self) -> BTreeSet<usize> {
        self.close([0])
    }

    /// Returns true if a pattern ends at a node.
    pub(super) fn is_end(&self, node: usize) -> bool {
        self.nodes[node].end.is_some()
    }

    fn child(&self, node: usize, word: &str) -> Option<usize> {
        self.nodes[node].next.get(word).copied()
    }
}

/// Returns a key that matches a pattern. Replaces each `#` with the words in `hash`.
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
