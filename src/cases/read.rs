//! Reads a test file: checks the file against the grammar, and converts its contents to cases.

use super::case::{Attempts, Case, DeadLettered, EndCount, Expected, ExpectedDeath, TestFile, VersionCondition};
use super::keys::TEST_DOCUMENT;
use super::stand_ins::StandIns;
use crate::model::{Arguments, BrokerVersion, ExchangeName, QueueName};
use crate::rabbitmq::routing::{Reason, invalid_header};
use crate::simulation::{Behavior, End, Publication, PublisherResult, Worker};
use crate::spec::{
    Diagnostic, Diagnostics, Entry, Location, Node, Shape, SourceFile, Sourced, Value, check_node, documents, value_of,
};
use std::collections::BTreeMap;

/// Parses a test file. `file` is the index of the file in messages.
///
/// # Errors
/// All problems in the file, with their positions.
pub fn parse(file: usize, source: &SourceFile) -> Result<TestFile, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let mut read = TestFile::default();
    let documents = documents(file, source, &mut diagnostics).unwrap_or_default();
    if documents.len() > 1 {
        let at = documents.get(1).map_or(Location::start_of(file), |it| it.at);
        let message = "expected one YAML document";
        diagnostics
            .push(Diagnostic::error("wrong-value", message, at).hint("move the second document to its own file"));
    }
    for mut document in documents.into_iter().take(1) {
        if let Value::Table(entries) = &mut document.value {
            // Keys that start with `x-` only define YAML anchors.
            entries.retain(|entry| !entry.key.starts_with("x-"));
        }
        let shape = Shape::Object(&TEST_DOCUMENT);
        if let Some(checked) = check_node(&document, shape, "this file", document.at, &mut diagnostics) {
            read = Reader { diagnostics: &mut diagnostics }.file(&checked);
        }
    }
    diagnostics.or_value(read)
}

struct Reader<'d> {
    diagnostics: &'d mut Diagnostics,
}

