//! Reports messages that return, without a rejection, to the queue that dead-lettered them. The broker drops such
//! messages (`rabbit_dead_letter:detect_cycles`). The rule simulates the routes through queues with a TTL, and does not
//! report uncertain routes.

use crate::lint::effective::EffectiveQueue;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ExchangeName, QueueName};
use crate::rabbitmq::routing::{DeathHistory, Message, Reason};
use crate::rabbitmq::{Routing, Source};
use crate::spec::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) static RULE: Rule = Rule {
    name: "dead-letter-cycle-dropped",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the broker drops messages that return to a queue without a rejection",
    check,
    page: include_str!("dead_letter_cycle_dropped.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let effective_queues = subject.effective_queues();
    let by_name: BTreeMap<&QueueName, &EffectiveQueue<'_>> =
        effective_queues.iter().map(|queue| (queue.name, queue)).collect();
    let mut findings = Vec::new();
    let mut reaches: BTreeMap<&ExchangeName, Reach> = BTreeMap::new();
    // The search finds a cycle of several queues once for each queue in it, but the rule reports the cycle only once.
    let mut reported: BTreeSet<BTreeSet<QueueName>> = BTreeSet::new();
    for queue in effective_queues.iter().filter(|queue| queue.has_dead_letter_exchange()) {
        let [Some(to)] = routing.dead_lettering(queue.name) else { continue };
        let reach = reaches.entry(&to.exchange).or_insert_with(|| Reach::of(&to.exchange, routing, &by_name));
        if !reach.can_return_to(queue.name) {
            continue;
        }
        for (reason, key) in reasons(queue) {
            let cycle = subject.keys_at(queue.name).iter().cloned().map(Message::with).find_map(|message| {
                let mut search = CycleSearch { subject, routing, by_name: &by_name, start: queue.name };
                search.cycle(&message, queue.name, reason, &DeathHistory::default(), &mut Vec::new())
            });
            let Some(path) = cycle else { continue };
            if reported.insert(path.iter().cloned().chain([queue.name.clone()]).collect()) {
                findings.push(finding(subject, queue, reason, key, &path));
            }
        }
    }
    findings
}

/// Returns the reasons, other than a rejection, why a queue dead-letters messages, each with the policy key of the
/// setting that causes it. Ignores the default delivery limit, which would cause a finding for every hand-written retry
/// loop.
fn reasons(queue: &EffectiveQueue<'_>) -> Vec<(Reason, &'static str)> {
    let expired = queue.settings.get("message-ttl").map(|_| (Reason::Expired, "message-ttl"));
    let dropped = queue.length_limit_key().filter(|_| !queue.rejects_when_full()).map(|key| (Reason::Maxlen, key));
    let limited = queue.delivery_limit().filter(|(_, limit)| limit.source != Source::Default);
    expired.into_iter().chain(dropped).chain(limited.map(|_| (Reason::DeliveryLimit, "delivery-limit"))).collect()
}

/// The queues to which an exchange can route messages. Most dead-lettered messages stay in the first queue and require
/// no simulation.
struct Reach {
    /// The queues; `None` if the exchange can route to any queue.
    queues: Option<BTreeSet<QueueName>>,
    /// True if messages can expire in one of the queues.
    has_ttl: bool,
}

impl Reach {
    fn of(exchange: &ExchangeName, routing: &Routing<'_>, by_name: &BTreeMap<&QueueName, &EffectiveQueue<'_>>) -> Self {
        let queues = routing.reachable(exchange);
        let has_ttl = queues.iter().flatten().any(|queue| by_name.get(queue).is_some_and(|it| has_ttl(it)));
        Self { queues, has_ttl }
    }

    /// Returns true if a message may return to a queue, which requires a simulation.
    fn can_return_to(&self, queue: &QueueName) -> bool {
        self.has_ttl || self.queues.as_ref().is_none_or(|queues| queues.contains(queue))
    }
}

/// Returns true if a queue has a message TTL, so that messages leave the queue when they expire.
fn has_ttl(queue: &EffectiveQueue<'_>) -> bool {
    queue.settings.get("message-ttl").is_some()
}

/// The search for a route on which a dead-lettered message returns to its first queue.
struct CycleSearch<'w, 'a> {
    subject: &'w Subject<'a>,
    routing: &'w Routing<'a>,
    by_name: &'w BTreeMap<&'a QueueName, &'w EffectiveQueue<'a>>,
    start: &'w QueueName,
}

impl CycleSearch<'_, '_> {
    /// Returns the queues through which a message returns to `start`, without `start` itself. Returns `None` unless the
    /// message is certain to return and the broker drops it there.
    fn cycle(
        &mut self,
        message: &Message,
        queue: &QueueName,
        reason: Reason,
        deaths: &DeathHistory,
        path: &mut Vec<QueueName>,
    ) -> Option<Vec<QueueName>> {
        let [Some(to)] = self.routing.dead_lettering(queue) else { return None };
        let dead_lettered = self.routing.to_dead_lettered(message, queue, reason, to);
        let mut deaths = deaths.clone();
        deaths.record(queue, reason, self.subject.profile.version);
        for target in self.routing.route(&to.exchange, &dead_lettered).certain_queues {
            if target == *self.start && deaths.is_cycle(&target) {
                return Some(path.clone());
            }
            let waits = self.by_name.get(&target).is_some_and(|it| has_ttl(it));
            if waits && target != *self.start && !path.contains(&target) {
                path.push(target.clone());
                let found = self.cycle(&dead_lettered, &target, Reason::Expired, &deaths, path);
                if found.is_some() {
                    return found;
                }
                path.pop();
            }
        }
        None
    }
}

fn finding(
    subject: &Subject<'_>,
    queue: &EffectiveQueue<'_>,
    reason: Reason,
    key: &str,
    path: &[QueueName],
) -> Finding {
    let cause = match reason {
        Reason::Expired => "expires here",
        Reason::Maxlen => "overflows here",
        Reason::DeliveryLimit => "exceeds the delivery limit here",
        Reason::Rejected => "is rejected here",
    };
    let through: Vec<String> = path.iter().map(|queue| format!("`{queue}`")).collect();
    let returns = match through.is_empty() {
        true => "returns immediately".to_owned(),
        false => format!("returns through {}", through.join(", ")),
    };
    let text = format!(
        "a message that {cause} {returns}, and the broker drops it as a cycle, because no consumer has rejected it"
    );
    let hint = "route only rejected messages back; send other messages to a dead-letter queue, or remove the setting";
    RULE.effective_finding(subject, queue, key, text).hint(hint)
}
