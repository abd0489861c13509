//! Finds the origin of each effective setting of a queue.

use super::document::SettingOrigin;
use super::{Describer, spec_line};
use crate::expand::Retry;
use crate::model::known_arguments::KnownArgument;
use crate::model::units::{duration, with_unit};
use crate::model::{ArgumentValue, Arguments, PolicyName, RecordId, RecordKind};
use crate::rabbitmq::{Effective, Source as SetIn, WIRING_KEYS};
use crate::spec::{DeadLetter, Location, RetrySpec, Schedule, SetBy, Setting, Wiring};

/// Formats the arguments of a binding on one line.
pub(super) fn format_arguments(arguments: &Arguments) -> String {
    ArgumentValue::Table(arguments.clone()).to_string()
}

impl Describer<'_, '_> {
    pub(super) fn settings(&self) -> Vec<SettingOrigin> {
        let declaration = self.queue.declaration;
        let mut all = Vec::new();
        if let Some(it) = &declaration.queue_type {
            all.push(self.declared_setting("type", it.value.to_string(), it, "queue"));
        }
        if let Some(retry) = &declaration.retry {
            self.add_retry_settings(retry, self.queue.retry, &mut all);
        }
        if let Some(it) = &declaration.dead_letter {
            let value = format_dead_letter(&it.value);
            all.push(self.declared_setting("deadLetter", value, it, "deadLetter"));
        }
        for (key, effective) in self.queue.effective.iter() {
            // Dead-lettering is already listed above, under its spec key.
            if !(WIRING_KEYS.contains(&key) && declaration.dead_letter.is_some()) {
                all.push(self.effective_setting(key, effective));
            }
        }
        all
    }

    /// Describes a setting in the spec. `default` is the key of the setting under `defaults`.
    fn declared_setting<T>(&self, key: &str, value: String, setting: &Setting<T>, default: &str) -> SettingOrigin {
        let set_by = match setting.set_by {
            SetBy::Itself => "the queue".to_owned(),
            SetBy::RetryPolicy => self.retry_policy_path(setting.at),
            SetBy::Defaults => format!("defaults.{default}"),
            SetBy::Vhost => "vhost.defaultQueueType".to_owned(),
        };
        SettingOrigin {
            key: key.to_owned(),
            value,
            no_effect: None,
            set_by,
            at: Some(spec_line(self.context.spec, setting.at)),
        }
    }

    /// Returns the path of the `retryPolicies` entry that sets the value on this line.
    fn retry_policy_path(&self, at: Location) -> String {
        let entry = self.context.spec.retry_policies.iter().find(|(_, policy)| policy.sets_value_at(at));
        format!("retryPolicies.{}", entry.map_or("", |(name, _)| name))
    }

    fn add_retry_settings(&self, retry: &RetrySpec, of: Option<&Retry>, all: &mut Vec<SettingOrigin>) {
        let count = &retry.max_retries;
        let mut number = self.declared_setting("maxRetries", count.value.to_string(), count, "maxRetries");
        if retry.schedule.as_ref().is_some_and(|schedule| schedule.at == count.at) {
            number.set_by = "the delays: one retry each".to_owned();
        }
        all.push(number);
        if let Some(schedule) = &retry.schedule {
            let (key, value) = format_schedule(&schedule.value);
            all.push(self.declared_setting(key, value, schedule, "retry"));
        }
        match (&retry.strategy, of) {
            (Some(strategy), _) => {
                all.push(self.declared_setting("strategy", strategy.value.to_string(), strategy, "retry"))
            }
            (None, Some(of)) => {
                let why = if retry.schedule.is_some() { "delays are set" } else { "a quorum queue counts deliveries" };
                let set_by = format!("topo: {why}");
                all.push(SettingOrigin {
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
            all.push(self.declared_setting("jitter", duration(jitter.value).unwrap_or_default(), jitter, "retry"));
        }
    }

    /// Describes an effective setting.
    fn effective_setting(&self, key: &str, effective: &Effective) -> SettingOrigin {
        let known = KnownArgument::of_policy_key(key);
        let argument = known.map_or_else(|| format!("x-{key}"), |known| known.name.to_owned());
        let spec_key = known.map_or(key, |known| known.key);
        let value = with_unit(&argument, &effective.value);
        let no_effect = known.and_then(|known| self.queue.effective.no_effect(known, &effective.value));
        let no_effect = no_effect.map(|why| why.to_string());
        let source = |set_by: String, at| {
            let (value, no_effect) = (value.clone(), no_effect.clone());
            SettingOrigin { key: spec_key.to_owned(), value, no_effect, set_by, at }
        };
        match &effective.source {
            SetIn::Default => source("RabbitMQ's default".to_owned(), None),
            SetIn::Argument => match self.queue.declaration.arguments.get(&argument) {
                Some(setting) => {
                    SettingOrigin { no_effect, ..self.declared_setting(spec_key, value, setting, "queue") }
                }
                // topo adds an argument either for the retry strategy or to protect dead-lettered messages.
                None if self.queue.retry.is_some() => source("the strategy".to_owned(), None),
                None => source("topo: inspections must not lose messages".to_owned(), None),
            },
            SetIn::Policy(name) => source(format!("policy {name}"), self.policy_line(name, key)),
            SetIn::OperatorPolicy(name) => {
                source(format!("operator policy {name}"), self.operator_policy_line(name, key))
            }
        }
    }

    /// Returns the spec line on which an operator policy sets a key.
    fn operator_policy_line(&self, name: &PolicyName, key: &str) -> Option<super::SpecLine> {
        let record = self.context.spec.records.get(&RecordId::named(RecordKind::OperatorPolicy, name.as_str()))?;
        Some(spec_line(self.context.spec, record.places.get(key).copied().unwrap_or(record.at)))
    }

    /// Returns the spec line on which a policy sets a key.
    fn policy_line(&self, name: &PolicyName, key: &str) -> Option<super::SpecLine> {
        let policy = self.context.spec.policies.get(name)?;
        Some(spec_line(self.context.spec, policy.definition.get(key).map_or(policy.at, |it| it.key_at)))
    }
}

fn format_schedule(schedule: &Schedule) -> (&'static str, String) {
    let time = |delay: i64| duration(delay).unwrap_or_default();
    match schedule {
        Schedule::Delays(delays) => ("delays", delays.iter().map(|delay| time(*delay)).collect::<Vec<_>>().join(", ")),
        Schedule::Backoff { initial, factor, max } => {
            let max = max.map_or_else(String::new, |max| format!(", at most {}", time(max)));
            ("backoff", format!("{}, then × {factor}{max}", time(*initial)))
        }
    }
}

fn format_dead_letter(value: &DeadLetter) -> String {
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
