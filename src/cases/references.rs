//! Checks the names in a file's cases against the topology.

use super::case::{Case, TestFile};
use super::subject::Subject;
use crate::model::{ExchangeName, QueueName};
use crate::rabbitmq::routing::{Keys, Kind};
use crate::simulation::{Behavior, Worker};
use crate::spec::{Diagnostic, Diagnostics, Location, Severity, closest};

/// Checks those cases in a file that apply to the subject's version. Reports names that the topology does not contain,
/// messages that are published to internal exchanges, and expected attempts without a worker. Reports `fail` and
/// `giveUp` for a queue without a contract. Warns about routing keys that look like patterns. If `knows_external` is
/// true, the cases run in a topology that contains the external objects.
pub fn check(file: &TestFile, subject: &Subject<'_>, knows_external: bool) -> Diagnostics {
    let mut checker = Checker { subject, knows_external, diagnostics: Diagnostics::new() };
    let version = subject.profile.version;
    for case in file.cases.iter().filter(|case| case.only.is_none_or(|only| only.is_met_by(version))) {
        checker.check_case(case);
    }
    checker.diagnostics
}

struct Checker<'s, 'a> {
    subject: &'s Subject<'a>,
    knows_external: bool,
    diagnostics: Diagnostics,
}

impl Checker<'_, '_> {
    fn check_case(&mut self, case: &Case) {
        let publication = &case.publication;
        match publication.value.exchange.as_str() {
            "" => self.check_queue(&QueueName::new(publication.value.routing_key.as_str()), publication.at),
            _ => self.check_exchange(&publication.value.exchange, publication.at),
        }
        self.warn_about_pattern(case);
        for (queue, (worker, at)) in &case.workers {
            self.check_queue(queue, *at);
            self.check_worker(queue, worker, *at);
        }
        let expected = &case.expected;
        for queues in [&expected.to, &expected.reaches, &expected.never].into_iter().flatten() {
            queues.value.iter().for_each(|(queue, at)| self.check_queue(queue, *at));
        }
        for (queue, attempts) in &expected.attempts {
            self.check_queue(queue, attempts.at);
            if !case.workers.contains_key(queue) {
                let message = format!("queue `{queue}` has no worker in this case, so it delivers no message");
                self.report(message, attempts.at, format!("add `workers: {{{queue}: ack}}`"));
            }
        }
        if let Some(ends) = &expected.ends {
            ends.value.iter().for_each(|(queue, end)| self.check_queue(queue, end.at));
        }
        if let Some(dead_lettered) = &expected.dead_lettered {
            dead_lettered.value.deaths.iter().for_each(|death| self.check_queue(&death.queue, dead_lettered.at));
        }
    }

    /// Warns if a routing key of a published message looks like a pattern. Only bindings have patterns.
    fn warn_about_pattern(&mut self, case: &Case) {
        let publication = &case.publication.value;
        let is_topic = self.subject.routing.kind(&publication.exchange) == Some(Kind::Topic);
        let message = publication.message();
        let mut keys = std::iter::once(publication.routing_key.as_str()).chain(message.more_keys.keys());
        if is_topic && let Some(key) = keys.find(|key| Keys::is_pattern(key)) {
            let message = format!("the routing key `{key}` of a published message is not a pattern");
            let hint = "publish a key that a binding matches, such as `order.created`";
            let warning = Diagnostic::error("pattern-published", message, case.at).hint(hint);
            self.diagnostics.push(Diagnostic { severity: Severity::Warning, ..warning });
        }
    }

    fn report(&mut self, message: String, at: Location, hint: String) {
        self.diagnostics.push(Diagnostic::error("unknown-name", message, at).hint(hint));
    }

    fn check_queue(&mut self, queue: &QueueName, at: Location) {
        let topology = self.subject.routing.topology();
        let is_known = self.knows_external && self.subject.is_external_queue(queue);
        if is_known || topology.queues.contains_key(queue) {
            return;
        }
        if self.subject.is_external_queue(queue) {
            let hint = format!(
                "add a stand-in to the test file, such as `standIns: {{queues: {{{queue}: {{type: classic}}}}}}`"
            );
            return self.report(format!("queue `{queue}` is external, so its settings are unknown"), at, hint);
        }
        let near = closest(queue.as_str(), topology.queues.keys().map(QueueName::as_str));
        let hint = near.map_or_else(|| "declare it in the spec".to_owned(), |near| format!("did you mean `{near}`?"));
        self.report(format!("queue `{queue}` does not exist"), at, hint);
    }

    fn check_exchange(&mut self, exchange: &ExchangeName, at: Location) {
        let topology = self.subject.routing.topology();
        match (self.subject.routing.kind(exchange), topology.exchanges.get(exchange)) {
            (_, Some(declared)) if declared.internal => {
                let hint = "publish to an exchange that routes to it".to_owned();
                self.report(format!("clients cannot publish to internal exchange `{exchange}`"), at, hint);
            }
            (Some(Kind::Unknown), None) if self.knows_external => {}
            (Some(Kind::Unknown), None) => {
                let hint = format!(
                    "add a stand-in to the test file, such as `standIns: {{exchanges: {{{exchange}: {{type: topic}}}}}}`"
                );
                self.report(format!("exchange `{exchange}` is external, so its bindings are unknown"), at, hint);
            }
            (Some(_), _) => {}
            (None, _) => {
                let near = closest(exchange.as_str(), topology.exchanges.keys().map(ExchangeName::as_str));
                let hint =
                    near.map_or_else(|| "declare it in the spec".to_owned(), |near| format!("did you mean `{near}`?"));
                self.report(format!("exchange `{exchange}` does not exist"), at, hint);
            }
        }
    }

    fn check_worker(&mut self, queue: &QueueName, worker: &Worker, at: Location) {
        let behaviors = match worker {
            Worker::Always(behavior) => std::slice::from_ref(behavior),
            Worker::Each(behaviors) => behaviors,
        };
        let by_contract = behaviors.iter().find(|it| matches!(it, Behavior::Fail | Behavior::GiveUp));
        if let Some(behavior) = by_contract.filter(|_| !self.subject.contracts.contains_key(queue)) {
            let message = format!("`{}` requires a contract, and queue `{queue}` has none", behavior.as_str());
            self.report(message, at, "use `nack`, `reject` or `requeue`".to_owned());
        }
    }
}
