//! Connects to a vhost over AMQP, and starts and stops moves over this connection.

use super::address::AmqpOptions;
use super::connection::Connection;
use super::progress::{Fault, Order, Progress, State};
use super::session::{Job, Session};
use crate::broker::error::BrokerError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// An AMQP connection to one vhost, for moving messages and for requests that HTTP does not support. Cheap to clone.
#[derive(Clone)]
pub struct AmqpTransport(pub(super) Arc<Connection>);

/// A move that runs in the background. Dropping this value aborts the move. Messages in transit may then be both in the
/// source and at the target.
pub struct AmqpMove {
    connection: Arc<Connection>,
    progress: watch::Receiver<Progress>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl AmqpTransport {
    /// Connects and logs in.
    pub async fn connect(options: AmqpOptions) -> Result<Self, BrokerError> {
        Ok(Self(Arc::new(Connection::open(options).await?)))
    }

    /// Returns the cluster name that the broker reports over AMQP; `None` if the broker does not report a name. The
    /// name may differ from the management API's cluster name, because a forwarded port can lead to another broker.
    pub fn cluster(&self) -> Option<String> {
        self.0.cluster()
    }

    /// Opens another connection to the same vhost, as the same user.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn reconnected(&self) -> Result<Self, BrokerError> {
        Self::connect(self.0.options.clone()).await
    }

    /// Starts a move.
    ///
    /// topo detects an unroutable target only when it publishes the first message, which stays in the source. The move
    /// then ends with [`Fault::Unroutable`].
    ///
    /// If the queue has a single active consumer, this consumer receives all messages while it is subscribed, so the
    /// move receives no messages. This is not a fault. From other queues, the move receives messages before all
    /// consumers with a lower priority.
    ///
    /// # Errors
    /// The queue or the exchange does not exist, the user does not have a required permission, or the queue has an
    /// exclusive consumer.
    pub async fn start(&self, order: Order) -> Result<AmqpMove, Fault> {
        let session = Session::open(&self.0, &order).await?;
        let (sender, progress) = watch::channel(Progress { moved: Some(0), ..Progress::start(State::Moving) });
        let (stop, stopped) = watch::channel(false);
        let connection = self.0.clone();
        let job = Job { connection: connection.clone(), order, progress: sender, stop: stopped, impersonates: false };
        let task = tokio::spawn(job.run(session));
        Ok(AmqpMove { connection, progress, stop, task })
    }

    /// Closes the connection, and aborts running moves.
    pub async fn close(self) {
        self.0.close().await;
    }
}

impl AmqpMove {
    /// Returns the progress of the move.
    pub fn progress(&self) -> Progress {
        let mut progress = self.progress.borrow().clone();
        if progress.state == State::Moving && self.connection.is_blocked() {
            progress.state = State::Blocked;
        }
        progress
    }

    /// Waits until the move ends with a fault or after [`Self::stop`], and returns the final progress.
    pub async fn wait_until_over(&mut self) -> Progress {
        // An error means that the task has ended, so the state is final.
        let _ = self.progress.wait_for(|progress| progress.state.is_over()).await;
        self.progress()
    }

    /// Waits until the source is empty, the move is over, or the time limit is reached. Requires
    /// [`Order::reports_empty`].
    pub async fn wait_until_source_empty(&mut self, limit: Duration) -> Progress {
        let is_awaited = |progress: &Progress| progress.state.is_over() || progress.is_source_empty;
        // After the time limit, or if the task has ended, the last progress is returned.
        let _ = tokio::time::timeout(limit, self.progress.wait_for(is_awaited)).await;
        self.progress()
    }

    /// Stops receiving, completes the messages in transit, and returns the final progress. A message that is not
    /// completed within 20 s returns to the source, and is counted as a possible duplicate.
    pub async fn stop(mut self) -> Progress {
        // An error means that the move has already ended.
        let _ = self.stop.send(true);
        self.wait_until_over().await
    }
}

impl Drop for AmqpMove {
    fn drop(&mut self) {
        self.task.abort();
    }
}
