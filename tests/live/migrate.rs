//! A queue becomes another one with its messages in it, while it is used: nothing lost, nothing twice, nothing left over.
//!
//! | file | what it shows |
//! |---|---|
//! | [`flow`] | every conversion, under load: what came through, and in which order |
//! | [`killed`] | killed before any request, and at any moment: the next run ends it |
//! | [`abort`] | `--abort` wherever it is offered |
//! | [`another`] | two URLs that lead to two brokers |
//! | [`alarm`] | a broker that takes no messages for a while |
//! | [`cluster`] | one of three nodes dies meanwhile |
//! | [`forged`] | objects that look as if a migration had made them |
//! | [`held`] | messages that cannot be moved, and those that die meanwhile |
//! | [`large`] | messages of megabytes, which are not all held in memory |
//! | [`limit`] | messages that may not be delivered again |
//! | [`late`] | what others do at an awkward moment |
//! | [`opaque`] | messages that an AMQP library cannot parse |
//! | [`policies`] | what would eat the messages that are held |
//! | [`unlocked`] | the lock is broken meanwhile |
//! | [`rivals`] | applications that do something else at the same time, and what a user may not do |

mod abort;
mod alarm;
mod another;
mod cluster;
mod flow;
mod forged;
mod goes_on;
mod held;
mod killed;
mod large;
mod late;
mod limit;
mod opaque;
mod policies;
mod rivals;
mod stage;
mod traffic;
mod under_way;
mod unlocked;
