//! Workers on what a spec's retries became, with messages that poison them.
//!
//! | file | what it shows |
//! |---|---|
//! | [`guarantees`] | each strategy: as many deliveries as promised, as late as promised, then the dead letter |
//! | [`non_rejections`] | a ladder whose messages also die by a TTL, an overflow or a delivery limit |
//! | [`changes`] | other delays, counts and strategies while messages are on their way |
//! | [`attempt_counting`] | what counts as an attempt: rejections, returns, crashes |
//! | [`inspection`] | looking at dead letters |
//! | [`replay`] | trying dead letters again by hand, and giving up early |
//! | [`foreign_messages`] | messages with keys and headers that mean something to a ladder |
//! | [`poison`] | poison among healthy messages |
//! | [`dead_letter_queues`] | where dead letters go, in every way of saying it |

mod attempt_counting;
mod case;
mod changes;
mod dead_letter_queues;
mod dead_lettered_message;
mod fixture;
mod foreign_messages;
mod guarantees;
mod inspection;
mod non_rejections;
mod poison;
mod replay;
mod worker;
