//! Measures the delays of plain queues with a TTL during a test. If a message is late at the same time as these
//! messages, the cause is a pause of the machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use lapin::Consumer;
use lapin::options::{BasicAckOptions, BasicConsumeOptions};
use lapin::types::FieldTable;

use super::{Amqp, Argument, Node, Outcome, Vhost, block_on, text};

/// The TTL of the messages.
const WAIT: Duration = Duration::from_millis(200);

struct Sample {
    sent: Instant,
    /// `None` while the message is in transit.
    came: Option<Instant>,
}

type Samples = Arc<Mutex<Vec<Sample>>>;

/// Sends messages one by one through each of its queues until it is dropped.
pub(crate) struct TimingBaseline<'a> {
    samples: Samples,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Dropped after the threads have ended.
    _vhost: Vhost<'a>,
}

impl<'a> TimingBaseline<'a> {
    pub(crate) fn watch(node: &'a Node) -> Self {
        let (samples, is_over) = (Samples::default(), Arc::new(AtomicBool::new(false)));
        let vhost = node.vhost("lateness");
        // Quorum queues have no TTL before 3.10.
        let kinds = ["classic", "quorum"].into_iter().filter(|kind| *kind == "classic" || node.at_least(3, 10));
        let watched = |kind: &'static str| {
            let (amqp, samples, is_over) = (vhost.amqp(), samples.clone(), is_over.clone());
            std::thread::spawn(move || through(&amqp, kind, &samples, &is_over))
        };
        let threads = kinds.map(watched).collect();
        Self { samples, is_over, threads, _vhost: vhost }
    }

    /// Returns the largest delay of a message that was in transit at this time.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> Duration {
        let now = Instant::now();
        let samples = self.samples.lock().unwrap();
        assert!(samples.iter().any(|it| it.came.is_some()), "no sample");
        let under_way = samples.iter().filter(|it| it.sent <= to && it.came.is_none_or(|came| came >= from));
        let late = under_way.map(|it| it.came.unwrap_or(now).saturating_duration_since(it.sent + WAIT));
        late.max().unwrap_or_default()
    }
}

impl Drop for TimingBaseline<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // If a thread failed, a sample is missing.
            drop(thread.join());
        }
    }
}

fn through(amqp: &Amqp, kind: &str, samples: &Samples, is_over: &AtomicBool) {
    let (way, out) = (format!("{kind}.way"), format!("{kind}.out"));
    let wait = i64::try_from(WAIT.as_millis()).expect("short");
    let arguments = [
        ("x-queue-type", text(kind)),
        ("x-message-ttl", Argument::LongLongInt(wait)),
        ("x-dead-letter-exchange", text("")),
        ("x-dead-letter-routing-key", text(&out)),
    ];
    amqp.declare_queue(&way, &arguments).unwrap();
    amqp.declare_queue(&out, &[("x-queue-type", text(kind))]).unwrap();
    let consumer = async {
        let channel = amqp.new_channel().await?;
        channel.basic_consume(out.into(), "".into(), BasicConsumeOptions::default(), FieldTable::default()).await
    };
    let mut consumer: Consumer = block_on(consumer).expect("it is there");
    while !is_over.load(Ordering::Relaxed) {
        let number = {
            let mut samples = samples.lock().unwrap();
            samples.push(Sample { sent: Instant::now(), came: None });
            samples.len() - 1
        };
        assert_eq!(amqp.publish("", &way, "tick"), Outcome::Routed);
        let delivery = block_on(consumer.next()).expect("the consumer is not cancelled").expect("the channel is open");
        samples.lock().unwrap()[number].came = Some(Instant::now());
        block_on(delivery.ack(BasicAckOptions::default())).expect("the channel is open");
    }
}
