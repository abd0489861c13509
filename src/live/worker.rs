//! A worker that consumes from a queue. The worker receives one message at a time, and behaves as the case specifies.

use super::log::{Log, number_of};
use crate::broker::BrokerError;
use crate::broker::message::{HeaderValue, ReceivedMessage};
use crate::broker::transport::{AmqpTransport, ApplicationChannel, Delivered, PropertyEdit, WorkerReply, edited};
use crate::contract::{Contract, Method};
use crate::model::message_headers::RETRY_COUNT;
use crate::model::{ArgumentValue, QueueName};
use crate::simulation::{Behavior, Worker};
use std::cell::RefCell;
use std::convert::Infallible;

/// The worker for a queue.
pub(super) struct LiveWorker<'c> {
    queue: &'c QueueName,
    worker: &'c Worker,
    contract: Option<&'c Contract>,
    /// The identifier of the case. Messages from other cases are acknowledged and ignored.
    case: &'c str,
    /// The current connection.
    connection: RefCell<Option<AmqpTransport>>,
}

impl<'c> LiveWorker<'c> {
    pub(super) fn new(queue: &'c QueueName, worker: &'c Worker, contract: Option<&'c Contract>, case: &'c str) -> Self {
        Self { queue, worker, contract, case, connection: RefCell::default() }
    }

    /// Consumes until the future is dropped. Each worker has its own connections.
    ///
    /// # Errors
    /// The broker refused the consumer or a message, or the connection failed.
    pub(super) async fn work(&self, amqp: &AmqpTransport, log: &Log) -> Result<Infallible, BrokerError> {
        let mut deliveries = 0;
        // A held message must stay unacknowledged.
        let mut held = Vec::new();
        loop {
            let connection = amqp.reconnected().await?;
            *self.connection.borrow_mut() = Some(connection.clone());
            let channel = connection.application_channel().await?;
            let mut subscription = channel.subscribe(self.queue).await?;
            log.record_subscription(self.queue);
            loop {
                let delivered = subscription.next().await?;
                if number_of(&delivered.message, self.case).is_none() {
                    delivered.reply(WorkerReply::Ack).await?;
                    continue;
                }
                log.record_delivery(self.queue);
                let behavior = self.worker.behavior(deliveries).unwrap_or(Behavior::Hold);
                deliveries += 1;
                match behavior {
                    Behavior::Hold => held.push(delivered),
                    Behavior::Crash => break,
                    Behavior::Ack => delivered.reply(WorkerReply::Ack).await?,
                    Behavior::Nack => delivered.reply(WorkerReply::Nack(false)).await?,
                    Behavior::NackRequeue => delivered.reply(WorkerReply::Nack(true)).await?,
                    Behavior::Reject => delivered.reply(WorkerReply::Reject(false)).await?,
                    Behavior::Requeue => delivered.reply(WorkerReply::Reject(true)).await?,
                    Behavior::Fail | Behavior::GiveUp => {
                        self.react(&channel, &delivered, behavior == Behavior::GiveUp).await?;
                    }
                }
            }
            // After the connection is closed, the broker requeues the message.
            connection.close().await;
        }
    }

    /// Closes the connection. The broker requeues held messages.
    pub(super) async fn close(&self) {
        let connection = self.connection.borrow_mut().take();
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    /// Reacts to a failure according to the contract.
    async fn react(
        &self,
        channel: &ApplicationChannel,
        delivered: &Delivered,
        gives_up: bool,
    ) -> Result<(), BrokerError> {
        // `cases::check` refuses these behaviors for a queue without a contract.
        let Some(contract) = self.contract else { return delivered.reply(WorkerReply::Nack(false)).await };
        let message = &delivered.message;
        let reaction = contract.reaction(retries(message), gives_up);
        if let Some(publish) = &reaction.answer.publish {
            let headers = reaction.headers(&message.exchange, &message.routing_key);
            let adds: Vec<(&str, HeaderValue)> =
                headers.iter().filter_map(|(name, value)| Some((name.as_str(), header(value)?))).collect();
            let edit = PropertyEdit { removes: |_| false, adds: &adds, makes_persistent: false };
            let copy = edited(&message.encoded_properties, &edit);
            let copy = copy.unwrap_or_else(|| message.encoded_properties.clone());
            channel.publish(&publish.exchange, reaction.routing_key(publish), copy, &message.body).await?;
        }
        let requeue = reaction.answer.requeue.unwrap_or(false);
        delivered
            .reply(match reaction.answer.method {
                Method::Ack => WorkerReply::Ack,
                Method::Nack => WorkerReply::Nack(requeue),
                Method::Reject => WorkerReply::Reject(requeue),
            })
            .await
    }
}

/// Returns the number of retries in the header that workers set.
fn retries(message: &ReceivedMessage) -> u32 {
    let count = message.header(RETRY_COUNT).and_then(HeaderValue::as_integer);
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

/// Converts the value of a header; `None` if test files do not support the value.
pub(super) fn header(value: &ArgumentValue) -> Option<HeaderValue> {
    match value {
        ArgumentValue::Boolean(value) => Some(HeaderValue::Boolean(*value)),
        ArgumentValue::Integer(number) => Some(HeaderValue::Integer((*number).into())),
        ArgumentValue::Float(number) => Some(HeaderValue::Float(number.0)),
        ArgumentValue::Text(text) => Some(HeaderValue::Text(text.clone())),
        ArgumentValue::List(items) => Some(HeaderValue::List(items.iter().map(header).collect::<Option<_>>()?)),
        ArgumentValue::Null | ArgumentValue::Table(_) => None,
    }
}
