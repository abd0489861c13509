//! Lists the states of a message that always fails, in order.

use super::document::{State, Step};
use super::{Describer, time};
use crate::contract::Wait;
use crate::contract::document::{Answer, Contract};
use crate::expand::{Republish, Retry, Tiers};
use crate::model::{Destination, QueueName, QueueType};

/// The maximum number of attempts that are listed one by one.
const MAX_ATTEMPTS: u32 = 12;
/// The number of attempts that are listed before the abbreviated attempts.
const BEFORE: u32 = 4;
/// The number of attempts that are listed after the abbreviated attempts.
const AFTER: u32 = 2;

impl Describer<'_, '_> {
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = vec![self.published_step()];
        match &self.contract {
            Some(contract) if !self.is_dead_letter_queue() => self.add_attempts(contract, &mut steps),
            Some(_) | None => {
                let state = State::Kept { until: self.kept_until() };
                steps.push(Step { state, after: None, then: String::new() });
            }
        }
        steps
    }

    fn published_step(&self) -> Step {
        let into = Destination::Queue(self.queue.name.clone());
        let bindings = self.context.expansion.topology.bindings.iter().filter(|binding| binding.destination == into);
        let is_own_return_exchange = |name: &str| {
            self.queue.retry.is_some() && name == crate::model::naming::return_exchange(self.queue.name).as_str()
        };
        let mut ways_in: Vec<String> = bindings
            .filter(|binding| !is_own_return_exchange(binding.source.as_str()))
            .map(|binding| match (binding.routing_key.as_str(), binding.arguments.is_empty()) {
                ("", true) => binding.source.to_string(),
                (key, true) => format!("{} with {key}", binding.source),
                (_, false) => {
                    format!("{} with {}", binding.source, super::settings::format_arguments(&binding.arguments))
                }
            })
            .collect();
        if ways_in.is_empty() {
            ways_in.push(format!("the default exchange with {}", self.queue.name));
        }
        Step { state: State::Published { ways_in }, after: None, then: String::new() }
    }

    /// Describes when a message leaves a dead-letter queue or a stream.
    fn kept_until(&self) -> String {
        if self.queue.queue_type == QueueType::Stream {
            return match (self.queue.effective.get("max-age"), self.queue.number("max-length-bytes")) {
                (None, None) => "indefinitely: reading does not remove it, and no limit is set".to_owned(),
                (_, _) => "until its segment exceeds the age limit or the stream exceeds its size limit".to_owned(),
            };
        }
        match self.queue.number("message-ttl") {
            Some(ttl) => format!("until it is consumed, for at most {}", time(ttl)),
            None => "until it is consumed".to_owned(),
        }
    }

    fn add_attempts(&self, contract: &Contract, steps: &mut Vec<Step>) {
        let last = contract.deliveries;
        let is_cut = last > MAX_ATTEMPTS;
        let delays = self.queue.retry.map_or(&[][..], Retry::delays);
        let mut elapsed = 0_i64;
        let mut number = 1;
        while number <= last {
            let retry = usize::try_from(number).unwrap_or(usize::MAX);
            let after = self.is_time_known(number).then(|| Wait::of(elapsed));
            if is_cut && number == BEFORE + 1 {
                let to = last - AFTER;
                steps.push(Step { state: State::Attempts { from: number, to }, after, then: String::new() });
                let skipped = delays.iter().take(usize::try_from(to).unwrap_or(usize::MAX)).skip(retry - 1);
                elapsed = skipped.fold(elapsed, |sum, delay| sum.saturating_add(*delay));
                number = to + 1;
                continue;
            }
            let then = self.after_attempt(contract, number);
            steps.push(Step { state: State::Attempt { number }, after, then });
            if let Some(delay) = delays.get(retry - 1).filter(|_| number < last) {
                let is_before_cut = is_cut && number == BEFORE;
                if !is_before_cut {
                    steps.push(self.waiting_step(retry, *delay, elapsed));
                }
                elapsed = elapsed.saturating_add(*delay);
            }
            number += 1;
        }
        let state = match self.dead_letter_destination() {
            Some(place) => {
                let queues = self.queue.reachable_dead_letters().map(|to| to.queues.iter().cloned().collect());
                State::DeadLetter { place, queues: queues.unwrap_or_default() }
            }
            None if self.queue.dead_letters.is_some() && self.queue.keeps_unroutable_messages() => {
                State::Kept { until: "until a queue is bound that can receive it".to_owned() }
            }
            None => State::Dropped,
        };
        let after = self.is_time_known(last).then(|| Wait::of(elapsed));
        steps.push(Step { state, after, then: String::new() });
    }

    /// Returns true if the time of an attempt is known. If the worker republishes to the back of the queue, a retry has
    /// to wait for all earlier messages, so its time is unknown.
    fn is_time_known(&self, number: u32) -> bool {
        !matches!(self.queue.retry, Some(Retry::Republish(Republish { tiers: None, .. }))) || number == 1
    }

    /// Describes the transition after an attempt.
    fn after_attempt(&self, contract: &Contract, number: u32) -> String {
        let is_last = number == contract.deliveries;
        let is_counted_by_worker = matches!(self.queue.retry, Some(Retry::Republish(_)));
        let answer = if is_last && is_counted_by_worker { &contract.on_give_up } else { &contract.on_failure };
        let reaction = reaction(answer, number);
        let limit = match self.queue.retry {
            Some(Retry::Redeliver(_) | Retry::Delayed(_)) if is_last => " (delivery limit reached)",
            Some(_) | None => "",
        };
        let by = match &self.queue.dead_letters {
            Some(dead_letters) if is_last && !dead_letters.exchange.as_str().is_empty() => {
                format!(" → exchange {}", dead_letters.exchange)
            }
            Some(_) | None => String::new(),
        };
        format!("{reaction}{limit}{by}")
    }

    fn waiting_step(&self, retry: usize, delay: i64, elapsed: i64) -> Step {
        let tier = |tiers: &Tiers| -> Option<QueueName> {
            tiers.names().find(|(number, _)| usize::try_from(*number) == Ok(retry)).map(|(_, name)| name)
        };
        let queue = match self.queue.retry {
            Some(Retry::Ladder(ladder)) => tier(&ladder.tiers),
            Some(Retry::Republish(republish)) => republish.tiers.as_ref().and_then(tier),
            Some(Retry::Redeliver(_) | Retry::Delayed(_)) | None => None,
        };
        let then = match (&queue, u32::try_from(retry)) {
            (Some(_), Ok(number)) => {
                let queue = self.queue.name;
                let key = crate::model::naming::retry_key(queue, number);
                format!("returns through {} with key {key}", crate::model::naming::return_exchange(queue))
            }
            (_, _) => String::new(),
        };
        let state = State::Waiting { queue, wait: Wait::of(delay) };
        Step { state, after: Some(Wait::of(elapsed)), then }
    }
}

/// Describes how a worker reacts when attempt `number` fails.
fn reaction(answer: &Answer, number: u32) -> String {
    let flag = answer.requeue.map_or_else(String::new, |flag| format!(" requeue={flag}"));
    let method = format!("{}{flag}", answer.method.as_str());
    let Some(publish) = &answer.publish else { return method };
    let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let key = publish.routing_keys.get(index).or(publish.routing_keys.last()).map_or("", String::as_str);
    let exchange = match publish.exchange.as_str() {
        "" => "the default exchange",
        name => name,
    };
    format!("publish to {exchange} with key {key}, {method}")
}
