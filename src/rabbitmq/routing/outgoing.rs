//! The bindings of one exchange, so that the few that may take a message are found among thousands.

use super::keys::words;
use super::{Keys, Kind, TopicIndex};
use crate::model::Binding;
use std::cell::OnceCell;

/// The bindings of which an exchange is the source.
#[derive(Default)]
pub(super) struct Outgoing<'a> {
    all: Vec<&'a Binding>,
    /// The same by their keys.
    by_key: Vec<&'a Binding>,
    /// Their keys as patterns, each with where it begins in `by_key`; and the same from their last words to their first.
    /// Made when they are asked for.
    patterns: OnceCell<TopicIndex<'a>>,
    reversed: OnceCell<TopicIndex<'a>>,
}

impl<'a> Outgoing<'a> {
    pub(super) fn add(&mut self, binding: &'a Binding) {
        self.all.push(binding);
        self.by_key.push(binding);
    }

    /// When all are there.
    pub(super) fn sort(&mut self) {
        self.by_key.sort_by_key(|binding| binding.routing_key.as_str());
    }

    pub(super) fn all(&self) -> &[&'a Binding] {
        &self.all
    }

    /// Those that an exchange of that type may take for a message with such a key: no other is taken.
    pub(super) fn candidates(&self, kind: Kind, keys: &Keys) -> Vec<&'a Binding> {
        match (kind, keys) {
            (Kind::Direct, Keys::One(key)) => self.with_key(key).to_vec(),
            // Nearly all.
            (Kind::Direct | Kind::Topic, Keys::Like(pattern)) if pattern == "#" => self.all.clone(),
            (Kind::Topic, Keys::One(pattern)) | (Kind::Direct | Kind::Topic, Keys::Like(pattern)) => {
                self.meeting(pattern)
            }
            (Kind::Default | Kind::Fanout | Kind::Headers | Kind::OneOf | Kind::Unknown, _) => self.all.clone(),
        }
    }

    /// Those that take a key that the pattern takes, too.
    fn meeting(&self, pattern: &str) -> Vec<&'a Binding> {
        let mut pattern: Vec<&str> = words(pattern).collect();
        // From the end with more words up to the first `#`, behind which anything may come.
        let open = |word: &&str| *word == "#";
        let (before, behind) = (pattern.iter().position(open), pattern.iter().rev().position(open));
        let found = if before < behind {
            pattern.reverse();
            self.reversed.get_or_init(|| self.index(|index, key, at| index.add_words(words(key).rev(), at)))
        } else {
            self.patterns.get_or_init(|| self.index(|index, key, at| index.add_words(words(key), at)))
        };
        let starts = found.meeting(&pattern).into_iter().filter_map(|start| self.by_key.get(start));
        starts.flat_map(|first| self.with_key(&first.routing_key)).copied().collect()
    }

    fn index(&self, add: impl Fn(&mut TopicIndex<'a>, &'a str, usize)) -> TopicIndex<'a> {
        let mut index = TopicIndex::new();
        // Of several with one key, the first is the one that is kept.
        self.by_key.iter().enumerate().for_each(|(at, binding)| add(&mut index, &binding.routing_key, at));
        index
    }

    fn with_key(&self, key: &str) -> &[&'a Binding] {
        let start = self.by_key.partition_point(|binding| binding.routing_key.as_str() < key);
        let end = self.by_key.partition_point(|binding| binding.routing_key.as_str() <= key);
        &self.by_key[start..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Destination;
    use crate::rabbitmq::routing::Certainty;

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
    fn whatever_is_taken_is_a_candidate() {
        let words =
            ["", "a", "b", "*", "#", "a.b", "a.*", "*.a", "#.a", "a.#", "#.a.b", "#.b.*", "a.#.b", "#.#", "a.b.a"];
        let bindings = bindings(words.map(str::to_owned));
        let outgoing = outgoing(&bindings);
        for keys in words.iter().flat_map(|word| [Keys::of_topic(word), Keys::One((*word).to_owned())]) {
            for (kind, is_taken) in
                [(Kind::Topic, Keys::match_topic as fn(&Keys, &str) -> Certainty), (Kind::Direct, Keys::are)]
            {
                let candidates = outgoing.candidates(kind, &keys);
                for binding in &bindings {
                    let is_taken = is_taken(&keys, &binding.routing_key) > Certainty::Never;
                    assert!(
                        !is_taken || candidates.contains(&binding),
                        "{keys:?} to {kind:?}: {}",
                        binding.routing_key
                    );
                }
            }
        }
    }

    /// A queue whose dead letters go back to the exchange that it is bound to thousands of times asks this of each key.
    #[test]
    fn each_of_thousands_of_keys_has_few_candidates() {
        for shape in ["order.N.#", "order.N", "*.N", "#.N", "#.order.N", "a.#.b.N.*"] {
            let bindings = bindings((0..2_000).map(|n| shape.replace('N', &n.to_string())));
            let outgoing = outgoing(&bindings);
            let keys = bindings.iter().map(|binding| Keys::of_topic(&binding.routing_key));
            let compared: usize = keys.map(|keys| outgoing.candidates(Kind::Topic, &keys).len()).sum();
            assert_eq!(compared, bindings.len(), "{shape}");
        }
    }
}
