//! The bindings of one exchange, so that the few that may take a message are found among thousands.

use super::{Keys, Kind};
use crate::model::Binding;

/// The bindings of which an exchange is the source.
#[derive(Default)]
pub(super) struct Outgoing<'a> {
    all: Vec<&'a Binding>,
    /// The same by their keys.
    by_key: Vec<&'a Binding>,
    /// Those whose keys are patterns to a topic exchange.
    patterns: Vec<&'a Binding>,
}

impl<'a> Outgoing<'a> {
    pub(super) fn add(&mut self, binding: &'a Binding) {
        self.all.push(binding);
        self.by_key.push(binding);
        if Keys::is_pattern(&binding.routing_key) {
            self.patterns.push(binding);
        }
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
            (Kind::Topic, Keys::One(key)) if Keys::is_pattern(key) => self.patterns.clone(),
            (Kind::Topic, Keys::One(key)) => self.with_key(key).iter().chain(&self.patterns).copied().collect(),
            (Kind::Direct | Kind::Topic, Keys::Like(_)) => self.all.clone(),
            (Kind::Default | Kind::Fanout | Kind::Headers | Kind::OneOf | Kind::Unknown, _) => self.all.clone(),
        }
    }

    fn with_key(&self, key: &str) -> &[&'a Binding] {
        let start = self.by_key.partition_point(|binding| binding.routing_key.as_str() < key);
        let end = self.by_key.partition_point(|binding| binding.routing_key.as_str() <= key);
        &self.by_key[start..end]
    }
}
