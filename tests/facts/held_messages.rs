//! Messages that a consumer holds unacknowledged and returns. `broker::transport::process` and `operate::dlq` rely on
//! these facts.

use futures_util::StreamExt;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{Channel, Consumer};
use serde_json::json;

use super::{Stage, since};
use crate::support::worker::{as_number, header};
use crate::support::{Amqp, NONE, block_on, until};

/// Enough messages for several deliveries in transit.
const MESSAGES: usize = 300;
const KINDS: [&str; 2] = ["classic", "quorum"];

/// A message as a consumer received it.
#[derive(Debug, PartialEq, Eq)]
struct Received {
    body: String,
    is_redelivered: bool,
    /// The header `x-delivery-count`.
    deliveries: Option<i64>,
}

/// A channel that holds messages. Its consumers are kept, because lapin cancels a consumer when it is dropped.
struct Holder {
    channel: Channel,
    consumers: Vec<Consumer>,
}

impl Holder {
    /// Returns the messages by closing the channel.
    fn close(self) {
        block_on(self.channel.close(200, "done".into())).unwrap();
    }

    /// Returns the messages with `basic.nack`, after the consumers are canceled.
    fn cancel_and_nack(self) {
        block_on(async {
            for consumer in &self.consumers {
                self.channel.basic_cancel(consumer.tag(), BasicCancelOptions::default()).await?;
            }
            self.channel.basic_nack(0, BasicNackOptions { multiple: true, requeue: true }).await?;
            self.channel.basic_qos(1, BasicQosOptions::default()).await
        })
        .unwrap();
        self.close();
    }
}

/// Receives all messages with one consumer. The channel holds the messages.
fn receive(amqp: &Amqp, count: usize) -> (Holder, Vec<Received>) {
    let channel = amqp.channel();
    let received = block_on(async {
        channel.basic_qos(u16::MAX, BasicQosOptions::default()).await?;
        let options = BasicConsumeOptions::default();
        let mut consumer = channel.basic_consume("q".into(), "tag".into(), options, FieldTable::default()).await?;
        let mut received = Vec::new();
        while received.len() < count {
            let delivery = consumer.next().await.expect("the consumer is not canceled")?;
            received.push(Received {
                body: String::from_utf8(delivery.data).expect("the test published text"),
                is_redelivered: delivery.redelivered,
                deliveries: header(&delivery.properties, "x-delivery-count").and_then(as_number),
            });
        }
        Ok::<_, lapin::Error>((consumer, received))
    });
    let (consumer, received) = received.unwrap();
    (Holder { channel, consumers: vec![consumer] }, received)
}

fn filled(kind: &str) -> (Stage, Amqp) {
    let stage = Stage::new("held");
    stage.queue("q", kind, json!({})).expect_created();
    let amqp = stage.amqp();
    amqp.fill("q", MESSAGES);
    (stage, amqp)
}

fn bodies(received: &[Received]) -> Vec<&str> {
    received.iter().map(|it| it.body.as_str()).collect()
}

/// Used by `process::finish`, which returns messages by closing the channel. An inspection changes only the flag
/// `redelivered` of a classic queue, and also the delivery count of a quorum queue.
#[test]
fn closed_channel_returns_messages_in_order() {
    for kind in KINDS {
        let (_stage, amqp) = filled(kind);
        let (holder, first) = receive(&amqp, MESSAGES);
        assert!(first.iter().all(|it| !it.is_redelivered && it.deliveries.is_none()), "{kind}");
        holder.close();
        for round in 1..=2 {
            let (holder, next) = receive(&amqp, MESSAGES);
            assert_eq!(bodies(&next), bodies(&first), "{kind}, round {round}");
            let deliveries = (kind == "quorum").then_some(round);
            assert!(next.iter().all(|it| it.is_redelivered && it.deliveries == deliveries), "{kind}: {:?}", next[0]);
            holder.close();
        }
    }
}

/// Used by `process::finish`: since 4.3, `basic.nack` after a cancel does not count toward the delivery limit.
#[test]
fn nack_after_a_cancel_is_not_counted_since_4_3() {
    let (_stage, amqp) = filled("quorum");
    let (holder, first) = receive(&amqp, MESSAGES);
    holder.cancel_and_nack();
    let (_holder, next) = receive(&amqp, MESSAGES);
    let counts = |count| next.iter().all(|it| it.deliveries == count);
    if since(4, 3) {
        assert!(counts(None) || counts(Some(0)), "{:?}", next[0]);
        assert_eq!(bodies(&next), bodies(&first));
    } else {
        assert!(counts(Some(1)), "{:?}", next[0]);
    }
}

/// The number of messages of each consumer in [`receive_with_several`].
const EACH: u16 = 100;

