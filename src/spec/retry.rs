//! Reads `maxRetries` and `retry` from one source: a queue, `defaults`, or an entry in `retryPolicies`. `retry_layers`
//! merges several sources for a queue, and `expand` creates the objects.

use super::convert::declared_twice;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Entry, Location, Node, Sourced, Value};
use super::shared_keys::NO_RETRY;
use super::spec_types::{RetryKeys, RetryPolicySpec, Schedule, SetBy, Setting, Spec};
use crate::model::Strategy;
use crate::model::units::duration;

/// Adds the `retryPolicies` in a document to the spec.
pub(crate) fn read_policies(document: &Node, spec: &mut Spec, diagnostics: &mut Diagnostics) {
    for entry in document.get("retryPolicies").map_or(&[][..], Node::entries) {
        if entry.key == NO_RETRY {
            let message = "a retry policy cannot be named `none`, because `retry: none` disables the default retries";
            diagnostics.push(Diagnostic::error("name", message, entry.at));
            continue;
        }
        let mut keys = RetryKeys::default();
        keys.read_mapping(&entry.node, SetBy::RetryPolicy, diagnostics);
        keys.check_number_of_delays(diagnostics);
        if let Some(first) = spec.retry_policies.get(&entry.key) {
            diagnostics.push(declared_twice("retry policy", &entry.key, entry.at, first.at));
        } else {
            spec.retry_policies.insert(entry.key.clone(), RetryPolicySpec { at: entry.at, keys });
        }
    }
}

impl RetryKeys {
    /// Reads the retry keys of a queue or of `defaults`.
    pub(crate) fn read(node: &Node, set_by: SetBy, diagnostics: &mut Diagnostics) -> Self {
        let mut keys = Self::default();
        if let Some(entry) = node.entry("retry") {
            keys.at.push(entry.at);
            match &entry.node.value {
                Value::Text(word) if word == NO_RETRY => keys.is_none = true,
                Value::Text(name) => {
                    keys.policy = Some(Setting { value: name.clone(), at: entry.node.at, set_by });
                }
                Value::Table(_) => keys.read_mapping(&entry.node, set_by, diagnostics),
                Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::List(_) => {
                    keys.is_invalid = true;
                }
            }
        }
        if let Some(entry) = node.entry("maxRetries") {
            keys.at.push(entry.at);
            let count = keys.read_count(entry, set_by);
            if let Some((in_retry, count)) = keys.max_retries.as_ref().zip(count.as_ref()) {
                let diagnostic = Diagnostic::error("set-twice", "`maxRetries` is set twice", in_retry.at);
                diagnostics.push(diagnostic.also(count.at, "also set here").hint("keep one of the two"));
                keys.is_invalid = true;
            }
            if let Some(count) = count.as_ref().filter(|count| keys.is_none && count.value > 0) {
                let message = format!("`retry: none` and `maxRetries: {}` contradict each other", count.value);
                diagnostics.push(Diagnostic::error("conflicting-keys", message, count.at).hint("keep one of the two"));
            }
            keys.max_retries = count;
        }
        keys.check_number_of_delays(diagnostics);
        keys
    }

    /// Returns the name of the `retryPolicies` entry that `retry` refers to, with its position.
    pub(crate) fn policy_reference(&self) -> Option<Sourced<String>> {
        self.policy.as_ref().map(|policy| Sourced::new(policy.value.clone(), policy.at))
    }

    /// Returns the positions of the `retry` and `maxRetries` keys.
    pub(crate) fn places(&self) -> &[Location] {
        &self.at
    }

    fn read_count(&mut self, entry: &Entry, set_by: SetBy) -> Option<Setting<u32>> {
        let count = integer(&entry.node).and_then(|number| u32::try_from(number).ok());
        self.is_invalid |= count.is_none();
        count.map(|value| Setting { value, at: entry.node.at, set_by })
    }

    /// Reads a `retry` mapping, or an entry in `retryPolicies`.
    fn read_mapping(&mut self, node: &Node, set_by: SetBy, diagnostics: &mut Diagnostics) {
        if let Some(entry) = node.entry("maxRetries") {
            self.max_retries = self.read_count(entry, set_by);
        }
        if let Some(entry) = node.entry("strategy") {
            let strategy = entry.node.text().and_then(Strategy::named);
            self.is_invalid |= strategy.is_none();
            self.strategy = strategy.map(|value| Setting { value, at: entry.node.at, set_by });
        }
        if let Some(entry) = node.entry("jitter") {
            let jitter = integer(&entry.node);
            self.is_invalid |= jitter.is_none();
            self.jitter = jitter.map(|value| Setting { value, at: entry.node.at, set_by });
        }
        let (delays, backoff) = (node.entry("delays"), node.entry("backoff"));
        // A null value may be the placeholder for a misspelled key, so it does not conflict with a valid key.
        let is_set = |entry: &&Entry| !matches!(entry.node.value, Value::Null(_));
        if let (Some(delays), Some(backoff)) = (delays.filter(is_set), backoff.filter(is_set)) {
            let diagnostic = Diagnostic::error("conflicting-keys", "both `delays` and `backoff` are set", backoff.at);
            diagnostics.push(diagnostic.also(delays.at, "`delays` is set here").hint("keep one of the two"));
            self.is_invalid = true;
        }
        let explicit = delays.map(|entry| (entry, explicit_delays(&entry.node)));
        let computed = backoff.map(|entry| (entry, computed_delays(entry, diagnostics)));
        if let Some((entry, schedule)) = explicit.or(computed) {
            self.is_invalid |= schedule.is_none();
            self.schedule = schedule.map(|value| Setting { value, at: entry.at, set_by });
        }
    }

    /// Reports an error if this source sets more delays than retries.
    fn check_number_of_delays(&mut self, diagnostics: &mut Diagnostics) {
        if let (Some(schedule), Some(count)) = (&self.schedule, &self.max_retries) {
            self.is_invalid |= has_too_many_delays(schedule, count, diagnostics);
        }
    }
}

fn integer(node: &Node) -> Option<i64> {
    if let Value::Integer(number) = node.value { Some(number) } else { None }
}

fn explicit_delays(node: &Node) -> Option<Schedule> {
    let Value::List(items) = &node.value else { return None };
    let delays: Vec<i64> = items.iter().filter_map(integer).collect();
    // Invalid delays have been reported and omitted. If no delay is valid, there is no schedule.
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
        let message = format!("`max` ({}) is shorter than `initial` ({})", shown(max), shown(initial));
        diagnostics.push(Diagnostic::error("out-of-range", message, it.at));
        return None;
    }
    Some(Schedule::Backoff { initial, factor, max })
}

/// Returns true, and reports an error, if the schedule has more delays than there are retries.
pub(super) fn has_too_many_delays(
    schedule: &Setting<Schedule>,
    count: &Setting<u32>,
    diagnostics: &mut Diagnostics,
) -> bool {
    let Schedule::Delays(delays) = &schedule.value else { return false };
    let has_too_many = delays.len() as u64 > u64::from(count.value);
    if has_too_many {
        let message = format!("there are more delays ({}) than retries ({})", delays.len(), count.value);
        let diagnostic =
            Diagnostic::error("too-many-delays", message, schedule.at).also(count.at, "the number of retries");
        diagnostics.push(diagnostic.hint("remove delays, or increase `maxRetries`: each retry uses one delay"));
    }
    has_too_many
}
