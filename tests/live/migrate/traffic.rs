//! Provides publishers with confirms, and consumers that subscribe again after a cancel, as client libraries do.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
};
use lapin::protocol::basic::AMQPProperties;

use lapin::types::FieldTable;
use lapin::{Channel, Confirmation, Consumer, PublisherConfirm};

use crate::support::amqp::caught_up;
use crate::support::{Amqp, Vhost, block_on, until};

/// The exchange of the publishers.
pub(super) const EXCHANGE: &str = "in";
/// The interval between two publishes.
const BEAT: Duration = Duration::from_millis(10);
/// The prefetch count of a consumer.
const PREFETCH: u16 = 20;
/// The time without messages after which no further message is expected.
const QUIET: Duration = Duration::from_millis(500);

/// A publisher of messages with increasing numbers.
pub(super) struct Publisher {
    channel: Channel,
    under_way: VecDeque<PublisherConfirm>,
    next: usize,
    returned: usize,
    nacked: usize,
    /// The longest wait for a confirm.
    slowest: Duration,
    _amqp: Amqp,
}

impl Publisher {
    pub(super) fn new(vhost: &Vhost<'_>) -> Self {
        let amqp = vhost.amqp();
        let channel = block_on(async {
            let channel = amqp.new_channel().await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            Ok::<_, lapin::Error>(channel)
        });
        let channel = channel.expect("the connection is open");
        let (under_way, slowest) = (VecDeque::new(), Duration::ZERO);
        Self { channel, under_way, next: 0, returned: 0, nacked: 0, slowest, _amqp: amqp }
    }

    /// Returns the number of messages published so far.
    pub(super) fn published(&self) -> usize {
        self.next
    }

    fn note(&mut self, confirm: lapin::Result<Confirmation>) {
        match confirm.expect("the channel is open") {
            Confirmation::Ack(None) => {}
            Confirmation::Ack(Some(_)) => self.returned += 1,
            Confirmation::Nack(_) | Confirmation::NotRequested => self.nacked += 1,
        }
    }

    fn send(&mut self, count: usize) {
        let (channel, from) = (self.channel.clone(), self.next);
        let confirms = block_on(async {
            let mut confirms = Vec::new();
            for number in from..from + count {
                let options = BasicPublishOptions { mandatory: true, ..Default::default() };
                let properties = AMQPProperties::default().with_delivery_mode(2);
                let body = number.to_string();
                let key = "work.k".into();
                confirms.push(channel.basic_publish(EXCHANGE.into(), key, options, body.as_bytes(), properties).await?);
            }
            Ok::<_, lapin::Error>(confirms)
        });
        self.under_way.extend(confirms.expect("the channel is open"));
        self.next += count;
    }

    fn settle(&mut self, most: usize) {
        while self.under_way.len() > most {
            let Some(confirm) = self.under_way.pop_front() else { return };
            let began = Instant::now();
            let answer = block_on(confirm);
            self.slowest = self.slowest.max(began.elapsed());
            self.note(answer);
        }
        while let Some(confirm) = self.under_way.front_mut() {
            let Some(answer) = confirm.now_or_never() else { return };
            self.under_way.pop_front();
            self.note(answer);
        }
    }

    /// Publishes this number of messages without waiting.
    pub(super) fn fill(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            let some = left.min(500);
            self.send(some);
            self.settle(2_000);
            left -= some;
        }
        self.settle(0);
    }

    /// Publishes at this rate until it is stopped.
    pub(super) fn keep_on(&mut self, a_second: usize, stop: &AtomicBool) {
        self.keep_on_to(usize::MAX, a_second, stop);
    }

    /// Publishes at this rate until it is stopped, but at most this number of messages in total. On a busy machine, many
    /// migrations can together move fewer messages than their publishers publish, so that they would not end.
    pub(super) fn keep_on_to(&mut self, most: usize, a_second: usize, stop: &AtomicBool) {
        let (began, first) = (Instant::now(), self.next);
        while !stop.load(Ordering::Relaxed) {
            let due = first + usize::try_from(began.elapsed().as_millis()).expect("short") * a_second / 1000;
            let due = due.min(most);
            // Does not catch up after a pause of the machine.
            self.send(due.saturating_sub(self.next).min(100));
            self.settle(1_000);
            std::thread::sleep(BEAT);
        }
        self.settle(0);
    }

    /// Returns the number of messages that the broker rejected with `basic.nack`.
    pub(super) fn rejected(&self) -> usize {
        self.nacked
    }

    /// Expects that every message was routed to a queue.
    #[track_caller]
    pub(super) fn expect_none_returned(&self) {
        assert_eq!(self.returned, 0, "returned, of {}", self.next);
    }

    /// Expects that every message was routed and confirmed.
    #[track_caller]
    pub(super) fn expect_all_taken(&self) {
        assert_eq!((self.returned, self.nacked), (0, 0), "returned and rejected, of {}", self.next);
    }
}

/// The progress of one consumer.
#[derive(Default)]
pub(super) struct Counts {
    /// The number of received messages.
    pub(super) seen: AtomicUsize,
    /// The number of cancels by the broker.
    pub(super) cancelled: AtomicUsize,
}

/// The result of one consumer.
#[derive(Default)]
pub(super) struct Consumed {
    pub(super) seen: Vec<usize>,
    /// The number of cancels by the broker.
    pub(super) cancelled: usize,
    /// The number of connections lost while subscribing again.
    pub(super) reconnected: usize,
}

