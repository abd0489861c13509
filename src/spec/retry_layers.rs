//! Merges the retry keys that apply to a queue. For each setting, the nearest source that sets it takes precedence.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::retry::has_too_many_delays;
use super::spec_types::{RetryKeys, RetryPolicySpec, RetrySpec, Schedule, Setting};
use crate::model::Strategy;
use crate::model::units::duration;
use std::collections::BTreeMap;

/// The sources of a queue's retry settings, nearest first.
pub(crate) struct Layers<'a>(Vec<&'a RetryKeys>);

impl<'a> Layers<'a> {
    /// Orders the sources: the queue, its retry policy, the defaults, and the retry policy in the defaults. Returns no
    /// sources if the queue sets `retry: none`.
    pub(crate) fn of(
        queue: &'a RetryKeys,
        defaults: Option<&'a RetryKeys>,
        policies: &'a BTreeMap<String, RetryPolicySpec>,
    ) -> Self {
        let mut layers = Vec::new();
        if queue.is_none {
            return Self(layers);
        }
        for keys in [Some(queue), defaults.filter(|keys| !keys.is_none)].into_iter().flatten() {
            layers.push(keys);
            layers.extend(keys.policy.as_ref().and_then(|name| policies.get(&name.value)).map(|policy| &policy.keys));
        }
        Self(layers)
    }

    /// Returns a setting from the nearest source that sets it, with the rank of that source. Rank 0 is the nearest of
    /// all sources.
    fn nearest<T: Clone>(&self, get: impl Fn(&RetryKeys) -> &Option<Setting<T>>) -> Option<(usize, Setting<T>)> {
        self.0.iter().enumerate().find_map(|(index, keys)| get(keys).clone().map(|setting| (index, setting)))
    }

    /// Returns the retries of the queue. Returns `None` if no source sets retries, or if a setting is invalid, missing
    /// or conflicting. Reports missing and conflicting settings.
    pub(crate) fn resolve(&self, queue: &str, diagnostics: &mut Diagnostics) -> Option<RetrySpec> {
        if self.0.iter().any(|keys| keys.is_invalid) {
            return None;
        }
        let count = self.nearest(|keys| &keys.max_retries);
        let strategy = self.nearest(|keys| &keys.strategy);
        let mut schedule = self.nearest(|keys| &keys.schedule);
        let mut jitter = self.nearest(|keys| &keys.jitter);
        // A setting that the strategy does not support is dropped if it comes from a more distant source: it is
        // intended for other queues.
        if let Some((rank, strategy)) = &strategy {
            if strategy.value == Strategy::Redeliver {
                schedule = schedule.filter(|(schedule_rank, _)| schedule_rank <= rank);
            }
            if strategy.value != Strategy::Republish {
                jitter = jitter.filter(|(jitter_rank, _)| jitter_rank <= rank);
            }
        }
        let first = strategy.as_ref().map(|(_, it)| it.at).or(schedule.as_ref().map(|(_, it)| it.at));
        let count = match (count, &schedule) {
            (Some((rank, count)), Some((schedule_rank, delays))) if *schedule_rank < rank => {
                if has_too_many_delays(delays, &count, diagnostics) {
                    return None;
                }
                count
            }
            (Some((_, count)), _) => count,
            (None, Some((_, Setting { value: Schedule::Delays(delays), at, set_by }))) => {
                Setting { value: u32::try_from(delays.len()).unwrap_or(u32::MAX), at: *at, set_by: *set_by }
            }
            (None, _) => {
                let at = first.or(jitter.as_ref().map(|(_, it)| it.at))?;
                let message = format!("missing number of retries for queue `{queue}`");
                let hint = "add `maxRetries` here or to the queue, or use `retry: none` to disable the default retries";
                diagnostics.push(Diagnostic::error("missing-key", message, at).hint(hint));
                return None;
            }
        };
        let retry = RetrySpec {
            max_retries: count,
            strategy: strategy.map(|(_, it)| it),
            schedule: schedule.map(|(_, it)| it),
            jitter: jitter.map(|(_, it)| it),
            policy: self.nearest(|keys| &keys.policy).map(|(_, it)| it),
        };
        retry.check_consistency(diagnostics).then_some(retry)
    }
}

