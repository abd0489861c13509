//! Builds PromQL: label matchers, series selectors, and alert expressions.

use crate::model::printable::is_hidden;
use crate::model::units::duration;
use crate::model::{QueueName, VhostName};
use std::fmt;
use std::fmt::Write as _;

/// The RabbitMQ endpoint whose metrics the rules use. The endpoint determines the names of the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metrics {
    /// `/metrics/detailed`, which returns only the requested metric families. topo uses this endpoint for RabbitMQ 3.10
    /// and later.
    #[default]
    Detailed,
    /// `/metrics/per-object`; on RabbitMQ 3.8, `/metrics` with `prometheus.return_per_object_metrics = true`.
    PerObject,
}

/// A metric of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The number of messages.
    Messages,
    /// The number of messages that are ready for delivery.
    Ready,
    /// The number of messages that have been delivered but not acknowledged.
    Unacknowledged,
    /// The number of consumers.
    Consumers,
}

impl Metrics {
    /// Returns the name of a metric at this endpoint.
    pub fn name(self, metric: Metric) -> String {
        let prefix = match self {
            Self::Detailed => "rabbitmq_detailed_queue_",
            Self::PerObject => "rabbitmq_queue_",
        };
        let name = match metric {
            Metric::Messages => "messages",
            Metric::Ready => "messages_ready",
            Metric::Unacknowledged => "messages_unacked",
            Metric::Consumers => "consumers",
        };
        format!("{prefix}{name}")
    }
}

/// The comparison operator in a label matcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Matches,
    /// `!~`
    MatchesNot,
}

impl Comparison {
    fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Matches => "=~",
            Self::MatchesNot => "!~",
        }
    }
}

/// A label matcher, such as `job="rabbitmq"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    /// The name of the label.
    pub label: String,
    /// The comparison.
    pub comparison: Comparison,
    /// The value, without quotes and escapes.
    pub value: String,
}

impl Matcher {
    /// Parses a PromQL label matcher. The quotes around the value are optional. Refuses the labels that topo sets.
    ///
    /// # Errors
    /// The reason why `text` is not a usable matcher.
    pub fn parse(text: &str) -> Result<Self, String> {
        let example = "for example, job=\"rabbitmq\"";
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
        let (label, rest) = text.split_at(end);
        if label.is_empty() || label.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(format!("expected a label name; {example}"));
        }
        if ["vhost", "queue", "__name__"].contains(&label) {
            return Err(format!("topo sets the label `{label}` itself; match other labels, such as job or instance"));
        }
        // `=~` comes before `=`, which is its prefix.
        let all = [Comparison::Matches, Comparison::MatchesNot, Comparison::NotEqual, Comparison::Equal];
        let found = all.into_iter().find_map(|it| Some((it, rest.strip_prefix(it.as_str())?)));
        let (comparison, quoted) =
            found.ok_or_else(|| format!("expected =, !=, =~ or !~ after the label; {example}"))?;
        let value = match quoted.strip_prefix('"') {
            Some(rest) => {
                unescape(rest).ok_or_else(|| format!("the value is not a string in double quotes; {example}"))?
            }
            // A shell removes unescaped quotes, so topo accepts a value without quotes.
            None if quoted.contains(['"', '\'', '\\', '{', '}', ',']) || quoted.chars().any(is_hidden) => {
                return Err(format!("the value is not a string in double quotes; {example}"));
            }
            None => quoted.to_owned(),
        };
        Ok(Self { label: label.to_owned(), comparison, value })
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.label, self.comparison.as_str(), quoted(&self.value))
    }
}

/// Decodes the rest of a string in double quotes, after the first quote. Returns `None` if the string is
/// incomplete, contains an unknown escape, or is followed by other characters.
fn unescape(rest: &str) -> Option<String> {
    let mut value = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return chars.next().is_none().then_some(value),
            '\\' => value.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                c @ ('"' | '\\') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
}

/// Writes a PromQL string. Escapes hidden characters, so that the rules contain none.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            '\n' => quoted.push_str("\\n"),
            c if is_hidden(c) => {
                let _ = match u32::from(c) {
                    code @ 0..=0xffff => write!(quoted, "\\u{code:04x}"),
                    code => write!(quoted, "\\U{code:08x}"),
                };
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The metric series of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    metrics: Metrics,
    matchers: Vec<Matcher>,
}

impl Series {
    /// Creates the series of a queue with additional matchers.
    pub(super) fn of(metrics: Metrics, vhost: &VhostName, queue: &QueueName, matchers: &[Matcher]) -> Self {
        let equal = |label: &str, value: &str| Matcher {
            label: label.to_owned(),
            comparison: Comparison::Equal,
            value: value.to_owned(),
        };
        let own = [equal("vhost", vhost.as_str()), equal("queue", queue.as_str())];
        Self { metrics, matchers: own.into_iter().chain(matchers.iter().cloned()).collect() }
    }

    /// Returns the selector of a metric, such as `rabbitmq_queue_messages{vhost="shop",queue="orders"}`.
    pub fn of_metric(&self, metric: Metric) -> String {
        let matchers: Vec<String> = self.matchers.iter().map(Matcher::to_string).collect();
        format!("{}{{{}}}", self.metrics.name(metric), matchers.join(","))
    }

    /// Returns the labels of the series. Returns `None` if a matcher uses an operator other than `=`, because the value
    /// of its label is unknown in that case.
    pub fn labels(&self) -> Option<Vec<(&str, &str)>> {
        let label = |it: &Matcher| it.comparison == Comparison::Equal;
        let known = self.matchers.iter().all(label);
        known.then(|| self.matchers.iter().map(|it| (it.label.as_str(), it.value.as_str())).collect())
    }

    /// Returns an expression for the largest value of a metric across all nodes.
    pub fn max(&self, metric: Metric) -> String {
        largest(&self.of_metric(metric))
    }
}

/// Aggregates an expression across all nodes. After the leader of a queue moves, two nodes can have a series for the
/// queue.
pub(super) fn largest(expression: &str) -> String {
    format!("max by (vhost, queue) ({expression})")
}

/// Formats milliseconds as a PromQL duration, such as `1h5m`.
pub fn time(milliseconds: i64) -> String {
    duration(milliseconds).unwrap_or_else(|| "0s".to_owned())
}
