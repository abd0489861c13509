//! Defines the parts of a graph, and the labels of arrows, which show the condition under which a message follows the
//! arrow.

use crate::model::binding::KeyAndArguments;
use crate::model::units::value_text;
use crate::model::{ArgumentValue, Binding, QueueName, Reach, VhostName};
use crate::plan::ChangeKind;
use crate::rabbitmq::routing::Fate;
use serde::Serialize;
use std::collections::BTreeSet;

/// The graphs of all vhosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// The graph of each vhost.
    pub vhosts: Vec<VhostGraph>,
    /// True for the graph of a plan, in which objects without a mark are unchanged.
    pub is_plan: bool,
}

/// The graph of one vhost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VhostGraph {
    /// The name of the vhost.
    pub vhost: VhostName,
    /// The change to the vhost itself, or `None` if the vhost is unchanged. Always `None` in the graph of a spec.
    pub mark: Option<Mark>,
    /// The boxes: first the exchanges, then the queues, each sorted by name.
    pub nodes: Vec<Node>,
    /// The arrows, which refer to nodes by index.
    pub arrows: Vec<Arrow>,
}

/// A box in the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// The full name on the broker. For a stack, the name of its first object.
    pub name: String,
    /// The kind of the object.
    pub kind: Kind,
    /// The description of the kind, such as `topic exchange` or `quorum dead-letter queue`.
    pub words: String,
    /// Short facts about the object, such as `2 immediate retries` or `ttl 30s`.
    pub notes: Vec<String>,
    /// The file and line in the spec, such as `topology.yaml:12`, or `None` if the spec does not define the object.
    pub at: Option<String>,
    /// The change to the object in a plan, or `None` if the object is unchanged. Always `None` in the graph of a spec.
    pub mark: Option<Mark>,
    /// The tiers in which failed messages wait. `None` if there are no tiers, or if the tiers are separate boxes.
    pub retries: Option<Retries>,
    /// The destination of dead-lettered messages, or `None` if the queue has no dead-letter exchange.
    pub dead_letters: Option<DeadLetters>,
    /// The names of all objects in a stack, including this object. Empty if the box is not a stack.
    pub stacks: Vec<String>,
    /// True if the box is a copy of another box, which represents the same object.
    pub is_copy: bool,
}

/// The destination of dead-lettered messages, from the routing simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetters {
    /// Whether the messages reach a queue.
    pub reach: Reach,
    /// The queues that receive all of the messages.
    pub queues: BTreeSet<QueueName>,
    /// The queues that receive some of the messages, or that may receive them according to the spec.
    pub possible_queues: BTreeSet<QueueName>,
}

impl From<Fate> for DeadLetters {
    fn from(fate: Fate) -> Self {
        Self { reach: fate.reach, queues: fate.queues, possible_queues: fate.possible }
    }
}

/// The kind of object that a box represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// An exchange that the spec defines.
    Exchange,
    /// An exchange that the spec does not define: an exchange that is external, predeclared or only referenced.
    ForeignExchange,
    /// A classic or quorum queue that is neither a dead-letter queue nor a tier.
    Queue,
    /// A stream.
    Stream,
    /// A dead-letter queue.
    DeadLetterQueue,
    /// A delayed retry queue.
    Tier,
    /// A queue that the spec does not define: a queue that is external or only referenced.
    ForeignQueue,
}

impl Kind {
    /// Returns true for exchanges.
    pub fn is_exchange(self) -> bool {
        match self {
            Self::Exchange | Self::ForeignExchange => true,
            Self::Queue | Self::Stream | Self::DeadLetterQueue | Self::Tier | Self::ForeignQueue => false,
        }
    }

    /// Returns true for objects that the spec does not define.
    pub fn is_foreign(self) -> bool {
        match self {
            Self::ForeignExchange | Self::ForeignQueue => true,
            Self::Exchange | Self::Queue | Self::Stream | Self::DeadLetterQueue | Self::Tier => false,
        }
    }
}

/// The change to an object in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Mark {
    /// The object is created.
    Created,
    /// The object is changed in place, or some of the objects in the box are changed.
    Changed,
    /// The object is deleted and created again.
    Recreated,
    /// The object is deleted.
    Deleted,
    /// The object has an unresolved conflict.
    Conflict,
}

impl Mark {
    /// Returns the mark for a change of this kind.
    pub(super) fn of(kind: ChangeKind) -> Self {
        match kind {
            ChangeKind::Create => Self::Created,
            ChangeKind::Change => Self::Changed,
            ChangeKind::Recreate => Self::Recreated,
            ChangeKind::Delete => Self::Deleted,
            ChangeKind::Conflict => Self::Conflict,
        }
    }

    /// All marks, in the order in which legends show them.
    pub const ALL: [Self; 5] = [Self::Created, Self::Changed, Self::Recreated, Self::Deleted, Self::Conflict];

    /// Returns the name of the mark.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Recreated => "recreated",
            Self::Deleted => "deleted",
            Self::Conflict => "conflict",
        }
    }

    /// Returns the symbol before a name, which is the same as in the text of a plan.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Created => "+",
            Self::Changed => "~",
            Self::Recreated => "-/+",
            Self::Deleted => "-",
            Self::Conflict => "!",
        }
    }

    /// Joins the marks of several objects. Returns the common mark, or [`Self::Changed`] if the marks differ. A
    /// conflict takes precedence.
    pub(super) fn join(marks: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let mut marks = marks.into_iter();
        let first = marks.next()?;
        marks.fold(first, |joined, mark| match (joined, mark) {
            (joined, mark) if joined == mark => joined,
            (Some(Self::Conflict), _) | (_, Some(Self::Conflict)) => Some(Self::Conflict),
            (_, _) => Some(Self::Changed),
        })
    }
}

