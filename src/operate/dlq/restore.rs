//! Republishes archived messages to a dead-letter queue.

use super::archive::{ArchiveError, ArchivedMessage};
use super::error::DlqError;
use super::hazard::Hazard;
use super::hazards::{self, Incoming};
use super::opened::{HoldLimits, Opened};
use super::state::VhostState;
use crate::apply::Interrupt;
use crate::broker::Access;
use crate::broker::transport::{OutgoingMessage, PublishFault};
use crate::model::{QueueName, VhostName};
use std::collections::BTreeSet;
use std::io::BufRead;

/// The tag of a user who may publish messages with another user's `user_id`.
const IMPERSONATOR: &str = "impersonator";

/// The options of a restore.
pub struct RestoreOptions {
    /// The queue that receives the messages.
    pub queue: QueueName,
    /// The number of messages in the archive.
    pub messages: u64,
    /// The total size of the bodies of these messages in bytes.
    pub bytes: u64,
    /// The users in the `user_id` property of these messages.
    pub users: BTreeSet<String>,
    /// The number of messages that earlier runs restored, all of them at the start of the archive.
    pub skip: u64,
    /// The maximum number of unconfirmed messages.
    pub window: u16,
    /// The allowed hazards.
    pub allowed: Vec<Hazard>,
}

/// The report of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The vhost.
    pub vhost: VhostName,
    /// The queue.
    pub queue: QueueName,
    /// The number of messages that were restored before this run.
    pub skipped: u64,
    /// The number of messages that this run restored, and that the next run skips. Excludes messages that the broker
    /// confirmed after it refused a message.
    pub restored: u64,
    /// The number of published messages that were not refused and are not recorded as restored. The queue may contain
    /// these messages, and the next run publishes them again.
    pub in_doubt: u64,
    /// The reason why the run stopped; `None` if it is complete.
    pub stopped: Option<String>,
    /// True if the run was interrupted.
    pub is_interrupted: bool,
}

/// Checks that the queue exists, that it drops no messages when it receives the archived messages, and that the user
/// may publish them.
///
/// # Errors
/// The queue does not exist. The user is not allowed to publish some of the messages. The queue would drop messages,
/// and this hazard is not allowed.
pub async fn check_restore(access: &Access, state: &VhostState, options: &RestoreOptions) -> Result<(), DlqError> {
    state.expect_queue(&options.queue)?;
    if let Some(user) = access.broker.user().await.filter(|_| !options.users.is_empty())
        && !user.tags.contains(IMPERSONATOR)
    {
        let users: BTreeSet<String> = options.users.iter().filter(|name| **name != user.name).cloned().collect();
        if !users.is_empty() {
            return Err(DlqError::OtherUsers { users });
        }
    }
    let remaining = Incoming { messages: options.messages.saturating_sub(options.skip), bytes: Some(options.bytes) };
    let hazard = hazards::of_receiving(access, state, &options.queue, remaining).await;
    hazards::refuse(hazard.into_iter().collect(), &options.allowed)
}

/// Restores the messages in an archive with their routing keys, properties and headers. Whenever the number of restored
/// messages changes, calls `confirmed` with this number, which includes the messages that earlier runs restored.
///
/// # Errors
/// See [`DlqError`]. If an error is returned, no message has been published.
pub async fn restore(
    access: &Access,
    state: &VhostState,
    archive: impl BufRead,
    options: &RestoreOptions,
    interrupt: &Interrupt,
    confirmed: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<RestoreReport, DlqError> {
    let queue = &options.queue;
    check_restore(access, state, options).await?;
    let opened =
        Opened::open(access, state, queue, (HoldLimits::NONE, options.window), &[Hazard::OtherConsumers]).await?;
    let result = restore_opened(&opened, state, archive, options, interrupt, confirmed).await;
    opened.transport.delete_replay_exchange(queue).await;
    opened.close().await;
    result
}

async fn restore_opened(
    opened: &Opened,
    state: &VhostState,
    archive: impl BufRead,
    options: &RestoreOptions,
    interrupt: &Interrupt,
    confirmed: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<RestoreReport, DlqError> {
    let exchange = opened.transport.declare_replay_exchange(&options.queue).await?;
    opened.transport.check_publish(&exchange).await?;
    let mut publisher = opened.transport.publisher(exchange.as_str(), options.window.into()).await?;
    let (mut published, mut done) = (0_u64, 0);
    // The number of messages that the broker refused. After a refusal, later confirms do not count: the next run skips
    // the restored messages, which must be the first messages in the archive.
    let mut refused = 0;
    let mut is_interrupted = false;
    let mut stopped = None;
    let skip = usize::try_from(options.skip).unwrap_or(usize::MAX);
    for message in ArchivedMessage::read_all(archive).skip(skip) {
        if interrupt.is_requested() && message.is_ok() {
            is_interrupted = true;
            break;
        }
        let counted = match message {
            Err(ArchiveError { line, reason }) => Err(format!("line {line}: {reason}")),
            Ok(ArchivedMessage { routing_key, encoded_properties, body, .. }) => {
                // Confirms are recorded before the next publish, so that a crash duplicates at most one window of
                // messages.
                let room = if publisher.is_full() { publisher.confirm_next().await } else { Ok(0) };
                refused += u64::from(room.as_ref().is_err_and(is_refusal));
                let counted = room.map_err(|fault| fault.to_string()).and_then(|count| {
                    if count > 0 {
                        confirmed(options.skip + done + count)?;
                    }
                    done += count;
                    Ok(())
                });
                if counted.is_ok() {
                    publisher.publish(OutgoingMessage { routing_key, encoded_properties, body });
                    published += 1;
                }
                counted
            }
        };
        if let Err(reason) = counted {
            stopped = Some(reason);
            break;
        }
    }
    let mut has_gap = stopped.is_some();
    loop {
        match publisher.confirm_next().await {
            Ok(0) => break,
            Ok(_) if has_gap => {}
            Ok(count) => match confirmed(options.skip + done + count) {
                Ok(()) => done += count,
                Err(reason) => {
                    has_gap = true;
                    stopped = stopped.or(Some(reason));
                }
            },
            Err(fault) => {
                has_gap = true;
                refused += u64::from(is_refusal(&fault));
                let is_lost = matches!(fault, PublishFault::Broker(_));
                stopped = stopped.or(Some(fault.to_string()));
                if is_lost {
                    break;
                }
            }
        }
    }
    publisher.close().await;
    Ok(RestoreReport {
        vhost: state.snapshot.topology.vhost.clone(),
        queue: options.queue.clone(),
        skipped: options.skip,
        restored: done,
        in_doubt: published.saturating_sub(done + refused),
        stopped,
        is_interrupted,
    })
}

/// Returns true if the fault means that the broker did not accept the message.
fn is_refusal(fault: &PublishFault) -> bool {
    match fault {
        PublishFault::Unroutable(_) | PublishFault::Rejected => true,
        PublishFault::Broker(_) => false,
    }
}
