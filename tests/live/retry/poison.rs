//! Tests that poison messages on a ladder do not delay healthy messages.
//!
//! With `TOPO_LONG=1`, the test sends 1,000 poison messages among 10,000 messages, otherwise 100 among 1,000.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicNackOptions, BasicPublishOptions};
use lapin::protocol::basic::AMQPProperties;

use super::fixture::{Fixture, in_parallel};
use super::worker::{channel, consume, next};
use crate::support::{Amqp, Node, TimingBaseline, block_on};

/// Every n-th message is a poison message.
const EVERY: usize = 11;

/// The number of messages in flight. The queue stays short, so that a delay is visible.
const WINDOW: usize = 100;

/// The delays, which are much longer than the time to process a hundred other messages.
const DELAYS: [u64; 2] = [3000, 2000];

const TIMEOUT: Duration = Duration::from_secs(120);

/// The outcome of a run.
#[derive(Default)]
struct Run {
    sent: BTreeMap<usize, Instant>,
    /// The latency of each healthy message, in order of arrival.
    healthy: Vec<(usize, Duration)>,
    /// The number of deliveries of each poison message.
    poison: BTreeMap<usize, usize>,
    /// The healthy messages that arrived through a different exchange than the publisher's.
    astray: Vec<usize>,
    took: Duration,
}

fn is_poison(number: usize, with_poison: bool) -> bool {
    with_poison && number.is_multiple_of(EVERY)
}

impl Run {
    /// Publishes and works until all healthy messages are processed and each poison message has had all its deliveries.
    async fn of(amqp: &Amqp, queue: &str, count: usize, with_poison: bool) -> Self {
        let mut run = Self::default();
        let sender = amqp.new_channel().await.expect("the connection is open");
        let worker = channel(amqp).await;
        let mut consumer = consume(&worker, queue, 50).await;
        let poison = if with_poison { (0..count).filter(|it| is_poison(*it, true)).count() } else { 0 };
        let (began, mut next_number) = (Instant::now(), 0);
        loop {
            let first_seen = run.healthy.len() + run.poison.len();
            if next_number < count && next_number - first_seen < WINDOW {
                let (body, options) = (next_number.to_string(), BasicPublishOptions::default());
                let properties = AMQPProperties::default().with_delivery_mode(2);
                run.sent.insert(next_number, Instant::now());
                // Published without confirms, because the test counts the arrivals.
                let sent = sender.basic_publish("".into(), queue.into(), options, body.as_bytes(), properties).await;
                drop(sent.expect("the channel is open"));
                next_number += 1;
                if let Some(delivery) = consumer.next().now() {
                    run.work(delivery.expect("not cancelled").expect("open"), with_poison).await;
                }
                continue;
            }
            if run.healthy.len() + poison == count && run.took.is_zero() {
                run.took = began.elapsed();
            }
            let is_done = run.healthy.len() + poison >= count && run.poison.values().sum::<usize>() >= poison * 3;
            // After the last expected message, no further message may arrive.
            let timeout = if is_done { Duration::from_millis(700) } else { Duration::from_secs(20) };
            match next(&mut consumer, timeout).await {
                Some(delivery) => run.work(delivery, with_poison).await,
                None if is_done => return run,
                None => panic!("{queue}: {} healthy of {count} came, poison {:?}", run.healthy.len(), run.poison),
            }
            assert!(began.elapsed() < TIMEOUT, "{queue}: {} healthy of {count}", run.healthy.len());
        }
    }

    async fn work(&mut self, delivery: Delivery, with_poison: bool) {
        let number: usize = std::str::from_utf8(&delivery.data).unwrap().parse().unwrap();
        if is_poison(number, with_poison) {
            *self.poison.entry(number).or_default() += 1;
            let away = BasicNackOptions { requeue: false, ..Default::default() };
            delivery.nack(away).await.expect("the channel is open");
        } else {
            self.healthy.push((number, self.sent[&number].elapsed()));
            if !delivery.exchange.as_str().is_empty() || delivery.redelivered {
                self.astray.push(number);
            }
            delivery.ack(BasicAckOptions::default()).await.expect("the channel is open");
        }
    }

