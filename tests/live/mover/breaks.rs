//! Connections that break in the middle of a move, and a mover that is killed.

use topo::broker::BrokerError;
use topo::broker::mover::{AmqpMover, Fault, Move, State};

use super::stage::{By, Stage, TYPES, fill, numbers, options_of, take};
use crate::support::vhost::segment;
use crate::support::{Node, Vhost, block_on, until};

const MESSAGES: usize = 30_000;

/// The connections of a user. One is listed a while after it is made.
fn connections(vhost: &Vhost<'_>, user: &str) -> usize {
    let listed = vhost.http().get("/api/connections").expect_status(200);
    listed.as_array().unwrap().iter().filter(|connection| connection["user"] == user).count()
}

/// Closes all connections of a user; how many there were.
fn cut(vhost: &Vhost<'_>, user: &str) -> usize {
    let listed = vhost.http().get("/api/connections").expect_status(200);
    let mut closed = 0;
    for connection in listed.as_array().unwrap() {
        if connection["user"] == user
            && vhost
                .http()
                .delete(&format!("/api/connections/{}", segment(connection["name"].as_str().unwrap())))
                .status
                == 204
        {
            closed += 1;
        }
    }
    closed
}

/// Each message is somewhere; how many are at two places.
fn twice(stage: &Stage<'_>, left: u64) -> usize {
    // Asked of the queues themselves: the totals of a quorum queue are as old as its last tick.
    let there = usize::try_from(u64::from(stage.amqp.ready(&stage.new)) + left).unwrap();
    let mut all = numbers(&take(&stage.amqp, &stage.new, there - usize::try_from(left).unwrap()));
    all.extend(numbers(&take(&stage.amqp, &stage.old, usize::try_from(left).unwrap())));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert!(all.into_iter().eq(0..MESSAGES), "all of them, once or twice");
    count - MESSAGES
}

#[test]
fn a_connection_that_breaks_is_made_again() {
    let node = Node::shared();
    let vhost = node.vhost("breaks");
    let user = node.user("").may_everything(&vhost);
    for types in [TYPES[0], TYPES[2]] {
        let stage = Stage::set(&vhost, &format!("{types:?} "), types);
        fill(&stage.amqp, &stage.old, 0..MESSAGES, 20);
        let mover = block_on(AmqpMover::connect(options_of(&vhost, &user.name, &user.password))).unwrap();
        until("its connection", || (connections(&vhost, &user.name) > 0).then_some(()));
        let moving = block_on(mover.start(stage.order())).unwrap();
        until("the first", || (moving.progress().moved > Some(1000)).then_some(()));
        let mut breaks = 0;
        until("three breaks, or the end", || {
            breaks += cut(&vhost, &user.name);
            assert!(!moving.progress().state.is_over(), "{:?} after {breaks} breaks", moving.progress());
            (breaks >= 3 || stage.amqp.ready(&stage.old) == 0).then_some(())
        });
        assert!(breaks > 0, "it was moved before it could break");
        until("the rest", || {
            let progress = moving.progress();
            assert!(!progress.state.is_over(), "{progress:?} after {breaks} breaks");
            (progress.in_flight == 0 && stage.amqp.ready(&stage.old) == 0).then_some(())
        });
        let last = block_on(moving.stop());
        assert_eq!(last.state, State::Stopped);
        until("all of them", || (stage.amqp.ready(&stage.new) as usize >= MESSAGES).then_some(()));
        let twice = twice(&stage, 0);
        println!("{types:?}: {breaks} breaks, {twice} twice, {} said", last.maybe_twice);
        assert!(twice as u64 <= last.maybe_twice && last.maybe_twice <= 1000 * breaks as u64, "{last:?}");
        assert!(last.moved >= Some(MESSAGES as u64), "{last:?}");
    }
}

#[test]
fn a_mover_that_is_dropped_loses_nothing() {
    let vhost = Node::shared().vhost("dropped");
    for types in [TYPES[0], TYPES[2]] {
        let stage = Stage::set(&vhost, &format!("{types:?} "), types);
        fill(&stage.amqp, &stage.old, 0..MESSAGES, 20);
        let Move::Amqp(moving) = stage.start(By::Amqp) else { panic!("by AMQP") };
        until("the first", || (moving.progress().moved > Some(1000)).then_some(()));
        drop(moving);
        // What it held comes back when the broker has noticed.
        let mut last = 0;
        let mut same = 0;
        until("silence", || {
            let now = u64::from(stage.amqp.ready(&stage.new) + stage.amqp.ready(&stage.old));
            same = if now == last && now >= MESSAGES as u64 { same + 1 } else { 0 };
            last = now;
            (same > 10).then_some(())
        });
        let left = u64::from(stage.amqp.ready(&stage.old));
        assert!(left > 0, "it was dropped in the middle");
        assert!(twice(&stage, left) <= 1000, "{types:?}");
    }
}

#[test]
fn a_connection_that_cannot_be_made_again_ends_the_move() {
    let node = Node::shared();
    let vhost = node.vhost("gone");
    let user = node.user("").may_everything(&vhost);
    let stage = Stage::set(&vhost, "", TYPES[0]);
    let mover = block_on(AmqpMover::connect(options_of(&vhost, &user.name, &user.password))).unwrap();
    let mut moving = block_on(mover.start(stage.order())).unwrap();
    // The broker closes the connections of a user who is deleted, and does not let him in again.
    drop(user);
    let last = block_on(moving.over());
    let State::Failed(Fault::Broker(error)) = &last.state else { panic!("{last:?}") };
    assert!(matches!(error, BrokerError::Unauthorized { .. }), "{error:?}");
}
