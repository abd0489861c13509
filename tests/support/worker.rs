//! A worker that uses only the values of its contract, from `topo contract --format json`.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, BasicRejectOptions};
use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Consumer};
use serde_json::Value;

use super::amqp::{Amqp, Outcome, reported};
use super::wait::{block_on, try_block_on};

/// A subscription to a queue, which ends when the value is dropped.
pub(crate) struct Worker<'a> {
    amqp: &'a Amqp,
    contract: &'a Value,
    channel: Channel,
    consumer: Consumer,
}

/// A delivered message.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) at: Instant,
    pub(crate) delivery: Delivery,
    /// The number of the retry according to the contract; 0 is the first attempt.
    pub(crate) retry: u64,
}

impl Work {
    pub(crate) fn header(&self, name: &str) -> Option<&AMQPValue> {
        header(&self.delivery.properties, name)
    }
}

/// Returns a header of a message.
pub(crate) fn header<'a>(properties: &'a AMQPProperties, name: &str) -> Option<&'a AMQPValue> {
    properties.headers().as_ref()?.inner().get(name)
}

/// Returns a string of any AMQP type.
pub(crate) fn as_text(value: &AMQPValue) -> Option<String> {
    value.as_long_string().map(ToString::to_string)
}

/// Returns an integer of any AMQP type.
pub(crate) fn as_number(value: &AMQPValue) -> Option<i64> {
    value
        .as_long_long_int()
        .or_else(|| value.as_long_int().map(i64::from))
        .or_else(|| value.as_long_uint().map(i64::from))
        .or_else(|| value.as_short_int().map(i64::from))
        .or_else(|| value.as_short_short_int().map(i64::from))
}

/// Returns the value at `x-death[queue=Q, reason=R].field` or in a header.
pub(crate) fn found(properties: &AMQPProperties, path: &str) -> Option<String> {
    let Some(entry) = path.strip_prefix("x-death[queue=") else { return as_text(header(properties, path)?) };
    let (queue, rest) = entry.split_once(", reason=").expect("an entry has a reason");
    let (reason, field) = rest.split_once("].").expect("an entry has a field");
    let deaths = header(properties, "x-death")?.as_array()?;
    let death = deaths.as_slice().iter().filter_map(AMQPValue::as_field_table).find(|death| {
        let is = |key: &str, value: &str| death.inner().get(key).and_then(as_text).as_deref() == Some(value);
        is("queue", queue) && is("reason", reason)
    })?;
    match field.strip_suffix("[0]") {
        Some(list) => as_text(death.inner().get(list)?.as_array()?.as_slice().first()?),
        None => as_text(death.inner().get(field)?),
    }
}

impl<'a> Worker<'a> {
    pub(crate) fn of(amqp: &'a Amqp, queue: &str, contract: &'a Value) -> Self {
        let channel = amqp.channel();
        let consumer = block_on(async {
            channel.basic_qos(1, BasicQosOptions::default()).await?;
            channel.basic_consume(queue.into(), "".into(), BasicConsumeOptions::default(), FieldTable::default()).await
        });
        let consumer = consumer.unwrap_or_else(|error| panic!("{}", reported(&error)));
        Self { amqp, contract, channel, consumer }
    }

    /// Returns the next message, if it arrives within this time.
    pub(crate) fn next(&mut self, within: Duration) -> Option<Work> {
        let next = async { tokio::time::timeout(within, self.consumer.next()).await };
        let delivery = block_on(next).ok()?.expect("not cancelled while it waits");
        let delivery = delivery.unwrap_or_else(|error| panic!("{}", reported(&error)));
        let retry = self.retry(&delivery);
        Some(Work { at: Instant::now(), delivery, retry })
    }

    /// Returns the number of the retry.
    fn retry(&self, delivery: &Delivery) -> u64 {
        let (counter, arrives) = (&self.contract["counter"], &self.contract["retryArrives"]);
        if let Some(name) = counter["header"].as_str() {
            let count = header(&delivery.properties, name).map_or(0, |value| as_number(value).expect("a number"));
            return count.try_into().expect("not negative");
        }
        let keys = arrives["routingKeys"].as_array().map_or(&[][..], Vec::as_slice);
        let came_back = arrives["exchange"].as_str() == Some(delivery.exchange.as_str());
        let place = keys.iter().position(|key| came_back && key == delivery.routing_key.as_str());
        place.map_or(0, |place| place as u64 + 1)
    }