/// The tiers of a queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Retries {
    /// The label of the arrow to the tiers, such as `rejected` or `republished`.
    pub out: String,
    /// The change to the generated objects in a plan, or `None` if all these objects are unchanged.
    pub mark: Option<Mark>,
    /// The tiers, in the order in which a failing message passes through them.
    pub tiers: Vec<Tier>,
}

/// One tier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tier {
    /// The number of failures after which a message enters the tier.
    pub number: u32,
    /// The name of the queue.
    pub name: String,
    /// The delay, such as `30s`.
    pub delay: String,
    /// The change to the tier in a plan, or `None` if the tier is unchanged.
    pub mark: Option<Mark>,
}

/// An arrow. Two boxes have at most one arrow of each kind in each direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Arrow {
    /// The index of the node where the arrow begins.
    pub from: usize,
    /// The index of the node where the arrow ends, which is a different node.
    pub to: usize,
    /// The kind of the arrow.
    pub kind: ArrowKind,
    /// The change to the arrow in a plan, or `None` if the arrow is unchanged.
    pub mark: Option<Mark>,
    /// The labels on the arrow.
    pub labels: Vec<Label>,
}

/// The kind of a message path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ArrowKind {
    /// A binding.
    Binding,
    /// An alternate exchange.
    Alternate,
    /// The path to a tier, or back from a tier.
    Retry,
    /// Dead-lettering.
    DeadLetter,
}

impl ArrowKind {
    /// All kinds, in the order in which legends show them.
    pub const ALL: [Self; 4] = [Self::Binding, Self::Alternate, Self::Retry, Self::DeadLetter];

    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Binding => "binding",
            Self::Alternate => "alternate exchange",
            Self::Retry => "retry (round trip)",
            Self::DeadLetter => "dead-lettering",
        }
    }
}

/// A label on an arrow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Label {
    /// A routing key, or the headers that a message must have, or `every message`.
    pub text: String,
    /// The change to the labeled binding in a plan, or `None` if the binding is unchanged.
    pub mark: Option<Mark>,
}

/// The label of a binding that matches every message, if the same arrow also has a binding with a condition.
pub(super) const EVERY_MESSAGE: &str = "every message";

/// Returns the label of a binding from an exchange of type `kind`. Returns `None` for a headers binding without
/// arguments, and for a fanout binding without a routing key or arguments. Such bindings match every message.
pub(super) fn of_binding(binding: &Binding, kind: Option<&str>) -> Option<String> {
    match (kind, binding.arguments.is_empty()) {
        (Some("fanout"), true) if binding.routing_key.is_empty() => None,
        // A headers exchange ignores the routing key, and without arguments all messages match.
        (Some("headers"), true) => None,
        (Some("headers"), false) => Some(headers(binding)),
        (Some(_) | None, _) => Some(KeyAndArguments(binding).to_string()),
    }
}

/// Returns the label for dead-lettering with a routing key. An empty key is shown as `""`, as in the label of a
/// binding.
pub(super) fn of_key(key: &str) -> String {
    if key.is_empty() { "\"\"".to_owned() } else { key.to_owned() }
}

/// Formats the arguments, such as `region: eu, heavy: true`. Adds the prefix `any of` if one of several headers is
/// sufficient for a match.
fn headers(binding: &Binding) -> String {
    let how = binding.arguments.get("x-match").and_then(ArgumentValue::as_text).unwrap_or("all");
    let compared = binding.arguments.iter().filter(|(name, _)| *name != "x-match");
    let compared: Vec<String> = compared.map(|(name, value)| format!("{name}: {}", value_text(value))).collect();
    match (how, &compared[..]) {
        (_, []) => format!("x-match: {how}"),
        ("all" | "all-with-x", _) | (_, [_]) => compared.join(", "),
        (_, _) => format!("any of {}", compared.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Destination, QueueName};

    #[test]
    fn bindings_of_each_exchange_type_have_labels() {
        let of = |arguments: &[(&str, &str)], key: &str, kind: &str| {
            let binding = Binding {
                source: "x".into(),
                destination: Destination::Queue(QueueName::from("q")),
                routing_key: key.to_owned(),
                arguments: arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect(),
            };
            of_binding(&binding, Some(kind))
        };
        let eu = [("region", "eu"), ("tier", "2")];
        assert_eq!(of(&eu, "", "headers").as_deref(), Some("region: eu, tier: \"2\""));
        let any = [("region", "eu"), ("tier", "2"), ("x-match", "any")];
        assert_eq!(of(&any, "", "headers").as_deref(), Some("any of region: eu, tier: \"2\""));
        assert_eq!(of(&any[1..], "", "headers").as_deref(), Some("tier: \"2\""));
        assert_eq!(of(&[], "", "fanout"), None);
        assert_eq!((of(&[], "", "headers"), of(&[], "unread", "headers")), (None, None));
        assert_eq!(of(&[], "", "direct").as_deref(), Some("\"\""));
        assert_eq!(of(&[], "order.#", "topic").as_deref(), Some("order.#"));
        assert_eq!(of(&eu[..1], "k", "x-something").as_deref(), Some("k {region: eu}"));
    }
}
