//! Tests faults during a transfer. Every message that was not moved remains in the queue.

use lapin::options::{BasicConsumeOptions, QueueDeclareOptions};
use lapin::protocol::basic::AMQPProperties;
use lapin::types::FieldTable;
use topo::broker::BrokerError;
use topo::broker::transport::{AmqpTransport, Fault, Move, Order, State};

use super::fixture::{By, Fixture, TYPES, amqp_transport, fill, numbers, of_type, options_of, shovels, take};
use crate::support::{Argument, NONE, Node, Options, block_on, text, until};

fn failure(fixture: &Fixture<'_>, by: By, moving: &mut Move) -> Fault {
    failure_while(fixture, by, moving, || {})
}

/// Returns the fault of a transfer during a concurrent operation.
fn failure_while(fixture: &Fixture<'_>, by: By, moving: &mut Move, mut goes_on: impl FnMut()) -> Fault {
    until(&format!("the end of a move by {by:?} from {}", fixture.old), || {
        match block_on(moving.progress()).unwrap().state {
            State::Failed(fault) => return Some(fault),
            State::Moving | State::Rejected | State::Blocked | State::Reconnecting | State::Stopped => {}
        }
        goes_on();
        None
    })
}

#[test]
fn missing_queues_and_exchanges_are_reported() {
    let vhost = Node::shared().vhost("missing");
    for by in By::BOTH {
        let mut fixture = Fixture::create(&vhost, &format!("{by:?} "), TYPES[0]);
        fixture.old = "nowhere".to_owned();
        assert!(matches!(fixture.refusal(by), Fault::SourceGone { .. }));
        fixture.tap = "nothing".to_owned();
        fixture.old = format!("{by:?} old");
        assert!(matches!(fixture.refusal(by), Fault::TargetGone { .. }));
        assert!(vhost.queue("nowhere").is_null(), "{by:?}");
    }
    assert!(shovels(&vhost).is_empty());
}

#[test]
fn exclusive_consumer_is_reported() {
    let vhost = Node::shared().vhost("exclusive");
    for by in By::BOTH {
        for types in [TYPES[0], TYPES[2]] {
            let fixture = Fixture::create(&vhost, &format!("{by:?} {types:?} "), types);
            let application = vhost.amqp();
            let held = block_on(async {
                let channel = application.new_channel().await.unwrap();
                channel.basic_qos(1, Default::default()).await.unwrap();
                let options = BasicConsumeOptions { exclusive: true, ..Default::default() };
                let consumer =
                    channel.basic_consume(fixture.old.as_str().into(), "".into(), options, FieldTable::default()).await;
                (channel, consumer.unwrap())
            });
            // On all versions, quorum queues permit other consumers in addition to an exclusive one.
            if types.0 == "classic" {
                let fault = fixture.refusal(by);
                let Fault::Exclusive { reason } = &fault else { panic!("{by:?}: {fault:?}") };
                assert!(reason.contains("exclusive"), "{reason}");
            } else {
                block_on(fixture.start(by).stop()).unwrap();
            }
            drop(held);
            drop(application);
            fill(&fixture.amqp, &fixture.old, 0..3, 0);
            fixture.move_all(by, 3);
            take(&fixture.amqp, &fixture.new, 3);
        }
    }
    assert!(shovels(&vhost).is_empty());
}

#[test]
fn exclusive_queue_is_reported() {
    let vhost = Node::shared().vhost("owned");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    let owner = vhost.amqp();
    let options = QueueDeclareOptions { exclusive: true, ..Default::default() };
    owner.declare_queue_as("owned", options, NONE).unwrap();
    let fixture = Fixture { old: "owned".to_owned(), ..fixture };
    assert!(matches!(fixture.refusal(By::Amqp), Fault::Exclusive { .. }));
}

