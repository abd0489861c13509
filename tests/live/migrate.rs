//! A queue becomes another one with its messages in it, while it is used: nothing lost, nothing twice, nothing left over.
//!
//! | file | what it shows |
//! |---|---|
//! | [`under_load`] | every conversion, under load: what came through, and in which order |
//! | [`killed`] | killed before any request, and at any moment: the next run ends it |
//! | [`abort`] | `--abort` wherever it is offered |
//! | [`wrong_broker`] | two URLs that lead to two brokers |
//! | [`alarm`] | a broker that takes no messages for a while |
//! | [`cluster`] | one of three nodes dies meanwhile |
//! | [`forged_objects`] | objects that look as if a migration had made them |
//! | [`unacknowledged`] | messages that cannot be moved, and those that die meanwhile |
//! | [`large`] | messages of megabytes, which are not all held in memory |
//! | [`delivery_limit`] | messages that may not be delivered again |
//! | [`late_changes`] | what others do at an awkward moment |
//! | [`unparsable_messages`] | messages that an AMQP library cannot parse |
//! | [`policies`] | what would eat the messages that are held |
//! | [`broken_lock`] | the lock is broken meanwhile |
//! | [`concurrent_applications`] | applications that do something else at the same time, and what a user may not do |

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
mod traffic;
mod unacknowledged;
mod under_load;
mod unparsable_messages;
mod wrong_broker;
