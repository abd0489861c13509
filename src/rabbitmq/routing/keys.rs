//! Defines sets of possible routing keys, and determines the certainty that direct and topic bindings match them.

use std::collections::BTreeSet;

/// The maximum number of states in a comparison of two patterns. If a comparison has more states, its result is
/// uncertain.
const MAX_STATES: usize = 4000;

/// The routing keys that a message can have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keys {
    /// Exactly this key.
    One(String),
    /// Any key that matches this topic pattern. Keys that contain the word `*` or `#` are excluded, because publishers
    /// use such keys only by mistake.
    Like(String),
}

impl Keys {
    /// Returns the set of all keys.
    pub fn any() -> Self {
        Self::Like("#".to_owned())
    }

    /// Returns the keys that match the binding key of a topic exchange.
    pub fn of_topic(pattern: &str) -> Self {
        if Self::is_pattern(pattern) { Self::Like(pattern.to_owned()) } else { Self::One(pattern.to_owned()) }
    }

    /// Returns true if a topic exchange treats a binding key as a pattern with wildcards.
    pub fn is_pattern(key: &str) -> bool {
        words(key).any(is_wildcard)
    }

    /// Returns the certainty that the keys equal a binding key.
    pub fn match_key(&self, key: &str) -> Certainty {
        match self {
            Self::One(only) => Certainty::of(only == key),
            Self::Like(_) if words(key).any(is_wildcard) => Certainty::Never,
            Self::Like(pattern) if matches(pattern, key) => Certainty::Perhaps,
            Self::Like(_) => Certainty::Never,
        }
    }

    /// Returns the certainty that the keys match a topic pattern.
    pub fn match_topic(&self, pattern: &str) -> Certainty {
        match self {
            // Shortcuts for the two most frequent cases.
            Self::One(_) | Self::Like(_) if pattern == "#" => Certainty::Always,
            Self::Like(keys) if keys == "#" && words(pattern).any(|word| word != "#") => Certainty::Perhaps,
            Self::One(key) => Certainty::of(matches(pattern, key)),
            Self::Like(keys) => compare(keys, pattern),
        }
    }
}

/// Splits a key into words, as the broker does (`rabbit_exchange_type_topic:split_topic_key`). The empty key has no
/// words.
pub(super) fn words(key: &str) -> impl DoubleEndedIterator<Item = &str> {
    key.split('.').filter(move |_| !key.is_empty())
}

fn is_wildcard(word: &str) -> bool {
    word == "*" || word == "#"
}

/// The automaton of a topic pattern. A state is a set of positions in the pattern.
struct Automaton<'a> {
    pattern: Vec<&'a str>,
}

impl<'a> Automaton<'a> {
    fn new(pattern: &'a str) -> Self {
        Self { pattern: words(pattern).collect() }
    }

    /// Adds the position after each `#`, because `#` also matches zero words.
    fn close(&self, positions: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        for mut position in positions {
            all.insert(position);
            while self.pattern.get(position) == Some(&"#") {
                position += 1;
                all.insert(position);
            }
        }
        all
    }

    fn start(&self) -> BTreeSet<usize> {
        self.close([0])
    }

    /// Returns the state after one more word. `None` represents a word that no pattern contains.
    fn after(&self, positions: &BTreeSet<usize>, word: Option<&str>) -> BTreeSet<usize> {
        let next = positions.iter().filter_map(|position| match *self.pattern.get(*position)? {
            "#" => Some(*position),
            "*" => Some(position + 1),
            literal => (Some(literal) == word).then_some(position + 1),
        });
        self.close(next)
    }

    fn is_at_end(&self, positions: &BTreeSet<usize>) -> bool {
        positions.contains(&self.pattern.len())
    }
}

/// Returns true if a key matches a pattern.
fn matches(pattern: &str, key: &str) -> bool {
    let automaton = Automaton::new(pattern);
    let end = words(key).fold(automaton.start(), |positions, word| automaton.after(&positions, Some(word)));
    automaton.is_at_end(&end)
}

/// Returns true if two patterns have different literal words at a position before the first `#`. Most pairs of patterns
/// differ in this way and require no further comparison.
fn begin_differently<'k>(one: impl Iterator<Item = &'k str>, other: impl Iterator<Item = &'k str>) -> bool {
    let mut both = one.zip(other).take_while(|(one, other)| *one != "#" && *other != "#");
    both.any(|(one, other)| one != other && one != "*" && other != "*")
}