impl RetrySpec {
    /// Returns true if no settings conflict. Otherwise, reports the conflict.
    fn check_consistency(&self, diagnostics: &mut Diagnostics) -> bool {
        let problem = self.strategy_problem().or_else(|| self.jitter_problem());
        let is_consistent = problem.is_none();
        if let Some(problem) = problem {
            diagnostics.push(problem);
        }
        is_consistent
    }

    fn strategy_problem(&self) -> Option<Diagnostic> {
        let strategy = self.strategy.as_ref()?;
        let delays = self.delays();
        match (strategy.value, &self.schedule) {
            _ if self.max_retries.value == 0 => None,
            (Strategy::Ladder | Strategy::Delayed, None) => {
                let message = format!("strategy `{}` requires delays", strategy.value);
                let hint = "add `delays: [5s, 30s]` or `backoff: {initial: 2s, factor: 2, max: 60s}`";
                Some(Diagnostic::error("missing-key", message, strategy.at).hint(hint))
            }
            (Strategy::Redeliver, Some(schedule)) => {
                let message = "strategy `redeliver` retries immediately and does not support delays";
                let hint = "use `ladder`, `republish` or (on RabbitMQ 4.3 and later) `delayed`, or remove the delays";
                let diagnostic = Diagnostic::error("retry-strategy", message, schedule.at).hint(hint);
                Some(diagnostic.also(strategy.at, "the strategy is set here"))
            }
            (Strategy::Delayed, Some(schedule)) if !is_linear(&delays) => {
                let shown: Vec<String> = delays.iter().take(8).filter_map(|delay| duration(*delay)).collect();
                let message = format!(
                    "strategy `delayed` supports only delays that grow by the first delay each time, up to a limit, not {}",
                    shown.join(" ")
                );
                let hint = "use `ladder` or `republish` for these delays, or delays such as [5s, 10s, 15s, 15s]";
                let diagnostic = Diagnostic::error("retry-strategy", message, schedule.at).hint(hint);
                Some(diagnostic.also(strategy.at, "the strategy is set here"))
            }
            (Strategy::Ladder | Strategy::Delayed, Some(_))
            | (Strategy::Redeliver, None)
            | (Strategy::Republish, _) => None,
        }
    }

    fn jitter_problem(&self) -> Option<Diagnostic> {
        let jitter = self.jitter.as_ref()?;
        let is_republish = self.strategy.as_ref().is_some_and(|strategy| strategy.value == Strategy::Republish);
        if !is_republish {
            let message =
                "`jitter` requires strategy `republish`: with other strategies, the worker does not choose the delay";
            let hint = "remove it, or add `strategy: republish`";
            return Some(Diagnostic::error("retry-strategy", message, jitter.at).hint(hint));
        }
        let delays = self.delays();
        match delays.iter().min() {
            None if self.max_retries.value == 0 => None,
            None => {
                let message = "`jitter` shortens delays, but no delays are set";
                Some(Diagnostic::error("missing-key", message, jitter.at).hint("add `delays`, or remove the jitter"))
            }
            Some(shortest) if *shortest <= jitter.value => {
                let shown = duration(*shortest).unwrap_or_default();
                let message = format!("`jitter` must be shorter than the shortest delay, {shown}");
                Some(Diagnostic::error("out-of-range", message, jitter.at))
            }
            Some(_) => None,
        }
    }
}

/// Returns true if the k-th delay is k times the first delay, capped at the last delay. The `delayed` strategy
/// supports only such delays.
pub(crate) fn is_linear(delays: &[i64]) -> bool {
    let (Some(first), Some(last)) = (delays.first(), delays.last()) else { return true };
    delays.iter().zip(1_i64..).all(|(delay, number)| *delay == first.saturating_mul(number).min(*last))
}
