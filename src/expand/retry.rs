//! Selects the retry strategy of each queue and adds the generated objects to the topology. Reports an error if the
//! selected strategy does not work for the queue.

use super::Expander;
use super::case::{Case, FinalTarget, Refusal};
use super::ladder::Ladder;
use super::origin::CreatedFor;
use super::strategies::{Delayed, Redeliver, Republish};
use super::tiers::Objects;
use crate::model::names::MAX_NAME_BYTES;
use crate::model::units::duration;
use crate::model::{Arguments, Family, ObjectId, QueueName, QueueType, Strategy, naming};
use crate::rabbitmq::{BrokerProfile, Policies};
use crate::spec::{Diagnostic, Location, RetrySpec};
use std::fmt;

#[cfg(test)]
mod tests;

/// The maximum number of stops in a path that is not shortened.
const MAX_SHOWN_STOPS: usize = 10;

/// The retries of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The broker counts the attempts and delays the message in tier queues.
    Ladder(Ladder),
    /// The worker counts the attempts and republishes the message.
    Republish(Republish),
    /// The broker counts the attempts and redelivers the message immediately.
    Redeliver(Redeliver),
    /// The broker counts the attempts and delays the message in the queue itself.
    Delayed(Delayed),
}

impl Retry {
    /// Creates the retries for a strategy, or returns the reason why the strategy does not work for the queue.
    fn with(strategy: Strategy, case: &Case<'_>) -> Result<Self, Refusal> {
        match strategy {
            Strategy::Ladder => Ladder::of(case).map(Self::Ladder),
            Strategy::Republish => Republish::of(case).map(Self::Republish),
            Strategy::Redeliver => Redeliver::of(case).map(Self::Redeliver),
            Strategy::Delayed => Delayed::of(case).map(Self::Delayed),
        }
    }

    /// Creates the retries for the explicit strategy, or for the default strategy of the queue. Returns `None` if there
    /// are no retries and the strategy sets no arguments.
    fn of(case: &Case<'_>) -> Result<Option<Self>, Box<Diagnostic>> {
        let retry = case.retry;
        let explicit = retry.strategy.as_ref().map(|it| it.value);
        let has_no_retries = retry.max_retries.value == 0;
        let strategy = match (explicit, &retry.schedule, case.queue_type.value) {
            // No objects are needed, because a rejected message is dead-lettered immediately.
            (None | Some(Strategy::Ladder | Strategy::Republish), _, _) if has_no_retries => return Ok(None),
            (Some(strategy), _, _) => strategy,
            (None, Some(_), _) => Strategy::Ladder,
            (None, None, QueueType::Quorum) => Strategy::Redeliver,
            (None, None, QueueType::Classic | QueueType::Stream) => return Err(Box::new(no_strategy(case))),
        };
        Self::with(strategy, case).map(Some).map_err(|refusal| with_alternatives(refusal, case))
    }

    /// Returns the retry strategy.
    pub fn strategy(&self) -> Strategy {
        match self {
            Self::Ladder(_) => Strategy::Ladder,
            Self::Republish(_) => Strategy::Republish,
            Self::Redeliver(_) => Strategy::Redeliver,
            Self::Delayed(_) => Strategy::Delayed,
        }
    }

    /// Returns the queue whose messages are retried.
    pub fn queue(&self) -> &QueueName {
        match self {
            Self::Ladder(it) => &it.tiers.queue,
            Self::Republish(it) => &it.queue,
            Self::Redeliver(it) => &it.queue,
            Self::Delayed(it) => &it.queue,
        }
    }

    /// Returns the number of retries after the first attempt.
    pub fn retries(&self) -> u32 {
        match self {
            Self::Ladder(it) => it.tiers.last(),
            Self::Republish(it) => it.retries,
            Self::Redeliver(it) => it.retries,
            Self::Delayed(it) => it.retries(),
        }
    }

    /// Returns the delay of each retry, in milliseconds. Returns an empty slice if retries have no delays.
    pub fn delays(&self) -> &[i64] {
        match self {
            Self::Ladder(it) => &it.tiers.delays,
            Self::Republish(it) => it.tiers.as_ref().map_or(&[], |tiers| &tiers.delays),
            Self::Redeliver(_) => &[],
            Self::Delayed(it) => &it.delays,
        }
    }

