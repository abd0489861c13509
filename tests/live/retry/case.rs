//! Runs a queue with retries and one message, and compares its deliveries with the expected ones. Many cases share a
//! vhost, each with a separate queue, and run concurrently.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use lapin::protocol::basic::AMQPProperties;

use super::dead_lettered_message::{self, BODY, Death, death, deaths, original_expirations, unchanged};
use super::fixture::until_ready;
use super::worker::{self, Seen, Verb, channel, consume, next, publish, take};
use crate::support::{Amqp, Message, NONE, Node, TimingBaseline, Topo, Vhost, block_on, until};

/// The maximum delay in addition to the expected delay.
const LATE: Duration = Duration::from_secs(1);

/// The resolution of the broker's clock.
const TICK: Duration = Duration::from_millis(1);

/// The time without messages after the last expected message.
const QUIET: Duration = Duration::from_millis(700);

/// If messages of plain queues are this late, the machine is too slow to check delays.
const STANDSTILL: Duration = Duration::from_secs(10);

/// If messages of plain queues are this late, a late message of a case proves nothing. It passes through several queues,
/// each of which can be as late as a plain queue.
const SLOW: Duration = Duration::from_millis(500);

/// The time limit of a case.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    Ladder,
    Republish,
    Redeliver,
    Delayed,
    /// No retry, so the first failure is final.
    Final,
}

impl Strategy {
    /// Returns the strategies that support a queue of this type on this broker.
    pub(super) fn of(kind: &str) -> Vec<Self> {
        let mut strategies = vec![Self::Ladder, Self::Republish];
        if kind == "quorum" {
            strategies.push(Self::Redeliver);
            strategies.extend(Node::shared().at_least(4, 3).then_some(Self::Delayed));
        }
        strategies
    }
}

/// The keys of a queue, and the expected behavior.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) queue: String,
    pub(super) kind: &'static str,
    pub(super) strategy: Strategy,
    /// The keys of the queue except the type and dead-lettering, as YAML.
    pub(super) keys: String,
    /// The value of `deadLetter`. If it is `None`, topo uses the default, the dead-letter queue of the case.
    pub(super) dead_letter: Option<String>,
    /// The keys of the dead-letter queue except the type.
    pub(super) dead_keys: String,
    /// The delays in milliseconds, one per retry.
    pub(super) waits: Vec<u64>,
    /// The time by which the worker shortens each delay.
    pub(super) jitter: u64,
    /// The attempt on which the worker succeeds; `None` if it always fails.
    pub(super) succeeds_on: Option<usize>,
    pub(super) published: AMQPProperties,
}

/// The observations of a case.
pub(super) struct Observation {
    pub(super) seen: Vec<Seen>,
    pub(super) dead_messages: Vec<Message>,
}

impl Case {
    /// Returns a case whose worker always fails. The keys list the delays explicitly; delays of 0 are omitted.
    pub(super) fn new(queue: &str, kind: &'static str, strategy: Strategy, waits: &[u64]) -> Self {
        let (count, delays) = (waits.len(), delays(waits));
        let keys = match strategy {
            Strategy::Ladder => format!("retry: {{delays: {delays}}}"),
            Strategy::Republish if waits.iter().all(|wait| *wait == 0) => {
                format!("maxRetries: {count}, retry: {{strategy: republish}}")
            }
            Strategy::Republish => format!("retry: {{strategy: republish, delays: {delays}}}"),
            Strategy::Redeliver => format!("maxRetries: {count}, retry: {{strategy: redeliver}}"),
            Strategy::Delayed => format!("retry: {{strategy: delayed, delays: {delays}}}"),
            Strategy::Final => "maxRetries: 0".to_owned(),
        };
        Self {
            queue: queue.to_owned(),
            kind,
            strategy,
            keys,
            dead_letter: None,
            dead_keys: String::new(),
            waits: waits.to_vec(),
            jitter: 0,
            succeeds_on: None,
            published: dead_lettered_message::properties(2),
        }
    }

    /// Replaces the keys.
    pub(super) fn keys(mut self, keys: &str) -> Self {
        keys.clone_into(&mut self.keys);
        self
    }

    pub(super) fn succeeds_on(mut self, attempt: usize) -> Self {
        self.succeeds_on = Some(attempt);
        self
    }

    pub(super) fn dead(&self) -> String {
        format!("{}.dead", self.queue)
    }

