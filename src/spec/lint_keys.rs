//! Defines the grammar of `lint:`, which maps rules to levels. The rules are in a higher layer, so a test generates the
//! list of their names in `rule_names`.

use super::diagnostic::Severity;
use super::rule_names::RULES;
use super::shape::{Key, Keys, Object, Shape, key};
use std::sync::LazyLock;

/// The `lint` mapping, with one key for each rule.
pub(super) static LINT: Object = Object {
    what: "`lint`",
    name: "Lint",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            RULES.iter().map(|(name, summary)| key(name, Shape::OneOf(Level::WORDS), summary)).collect()
        });
        &KEYS
    }),
    external: &[],
    is_queue: false,
};

/// Returns the names of all rules.
pub(crate) fn rules() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|(name, _)| *name)
}

/// Returns true if a rule with this name exists.
pub(super) fn is_rule(name: &str) -> bool {
    rules().any(|rule| rule == name)
}

/// The level of a lint rule: the severity of its findings, or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Findings are not reported.
    Off,
    /// Findings are useful information.
    Info,
    /// Findings are probably mistakes.
    Warning,
    /// Findings are errors.
    Error,
}

impl Level {
    /// The names of all levels.
    pub const WORDS: &'static [&'static str] = &["off", "info", "warning", "error"];

    /// Returns the level with this name. Returns `None` for an unknown name.
    pub fn named(word: &str) -> Option<Self> {
        [Self::Off, Self::Info, Self::Warning, Self::Error].into_iter().find(|level| level.as_str() == word)
    }

    /// Returns the name of the level.
    pub fn as_str(self) -> &'static str {
        self.severity().map_or("off", Severity::as_str)
    }

    /// Returns the severity of the findings. Returns `None` for `off`.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Off => None,
            Self::Info => Some(Severity::Info),
            Self::Warning => Some(Severity::Warning),
            Self::Error => Some(Severity::Error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_a_level() {
        for word in Level::WORDS {
            assert_eq!(Level::named(word).map(Level::as_str), Some(*word));
        }
        assert_eq!(Level::named("warn"), None);
    }
}
