//! Checks the contract of each retry strategy with workers that use only the values of `topo contract --format json`.

use std::time::{Duration, Instant};

use lapin::options::QueueDeclareOptions;
use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldTable};
use serde_json::Value;

use crate::support::worker::{as_number, as_text, found, header};
use crate::support::{Amqp, Message, Node, Outcome, TimingBaseline, Topo, Vhost, Work, Worker, until, valid_contract};

/// The exchange and the routing key with which messages are published.
const FIRST: (&str, &str) = ("orders", "order.created");
/// The maximum delay of a message in addition to its retry delay and the delay of a plain queue.
const LATE: Duration = Duration::from_secs(1);
/// The time without further messages after the longest retry delay.
const QUIET: Duration = Duration::from_millis(700);
/// The time after which a message is considered stuck if it is neither delivered nor dead-lettered.
const SOON: Duration = Duration::from_secs(60);

/// A queue with these keys.
struct Case {
    name: &'static str,
    kind: &'static str,
    keys: &'static str,
    /// The dead-letter exchange and queue.
    dead_letter: &'static str,
    dead: &'static str,
}

const FANOUT: (&str, &str) = ("dead", "{type: classic}");
const INTERNAL: (&str, &str) =
    ("{queue: dead, wiring: policy}", "{type: classic, exchange: {name: all, internal: true}}");
const DIRECT: (&str, &str) = ("dead", "{type: quorum, exchange: {name: dlx, type: direct}}");

/// Returns all cases that this broker supports.
fn cases() -> Vec<Case> {
    let case = |name, kind, keys, (dead_letter, dead)| Case { name, kind, keys, dead_letter, dead };
    let mut cases = Vec::new();
    for kind in ["classic", "quorum"] {
        cases.extend([
            case("ladder", kind, "retry: {delays: [300ms, 600ms]}, maxRetries: 3", FANOUT),
            case("ladder by policy", kind, "retry: {delays: [300ms]}", INTERNAL),
            case("tiers", kind, "retry: {strategy: republish, delays: [300ms, 600ms]}", FANOUT),
            case("tiers by policy", kind, "retry: {strategy: republish, delays: [300ms]}", INTERNAL),
            case("to the back", kind, "maxRetries: 2, retry: {strategy: republish}", DIRECT),
            case("no retry", kind, "maxRetries: 0", DIRECT),
            case("no retry by policy", kind, "maxLength: 10", INTERNAL),
        ]);
    }
    cases.push(case("redeliver", "quorum", "maxRetries: 2", FANOUT));
    cases.push(case("redeliver by policy", "quorum", "maxRetries: 1", INTERNAL));
    if Node::shared().at_least(4, 3) {
        cases.push(case("delayed", "quorum", "retry: {strategy: delayed, delays: [300ms, 600ms]}", DIRECT));
    }
    cases
}

impl Case {
    /// Applies the spec, and returns the contract and the explanation of `work` for the version of this broker.
    fn contract(&self, vhost: &Vhost<'_>) -> (Value, Value) {
        let Self { kind, keys, dead_letter, dead, .. } = self;
        // On a ladder, 3.8 and 3.10 cannot distinguish messages that die because of a limit. Therefore, only queues
        // without a ladder have a limit.
        let spec = format!(
            "exchanges: {{orders: {{type: topic}}}}\n\
             queues:\n  work: {{type: {kind}, {keys}, deadLetter: {dead_letter}, \
             bindings: [{{exchange: orders, routingKey: \"order.#\"}}]}}\n\
             deadLetterQueues: {{dead: {dead}}}\n"
        );
        let topo = Topo::new(vhost).spec(&spec);
        topo.run(["apply", "-y"]).expect_code(0);
        topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes.");
        let version = vhost.node().version();
        let line = ["contract", "--format", "json", "--broker-version", version];
        let document = topo.run(line).expect_code(0).json();
        valid_contract(&document);
        let explained =
            topo.run(["explain", "work", "--format", "json", "--broker-version", version]).expect_code(0).json();
        (document["vhosts"][vhost.name()]["queues"]["work"].clone(), explained["explanations"][0].clone())
    }
}

fn publish(amqp: &Amqp) {
    let mut headers = FieldTable::default();
    headers.insert("tenant".into(), AMQPValue::LongString("a".into()));
    let properties = AMQPProperties::default()
        .with_delivery_mode(2)
        .with_message_id("m-1".into())
        .with_content_type("text/plain".into())
        .with_headers(headers);
    assert_eq!(amqp.publish_with(FIRST.0, FIRST.1, "poison", properties), Outcome::Routed);
}

/// A worker that performs these actions in turn and repeats the last one.
struct Run<'a> {
    amqp: &'a Amqp,
    contract: &'a Value,
    case: &'a Case,
    lateness: &'a TimingBaseline<'a>,
}

