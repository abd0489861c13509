//! Selects messages in a dead-letter queue.

use super::dead_letter::DeadLetter;
use crate::broker::message::HeaderValue;
use crate::model::{Glob, QueueName};

/// The conditions for selecting messages. A message must meet all conditions. Except for headers, a message meets a
/// condition with several values if one of the values matches. Every message meets an empty condition.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The queues in which the message failed.
    pub sources: Vec<QueueName>,
    /// The reasons for dead-lettering.
    pub reasons: Vec<String>,
    /// The earliest time of death, in seconds since 1970.
    pub since: Option<u64>,
    /// The latest time of death, in seconds since 1970.
    pub until: Option<u64>,
    /// The headers with their values. A header without a value only needs to exist. All headers must match.
    pub headers: Vec<(String, Option<Glob>)>,
    /// The original routing keys.
    pub routing_keys: Vec<Glob>,
    /// A string that the error from the last attempt must contain.
    pub error: Option<String>,
    /// Bytes that the body must contain.
    pub body: Option<Vec<u8>>,
    /// The values of the `message_id` property, or the fingerprints.
    pub ids: Vec<String>,
    /// The positions in the queue, starting at 1.
    pub positions: Vec<u64>,
}

impl Selection {
    /// Returns true if every message matches.
    pub fn is_empty(&self) -> bool {
        let Self { sources, reasons, since, until, headers, routing_keys, error, body, ids, positions } = self;
        sources.is_empty()
            && reasons.is_empty()
            && since.is_none()
            && until.is_none()
            && headers.is_empty()
            && routing_keys.is_empty()
            && error.is_none()
            && body.is_none()
            && ids.is_empty()
            && positions.is_empty()
    }

    /// Returns true if the message meets all conditions. A message whose time of death is unknown does not meet a time
    /// condition.
    pub fn matches(&self, it: &DeadLetter) -> bool {
        let any = |is_empty: bool, matches: bool| is_empty || matches;
        any(self.positions.is_empty(), self.positions.contains(&it.position))
            && any(self.sources.is_empty(), it.source.as_ref().is_some_and(|source| self.sources.contains(source)))
            && any(self.reasons.is_empty(), it.reason.as_ref().is_some_and(|reason| self.reasons.contains(reason)))
            && self.since.is_none_or(|since| it.died_at.is_some_and(|at| at >= since))
            && self.until.is_none_or(|until| it.died_at.is_some_and(|at| at <= until))
            && any(
                self.routing_keys.is_empty(),
                self.routing_keys.iter().any(|key| key.matches(&it.original_routing_key)),
            )
            && self.headers.iter().all(|(name, glob)| matches_header(it.message.header(name), glob.as_ref()))
            && self.error.as_ref().is_none_or(|text| it.error().is_some_and(|error| error.contains(text)))
            && self.body.as_ref().is_none_or(|body| contains(&it.message.body, body))
            && any(self.ids.is_empty(), self.matches_id(it))
    }

    fn matches_id(&self, it: &DeadLetter) -> bool {
        let id = it.message.text("message_id");
        self.ids.iter().any(|wanted| Some(wanted.as_str()) == id) || self.ids.contains(&it.fingerprint())
    }
}

/// Returns true if the header exists and matches the glob. Strings, integers, floats, timestamps and booleans can match
/// a glob.
fn matches_header(value: Option<&HeaderValue>, glob: Option<&Glob>) -> bool {
    let (Some(value), Some(glob)) = (value, glob) else { return value.is_some() };
    match value {
        HeaderValue::Text(text) => glob.matches(text),
        HeaderValue::Integer(number) => glob.matches(&number.to_string()),
        HeaderValue::Timestamp(seconds) => glob.matches(&seconds.to_string()),
        HeaderValue::Boolean(value) => glob.matches(if *value { "true" } else { "false" }),
        HeaderValue::Float(number) => glob.matches(&number.to_string()),
        HeaderValue::Void
        | HeaderValue::Decimal(..)
        | HeaderValue::Bytes(_)
        | HeaderValue::List(_)
        | HeaderValue::Table(_)
        | HeaderValue::Opaque => false,
    }
}

fn contains(body: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || body.windows(wanted.len()).any(|window| window == wanted)
}
