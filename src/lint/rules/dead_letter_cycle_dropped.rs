//! Dead letters that would come back to the queue where they died, without a rejection in between: the broker drops them
//! (`rabbit_dead_letter:detect_cycles`). Simulated, by TTLs alone; what cannot be told is not said.

use crate::lint::effective::EffectiveQueue;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ExchangeName, QueueName};
use crate::rabbitmq::routing::{Deaths, Message, Reason};
use crate::rabbitmq::{Routing, Source};
use crate::spec::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) static RULE: Rule = Rule {
    name: "dead-letter-cycle-dropped",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "the broker drops messages that return to a queue without a rejection",
    check,
    page: include_str!("dead_letter_cycle_dropped.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let settled = subject.settled();
    let by_name: BTreeMap<&QueueName, &EffectiveQueue<'_>> = settled.iter().map(|queue| (queue.name, queue)).collect();
    let mut findings = Vec::new();
    let mut ways: BTreeMap<&ExchangeName, Way> = BTreeMap::new();
    // A circle of several queues is found from each of them, and told once.
    let mut told: BTreeSet<BTreeSet<QueueName>> = BTreeSet::new();
    for queue in settled.iter().filter(|queue| queue.has_dead_letter_exchange()) {
        let [Some(to)] = routing.dead_lettering(queue.name) else { continue };
        let way = ways.entry(&to.exchange).or_insert_with(|| Way::of(&to.exchange, routing, &by_name));
        if !way.may_lead_back_to(queue.name) {
            continue;
        }
        for (reason, key) in deaths(queue) {
            let circles = subject.keys_at(queue.name).iter().cloned().map(Message::with).find_map(|message| {
                let mut walk = Walk { subject, routing, by_name: &by_name, home: queue.name };
                walk.circle(&message, queue.name, reason, &Deaths::default(), &mut Vec::new())
            });
            let Some(path) = circles else { continue };
            if told.insert(path.iter().cloned().chain([queue.name.clone()]).collect()) {
                findings.push(finding(subject, queue, reason, key, &path));
            }
        }
    }
    findings
}

/// How messages die in a queue with nobody's help, and the key that says so. The delivery limit that a broker has by
/// itself is left out: every retry by hand would be one finding more.
fn deaths(queue: &EffectiveQueue<'_>) -> Vec<(Reason, &'static str)> {
    let expired = queue.settings.get("message-ttl").map(|_| (Reason::Expired, "message-ttl"));
    let dropped = queue.limit().filter(|_| !queue.rejects()).map(|key| (Reason::Maxlen, key));
    let limited = queue.delivery_limit().filter(|(_, limit)| limit.source != Source::Default);
    expired.into_iter().chain(dropped).chain(limited.map(|_| (Reason::DeliveryLimit, "delivery-limit"))).collect()
}

/// Where an exchange leads, whatever the message: most dead letters stay where they come to, and need no simulation.
struct Way {
    /// `None` is anywhere.
    queues: Option<BTreeSet<QueueName>>,
    /// From one of them letters go on by themselves.
    goes_on: bool,
}

impl Way {
    fn of(exchange: &ExchangeName, routing: &Routing<'_>, by_name: &BTreeMap<&QueueName, &EffectiveQueue<'_>>) -> Self {
        let queues = routing.within_reach(exchange);
        let goes_on = queues.iter().flatten().any(|queue| by_name.get(queue).is_some_and(|it| goes_on_from(it)));
        Self { queues, goes_on }
    }

    fn may_lead_back_to(&self, queue: &QueueName) -> bool {
        self.goes_on || self.queues.as_ref().is_none_or(|queues| queues.contains(queue))
    }
}

/// Whether messages leave a queue with nobody's help: when their time is up.
fn goes_on_from(queue: &EffectiveQueue<'_>) -> bool {
    queue.settings.get("message-ttl").is_some()
}

/// The way of a dead letter, until it is home again.
struct Walk<'w, 'a> {
    subject: &'w Subject<'a>,
    routing: &'w Routing<'a>,
    by_name: &'w BTreeMap<&'a QueueName, &'w EffectiveQueue<'a>>,
    home: &'w QueueName,
}

impl Walk<'_, '_> {
    /// The queues on the way of a message back to where it died first, if it surely comes back and is dropped there.
    fn circle(
        &mut self,
        message: &Message,
        queue: &QueueName,
        reason: Reason,
        deaths: &Deaths,
        path: &mut Vec<QueueName>,
    ) -> Option<Vec<QueueName>> {
        let [Some(to)] = self.routing.dead_lettering(queue) else { return None };
        let letter = self.routing.as_dead_letter(message, queue, reason, to);
        let mut deaths = deaths.clone();
        deaths.record(queue, reason, self.subject.profile.version);
        for target in self.routing.route(&to.exchange, &letter).surely {
            if target == *self.home && deaths.is_cycle(&target) {
                return Some(path.clone());
            }
            let waits = self.by_name.get(&target).is_some_and(|it| goes_on_from(it));
            if waits && target != *self.home && !path.contains(&target) {
                path.push(target.clone());
                let found = self.circle(&letter, &target, Reason::Expired, &deaths, path);
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
    let dies = match reason {
        Reason::Expired => "expires here",
        Reason::Maxlen => "overflows here",
        Reason::DeliveryLimit => "exceeds the delivery limit here",
        Reason::Rejected => "is rejected here",
    };
    let way: Vec<String> = path.iter().map(|queue| format!("`{queue}`")).collect();
    let comes_back =
        if way.is_empty() { "returns immediately".to_owned() } else { format!("returns through {}", way.join(", ")) };
    let text = format!(
        "a message that {dies} {comes_back}, and the broker drops it as a cycle, because no consumer rejected it in between"
    );
    let hint = "route only rejected messages back; send the others to a dead-letter queue, or remove the setting";
    RULE.about(subject, queue, key, text).hint(hint)
}