    /// Returns the action of the worker according to the contract.
    pub(super) fn verb(&self) -> Verb {
        match self.strategy {
            Strategy::Ladder | Strategy::Final => Verb::NackAway,
            Strategy::Redeliver | Strategy::Delayed => Verb::RejectBack,
            Strategy::Republish => Verb::Republish {
                retries: u32::try_from(self.waits.len()).expect("few retries"),
                tiers: self.waits.iter().copied().filter(|wait| *wait > 0).collect(),
                jitter: self.jitter,
            },
        }
    }

    /// Publishes the message, and works until it is dead-lettered or succeeds.
    pub(super) async fn run(&self, amqp: &Amqp, key: &str) -> Observation {
        let channel = channel(amqp).await;
        let mut consumer = consume(&channel, &self.queue, 1).await;
        publish(&channel, "orders", key, BODY, self.published.clone()).await;
        let (verb, dead) = (self.verb(), self.dead());
        let mut observation = Observation { seen: Vec::new(), dead_messages: Vec::new() };
        let mut last = Instant::now();
        let deadline = last + TIMEOUT;
        while Instant::now() < deadline {
            if let Some(delivery) = next(&mut consumer, Duration::from_millis(50)).await {
                let succeeds = self.succeeds_on == Some(observation.seen.len() + 1);
                let seen = match succeeds {
                    true => worker::ack(delivery).await,
                    false => worker::fail(&channel, &self.queue, delivery, &verb).await,
                };
                observation.seen.push(seen);
                last = Instant::now();
            } else if let Some(dead_message) = take(&channel, &dead).await {
                observation.dead_messages.push(dead_message);
                last = Instant::now();
            } else {
                let is_over =
                    self.succeeds_on.map_or(!observation.dead_messages.is_empty(), |it| observation.seen.len() >= it);
                if is_over && last.elapsed() > QUIET {
                    return observation;
                }
            }
        }
        panic!("{}: no end after {:?}: {}", self.queue, TIMEOUT, self.description(&observation));
    }

    fn description(&self, observation: &Observation) -> String {
        let waits: Vec<Duration> = waits_of(&observation.seen).collect();
        format!(
            "{} deliveries, waits {waits:?}, {} dead-lettered",
            observation.seen.len(),
            observation.dead_messages.len()
        )
    }

    /// Compares the observations with the expectations. Returns a description of the first late message.
    fn judge(&self, observation: &Observation, key: &str, lateness: &TimingBaseline<'_>) -> Option<String> {
        let mut late = None;
        let context = format!(
            "{} ({} {:?}, {}): {}",
            self.queue,
            self.kind,
            self.strategy,
            self.keys,
            self.description(observation)
        );
        let attempts = self.succeeds_on.unwrap_or(self.waits.len() + 1);
        assert_eq!(observation.seen.len(), attempts, "{context}");
        for (pair, wait) in observation.seen.windows(2).zip(&self.waits) {
            let waited = pair[1].at - pair[0].failed;
            let expected = Duration::from_millis(*wait - if *wait > 0 { self.jitter } else { 0 });
            assert!(waited + TICK >= expected, "{waited:?} is too early for {expected:?}: {context}");
            let allowed = LATE + lateness.between(pair[0].failed, pair[1].at);
            if late.is_none() && waited >= expected + allowed {
                late = Some(format!("{waited:?} is too late for {expected:?} and {allowed:?}: {context}"));
            }
        }
        for (number, seen) in observation.seen.iter().enumerate() {
            let came = (seen.message.exchange.clone(), seen.message.routing_key.clone());
            assert_eq!(came, self.comes_by(number, key), "attempt {} of {context}", number + 1);
            let number = u32::try_from(number).expect("few retries");
            let counted = if self.strategy == Strategy::Republish { number } else { 0 };
            assert_eq!(worker::count(&seen.message.properties), counted, "{context}");
            unchanged_on_the_way(&seen.message, &self.published, &context);
        }
        assert_eq!(observation.dead_messages.len(), usize::from(self.succeeds_on.is_none()), "{context}");
        if let [dead_message] = &observation.dead_messages[..] {
            unchanged(dead_message, &self.published, &context);
            assert_eq!(deaths(dead_message), self.deaths(key), "{context}");
            let mut expirations = original_expirations(dead_message);
            expirations.sort();
            assert_eq!(expirations, self.expirations(), "{context}");
        }
        late
    }

