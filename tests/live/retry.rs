//! Tests retry strategies on a real broker, with workers that fail and messages that poison them.
//!
//! | file | topic |
//! |---|---|
//! | [`guarantees`] | each strategy: the number of deliveries, their delays, and dead-lettering |
//! | [`non_rejections`] | ladders whose messages also die because of a TTL, an overflow or a delivery limit |
//! | [`changes`] | changes of delays, the number of retries and strategies while messages wait |
//! | [`attempt_counting`] | rejections, requeues and crashes as attempts |
//! | [`inspection`] | inspection of dead-lettered messages |
//! | [`replay`] | manual replays, and workers that give up early |
//! | [`foreign_messages`] | messages whose keys and headers have a meaning for a ladder |
//! | [`poison`] | poison messages among healthy messages |
//! | [`dead_letter_queues`] | every notation of dead-letter queues |

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
