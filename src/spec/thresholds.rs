//! Defines the grammar of `thresholds`, and reads thresholds. topo does not send thresholds to the broker. `topo
//! status` compares them with the current state of a queue, and `topo alerts` creates alert rules from them.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Location, Node, Sourced, Value};
use super::shape::{Key, Keys, Object, Shape, key};
use crate::model::{Growth, Levels, Thresholds};

/// The word that removes all thresholds from a queue.
const NO_THRESHOLDS: &str = "none";

/// The maximum number of messages in a threshold. It is more than any queue contains.
const MAX_MESSAGES: i64 = 1_000_000_000_000;

const COUNT: Shape = Shape::Count(1, MAX_MESSAGES);

const SHAPE: Shape = Shape::Either(&Shape::OneOf(&[NO_THRESHOLDS]), &[&THRESHOLDS]);

/// The thresholds of a queue.
pub(super) const QUEUE_THRESHOLDS: Key = key(
    "thresholds",
    SHAPE,
    "The thresholds at which `topo status` and the alert rules of `topo alerts` report the queue, or `none`. They \
     change nothing on the broker. A key replaces the default of the same key.",
)
.with_example("{depth: {warning: 50, critical: 200}}");

/// The default thresholds in a document.
pub(super) const DEFAULT_THRESHOLDS: Key = key(
    "thresholds",
    SHAPE,
    "The thresholds of every dead-letter queue, or `none`. They do not apply to other queues. Without this key, the \
     threshold of a dead-letter queue is `depth: {warning: 50, critical: 200}`.",
)
.with_example("{depth: {warning: 50, critical: 200}}");

