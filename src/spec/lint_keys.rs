//! The grammar of `lint:`: a key for each rule, and its level. The rules are in a layer above, so a test generates a
//! file with their names.

use super::level::Level;
use super::rule_names::RULES;
use super::shape::{Key, Keys, Object, Shape, key};
use std::sync::LazyLock;

/// The levels of the rules.
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
