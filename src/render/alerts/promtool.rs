//! Renders tests of alert rules for `promtool test rules`. In these tests, every rule fires at its threshold, but not
//! with one message fewer or one evaluation earlier.

use super::text::{Shown, annotations};
use crate::model::Growth;
use crate::model::yaml::Tree;
use crate::operate::alerts::{Alert, Condition, Metric, Series, VhostAlerts, time};
use serde_json::{Map, Value, json};

/// The first line of the tests.
pub(super) const TITLE: &str = "# Tests of alert rules for promtool, written by topo alerts";

/// The minimum interval between evaluations, and the maximum interval between samples.
const MINUTE: i64 = 60_000;

/// The maximum number of evaluations in one test. promtool evaluates all rules each time. Without this limit, a test
/// for an age threshold of several days would take minutes.
const MAX_EVALUATIONS: i64 = 240;

/// The error for a matcher that does not determine the labels of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntestableMatcher;

/// Renders the tests for all rules. `rules` is the path to the rules file, relative to the test file.
///
/// # Errors
/// Returns an error if a matcher uses an operator other than `=`, because the tests cannot create a matching series for
/// it.
pub fn tests(vhosts: &[VhostAlerts], rules: &str) -> Result<String, UntestableMatcher> {
    let mut all = Vec::new();
    let step = step(vhosts);
    let alerts: Vec<&Alert> = vhosts.iter().flat_map(|vhost| &vhost.alerts).collect();
    let unseen: Vec<&Alert> = alerts.iter().copied().filter(|it| it.condition == Condition::NotSeen).collect();
    if alerts.iter().any(|alert| alert.series.labels().is_none()) {
        return Err(UntestableMatcher);
    }
    for (index, alert) in alerts.iter().enumerate() {
        // Alerts with the same name for the same queue have different severities. The same tests cover them.
        let is_same = |other: &&Alert| other.name() == alert.name() && is_same_queue(other, alert);
        let is_first = !alerts[..index].iter().any(is_same);
        if is_first && alert.condition != Condition::NotSeen {
            let same: Vec<&Alert> = alerts.iter().copied().filter(is_same).collect();
            all.extend(cases(&same, step).iter().map(|case| test(case, &same, step)));
        }
    }
    if !unseen.is_empty() {
        all.extend(unseen_tests(&unseen, step));
    }
    let document = json!({"rule_files": [rules], "evaluation_interval": time(step), "tests": all});
    Ok(format!("{TITLE}. Run them with: promtool test rules FILE\n{}", Tree::from_json(&document).document()))
}

/// Returns the interval between evaluations, in milliseconds: one minute, or more if a condition must persist for a
/// long time.
fn step(vhosts: &[VhostAlerts]) -> i64 {
    let longest = vhosts.iter().flat_map(|vhost| &vhost.alerts).map(|alert| alert.persists).max().unwrap_or_default();
    let minutes = longest.saturating_add(MAX_EVALUATIONS * MINUTE - 1) / (MAX_EVALUATIONS * MINUTE);
    minutes.max(1).saturating_mul(MINUTE)
}

fn is_same_queue(a: &Alert, b: &Alert) -> bool {
    a.vhost == b.vhost && a.queue == b.queue
}

/// A test: the samples of a queue, and the time at which the alerts are compared.
struct Case {
    name: String,
    /// The values of each metric, in promtool's notation.
    samples: Vec<(Metric, String)>,
    /// The interval between samples, in milliseconds.
    interval: i64,
    /// The time of the comparison, in milliseconds.
    at: i64,
    /// The state of the queue at this time.
    state: State,
}

/// The state of a queue, which determines the expected alerts.
#[derive(Clone, Copy)]
enum State {
    /// The queue has contained this number of messages since the start of the test.
    Contains(i64),
    /// The queue grew from 0 to this number of messages at the end.
    GrewBy(i64),
    /// The condition of the alert has been met since the start of the test, with this value.
    Met(i64),
    /// The condition of the alert has not been met.
    NotMet,
}