#[test]
fn unroutable_target_keeps_every_message() {
    let vhost = Node::shared().vhost("unroutable");
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::create(&vhost, &format!("{types:?} "), types);
        let http = vhost.http();
        let binding = vhost.path("bindings", &["e", &fixture.tap, "q", &fixture.new, "~"]);
        // The target becomes unroutable during the transfer, or is unroutable from the start.
        fill(&fixture.amqp, &fixture.old, 0..20_000, 20);
        let mut moving = fixture.start(By::Amqp);
        let Move::Amqp(progress) = &moving else { panic!("by AMQP") };
        until("the first", || (progress.progress().moved > Some(100)).then_some(()));
        http.delete(&binding).expect_status(204);
        let mut published = 20_000;
        let fault = failure_while(&fixture, By::Amqp, &mut moving, || {
            // All messages may have moved before the target was unbound. More messages are published until one is
            // unroutable.
            if fixture.amqp.ready(&fixture.old) == 0 {
                fill(&fixture.amqp, &fixture.old, published..published + 100, 20);
                published += 100;
            }
        });
        assert!(matches!(&fault, Fault::Unroutable { reason, .. } if reason == "312 NO_ROUTE"), "{fault:?}");
        let last = block_on(moving.stop()).unwrap();
        let moved = usize::try_from(last.moved.unwrap()).unwrap();
        assert!(moved < published);
        let mut moving = fixture.start(By::Amqp);
        assert!(matches!(failure(&fixture, By::Amqp, &mut moving), Fault::Unroutable { .. }));
        assert_eq!(block_on(moving.stop()).unwrap().moved, Some(0));
        // Each message is in exactly one queue, although many messages were in flight.
        assert!(numbers(&take(&fixture.amqp, &fixture.new, moved)).into_iter().eq(0..moved), "{types:?}");
        let mut left = numbers(&take(&fixture.amqp, &fixture.old, published - moved));
        if types.0 == "quorum" {
            // The retry sent a single message, because it was redelivered. A quorum queue also changes the order of
            // returned messages.
            let alone = left.iter().position(|it| *it == moved).unwrap();
            assert!(alone <= usize::from(Order::PREFETCH), "{types:?}: {alone}");
            left[..=alone].rotate_right(1);
        }
        assert!(left.into_iter().eq(moved..published), "{types:?}");
        // A shovel would lose the messages, so topo does not start it.
        assert!(matches!(fixture.refusal(By::Shovel), Fault::Unroutable { .. }));
    }
    assert!(shovels(&vhost).is_empty());
}

#[test]
fn target_deleted_during_the_transfer_is_reported() {
    let vhost = Node::shared().vhost("target");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    let mut moving = fixture.start(By::Amqp);
    vhost.http().delete(&vhost.path("exchanges", &[&fixture.tap])).expect_status(204);
    fill(&fixture.amqp, &fixture.old, 0..5, 0);
    assert!(matches!(failure(&fixture, By::Amqp, &mut moving), Fault::TargetGone { .. }));
    drop(moving);
    assert!(numbers(&take(&fixture.amqp, &fixture.old, 5)).into_iter().eq(0..5));
}

#[test]
fn queue_deleted_during_the_transfer_is_reported() {
    let vhost = Node::shared().vhost("deleted");
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::create(&vhost, &format!("{types:?} "), types);
        fill(&fixture.amqp, &fixture.old, 0..100, 0);
        let transport = amqp_transport(&vhost);
        let mut moving = block_on(transport.start(fixture.order())).unwrap();
        until("all of them", || (moving.progress().moved == Some(100)).then_some(()));
        assert_eq!(fixture.amqp.ready(&fixture.old), 0);
        vhost.http().delete(&vhost.path("queues", &[&fixture.old])).expect_status(204);
        let last = block_on(moving.wait_until_over());
        assert!(matches!(last.state, State::Failed(Fault::SourceGone { .. })), "{last:?}");
        assert_eq!((last.moved, last.possible_duplicates), (Some(100), 0));
        take(&fixture.amqp, &fixture.new, 100);
    }
}

