//! A topology with a work queue and a dead-letter queue, and helpers that dead-letter messages.

use futures_util::StreamExt;
use futures_util::future::join_all;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, BasicRejectOptions,
    ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldTable};
use serde_json::Value;
use std::time::Duration;

use crate::support::worker::{as_number, as_text, header};
use crate::support::{Amqp, Message, Node, Output, Topo, Vhost, block_on, until};

pub(super) const WORK: &str = "orders.work";
pub(super) const DEAD: &str = "orders.dead";
pub(super) const EXCHANGE: &str = "orders";

/// A number of commands that the channel of a quorum queue sends immediately.
const FEW: usize = 30;

/// A vhost with an exchange, a work queue and a dead-letter queue.
pub(super) struct Fixture<'a> {
    node: &'a Node,
    pub(super) vhost: Vhost<'a>,
    pub(super) topo: Topo,
    pub(super) amqp: Amqp,
}

/// The types of queues on which a test runs.
pub(super) const KINDS: [&str; 2] = ["classic", "quorum"];

impl Fixture<'static> {
    /// Applies a spec with queues of this type, and with further keys of the work queue and the dead-letter queue.
    pub(super) fn with(hint: &str, kind: &str, work: &str, dead: &str) -> Self {
        Self::on(Node::shared(), hint, kind, work, dead)
    }

    /// Applies a spec with queues of this type. A quorum dead-letter queue has no delivery limit.
    pub(super) fn new(hint: &str, kind: &str) -> Self {
        Self::with(hint, kind, "", "")
    }
}

impl<'a> Fixture<'a> {
    /// Like [`Fixture::with`], on a separate node.
    pub(super) fn on(node: &'a Node, hint: &str, kind: &str, work: &str, dead: &str) -> Self {
        let vhost = node.vhost(hint);
        let spec = format!(
            "exchanges: {{{EXCHANGE}: {{type: topic}}}}\n\
             queues: {{{WORK}: {{type: {kind}, deadLetter: {DEAD}, bindings: [{{exchange: {EXCHANGE}, routingKey: \
             'order.#'}}]{work}}}}}\n\
             deadLetterQueues: {{{DEAD}: {{type: {kind}{dead}}}}}\n"
        );
        let topo = Topo::new(&vhost).spec(&spec);
        topo.run(["apply", "topology.yaml", "--yes", "--quiet"]).expect_code(0);
        let amqp = vhost.amqp();
        Self { node, vhost, topo, amqp }
    }

    /// Publishes messages with the bodies `0`, `1` and so on, and rejects them. The routing keys alternate between
    /// `order.paid` and `order.created`, and the header `n` contains the number.
    pub(super) fn dead_letter(&self, count: usize) {
        self.publish(count);
        self.fail(WORK, count);
        self.until_dead(count);
    }

    pub(super) fn publish(&self, count: usize) {
        let channel = self.amqp.channel();
        block_on(async {
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            let mut confirms = Vec::new();
            for number in 0..count {
                let key = if number % 2 == 0 { "order.paid" } else { "order.created" };
                let options = BasicPublishOptions { mandatory: true, ..Default::default() };
                let body = number.to_string();
                confirms.push(
                    channel
                        .basic_publish(EXCHANGE.into(), key.into(), options, body.as_bytes(), properties(number))
                        .await?,
                );
            }
            for confirmed in join_all(confirms).await {
                assert!(confirmed?.is_ack());
            }
            Ok::<_, lapin::Error>(())
        })
        .unwrap();
    }

    /// Rejects this number of messages. Closes the channel only after the messages are dead-lettered, because the channel
    /// of a quorum queue delays rejections, and a close discards them. With few messages, there is no delay.
    ///
    /// 3.8 dead-letters the messages of a delayed rejection in any order, so the rejections are then not delayed.
    pub(super) fn fail(&self, queue: &str, count: usize) {
        let channel = self.amqp.channel();
        let before = self.ready(DEAD);
        let chunk = if self.node.at_least(3, 9) { count } else { count.min(FEW) };
        let consumer = block_on(async {
            channel.basic_qos(500, BasicQosOptions::default()).await?;
            let options = BasicConsumeOptions::default();
            channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await
        });
        let mut consumer = consumer.unwrap();
        for start in (0..count).step_by(chunk.max(1)) {
            let end = count.min(start + chunk);
            block_on(async {
                for _ in start..end {
                    let delivery = consumer.next().await.expect("a delivery")?;
                    delivery.reject(BasicRejectOptions { requeue: false }).await?;
                }
                channel.basic_qos(1, BasicQosOptions::default()).await
            })
            .unwrap();
            if count > FEW {
                self.until_dead(before + end);
            }
        }
        block_on(channel.close(200, "done".into())).unwrap();
    }