impl Case {
    /// Creates a test with values that do not change.
    fn constant(name: String, values: &[(Metric, i64)], at: i64, state: State) -> Self {
        let count = at / MINUTE + 1;
        let samples = values.iter().map(|(metric, value)| (*metric, format!("{value}+0x{count}"))).collect();
        Self { name, samples, interval: MINUTE, at, state }
    }
}

/// Returns the time of the first evaluation at which an alert fires, in milliseconds since its condition was met.
fn fires_at(alert: &Alert, step: i64) -> i64 {
    let evaluations = alert.persists.saturating_add(step - 1) / step;
    evaluations.saturating_mul(step)
}

/// Returns the tests for one queue's alerts that share a name.
fn cases(alerts: &[&Alert], step: i64) -> Vec<Case> {
    // If the condition must persist for some time, a test also compares the alerts one evaluation before they fire.
    let around = |alert: &Alert, values: &[(Metric, i64)]| {
        let at = fires_at(alert, step);
        let named = |word: &str| format!("{} {}, {word} it fires", alert.name(), alert.severity.as_str());
        let before = (at >= step).then(|| Case::constant(named("before"), values, at - step, State::Met(values[0].1)));
        before.into_iter().chain([Case::constant(named("when"), values, at, State::Met(values[0].1))])
    };
    let not_met = |alert: &Alert, values: &[(Metric, i64)]| {
        let name = format!("{}, condition not met", alert.name());
        Case::constant(name, values, fires_at(alert, step), State::NotMet)
    };
    let mut cases = Vec::new();
    for alert in alerts {
        match alert.condition {
            Condition::Depth(count) => {
                let at = fires_at(alert, step);
                for value in [count - 1, count] {
                    let name = format!("{} at {value}", alert.name());
                    cases.push(Case::constant(name, &[(Metric::Messages, value)], at, State::Contains(value)));
                }
            }
            Condition::Growth(growth) => cases.extend(growths(alert, growth, alerts, step)),
            Condition::Age => {
                cases.extend(around(alert, &[(Metric::Messages, 1)]));
                cases.push(not_met(alert, &[(Metric::Messages, 0)]));
            }
            Condition::NoConsumers => {
                cases.extend(around(alert, &[(Metric::Messages, 1), (Metric::Consumers, 0)]));
                cases.push(not_met(alert, &[(Metric::Messages, 1), (Metric::Consumers, 1)]));
                cases.push(not_met(alert, &[(Metric::Messages, 0), (Metric::Consumers, 0)]));
            }
            Condition::Stuck => {
                let held = [(Metric::Messages, 1), (Metric::Ready, 0), (Metric::Unacknowledged, 0)];
                cases.extend(around(alert, &held));
                cases.push(not_met(alert, &[(Metric::Messages, 2), (Metric::Ready, 1), (Metric::Unacknowledged, 1)]));
            }
            Condition::Unmoved => {
                cases.extend(around(alert, &[(Metric::Messages, 1)]));
                cases.push(falling(alert, step));
            }
            Condition::NotSeen => {}
        }
    }
    cases
}

/// Returns the tests for a growth threshold. The queue grows in the last sample, so that every window contains the
/// growth.
fn growths(alert: &Alert, growth: Growth, alerts: &[&Alert], step: i64) -> [Case; 2] {
    let within = |alert: &&&Alert| match alert.condition {
        Condition::Growth(growth) => Some(growth.within),
        Condition::Depth(_)
        | Condition::Age
        | Condition::NoConsumers
        | Condition::Stuck
        | Condition::Unmoved
        | Condition::NotSeen => None,
    };
    let shortest = alerts.iter().filter_map(|alert| within(&alert)).min().unwrap_or(growth.within);
    let interval = (shortest / 4).clamp(250, MINUTE);
    let at = step * 2;
    let before = at / interval - 1;
    [growth.messages - 1, growth.messages].map(|messages| Case {
        name: format!("{} at {messages}", alert.name()),
        samples: vec![(Metric::Messages, format!("0+0x{before} {messages}"))],
        interval,
        at,
        state: State::GrewBy(messages),
    })
}