    fn longest(&self) -> Duration {
        self.healthy.iter().map(|it| it.1).max().unwrap_or_default()
    }

    fn median(&self) -> Duration {
        let mut all: Vec<Duration> = self.healthy.iter().map(|it| it.1).collect();
        all.sort();
        all[all.len() / 2]
    }
}

/// Returns the available messages without waiting.
trait Now<T> {
    fn now(self) -> Option<T>;
}

impl<T, F: Future<Output = T> + Unpin> Now<T> for F {
    fn now(self) -> Option<T> {
        futures_util::FutureExt::now_or_never(self)
    }
}

#[test]
fn poison_does_not_delay_healthy_messages() {
    let count = if std::env::var_os("TOPO_LONG").is_some() { 11_000 } else { 1_100 };
    in_parallel(["classic", "quorum"], |kind| {
        let [first, second] = DELAYS;
        let spec = format!(
            "queues: {{work: {{type: {kind}, deadLetter: dead, retry: {{delays: [{first}ms, {second}ms]}}}}}}\n\
             deadLetterQueues: {{dead: {{type: {kind}}}}}\n"
        );
        let fixture = Fixture::new("poison", &spec);
        let lateness = TimingBaseline::watch(Node::shared());
        let began = Instant::now();
        let (without, with) = block_on(async {
            let without = Run::of(&fixture.amqp, "work", count, false).await;
            (without, Run::of(&fixture.amqp, "work", count, true).await)
        });
        let poison: BTreeSet<usize> = (0..count).filter(|it| is_poison(*it, true)).collect();
        assert_eq!(poison.len(), count / EVERY);
        for run in [&without, &with] {
            let healthy: Vec<usize> = run.healthy.iter().map(|it| it.0).collect();
            let expected = (0..count).filter(|it| !run.poison.contains_key(it));
            assert!(healthy.into_iter().eq(expected), "{kind}: each healthy one comes once, in its order");
            assert_eq!(run.astray, [0; 0], "{kind}: these came by a tier");
        }
        // A pause of the machine delays plain queues, too. On a busy machine, messages also wait in plain queues.
        let stalled = lateness.between(began, Instant::now());
        let allowed = Duration::from_millis(second) + stalled + without.longest();
        let [alone, among] = [&without, &with].map(Run::longest);
        assert!(among < allowed, "{kind}: a healthy one took {among:?}, without poison {alone:?}, stalled {stalled:?}");
        assert_eq!(with.poison.keys().copied().collect::<BTreeSet<_>>(), poison, "{kind}");
        assert!(with.poison.values().all(|times| *times == 3), "{kind}: three deliveries each: {:?}", with.poison);
        let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
        println!(
            "{kind}, {} healthy: median {:?} alone, {:?} among {} poison (×{:.2}); longest {:?}, {:?}; all {:?}, {:?} (×{:.2})",
            with.healthy.len(),
            without.median(),
            with.median(),
            poison.len(),
            ratio(with.median(), without.median()),
            without.longest(),
            with.longest(),
            without.took,
            with.took,
            ratio(with.took, without.took),
        );
        assert_eq!(dead_lettered(&fixture, poison.len()), poison, "{kind}: each poison is one dead letter");
        fixture.is_left_empty();
    });
}

/// Receives all dead-lettered messages, each exactly once.
fn dead_lettered(fixture: &Fixture, count: usize) -> BTreeSet<usize> {
    block_on(async {
        let channel = fixture.channel().await;
        let mut consumer = consume(&channel, "dead", 100).await;
        let mut numbers = BTreeSet::new();
        loop {
            let timeout = if numbers.len() < count { Duration::from_secs(20) } else { Duration::from_millis(700) };
            let Some(delivery) = next(&mut consumer, timeout).await else { return numbers };
            delivery.ack(BasicAckOptions::default()).await.expect("the channel is open");
            let number = std::str::from_utf8(&delivery.data).unwrap().parse().unwrap();
            assert!(numbers.insert(number), "{number} is a duplicate");
        }
    })
}
