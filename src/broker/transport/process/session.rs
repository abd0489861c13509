//! Implements a run on one or more channels for deliveries and acknowledgements, and one channel for publishes.

use super::super::connection::{Connection, error_text, is_channel_error, protocol_error, short};
use super::super::decode;
use super::super::endpoints::was_delivered_before;
use super::super::pipeline::{Acknowledging, Pipeline};
use super::super::raw_properties::{RawProperties, as_library_properties};
use super::super::temporary::Observer;
use super::fence::{Fence, wait_for_fence};
use super::order::{Decision, Gate, MessageHandler, ProcessCounts, ProcessEnd, ProcessOrder, Processed};
use super::subscription::{next_of, subscribe};
use crate::broker::error::BrokerError;
use crate::model::{ExchangeName, QueueType};
use futures_util::FutureExt;
use lapin::message::Delivery;
use lapin::options::ConfirmSelectOptions;
use lapin::types::DeliveryTag;
use lapin::{Channel, Consumer};
use std::collections::{BTreeSet, VecDeque};
use std::future::ready;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// How long a run waits without a delivery, a confirm or another response before it ends.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a run waits for a busy queue that neither delivers nor replies before the run ends. On a busy machine, a
/// queue with a million messages on RabbitMQ 4.0.5 delivered none for more than 60 s.
const MAX_SILENCE: Duration = Duration::from_secs(600);
/// How long topo waits without a delivery before it checks whether the queue is empty.
const QUIET: Duration = Duration::from_millis(500);
/// How long topo waits for expected messages from a queue that reports no ready messages. After this time, topo assumes
/// that other consumers removed the messages. On a busy broker, messages can be in transit for this long.
const MAX_TRANSIT: Duration = Duration::from_secs(5);
/// The maximum time between two checks of the handler's gate.
const GATE_INTERVAL: Duration = Duration::from_millis(200);
/// The number of messages that the handler stores in one batch before topo removes them.
const BATCH: usize = 500;

/// One pass over the messages in a queue.
pub(super) struct Session<'a, H> {
    pub(super) connection: &'a Connection,
    pub(super) order: &'a ProcessOrder,
    pub(super) handler: &'a mut H,
    /// The channel of the last consumer.
    pub(super) channel: Channel,
    /// The channels of the previous consumers, if they differ from the channel of the last consumer.
    pub(super) full_channels: Vec<Channel>,
    publisher: Channel,
    /// The consumers. Each consumer starts when the previous consumer holds a full prefetch, and only the last consumer
    /// receives messages. The session keeps all consumers, because lapin cancels a consumer that is dropped.
    pub(super) consumers: Vec<Consumer>,
    /// The deliveries to the last consumer that have not been processed yet.
    pub(super) waiting: VecDeque<Delivery>,
    observer: Option<&'a mut Observer>,
    pub(super) pipeline: Pipeline,
    /// The exchange of the last publish, for error messages.
    pub(super) exchange: ExchangeName,
    pub(super) acknowledging: Acknowledging,
    /// The delivery tags of messages that topo removes once the handler has stored them.
    pub(super) removing: Vec<DeliveryTag>,
    /// The number of acknowledged messages that no fence covers.
    pub(super) unfenced: u64,
    pub(super) fence: Option<Fence>,
    /// The number of messages that stay in the queue.
    pub(super) kept: u64,
    /// The number of kept messages that earlier consumers hold.
    pub(super) held_before: u64,
    /// The number of messages that the last consumer can hold.
    pub(super) capacity: u64,
    pub(super) counts: ProcessCounts,
    /// True if the last received message had previously been returned to the queue.
    pub(super) is_last_returned: bool,
    /// True if the broker accepts messages with the `user_id` of other users.
    impersonates: bool,
    other_users: BTreeSet<String>,
    of_other_users: u64,
    /// The time of the last response from the broker.
    pub(super) answered: Instant,
    /// The time of the first reply since `answered` that reported messages although the queue delivered none.
    withheld_since: Option<Instant>,
}