impl Run<'_> {
    fn dead_lettered(&self) -> u32 {
        self.amqp.ready(self.contract["deadLetters"]["queue"].as_str().expect("a queue"))
    }

    fn longest(&self) -> Duration {
        let delays = self.contract["delays"].as_array().expect("delays").iter();
        Duration::from_millis(delays.filter_map(|wait| wait["milliseconds"].as_u64()).max().unwrap_or(0))
    }

    /// Records the arrivals until the message is dead-lettered and no further message arrives.
    fn until_dead(&self, first: (&str, &str), mut act: impl FnMut(&Worker<'_>, Work)) -> Vec<Instant> {
        let about = format!("{} on a {} queue", self.case.name, self.case.kind);
        let mut worker = Worker::of(self.amqp, "work", self.contract);
        let mut came = Vec::new();
        let mut deadline = Instant::now() + SOON;
        loop {
            match worker.next(self.longest() + QUIET) {
                Some(work) => {
                    assert_eq!(work.retry, came.len() as u64, "{about}");
                    self.arrived(&work, first);
                    came.push(work.at);
                    deadline = Instant::now() + SOON;
                    act(&worker, work);
                }
                None if self.dead_lettered() > 0 => return came,
                None => assert!(Instant::now() < deadline, "{about}: not dead-lettered after {} attempts", came.len()),
            }
        }
    }

    /// Checks that each retry arrives after its delay, and not too late.
    fn in_time(&self, came: &[Instant]) {
        let about = format!("{} on a {} queue", self.case.name, self.case.kind);
        let delays = self.contract["delays"].as_array().unwrap();
        assert!(delays.is_empty() || delays.len() + 1 == came.len(), "{about}");
        for (pair, delay) in came.windows(2).zip(delays) {
            let (waited, delay) = (pair[1] - pair[0], Duration::from_millis(delay["milliseconds"].as_u64().unwrap()));
            // Quorum queues of 4.3 measure delays with a different clock.
            assert!(waited + Duration::from_millis(5) >= delay, "{about}: {waited:?}");
            let machine = self.lateness.between(pair[0], pair[1]);
            assert!(waited < delay + LATE + machine, "{about}: {waited:?}, delay of this machine: {machine:?}");
        }
    }

    /// Checks that a retry arrives as the contract specifies, with its original route.
    fn arrived(&self, work: &Work, first: (&str, &str)) {
        let about = format!("{} on a {} queue: {work:?}", self.case.name, self.case.kind);
        let (arrives, original) = (&self.contract["retryArrives"], &self.contract["original"]);
        let now = (work.delivery.exchange.to_string(), work.delivery.routing_key.to_string());
        let first = (first.0.to_owned(), first.1.to_owned());
        if work.retry == 0 || arrives.is_null() {
            assert_eq!(now, first, "{about}");
            assert_eq!(work.delivery.redelivered, work.retry > 0, "{about}");
            return;
        }
        let keys = arrives["routingKeys"].as_array().unwrap();
        let key = &keys[(work.retry as usize - 1).min(keys.len() - 1)];
        assert_eq!(
            (arrives["exchange"].as_str(), key.as_str()),
            (Some(now.0.as_str()), Some(now.1.as_str())),
            "{about}"
        );
        let of = |field: &str| found(&work.delivery.properties, original[field].as_str().unwrap());
        assert_eq!(of("exchange").zip(of("routingKey")), Some(first), "{about}");
    }

    /// Checks that there is a single dead-lettered message, unchanged, and that no queue contains another message.
    fn dead_lettered_message(&self, vhost: &Vhost<'_>) -> Message {
        let about = format!("{} on a {} queue", self.case.name, self.case.kind);
        assert_eq!(self.dead_lettered(), 1, "{about}");
        let queue = self.contract["deadLetters"]["queue"].as_str().unwrap();
        let dead_lettered_message = self.amqp.get(queue).unwrap();
        assert_eq!(dead_lettered_message.body, b"poison", "{about}");
        assert_eq!(
            dead_lettered_message.properties.message_id().as_ref().map(ToString::to_string).as_deref(),
            Some("m-1"),
            "{about}"
        );
        assert_eq!(
            header(&dead_lettered_message.properties, "tenant").and_then(as_text).as_deref(),
            Some("a"),
            "{about}"
        );
        for queue in vhost.names("queues") {
            until(&format!("{queue} to be empty"), || (self.amqp.ready(&queue) == 0).then_some(()));
        }
        dead_lettered_message
    }
}

