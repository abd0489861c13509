//! Tests `topo dlq` on brokers: inspections, replays, drops, restores, refusals, and kills at any moment.
//!
//! | file | topic |
//! |---|---|
//! | [`fixture`] | a topology with a dead-letter queue, and dead-lettered messages |
//! | [`inspection`] | inspections change neither the order nor the content of a queue |
//! | [`limits`] | delivery limits, held messages and large queues |
//! | [`replay`] | the way back of each strategy, headers, selection and the circuit breaker |
//! | [`removal`] | drops, exports and restores |
//! | [`refusals`] | bad input, hazards, missing permissions and concurrent runs |
//! | [`killed`] | runs that are killed at random moments |
//! | [`large`] | large queues: order and memory |

mod fixture;
mod inspection;
mod killed;
mod large;
mod limits;
mod refusals;
mod removal;
mod replay;