/// Returns the test for a tier whose message count decreases repeatedly.
fn falling(alert: &Alert, step: i64) -> Case {
    let at = fires_at(alert, step);
    let pairs = at / MINUTE / 2 + 1;
    let values = vec!["2 1"; usize::try_from(pairs).unwrap_or_default()].join(" ");
    let name = format!("{}, condition not met", alert.name());
    Case { name, samples: vec![(Metric::Messages, values)], interval: MINUTE, at, state: State::NotMet }
}

/// Returns the value that an alert reports in a state. Returns `None` if the alert does not fire.
fn value_in(alert: &Alert, state: State, at: i64, step: i64) -> Option<i64> {
    let is_late_enough = at >= fires_at(alert, step);
    match (alert.condition, state) {
        (Condition::Depth(count), State::Contains(value)) => (is_late_enough && value >= count).then_some(value),
        (Condition::Growth(growth), State::GrewBy(value)) => (value >= growth.messages).then_some(value),
        (_, State::Met(value)) => is_late_enough.then_some(value),
        (_, State::NotMet | State::Contains(_) | State::GrewBy(_)) => None,
    }
}

fn test(case: &Case, alerts: &[&Alert], step: i64) -> Value {
    let firing = alerts.iter().filter_map(|alert| Some((*alert, value_in(alert, case.state, case.at, step)?)));
    let expected: Vec<Value> = firing.map(|(alert, value)| expected(alert, value, false)).collect();
    let Some(alert) = alerts.first() else { return Value::Null };
    let series: Vec<Value> =
        case.samples.iter().map(|(metric, values)| input(&alert.series, *metric, values)).collect();
    json!({
        "name": format!("{} of {}", case.name, alert.series.of_metric(Metric::Messages)),
        "interval": time(case.interval),
        "input_series": series,
        "alert_rule_test": [compared(case.at, alert.name(), &expected)],
    })
}

fn input(series: &Series, metric: Metric, values: &str) -> Value {
    json!({"series": series.of_metric(metric), "values": values})
}

fn compared(at: i64, name: &str, expected: &[Value]) -> Value {
    let at = if at == 0 { "0s".to_owned() } else { time(at) };
    json!({"eval_time": at, "alertname": name, "exp_alerts": expected})
}

/// Returns an expected alert. Includes all labels of the matchers if `has_all_labels` is true, as it is for an alert
/// about missing metrics. Otherwise, includes only the labels of the aggregation.
fn expected(alert: &Alert, value: i64, has_all_labels: bool) -> Value {
    let mut labels = Map::new();
    for (label, value) in alert.series.labels().unwrap_or_default() {
        if has_all_labels || ["vhost", "queue"].contains(&label) {
            labels.insert(label.to_owned(), value.into());
        }
    }
    labels.insert("severity".to_owned(), alert.severity.as_str().into());
    let text = annotations(alert, Shown::Number(value));
    json!({
        "exp_labels": labels,
        "exp_annotations": {"summary": text.summary, "description": text.description},
    })
}

/// Returns the tests for the alerts about missing metrics. Without any series, all of these alerts fire.
fn unseen_tests(alerts: &[&Alert], step: i64) -> [Value; 3] {
    let name = alerts.first().map_or("", |alert| alert.name());
    let at = alerts.iter().map(|alert| fires_at(alert, step)).max().unwrap_or_default();
    let firing: Vec<Value> = alerts.iter().map(|alert| expected(alert, 1, true)).collect();
    let values = format!("0+0x{}", at / MINUTE + 1);
    let series: Vec<Value> = alerts.iter().map(|alert| input(&alert.series, Metric::Messages, &values)).collect();
    let test = |word: &str, series: &[Value], at: i64, expected: &[Value]| {
        json!({
            "name": format!("{name}, {word}"),
            "interval": "1m",
            "input_series": series,
            "alert_rule_test": [compared(at, name, expected)],
        })
    };
    [
        test("before it fires", &[], at - step, &[]),
        test("when it fires", &[], at, &firing),
        test("condition not met", &series, at, &[]),
    ]
}
