//! What can be in the way of a move. Whatever it is, what was not moved is still in the queue.

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

/// The same, with something that goes on until then.
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
fn queues_and_exchanges_that_are_not_there() {
    let vhost = Node::shared().vhost("missing");
    for by in By::BOTH {
        let mut fixture = Fixture::set(&vhost, &format!("{by:?} "), TYPES[0]);
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
fn an_exclusive_consumer() {
    let vhost = Node::shared().vhost("exclusive");
    for by in By::BOTH {
        for types in [TYPES[0], TYPES[2]] {
            let fixture = Fixture::set(&vhost, &format!("{by:?} {types:?} "), types);
            let application = vhost.amqp();
            let held = block_on(async {
                let channel = application.new_channel().await.unwrap();
                channel.basic_qos(1, Default::default()).await.unwrap();
                let options = BasicConsumeOptions { exclusive: true, ..Default::default() };
                let consumer =
                    channel.basic_consume(fixture.old.as_str().into(), "".into(), options, FieldTable::default()).await;
                (channel, consumer.unwrap())
            });
            // Quorum queues let others consume beside it, on all versions.
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
fn an_exclusive_queue() {
    let vhost = Node::shared().vhost("owned");
    let fixture = Fixture::set(&vhost, "", TYPES[0]);
    let owner = vhost.amqp();
    let options = QueueDeclareOptions { exclusive: true, ..Default::default() };
    owner.declare_queue_as("owned", options, NONE).unwrap();
    let fixture = Fixture { old: "owned".to_owned(), ..fixture };
    assert!(matches!(fixture.refusal(By::Amqp), Fault::Exclusive { .. }));
}

#[test]
fn a_target_that_leads_nowhere_keeps_everything() {
    let vhost = Node::shared().vhost("unroutable");
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::set(&vhost, &format!("{types:?} "), types);
        let http = vhost.http();
        let binding = vhost.path("bindings", &["e", &fixture.tap, "q", &fixture.new, "~"]);
        // In the middle of a move, and at its beginning.
        fill(&fixture.amqp, &fixture.old, 0..20_000, 20);
        let mut moving = fixture.start(By::Amqp);
        let Move::Amqp(progress) = &moving else { panic!("by AMQP") };
        until("the first", || (progress.progress().moved > Some(100)).then_some(()));
        http.delete(&binding).expect_status(204);
        let mut published = 20_000;
        let fault = failure_while(&fixture, By::Amqp, &mut moving, || {
            // All may have been moved before the road ended: more come, until one meets its end.
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
        // Each is at one place, although many were on their way when the road ended.
        assert!(numbers(&take(&fixture.amqp, &fixture.new, moved)).into_iter().eq(0..moved), "{types:?}");
        let mut left = numbers(&take(&fixture.amqp, &fixture.old, published - moved));
        if types.0 == "quorum" {
            // The second attempt was made with one message alone, because it was delivered before; and a quorum queue puts
            // what comes back behind the others that came back.
            let alone = left.iter().position(|it| *it == moved).unwrap();
            assert!(alone <= usize::from(Order::PREFETCH), "{types:?}: {alone}");
            left[..=alone].rotate_right(1);
        }
        assert!(left.into_iter().eq(moved..published), "{types:?}");
        // A shovel would lose them: it does not start.
        assert!(matches!(fixture.refusal(By::Shovel), Fault::Unroutable { .. }));
    }
    assert!(shovels(&vhost).is_empty());
}

#[test]
fn a_target_that_is_deleted_meanwhile() {
    let vhost = Node::shared().vhost("target");
    let fixture = Fixture::set(&vhost, "", TYPES[0]);
    let mut moving = fixture.start(By::Amqp);
    vhost.http().delete(&vhost.path("exchanges", &[&fixture.tap])).expect_status(204);
    fill(&fixture.amqp, &fixture.old, 0..5, 0);
    assert!(matches!(failure(&fixture, By::Amqp, &mut moving), Fault::TargetGone { .. }));
    drop(moving);
    assert!(numbers(&take(&fixture.amqp, &fixture.old, 5)).into_iter().eq(0..5));
}

#[test]
fn a_queue_that_is_deleted_meanwhile_is_an_event() {
    let vhost = Node::shared().vhost("deleted");
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::set(&vhost, &format!("{types:?} "), types);
        fill(&fixture.amqp, &fixture.old, 0..100, 0);
        let transport = amqp_transport(&vhost);
        let mut moving = block_on(transport.start(fixture.order())).unwrap();
        until("all of them", || (moving.progress().moved == Some(100)).then_some(()));
        assert_eq!(fixture.amqp.ready(&fixture.old), 0);
        vhost.http().delete(&vhost.path("queues", &[&fixture.old])).expect_status(204);
        let last = block_on(moving.over());
        assert!(matches!(last.state, State::Failed(Fault::SourceGone { .. })), "{last:?}");
        assert_eq!((last.moved, last.possible_duplicates), (Some(100), 0));
        take(&fixture.amqp, &fixture.new, 100);
    }
}

#[test]
fn a_target_that_rejects_is_tried_again_in_order() {
    let vhost = Node::shared().vhost("rejects");
    // In 3.8 no quorum queue rejects.
    let kinds: &[&str] = if Node::shared().at_least(3, 10) { &["classic", "quorum"] } else { &["classic"] };
    for kind in kinds.iter().copied() {
        let fixture = Fixture::set(&vhost, &format!("{kind} "), (kind, kind));
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
        // A quorum queue takes some more before it rejects, in later versions all of these.
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
fn a_stop_while_the_target_rejects_changes_no_order() {
    let vhost = Node::shared().vhost("rejecting");
    for kind in ["classic", "quorum"] {
        let fixture = Fixture::set(&vhost, &format!("{kind} "), (kind, kind));
        // Of a classic queue, which rejects what is one too many in each version.
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
fn messages_of_other_users() {
    let node = Node::shared();
    let vhost = node.vhost("users");
    let (author, plain) = (node.user("").may_everything(&vhost), node.user("").may_everything(&vhost));
    let impersonator = node.user("impersonator").may_everything(&vhost);
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::set(&vhost, &format!("{types:?} "), types);
        let of_author = AMQPProperties::default().with_user_id(author.name.as_str().into());
        for number in 0..30 {
            let properties = if number % 10 == 5 { of_author.clone() } else { AMQPProperties::default() };
            author.amqp(&vhost).publish_with("", &fixture.old, &format!("{number} "), properties);
        }
        let transport = block_on(AmqpTransport::connect(options_of(&vhost, &plain.name, &plain.password))).unwrap();
        let mut moving = block_on(transport.start(fixture.order())).unwrap();
        let last = block_on(moving.over());
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
fn a_first_message_of_another_user_is_no_reason_to_change_the_order() {
    let node = Node::shared();
    let vhost = node.vhost("first");
    let (author, impersonator) =
        (node.user("").may_everything(&vhost), node.user("impersonator").may_everything(&vhost));
    let of_author = AMQPProperties::default().with_user_id(author.name.as_str().into());
    for types in [TYPES[0], TYPES[2]] {
        let fixture = Fixture::set(&vhost, &format!("{types:?} "), types);
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
fn a_single_active_consumer_keeps_what_is_its() {
    let vhost = Node::shared().vhost("single");
    let fixture = Fixture::set(&vhost, "", TYPES[0]);
    let arguments = [("x-single-active-consumer", Argument::Boolean(true))];
    fixture.amqp.declare_queue("single", &arguments).unwrap();
    let fixture = Fixture { old: "single".to_owned(), ..fixture };
    let application = vhost.amqp();
    let held = application.hold("single", 0);
    fill(&fixture.amqp, "single", 0..5, 0);
    let transport = amqp_transport(&vhost);
    let moving = block_on(transport.start(fixture.order())).unwrap();
    until("both consumers", || {
        let consumers = vhost.http().get(&vhost.path("consumers", &[])).expect_status(200);
        (consumers.as_array().unwrap().len() == 2).then_some(())
    });
    assert_eq!((moving.progress().moved, moving.progress().state), (Some(0), State::Moving));
    drop(held);
    until("the rest", || (moving.progress().moved == Some(5)).then_some(()));
    assert_eq!(block_on(moving.stop()).state, State::Stopped);
}

#[test]
fn a_broker_with_an_alarm_takes_nothing() {
    // Less than any node needs.
    let node = Node::start(Options::default().line("vm_memory_high_watermark.absolute = 10MB"));
    let vhost = node.vhost("alarm");
    let fixture = Fixture::set(&vhost, "", TYPES[0]);
    let fault = fixture.refusal(By::Amqp);
    assert!(matches!(fault, Fault::Broker(BrokerError::Alarm { .. })), "{fault:?}");
}
