//! Runs the prepared cases of a file in several scratch vhosts concurrently.

use super::declare::declare;
use super::error::LiveError;
use super::execution::Execution;
use super::preparation::{Preparation, RunnableCase};
use crate::apply::Interrupt;
use crate::broker::transport::AmqpTransport;
use crate::broker::{Access, BrokerError};
use crate::model::VhostName;
use futures_util::future::{join_all, try_join_all};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The number of attempts for a case whose messages were published too slowly.
const ATTEMPTS: usize = 3;
/// The time that a case may take beyond its simulated time, for its connections and for a slow broker.
const EXTRA_TIME: Duration = Duration::from_secs(120);
/// The additional time that a case may take for each message.
const TIME_PER_MESSAGE: Duration = Duration::from_millis(100);
/// The pause between two checks for an interruption.
const PAUSE: Duration = Duration::from_millis(50);

/// The result of a case on the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The differences between the broker and the simulation; empty if they agree.
    Compared(Vec<String>),
    /// The result is not comparable, for this reason.
    NotComparable(String),
    /// The case did not finish in time.
    NotEnded,
    /// The case did not start, because an earlier case did not finish in time.
    NotStarted,
}

/// Declares the topology in the vhosts, and runs the cases. Each vhost must exist and be empty. Sets `has_declared`
/// before a case runs, or if only part of the topology was declared. Calls `observe` after each case.
///
/// # Errors
/// The topology could not be declared, a case could not run, or the run was interrupted.
pub async fn run<'p>(
    access: &Access,
    vhosts: &[VhostName],
    preparation: &'p Preparation,
    (interrupt, has_declared): (&Interrupt, &Cell<bool>),
    observe: &dyn Fn(),
) -> Result<Vec<(&'p RunnableCase, Verdict)>, LiveError> {
    let mut waiting: Vec<&RunnableCase> = preparation.cases.iter().collect();
    // The longest case starts first.
    waiting.sort_by_key(|case| case.ended_at);
    let waiting = RefCell::new(waiting);
    let results = RefCell::new(Vec::new());
    // Waits for all vhosts, even if one fails or the run is interrupted. Otherwise, the broker could process a pending
    // request and create an object after topo has deleted all objects.
    let declare_in = |vhost| declare(access, vhost, &preparation.desired, (interrupt, has_declared));
    for declared in join_all(vhosts.iter().map(declare_in)).await {
        declared?;
    }
    let in_vhost = async |vhost: &VhostName| {
        let amqp = access.amqp(vhost).await.map_err(LiveError::Amqp)?;
        loop {
            let Some(case) = waiting.borrow_mut().pop() else { break };
            let verdict = tokio::select! {
                biased;
                () = interrupted(interrupt) => return Err(LiveError::Interrupted),
                verdict = run_case(&amqp, case, preparation) => verdict?,
            };
            let is_ended = verdict != Verdict::NotEnded;
            results.borrow_mut().push((case, verdict));
            observe();
            // The remaining messages of this case would affect other cases in this vhost.
            if !is_ended {
                break;
            }
        }
        amqp.close().await;
        Ok::<(), LiveError>(())
    };
    try_join_all(vhosts.iter().map(in_vhost)).await?;
    let mut results = results.into_inner();
    results.extend(waiting.into_inner().into_iter().map(|case| (case, Verdict::NotStarted)));
    Ok(results)
}

async fn interrupted(interrupt: &Interrupt) {
    while !interrupt.is_requested() {
        sleep(PAUSE).await;
    }
}

/// Runs a case. If the results differ, but publishing the messages took longer than the time until the first event, the
/// result is not comparable. topo then runs the case again.
async fn run_case(
    amqp: &AmqpTransport,
    case: &RunnableCase,
    preparation: &Preparation,
) -> Result<Verdict, BrokerError> {
    let queues = &preparation.desired.topology.queues;
    let execution = Execution { case, contracts: &preparation.contracts, queues };
    let simulated = Duration::from_millis(u64::try_from(case.ended_at).unwrap_or(0));
    let messages = u32::try_from(case.publication.count).unwrap_or(u32::MAX);
    let limit = simulated + EXTRA_TIME + TIME_PER_MESSAGE.saturating_mul(messages);
    let mut reason = String::new();
    for _ in 0..ATTEMPTS {
        let Ok(observed) = timeout(limit, execution.run(amqp)).await else {
            return Ok(Verdict::NotEnded);
        };
        let observed = observed?;
        let differences = observed.observation.differences(&case.simulated);
        let first_event = case.first_event.and_then(|at| u64::try_from(at).ok()).map(Duration::from_millis);
        let is_slow = case.publication.count > 1 && first_event.is_some_and(|at| observed.publishing >= at);
        if differences.is_empty() || !is_slow {
            return Ok(Verdict::Compared(differences));
        }
        reason = format!(
            "the broker took {} ms to confirm the messages, but the first of them expires or is redelivered after {} ms; use \
             a smaller --time-scale",
            observed.publishing.as_millis(),
            first_event.unwrap_or_default().as_millis()
        );
    }
    Ok(Verdict::NotComparable(reason))
}
