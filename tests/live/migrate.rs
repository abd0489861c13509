//! Tests migrations of queues in use: no message is lost, duplicated or left behind.
//!
//! | file | topic |
//! |---|---|
//! | [`under_load`] | every conversion under load: messages, their order, and consumers |
//! | [`killed`] | a kill at any request or time, and the next run |
//! | [`abort`] | `--abort` at every request |
//! | [`changes_during`] | a broker restart, a deleted queue, or a different spec during a migration |
//! | [`late_changes`] | changes just before the deletion and during the return of messages |
//! | [`concurrent_applications`] | applications that declare, bind or consume during a migration; permissions |
//! | [`concurrent_plan`] | a plan while another process migrates |
//! | [`broken_lock`] | a lock that is deleted during a migration |
//! | [`wrong_broker`] | URLs of two different brokers |
//! | [`alarm`] | a broker that blocks publishers |
//! | [`cluster`] | the death of one of three nodes |
//! | [`forged_objects`] | objects that imitate those of a migration |
//! | [`policies`] | policies that affect holding queues |
//! | [`unacknowledged`] | unacknowledged, expiring and dead-lettered messages |
//! | [`delivery_limit`] | messages at their delivery limit |
//! | [`unparsable_messages`] | messages that an AMQP library cannot parse |
//! | [`slow_delivery`] | deliveries that take long |
//! | [`large`] | bounded memory for messages of megabytes |

mod abort;
mod alarm;
mod broken_lock;
mod changes_during;
mod cluster;
mod concurrent_applications;
mod concurrent_plan;
mod delivery_limit;
mod fixture;
mod forged_objects;
mod killed;
mod large;
mod late_changes;
mod policies;
mod slow_delivery;
mod traffic;
mod unacknowledged;
mod under_load;
mod unparsable_messages;
mod wrong_broker;
