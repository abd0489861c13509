//! Messages on their way: published, and not yet known to be safe. In the order of the source.

use super::answers::Answers;
use super::connection::short;
use crate::broker::redact::foreign;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lapin::message::{BasicReturnMessage, Delivery};
use lapin::options::BasicPublishOptions;
use lapin::types::DeliveryTag;
use lapin::{Channel, Confirmation};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// What was published on one channel and not taken out again.
#[derive(Default)]
pub(super) struct Pipeline {
    sent: VecDeque<Sent>,
    /// The number of the first of them; the others' follow.
    first: u64,
    answers: Arc<Answers>,
    /// Whether one of them was rejected.
    has_rejected: bool,
    /// Messages that came back. Which of the sent ones they are, the library does not know: it hands a returned message
    /// out with *some* confirm that the broker sent after it.
    returned: VecDeque<BasicReturnMessage>,
}

struct Sent {
    /// Of the delivery, to acknowledge it by.
    tag: DeliveryTag,
    bell: Waker,
    answer: Answer,
}

enum Answer {
    Awaited(BoxFuture<'static, (Delivery, lapin::Result<Confirmation>)>),
    Confirmed(Delivery),
    Rejected(Delivery),
}

/// What became of one message, when all are answered.
pub(super) enum Outcome {
    /// Safe at the target.
    Confirmed,
    /// Nobody took it: the target leads nowhere.
    Returned { reason: String },
    /// It or another came back.
    Unknown { reason: String },
    /// A queue behind the target did not take it.
    Rejected(Box<Delivery>),
}

/// Hands a message to the broker as it came: its own key, its properties, its body.
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
    /// How many messages are in it.
    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Sends one more. It is on its way when this returns: the first poll writes to the library's queue, so the order of calls
    /// is the order on the wire.
    pub(super) fn push(&mut self, channel: &Channel, target: &str, delivery: Delivery) {
        let (tag, number) = (delivery.delivery_tag, self.first + self.sent.len() as u64);
        let bell = self.answers.bell(number);
        let mut answer = publish(channel, target, delivery);
        if let Poll::Ready(at_once) = answer.poll_unpin(&mut Context::from_waker(&bell)) {
            answer = std::future::ready(at_once).boxed();
            self.answers.ring(number);
        }
        self.sent.push_back(Sent { tag, bell, answer: Answer::Awaited(answer) });
    }

    /// Waits until the oldest that has no answer has one, and takes in all answers that are there by then.
    pub(super) async fn settle(&mut self) -> lapin::Result<()> {
        let Some(oldest) = self.sent.iter().position(Sent::is_awaited) else { return Ok(()) };
        poll_fn(|context| {
            loop {
                self.look_at_answered()?;
                if !self.sent.get(oldest).is_some_and(Sent::is_awaited) {
                    return Poll::Ready(Ok(()));
                }
                if self.answers.wake_at(self.first + oldest as u64, context.waker()) {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// A message that came back is handed out with the first confirm that the broker sent after it. So whoever has seen a
    /// confirm, and looks at all others *afterwards*, has seen all that came back before that confirm: only then it is certain
    /// that what was confirmed did not come back.
    ///
    /// To look at all whose bells have rung is to look at all: the library takes one answer after the other, and rings for
    /// one before it takes the next. But only when none has rung since the last look: what is answered meanwhile shows.
    fn look_at_answered(&mut self) -> lapin::Result<()> {
        let mut failed = Ok(());
        loop {
            let answered = self.answers.take();
            if answered.is_empty() {
                return failed;
            }
            for number in answered {
                // Those before were taken out.
                let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
                let Some(sent) = index.and_then(|index| self.sent.get_mut(index)) else { continue };
                failed = failed.and(sent.look(&mut self.returned));
                self.has_rejected |= matches!(sent.answer, Answer::Rejected(_));
            }
        }
    }

    /// Whether all answers so far are good ones.
    pub(super) fn is_going_well(&self) -> bool {
        self.returned.is_empty() && !self.has_rejected
    }

    /// Takes out the oldest that are all safe: the tag of the last of them, and how many they are.
    pub(super) fn take_confirmed(&mut self) -> Option<(DeliveryTag, u64)> {
        let mut taken = None;
        while let Some(Sent { tag, answer: Answer::Confirmed(_), .. }) = self.sent.front() {
            taken = Some((*tag, taken.map_or(0, |(_, count)| count) + 1));
            self.sent.pop_front();
            self.first += 1;
        }
        taken
    }

    /// Waits until all are answered, and takes all out. Those that came back are found by what they are: if two are the same
    /// in everything, it does not matter which of them it was.
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
                    let found = returned.iter().position(|back| is_same(back, &delivery));
                    match found.and_then(|index| returned.remove(index)) {
                        Some(back) => Outcome::Returned { reason: reason(&back) },
                        None => Outcome::Confirmed,
                    }
                }
                Answer::Rejected(delivery) => Outcome::Rejected(Box::new(delivery)),
                // Not after the loop above.
                Answer::Awaited(_) => continue,
            };
            outcomes.push((tag, outcome));
        }
        // One that is not found could be any: then none counts as safe.
        if let Some(back) = returned.front() {
            for (_, outcome) in &mut outcomes {
                *outcome = Outcome::Unknown { reason: reason(back) };
            }
        }
        Ok(outcomes)
    }
}

impl Sent {
    fn is_awaited(&self) -> bool {
        matches!(self.answer, Answer::Awaited(_))
    }

    fn look(&mut self, returned: &mut VecDeque<BasicReturnMessage>) -> lapin::Result<()> {
        let Answer::Awaited(answer) = &mut self.answer else { return Ok(()) };
        let mut context = Context::from_waker(&self.bell);
        let Poll::Ready((delivery, confirmation)) = answer.poll_unpin(&mut context) else { return Ok(()) };
        self.answer = match confirmation {
            Ok(Confirmation::Ack(back)) => {
                returned.extend(back);
                Answer::Confirmed(delivery)
            }
            Ok(Confirmation::Nack(back)) => {
                // Of another message, perhaps.
                returned.extend(back);
                Answer::Rejected(delivery)
            }
            // Without confirms, which were asked for, nothing is known to be safe.
            Ok(Confirmation::NotRequested) => Answer::Rejected(delivery),
            Err(error) => {
                self.answer = Answer::Rejected(delivery);
                return Err(error);
            }
        };
        Ok(())
    }
}

fn is_same(back: &BasicReturnMessage, delivery: &Delivery) -> bool {
    back.routing_key == delivery.routing_key && back.data == delivery.data && back.properties == delivery.properties
}

fn reason(back: &BasicReturnMessage) -> String {
    foreign(&format!("{} {}", back.reply_code, back.reply_text))
}