impl Reader<'_> {
    fn file(&mut self, document: &Node) -> TestFile {
        let specs = document.get("spec");
        let texts = |node: &Node| node.text().map(str::to_owned).into_iter().chain(list(node)).collect();
        let mut cases = Vec::new();
        for entry in document.get("tests").map_or(&[][..], Node::entries) {
            match entry.node.get("routes") {
                Some(routes) => cases.extend(self.table(entry, routes)),
                None => cases.extend(self.case(entry)),
            }
        }
        if cases.is_empty()
            && !self.diagnostics.has_errors()
            && document.get("tests").is_some_and(|it| it.entries().is_empty())
        {
            let at = document.entry("tests").map_or(document.at, |entry| entry.at);
            self.diagnostics.push(Diagnostic::error("wrong-value", "`tests` contains no case", at).hint("add a case"));
        }
        TestFile {
            specs: specs.map(texts).unwrap_or_default(),
            vhost: document.get("vhost").and_then(|it| Some(Sourced::new(it.text()?.to_owned(), it.at))),
            brokers: self.brokers(document),
            stand_ins: self.stand_ins(document),
            is_snapshot: document.get("snapshot").is_some_and(Node::is_true),
            cases,
        }
    }

    /// Reads the stand-ins. A snapshot cannot have stand-ins, because `topo test --update` would remove them.
    fn stand_ins(&mut self, document: &Node) -> StandIns {
        let entry = document.entry("standIns");
        if let Some(entry) = entry.filter(|_| document.get("snapshot").is_some_and(Node::is_true)) {
            let message = "a snapshot cannot have stand-ins";
            let hint = "write cases with stand-ins in another test file";
            self.diagnostics.push(Diagnostic::error("wrong-value", message, entry.at).hint(hint));
        }
        StandIns::new(entry.map(|entry| &entry.node))
    }

    fn brokers(&mut self, document: &Node) -> Vec<BrokerVersion> {
        let mut versions = Vec::new();
        for node in document.get("brokers").map_or(&[][..], Node::items) {
            let Some(text) = node.text() else { continue };
            match text.parse() {
                Ok(version) if BrokerVersion::is_supported(version) => versions.push(version),
                Ok(_) | Err(_) => self.invalid(
                    node.at,
                    format!("`{text}` is not a supported RabbitMQ version"),
                    "write a version such as \"4.3\"",
                ),
            }
        }
        versions
    }

    fn invalid(&mut self, at: Location, message: String, hint: &str) {
        self.diagnostics.push(Diagnostic::error("wrong-value", message, at).hint(hint));
    }

    fn only(&mut self, node: &Node) -> Option<VersionCondition> {
        let only = node.get("only")?;
        let condition = only.text().and_then(VersionCondition::parse);
        if condition.is_none() {
            let message = "expected a version condition for `only`".to_owned();
            self.invalid(only.at, message, "write a condition such as `\">= 3.13\"` or `\"< 4.0\"`");
        }
        condition
    }

    /// Returns a case for each route in a table.
    fn table(&mut self, entry: &Entry, routes: &Node) -> Vec<Case> {
        let node = &entry.node;
        let only = self.only(node);
        let exchange = node.get("exchange").and_then(Node::text).unwrap_or_default();
        let exchange_at = node.get("exchange").map_or(node.at, |it| it.at);
        let case = |route: &str, at: Location, headers: Arguments, routing_key: &str, to: &Node| Case {
            name: format!("{}: {route}", entry.key),
            test: entry.key.clone(),
            at,
            only,
            publication: Sourced::new(publication(exchange, routing_key, headers), exchange_at),
            workers: BTreeMap::new(),
            expected: Expected { to: Some(names(to)), ..Expected::default() },
        };
        let of_list = routes.items().iter().filter_map(|route| {
            let key = route.get("routingKey").and_then(Node::text).unwrap_or_default();
            let headers = self.headers(route);
            let shown: Vec<String> = headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let label = match (key, shown.is_empty()) {
                ("", false) => shown.join(", "),
                ("", true) => "empty routing key".to_owned(),
                (key, true) => key.to_owned(),
                (key, false) => format!("{key}, {}", shown.join(", ")),
            };
            Some(case(&label, route.at, headers, key, route.get("to")?))
        });
        let of_map =
            routes.entries().iter().map(|route| case(&route.key, route.at, Arguments::new(), &route.key, &route.node));
        of_list.chain(of_map).collect()
    }

    fn case(&mut self, entry: &Entry) -> Option<Case> {
        let node = &entry.node;
        let only = self.only(node);
        let publication = self.publication(node.get("publish")?)?;
        let mut workers = BTreeMap::new();
        for worker in node.get("workers").map_or(&[][..], Node::entries) {
            let behaviors: Vec<Behavior> = worker.node.items().iter().filter_map(behavior).collect();
            let behavior = behavior(&worker.node).map_or(Worker::Each(behaviors), Worker::Always);
            workers.insert(QueueName::new(worker.key.as_str()), (behavior, worker.at));
        }
        let expected = expected(node);
        // A message always reaches the queue to which it is published.
        let is_certain = publication.value.exchange.as_str().is_empty() && {
            let queue = publication.value.routing_key.as_str();
            let is_only = |names: &Option<Sourced<BTreeMap<QueueName, Location>>>| {
                let names = names.as_ref().map(|names| &names.value);
                names.is_none_or(|names| !names.is_empty() && names.keys().all(|name| name.as_str() == queue))
            };
            let others = Expected { to: None, reaches: None, ..expected.clone() };
            let reaches_others = !publication.value.message().more_keys.is_empty();
            !(reaches_others && expected.to.is_some())
                && expected.can_fail()
                && !others.can_fail()
                && is_only(&expected.to)
                && is_only(&expected.reaches)
        };
        if !expected.can_fail() || is_certain {
            let hint = match (is_certain, expected.within.is_some()) {
                (true, _) => "a message always reaches the queue to which it is published; add `attempts` or `ends`",
                (false, true) => "add `attempts` or `ends`; `within` also passes if no worker receives the message",
                (false, false) => {
                    "add an expectation: `to`, `reaches`, `never`, `attempts`, `ends`, `publisher`, `refused` or \
                     `deadLettered`"
                }
            };
            self.diagnostics.push(Diagnostic::error("missing-key", "this case cannot fail", entry.at).hint(hint));
        }
        Some(Case {
            name: entry.key.clone(),
            test: entry.key.clone(),
            at: entry.at,
            only,
            publication,
            workers,
            expected,
        })
    }

    /// Returns the headers of a published message. Reports a `CC` or `BCC` header whose value is not a list of strings.
    fn headers(&mut self, message: &Node) -> Arguments {
        let headers = arguments(message.get("headers"));
        if let Some(name) = invalid_header(&headers) {
            let at = message.get("headers").and_then(|it| it.entry(name)).map_or(message.at, |entry| entry.node.at);
            let hint = "write a list of routing keys, such as `[orders.audit]`";
            self.invalid(at, format!("expected a list of strings for the `{name}` header"), hint);
        }
        headers
    }

    fn publication(&mut self, node: &Node) -> Option<Sourced<Publication>> {
        let text = |key: &str| node.get(key).and_then(Node::text);
        let headers = self.headers(node);
        let (mut published, at) = match (text("exchange"), text("queue")) {
            (Some(exchange), None) => {
                let key = text("routingKey").unwrap_or_default();
                (publication(exchange, key, headers), node.get("exchange").map_or(node.at, |it| it.at))
            }
            (None, Some(queue)) => {
                if let Some(key) = node.entry("routingKey") {
                    let message = "`routingKey` has no effect together with `queue`".to_owned();
                    self.invalid(key.at, message, "the default exchange uses the queue name as the routing key");
                }
                (publication("", queue, headers), node.get("queue").map_or(node.at, |it| it.at))
            }
            (Some(_), Some(_)) => {
                self.invalid(node.at, "`publish` sets both `exchange` and `queue`".to_owned(), "keep one of them");
                return None;
            }
            (None, None) => {
                let message = "`publish` sets neither `exchange` nor `queue`";
                self.diagnostics.push(Diagnostic::error("missing-key", message, node.at).hint("add one of them"));
                return None;
            }
        };
        published.expiration = node.get("expiration").and_then(integer);
        published.count = node.get("count").and_then(integer).and_then(|it| it.try_into().ok()).unwrap_or(1);
        Some(Sourced::new(published, at))
    }
}

