//! Finds the origin of each effective setting of a queue.

use super::document::Source;
use super::{Describer, place};
use crate::expand::Retry;
use crate::model::known_arguments::KnownArgument;
use crate::model::units::{duration, with_unit};
use crate::model::{ArgumentValue, Arguments, PolicyName};
use crate::rabbitmq::wiring::WIRING_KEYS;
use crate::rabbitmq::{Effective, Source as SetIn};
use crate::spec::{DeadLetter, Location, RetrySpec, Schedule, SetBy, Setting, Wiring};

/// A binding's arguments in a line.
pub(super) fn table(arguments: &Arguments) -> String {
    ArgumentValue::Table(arguments.clone()).to_string()
}

impl Describer<'_, '_> {
    pub(super) fn settings(&self) -> Vec<Source> {
        let written = self.in_force.written;
        let mut all = Vec::new();
        if let Some(it) = &written.queue_type {
            all.push(self.said("type", it.value.to_string(), it, "queue"));
        }
        if let Some(retry) = &written.retry {
            self.retry(retry, self.in_force.retry, &mut all);
        }
        if let Some(it) = &written.dead_letter {
            let value = dead_letter(&it.value);
            all.push(self.said("deadLetter", value, it, "deadLetter"));
        }
        for (key, effective) in self.in_force.holds.iter() {
            // Said above, in the spec's words.
            if !(WIRING_KEYS.contains(&key) && written.dead_letter.is_some()) {
                all.extend(self.in_force(key, effective));
            }
        }
        all
    }

    /// A setting that a place of the spec says; `default` is its key below `defaults`.
    fn said<T>(&self, key: &str, value: String, setting: &Setting<T>, default: &str) -> Source {
        let set_by = match setting.set_by {
            SetBy::Itself => "the queue".to_owned(),
            SetBy::RetryPolicy => self.policy(setting.at),
            SetBy::Defaults => format!("defaults.{default}"),
            SetBy::Vhost => "vhost.defaultQueueType".to_owned(),
        };
        Source { key: key.to_owned(), value, no_effect: None, set_by, at: Some(place(self.context.spec, setting.at)) }
    }

    /// The entry of `retryPolicies` that says what stands there.
    fn policy(&self, at: Location) -> String {
        let entry = self.context.spec.retry_policies.iter().find(|(_, policy)| policy.says(at));
        format!("retryPolicies.{}", entry.map_or("", |(name, _)| name))
    }

    fn retry(&self, retry: &RetrySpec, of: Option<&Retry>, all: &mut Vec<Source>) {
        let count = &retry.max_retries;
        let mut number = self.said("maxRetries", count.value.to_string(), count, "maxRetries");
        if retry.schedule.as_ref().is_some_and(|schedule| schedule.at == count.at) {
            number.set_by = "the delays: one retry each".to_owned();
        }
        all.push(number);
        if let Some(schedule) = &retry.schedule {
            let (key, value) = shown(&schedule.value);
            all.push(self.said(key, value, schedule, "retry"));
        }
        match (&retry.strategy, of) {
            (Some(strategy), _) => all.push(self.said("strategy", strategy.value.to_string(), strategy, "retry")),
            (None, Some(of)) => {
                let why = if retry.schedule.is_some() { "there are delays" } else { "a quorum queue counts" };
                let set_by = format!("topo: {why}");
                all.push(Source {
                    key: "strategy".to_owned(),
                    value: of.strategy().to_string(),
                    no_effect: None,
                    set_by,
                    at: None,
                });
            }
            (None, None) => {}
        }
        if let Some(jitter) = &retry.jitter {
            all.push(self.said("jitter", duration(jitter.value).unwrap_or_default(), jitter, "retry"));
        }
    }

    /// What holds of argument and policy.
    fn in_force(&self, key: &str, effective: &Effective) -> Option<Source> {
        let argument = format!("x-{key}");
        let known = KnownArgument::named(&argument);
        let shown = known.map_or(key, |known| known.key);
        let value = with_unit(&argument, &effective.value);
        let no_effect = known.and_then(|known| self.in_force.holds.no_effect(known, &effective.value));
        let no_effect = no_effect.map(|why| why.to_string());
        let source = |set_by: String, at| {
            let (value, no_effect) = (value.clone(), no_effect.clone());
            Source { key: shown.to_owned(), value, no_effect, set_by, at }
        };
        match &effective.source {
            SetIn::Default => Some(source("RabbitMQ's default".to_owned(), None)),
            SetIn::Argument => match self.in_force.written.arguments.get(&argument) {
                Some(setting) => Some(Source { no_effect, ..self.said(shown, value, setting, "queue") }),
                // What nobody writes is what the retries, or topo's care for dead letters, set.
                None if self.in_force.retry.is_some() => Some(source("the strategy".to_owned(), None)),
                None => Some(source("topo: inspection must not lose a message".to_owned(), None)),
            },
            SetIn::Policy(name) => Some(source(format!("policy {name}"), self.in_policy(name, key))),
            // Operator policies are no part of a spec.
            SetIn::OperatorPolicy(_) => None,
        }
    }

    fn in_policy(&self, name: &PolicyName, key: &str) -> Option<super::Place> {
        let policy = self.context.spec.policies.get(name)?;
        Some(place(self.context.spec, policy.definition.get(key).map_or(policy.at, |it| it.key_at)))
    }
}

fn shown(schedule: &Schedule) -> (&'static str, String) {
    let time = |delay: i64| duration(delay).unwrap_or_default();
    match schedule {
        Schedule::Delays(delays) => ("delays", delays.iter().map(|delay| time(*delay)).collect::<Vec<_>>().join(", ")),
        Schedule::Backoff { initial, factor, max } => {
            let max = max.map_or_else(String::new, |max| format!(", at most {}", time(max)));
            ("backoff", format!("{}, then × {factor}{max}", time(*initial)))
        }
    }
}

fn dead_letter(value: &DeadLetter) -> String {
    let wiring = match value.wiring() {
        Some(Wiring::Policy) => ", by a policy",
        Some(Wiring::Arguments) | None => "",
    };
    match value {
        DeadLetter::Nowhere => "none".to_owned(),
        DeadLetter::Queue { name, .. } => format!("{name}{wiring}"),
        DeadLetter::Exchange { exchange, routing_key, .. } => {
            let key = routing_key.as_ref().map_or_else(String::new, |key| format!(" with key {key}"));
            match exchange.as_str() {
                "" => format!("the default exchange{key}{wiring}"),
                name => format!("exchange {name}{key}{wiring}"),
            }
        }
    }
}
