//! Exports of live vhosts: the spec changes nothing, and creates the same objects elsewhere.

mod expires;
mod minimal_text;
mod random;
pub(super) mod round_trip;
mod unusual_topologies;
