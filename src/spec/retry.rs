//! Reads `maxRetries` and `retry` from one source: a queue, an entry of `retryPolicies` or `defaults`. `retry_layers`
//! merges several sources for a queue, and `expand` creates the objects.

use super::convert::declared_twice;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Entry, Location, Node, Sourced, Value};
use super::shared_keys::NO_RETRY;
use super::spec_types::{RetryKeys, RetryPolicySpec, Schedule, SetBy, Setting, Spec};
use crate::model::Strategy;
use crate::model::units::duration;

/// Adds the `retryPolicies` of a document.
pub(crate) fn policies(document: &Node, spec: &mut Spec, diagnostics: &mut Diagnostics) {
    for entry in document.get("retryPolicies").map_or(&[][..], Node::entries) {
        if entry.key == NO_RETRY {
            let message = "a retry policy cannot be named `none`: this word disables a default retry";
            diagnostics.push(Diagnostic::error("name", message, entry.at));
            continue;
        }
        let mut keys = RetryKeys::default();
        keys.table(&entry.node, SetBy::RetryPolicy, diagnostics);
        keys.count_delays(diagnostics);
        if let Some(first) = spec.retry_policies.get(&entry.key) {
            diagnostics.push(declared_twice("retry policy", &entry.key, entry.at, first.at));
        } else {
            spec.retry_policies.insert(entry.key.clone(), RetryPolicySpec { at: entry.at, keys });
        }
    }
}

impl RetryKeys {
    /// Reads the keys of a queue or `defaults`.
    pub(crate) fn read(node: &Node, set_by: SetBy, diagnostics: &mut Diagnostics) -> Self {
        let mut keys = Self::default();
        if let Some(entry) = node.entry("retry") {
            keys.at.push(entry.at);
            match &entry.node.value {
                Value::Text(word) if word == NO_RETRY => keys.is_none = true,
                Value::Text(name) => {
                    keys.policy = Some(Setting { value: name.clone(), at: entry.node.at, set_by });
                }
                Value::Table(_) => keys.table(&entry.node, set_by, diagnostics),
                Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::List(_) => {
                    keys.is_wrong = true;
                }
            }
        }
        if let Some(entry) = node.entry("maxRetries") {
            keys.at.push(entry.at);
            let own = keys.count(entry, set_by);
            if let Some((first, own)) = keys.max_retries.as_ref().zip(own.as_ref()) {
                let diagnostic = Diagnostic::error("said-twice", "`maxRetries` is set twice", first.at);
                diagnostics.push(diagnostic.also(own.at, "and here").hint("keep one of the two"));
                keys.is_wrong = true;
            }
            if let Some(own) = own.as_ref().filter(|own| keys.is_none && own.value > 0) {
                let message = format!("`retry: none` and `maxRetries: {}` contradict each other", own.value);
                diagnostics.push(Diagnostic::error("conflicting-keys", message, own.at).hint("keep one of the two"));
            }
            keys.max_retries = own;
        }
        keys.count_delays(diagnostics);
        keys
    }

    /// Returns the entry of `retryPolicies` that it names.
    pub(crate) fn used(&self) -> Option<Sourced<String>> {
        self.policy.as_ref().map(|policy| Sourced::new(policy.value.clone(), policy.at))
    }

    /// Returns the positions of its keys.
    pub(crate) fn places(&self) -> &[Location] {
        &self.at
    }

    fn count(&mut self, entry: &Entry, set_by: SetBy) -> Option<Setting<u32>> {
        let count = integer(&entry.node).and_then(|number| u32::try_from(number).ok());
        self.is_wrong |= count.is_none();
        count.map(|value| Setting { value, at: entry.node.at, set_by })
    }

