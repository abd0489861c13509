//! Connections that break in the middle of a move, and a transport that is killed.

use std::collections::BTreeSet;

use topo::broker::BrokerError;
use topo::broker::transport::{AmqpTransport, Fault, Move, State};

use super::fixture::{By, Fixture, TYPES, fill, numbers, options_of, take};
use crate::support::vhost::segment;
use crate::support::{Node, Vhost, block_on, until};

const MESSAGES: usize = 30_000;
/// And before a connection breaks once more.
const MORE: usize = 5_000;

/// The connections of a user, by their names. One is listed a while after it is made, and may be so after its end.
fn connections(vhost: &Vhost<'_>, user: &str) -> BTreeSet<String> {
    let listed = vhost.http().get("/api/connections").expect_status(200);
    let of_user = listed.as_array().unwrap().iter().filter(|connection| connection["user"] == user);
    of_user.map(|connection| connection["name"].as_str().unwrap().to_owned()).collect()
}

/// Closes these connections; those that there were.
fn cut(vhost: &Vhost<'_>, names: BTreeSet<String>) -> BTreeSet<String> {
    let close = |name: &String| vhost.http().delete(&format!("/api/connections/{}", segment(name))).status == 204;
    names.into_iter().filter(close).collect()
}

/// Each of so many messages is somewhere; how many are at two places.
fn twice(fixture: &Fixture<'_>, published: usize, left: u64) -> usize {
    // Asked of the queues themselves: the totals of a quorum queue are as old as its last tick.
    let there = usize::try_from(u64::from(fixture.amqp.ready(&fixture.new)) + left).unwrap();
    let mut all = numbers(&take(&fixture.amqp, &fixture.new, there - usize::try_from(left).unwrap()));
    all.extend(numbers(&take(&fixture.amqp, &fixture.old, usize::try_from(left).unwrap())));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert!(all.into_iter().eq(0..published), "all of them, once or twice");
    count - published
}

#[test]
fn a_connection_that_breaks_is_made_again() {
    let node = Node::shared();
    let vhost = node.vhost("breaks");
    let user = node.user("").may_everything(&vhost);
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::set(&vhost, &format!("{types:?} "), types);
        fill(&fixture.amqp, &fixture.old, 0..MESSAGES, 20);
        let transport = block_on(AmqpTransport::connect(options_of(&vhost, &user.name, &user.password))).unwrap();
        // Known by name before it moves: to find it takes a while, in which all may be moved.
        let listed = until("its connection", || {
            Some(connections(&vhost, &user.name)).filter(|connections| !connections.is_empty())
        });
        let moving = block_on(transport.start(fixture.order())).unwrap();
        until("the first", || (moving.progress().moved > Some(1000)).then_some(()));
        let (mut closed, mut published) = (cut(&vhost, listed), MESSAGES);
        until("three breaks", || {
            assert!(!moving.progress().state.is_over(), "{:?} after {closed:?}", moving.progress());
            let open = &connections(&vhost, &user.name) - &closed;
            if !open.is_empty() {
                // By now all may be moved: it breaks while more is.
                fill(&fixture.amqp, &fixture.old, published..published + MORE, 20);
                published += MORE;
                closed.extend(cut(&vhost, open));
            }
            (closed.len() >= 3).then_some(())
        });
        let breaks = closed.len();
        until("the rest", || {
            let progress = moving.progress();
            assert!(!progress.state.is_over(), "{progress:?} after {breaks} breaks");
            (progress.in_flight == 0 && fixture.amqp.ready(&fixture.old) == 0).then_some(())
        });
        let last = block_on(moving.stop());
        assert_eq!(last.state, State::Stopped);
        until("all of them", || (fixture.amqp.ready(&fixture.new) as usize >= published).then_some(()));
        let twice = twice(&fixture, published, 0);
        println!("{types:?}: {breaks} breaks, {twice} twice, {} said", last.possible_duplicates);
        assert!(
            twice as u64 <= last.possible_duplicates && last.possible_duplicates <= 1000 * breaks as u64,
            "{last:?}"
        );
        assert!(last.moved >= Some(published as u64), "{last:?}");
    }
}

#[test]
fn dropped_transport_loses_nothing() {
    let vhost = Node::shared().vhost("dropped");
    for types in [TYPES[0], TYPES[2]] {
        // Once more where all had been moved by then.
        let was_in_the_middle = (0..5).any(|game| {
            let fixture = Fixture::set(&vhost, &format!("{types:?} {game} "), types);
            fill(&fixture.amqp, &fixture.old, 0..MESSAGES, 20);
            let Move::Amqp(moving) = fixture.start(By::Amqp) else { panic!("by AMQP") };
            until("the first", || (moving.progress().moved > Some(1000)).then_some(()));
            drop(moving);
            // What it held comes back when the broker has noticed.
            let mut last = 0;
            let mut same = 0;
            until("silence", || {
                let now = u64::from(fixture.amqp.ready(&fixture.new) + fixture.amqp.ready(&fixture.old));
                same = if now == last && now >= MESSAGES as u64 { same + 1 } else { 0 };
                last = now;
                (same > 10).then_some(())
            });
            let left = u64::from(fixture.amqp.ready(&fixture.old));
            assert!(twice(&fixture, MESSAGES, left) <= 1000, "{types:?}");
            left > 0
        });
        assert!(was_in_the_middle, "{types:?}");
    }
}

#[test]
fn a_connection_that_cannot_be_made_again_ends_the_move() {
    let node = Node::shared();
    let vhost = node.vhost("gone");
    let user = node.user("").may_everything(&vhost);
    let fixture = Fixture::set(&vhost, "", TYPES[0]);
    let transport = block_on(AmqpTransport::connect(options_of(&vhost, &user.name, &user.password))).unwrap();
    let mut moving = block_on(transport.start(fixture.order())).unwrap();
    // The broker closes the connections of a user who is deleted, and does not let him in again.
    drop(user);
    let last = block_on(moving.over());
    let State::Failed(Fault::Broker(error)) = &last.state else { panic!("{last:?}") };
    assert!(matches!(error, BrokerError::Unauthorized { .. }), "{error:?}");
}
