//! Describes how a tool replays a dead-lettered message through the default exchange. `topo dlq replay` removes the
//! same headers as such a tool, but keeps the original routing key. It publishes to an exchange that routes only to the
//! queue.

use super::context::EffectiveQueue;
use super::document::{Publish, Replay, Wait};
use crate::expand::Retry;
use crate::model::message_headers::{REMOVED_FROM_REPLAYED, REMOVED_PREFIXES};
use crate::model::{ExchangeName, naming};

/// Returns the instructions for a queue; `None` if no dead-lettered message reaches a queue.
pub(super) fn replay(it: &EffectiveQueue<'_, '_>) -> Option<Replay> {
    it.reachable_dead_letters()?;
    let mut warnings = Vec::new();
    if let Some(Retry::Ladder(ladder)) = it.retry {
        let last = naming::retry_key(it.name, ladder.tiers.last());
        warnings.push(format!("if the copy keeps the routing key {last}, its first failure dead-letters it again"));
    }
    if let Some(Retry::Republish(_)) = it.retry {
        warnings.push("if the copy keeps x-retry-count, its first failure dead-letters it again".to_owned());
    }
    warnings.push(
        "publishing to the original exchange routes the copy to every queue with a matching binding, not only to this \
         queue"
            .to_owned(),
    );
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let delays = it.retry.map_or(&[][..], Retry::delays).iter().copied();
    Some(Replay {
        publish: Publish { exchange: ExchangeName::new(""), routing_keys: vec![it.name.to_string()] },
        without_headers: owned(&REMOVED_FROM_REPLAYED),
        without_header_prefixes: owned(&REMOVED_PREFIXES),
        retries_take: Wait::of(delays.fold(0, i64::saturating_add)),
        warnings,
    })
}