    /// Reads a `retry` mapping, or an entry of `retryPolicies`.
    fn table(&mut self, node: &Node, set_by: SetBy, diagnostics: &mut Diagnostics) {
        if let Some(entry) = node.entry("maxRetries") {
            self.max_retries = self.count(entry, set_by);
        }
        if let Some(entry) = node.entry("strategy") {
            let strategy = entry.node.text().and_then(Strategy::named);
            self.is_wrong |= strategy.is_none();
            self.strategy = strategy.map(|value| Setting { value, at: entry.node.at, set_by });
        }
        if let Some(entry) = node.entry("jitter") {
            let jitter = integer(&entry.node);
            self.is_wrong |= jitter.is_none();
            self.jitter = jitter.map(|value| Setting { value, at: entry.node.at, set_by });
        }
        let (delays, backoff) = (node.entry("delays"), node.entry("backoff"));
        // An invalid key may be a misspelling of another one.
        let is_set = |entry: &&Entry| !matches!(entry.node.value, Value::Null(_));
        if let (Some(delays), Some(backoff)) = (delays.filter(is_set), backoff.filter(is_set)) {
            let diagnostic = Diagnostic::error("conflicting-keys", "both `delays` and `backoff` are set", backoff.at);
            diagnostics.push(diagnostic.also(delays.at, "the other").hint("keep one of the two"));
            self.is_wrong = true;
        }
        let explicit = delays.map(|entry| (entry, explicit_delays(&entry.node)));
        let computed = backoff.map(|entry| (entry, computed_delays(entry, diagnostics)));
        if let Some((entry, schedule)) = explicit.or(computed) {
            self.is_wrong |= schedule.is_none();
            self.schedule = schedule.map(|value| Setting { value, at: entry.at, set_by });
        }
    }

    /// Reports more delays than retries in one source.
    fn count_delays(&mut self, diagnostics: &mut Diagnostics) {
        if let (Some(schedule), Some(count)) = (&self.schedule, &self.max_retries) {
            self.is_wrong |= too_many_delays(schedule, count, diagnostics);
        }
    }
}

fn integer(node: &Node) -> Option<i64> {
    if let Value::Integer(number) = node.value { Some(number) } else { None }
}

fn explicit_delays(node: &Node) -> Option<Schedule> {
    let Value::List(items) = &node.value else { return None };
    let delays: Vec<i64> = items.iter().filter_map(integer).collect();
    // An invalid delay was reported and left out, so the rest is not the intended list.
    (!delays.is_empty()).then_some(Schedule::Delays(delays))
}

fn computed_delays(entry: &Entry, diagnostics: &mut Diagnostics) -> Option<Schedule> {
    let node = &entry.node;
    let initial = node.get("initial").and_then(integer)?;
    let factor = match node.get("factor").map(|it| &it.value) {
        None => 2.0,
        Some(Value::Integer(number)) => *number as f64,
        Some(Value::Float(number)) => *number,
        Some(Value::Null(_) | Value::Boolean(_) | Value::Text(_) | Value::List(_) | Value::Table(_)) => return None,
    };
    let max = match node.get("max") {
        None => None,
        Some(it) => Some(integer(it)?),
    };
    if let Some((max, it)) = max.zip(node.get("max")).filter(|(max, _)| *max < initial) {
        let shown = |delay| duration(delay).unwrap_or_default();
        let message = format!("the longest delay, {}, is shorter than the first, {}", shown(max), shown(initial));
        diagnostics.push(Diagnostic::error("out-of-range", message, it.at));
        return None;
    }
    Some(Schedule::Backoff { initial, factor, max })
}

/// Reports a schedule with more delays than retries, and returns true if it has more.
pub(super) fn too_many_delays(
    schedule: &Setting<Schedule>,
    count: &Setting<u32>,
    diagnostics: &mut Diagnostics,
) -> bool {
    let Schedule::Delays(delays) = &schedule.value else { return false };
    let is_too_many = delays.len() as u64 > u64::from(count.value);
    if is_too_many {
        let message = format!("there are more delays ({}) than retries ({})", delays.len(), count.value);
        let diagnostic = Diagnostic::error("too-many-delays", message, schedule.at).also(count.at, "the retries");
        diagnostics.push(diagnostic.hint("remove delays, or increase `maxRetries`: each retry has one delay"));
    }
    is_too_many
}
