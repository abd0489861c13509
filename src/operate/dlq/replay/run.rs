//! Executes a replay.

use super::super::error::DlqError;
use super::super::hazards;
use super::super::inspection::Reader;
use super::super::opened::Opened;
use super::super::report::{Continuation, RunCounts, RunEnd, RunReport, run_end};
use super::super::state::VhostState;
use super::ReplayOptions;
use super::breaker::BreakerState;
use super::handler::{Arrivals, PreparedTarget, Replayer};
use super::plan::{ReplayPlan, ReturnPath};
use crate::apply::Interrupt;
use crate::broker::transport::ProcessCounts;
use crate::broker::{Access, BrokerError};
use crate::model::{ExchangeName, QueueName, QueueType};
use std::collections::BTreeMap;
use std::time::Instant;

/// Replays messages as planned. Messages that arrive after the start of the run stay in the queue. Updates
/// `plan.targets` with the paths that the run used.
///
/// # Errors
/// See [`DlqError`]. No message has been moved.
pub async fn replay(
    access: &Access,
    state: &VhostState,
    plan: &mut ReplayPlan,
    options: &ReplayOptions,
    interrupt: &Interrupt,
    progress: &dyn Fn(&ProcessCounts, u64),
) -> Result<RunReport, DlqError> {
    hazards::refuse(plan.hazards.clone(), &options.allowed)?;
    let mut opened = Opened::open(access, state, &plan.queue, (options.hold, options.window), &options.allowed).await?;
    for target in &plan.targets {
        if let Err(error) = opened.lock_target(&target.queue).await {
            opened.close().await;
            return Err(error);
        }
    }
    let report = replay_opened(&mut opened, state, plan, options, interrupt, progress).await;
    for target in plan.targets.iter().filter(|target| target.path == ReturnPath::TemporaryExchange) {
        opened.transport.delete_replay_exchange(&target.queue).await;
    }
    opened.close().await;
    report
}

async fn replay_opened(
    opened: &mut Opened,
    state: &VhostState,
    plan: &mut ReplayPlan,
    options: &ReplayOptions,
    interrupt: &Interrupt,
    progress: &dyn Fn(&ProcessCounts, u64),
) -> Result<RunReport, DlqError> {
    let queue = plan.queue.clone();
    let mut reader = Reader::new(state, &queue);
    reader.prepare(opened).await?;
    let targets = prepare(opened, plan).await?;
    if plan.has_observer {
        // Without the observer, the circuit breaker detects returned messages only when the queue delivers them.
        opened.observe(state).await?;
    }
    // Messages may have arrived since topo created the plan.
    let is_observed = plan.has_observer || opened.receives_arrivals();
    let now = Instant::now();
    let outcome_time = plan.verdict(options.breaker.settle);
    let mut handler = Replayer {
        reader,
        options,
        targets: &targets,
        breaker: BreakerState::new(options.breaker, outcome_time, is_observed, now),
        interrupt,
        progress,
        counts: RunCounts::default(),
        arrived: Arrivals::default(),
        min_priority: min_priority(state, &queue),
        next: now,
        came_back: Vec::new(),
        ended: None,
    };
    let processed = opened.process(&mut handler).await?;
    if matches!(handler.ended, None | Some(RunEnd::Complete | RunEnd::Limit))
        && let Some(judged) = handler.breaker.final_verdict()
    {
        handler.ended = Some(RunEnd::Breaker { judged });
    }
    let pending = handler.breaker.pending(Instant::now());
    let left = opened.order.expected.saturating_sub(processed.counts.published);
    let after = opened.wait_for_returned(left).await;
    let renewed = handler.reader.renewed;
    let counts = RunCounts {
        received: processed.counts.received,
        done: processed.counts.published.saturating_sub(renewed),
        came_back: handler.breaker.returned(),
        pending,
        of_other_users: processed.of_other_users,
        renewed,
        in_doubt: processed.counts.in_doubt,
        ..handler.counts
    };
    Ok(RunReport {
        run: options.run.clone(),
        vhost: state.snapshot.topology.vhost.clone(),
        queue: plan.queue.clone(),
        before: opened.order.expected,
        after,
        counts,
        other_users: processed.other_users.clone(),
        came_back: handler.came_back,
        end: run_end(&processed, handler.ended),
        continuation: Continuation::of(&options.selection, options.limit, counts.done),
    })
}

/// Returns the lowest priority at which the queue delivers a message before older messages; `None` if the queue has no
/// priorities.
fn min_priority(state: &VhostState, queue: &QueueName) -> Option<u8> {
    let is_set = state.snapshot.topology.queues.get(queue)?.arguments.contains_key("x-max-priority");
    match state.kind(queue) {
        Some(QueueType::Classic) if is_set => Some(1),
        Some(QueueType::Quorum) if state.snapshot.profile.version.is_at_least(4, 0) => Some(5),
        Some(QueueType::Classic | QueueType::Quorum | QueueType::Stream) | None => None,
    }
}

/// Prepares the path to each target, and checks the permission to publish. If the user is not allowed to use the
/// preferred path, or its exchange no longer exists, prepares the next path.
async fn prepare(opened: &Opened, plan: &mut ReplayPlan) -> Result<BTreeMap<QueueName, PreparedTarget>, DlqError> {
    let mut prepared = BTreeMap::new();
    for target in &mut plan.targets {
        let exchange = prepare_one(opened, &target.queue, &mut target.path).await?;
        prepared.insert(target.queue.clone(), PreparedTarget { path: target.path.clone(), exchange });
        if target.path == ReturnPath::OriginalExchange {
            for exchange in target.exchanges.keys() {
                opened.transport.check_publish(&ExchangeName::new(exchange.as_str())).await?;
            }
        }
    }
    Ok(prepared)
}

async fn prepare_one(opened: &Opened, queue: &QueueName, path: &mut ReturnPath) -> Result<ExchangeName, BrokerError> {
    loop {
        let (prepared, next) = match path {
            ReturnPath::ReturnExchange(exchange) => {
                let checked = opened.transport.check_publish(exchange).await;
                (checked.map(|()| exchange.clone()), Some(ReturnPath::TemporaryExchange))
            }
            ReturnPath::TemporaryExchange => {
                let declared = match opened.transport.declare_replay_exchange(queue).await {
                    Ok(exchange) => match opened.transport.check_publish(&exchange).await {
                        Ok(()) => Ok(exchange),
                        Err(error) => {
                            opened.transport.delete_replay_exchange(queue).await;
                            Err(error)
                        }
                    },
                    Err(error) => Err(error),
                };
                (declared, Some(ReturnPath::DefaultExchange))
            }
            ReturnPath::DefaultExchange => {
                let exchange = ExchangeName::new("");
                (opened.transport.check_publish(&exchange).await.map(|()| exchange), None)
            }
            ReturnPath::OriginalExchange => (Ok(ExchangeName::new("")), None),
        };
        match (prepared, next) {
            (Ok(exchange), _) => return Ok(exchange),
            (Err(BrokerError::AccessRefused { .. } | BrokerError::NotFound { .. }), Some(next)) => *path = next,
            (Err(error), _) => return Err(error),
        }
    }
}
