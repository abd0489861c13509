//! What is live comes out as a spec that changes nothing, and that makes the same again elsewhere.

mod expires;
mod minimal_text;
mod random;
pub(super) mod round_trip;
mod unusual_topologies;
