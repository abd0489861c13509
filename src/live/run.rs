//! Runs the prepared cases of a file in scratch vhosts, several vhosts concurrently.

use super::declare::declare;
use super::error::LiveError;
use super::execution::Execution;
use super::preparation::{Preparation, RunnableCase};
use crate::broker::Access;
use crate::model::VhostName;
use futures_util::future::try_join_all;
use std::cell::RefCell;

/// Declares the topology in the vhosts, and runs the cases. Returns the cases with the differences between the broker and
/// the simulation. Each vhost must exist and be empty. Calls `observe` after each case.
///
/// # Errors
/// The topology could not be declared, or a case could not run.
pub async fn run<'p>(
    access: &Access,
    vhosts: &[VhostName],
    preparation: &'p Preparation,
    observe: &dyn Fn(),
) -> Result<Vec<(&'p RunnableCase, Vec<String>)>, LiveError> {
    let mut waiting: Vec<&RunnableCase> = preparation.cases.iter().collect();
    // The longest case starts first.
    waiting.sort_by_key(|case| case.ended_at);
    let waiting = RefCell::new(waiting);
    let results = RefCell::new(Vec::new());
    let in_vhost = async |vhost: &VhostName| {
        let amqp = access.amqp(vhost).await.map_err(LiveError::Amqp)?;
        declare(access, vhost, &preparation.desired).await?;
        let queues = &preparation.desired.topology.queues;
        loop {
            let Some(case) = waiting.borrow_mut().pop() else { break };
            let execution = Execution { case, contracts: &preparation.contracts, queues };
            let differences = execution.run(&amqp).await?.differences(&case.simulated);
            results.borrow_mut().push((case, differences));
            observe();
        }
        amqp.close().await;
        Ok::<(), LiveError>(())
    };
    try_join_all(vhosts.iter().map(in_vhost)).await?;
    Ok(results.into_inner())
}