async fn subscribe(amqp: &Amqp, queue: &str, prefetch: u16) -> lapin::Result<(Channel, Consumer)> {
    let channel = amqp.new_channel().await?;
    channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
    let options = BasicConsumeOptions::default();
    let consumer = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await?;
    Ok((channel, consumer))
}

/// A typical client, which subscribes again after a cancel, and reconnects after a connection loss.
struct Client<'a> {
    vhost: &'a Vhost<'a>,
    queue: &'a str,
    /// The consumer is closed after its channel.
    subscribed: Option<(Channel, Consumer)>,
    amqp: Amqp,
}

impl<'a> Client<'a> {
    fn new(vhost: &'a Vhost<'a>, queue: &'a str) -> Self {
        let amqp = vhost.amqp();
        let subscribed = block_on(subscribe(&amqp, queue, PREFETCH)).expect("a queue to consume from");
        Self { vhost, queue, subscribed: Some(subscribed), amqp }
    }

    /// Subscribes until it succeeds or is stopped. Returns true if the connection was lost.
    fn again(&mut self, consumed: &mut Consumed, stop: &AtomicBool) {
        self.subscribed = None;
        until("a queue to consume from", || match block_on(subscribe(&self.amqp, self.queue, PREFETCH)) {
            Ok(subscribed) => {
                self.subscribed = Some(subscribed);
                Some(())
            }
            Err(_) => {
                // RabbitMQ 3.10 sometimes closes a whole connection (541) that subscribes during a deletion.
                if block_on(self.amqp.new_channel()).is_err() {
                    consumed.reconnected += 1;
                    self.amqp = self.vhost.amqp();
                }
                stop.load(Ordering::Relaxed).then_some(())
            }
        });
    }
}

/// Consumes until it is stopped and no further message arrives. Processing a message takes some time.
pub(super) fn consume_until(
    vhost: &Vhost<'_>,
    queue: &str,
    work: Duration,
    counts: &Counts,
    stop: &AtomicBool,
) -> Consumed {
    let mut consumed = Consumed::default();
    let mut client = Client::new(vhost, queue);
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) || last.elapsed() < QUIET {
        let Some((_, consumer)) = &mut client.subscribed else { break };
        let next = block_on(async { tokio::time::timeout(Duration::from_millis(50), consumer.next()).await });
        match next {
            Err(_) => {}
            Ok(Some(Ok(delivery))) => {
                last = Instant::now();
                consumed.seen.push(number_of(&delivery.data));
                std::thread::sleep(work);
                block_on(delivery.ack(BasicAckOptions::default())).expect("the channel is open");
                counts.seen.fetch_add(1, Ordering::Relaxed);
            }
            Ok(None | Some(Err(_))) => {
                consumed.cancelled += 1;
                counts.cancelled.fetch_add(1, Ordering::Relaxed);
                client.again(&mut consumed, stop);
            }
        }
    }
    consumed
}

fn number_of(body: &[u8]) -> usize {
    let text = std::str::from_utf8(body).expect("bodies are text here");
    text.parse().unwrap_or_else(|_| panic!("an unexpected message: {text}"))
}

/// Drains a queue and returns its messages in order.
///
/// A busy quorum queue ignores acknowledgements that are in flight when their channel closes, and redelivers these
/// messages. This function omits messages that were delivered before.
pub(super) fn emptied(vhost: &Vhost<'_>, queue: &str) -> Vec<usize> {
    let asking = vhost.amqp();
    let mut numbers = Vec::new();
    let mut acknowledged = BTreeSet::new();
    loop {
        // The channel ends with its connection, even if the broker does not respond to the close of a channel.
        let amqp = vhost.amqp();
        let (channel, mut consumer) = block_on(subscribe(&amqp, queue, 1000)).expect("a queue to consume from");
        while let Ok(delivery) = block_on(async { tokio::time::timeout(QUIET, consumer.next()).await }) {
            let delivery = delivery.expect("not cancelled").expect("the channel is open");
            let number = number_of(&delivery.data);
            if !(delivery.redelivered && acknowledged.contains(&number)) {
                numbers.push(number);
            }
            acknowledged.insert(number);
            block_on(delivery.ack(BasicAckOptions::default())).expect("the channel is open");
        }
        block_on(caught_up(&channel)).expect("the channel is open");
        drop((consumer, channel, amqp));
        // Messages in flight to this consumer return when the queue removes the consumer, so a slow queue is not empty
        // yet.
        let counted = until("the end of the consumer", || {
            let counted = asking.counted(queue);
            (counted.consumers == 0).then_some(counted)
        });
        if counted.ready == 0 {
            return numbers;
        }
    }
}

/// The deviation from the publishing order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Disorder {
    /// The number of messages that arrived after a later message.
    pub(super) late: usize,
    /// The largest distance in messages.
    pub(super) furthest: usize,
}

pub(super) fn disorder(numbers: &[usize]) -> Disorder {
    let (mut disorder, mut latest) = (Disorder::default(), 0);
    for number in numbers {
        if *number < latest {
            disorder.late += 1;
            disorder.furthest = disorder.furthest.max(latest - number);
        }
        latest = latest.max(*number);
    }
    disorder
}
