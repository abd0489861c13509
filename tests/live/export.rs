//! What is live comes out as a spec that changes nothing, and that makes the same again elsewhere.

mod expires;
mod odd;
mod random;
pub(super) mod round;
mod written;