    /// Waits until the dead-letter queue contains this number of ready messages.
    pub(super) fn until_dead(&self, count: usize) {
        until("the messages to be dead-lettered", || (self.ready(DEAD) == count).then_some(()));
    }

    pub(super) fn ready(&self, queue: &str) -> usize {
        usize::try_from(self.amqp.ready(queue)).unwrap()
    }

    /// Runs a command of `topo dlq` on the dead-letter queue.
    pub(super) fn dlq(&self, command: &str, flags: &[&str]) -> Output {
        self.topo.run(self.words(command, flags).iter().map(String::as_str))
    }

    pub(super) fn words(&self, command: &str, flags: &[&str]) -> Vec<String> {
        let target = if command == "restore" { &[][..] } else { &[DEAD][..] };
        let words = [&["dlq", command][..], target, &["--vhost", "{vhost}"], flags].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    /// Replays without consumers, confirmation and waits.
    pub(super) fn replay(&self, flags: &[&str]) -> Output {
        self.dlq("replay", &[REPLAY, flags].concat())
    }

    /// Consumes a queue until it is empty. Returns the messages in order.
    pub(super) fn drain(&self, queue: &str) -> Vec<Message> {
        let channel = self.amqp.channel();
        let mut messages: Vec<Message> = Vec::new();
        block_on(async {
            channel.basic_qos(1000, BasicQosOptions::default()).await?;
            let options = BasicConsumeOptions::default();
            let mut consumer = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await?;
            let mut is_empty = false;
            loop {
                match tokio::time::timeout(Duration::from_secs(1), consumer.next()).await {
                    Ok(delivery) => {
                        is_empty = false;
                        let delivery = delivery.expect("the queue exists")?;
                        delivery.ack(BasicAckOptions::default()).await?;
                        messages.push(delivery.into());
                    }
                    Err(_) => {
                        let passive = QueueDeclareOptions { passive: true, ..Default::default() };
                        let counted = channel.queue_declare(queue.into(), passive, FieldTable::default()).await?;
                        // A busy broker can deliver late. A large delivery can arrive just before this reply.
                        let was_empty = std::mem::replace(&mut is_empty, counted.message_count() == 0);
                        if was_empty && is_empty {
                            break;
                        }
                    }
                }
            }
            channel.basic_qos(1, BasicQosOptions::default()).await?;
            channel.close(200, "done".into()).await
        })
        .unwrap();
        messages
    }
}

/// The flags of a replay that neither asks nor waits.
pub(super) const REPLAY: &[&str] =
    &["--yes", "--rate", "none", "--canary", "0", "--settle", "0s", "--allow", "no-consumers"];

fn properties(number: usize) -> AMQPProperties {
    let mut headers = FieldTable::default();
    headers.insert("n".into(), AMQPValue::LongInt(i32::try_from(number).unwrap()));
    let tenant = if number.is_multiple_of(3) { "acme" } else { "beta" };
    headers.insert("tenant".into(), AMQPValue::LongString(tenant.into()));
    AMQPProperties::default().with_delivery_mode(2).with_message_id(format!("m{number}").into()).with_headers(headers)
}

/// Returns the bodies as numbers, in order.
pub(super) fn numbers(messages: &[Message]) -> Vec<usize> {
    messages.iter().map(|message| std::str::from_utf8(&message.body).unwrap().parse().unwrap()).collect()
}

/// Returns an integer in a header.
pub(super) fn number_header(message: &Message, name: &str) -> Option<i64> {
    as_number(header(&message.properties, name)?)
}

/// Returns a string in a header.
pub(super) fn text_header(message: &Message, name: &str) -> Option<String> {
    as_text(header(&message.properties, name)?)
}

/// Returns the names of the headers.
pub(super) fn header_names(message: &Message) -> Vec<String> {
    let headers = message.properties.headers().as_ref().map(|it| it.inner().keys().map(ToString::to_string).collect());
    headers.unwrap_or_default()
}

/// Returns the report of a run in JSON.
pub(super) fn report(output: &Output) -> Value {
    output.json()
}
