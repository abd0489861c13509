//! Defines the flags that select messages.

use super::super::failure::Failure;
use crate::model::{Glob, QueueName};
use crate::operate::dlq::Selection;
use crate::rabbitmq::routing::Reason;
use clap::Args;
use std::time::{SystemTime, UNIX_EPOCH};

/// The messages to select. A message must meet all conditions. If a flag is repeated, one matching value is sufficient.
/// Exception: all values of `--header` must match.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(super) struct SelectionArguments {
    /// Queue in which the message failed; may be repeated
    #[arg(long, value_name = "QUEUE")]
    source: Vec<String>,
    /// Reason: rejected, expired, maxlen or delivery_limit; may be repeated
    #[arg(long, value_name = "REASON", value_parser = reason)]
    reason: Vec<Reason>,
    /// Only messages that failed at this time or later: 2h (before now) or 2026-11-25T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<u64>,
    /// Only messages that failed at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<u64>,
    /// Header name, or header name and value (`*` matches any characters); if repeated, all must match
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = header)]
    header: Vec<(String, Option<Glob>)>,
    /// Original routing key (`*` matches any characters); may be repeated
    #[arg(long, value_name = "KEY", value_parser = any_glob)]
    routing_key: Vec<Glob>,
    /// Text that the error header contains (set by the worker or its framework)
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Text that the body contains
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
    /// Message ID, or the fingerprint that peek shows; may be repeated
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// Position in the queue, starting at 1; may be repeated
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    position: Vec<u64>,
}

impl SelectionArguments {
    /// Returns the selection.
    pub(super) fn selection(&self) -> Result<Selection, Failure> {
        if let (Some(since), Some(until)) = (self.since, self.until)
            && since > until
        {
            return Err(Failure::usage("--since is later than --until, so no message can match"));
        }
        Ok(Selection {
            sources: self.source.iter().map(QueueName::new).collect(),
            reasons: self.reason.iter().map(|reason| reason.as_str().to_owned()).collect(),
            since: self.since,
            until: self.until,
            headers: self.header.clone(),
            routing_keys: self.routing_key.clone(),
            error: self.error.clone(),
            body: self.body.as_ref().map(|body| body.as_bytes().to_vec()),
            ids: self.id.clone(),
            positions: self.position.clone(),
        })
    }
}

fn reason(word: &str) -> Result<Reason, String> {
    let names = Reason::ALL.map(Reason::as_str);
    Reason::ALL
        .into_iter()
        .find(|it| it.as_str() == word)
        .ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

/// Parses an RFC 3339 time, or a duration to subtract from the current time. Returns the result in seconds since 1970.
fn time(text: &str) -> Result<u64, String> {
    let parsed = match humantime::parse_duration(text) {
        Ok(before) => SystemTime::now().checked_sub(before),
        Err(_) => humantime::parse_rfc3339_weak(text).ok(),
    };
    let since = parsed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map(|since| since.as_secs()).ok_or_else(|| "expected a time, such as 2h or 2026-11-25T08:00:00Z".to_owned())
}

fn header(text: &str) -> Result<(String, Option<Glob>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(Glob::new(value))),
        None => (text, None),
    };
    if name.is_empty() { Err("expected NAME or NAME=VALUE".to_owned()) } else { Ok((name.to_owned(), value)) }
}

#[expect(clippy::unnecessary_wraps, reason = "clap requires a result")]
fn any_glob(text: &str) -> Result<Glob, String> {
    Ok(Glob::new(text))
}