impl<'a, H: MessageHandler> Session<'a, H> {
    /// Opens the channels and subscribes.
    pub(super) async fn open(
        connection: &'a Connection,
        order: &'a ProcessOrder,
        handler: &'a mut H,
        observer: Option<&'a mut Observer>,
    ) -> Result<Self, BrokerError> {
        let (channel, publisher) = (connection.channel().await?, connection.channel().await?);
        let confirm = publisher.confirm_select(ConfirmSelectOptions::default());
        connection.answer("confirm.select", confirm).await?;
        let (consumer, capacity) = subscribe(connection, &channel, order, (0, order.hold)).await?;
        Ok(Self {
            connection,
            order,
            handler,
            channel,
            full_channels: Vec::new(),
            publisher,
            consumers: vec![consumer],
            waiting: VecDeque::new(),
            observer,
            pipeline: Pipeline::default(),
            exchange: ExchangeName::new(""),
            acknowledging: Acknowledging::default(),
            removing: Vec::new(),
            unfenced: 0,
            fence: None,
            kept: 0,
            held_before: 0,
            capacity,
            counts: ProcessCounts::default(),
            is_last_returned: false,
            impersonates: false,
            other_users: BTreeSet::new(),
            of_other_users: 0,
            answered: Instant::now(),
            withheld_since: None,
        })
    }

    /// Processes messages until the run ends, completes the messages in doubt, and returns all other messages.
    pub(super) async fn run(mut self) -> Processed {
        let end = match self.process().await {
            Ok(end) | Err(end) => end,
        };
        let end = self.finish(end).await;
        let Self { counts, other_users, of_other_users, .. } = self;
        Processed { counts, end, other_users, of_other_users }
    }

    async fn process(&mut self) -> Result<ProcessEnd, ProcessEnd> {
        let started = Instant::now();
        // Messages that arrive during the run do not postpone the checks of an idle run.
        let mut idle_since = started;
        loop {
            if self.counts.received >= self.order.expected {
                self.remove_stored().await?;
            }
            let is_processed = self.counts.received >= self.order.expected && self.is_settled();
            if is_processed && self.handler.is_done() {
                return Ok(ProcessEnd::Complete);
            }
            if started.elapsed() >= self.order.hold_time {
                return Ok(if is_processed { ProcessEnd::Complete } else { ProcessEnd::TimeLimit });
            }
            let gate = self.handler.gate();
            if gate == Gate::Closed {
                return Ok(ProcessEnd::Ended);
            }
            let has_more = self.counts.received < self.order.expected;
            if has_more && self.is_full() && !self.add_consumer(self.order.hold.saturating_sub(self.kept)).await? {
                return Ok(ProcessEnd::HoldFull);
            }
            self.start_fence();
            let is_open = gate == Gate::Open
                && self.counts.in_doubt < u64::from(self.order.window)
                && self.counts.received < self.order.expected;
            let pause = match gate {
                Gate::Until(at) => GATE_INTERVAL.min(at.saturating_duration_since(Instant::now())),
                Gate::Open | Gate::Closed => QUIET,
            };
            let mut is_arrival = false;
            tokio::select! {
                biased;
                Some(written) = self.acknowledging.next() => self.count_acknowledged(written)?,
                fenced = wait_for_fence(&mut self.fence), if self.fence.is_some() => self.count_fenced(fenced)?,
                settled = self.pipeline.settle(), if !self.pipeline.is_empty() => {
                    settled.map_err(|error| self.failed(&error))?;
                    self.acknowledge_confirmed().await?;
                }
                Some(observed) = next_of(self.observer.as_deref_mut().map(|observer| &mut observer.0)) => {
                    let delivery = observed.map_err(|error| self.failed(&error))?;
                    self.handler.observed(&decode::message(&delivery));
                }
                () = ready(()), if is_open && !self.waiting.is_empty() => {
                    if self.receive_waiting().await? {
                        return Ok(ProcessEnd::Ended);
                    }
                }
                () = sleep(pause.saturating_sub(idle_since.elapsed())) => {
                    if let Some(end) = self.check_idle(gate).await? {
                        return Ok(end);
                    }
                }
                next = next_of(self.consumers.last_mut()) => {
                    self.add_waiting(next)?;
                    is_arrival = true;
                }
            }
            if !is_arrival {
                idle_since = Instant::now();
            }
        }
    }