/// Checks the headers that the broker sets when retries are exhausted.
fn carries(dead_lettered_message: &Message, described: &Value, about: &str) {
    let key = described["routingKey"].as_str().unwrap_or(FIRST.1);
    assert_eq!(
        (dead_lettered_message.exchange.as_str(), dead_lettered_message.routing_key.as_str()),
        (described["exchange"].as_str().unwrap(), key),
        "{about}"
    );
    let deaths = header(&dead_lettered_message.properties, "x-death").and_then(AMQPValue::as_array).expect("deaths");
    let field = |death: &FieldTable, name: &str| death.inner().get(name).and_then(as_text).unwrap_or_default();
    let count = |death: &FieldTable| death.inner().get("count").and_then(as_number).unwrap_or_default();
    let seen: Vec<(String, String, i64)> = deaths
        .as_slice()
        .iter()
        .filter_map(AMQPValue::as_field_table)
        .map(|death| (field(death, "queue"), field(death, "reason"), count(death)))
        .collect();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let expected: Vec<(String, String, i64)> = described["xDeath"]
        .as_array()
        .unwrap()
        .iter()
        .map(|death| (text(&death["queue"]), text(&death["reason"]), death["count"].as_i64().unwrap()))
        .collect();
    assert_eq!(seen.first(), expected.first(), "{about}");
    assert!(expected.iter().all(|death| seen.contains(death)), "{about}: {seen:?}");
    assert!(described["mayHaveMore"] == true || seen.len() == expected.len(), "{about}: {seen:?}");
}

fn replay(amqp: &Amqp, dead_lettered_message: &Message, how: &Value) {
    let mut headers = FieldTable::default();
    for (name, value) in dead_lettered_message.properties.headers().iter().flat_map(|headers| headers.inner()) {
        if !how["withoutHeaders"].as_array().unwrap().iter().any(|without| without == name.as_str()) {
            headers.insert(name.clone(), value.clone());
        }
    }
    let properties = dead_lettered_message.properties.clone().with_headers(headers);
    let (exchange, key) = (how["publish"]["exchange"].as_str().unwrap(), &how["publish"]["routingKeys"][0]);
    assert_eq!(amqp.publish_with(exchange, key.as_str().unwrap(), "poison", properties), Outcome::Routed);
}

#[test]
fn worker_may_shorten_a_wait_by_the_jitter() {
    let (dead_letter, dead) = FANOUT;
    // Half a minute is longer than any delay that the machine can cause.
    let keys = "retry: {strategy: republish, delays: [30s], jitter: 29500ms}";
    let lateness = TimingBaseline::watch(Node::shared());
    let shortened = |kind| {
        let vhost = Node::shared().vhost("jitter");
        let case = Case { name: "jitter", kind, keys, dead_letter, dead };
        let (contract, _) = case.contract(&vhost);
        let amqp = vhost.amqp();
        let run = Run { amqp: &amqp, contract: &contract, case: &case, lateness: &lateness };
        publish(&amqp);
        let came = run.until_dead(FIRST, |worker, work| worker.fail(work));
        let waited = came[1] - came[0];
        assert!(waited >= Duration::from_millis(500) && waited < Duration::from_secs(30), "{kind}: {waited:?}");
        assert_eq!(came.len(), 2, "{kind}");
        run.dead_lettered_message(&vhost);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| shortened("quorum"));
        shortened("classic");
    });
}

/// `topo explain` warns about a replay with the routing key of the dead-lettered message.
#[test]
fn replay_with_the_same_key_is_dead_lettered_again() {
    let vhost = Node::shared().vhost("replay");
    let (dead_letter, dead) = FANOUT;
    let keys = "retry: {delays: [200ms, 300ms]}";
    let lateness = TimingBaseline::watch(Node::shared());
    let case = Case { name: "ladder", kind: "classic", keys, dead_letter, dead };
    let (contract, explanation) = case.contract(&vhost);
    let amqp = vhost.amqp();
    let run = Run { amqp: &amqp, contract: &contract, case: &case, lateness: &lateness };
    let key = explanation["deadLetteredMessage"]["routingKey"].as_str().unwrap();
    assert_eq!(amqp.publish("work.return", key, "poison"), Outcome::Routed);
    let mut worker = Worker::of(&amqp, "work", &contract);
    let work = worker.next(SOON).expect("it comes");
    worker.fail(work);
    until("the dead-lettered message", || (run.dead_lettered() == 1).then_some(()));
    assert!(worker.next(run.longest() + QUIET).is_none());
}

