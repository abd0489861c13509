//! Moves messages over AMQP, with publisher confirms and acknowledgements.

use super::address::AmqpOptions;
use super::connection::Connection;
use super::progress::{Fault, Order, Progress, State};
use super::session::{Job, Session};
use super::session_end::Over;
use crate::broker::error::BrokerError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// An AMQP connection to one vhost, for moving messages and for what HTTP cannot do. Cheap to clone.
#[derive(Clone)]
pub struct AmqpTransport(pub(super) Arc<Connection>);

/// A move that runs in the background. Dropping it aborts the move: messages in transit may then be in both queues.
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

    /// The name of the AMQP broker's cluster, which may differ from that of the management API: a forwarded port of a remote
    /// broker can lead to a local one. `None` if the broker does not report it.
    pub fn cluster(&self) -> Option<String> {
        self.0.cluster()
    }

    /// Starts to move, or returns the reason why not: the queue or exchange does not exist, the user lacks permission, or a consumer
    /// uses the queue exclusively. An unroutable target is detected with the first message, which stays in the source; the move
    /// ends with [`Fault::Unroutable`].
    ///
    /// A single active consumer gets all messages while it is there, and so does this one before all others without a
    /// priority. Then nothing is moved, which is not a fault.
    pub async fn start(&self, order: Order) -> Result<AmqpMove, Fault> {
        let session = Session::open(&self.0, &order).await?;
        let (sender, progress) = watch::channel(Progress {
            moved: Some(0),
            last_moved: None,
            in_flight: 0,
            possible_duplicates: 0,
            state: State::Moving,
        });
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
    /// The progress of the move.
    pub fn progress(&self) -> Progress {
        let mut progress = self.progress.borrow().clone();
        if progress.state == State::Moving && self.connection.is_blocked() {
            progress.state = State::Blocked;
        }
        progress
    }

    /// Waits until the move ends, by a fault or after [`Self::stop`].
    pub async fn over(&mut self) -> Progress {
        // Fails when the task is gone, which says how it ended before.
        let _ = self.progress.wait_for(|progress| progress.state.is_over()).await;
        self.progress()
    }

    /// Waits for a moment in which nothing is on its way, after something was; false if there is none for so long, or if it
    /// is over.
    pub async fn until_idle(&mut self, patience: Duration) -> bool {
        let is_idle =
            |progress: &Progress| progress.state.is_over() || progress.in_flight == 0 && progress.last_moved.is_some();
        match tokio::time::timeout(patience, self.progress.wait_for(is_idle)).await {
            Ok(Ok(progress)) => progress.state == State::Moving,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Stops receiving, completes the messages in transit, and returns the number of moved messages. A message that cannot be completed
    /// in 20 s returns to the source, and counts as a possible duplicate.
    pub async fn stop(mut self) -> Progress {
        // Fails when it is over already.
        let _ = self.stop.send(true);
        self.over().await
    }
}

impl Drop for AmqpMove {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Job {
    /// Runs one session after another until the move ends.
    async fn run(mut self, first: Session) {
        let mut session = first;
        let mut failures = 0;
        let state = loop {
            let before = self.progress.borrow().moved;
            let over = session.run(&mut self).await;
            let (in_flight, doubtful) = (session.in_flight(), session.doubtful(&self.order));
            let left = match &over {
                Over::Lost(_) => doubtful,
                // The queue may not have processed the last acknowledgements.
                Over::Stopped if !session.is_finished => doubtful,
                Over::Stopped | Over::Fault(_) => in_flight,
            };
            self.progress.send_modify(|progress| progress.in_flight = 0);
            let is_settled = session.close(&self.order.source).await;
            let left = if is_settled { left } else { doubtful };
            self.progress.send_modify(|progress| progress.possible_duplicates += left as u64);
            match over {
                Over::Stopped => break State::Stopped,
                Over::Fault(fault) => break State::Failed(fault),
                Over::Lost(error) => {
                    failures = if self.progress.borrow().moved > before { 1 } else { failures + 1 };
                    if failures >= self.connection.options.retries.attempts.max(1) {
                        break State::Failed(error.into());
                    }
                }
            }
            self.progress.send_modify(|progress| progress.state = State::Reconnecting);
            let again = tokio::select! {
                _ = self.stop.wait_for(|stop| *stop) => break State::Stopped,
                again = Session::open(&self.connection, &self.order) => again,
            };
            session = match again {
                Ok(session) => session,
                Err(fault) => break State::Failed(fault),
            };
            self.progress.send_modify(|progress| progress.state = State::Moving);
        };
        self.progress.send_modify(|progress| progress.state = state);
    }
}
