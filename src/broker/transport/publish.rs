//! Publishes messages to an exchange, with confirms and a bounded number of unconfirmed messages.

use super::amqp::AmqpTransport;
use super::connection::{error_text, protocol_error, short};
use super::raw_properties::as_library_properties;
use crate::broker::error::BrokerError;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{Channel, Confirmation};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::timeout;

/// The maximum time without a confirm.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// A message to publish.
pub struct OutgoingMessage {
    /// The routing key.
    pub routing_key: String,
    /// The properties, as AMQP encodes them.
    pub encoded_properties: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// The reason why a message was not accepted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PublishFault {
    /// The exchange routed the message to no queue, or does not exist.
    #[error("the exchange routed the message to no queue: {0}")]
    Unroutable(String),
    /// A queue rejected the message, usually because the queue is full.
    #[error("the queue rejected the message, probably because the queue is full")]
    Rejected,
    /// Another error.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}

type Confirm = Pin<Box<dyn Future<Output = lapin::Result<Confirmation>> + Send>>;

/// A channel that publishes to one exchange.
pub struct Publisher {
    transport: AmqpTransport,
    channel: Channel,
    exchange: String,
    window: usize,
    unconfirmed: FuturesOrdered<Confirm>,
}

impl AmqpTransport {
    /// Opens a publisher that allows at most `window` unconfirmed messages.
    ///
    /// # Errors
    /// The channel cannot be opened.
    pub async fn publisher(&self, exchange: &str, window: usize) -> Result<Publisher, BrokerError> {
        let channel = self.0.channel().await?;
        self.0.answer("confirm.select", channel.confirm_select(ConfirmSelectOptions::default())).await?;
        let (transport, exchange) = (self.clone(), exchange.to_owned());
        Ok(Publisher { transport, channel, exchange, window, unconfirmed: FuturesOrdered::new() })
    }
}

impl Publisher {
    /// Returns true if the number of unconfirmed messages has reached the maximum. In this case, call
    /// [`Self::confirm_next`] before publishing the next message.
    pub fn is_full(&self) -> bool {
        self.unconfirmed.len() >= self.window
    }

    /// Publishes a message without waiting for its confirm.
    pub fn publish(&mut self, message: OutgoingMessage) {
        let (channel, exchange) = (self.channel.clone(), self.exchange.clone());
        let confirm = async move {
            let options = BasicPublishOptions { mandatory: true, immediate: false };
            let OutgoingMessage { routing_key, encoded_properties, body } = message;
            let properties = as_library_properties(encoded_properties);
            channel.basic_publish(short(&exchange), short(&routing_key), options, &body, properties).await?.await
        };
        let mut confirm: Confirm = Box::pin(confirm);
        // The first poll writes to the library's queue, so the order of calls is the order on the wire.
        self.unconfirmed.push_back(match (&mut confirm).now_or_never() {
            Some(answered) => Box::pin(std::future::ready(answered)),
            None => confirm,
        });
    }

    /// Waits for the confirm of the oldest message. Returns the number of confirmed messages: 1, or 0 if no message is
    /// unconfirmed.
    ///
    /// # Errors
    /// The message was not accepted, the broker did not confirm it in time, or the connection failed.
    pub async fn confirm_next(&mut self) -> Result<u64, PublishFault> {
        let request = format!("basic.publish to {}", self.exchange);
        let next = timeout(RESPONSE_TIMEOUT, self.unconfirmed.next()).await;
        let url = self.transport.0.options.address.to_string();
        match next {
            Err(_) if self.transport.0.is_blocked() => Err(BrokerError::Alarm { url, request }.into()),
            Err(_) => Err(BrokerError::Timeout { url, request, after: RESPONSE_TIMEOUT }.into()),
            Ok(None) => Ok(0),
            Ok(Some(Ok(Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned))))) => {
                Err(PublishFault::Unroutable(returned.reply_text.to_string()))
            }
            Ok(Some(Ok(Confirmation::Ack(None)))) => Ok(1),
            Ok(Some(Ok(Confirmation::Nack(None) | Confirmation::NotRequested))) => Err(PublishFault::Rejected),
            Ok(Some(Err(error))) if protocol_error(&error).is_some_and(|reply| reply.get_id() == 404) => {
                Err(PublishFault::Unroutable(error_text(&error)))
            }
            Ok(Some(Err(error))) => Err(self.transport.0.request_error(&request, &error).into()),
        }
    }

    /// Closes the channel.
    pub async fn close(self) {
        let _ = self.channel.close(200, "done".into()).await;
    }
}
