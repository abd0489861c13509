//! Patterns of topic bindings by their words, as the broker keeps them: so that those that may cover another one, or that
//! have a key with it, are found among thousands without comparing each with each.

use super::keys::words;
use std::collections::{BTreeMap, BTreeSet};

/// The patterns, each with a number.
pub struct TopicIndex<'a> {
    /// The first is the root.
    nodes: Vec<Node<'a>>,
}

/// All patterns that begin with the same words.
#[derive(Default)]
struct Node<'a> {
    next: BTreeMap<&'a str, usize>,
    /// The last of these words is `#`, which takes any number of words more.
    is_hash: bool,
    /// The pattern that ends here.
    end: Option<usize>,
}

/// A word of a key; `None` is one that stands in no pattern.
type Word<'k> = Option<&'k str>;

impl Default for TopicIndex<'_> {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl<'a> TopicIndex<'a> {
    /// Without any.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pattern. Of two that are the same, the first stays.
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

    /// The numbers of all that cover a pattern, and of a few others: whatever takes a key with the least and another with
    /// more words than the pattern asks for.
    pub fn candidates(&self, pattern: &str) -> BTreeSet<usize> {
        let with = |hash: &[Word<'static>]| self.that_take(&key_for(pattern, hash));
        let shortest = with(&[]);
        if shortest.is_empty() || !words(pattern).any(|word| word == "#") {
            return shortest;
        }
        shortest.intersection(&with(&[None, None])).copied().collect()
    }

    /// The numbers of all that take a key that this pattern takes, too.
    pub(super) fn meeting(&self, pattern: &[&str]) -> BTreeSet<usize> {
        let ends = self.states(pattern).into_iter().filter(|(place, _)| *place == pattern.len());
        ends.filter_map(|(_, at)| self.nodes[at].end).collect()
    }

    /// How far a key that both take can have come: in this pattern, and in the index.
    fn states(&self, pattern: &[&str]) -> BTreeSet<(usize, usize)> {
        let mut seen = BTreeSet::from([(0, 0)]);
        let mut todo = vec![(0, 0)];
        while let Some((place, at)) = todo.pop() {
            let mut next: Vec<(usize, usize)> = Vec::new();
            // `#` takes no word, on either side.
            next.extend(self.child(at, "#").map(|behind| (place, behind)));
            if let Some(word) = pattern.get(place) {
                let node = &self.nodes[at];
                let after = if *word == "#" { place } else { place + 1 };
                next.extend((*word == "#").then_some((place + 1, at)));
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

    fn that_take(&self, key: &[Word<'_>]) -> BTreeSet<usize> {
        let mut places = self.closed([0]);
        for word in key {
            let next = places.iter().flat_map(|place| {
                let stays = self.nodes[*place].is_hash.then_some(*place);
                stays.into_iter().chain(self.child(*place, "*")).chain(word.and_then(|word| self.child(*place, word)))
            });
            places = self.closed(next);
        }
        places.iter().filter_map(|place| self.nodes[*place].end).collect()
    }

    /// With what is behind each `#`, which takes no word, too.
    fn closed(&self, places: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        for place in places {
            let behind = std::iter::successors(Some(place), |place| self.child(*place, "#"));
            all.extend(behind);
        }
        all
    }

    fn child(&self, place: usize, word: &str) -> Option<usize> {
        self.nodes[place].next.get(word).copied()
    }
}

/// A key that a pattern takes, with these words in the place of each `#`.
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
    use crate::rabbitmq::routing::{Certainty, Keys};

    /// All patterns of up to three words of these.
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
    fn whatever_covers_a_pattern_is_a_candidate() {
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
        // The others have to be compared in vain.
        assert!(candidates < covering + covering / 10, "{candidates} candidates for {covering}");
    }

    #[test]
    fn whatever_has_a_key_with_a_pattern_meets_it() {
        let patterns = patterns();
        let mut index = TopicIndex::new();
        patterns.iter().enumerate().for_each(|(number, pattern)| index.add(pattern, number));
        for one in &patterns {
            let found = index.meeting(&words(one).collect::<Vec<_>>());
            for (number, other) in patterns.iter().enumerate() {
                let meets = Keys::of_topic(one).match_topic(other) > Certainty::Never;
                assert_eq!(found.contains(&number), meets, "{one} and {other}");
            }
        }
    }

    #[test]
    fn the_work_for_one_pattern_does_not_grow_with_their_number() {
        for shape in ["order.N.#", "*.N.created", "N.#", "eu.*.N"] {
            let work = |patterns: usize| {
                let patterns: Vec<String> = (0..patterns).map(|n| shape.replace('N', &n.to_string())).collect();
                let mut index = TopicIndex::new();
                patterns.iter().enumerate().for_each(|(number, pattern)| index.add(pattern, number));
                let states = patterns.iter().map(|one| index.states(&words(one).collect::<Vec<_>>()).len());
                states.sum::<usize>() / patterns.len()
            };
            let (few, many) = (work(100), work(2_000));
            assert!(many <= few + 1, "{shape}: {few} places in 100, {many} in 2,000");
        }
    }
}
