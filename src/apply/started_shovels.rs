//! Checks whether the shovels that a run wrote are running. The broker accepts even a shovel that can never connect.

use super::outcome::{Report, StoppedShovel};
use crate::broker::{Broker, BrokerError, ShovelState};
use crate::model::{Address, ObjectId, RecordId, RecordKind, VhostName};
use crate::plan::Action;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The maximum time to wait for the shovels to connect.
const WAIT: Duration = Duration::from_secs(10);
/// The time between two reads of the states.
const INTERVAL: Duration = Duration::from_millis(500);

/// Returns the shovels that the run wrote and that are not running. For up to [`WAIT`], waits until all shovels that
/// the run wrote are running or have failed. Returns an empty list if the connected user cannot read the states, or if
/// the plugin that lists them is not enabled. Reading the states requires the `monitoring` tag.
pub(super) async fn stopped_shovels(broker: &Broker, reports: &[Report]) -> Vec<StoppedShovel> {
    let mut stopped = Vec::new();
    for report in reports {
        let written: Vec<&str> = report.done.iter().filter_map(|done| written_shovel(&done.step.action)).collect();
        if written.is_empty() {
            continue;
        }
        let states = settled_states(broker, &report.vhost, &written).await;
        // The states are not part of the verification. If topo cannot read the states, the run still succeeds.
        let Ok(Some(states)) = states else { continue };
        for name in written {
            let state = states.get(name).cloned().unwrap_or_default();
            if !state.is_running() {
                let id = ObjectId::Record(RecordId::named(RecordKind::Shovel, name));
                let state = Some(state.to_string()).filter(|state| !broker.secrets().occurs_in(state));
                let text =
                    format!("shovel {name} is not running: {}", state.as_deref().unwrap_or("its state is hidden"));
                stopped.push(StoppedShovel { address: Address::of(&report.vhost, &id), text });
            }
        }
    }
    stopped
}

fn written_shovel(action: &Action) -> Option<&str> {
    let Action::PutRecord { record, .. } = action else { return None };
    record.id.name().filter(|_| record.id.kind == RecordKind::Shovel)
}

/// Returns the states of all shovels in a vhost as soon as the shovels `names` are running or have failed, or after
/// [`WAIT`]. Returns `None` if the connected user cannot read the states, or if the plugin is not enabled.
async fn settled_states(
    broker: &Broker,
    vhost: &VhostName,
    names: &[&str],
) -> Result<Option<BTreeMap<String, ShovelState>>, BrokerError> {
    let deadline = Instant::now() + WAIT;
    loop {
        let states = broker.shovel_states(vhost).await?;
        let is_settled = |name: &&str| match &states {
            Some(states) => states.get(*name).is_some_and(|state| state.is_running() || state.has_failed()),
            None => true,
        };
        if names.iter().all(is_settled) || Instant::now() >= deadline {
            return Ok(states);
        }
        sleep(INTERVAL).await;
    }
}
