//! What a quorum queue writes into the headers of what it hands out.

use lapin::BasicProperties;
use lapin::types::FieldTable;

/// How often it handed the message out. Up to 3.12 it says so the first time, too (`rabbit_fifo_client`).
const COUNTS: [&str; 2] = ["x-delivery-count", "x-acquired-count"];

/// Whether a quorum queue, this one or another, says how often it handed the message out.
pub(super) fn has_count(properties: &BasicProperties) -> bool {
    let headers = properties.headers().as_ref();
    headers.is_some_and(|headers| COUNTS.iter().any(|count| headers.contains_key(count)))
}

/// The properties as the publisher gave them: with the move, counting starts anew. The next quorum queue would write over the
/// old numbers, and a classic one would show them for ever. Where there were no headers but those, an empty table stays.
pub(super) fn without_counts(properties: BasicProperties) -> BasicProperties {
    let Some(headers) = properties.headers().as_ref().filter(|_| has_count(&properties)) else { return properties };
    let mut kept = FieldTable::default();
    for (name, value) in headers.inner().iter().filter(|(name, _)| !COUNTS.contains(&name.as_str())) {
        kept.insert(name.clone(), value.clone());
    }
    properties.with_headers(kept)
}