fn publication(exchange: &str, routing_key: &str, headers: Arguments) -> Publication {
    let (exchange, routing_key) = (ExchangeName::new(exchange), routing_key.to_owned());
    Publication { exchange, routing_key, headers, expiration: None, count: 1 }
}

fn expected(node: &Node) -> Expected {
    let at = |key: &str| node.entry(key).map_or(node.at, |entry| entry.at);
    let attempts = node.get("attempts").map_or(&[][..], Node::entries).iter().map(|entry| {
        let times = || Attempts::Times(entry.node.items().iter().filter_map(integer).collect());
        let attempts = unsigned(&entry.node).map_or_else(times, Attempts::Number);
        (QueueName::new(entry.key.as_str()), Sourced::new(attempts, entry.at))
    });
    let word = |key: &str| node.get(key).and_then(Node::text);
    let publisher = [PublisherResult::Confirmed, PublisherResult::Returned, PublisherResult::Refused];
    Expected {
        to: node.get("to").map(names),
        reaches: node.get("reaches").map(names),
        never: node.get("never").map(names),
        attempts: attempts.collect(),
        ends: node.get("ends").map(|ends| Sourced::new(ends_of(ends), at("ends"))),
        within: node.get("within").and_then(integer).map(|time| Sourced::new(time, at("within"))),
        publisher: word("publisher").and_then(|word| {
            let known = publisher.into_iter().find(|it| it.as_str() == word)?;
            Some(Sourced::new(known, at("publisher")))
        }),
        refused: node.get("refused").and_then(unsigned).map(|count| Sourced::new(count, at("refused"))),
        dead_lettered: node.get("deadLettered").map(|it| Sourced::new(dead_lettered(it), at("deadLettered"))),
    }
}

fn ends_of(node: &Node) -> BTreeMap<QueueName, Sourced<EndCount>> {
    let any = |it: &Node| Some((QueueName::new(it.text()?), Sourced::new(EndCount::Any, it.at)));
    let listed = node.items().iter().filter_map(any);
    let end = |word: &str| End::ALL.into_iter().find(|end| end.as_str() == word);
    let mapped = node.entries().iter().filter_map(|entry| {
        let count = match (entry.node.text(), unsigned(&entry.node)) {
            (Some(word), _) => EndCount::Only(end(word)?),
            (None, Some(number)) => EndCount::Number(number),
            (None, None) => {
                let counts = entry.node.entries().iter();
                EndCount::Exactly(counts.filter_map(|it| Some((end(&it.key)?, unsigned(&it.node)?))).collect())
            }
        };
        Some((QueueName::new(entry.key.as_str()), Sourced::new(count, entry.at)))
    });
    listed.chain(mapped).collect()
}

fn dead_lettered(node: &Node) -> DeadLettered {
    let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
    let deaths = node.get("xDeath").map_or(&[][..], Node::items).iter().filter_map(|death| {
        let reason = death.get("reason")?.text()?;
        Some(ExpectedDeath {
            queue: QueueName::new(death.get("queue")?.text()?),
            reason: Reason::ALL.into_iter().find(|it| it.as_str() == reason)?,
            count: death.get("count").and_then(unsigned),
            exchange: death.get("exchange").and_then(Node::text).map(str::to_owned),
            routing_keys: death.get("routingKeys").map(|keys| list(keys).collect()),
        })
    });
    DeadLettered {
        exchange: text("exchange"),
        routing_key: text("routingKey"),
        headers: arguments(node.get("headers")),
        deaths: deaths.collect(),
    }
}

fn behavior(node: &Node) -> Option<Behavior> {
    let word = node.text()?;
    Behavior::ALL.into_iter().find(|it| it.as_str() == word)
}

fn names(node: &Node) -> Sourced<BTreeMap<QueueName, Location>> {
    let names = node.items().iter().filter_map(|it| Some((QueueName::new(it.text()?), it.at)));
    Sourced::new(names.collect(), node.at)
}

fn list(node: &Node) -> impl Iterator<Item = String> {
    node.items().iter().filter_map(|it| it.text().map(str::to_owned))
}

fn arguments(node: Option<&Node>) -> Arguments {
    let entries = node.map_or(&[][..], Node::entries).iter();
    entries.map(|entry| (entry.key.clone(), value_of(&entry.node))).collect()
}

fn integer(node: &Node) -> Option<i64> {
    match node.value {
        Value::Integer(number) => Some(number),
        Value::Null(_) | Value::Boolean(_) | Value::Float(_) | Value::Text(_) | Value::List(_) | Value::Table(_) => {
            None
        }
    }
}

fn unsigned(node: &Node) -> Option<u64> {
    integer(node).and_then(|it| it.try_into().ok())
}