    /// Returns the expirations in the headers of a dead-lettered message, in order: those of the publisher, or those of
    /// the worker.
    fn expirations(&self) -> Vec<String> {
        let mut expirations: Vec<String> = match self.strategy {
            Strategy::Republish if self.jitter > 0 => {
                self.known_tiers().map(|number| (self.waits[number - 1] - self.jitter).to_string()).collect()
            }
            Strategy::Republish => Vec::new(),
            Strategy::Ladder | Strategy::Redeliver | Strategy::Delayed | Strategy::Final => {
                self.published.expiration().iter().map(ToString::to_string).collect()
            }
        };
        expirations.sort();
        expirations
    }

    /// Returns the tiers in the headers of a dead-lettered message that was republished.
    fn known_tiers(&self) -> RangeInclusive<usize> {
        let retries = self.waits.len();
        // Up to 3.13, the broker keeps headers of the publisher. From 4.0 on, it ignores them (release notes of 4.0).
        let first = if Node::shared().at_least(4, 0) { retries.max(1) } else { 1 };
        let last = if self.has_tiers() { retries } else { 0 };
        first..=last
    }

    fn has_tiers(&self) -> bool {
        matches!(self.strategy, Strategy::Ladder | Strategy::Republish) && self.waits.iter().any(|wait| *wait > 0)
    }

    /// Returns the exchange and the routing key of the delivery after this number of retries.
    fn comes_by(&self, retries: usize, key: &str) -> (String, String) {
        let queue = &self.queue;
        match self.strategy {
            _ if retries == 0 => ("orders".to_owned(), key.to_owned()),
            Strategy::Redeliver | Strategy::Delayed | Strategy::Final => ("orders".to_owned(), key.to_owned()),
            Strategy::Ladder | Strategy::Republish if self.has_tiers() => {
                (format!("{queue}.return"), format!("{queue}.retry.{retries}"))
            }
            Strategy::Ladder | Strategy::Republish => (String::new(), queue.clone()),
        }
    }

    /// Returns the deaths in the headers of a dead-lettered message.
    fn deaths(&self, key: &str) -> BTreeSet<Death> {
        let queue = self.queue.as_str();
        let retries = self.waits.len();
        let tier = |number: usize| format!("{queue}.retry.{number}.{}", written(self.waits[number - 1]));
        let last = self.comes_by(retries, key);
        match self.strategy {
            Strategy::Final => [death(queue, "rejected", 1, "orders", key)].into(),
            Strategy::Redeliver | Strategy::Delayed => [death(queue, "delivery_limit", 1, "orders", key)].into(),
            Strategy::Ladder => {
                let first = death(queue, "rejected", i64::try_from(retries).unwrap() + 1, "orders", key);
                let in_tier = |number: usize| {
                    let (_, key) = self.comes_by(number - 1, key);
                    death(&tier(number), "expired", 1, &format!("{queue}.dlx"), &key)
                };
                (1..=retries).map(in_tier).chain([first]).collect()
            }
            Strategy::Republish => {
                let at_last = death(queue, "rejected", 1, &last.0, &last.1);
                let in_tier =
                    |number: usize| death(&tier(number), "expired", 1, &format!("{queue}.retry"), &number.to_string());
                self.known_tiers().map(in_tier).chain([at_last]).collect()
            }
        }
    }
}

/// Checks that a delivered message has the application's headers, and until its first death its `expiration`.
fn unchanged_on_the_way(message: &Message, published: &AMQPProperties, context: &str) {
    let now = Message { properties: worker::without_expiration(&message.properties), ..message.clone() };
    unchanged(&now, published, context);
}

fn waits_of(seen: &[Seen]) -> impl Iterator<Item = Duration> + '_ {
    seen.windows(2).map(|pair| pair[1].at - pair[0].failed)
}

/// Formats delays as `[300ms, 1s]`.
pub(super) fn delays(waits: &[u64]) -> String {
    let written: Vec<String> = waits.iter().map(|wait| written(*wait)).collect();
    format!("[{}]", written.join(", "))
}

/// Formats a duration below a minute in topo's notation.
fn written(wait: u64) -> String {
    match (wait / 1000, wait % 1000) {
        (0, rest) => format!("{rest}ms"),
        (seconds, 0) => format!("{seconds}s"),
        (seconds, rest) => format!("{seconds}s{rest}ms"),
    }
}

/// Returns the routing key of the case's message.
fn key_of(number: usize) -> String {
    format!("case{number}.created")
}

