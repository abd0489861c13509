//! Compares the routing in two topologies to find messages that reach a queue in only one of them.
//!
//! A path is a list of hops. A message takes the hop from an exchange to a destination if at least one binding between
//! them matches; these bindings are a bundle. A message takes the hop to the alternate exchange if no binding of the
//! exchange matches. For each changed hop and each path with this hop, topo searches for a message that takes the path
//! but does not reach the queue in the other topology. The comparison is exact for the `direct`, `fanout`, `topic` and
//! `headers` exchange types, for bindings between exchanges, and for cycles and alternate exchanges. topo reports all
//! other cases, and changes with too many cases, as not compared.
//!
//! | file | topic |
//! |---|---|
//! | [`compare`] | the changes with their queues and examples |
//! | [`losses`] | the messages that reach queues in only one topology, by cause |
//! | [`graph`] | the hops of a topology |
//! | [`paths`] | the paths through a changed hop |
//! | [`search`] | the search for an example |
//! | [`demand`] | the message that matches some bindings and not others |
//! | [`walk`] | the routing key of this message |
//! | [`headers`] | the headers of this message |
//! | [`budget`] | the limit on the number of steps |

mod budget;
mod compare;
mod demand;
#[cfg(test)]
mod examples_tests;
mod graph;
mod headers;
mod losses;
mod paths;
mod search;
#[cfg(test)]
mod tests;
mod walk;

pub use compare::{EntryChange, Reached, RoutingDifference, routing_changes};
pub use demand::ExampleMessage;
pub use losses::{Cause, EntryAndCause, Extent, Loss, Losses, losses};
pub use search::NotCompared;