#[test]
fn worker_observes_the_contract() {
    let lateness = TimingBaseline::watch(Node::shared());
    for case in cases() {
        let vhost = Node::shared().vhost("contract");
        let (contract, explanation) = case.contract(&vhost);
        let amqp = vhost.amqp();
        let about = format!("{} on a {} queue", case.name, case.kind);
        let run = Run { amqp: &amqp, contract: &contract, case: &case, lateness: &lateness };
        let deliveries = contract["deliveries"].as_u64().unwrap();

        // This worker always fails.
        publish(&amqp);
        let came = run.until_dead(FIRST, |worker, work| worker.fail(work));
        assert_eq!(came.len() as u64, deliveries, "{about}");
        run.in_time(&came);
        let dead_lettered_message = run.dead_lettered_message(&vhost);
        carries(&dead_lettered_message, &explanation["deadLetteredMessage"], &about);

        // Replays the message as the explanation describes.
        replay(&amqp, &dead_lettered_message, &explanation["replay"]);
        let own = explanation["replay"]["publish"]["routingKeys"][0].as_str().unwrap();
        let came = run.until_dead(("", own), |worker, work| worker.fail(work));
        assert_eq!(came.len() as u64, deliveries, "{about}: replayed");
        run.in_time(&came);
        run.dead_lettered_message(&vhost);

        // This worker gives up immediately.
        publish(&amqp);
        assert_eq!(run.until_dead(FIRST, |worker, work| worker.give_up(work)).len(), 1, "{about}");
        run.dead_lettered_message(&vhost);

        // This worker publishes a corrected message on the last attempt.
        publish(&amqp);
        let came = run.until_dead(FIRST, |worker, work| {
            if work.retry + 1 == deliveries { worker.publish_dead_lettered(&work) } else { worker.fail(work) }
        });
        run.in_time(&came);
        let dead_lettered_message = run.dead_lettered_message(&vhost);
        for expected in contract["deadLetteredMessage"]["headers"].as_array().unwrap() {
            let name = expected["name"].as_str().unwrap();
            let value = header(&dead_lettered_message.properties, name).and_then(as_text);
            let value = value.unwrap_or_else(|| panic!("{about}: {name} is missing"));
            assert!(expected["value"].is_null() || expected["value"] == value.as_str(), "{about}: {name}: {value}");
        }
    }
}

/// A worker that declares its queue as its contract specifies receives no error 406.
#[test]
fn declaration_of_a_contract_is_accepted() {
    let vhost = Node::shared().vhost("declaration");
    let spec = "policies: {limit: {pattern: '^(classic|quorum)$', applyTo: queues, definition: {maxLength: 1000}}}\n\
                queues:\n  classic: {type: classic, maxPriority: 5, messageTtl: 1m, overflow: reject-publish}\n  \
                transient: {type: classic, autoDelete: true, deadLetter: none}\n  \
                quorum: {type: quorum, maxRetries: 3, deadLetter: dead}\n  \
                ladder: {type: quorum, retry: {delays: [5s, 30s]}, deadLetter: dead}\n  \
                by policy: {type: classic, retry: {delays: [5s]}, deadLetter: {queue: dead, wiring: policy}}\n\
                deadLetterQueues: {dead: {type: classic}}\n";
    let topo = Topo::new(&vhost).spec(spec);
    topo.run(["apply", "-y"]).expect_code(0);
    let queues = ["classic", "transient", "quorum", "ladder", "by policy", "dead"];
    let options = queues.iter().flat_map(|queue| ["--queue", *queue]);
    let version = vhost.node().version();
    let line = ["contract", "--format", "json", "--broker-version", version].into_iter().chain(options);
    let document = topo.run(line).expect_code(0).json();
    valid_contract(&document);
    let amqp = vhost.amqp();
    for queue in queues {
        let declaration = &document["vhosts"][vhost.name()]["queues"][queue]["declaration"];
        let flag = |name: &str| declaration[name].as_bool().expect("a flag");
        let options = QueueDeclareOptions {
            durable: flag("durable"),
            auto_delete: flag("autoDelete"),
            exclusive: flag("exclusive"),
            ..QueueDeclareOptions::default()
        };
        let argument = |value: &Value| match value {
            Value::String(text) => AMQPValue::LongString(text.as_str().into()),
            Value::Number(number) => AMQPValue::LongLongInt(number.as_i64().expect("an integer")),
            Value::Bool(flag) => AMQPValue::Boolean(*flag),
            other @ (Value::Null | Value::Array(_) | Value::Object(_)) => panic!("unexpected argument: {other}"),
        };
        let all = declaration["arguments"].as_object().expect("arguments");
        let arguments: Vec<(&str, AMQPValue)> = all.iter().map(|(name, it)| (name.as_str(), argument(it))).collect();
        assert_eq!(declaration["queue"], queue);
        assert_eq!(amqp.declare_queue_as(queue, options, &arguments), Ok(()), "{declaration}");
        let without: Vec<_> = arguments.into_iter().filter(|(name, _)| *name != "x-queue-type").collect();
        let refused = amqp.declare_queue_as(queue, options, &without).is_err();
        assert_eq!(refused, ["quorum", "ladder"].contains(&queue), "{queue} without x-queue-type");
    }
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0);
}
