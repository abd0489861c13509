//! Workers on what a spec's retries became, with messages that poison them.
//!
//! | file | what it shows |
//! |---|---|
//! | [`promises`] | each strategy: as many deliveries as promised, as late as promised, then the dead letter |
//! | [`other_deaths`] | a ladder whose messages also die by a TTL, an overflow or a delivery limit |
//! | [`changes`] | other delays, counts and strategies while messages are on their way |
//! | [`counting`] | what counts as an attempt: rejections, returns, crashes |
//! | [`peeking`] | looking at dead letters |
//! | [`replay`] | trying dead letters again by hand, and giving up early |
//! | [`strangers`] | messages with keys and headers that mean something to a ladder |
//! | [`poison`] | poison among healthy messages |
//! | [`dead_letter_queues`] | where dead letters go, in every way of saying it |

mod case;
mod changes;
mod counting;
mod dead_letter_queues;
mod letter;
mod other_deaths;
mod peeking;
mod poison;
mod promises;
mod replay;
mod stage;
mod strangers;
mod worker;