#[test]
fn rejecting_target_is_retried_in_order() {
    let vhost = Node::shared().vhost("rejects");
    // In 3.8, quorum queues do not reject messages.
    let kinds: &[&str] = if Node::shared().at_least(3, 10) { &["classic", "quorum"] } else { &["classic"] };
    for kind in kinds.iter().copied() {
        let fixture = Fixture::create(&vhost, &format!("{kind} "), (kind, kind));
        let full = format!("{kind} full");
        let [queue_type] = of_type(kind);
        let limit = [queue_type, ("x-max-length", Argument::LongInt(10)), ("x-overflow", text("reject-publish"))];
        fixture.amqp.declare_queue(&full, &limit).unwrap();
        fixture.amqp.declare_exchange("to full", "fanout", NONE).unwrap();
        fixture.amqp.bind_queue("to full", &full, "", NONE);
        fill(&fixture.amqp, &fixture.old, 0..200, 0);
        let fixture = Fixture { tap: "to full".to_owned(), new: full.clone(), ..fixture };
        let moving = fixture.start(By::Amqp);
        let Move::Amqp(moving) = moving else { panic!("by AMQP") };
        // A quorum queue accepts some more messages before it rejects, in later versions all of these.
        until("a rejection", || {
            let progress = moving.progress();
            (progress.state == State::Rejected || kind == "quorum" && progress.moved == Some(200)).then_some(())
        });
        let mut taken = Vec::new();
        until("all of them", || {
            if let Some(message) = fixture.amqp.get(&full) {
                taken.extend(numbers(&[message]));
            }
            (taken.len() == 200).then_some(())
        });
        let last = block_on(moving.stop());
        assert_eq!((last.moved, last.state), (Some(200), State::Stopped));
        taken.sort_unstable();
        assert!(taken.into_iter().eq(0..200), "{kind}");
        vhost.http().delete(&vhost.path("exchanges", &["to full"])).expect_status(204);
    }
}

#[test]
fn stop_while_the_target_rejects_keeps_the_order() {
    let vhost = Node::shared().vhost("rejecting");
    for kind in ["classic", "quorum"] {
        let fixture = Fixture::create(&vhost, &format!("{kind} "), (kind, kind));
        // Classic queues reject the first message above the limit in every version.
        let limit = [("x-max-length", Argument::LongInt(10)), ("x-overflow", text("reject-publish"))];
        let full = format!("{kind} full");
        fixture.amqp.declare_queue(&full, &limit).unwrap();
        fixture.amqp.declare_exchange("to it", "fanout", NONE).unwrap();
        fixture.amqp.bind_queue("to it", &full, "", NONE);
        fill(&fixture.amqp, &fixture.old, 0..2000, 0);
        let fixture = Fixture { tap: "to it".to_owned(), new: full, ..fixture };
        let Move::Amqp(moving) = fixture.start(By::Amqp) else { panic!("by AMQP") };
        until("a rejection", || (moving.progress().state == State::Rejected).then_some(()));
        let last = block_on(moving.stop());
        assert_eq!((last.moved, last.state), (Some(10), State::Stopped), "{kind}");
        assert!(numbers(&take(&fixture.amqp, &fixture.new, 10)).into_iter().eq(0..10), "{kind}");
        until("what went back", || (fixture.amqp.ready(&fixture.old) == 1990).then_some(()));
        assert!(numbers(&take(&fixture.amqp, &fixture.old, 1990)).into_iter().eq(10..2000), "{kind}");
        vhost.http().delete(&vhost.path("exchanges", &["to it"])).expect_status(204);
    }
}

