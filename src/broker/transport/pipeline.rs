//! Tracks the messages in transit on one channel: unconfirmed messages in the order of the source, and acknowledgements
//! that have not been written yet. Waiting for each confirm or acknowledgement would delay the next messages.

use super::answers::Answers;
use super::connection::short;
use crate::broker::redact::sanitize;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use lapin::message::{BasicReturnMessage, Delivery};
use lapin::options::{BasicAckOptions, BasicPublishOptions};
use lapin::types::DeliveryTag;
use lapin::{Channel, Confirmation};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The messages published on one channel, until they are removed.
#[derive(Default)]
pub(super) struct Pipeline {
    sent: VecDeque<Sent>,
    /// The number of the first message. The following messages have consecutive numbers.
    first: u64,
    answers: Arc<Answers>,
    /// True if a message was rejected, or failed with its channel or connection.
    has_rejected: bool,
    /// The returned messages. The library does not report which sent message was returned. It reports a returned
    /// message together with *some* confirm that the broker sent after the return.
    returned: VecDeque<BasicReturnMessage>,
}

struct Sent {
    /// The tag of the delivery, for its acknowledgement.
    tag: DeliveryTag,
    waker: Waker,
    answer: Answer,
}

enum Answer {
    Awaited(BoxFuture<'static, (Delivery, lapin::Result<Confirmation>)>),
    Confirmed(Delivery),
    Rejected(Delivery),
    /// The channel or the connection failed.
    Failed,
}

/// The outcome of one published message, after all messages in transit are answered.
pub(super) enum Outcome {
    /// The target has confirmed the message.
    Confirmed,
    /// The message was returned, because the target routed it to no queue.
    Returned { reason: String },
    /// This message or another message was returned.
    Unknown { reason: String },
    /// A queue that is bound to the target rejected the message.
    Rejected(Box<Delivery>),
    /// The channel or the connection failed before the message was answered.
    Failed,
}

/// Publishes a message with its routing key, properties and body unchanged.
fn publish(
    channel: &Channel,
    target: &str,
    delivery: Delivery,
) -> BoxFuture<'static, (Delivery, lapin::Result<Confirmation>)> {
    let (channel, target) = (channel.clone(), short(target));
    async move {
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        let (key, properties) = (delivery.routing_key.clone(), delivery.properties.clone());
        let answer = async { channel.basic_publish(target, key, options, &delivery.data, properties).await?.await };
        let answer = answer.await;
        (delivery, answer)
    }
    .boxed()
}

impl Pipeline {
    /// Returns the number of messages in transit.
    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Returns true if no message is in transit.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Publishes a message. The first poll writes to the library's queue, so the order of calls is the order on the
    /// wire.
    pub(super) fn push(&mut self, channel: &Channel, target: &str, delivery: Delivery) {
        let (tag, number) = (delivery.delivery_tag, self.first + self.sent.len() as u64);
        let waker = self.answers.waker_of(number);
        let mut answer = publish(channel, target, delivery);
        if let Poll::Ready(ready) = answer.poll_unpin(&mut Context::from_waker(&waker)) {
            answer = std::future::ready(ready).boxed();
            self.answers.mark(number);
        }
        self.sent.push_back(Sent { tag, waker, answer: Answer::Awaited(answer) });
    }