fn spec(cases: &[Case]) -> String {
    let mut queues = String::new();
    let mut dead = String::new();
    for (number, case) in cases.iter().enumerate() {
        let Case { queue, kind, keys, .. } = case;
        let (name, end) = (serde_json::json!(queue), serde_json::json!(case.dead()));
        let dead_letter = case.dead_letter.clone().unwrap_or_else(|| end.to_string());
        queues += &format!(
            "  {name}: {{type: {kind}, {keys}, deadLetter: {dead_letter}, bindings: [{{exchange: orders, routingKey: \"case{number}.*\"}}]}}\n"
        );
        dead += &format!("  {end}: {{type: {kind}{}}}\n", case.dead_keys);
    }
    format!("exchanges: {{orders: {{type: topic}}}}\nqueues:\n{queues}deadLetterQueues:\n{dead}")
}

/// Applies the specs of all cases, runs the cases concurrently, and checks each one.
pub(super) fn prove(hint: &str, cases: &[Case]) {
    prove_with(hint, cases, "");
}

/// Runs cases as [`prove`], with additions to the spec.
pub(super) fn prove_with(hint: &str, cases: &[Case], more: &str) {
    // If the machine is slow, late messages prove nothing about the retries, so the cases run again.
    for attempt in 1..=3 {
        let (late, of_plain_queues) = run_cases(hint, cases, more);
        match late {
            None if of_plain_queues < STANDSTILL => return,
            Some(late) if of_plain_queues < SLOW => panic!("{late}"),
            late => println!("attempt {attempt}: the machine paused for up to {of_plain_queues:?}; {late:?}"),
        }
    }
    panic!("the machine paused in each attempt");
}

/// Runs and checks all cases. Returns a description of a late message, and the largest delay of plain queues.
fn run_cases(hint: &str, cases: &[Case], more: &str) -> (Option<String>, Duration) {
    let vhost = Node::shared().vhost(hint);
    applied(&vhost, &format!("{}{more}", spec(cases)));
    let amqp = vhost.amqp();
    let lateness = TimingBaseline::watch(Node::shared());
    let began = Instant::now();
    let lives = cases.iter().enumerate().map(async |(number, case)| case.run(&amqp, &key_of(number)).await);
    let stories = block_on(join_all(lives));
    let latest = lateness.between(began, Instant::now());
    let judged: Vec<Option<String>> = cases
        .iter()
        .zip(&stories)
        .enumerate()
        .map(|(number, (case, observation))| case.judge(observation, &key_of(number), &lateness))
        .collect();
    println!("{} cases; what waits in plain queues came at most {latest:?} late", cases.len());
    nothing_left(&vhost);
    (judged.into_iter().flatten().next(), latest)
}

/// Applies a spec, and expects an empty plan.
pub(super) fn applied(vhost: &Vhost<'_>, spec: &str) -> Topo {
    let topo = Topo::new(vhost).spec(spec).timeout(Duration::from_secs(150));
    topo.run(["apply", "-y"]).expect_code(0);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes.");
    topo
}

/// Waits until every queue is empty. Messages between a quorum tier and its target appear only in the statistics, which
/// are as old as the last tick (5 s).
pub(super) fn nothing_left(vhost: &Vhost<'_>) {
    let amqp = vhost.amqp();
    let names = vhost.names("queues");
    let began = Instant::now();
    block_on(async {
        let channel = channel(&amqp).await;
        for queue in &names {
            until_ready(&channel, queue, 0).await;
        }
    });
    let path = format!("{}?disable_stats=true&enable_queue_totals=true", vhost.path("queues", &[]));
    until("the statistics of empty queues", || {
        let listed = vhost.http().get(&path);
        // A new node may respond to its first request with 500.
        let listed = listed.body.as_array().filter(|_| listed.status == 200)?;
        let mine = listed.iter().filter(|queue| names.iter().any(|name| queue["name"] == *name));
        let counts: Vec<Option<u64>> = mine.map(|queue| queue["messages"].as_u64()).collect();
        let is_empty = counts.len() == names.len() && counts.iter().all(|count| *count == Some(0));
        (is_empty && began.elapsed() > Duration::from_secs(2)).then_some(())
    });
}

/// Returns true if this broker accepts transient queues; some builds of 4.3 refuse them.
pub(super) fn supports_transient_queues() -> bool {
    let vhost = Node::shared().vhost("transient");
    let options = lapin::options::QueueDeclareOptions::default();
    vhost.amqp().declare_queue_as("transient", options, NONE).is_ok()
}