    /// Returns the final target of messages that have no retries left. Returns `None` if the broker drops the messages.
    pub fn final_target(&self) -> Option<&FinalTarget> {
        match self {
            Self::Ladder(it) => Some(&it.end),
            Self::Republish(it) => it.end.as_ref(),
            Self::Redeliver(it) => it.end.as_ref(),
            Self::Delayed(it) => it.end.as_ref(),
        }
    }

    /// Returns the objects that the retries need in addition to the queue.
    pub fn objects(&self, profile: &BrokerProfile) -> Objects {
        match self {
            Self::Ladder(it) => it.objects(profile),
            Self::Republish(it) => it.objects(profile),
            Self::Redeliver(_) | Self::Delayed(_) => Objects::default(),
        }
    }

    /// Returns the queue arguments that the strategy adds. The dead-letter exchange is not included.
    pub fn arguments(&self) -> Arguments {
        match self {
            Self::Ladder(_) | Self::Republish(_) => Arguments::new(),
            Self::Redeliver(it) => it.arguments(),
            Self::Delayed(it) => it.arguments(),
        }
    }

    /// Describes the path of a message that always fails, starting after its first attempt: `5s → 30s → orders.dead`.
    fn path(&self) -> String {
        let mut stops: Vec<(String, usize)> = Vec::new();
        let waits = self.delays().iter().filter_map(|delay| duration(*delay));
        for wait in waits {
            match stops.last_mut() {
                Some((last, times)) if *last == wait => *times += 1,
                Some(_) | None => stops.push((wait, 1)),
            }
        }
        let times = usize::try_from(self.retries()).unwrap_or(usize::MAX);
        if stops.is_empty() && times > 0 {
            let stop = match self {
                Self::Republish(_) => "to the back",
                Self::Ladder(_) | Self::Redeliver(_) | Self::Delayed(_) => "immediate",
            };
            stops.push((stop.to_owned(), times));
        }
        let mut shown: Vec<String> = stops
            .iter()
            .map(|(stop, times)| if *times == 1 { stop.clone() } else { format!("{stop} ×{times}") })
            .collect();
        if shown.len() > MAX_SHOWN_STOPS {
            let last = shown.len() - 1;
            shown.splice(MAX_SHOWN_STOPS / 2..last, ["…".to_owned()]);
        }
        shown.push(self.final_target().map_or_else(|| "dropped".to_owned(), |end| end.description.clone()));
        shown.join(" → ")
    }
}

/// Formats the path with the queue: `orders.work → 5s → 30s → orders.dead`.
impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.queue(), self.path())
    }
}

/// Creates the error for a queue that sets `maxRetries` without delays or a strategy, and does not count deliveries.
/// `republish` is not the default strategy for such a queue, because only the worker would enforce the limit.
fn no_strategy(case: &Case<'_>) -> Diagnostic {
    let message =
        format!("`maxRetries` alone is not enough for classic queue `{}`, which does not count deliveries", case.name);
    let hint = "add delays to let the broker count attempts: `retry: {delays: [5s, 30s]}`; use \
                `retry: {strategy: republish}` to let the workers count attempts; or use `type: quorum`";
    let diagnostic = Diagnostic::error("retry-strategy", message, case.retry.max_retries.at);
    diagnostic.also(case.queue_type.at, "the type is set here").hint(hint)
}

/// Adds a hint that lists the strategies that would work, if a different strategy can avoid the refusal.
fn with_alternatives(refusal: Refusal, case: &Case<'_>) -> Box<Diagnostic> {
    let Refusal { diagnostic, is_strategy_specific } = refusal;
    if !is_strategy_specific {
        return diagnostic;
    }
    let working = |with: &RetrySpec| -> Vec<Strategy> {
        let case = Case { retry: with, ..*case };
        Strategy::ALL.into_iter().filter(|other| Retry::with(*other, &case).is_ok()).collect()
    };
    let unchanged = working(case.retry);
    let format_strategies = |strategies: &[Strategy]| {
        let words: Vec<String> = strategies.iter().map(|it| format!("`strategy: {it}`")).collect();
        words.join(" or ")
    };
    if !unchanged.is_empty() {
        return Box::new(diagnostic.hint(format!("use {}", format_strategies(&unchanged))));
    }
    // Without delays, even the same strategy can work.
    let without_delays = working(&RetrySpec { schedule: None, jitter: None, ..case.retry.clone() });
    let hint = format!("remove the delays and use {}", format_strategies(&without_delays));
    Box::new(diagnostic.maybe_hint((!without_delays.is_empty()).then_some(hint)))
}