/// Returns the tag of a consumer. The broker returns the messages of a channel in the order of the tags.
fn tag(number: usize) -> String {
    format!("tag.{number:02}")
}

/// Receives all messages with several consumers of one channel: each starts when the one before is full. Acknowledges every
/// tenth message. Returns the messages that the channel holds.
fn receive_with_several((stage, amqp): (&Stage, &Amqp), count: usize) -> (Holder, Vec<String>) {
    let channel = amqp.channel();
    let held = block_on(async {
        let (mut held, mut received, mut consumers) = (Vec::new(), 0, Vec::new());
        while received < count {
            channel.basic_qos(EACH, BasicQosOptions::default()).await?;
            let (tag, options) = (tag(consumers.len()), BasicConsumeOptions::default());
            let mut consumer =
                channel.basic_consume("q".into(), tag.as_str().into(), options, FieldTable::default()).await?;
            let mut kept = 0;
            while kept < EACH && received < count {
                let delivery = consumer.next().await.expect("the consumer is not canceled")?;
                if received % 10 == 5 {
                    delivery.ack(BasicAckOptions::default()).await?;
                } else {
                    held.push(String::from_utf8(delivery.data).expect("the test published text"));
                    kept += 1;
                }
                received += 1;
            }
            consumers.push(consumer);
        }
        channel.basic_qos(1, BasicQosOptions::default()).await?;
        Ok::<_, lapin::Error>((held, consumers))
    });
    let (held, consumers) = held.unwrap();
    // The channel of a quorum queue holds back some acknowledgements.
    until("the acknowledgements", || (stage.totals("q")["messages"] == held.len()).then_some(()));
    (Holder { channel, consumers }, held)
}

/// Used by `process::session`, which holds more messages than the largest prefetch count with several consumers.
#[test]
fn several_consumers_of_a_channel_return_messages_in_order() {
    for kind in KINDS {
        let stage = Stage::new("several");
        stage.queue("q", kind, json!({})).expect_created();
        let amqp = stage.amqp();
        amqp.fill("q", 1_500);
        let mut left = 1_500;
        for round in 0..4 {
            let (holder, held) = receive_with_several((&stage, &amqp), left);
            assert!(holder.consumers.len() >= 8);
            left = held.len();
            if since(4, 3) && kind == "quorum" && round % 2 == 1 {
                holder.cancel_and_nack();
            } else {
                holder.close();
            }
            let (holder, next) = receive(&amqp, left);
            assert_eq!(bodies(&next), held, "{kind}, round {round}");
            let numbers: Vec<usize> = next.iter().map(|it| it.body["message ".len()..].parse().unwrap()).collect();
            assert!(numbers.is_sorted(), "{kind}, round {round}");
            holder.close();
        }
    }
}

/// Used by `operate::status` and `operate::alerts`, whose thresholds compare all messages.
#[test]
fn held_messages_are_counted_but_not_ready() {
    for kind in KINDS {
        let (stage, amqp) = filled(kind);
        let (_holder, _) = receive(&amqp, MESSAGES);
        until("the counts", || {
            let totals = stage.totals("q");
            (totals["messages"] == MESSAGES && totals["messages_ready"] == 0).then_some(())
        });
    }
}

/// Used by `dlq::hazards`: a full queue accepts messages while topo holds others, and drops the oldest when they return.
#[test]
fn returned_messages_exceed_the_limit_and_drop_the_oldest() {
    for kind in KINDS {
        let stage = Stage::new("held-limit");
        stage.queue("q", kind, json!({"x-max-length": 5})).expect_created();
        let amqp = stage.amqp();
        amqp.fill("q", 5);
        let (holder, _) = receive(&amqp, 5);
        amqp.fill("q", 3);
        holder.close();
        until("the queue to drop messages", || (amqp.ready("q") == 5).then_some(()));
        let (_holder, left) = receive(&amqp, 5);
        let expected = ["message 3", "message 4", "message 0", "message 1", "message 2"];
        assert_eq!(bodies(&left), expected, "{kind}");
    }
}

/// Used by `transport::temporary`: an exclusive queue is a lock, which the broker releases with its connection.
#[test]
fn exclusive_queue_is_locked_until_its_connection_ends() {
    let stage = Stage::new("exclusive");
    let (first, second) = (stage.amqp(), stage.amqp());
    let options = QueueDeclareOptions { exclusive: true, ..Default::default() };
    first.declare_queue_as("lock", options, NONE).unwrap();
    let refused = second.declare_queue_as("lock", options, NONE).unwrap_err();
    assert!(refused.contains("RESOURCE_LOCKED") || refused.contains("405"), "{refused}");
    drop(first);
    until("the lock to be free", || second.declare_queue_as("lock", options, NONE).is_ok().then_some(()));
}
