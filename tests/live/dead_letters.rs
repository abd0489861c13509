//! Tests `topo dlq` on brokers: inspections, replays, drops, restores, refusals, and kills at any moment.
//!
//! | file | topic |
//! |---|---|
//! | [`fixture`] | a topology with a dead-letter queue, and dead-lettered messages |
//! | [`inspection`] | inspections change neither the order nor the content of a queue |
//! | [`limits`] | delivery limits, held messages and large queues |
//! | [`replay`] | the way back of each strategy, headers and selection |
//! | [`breaker`] | the circuit breaker |
//! | [`records`] | confirmations, audit records and signals |
//! | [`removal`] | drops, exports and restores |
//! | [`refusals`] | bad input, hazards, missing permissions and concurrent runs |
//! | [`job`] | a command that is interrupted and repeated |
//! | [`killed`] | runs that are killed at random moments |
//! | [`broker_killed`] | brokers that are killed at random moments |
//! | [`large`] | large queues: order and memory |

mod breaker;
mod broker_killed;
mod fixture;
mod inspection;
mod job;
mod killed;
mod large;
mod limits;
mod records;
mod refusals;
mod removal;
mod replay;
