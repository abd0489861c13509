//! Tests exports of live vhosts: a plan of the exported spec is empty, and applying the spec creates the same objects
//! in another vhost.

mod expires;
mod minimal_text;
mod random;
pub(super) mod round_trip;
mod transient;
mod unusual_topologies;
