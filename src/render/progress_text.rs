//! Describes the progress of an apply: transfers of messages, steps that topo retries, and rollbacks.

use super::report_text::action;
use super::style::{clean, one_line, words_and_code, wrap};
use crate::model::QueueName;
use crate::model::count::{count, number};
use crate::model::intervals::in_words;
use crate::plan::{Action, Guard};
use std::fmt::{Display, Write};
use std::time::Duration;

/// Describes the progress of a transfer, such as `1,204 so far, 3,000 left: move messages orders → …`, with the
/// reason for a stall. The counts come first, because a narrow terminal can truncate the names.
pub fn transfer_progress(
    step: &Action,
    (moved, left): (Option<u64>, Option<u64>),
    rate: Option<f64>,
    why: Option<&str>,
) -> String {
    let so_far = moved.map(|moved| format!("{} so far", number(moved)));
    let left_over = left.map(|left| format!("{} left", number(left)));
    let mut text = so_far.into_iter().chain(left_over).collect::<Vec<_>>().join(", ");
    if text.is_empty() {
        text.push_str("in progress");
    }
    if let Some(rate) = rate.filter(|rate| *rate >= 1.0) {
        let _ = write!(text, ", {} per second", number(rate as u64));
        if let Some(left) = left.filter(|left| *left > 0) {
            let _ = write!(text, ", about {} to go", duration((left as f64 / rate).ceil() as u64));
        }
    }
    if let Some(why) = why {
        let _ = write!(text, ", stalled: {}", clean(why));
    }
    let _ = write!(text, ": {}", action(step));
    text
}

/// Describes why topo retries a step, such as `waiting: 3 messages are …: delete queue orders.work.retry.1.5s`.
pub fn retry_reason(step: &Action, why: &dyn Display) -> String {
    format!("waiting: {}: {}", clean(&one_line(&why.to_string())), action(step))
}

/// Describes the check that precedes a deletion, such as `waiting: queue q: confirming that it is empty takes two
/// broker ticks (12 s): delete queue q`.
pub fn confirmation_progress(step: &Action, time: Duration) -> String {
    let state = if let Action::DeleteQueue { guard: Guard::AtMost(allowed), .. } = step
        && *allowed > 0
    {
        format!("contains at most {}", count(*allowed, "message"))
    } else {
        "is empty".to_owned()
    };
    let (object, time) = (clean(&step.object().to_string()), in_words(time));
    format!("waiting: {object}: confirming that it {state} takes two broker ticks ({time}): {}", action(step))
}

/// Describes the start of a rollback, and its reason.
pub fn rollback_start(queue: &QueueName, why: Option<&dyn Display>, width: usize) -> String {
    let why = why.map_or_else(|| "interrupted".to_owned(), |error| one_line(&error.to_string()));
    let line = clean(&format!("rolling back the migration of queue {queue}: {why}"));
    wrap(&words_and_code(&line), " ", width.saturating_sub(2)).join("\n  ")
}

/// Formats a number of seconds in a suitable unit.
fn duration(seconds: u64) -> String {
    match seconds {
        0..=90 => format!("{seconds} s"),
        91..=5_400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_progress_shows_counts_and_rate() {
        let step =
            Action::MoveMessages { from: "q".into(), to: "q.topo.drained".into(), until: crate::plan::Level::Empty };
        let progress = |moved: Option<u64>, left, rate| {
            let text = transfer_progress(&step, (moved, left), rate, None);
            text.strip_suffix(&format!(": {}", action(&step))).map(str::to_owned).unwrap_or(text)
        };
        assert_eq!(progress(Some(0), None, None), "0 so far");
        assert_eq!(progress(None, Some(7), None), "7 left");
        assert_eq!(progress(None, None, None), "in progress");
        assert_eq!(progress(Some(1_204), Some(3_000), None), "1,204 so far, 3,000 left");
        assert_eq!(
            progress(Some(1_204), Some(3_000), Some(600.4)),
            "1,204 so far, 3,000 left, 600 per second, about 5 s to go"
        );
        assert_eq!(progress(Some(9), Some(0), Some(2_000.0)), "9 so far, 0 left, 2,000 per second");
        assert_eq!(progress(Some(9), None, Some(2_000.0)), "9 so far, 2,000 per second");
        assert_eq!(progress(Some(9), Some(5), Some(0.2)), "9 so far, 5 left", "a slow rate is not shown");
        assert!(progress(Some(1), Some(60_000), Some(100.0)).ends_with("about 10 min to go"));
        let stalled = transfer_progress(&step, (Some(9), Some(5)), Some(0.0), Some("2 messages are unacknowledged"));
        assert!(stalled.starts_with("9 so far, 5 left, stalled: 2 messages are unacknowledged: move"), "{stalled}");
        assert!(progress(Some(1), Some(6_000_000), Some(100.0)).ends_with("about 17 h to go"));
    }
}