    fn is_own_counter(&self) -> bool {
        self.contract["counter"]["countedBy"] == "worker"
    }

    /// Fails the message: the worker retries, or gives up if it counts and its retries are exhausted.
    pub(crate) fn fail(&self, work: Work) {
        let is_over = self.is_own_counter() && work.retry >= self.contract["maxRetries"].as_u64().expect("a number");
        if is_over {
            return self.give_up(work);
        }
        let mut copy = work.delivery.properties.clone();
        if self.is_own_counter() {
            let mut headers = copy.headers().clone().unwrap_or_default();
            let name = |of: &Value| of.as_str().expect("a header").to_owned();
            let count = i64::try_from(work.retry + 1).expect("few retries");
            headers.insert(name(&self.contract["counter"]["header"]).into(), AMQPValue::LongLongInt(count));
            if work.retry == 0 {
                let original = &self.contract["original"];
                let text = |text: &str| AMQPValue::LongString(text.into());
                headers.insert(name(&original["exchange"]).into(), text(work.delivery.exchange.as_str()));
                headers.insert(name(&original["routingKey"]).into(), text(work.delivery.routing_key.as_str()));
            }
            copy = copy.with_headers(headers);
            if let Some(jitter) = self.contract["jitter"]["milliseconds"].as_i64() {
                let delays = self.contract["delays"].as_array().expect("delays");
                let delay = delays[usize::try_from(work.retry).expect("few retries")]["milliseconds"].as_i64();
                // Uses the earliest permitted expiration.
                copy = copy.with_expiration((delay.expect("a number") - jitter).to_string().into());
            }
        }
        self.answer("onFailure", work, copy);
    }

    /// Gives up the message.
    pub(crate) fn give_up(&self, work: Work) {
        let copy = work.delivery.properties.clone();
        self.answer("onGiveUp", work, copy);
    }

    /// Acknowledges the message.
    pub(crate) fn acknowledge(&self, work: &Work) {
        block_on(work.delivery.ack(BasicAckOptions::default())).expect("the channel is open");
    }

    /// Publishes a corrected dead-lettered message with every header of the contract.
    pub(crate) fn publish_dead_lettered(&self, work: &Work) {
        let dead_message = &self.contract["deadLetteredMessage"];
        let mut headers = work.delivery.properties.headers().clone().unwrap_or_default();
        for header in dead_message["headers"].as_array().expect("headers") {
            let value = header["value"].as_str().unwrap_or("set by the worker");
            headers.insert(header["name"].as_str().expect("a name").into(), AMQPValue::LongString(value.into()));
        }
        self.publish(&dead_message["publish"], 0, work, work.delivery.properties.clone().with_headers(headers));
        block_on(work.delivery.ack(BasicAckOptions::default())).expect("the channel is open");
    }

    fn answer(&self, how: &str, work: Work, copy: AMQPProperties) {
        let how = &self.contract[how];
        if !how["publish"].is_null() {
            self.publish(&how["publish"], work.retry, &work, copy);
        }
        let requeue = how["requeue"].as_bool();
        let answered = block_on(async {
            match (how["method"].as_str().expect("a method"), requeue) {
                ("basic.ack", None) => work.delivery.ack(BasicAckOptions::default()).await,
                ("basic.nack", Some(requeue)) => {
                    work.delivery.nack(BasicNackOptions { requeue, ..Default::default() }).await
                }
                ("basic.reject", Some(requeue)) => work.delivery.reject(BasicRejectOptions { requeue }).await,
                (method, requeue) => panic!("{method} with {requeue:?}"),
            }
        });
        answered.expect("the channel is open");
    }

    fn publish(&self, to: &Value, retry: u64, work: &Work, properties: AMQPProperties) {
        let keys = to["routingKeys"].as_array().expect("keys");
        let place = usize::try_from(retry).expect("few retries").min(keys.len() - 1);
        let (exchange, key) = (to["exchange"].as_str().expect("an exchange"), keys[place].as_str().expect("a key"));
        let body = std::str::from_utf8(&work.delivery.data).expect("a text");
        assert_eq!(self.amqp.publish_with(exchange, key, body, properties), Outcome::Routed, "{exchange} {key}");
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        // Sometimes the response never arrives (observed on 3.10 and 4.0). The connection closes with the test.
        let close = self.channel.close(200, "done".into());
        let _ = try_block_on(async { tokio::time::timeout(Duration::from_secs(5), close).await });
    }
}
