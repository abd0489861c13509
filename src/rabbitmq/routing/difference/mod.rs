//! Compares the routing of two topologies: is there a message that reaches a queue in only one of them?
//!
//! A way is a list of hops: from an exchange to a destination, which a message takes if one of the bindings between them
//! (their bundle) matches; or to the alternate exchange, which a message takes if no binding of the exchange matches. For
//! each change of a hop, and each way with this hop, topo searches for a message that takes the way and does not reach the
//! queue in the other topology. The comparison is exact for the exchange types `direct`, `fanout`, `topic` and `headers`,
//! bindings between exchanges, cycles and alternate exchanges. Other cases are reported as not compared.
//!
//! | file | topic |
//! |---|---|
//! | [`compare`] | the changes with their queues and examples |
//! | [`losses`] | the messages that reach queues in only one topology, by cause |
//! | [`graph`] | the hops of a topology |
//! | [`ways`] | the ways through a changed hop |
//! | [`search`] | the search for an example |
//! | [`demand`] | the message that some bindings match and others do not |
//! | [`walk`] | the routing key of this message |
//! | [`headers`] | the headers of this message |
//! | [`budget`] | the limit of the work |

mod budget;
mod compare;
mod demand;
#[cfg(test)]
mod examples_tests;
mod graph;
mod headers;
mod losses;
mod search;
#[cfg(test)]
mod tests;
mod walk;
mod ways;

pub use compare::{EntryChange, Reached, RoutingDifference, routing_changes};
pub use demand::ExampleMessage;
pub use losses::{Cause, EntryAndCause, Extent, Loss, Losses, losses};
pub use search::NotCompared;