/// Determines whether `pattern` matches all, some or none of the keys that match the pattern `keys`. Both automata
/// process these keys in parallel. A single word represents all words that neither pattern contains.
fn compare(keys: &str, pattern: &str) -> Certainty {
    if begin_differently(words(keys), words(pattern)) || begin_differently(words(keys).rev(), words(pattern).rev()) {
        return Certainty::Never;
    }
    let (keys, pattern) = (Automaton::new(keys), Automaton::new(pattern));
    let literals = keys.pattern.iter().chain(&pattern.pattern).copied().filter(|word| !is_wildcard(word));
    let literals: BTreeSet<&str> = literals.collect();
    let alphabet: Vec<Option<&str>> = literals.into_iter().map(Some).chain([None]).collect();
    let mut todo = vec![(keys.start(), pattern.start())];
    let mut seen: BTreeSet<_> = todo.iter().cloned().collect();
    let (mut any_match, mut any_mismatch) = (false, false);
    while let Some((of_keys, of_pattern)) = todo.pop() {
        if keys.is_at_end(&of_keys) {
            let is_match = pattern.is_at_end(&of_pattern);
            any_match |= is_match;
            any_mismatch |= !is_match;
        }
        if seen.len() > MAX_STATES || any_match && any_mismatch {
            return Certainty::Perhaps;
        }
        for word in &alphabet {
            let next = (keys.after(&of_keys, *word), pattern.after(&of_pattern, *word));
            if !next.0.is_empty() && seen.insert(next.clone()) {
                todo.push(next);
            }
        }
    }
    match (any_match, any_mismatch) {
        (true, false) => Certainty::Always,
        (false, _) => Certainty::Never,
        (true, true) => Certainty::Perhaps,
    }
}

/// The certainty that a statement is true for a set of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The statement is true for no message.
    Never,
    /// The statement is true for some messages, or it is unknown for which messages the statement is true.
    Perhaps,
    /// The statement is true for all messages.
    Always,
}

impl Certainty {
    pub(super) fn of(is_true: bool) -> Self {
        if is_true { Self::Always } else { Self::Never }
    }

    pub(super) fn not(self) -> Self {
        match self {
            Self::Never => Self::Always,
            Self::Perhaps => Self::Perhaps,
            Self::Always => Self::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Certainty::{Always, Never, Perhaps};

    #[test]
    fn topic_patterns_match_words() {
        for (pattern, key, expected) in [
            ("#", "", true),
            ("#", "a.b", true),
            ("*", "", false),
            ("*", "a", true),
            ("*.*", ".", true),
            ("a.#", "a", true),
            ("a.#", "a.b.c", true),
            ("a.#.c", "a.c", true),
            ("#.c.#", "a.b.c.d", true),
            ("a.*", "a", false),
            ("a.*", "a.", true),
            ("", "", true),
            ("", "a", false),
            ("a.#", "a.#", true),
            ("a#", "ab", false),
        ] {
            assert_eq!(matches(pattern, key), expected, "{pattern} on {key:?}");
        }
    }

    #[test]
    fn patterns_are_compared_by_their_keys() {
        for (keys, pattern, expected) in [
            ("order.#", "#", Always),
            ("#", "order.#", Perhaps),
            ("order.#", "order.created", Perhaps),
            ("order.*", "order.#", Always),
            ("order.#", "order.*", Perhaps),
            ("order.*", "#.*", Always),
            ("#.*", "*.#", Always),
            ("*.#", "#.*", Always),
            ("*.*", "*", Never),
            ("order.*", "mail.#", Never),
            ("order.#", "*.created", Perhaps),
            ("*.eu.#", "#.eu.#", Always),
            ("#.eu.#", "*.eu.#", Perhaps),
            ("a.*.c", "a.#.b.c", Perhaps),
            ("a.*.c", "a.b.c.d.#", Never),
        ] {
            assert_eq!(Keys::Like(keys.to_owned()).match_topic(pattern), expected, "{keys} for {pattern}");
        }
    }

    #[test]
    fn wildcards_are_literal_in_a_direct_exchange() {
        assert_eq!(Keys::any().match_key("#"), Never);
        assert_eq!(Keys::any().match_key("order.*"), Never);
        assert_eq!(Keys::any().match_key("order"), Perhaps);
        assert_eq!(Keys::of_topic("order.#").match_key("mail"), Never);
        assert_eq!(Keys::of_topic("order.new").match_key("order.new"), Always);
        assert_eq!(Keys::One("#".to_owned()).match_key("#"), Always);
    }

    #[test]
    fn slow_comparison_is_uncertain() {
        let long = format!("#.a{}", ".*".repeat(60));
        assert_eq!(Keys::Like(long).match_topic(&format!("#.b{}", ".*".repeat(59))), Perhaps);
    }
}
