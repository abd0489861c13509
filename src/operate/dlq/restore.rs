//! Publishes the messages of an archive to their dead-letter queue again.

use super::archive::{ArchiveError, ArchivedMessage};
use super::error::DlqError;
use super::opened::Opened;
use super::state::VhostState;
use crate::apply::Interrupt;
use crate::broker::Access;
use crate::broker::transport::{OutgoingMessage, PublishFault};
use crate::model::QueueName;
use std::io::BufRead;

/// The options of a restore.
pub struct RestoreOptions {
    /// The queue that receives the messages.
    pub queue: QueueName,
    /// The number of messages at the start of the archive that an interrupted run has restored.
    pub skip: u64,
    /// The maximum number of unconfirmed messages.
    pub window: u16,
}

/// The report of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The queue.
    pub queue: QueueName,
    /// The number of messages that were restored before this run.
    pub skipped: u64,
    /// The number of messages that the broker has confirmed in this run.
    pub restored: u64,
    /// The number of messages that the queue may contain in addition, because they were not confirmed.
    pub in_doubt: u64,
    /// The reason why the run stopped; `None` if it is complete.
    pub stopped: Option<String>,
    /// True if the run was interrupted.
    pub is_interrupted: bool,
}

/// Restores the messages of an archive with their routing keys, properties and headers. Calls `confirmed` with the
/// number of restored messages, including those of earlier runs, whenever it changes.
///
/// # Errors
/// See [`DlqError`]. No message was published.
pub async fn restore(
    access: &Access,
    state: &VhostState,
    archive: impl BufRead,
    options: &RestoreOptions,
    interrupt: &Interrupt,
    confirmed: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<RestoreReport, DlqError> {
    let queue = &options.queue;
    state.expect_queue(queue)?;
    let opened = Opened::open(access, state, queue, (1, options.window)).await?;
    let result = restore_opened(&opened, archive, options, interrupt, confirmed).await;
    opened.transport.delete_replay_exchange(queue).await;
    opened.close().await;
    result
}

async fn restore_opened(
    opened: &Opened,
    archive: impl BufRead,
    options: &RestoreOptions,
    interrupt: &Interrupt,
    confirmed: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<RestoreReport, DlqError> {
    let exchange = opened.transport.declare_replay_exchange(&options.queue).await?;
    opened.transport.check_publish(&exchange).await?;
    let mut publisher = opened.transport.publisher(exchange.as_str(), options.window.into()).await?;
    let (mut published, mut done) = (0, 0);
    let mut stopped = None;
    let skip = usize::try_from(options.skip).unwrap_or(usize::MAX);
    for message in ArchivedMessage::read_all(archive).skip(skip) {
        let sent = match message {
            Err(ArchiveError { line, reason }) => Err(format!("line {line}: {reason}")),
            Ok(_) if interrupt.is_requested() => break,
            Ok(ArchivedMessage { routing_key, encoded_properties, body, .. }) => {
                published += 1;
                let message = OutgoingMessage { routing_key, encoded_properties, body };
                publisher.publish(message).await.map_err(|fault: PublishFault| fault.to_string())
            }
        };
        let counted = sent.and_then(|count| {
            done += count;
            if count > 0 { confirmed(options.skip + done) } else { Ok(()) }
        });
        if let Err(reason) = counted {
            stopped = Some(reason);
            break;
        }
    }
    loop {
        match publisher.confirm_next().await {
            Ok(0) => break,
            Ok(count) => {
                done += count;
                if let Err(reason) = confirmed(options.skip + done) {
                    stopped = stopped.or(Some(reason));
                }
            }
            Err(fault) => {
                stopped = stopped.or(Some(fault.to_string()));
                break;
            }
        }
    }
    publisher.close().await;
    Ok(RestoreReport {
        queue: options.queue.clone(),
        skipped: options.skip,
        restored: done,
        in_doubt: published - done,
        stopped,
        is_interrupted: interrupt.is_requested(),
    })
}
