//! Patterns of topic bindings by their words, as the broker keeps them: so that those that may cover another one are found
//! among thousands without comparing each with each.

use std::collections::{BTreeMap, BTreeSet};

/// The patterns, each with a number.
pub(super) struct TopicIndex<'a> {
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

impl<'a> TopicIndex<'a> {
    pub(super) fn new() -> Self {
        Self { nodes: vec![Node::default()] }
    }

    /// Adds a pattern. Of two that are the same, the first stays.
    pub(super) fn add(&mut self, pattern: &'a str, number: usize) {
        let mut at = 0;
        for word in words(pattern) {
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
    pub(super) fn candidates(&self, pattern: &str) -> BTreeSet<usize> {
        let with = |hash: &[Word<'static>]| self.that_take(&key_for(pattern, hash));
        let shortest = with(&[]);
        if shortest.is_empty() || !words(pattern).any(|word| word == "#") {
            return shortest;
        }
        shortest.intersection(&with(&[None, None])).copied().collect()
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

/// No word in the empty key, as the broker splits it.
fn words(key: &str) -> impl Iterator<Item = &str> {
    key.split('.').filter(move |_| !key.is_empty())
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
    use crate::behaviour::routing::{Certainty, Keys};

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
}