    /// Queues a delivery for processing. Passes a message that arrived during the run to the handler immediately.
    fn add_waiting(&mut self, next: Option<lapin::Result<Delivery>>) -> Result<(), ProcessEnd> {
        let delivery = match next {
            Some(Ok(delivery)) => delivery,
            Some(Err(error)) => return Err(self.failed(&error)),
            None => return Err(self.canceled()),
        };
        if self.counts.received + self.waiting.len() as u64 >= self.order.expected {
            self.handler.arrived(&decode::message(&delivery));
        }
        self.waiting.push_back(delivery);
        Ok(())
    }

    /// Processes the deliveries that have already arrived. Returns true if the handler ends the run.
    async fn receive_waiting(&mut self) -> Result<bool, ProcessEnd> {
        while let Some(delivery) = self.waiting.pop_front() {
            if self.receive(delivery).await? {
                return Ok(true);
            }
            let is_open = self.counts.in_doubt < u64::from(self.order.window)
                && self.counts.received < self.order.expected
                && self.handler.gate() == Gate::Open;
            if !is_open {
                break;
            }
            if self.waiting.is_empty()
                && let Some(next) = next_of(self.consumers.last_mut()).now_or_never()
            {
                self.add_waiting(next)?;
            }
        }
        self.handler.progressed(&self.order.earlier.plus(self.counts));
        Ok(false)
    }

    /// Processes a delivery. Returns true if the handler ends the run.
    async fn receive(&mut self, mut delivery: Delivery) -> Result<bool, ProcessEnd> {
        self.answered = Instant::now();
        self.counts.received += 1;
        self.is_last_returned = was_delivered_before(&delivery);
        match self.handler.decide(decode::message(&delivery)) {
            Decision::Keep => self.keep(delivery.delivery_tag).await?,
            Decision::End => {
                self.keep(delivery.delivery_tag).await?;
                return Ok(true);
            }
            Decision::Remove => {
                self.counts.in_doubt += 1;
                self.removing.push(delivery.delivery_tag);
                if self.removing.len() >= BATCH.min(self.order.window.into()) {
                    self.remove_stored().await?;
                }
            }
            Decision::Publish { exchange, routing_key, encoded_properties } => {
                let claimed = RawProperties::of(&encoded_properties).user_id();
                delivery.routing_key = short(&routing_key);
                delivery.properties = as_library_properties(encoded_properties);
                self.counts.in_doubt += 1;
                self.exchange = exchange;
                match claimed.filter(|user| *user != self.connection.options.username && !self.impersonates) {
                    Some(user) => self.publish_of_other_user(delivery, user).await?,
                    None => self.pipeline.push(&self.publisher, self.exchange.as_str(), delivery),
                }
            }
        }
        Ok(false)
    }

    /// Keeps a message. For a stream, acknowledges the message, because otherwise the broker would stop delivering. The
    /// acknowledgement does not remove the message from the stream.
    pub(super) async fn keep(&mut self, tag: DeliveryTag) -> Result<(), ProcessEnd> {
        self.kept += 1;
        if self.order.kind == Some(QueueType::Stream) {
            self.acknowledging.push(&self.channel, tag, true, 0);
            self.write_acknowledgements().await?;
        }
        Ok(())
    }