    /// Waits until the oldest unanswered message is answered, and processes all answers that have arrived.
    pub(super) async fn settle(&mut self) -> lapin::Result<()> {
        let Some(oldest) = self.sent.iter().position(Sent::is_awaited) else { return Ok(()) };
        poll_fn(|context| {
            loop {
                self.poll_answered()?;
                if !self.sent.get(oldest).is_some_and(Sent::is_awaited) {
                    return Poll::Ready(Ok(()));
                }
                if self.answers.wake_on(self.first + oldest as u64, context.waker()) {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Polls all messages whose waker was called, and repeats this until no further waker has been called.
    ///
    /// The library reports a returned message together with the first confirm that the broker sent after the return.
    /// That confirm may belong to another message. To be certain that a confirmed message was not returned, topo must
    /// therefore poll all other messages *after* its confirm. These polls report all messages that were returned before
    /// the confirm.
    ///
    /// Polling only the messages whose waker was called is sufficient. The library processes one answer after another,
    /// and calls a message's waker before it processes the next answer. The polls are repeated, because further answers
    /// can arrive during a poll.
    fn poll_answered(&mut self) -> lapin::Result<()> {
        let mut failed = Ok(());
        loop {
            let answered = self.answers.take();
            if answered.is_empty() {
                return failed;
            }
            for number in answered {
                // Skips messages that were removed.
                let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
                let Some(sent) = index.and_then(|index| self.sent.get_mut(index)) else { continue };
                failed = failed.and(sent.poll(&mut self.returned));
                self.has_rejected |= matches!(sent.answer, Answer::Rejected(_) | Answer::Failed);
            }
        }
    }

    /// Returns true if no message has been rejected or returned so far, and none has failed.
    pub(super) fn has_only_confirms(&self) -> bool {
        self.returned.is_empty() && !self.has_rejected
    }

    /// Removes the confirmed messages before the first unconfirmed message, and returns their tags.
    pub(super) fn take_confirmed(&mut self) -> Vec<DeliveryTag> {
        let mut taken = Vec::new();
        while let Some(Sent { tag, answer: Answer::Confirmed(_), .. }) = self.sent.front() {
            taken.push(*tag);
            self.sent.pop_front();
            self.first += 1;
        }
        taken
    }

    /// Waits until all messages are answered, removes them, and returns their outcomes. Identifies returned messages by
    /// content. For identical messages, it does not matter which message was returned.
    pub(super) async fn drain(&mut self) -> lapin::Result<Vec<(DeliveryTag, Outcome)>> {
        while self.sent.iter().any(Sent::is_awaited) {
            self.settle().await?;
        }
        let mut returned = std::mem::take(&mut self.returned);
        let mut outcomes = Vec::new();
        self.first += self.sent.len() as u64;
        self.has_rejected = false;
        for Sent { tag, answer, .. } in self.sent.drain(..) {
            let outcome = match answer {
                Answer::Confirmed(delivery) => {
                    let position = returned.iter().position(|returned_message| is_same(returned_message, &delivery));
                    match position.and_then(|index| returned.remove(index)) {
                        Some(returned_message) => Outcome::Returned { reason: reason(&returned_message) },
                        None => Outcome::Confirmed,
                    }
                }
                Answer::Rejected(delivery) => Outcome::Rejected(Box::new(delivery)),
                Answer::Failed => Outcome::Failed,
                // Not possible after the loop above.
                Answer::Awaited(_) => continue,
            };
            outcomes.push((tag, outcome));
        }
        // A returned message that matches none of the sent messages could be any of them. Therefore, no message is
        // known to be confirmed.
        if let Some(returned_message) = returned.front() {
            for (_, outcome) in &mut outcomes {
                *outcome = Outcome::Unknown { reason: reason(returned_message) };
            }
        }
        Ok(outcomes)
    }
}

impl Sent {
    fn is_awaited(&self) -> bool {
        matches!(self.answer, Answer::Awaited(_))
    }

    fn poll(&mut self, returned: &mut VecDeque<BasicReturnMessage>) -> lapin::Result<()> {
        let Answer::Awaited(answer) = &mut self.answer else { return Ok(()) };
        let mut context = Context::from_waker(&self.waker);
        let Poll::Ready((delivery, confirmation)) = answer.poll_unpin(&mut context) else { return Ok(()) };
        self.answer = match confirmation {
            Ok(Confirmation::Ack(messages)) => {
                returned.extend(messages);
                Answer::Confirmed(delivery)
            }
            Ok(Confirmation::Nack(messages)) => {
                // The returned messages may include messages other than this one.
                returned.extend(messages);
                Answer::Rejected(delivery)
            }
            // Confirms were requested. Without a confirm, the message is not known to be at the target.
            Ok(Confirmation::NotRequested) => Answer::Rejected(delivery),
            Err(error) => {
                self.answer = Answer::Failed;
                return Err(error);
            }
        };
        Ok(())
    }
}

fn is_same(returned_message: &BasicReturnMessage, delivery: &Delivery) -> bool {
    returned_message.routing_key == delivery.routing_key
        && returned_message.data == delivery.data
        && returned_message.properties == delivery.properties
}

fn reason(returned_message: &BasicReturnMessage) -> String {
    sanitize(&format!("{} {}", returned_message.reply_code, returned_message.reply_text))
}

/// The acknowledgements that have not been written yet.
#[derive(Default)]
pub(super) struct Acknowledging {
    acknowledgements: FuturesOrdered<BoxFuture<'static, (u64, lapin::Result<()>)>>,
    messages: u64,
}

impl Acknowledging {
    /// Acknowledges `count` messages: the message with the tag, or, with `multiple`, all messages up to the tag. The
    /// first poll writes to the library's queue.
    pub(super) fn push(&mut self, channel: &Channel, tag: DeliveryTag, multiple: bool, count: u64) {
        let channel = channel.clone();
        let mut acknowledgement =
            async move { (count, channel.basic_ack(tag, BasicAckOptions { multiple }).await) }.boxed();
        self.messages += count;
        self.acknowledgements.push_back(match (&mut acknowledgement).now_or_never() {
            Some(written) => std::future::ready(written).boxed(),
            None => acknowledgement,
        });
    }

    /// Returns the number of messages with pending acknowledgements.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// Waits until the next acknowledgement is written, and returns the number of acknowledged messages. Returns `None`
    /// if all acknowledgements have been written.
    pub(super) async fn next(&mut self) -> Option<lapin::Result<u64>> {
        let (count, written) = self.acknowledgements.next().await?;
        if written.is_ok() {
            self.messages -= count;
        }
        Some(written.map(|()| count))
    }
}
