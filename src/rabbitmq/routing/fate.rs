//! Simulates the fate of dead-lettered messages: they arrive in queues, or the broker drops them. `lint`, `explain`, `contract`
//! and `graph` all use this simulation.

use super::keys::Certainty;
use super::message::Message;
use super::{Arrivals, DeadLettering, Keys, Reason, Route, Routing};
use crate::model::{QueueName, Reach};
use std::collections::BTreeSet;

/// The queues in which the dead-lettered messages of a queue arrive. Messages that are dead-lettered again are not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The certainty that they arrive in any queue.
    pub reach: Reach,
    /// The queues that get all of them.
    pub queues: BTreeSet<QueueName>,
    /// Other queues, which get some of them or none.
    pub possible: BTreeSet<QueueName>,
    /// The routing keys with which the broker drops a message, regardless of the reason.
    pub lost: Vec<Keys>,
}

/// The combined fate of several messages.
#[derive(Default)]
struct Sum {
    queues: Option<BTreeSet<QueueName>>,
    possible: BTreeSet<QueueName>,
    reach: Option<Reach>,
}

impl Sum {
    fn add(&mut self, reach: Certainty, certain_queues: BTreeSet<QueueName>, possible_queues: BTreeSet<QueueName>) {
        let reach = match reach {
            Certainty::Always => Reach::Always,
            Certainty::Perhaps => Reach::Maybe,
            Certainty::Never => Reach::Never,
        };
        self.reach = Some(match self.reach {
            Some(known) if known != reach => Reach::Maybe,
            Some(_) | None => reach,
        });
        self.possible.extend(certain_queues.iter().cloned().chain(possible_queues));
        self.queues = Some(match self.queues.take() {
            Some(known) => known.intersection(&certain_queues).cloned().collect(),
            None => certain_queues,
        });
    }
}

impl Routing<'_> {
    /// Returns the fate of the messages that a queue and its retries dead-letter; `None` if the queue has no dead-letter exchange.
    pub fn fate(&self, queue: &QueueName, arrivals: &Arrivals) -> Option<Fate> {
        let has_any = self.dead_lettering(queue).iter().any(Option::is_some);
        let version = self.profile.version;
        has_any.then(|| self.fate_with(queue, |to, reason| arrivals.leaving(queue, to, reason, version)))
    }

    /// Returns the fate of the messages that a queue dead-letters with other routing keys.
    pub fn fate_with(&self, queue: &QueueName, keys: impl Fn(&DeadLettering, Reason) -> BTreeSet<Keys>) -> Fate {
        let mut sum = Sum::default();
        let (mut lost, mut kept) = (BTreeSet::new(), BTreeSet::new());
        for target in self.dead_lettering(queue) {
            let Some(to) = target else {
                sum.add(Certainty::Never, BTreeSet::new(), BTreeSet::new());
                continue;
            };
            for reason in Reason::ALL {
                for keys in keys(to, reason) {
                    let message = self.to_dead_lettered(&Message::with(keys.clone()), queue, reason, to);
                    let mut route = self.route(&to.exchange, &message);
                    if route.reaches == Certainty::Never { &mut lost } else { &mut kept }.insert(keys);
                    if reason != Reason::Rejected {
                        drop_cycle(&mut route, queue);
                    }
                    sum.add(route.reaches, route.certain_queues, route.possible_queues);
                }
            }
        }
        let queues = sum.queues.unwrap_or_default();
        let possible = sum.possible.difference(&queues).cloned().collect();
        let lost = lost.difference(&kept).cloned().collect();
        Fate { reach: sum.reach.unwrap_or(Reach::Never), queues, possible, lost }
    }
}

/// Removes a queue from the route of its own dead-lettered message: the broker drops a message that returns, unless a consumer
/// rejected it.
fn drop_cycle(route: &mut Route, queue: &QueueName) {
    if !route.certain_queues.remove(queue) && !route.possible_queues.remove(queue) {
        return;
    }
    route.reaches = match (route.certain_queues.is_empty(), route.possible_queues.is_empty() && route.unclear.is_none())
    {
        (false, _) => route.reaches,
        (true, true) => Certainty::Never,
        (true, false) => Certainty::Perhaps,
    };
}
