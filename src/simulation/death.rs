//! Dead-letters messages.

use super::copy::Copy;
use super::outcome::{End, EventKind};
use super::part::RoutingPart;
use super::run::{DeadLetter, Run, Task};
use crate::model::QueueName;
use crate::rabbitmq::routing::{Keys, Reason};
use std::collections::BTreeSet;

/// The number of deaths after which a copy is considered to loop.
const MAX_DEATHS: u32 = 10_000;

impl Run<'_, '_, '_> {
    /// Dead-letters a copy. If no queue receives the copy, the broker drops it. With at-least-once dead-lettering, the
    /// copy stays in its queue instead.
    pub(super) fn dead_letter(&mut self, queue: &QueueName, mut copy: Copy, reason: Reason) {
        let simulation = self.simulation;
        let Some(settings) = simulation.settings.get(queue) else { return };
        let event = |exchange, queues| EventKind::DeadLettered { queue: queue.clone(), reason, exchange, queues };
        let Some(to) = settings.dead_lettering().filter(|_| !simulation.drops(queue, reason)) else {
            self.record_event(copy.message, event(None, BTreeSet::new()));
            self.record_end(queue, copy, End::Dropped);
            return;
        };
        if simulation.is_recording {
            self.outcome.taken.insert(RoutingPart::DeadLettering(queue.clone(), reason));
        }
        let before = copy.clone();
        copy.forget_foreign_deaths();
        let message = simulation.routing.to_dead_lettered(&copy.as_message(), queue, reason, &to);
        let mut queues = self.route(&to.exchange, &message);
        copy.add_death(queue, reason, simulation.profile.version);
        copy.history.record(queue, reason, simulation.profile.version);
        queues.retain(|target| !copy.history.is_cycle(target));
        self.record_event(copy.message, event(Some(to.exchange.clone()), queues.clone()));
        let is_kept = settings.is_at_least_once();
        if queues.is_empty() {
            // A queue with at-least-once dead-lettering keeps the message, and does not deliver it again.
            if is_kept {
                self.record_stay(queue, before)
            } else {
                self.record_end(queue, before, End::Dropped)
            }
            return;
        }
        copy.headers = message.headers;
        copy.more_keys = message.more_keys;
        copy.exchange = to.exchange;
        if let Keys::One(key) = message.keys {
            copy.routing_key = key;
        }
        copy.expiration = None;
        copy.total_deaths += 1;
        if copy.total_deaths > MAX_DEATHS {
            self.record_end(queue, copy, End::Loops);
            return;
        }
        for target in queues {
            let (source, before, copy) = (queue.clone(), before.clone(), copy.clone());
            let dead_letter = DeadLetter { source, before, is_kept, target, copy };
            self.tasks.push_back(Task::Arrive(Box::new(dead_letter)));
        }
    }
}