    /// Publishes a message with the `user_id` of another user, on a separate channel, because the broker closes the
    /// channel if it refuses the message. A refused message stays in the queue.
    async fn publish_of_other_user(&mut self, delivery: Delivery, user: String) -> Result<(), ProcessEnd> {
        self.settle_all().await?;
        let tag = delivery.delivery_tag;
        let channel = self.connection.channel().await.map_err(ProcessEnd::Failed)?;
        let confirm = channel.confirm_select(ConfirmSelectOptions::default());
        self.connection.answer("confirm.select", confirm).await.map_err(ProcessEnd::Failed)?;
        self.pipeline.push(&channel, self.exchange.as_str(), delivery);
        let settled = timeout(RESPONSE_TIMEOUT, self.pipeline.settle()).await;
        match settled.map_err(|_| ProcessEnd::Failed(self.unanswered("basic.publish", RESPONSE_TIMEOUT)))? {
            Ok(()) => {
                self.impersonates = true;
                self.acknowledge_confirmed().await?;
                let _ = channel.close(200, "done".into()).await;
                Ok(())
            }
            Err(error) if protocol_error(&error).is_some_and(|reply| reply.get_id() == 406) => {
                self.pipeline = Pipeline::default();
                self.counts.in_doubt -= 1;
                self.other_users.insert(user);
                self.of_other_users += 1;
                self.keep(tag).await
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Returns true if no message is waiting for a confirm or for [`MessageHandler::flush`].
    fn is_settled(&self) -> bool {
        self.pipeline.is_empty() && self.removing.is_empty()
    }

    /// After a pause, checks whether the queue is empty, or whether the broker has stopped responding.
    async fn check_idle(&mut self, gate: Gate) -> Result<Option<ProcessEnd>, ProcessEnd> {
        if !self.removing.is_empty() {
            self.remove_stored().await?;
            self.answered = Instant::now();
            return Ok(None);
        }
        if !self.pipeline.is_empty() {
            // An alarm blocks publishers, or a quorum queue has no leader.
            let is_unanswered = self.answered.elapsed() >= RESPONSE_TIMEOUT;
            return Ok(is_unanswered.then(|| ProcessEnd::Failed(self.unanswered("basic.publish", RESPONSE_TIMEOUT))));
        }
        if self.counts.in_doubt >= u64::from(self.order.window) {
            // The run is waiting for a fence.
            let is_unanswered = self.answered.elapsed() >= RESPONSE_TIMEOUT;
            return Ok(is_unanswered.then(|| ProcessEnd::Failed(self.unanswered("basic.qos", RESPONSE_TIMEOUT))));
        }
        if gate != Gate::Open || self.counts.received >= self.order.expected {
            self.answered = Instant::now();
            return Ok(None);
        }
        if self.order.kind == Some(QueueType::Stream) {
            return Ok(Some(ProcessEnd::Complete));
        }
        match self.is_empty().await? {
            // The queue may be empty only because its last messages are in transit.
            Some(true) => match timeout(QUIET, next_of(self.consumers.last_mut())).await {
                Ok(next) => self.add_waiting(next).map(|()| None),
                Err(_) => Ok((self.answered.elapsed() >= MAX_TRANSIT).then_some(ProcessEnd::Complete)),
            },
            Some(false) => {
                let first = self.withheld_since.filter(|at| *at >= self.answered).unwrap_or_else(Instant::now);
                self.withheld_since = Some(first);
                Ok((first.elapsed() >= RESPONSE_TIMEOUT).then_some(ProcessEnd::NotDelivered))
            }
            None => {
                let is_silent = self.answered.elapsed() >= MAX_SILENCE;
                Ok(is_silent.then(|| ProcessEnd::Failed(self.unanswered("queue.declare", MAX_SILENCE))))
            }
        }
    }

    pub(super) fn canceled(&self) -> ProcessEnd {
        let request = format!("basic.consume of {}", self.order.queue);
        ProcessEnd::Failed(BrokerError::NotFound { request, reason: "the broker canceled the consumer".to_owned() })
    }

    pub(super) fn unanswered(&self, request: &str, after: Duration) -> BrokerError {
        let url = self.connection.options.address.to_string();
        match self.connection.is_blocked() {
            true => BrokerError::Alarm { url, request: request.to_owned() },
            false => BrokerError::Timeout { url, request: request.to_owned(), after },
        }
    }

    pub(super) fn failed(&self, error: &lapin::Error) -> ProcessEnd {
        let request = format!("the processing of {}", self.order.queue);
        match protocol_error(error).filter(|reply| is_channel_error(reply)) {
            Some(reply) if reply.get_id() == 404 && error_text(error).contains("no exchange") => {
                ProcessEnd::Unroutable { exchange: self.exchange.clone(), reason: error_text(error) }
            }
            Some(_) | None => ProcessEnd::Failed(self.connection.request_error(&request, error)),
        }
    }
}