impl Expander<'_> {
    /// Selects the strategy of each queue. Runs before queues are created, because the strategy can set queue
    /// arguments.
    pub(super) fn decide_retries(&mut self) {
        let spec = self.spec;
        let declared = self.topology.policies.clone();
        let policies = Policies::new(&declared, self.profile.version);
        for (name, queue) in &spec.queues {
            let Some((retry, queue_type)) = queue.retry.as_ref().zip(queue.queue_type.as_ref()) else { continue };
            let final_target = self.final_target(queue);
            let possible_settings = &self.possible_settings(name, queue, &policies);
            let (profile, policies) = (self.profile, &spec.policies);
            let final_target = final_target.as_ref();
            let case = Case { name, queue, queue_type, retry, final_target, profile, possible_settings, policies };
            match Retry::of(&case) {
                Ok(Some(retry)) => {
                    self.retries.insert(name.clone(), (case.at(), retry));
                }
                Ok(None) => {}
                Err(diagnostic) => self.diagnostics.push(*diagnostic),
            }
        }
    }

    /// Creates the objects that the retries need.
    pub(super) fn create_retries(&mut self) {
        let retries = std::mem::take(&mut self.retries);
        for (name, (at, retry)) in &retries {
            let objects = retry.objects(self.profile);
            self.scope.families.push(Family {
                queue: name.clone(),
                strategy: retry.strategy(),
                retries: retry.retries(),
                path: retry.path(),
                members: objects.ids(),
            });
            if self.check_name_lengths(name, &objects, *at) {
                self.add_generated(name, objects, *at);
            }
        }
        self.retries = retries;
    }

    /// Returns true if no generated name is too long. Otherwise, reports one error for all generated names of the
    /// queue.
    fn check_name_lengths(&mut self, queue: &QueueName, objects: &Objects, at: Location) -> bool {
        let ids = objects.ids();
        let longest = ids.iter().filter_map(ObjectId::name).max_by_key(|name| name.len()).unwrap_or_default();
        if longest.len() <= MAX_NAME_BYTES {
            return true;
        }
        let suffix = longest.strip_prefix(queue.as_str()).unwrap_or(longest);
        let message = format!(
            "the name of queue `{queue}` is too long for retries: with the suffix `{suffix}` it exceeds 255 bytes"
        );
        let diagnostic = Diagnostic::error("generated-name", message, at);
        let max = MAX_NAME_BYTES - suffix.len();
        self.diagnostics.push(diagnostic.hint(format!("use a name of at most {max} bytes")));
        false
    }

    fn add_generated(&mut self, queue: &QueueName, objects: Objects, at: Location) {
        let because = || CreatedFor::Retry(queue.clone());
        for (name, exchange) in objects.exchanges {
            self.add_generated_exchange(name, exchange, at, because());
        }
        for (name, tier) in objects.queues {
            let id = ObjectId::Queue(name.clone());
            if self.can_generate(&id, name.as_str(), at) {
                self.record_origin(id, at, because());
                self.topology.queues.insert(name, tier);
            }
        }
        for binding in objects.bindings {
            // If the spec also declares this binding, the declaration remains its origin.
            if self.topology.bindings.insert(binding.clone()) {
                self.record_origin(ObjectId::Binding(binding), at, because());
            }
        }
        self.scope.optional.extend(objects.optional);
    }

    /// Returns the guard exchange of a queue. Returns `None` if the queue has no ladder.
    pub(super) fn guard_exchange(&self, queue: &QueueName) -> Option<crate::model::ExchangeName> {
        match self.retries.get(queue) {
            Some((_, Retry::Ladder(_))) => Some(naming::guard_exchange(queue)),
            Some((_, Retry::Republish(_) | Retry::Redeliver(_) | Retry::Delayed(_))) | None => None,
        }
    }
}
