//! Routing keys that are not known exactly, and what a direct or a topic exchange makes of them.

use super::Certainty;
use std::collections::BTreeSet;

/// So many states are looked at to compare two patterns; what needs more is not told.
const MOST_STATES: usize = 4000;

/// The routing keys that a message can have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keys {
    /// This one.
    One(String),
    /// Any that this topic pattern takes. Of those that people publish: none of their words is `*` or `#`, which only
    /// somebody writes who takes a key for a pattern.
    Like(String),
}

impl Keys {
    /// Any key at all.
    pub fn any() -> Self {
        Self::Like("#".to_owned())
    }

    /// Those that a topic exchange takes for a binding.
    pub fn of_topic(pattern: &str) -> Self {
        if Self::is_pattern(pattern) { Self::Like(pattern.to_owned()) } else { Self::One(pattern.to_owned()) }
    }

    /// Whether a topic exchange takes other keys than this one for it.
    pub(super) fn is_pattern(key: &str) -> bool {
        words(key).any(is_wildcard)
    }

    /// Whether they are this very key.
    pub fn are(&self, key: &str) -> Certainty {
        match self {
            Self::One(own) => Certainty::of(own == key),
            Self::Like(_) if words(key).any(is_wildcard) => Certainty::Never,
            Self::Like(pattern) if takes(pattern, key) => Certainty::Perhaps,
            Self::Like(_) => Certainty::Never,
        }
    }

    /// Whether a topic exchange takes them for a pattern.
    pub fn match_topic(&self, pattern: &str) -> Certainty {
        match self {
            // These two are most of all that is asked.
            Self::One(_) | Self::Like(_) if pattern == "#" => Certainty::Always,
            Self::Like(own) if own == "#" && words(pattern).any(|word| word != "#") => Certainty::Perhaps,
            Self::One(key) => Certainty::of(takes(pattern, key)),
            Self::Like(own) => compared(own, pattern),
        }
    }
}

/// No word in the empty key, as the broker splits it (`rabbit_exchange_type_topic:split_topic_key`).
pub(super) fn words(key: &str) -> impl DoubleEndedIterator<Item = &str> {
    key.split('.').filter(move |_| !key.is_empty())
}

fn is_wildcard(word: &str) -> bool {
    word == "*" || word == "#"
}

/// A pattern on its way through a key: the places in it that may come next.
struct Walk<'a> {
    pattern: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn new(pattern: &'a str) -> Self {
        Self { pattern: words(pattern).collect() }
    }

    /// With what is behind each `#`, which takes no word, too.
    fn closed(&self, places: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        for mut place in places {
            all.insert(place);
            while self.pattern.get(place) == Some(&"#") {
                place += 1;
                all.insert(place);
            }
        }
        all
    }

    fn start(&self) -> BTreeSet<usize> {
        self.closed([0])
    }

    /// After one more word; `None` is one that stands in no pattern.
    fn after(&self, places: &BTreeSet<usize>, word: Option<&str>) -> BTreeSet<usize> {
        let next = places.iter().filter_map(|place| match *self.pattern.get(*place)? {
            "#" => Some(*place),
            "*" => Some(place + 1),
            literal => (Some(literal) == word).then_some(place + 1),
        });
        self.closed(next)
    }

    fn is_at_end(&self, places: &BTreeSet<usize>) -> bool {
        places.contains(&self.pattern.len())
    }
}

/// Whether a pattern takes a key.
fn takes(pattern: &str, key: &str) -> bool {
    let walk = Walk::new(pattern);
    let end = words(key).fold(walk.start(), |places, word| walk.after(&places, Some(word)));
    walk.is_at_end(&end)
}

/// Whether two patterns have another word in one place before the first `#`: most do, and nothing has to be walked then.
fn begin_otherwise<'k>(one: impl Iterator<Item = &'k str>, other: impl Iterator<Item = &'k str>) -> bool {
    let mut both = one.zip(other).take_while(|(one, other)| *one != "#" && *other != "#");
    both.any(|(one, other)| one != other && one != "*" && other != "*")
}

/// Whether a pattern takes all keys that another one takes, some, or none: both are walked along every key that the other
/// takes. One word that stands in neither is as good as any other.
fn compared(keys: &str, pattern: &str) -> Certainty {
    if begin_otherwise(words(keys), words(pattern)) || begin_otherwise(words(keys).rev(), words(pattern).rev()) {
        return Certainty::Never;
    }
    let (keys, pattern) = (Walk::new(keys), Walk::new(pattern));
    let literals = keys.pattern.iter().chain(&pattern.pattern).copied().filter(|word| !is_wildcard(word));
    let literals: BTreeSet<&str> = literals.collect();
    let alphabet: Vec<Option<&str>> = literals.into_iter().map(Some).chain([None]).collect();
    let mut todo = vec![(keys.start(), pattern.start())];
    let mut seen: BTreeSet<_> = todo.iter().cloned().collect();
    let (mut taken, mut not_taken) = (false, false);
    while let Some((of_keys, of_pattern)) = todo.pop() {
        if keys.is_at_end(&of_keys) {
            let is_taken = pattern.is_at_end(&of_pattern);
            taken |= is_taken;
            not_taken |= !is_taken;
        }
        if seen.len() > MOST_STATES || taken && not_taken {
            return Certainty::Perhaps;
        }
        for word in &alphabet {
            let next = (keys.after(&of_keys, *word), pattern.after(&of_pattern, *word));
            if !next.0.is_empty() && seen.insert(next.clone()) {
                todo.push(next);
            }
        }
    }
    match (taken, not_taken) {
        (true, false) => Certainty::Always,
        (false, _) => Certainty::Never,
        (true, true) => Certainty::Perhaps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Certainty::{Always, Never, Perhaps};

    #[test]
    fn a_topic_pattern_takes_words() {
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
            assert_eq!(takes(pattern, key), expected, "{pattern} on {key:?}");
        }
    }

    #[test]
    fn patterns_are_compared_by_all_that_they_take() {
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
    fn a_wildcard_is_a_plain_key_to_a_direct_exchange() {
        assert_eq!(Keys::any().are("#"), Never);
        assert_eq!(Keys::any().are("order.*"), Never);
        assert_eq!(Keys::any().are("order"), Perhaps);
        assert_eq!(Keys::of_topic("order.#").are("mail"), Never);
        assert_eq!(Keys::of_topic("order.new").are("order.new"), Always);
        assert_eq!(Keys::One("#".to_owned()).are("#"), Always);
    }

    #[test]
    fn what_takes_too_long_is_not_told() {
        let long = format!("#.a{}", ".*".repeat(60));
        assert_eq!(Keys::Like(long).match_topic(&format!("#.b{}", ".*".repeat(59))), Perhaps);
    }
}