static THRESHOLDS: Object = Object {
    what: "`thresholds`",
    name: "Thresholds",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key(
                "depth",
                Shape::Object(&DEPTH),
                "The number of messages in the queue, ready and unacknowledged. The threshold is crossed when the \
                 queue contains this number of messages.",
            )
            .with_example("{warning: 50, critical: 200}"),
            key("growth", Shape::Object(&GROWTHS), "The number of messages by which the queue grows within a period.")
                .with_example("{critical: {messages: 50, within: 5m}}"),
            key("age", Shape::Object(&AGE), "How long the queue has not been empty.").with_example("{warning: 1h}"),
            key("noConsumers", Shape::Delay, "How long the queue has contained messages but had no consumer.")
                .with_example("5m"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static DEPTH: Object = Object {
    what: "`depth`",
    name: "DepthThresholds",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("warning", COUNT, "The number of messages at which the state becomes a warning.").with_example("50"),
            key("critical", COUNT, "The number of messages at which the state becomes critical.").with_example("200"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static GROWTHS: Object = Object {
    what: "`growth`",
    name: "GrowthThresholds",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("warning", Shape::Object(&GROWTH), "The growth at which the state becomes a warning.")
                .with_example("{messages: 10, within: 5m}"),
            key("critical", Shape::Object(&GROWTH), "The growth at which the state becomes critical.")
                .with_example("{messages: 50, within: 5m}"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static GROWTH: Object = Object {
    what: "a growth threshold",
    name: "Growth",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("messages", COUNT, "The number of messages by which the queue grows.").required().with_example("50"),
            key("within", Shape::Delay, "The period within which the queue grows.").required().with_example("5m"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static AGE: Object = Object {
    what: "`age`",
    name: "AgeThresholds",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("warning", Shape::Delay, "The time after which the state becomes a warning.").with_example("1h"),
            key("critical", Shape::Delay, "The time after which the state becomes critical.").with_example("6h"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

/// The thresholds that a queue or `defaults` sets, with the positions of their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThresholdsSpec {
    /// The position of `thresholds: none`.
    pub none: Option<Location>,
    /// The number of messages.
    pub depth: Option<Sourced<Levels<i64>>>,
    /// The growth.
    pub growth: Option<Sourced<Levels<Growth>>>,
    /// How long the queue has been non-empty, in milliseconds.
    pub age: Option<Sourced<Levels<i64>>>,
    /// How long the queue has contained messages but had no consumer, in milliseconds.
    pub no_consumers: Option<Sourced<i64>>,
}

impl ThresholdsSpec {
    /// Reads the thresholds of a checked queue or of `defaults`.
    pub(crate) fn read(node: &Node, diagnostics: &mut Diagnostics) -> Self {
        let Some(entry) = node.entry("thresholds") else { return Self::default() };
        if entry.node.text() == Some(NO_THRESHOLDS) {
            return Self { none: Some(entry.node.at), ..Self::default() };
        }
        let mut levels = |key: &str| {
            let entry = entry.node.entry(key)?;
            let [warning, critical] = ["warning", "critical"].map(|level| Some(entry.node.entry(level)?.node.clone()));
            check_order(key, warning.as_ref(), critical.as_ref(), diagnostics);
            Some((entry.at, [warning, critical]))
        };
        let numbers = |(at, [warning, critical]): (Location, [Option<Node>; 2])| {
            let of = |node: Option<Node>| node.as_ref().and_then(integer);
            Sourced::new(Levels { warning: of(warning), critical: of(critical) }, at)
        };
        let growths = |(at, [warning, critical]): (Location, [Option<Node>; 2])| {
            let of = |node: Option<Node>| node.as_ref().and_then(growth);
            Sourced::new(Levels { warning: of(warning), critical: of(critical) }, at)
        };
        Self {
            none: None,
            depth: levels("depth").map(numbers),
            growth: levels("growth").map(growths),
            age: levels("age").map(numbers),
            no_consumers: entry
                .node
                .entry("noConsumers")
                .and_then(|entry| Some(Sourced::new(integer(&entry.node)?, entry.at))),
        }
    }

    /// Fills in missing keys from the defaults. Returns `thresholds: none` unchanged.
    pub(crate) fn or(self, defaults: &Self) -> Self {
        if self.none.is_some() {
            return self;
        }
        Self {
            none: defaults.none,
            depth: self.depth.or_else(|| defaults.depth.clone()),
            growth: self.growth.or_else(|| defaults.growth.clone()),
            age: self.age.or_else(|| defaults.age.clone()),
            no_consumers: self.no_consumers.or_else(|| defaults.no_consumers.clone()),
        }
    }

    /// Returns true if no key is set.
    pub fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if both thresholds set the same values, regardless of the positions.
    pub(crate) fn has_same_values(&self, other: &Self) -> bool {
        [Thresholds::default(), Thresholds::DEAD_LETTER_QUEUE]
            .into_iter()
            .all(|built_in| self.effective(built_in) == other.effective(built_in))
    }

    /// Returns the effective thresholds. `built_in` applies to keys that are not set, unless the spec sets `none`.
    pub(crate) fn effective(&self, built_in: Thresholds) -> Thresholds {
        let base = if self.none.is_some() { Thresholds::default() } else { built_in };
        Thresholds {
            depth: self.depth.as_ref().map_or(base.depth, |it| it.value),
            growth: self.growth.as_ref().map_or(base.growth, |it| it.value),
            age: self.age.as_ref().map_or(base.age, |it| it.value),
            no_consumers: self.no_consumers.as_ref().map_or(base.no_consumers, |it| Some(it.value)),
        }
    }
}

/// Reports a warning threshold that is not below the critical threshold. Growth thresholds are compared only if they
/// have the same `within`.
fn check_order(key: &str, warning: Option<&Node>, critical: Option<&Node>, diagnostics: &mut Diagnostics) {
    let Some((warning, critical)) = warning.zip(critical) else { return };
    let is_growth = key == "growth";
    if is_growth && growth(warning).map(|it| it.within) != growth(critical).map(|it| it.within) {
        return;
    }
    let value = |node: &Node| {
        let node = if is_growth { node.get("messages")? } else { node };
        Some((integer(node)?, node.at))
    };
    let Some(((low, at), (high, critical_at))) = value(warning).zip(value(critical)) else { return };
    if low >= high {
        let message = format!("the warning threshold of `{key}` is not below the critical threshold");
        let diagnostic = Diagnostic::error("out-of-range", message, at).also(critical_at, "the critical threshold");
        let hint = "lower `warning`, raise `critical`, or remove one of the two";
        diagnostics.push(diagnostic.hint(hint));
    }
}

fn integer(node: &Node) -> Option<i64> {
    if let Value::Integer(number) = node.value { Some(number) } else { None }
}

fn growth(node: &Node) -> Option<Growth> {
    Some(Growth { messages: node.get("messages").and_then(integer)?, within: node.get("within").and_then(integer)? })
}
