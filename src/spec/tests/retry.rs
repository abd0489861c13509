//! Tests the retry settings: valid settings, the precedence of sources, and contradictory settings.

use super::*;
use crate::model::Strategy;

const DEAD: &str = "deadLetterQueues: {dead: {type: quorum}}\n";

fn retry_of(text: &str) -> Option<RetrySpec> {
    spec(&format!("{text}{DEAD}")).queues[&"q".into()].retry.clone()
}

/// Returns the retries of a queue with these keys.
fn queue(keys: &str) -> RetrySpec {
    retry_of(&format!("queues: {{q: {{type: quorum, {keys}}}}}\n")).unwrap_or_else(|| panic!("{keys}: no retry"))
}

/// Returns the errors for a queue with these keys, each with its hint.
fn wrong(keys: &str) -> String {
    wrong_spec(&format!("queues: {{q: {{type: quorum, {keys}}}}}\n"))
}

fn wrong_spec(text: &str) -> String {
    let found = parse_one(&format!("version: 1\nvhost: shop\n{text}")).expect_err("this spec is invalid");
    let line = |it: &Diagnostic| match &it.hint {
        Some(hint) => format!("{} ({hint})", it.message),
        None => it.message.clone(),
    };
    found.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn delays_are_listed_or_computed() {
    for (keys, count, delays) in [
        ("retry: {delays: [5s, 30s, 5m]}", 3, &[5000, 30_000, 300_000][..]),
        ("maxRetries: 4, retry: {delays: [500ms, 1h30m]}", 4, &[500, 5_400_000, 5_400_000, 5_400_000]),
        ("retry: {maxRetries: 5, backoff: {initial: 2s, factor: 2, max: 60s}}", 5, &[2000, 4000, 8000, 16_000, 32_000]),
        ("retry: {maxRetries: 3, backoff: {initial: 40s, max: 60s}}", 3, &[40_000, 60_000, 60_000]),
        ("retry: {maxRetries: 3, backoff: {initial: 1s, factor: 1.5}}", 3, &[1000, 1500, 2250]),
        ("retry: {maxRetries: 2, backoff: {initial: 9w, factor: 1000000}}", 2, &[5_443_200_000, 315_360_000_000]),
        ("maxRetries: 5", 5, &[]),
        ("maxRetries: 0", 0, &[]),
    ] {
        let retry = queue(keys);
        assert_eq!((retry.max_retries.value, &*retry.delays()), (count, delays), "{keys}");
    }
}

#[test]
fn nearest_setting_applies() {
    let text = |queue: &str| {
        format!(
            "defaults: {{queue: {{type: quorum}}, maxRetries: 4, retry: {{strategy: republish, delays: [1s, 2s], jitter: 100ms}}}}\n\
             retryPolicies: {{payments: {{maxRetries: 3, delays: [7s]}}, counted: {{maxRetries: 6}}}}\n\
             queues: {{q: {{{queue}}}}}\n"
        )
    };
    use SetBy::{Defaults, Itself, RetryPolicy};
    for (keys, count, delays, schedule_by) in [
        ("", (4, Defaults), &[1000, 2000, 2000, 2000][..], Defaults),
        ("maxRetries: 2", (2, Itself), &[1000, 2000], Defaults),
        ("maxRetries: 1", (1, Itself), &[1000], Defaults),
        ("retry: payments", (3, RetryPolicy), &[7000, 7000, 7000], RetryPolicy),
        ("retry: payments, maxRetries: 1", (1, Itself), &[7000], RetryPolicy),
        ("retry: counted", (6, RetryPolicy), &[1000, 2000, 2000, 2000, 2000, 2000], Defaults),
        ("retry: {delays: [9s]}", (4, Defaults), &[9000, 9000, 9000, 9000], Itself),
    ] {
        let retry = retry_of(&text(keys)).unwrap();
        assert_eq!((retry.max_retries.value, retry.max_retries.set_by), count, "{keys}");
        assert_eq!(&*retry.delays(), delays, "{keys}");
        assert_eq!(retry.schedule.unwrap().set_by, schedule_by, "{keys}");
        assert_eq!(retry.strategy.map(|it| (it.value, it.set_by)), Some((Strategy::Republish, Defaults)), "{keys}");
        assert!(retry.policy.is_some() == keys.contains("payments") || keys.contains("counted"));
    }
    // A strategy from a nearer source disables default settings that the strategy does not support.
    let redeliver = retry_of(&text("retry: {strategy: redeliver}")).unwrap();
    assert_eq!((redeliver.schedule, redeliver.jitter, redeliver.max_retries.value), (None, None, 4));
    let ladder = retry_of(&text("retry: {strategy: ladder}")).unwrap();
    assert_eq!((ladder.delays(), ladder.jitter), (vec![1000, 2000, 2000, 2000], None));
}

#[test]
fn retry_policy_can_be_in_a_later_document() {
    let files = [
        file("version: 1\nvhost: a\nqueues: {q: {type: quorum, retry: p}}\n"),
        file("version: 1\nvhost: a\nretryPolicies: {p: {delays: [5s]}}\n"),
    ];
    let specs = parse(&files, &Variables::new()).unwrap_or_else(|diagnostics| panic!("{diagnostics}")).vhosts;
    assert_eq!(specs[0].queues[&"q".into()].retry.as_ref().unwrap().delays(), [5000]);
    assert_eq!(specs[0].retry_uses.len(), 1);
    let twice = parse(&[files[1].clone(), files[1].clone()], &Variables::new()).expect_err("declared twice");
    assert!(twice.to_string().contains("retry policy `p` is declared twice"));
}

#[test]
fn default_retries_can_be_disabled() {
    let text = |queue: &str| {
        format!("defaults: {{queue: {{type: quorum}}, retry: {{delays: [1s]}}}}\nqueues: {{q: {{{queue}}}}}\n")
    };
    for keys in ["retry: none", "deadLetter: none", "type: stream", "retry: none, maxRetries: 0"] {
        assert_eq!(retry_of(&text(keys)), None, "{keys}");
    }
    let own = retry_of(&text("deadLetter: none, maxRetries: 3")).unwrap();
    assert_eq!(
        (own.max_retries.value, own.schedule),
        (3, None),
        "the defaults do not apply, but the queue's own setting does"
    );
    let read = spec(&format!("defaults: {{queue: {{type: quorum}}, retry: {{delays: [1s]}}}}\n{DEAD}"));
    assert_eq!(read.dead_letter_queues[&"dead".into()].queue.retry, None);
    let none = retry_of("defaults: {retry: none}\nqueues: {q: {type: quorum, maxRetries: 2}}\n").unwrap();
    assert_eq!(none.max_retries.value, 2);
}

#[test]
fn contradictory_settings_are_refused() {
    for (keys, expected) in [
        (
            "maxRetries: 2, retry: {delays: [1s, 2s, 3s]}",
            "there are more delays (3) than retries (2) (remove delays, or increase `maxRetries`: each retry uses one delay)",
        ),
        ("retry: {maxRetries: 0, delays: [1s]}", "there are more delays (1) than retries (0)"),
        ("maxRetries: 2, retry: {maxRetries: 2}", "`maxRetries` is set twice (keep one of the two)"),
        ("retry: {delays: [1s], backoff: {initial: 1s}}", "both `delays` and `backoff` are set"),
        ("retry: none, maxRetries: 3", "`retry: none` and `maxRetries: 3` contradict each other"),
        ("retry: {backoff: {initial: 2s}}", "missing number of retries for queue `q` (add `maxRetries`"),
        ("retry: {strategy: redeliver}", "missing number of retries"),
        ("retry: {maxRetries: 2, backoff: {initial: 9s, max: 5s}}", "`max` (5s) is shorter than `initial` (9s)"),
        ("retry: {strategy: ladder}, maxRetries: 3", "strategy `ladder` requires delays"),
        ("retry: {strategy: redeliver, delays: [1s]}", "`redeliver` retries immediately and does not support delays"),
        (
            "retry: {strategy: delayed, delays: [1s, 2s, 4s]}",
            "strategy `delayed` supports only delays that grow by the first delay each time, up to a limit, not 1s 2s 4s",
        ),
        ("retry: {jitter: 1s, delays: [5s]}", "`jitter` requires strategy `republish`"),
        ("retry: {strategy: republish, jitter: 5s, delays: [5s, 9s]}", "must be shorter than the shortest delay, 5s"),
        ("retry: {strategy: republish, jitter: 5s}, maxRetries: 2", "`jitter` shortens delays, but no delays are set"),
        ("retry: [5s]", "expected a name or a mapping for `retry`, found a list"),
        (
            "retry: ladder",
            "retry policy `ladder` is not declared (to choose a strategy, write `retry: {strategy: ladder}`)",
        ),
    ] {
        let found = wrong(keys);
        assert!(found.contains(expected), "{keys}: {found}");
        assert_eq!(found.lines().count(), 1, "{keys}: {found}");
    }
}

#[test]
fn linear_delays_are_accepted_for_delayed() {
    for delays in ["[1s, 2s, 3s]", "[1s, 2s, 2s]", "[5s]", "[5s, 10s, 12s, 12s]"] {
        queue(&format!("retry: {{strategy: delayed, delays: {delays}}}, maxRetries: 6"));
    }
}

#[test]
fn delays_require_units() {
    let found = wrong("retry: {delays: [5, 30]}");
    assert_eq!(
        found,
        "expected a duration with a unit for an entry in `delays`, found the integer 5 \
         (a number without a unit means milliseconds: write 5s for seconds, or 5ms)\n\
         expected a duration with a unit for an entry in `delays`, found the integer 30 \
         (a number without a unit means milliseconds: write 30s for seconds, or 30ms)"
    );
    assert!(
        wrong("maxRetries: 1, retry: {backoff: {initial: 5}}")
            .starts_with("expected a duration with a unit for `initial`, ")
    );
    assert!(wrong("retry: {delays: [0s]}").contains("cannot be 0 milliseconds"));
    assert!(wrong("retry: {delays: [5sec]}").contains("(write 5s)"));
}

#[test]
fn mistakes_in_shared_settings_are_reported_once() {
    let text = "defaults: {queue: {type: quorum}, maxRetries: 2, retry: {delays: [1s, 2s, 3s]}}\nqueues: {a: {}, b: {}, c: {}}\n";
    assert_eq!(wrong_spec(text).lines().count(), 1);
    let text = "retryPolicies: {p: {maxRetries: 2, delays: [1s, 2s, 3s]}}\n";
    assert!(wrong_spec(text).starts_with("there are more delays"), "unused policies are checked too");
    // Delays from a nearer source are not silently truncated to the default number of retries.
    let text = "defaults: {queue: {type: quorum}, maxRetries: 2}\nqueues: {a: {retry: {delays: [1s, 2s, 3s]}}}\n";
    assert!(wrong_spec(text).starts_with("there are more delays (3) than retries (2)"));
}

#[test]
fn misplaced_and_misspelled_keys_have_hints() {
    let policies = "retryPolicies: {payments: {delays: [5s]}}\n";
    let misspelled = wrong_spec(&format!("{policies}queues: {{q: {{type: quorum, retry: payment}}}}\n"));
    assert_eq!(misspelled, "retry policy `payment` is not declared (did you mean `payments`?)");
    let unused_default = wrong_spec("defaults: {retry: payment}\n");
    assert!(unused_default.starts_with("retry policy `payment` is not declared"), "unused defaults are checked too");
    assert!(wrong_spec("defaults: {queue: {maxRetries: 5}}\n").contains("under `defaults:`, next to `queue`"));
    let dead = wrong_spec("deadLetterQueues: {d: {type: quorum, retry: none}}\n");
    assert!(dead.contains("messages in a dead-letter queue are not retried"), "{dead}");
    assert!(wrong_spec("retryPolicies: {none: {delays: [5s]}}\n").contains("a retry policy cannot be named `none`"));
    assert!(wrong("maxRetry: 5").contains("did you mean `maxRetries`?"));
    let stream = wrong_spec("queues: {q: {type: stream, maxRetries: 5}}\n");
    assert_eq!(stream, "stream `q` cannot retry messages: consuming does not remove them (remove the key)");
}
