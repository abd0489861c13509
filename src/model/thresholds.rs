//! Defines queue thresholds: the values at which `topo status` and the alerts from `topo alerts` report a queue.
//! Thresholds are not arguments, and topo does not send them to the broker.

/// The severity of a crossed threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A warning.
    Warning,
    /// A critical state.
    Critical,
}

/// The values of one threshold, by severity; `None` if the severity has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels<T> {
    /// The value at which the state becomes a warning.
    pub warning: Option<T>,
    /// The value at which the state becomes critical.
    pub critical: Option<T>,
}

/// The growth of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The number of messages by which the queue grows.
    pub messages: i64,
    /// The time within which it grows, in milliseconds.
    pub within: i64,
}

/// The thresholds of one queue. A threshold is crossed when the queue's value is greater than or equal to the
/// threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// The number of messages, whether ready or unacknowledged.
    pub depth: Levels<i64>,
    /// The growth.
    pub growth: Levels<Growth>,
    /// How long the queue has contained messages, in milliseconds.
    pub age: Levels<i64>,
    /// How long the queue has contained messages but has had no consumers, in milliseconds.
    pub no_consumers: Option<i64>,
}

impl Severity {
    /// Both severities, the lower one first.
    pub const ALL: [Self; 2] = [Self::Warning, Self::Critical];

    /// Returns the name of the severity in JSON, alert labels and text output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

impl<T: Copy> Levels<T> {
    /// Returns the value for a severity.
    pub fn of(&self, severity: Severity) -> Option<T> {
        match severity {
            Severity::Warning => self.warning,
            Severity::Critical => self.critical,
        }
    }

    /// Returns true if no severity has a value.
    pub fn is_empty(&self) -> bool {
        self.warning.is_none() && self.critical.is_none()
    }

    /// Returns the highest severity whose value satisfies the predicate, together with that value.
    pub fn highest(&self, is_reached: impl Fn(T) -> bool) -> Option<(Severity, T)> {
        Severity::ALL
            .into_iter()
            .rev()
            .find_map(|severity| Some((severity, self.of(severity).filter(|it| is_reached(*it))?)))
    }
}

impl<T> Default for Levels<T> {
    fn default() -> Self {
        Self { warning: None, critical: None }
    }
}

impl Thresholds {
    /// The thresholds of a dead-letter queue without `thresholds`. The numbers come from the article "Three strikes".
    pub const DEAD_LETTER_QUEUE: Self = Self {
        depth: Levels { warning: Some(50), critical: Some(200) },
        growth: Levels { warning: None, critical: None },
        age: Levels { warning: None, critical: None },
        no_consumers: None,
    };

    /// Returns true if there is no threshold.
    pub fn is_empty(&self) -> bool {
        self.depth.is_empty() && self.growth.is_empty() && self.age.is_empty() && self.no_consumers.is_none()
    }
}
