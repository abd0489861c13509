//! The mover of topo itself: over AMQP, by confirms and acknowledgements.

use super::address::AmqpOptions;
use super::connection::Connection;
use super::over::Over;
use super::progress::{Fault, Order, Progress, State};
use super::session::{Job, Session};
use crate::broker::error::BrokerError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// An AMQP connection to one vhost, for moving messages and for what HTTP cannot do. Cheap to clone.
#[derive(Clone)]
pub struct AmqpMover(pub(super) Arc<Connection>);

/// A move that goes on in the background. Dropping it breaks it off: what is on its way then may be at both places.
pub struct AmqpMove {
    connection: Arc<Connection>,
    told: watch::Receiver<Progress>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl AmqpMover {
    /// Connects and logs in.
    pub async fn connect(options: AmqpOptions) -> Result<Self, BrokerError> {
        Ok(Self(Arc::new(Connection::open(options).await?)))
    }

    /// The name of the cluster at the other end, which may not be the one of the management API: whoever forwards a port of
    /// a broker far away can have another one at home. `None` where it is not said.
    pub fn cluster(&self) -> Option<String> {
        self.0.cluster()
    }

    /// Starts to move, or says why it cannot: the queue or the exchange is not there, or not for this user, or a consumer
    /// has the queue for itself. Whether the target leads anywhere shows with the first message: it stays, and the move
    /// ends with [`Fault::Unroutable`].
    ///
    /// A single active consumer gets all messages while it is there, and so does this one before all others without a
    /// priority; then nothing moves, and it is no fault.
    pub async fn start(&self, order: Order) -> Result<AmqpMove, Fault> {
        let session = Session::open(&self.0, &order).await?;
        let (told, progress) = watch::channel(Progress {
            moved: Some(0),
            last_moved: None,
            in_flight: 0,
            maybe_twice: 0,
            state: State::Moving,
        });
        let (stop, stopped) = watch::channel(false);
        let connection = self.0.clone();
        let job = Job { connection: connection.clone(), order, told, stop: stopped, impersonates: false };
        let task = tokio::spawn(job.run(session));
        Ok(AmqpMove { connection, told: progress, stop, task })
    }

    /// Ends the connection. Moves that still run are broken off.
    pub async fn close(self) {
        self.0.close().await;
    }
}

impl AmqpMove {
    /// How far it is.
    pub fn progress(&self) -> Progress {
        let mut progress = self.told.borrow().clone();
        if progress.state == State::Moving && self.connection.is_blocked() {
            progress.state = State::Blocked;
        }
        progress
    }

    /// Waits until it is over, which it is by a fault or after [`Self::stop`].
    pub async fn over(&mut self) -> Progress {
        // Fails when the task is gone, which says how it ended before.
        let _ = self.told.wait_for(|progress| progress.state.is_over()).await;
        self.progress()
    }

    /// Waits for a moment in which nothing is on its way, after something was; false if there is none for so long, or if it
    /// is over.
    pub async fn until_idle(&mut self, patience: Duration) -> bool {
        let is_idle =
            |progress: &Progress| progress.state.is_over() || progress.in_flight == 0 && progress.last_moved.is_some();
        match tokio::time::timeout(patience, self.told.wait_for(is_idle)).await {
            Ok(Ok(progress)) => progress.state == State::Moving,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Takes no more, brings to its end what is on its way, and says how much was moved. What cannot be brought to its end
    /// in 20 s goes back to the source, and is counted as perhaps at both places.
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
    /// Moves, session after session, until it is over.
    async fn run(mut self, first: Session) {
        let mut session = first;
        let mut failures = 0;
        let state = loop {
            let before = self.told.borrow().moved;
            let over = session.run(&mut self).await;
            let (in_flight, doubtful) = (session.in_flight(), session.doubtful(&self.order));
            let left = match &over {
                Over::Lost(_) => doubtful,
                // What was acknowledged last may not have been heard of by the queue.
                Over::Stopped if !session.is_finished => doubtful,
                Over::Stopped | Over::Fault(_) => in_flight,
            };
            self.told.send_modify(|progress| progress.in_flight = 0);
            let is_passed_on = session.close(&self.order.source).await;
            let left = if is_passed_on { left } else { doubtful };
            self.told.send_modify(|progress| progress.maybe_twice += left as u64);
            match over {
                Over::Stopped => break State::Stopped,
                Over::Fault(fault) => break State::Failed(fault),
                Over::Lost(error) => {
                    failures = if self.told.borrow().moved > before { 1 } else { failures + 1 };
                    if failures >= self.connection.options.retries.attempts.max(1) {
                        break State::Failed(error.into());
                    }
                }
            }
            self.told.send_modify(|progress| progress.state = State::Reconnecting);
            let again = tokio::select! {
                _ = self.stop.wait_for(|stop| *stop) => break State::Stopped,
                again = Session::open(&self.connection, &self.order) => again,
            };
            session = match again {
                Ok(session) => session,
                Err(fault) => break State::Failed(fault),
            };
            self.told.send_modify(|progress| progress.state = State::Moving);
        };
        self.told.send_modify(|progress| progress.state = state);
    }
}
