//! Tests connections that break during a transfer, and a transport that is dropped.

use std::collections::BTreeSet;

use topo::broker::BrokerError;
use topo::broker::transport::{AmqpTransport, Fault, Move, State};

use super::fixture::{By, Fixture, TYPES, fill, numbers, options_of, take};
use crate::support::vhost::segment;
use crate::support::{Node, Vhost, block_on, until};

const MESSAGES: usize = 30_000;
/// The number of messages before the next break.
const MORE: usize = 5_000;

/// Returns the names of a user's connections. The list is delayed, for new and for closed connections.
fn connections(vhost: &Vhost<'_>, user: &str) -> BTreeSet<String> {
    let listed = vhost.http().list("/api/connections");
    let of_user = listed.as_array().unwrap().iter().filter(|connection| connection["user"] == user);
    of_user.map(|connection| connection["name"].as_str().unwrap().to_owned()).collect()
}

/// Closes these connections and returns them.
fn cut(vhost: &Vhost<'_>, names: BTreeSet<String>) -> BTreeSet<String> {
    let close = |name: &String| vhost.http().delete(&format!("/api/connections/{}", segment(name))).status == 204;
    names.into_iter().filter(close).collect()
}

/// Expects each message in one of the queues. Returns the number of duplicates.
fn twice(fixture: &Fixture<'_>, published: usize, left: u64) -> usize {
    // Queries the queues themselves, because the totals of a quorum queue are as old as its last tick.
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
fn broken_connection_is_restored() {
    let node = Node::shared();
    let vhost = node.vhost("breaks");
    let user = node.user("").may_everything(&vhost);
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::create(&vhost, &format!("{types:?} "), types);
        fill(&fixture.amqp, &fixture.old, 0..MESSAGES, 20);
        let transport = block_on(AmqpTransport::connect(options_of(&vhost, &user.name, &user.password))).unwrap();
        // Finds the connection before the transfer, because this takes some time, in which all messages could move.
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
                // All messages may have moved. The connection breaks while more messages move.
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
        println!("{types:?}: {breaks} breaks, {twice} twice, {} reported", last.possible_duplicates);
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
        // Repeated if all messages had moved.
        let was_in_the_middle = (0..5).any(|game| {
            let fixture = Fixture::create(&vhost, &format!("{types:?} {game} "), types);
            fill(&fixture.amqp, &fixture.old, 0..MESSAGES, 20);
            let Move::Amqp(moving) = fixture.start(By::Amqp) else { panic!("by AMQP") };
            until("the first", || (moving.progress().moved > Some(1000)).then_some(()));
            drop(moving);
            // The broker requeues unacknowledged messages when it detects the closed connection.
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
fn unrestorable_connection_ends_the_transfer() {
    let node = Node::shared();
    let vhost = node.vhost("gone");
    let user = node.user("").may_everything(&vhost);
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    let transport = block_on(AmqpTransport::connect(options_of(&vhost, &user.name, &user.password))).unwrap();
    let mut moving = block_on(transport.start(fixture.order())).unwrap();
    // The broker closes the connections of a deleted user, and refuses to log the user in again.
    drop(user);
    let last = block_on(moving.wait_until_over());
    let State::Failed(Fault::Broker(error)) = &last.state else { panic!("{last:?}") };
    assert!(matches!(error, BrokerError::Unauthorized { .. }), "{error:?}");
}