#[test]
fn messages_of_other_users_are_reported() {
    let node = Node::shared();
    let vhost = node.vhost("users");
    let (author, plain) = (node.user("").may_everything(&vhost), node.user("").may_everything(&vhost));
    let impersonator = node.user("impersonator").may_everything(&vhost);
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::create(&vhost, &format!("{types:?} "), types);
        let of_author = AMQPProperties::default().with_user_id(author.name.as_str().into());
        for number in 0..30 {
            let properties = if number % 10 == 5 { of_author.clone() } else { AMQPProperties::default() };
            author.amqp(&vhost).publish_with("", &fixture.old, format!("{number} "), properties);
        }
        let transport = block_on(AmqpTransport::connect(options_of(&vhost, &plain.name, &plain.password))).unwrap();
        let mut moving = block_on(transport.start(fixture.order())).unwrap();
        let last = block_on(moving.wait_until_over());
        let State::Failed(Fault::ForeignUser { user_id, reason }) = &last.state else { panic!("{last:?}") };
        assert_eq!(*user_id, author.name);
        assert!(reason.contains("user_id property set to"), "{reason}");
        assert_eq!((last.moved, last.possible_duplicates), (Some(5), 0));
        assert!(numbers(&take(&fixture.amqp, &fixture.new, 5)).into_iter().eq(0..5));
        drop(moving);
        let transport =
            block_on(AmqpTransport::connect(options_of(&vhost, &impersonator.name, &impersonator.password)));
        let moving = block_on(transport.unwrap().start(fixture.order())).unwrap();
        until("the rest", || (moving.progress().moved == Some(25)).then_some(()));
        assert_eq!(block_on(moving.stop()).state, State::Stopped);
        let rest = take(&fixture.amqp, &fixture.new, 25);
        assert!(numbers(&rest).into_iter().eq(5..30));
        assert_eq!(rest[0].properties.user_id().as_ref().unwrap().as_str(), author.name);
    }
}

#[test]
fn first_message_of_another_user_keeps_the_order() {
    let node = Node::shared();
    let vhost = node.vhost("first");
    let (author, impersonator) =
        (node.user("").may_everything(&vhost), node.user("impersonator").may_everything(&vhost));
    let of_author = AMQPProperties::default().with_user_id(author.name.as_str().into());
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::create(&vhost, &format!("{types:?} "), types);
        author.amqp(&vhost).publish_with("", &fixture.old, "0 ", of_author.clone());
        fill(&fixture.amqp, &fixture.old, 1..2000, 0);
        let transport =
            block_on(AmqpTransport::connect(options_of(&vhost, &impersonator.name, &impersonator.password)));
        let moving = block_on(transport.unwrap().start(fixture.order())).unwrap();
        until("all", || (moving.progress().moved == Some(2000)).then_some(()));
        assert_eq!(block_on(moving.stop()).state, State::Stopped);
        assert!(numbers(&take(&fixture.amqp, &fixture.new, 2000)).into_iter().eq(0..2000), "{types:?}");
    }
}

#[test]
fn single_active_consumer_keeps_its_messages() {
    let vhost = Node::shared().vhost("single");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    let arguments = [("x-single-active-consumer", Argument::Boolean(true))];
    fixture.amqp.declare_queue("single", &arguments).unwrap();
    let fixture = Fixture { old: "single".to_owned(), ..fixture };
    let application = vhost.amqp();
    let held = application.hold("single", 0);
    fill(&fixture.amqp, "single", 0..5, 0);
    let transport = amqp_transport(&vhost);
    let moving = block_on(transport.start(fixture.order())).unwrap();
    until("both consumers", || {
        let consumers = vhost.http().list(&vhost.path("consumers", &[]));
        (consumers.as_array().unwrap().len() == 2).then_some(())
    });
    assert_eq!((moving.progress().moved, moving.progress().state), (Some(0), State::Moving));
    drop(held);
    until("the rest", || (moving.progress().moved == Some(5)).then_some(()));
    assert_eq!(block_on(moving.stop()).state, State::Stopped);
}

#[test]
fn alarm_stops_the_transfer() {
    // The limit is below the memory use of any node.
    let node = Node::start(Options::default().line("vm_memory_high_watermark.absolute = 10MB"));
    let vhost = node.vhost("alarm");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    let fault = fixture.refusal(By::Amqp);
    assert!(matches!(fault, Fault::Broker(BrokerError::Alarm { .. })), "{fault:?}");
}
