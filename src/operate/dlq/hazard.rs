//! Defines the hazards of the `topo dlq` commands.

/// A hazard that users can allow with `--allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hazard {
    /// The dead-letter queue has consumers, which receive messages before the command can receive them.
    OtherConsumers,
    /// The dead-letter queue is a quorum queue with a delivery limit. Each inspection uses up one delivery of each
    /// message; on RabbitMQ 4.3 and later, only a killed inspection does.
    InspectionCost,
    /// The target queue of a replay has no consumers.
    NoConsumers,
    /// The target queue of a replay or a restore drops its oldest messages when the published messages arrive.
    MessageDrop,
}

impl Hazard {
    /// All hazards.
    pub const ALL: [Self; 4] = [Self::OtherConsumers, Self::InspectionCost, Self::NoConsumers, Self::MessageDrop];

    /// Returns the name that `--allow` uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OtherConsumers => "other-consumers",
            Self::InspectionCost => "inspection-cost",
            Self::NoConsumers => "no-consumers",
            Self::MessageDrop => "message-drop",
        }
    }
}
