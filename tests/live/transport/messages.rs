//! Tests that moved messages are unchanged, complete and in order.

use std::path::PathBuf;
use std::time::Duration;

use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable};
use topo::broker::transport::{Move, State};

use super::fixture::{By, Fixture, TYPES, fill, numbers, shovels, take, total};
use crate::support::{Amqp, Message, Node, Outcome, Vhost, block_on, text, until, until_ok};

fn table(fields: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in fields {
        table.insert((*name).into(), value.clone());
    }
    table
}

/// Returns a header of each type.
fn headers() -> FieldTable {
    let list = FieldArray::from(vec![AMQPValue::LongInt(1), text("two")]);
    table(&[
        ("bool", AMQPValue::Boolean(true)),
        ("byte", AMQPValue::ShortShortInt(-8)),
        ("ubyte", AMQPValue::ShortShortUInt(200)),
        ("short", AMQPValue::ShortInt(-16)),
        ("ushort", AMQPValue::ShortUInt(60_000)),
        ("int", AMQPValue::LongInt(-32)),
        ("uint", AMQPValue::LongUInt(4_000_000_000)),
        ("long", AMQPValue::LongLongInt(-64)),
        ("float", AMQPValue::Float(1.5)),
        ("double", AMQPValue::Double(2.5)),
        ("decimal", AMQPValue::DecimalValue(DecimalValue { scale: 2, value: 314 })),
        ("text", text("é")),
        ("bytes", AMQPValue::ByteArray(vec![0, 255, 128].into())),
        ("not utf-8", AMQPValue::LongString(vec![0, 255, 128].into())),
        ("list", AMQPValue::FieldArray(list)),
        ("time", AMQPValue::Timestamp(1_700_000_000)),
        ("table", AMQPValue::FieldTable(table(&[("in", AMQPValue::Void)]))),
        ("void", AMQPValue::Void),
        (
            "x-death",
            AMQPValue::FieldArray(FieldArray::from(vec![AMQPValue::FieldTable(table(&[(
                "count",
                AMQPValue::LongLongInt(3),
            )]))])),
        ),
        ("CC", AMQPValue::FieldArray(FieldArray::from(vec![text("bystander")]))),
    ])
}

/// Returns messages of all kinds: routing key, properties, body.
fn all_kinds() -> Vec<(&'static str, AMQPProperties, Vec<u8>)> {
    let every = AMQPProperties::default()
        .with_content_type("text/plain".into())
        .with_content_encoding("gzip".into())
        .with_headers(headers())
        .with_delivery_mode(2)
        .with_priority(7)
        .with_correlation_id("c".into())
        .with_reply_to("somewhere".into())
        .with_expiration("86400000".into())
        .with_message_id("m".into())
        .with_timestamp(1_700_000_000)
        .with_type("t".into())
        .with_user_id("guest".into())
        .with_app_id("a".into())
        .with_cluster_id("k".into());
    vec![
        ("a.key", every, b"all".to_vec()),
        ("", AMQPProperties::default(), Vec::new()),
        ("transient", AMQPProperties::default().with_delivery_mode(1), b"t".to_vec()),
        ("ü/#*", AMQPProperties::default().with_headers(FieldTable::default()), b"no headers".to_vec()),
        ("large", AMQPProperties::default(), vec![b'x'; 300_000]),
    ]
}

/// Returns the parts of a message that a consumer sees, except its route. Missing headers are equal to an empty table.
fn seen(message: &Message) -> (String, AMQPProperties, Vec<u8>) {
    let headers = message.properties.headers().clone().unwrap_or_default();
    (message.routing_key.clone(), message.properties.clone().with_headers(headers), message.body.clone())
}

fn publish_all(amqp: &Amqp, exchange: &str) {
    for (key, properties, body) in all_kinds() {
        let body = String::from_utf8(body).unwrap();
        assert_eq!(amqp.publish_with(exchange, key, &body, properties), Outcome::Routed);
    }
}

fn kinds_are_kept(by: By, vhost: &Vhost<'_>, types: (&str, &str)) {
    let prefix = format!("{by:?} {types:?} ");
    let fixture = Fixture::create(vhost, &prefix, types);
    // The same messages are also published directly to a queue of the target's type.
    let unmoved = format!("{prefix}unmoved");
    fixture.amqp.declare_queue(&unmoved, &super::fixture::of_type(types.1)).unwrap();
    fixture.amqp.declare_exchange(&format!("{prefix}in"), "fanout", &[]).unwrap();
    for queue in [&fixture.old, &unmoved] {
        fixture.amqp.bind_queue(&format!("{prefix}in"), queue, "", &[]);
    }
    // `CC` routes to this queue: through the default exchange, or through the fanout exchange's own routing key.
    let bystander = "bystander";
    fixture.amqp.declare_queue(bystander, &[]).unwrap();
    publish_all(&fixture.amqp, &format!("{prefix}in"));
    let messages = all_kinds().len();
    let last = fixture.move_all(by, messages.try_into().unwrap());
    assert_eq!(last.state, State::Stopped);
    let moved: Vec<_> = take(&fixture.amqp, &fixture.new, messages).iter().map(seen).collect();
    let expected: Vec<_> = take(&fixture.amqp, &unmoved, messages).iter().map(seen).collect();
    for (moved, expected) in moved.iter().zip(&expected) {
        assert_eq!(moved, expected, "{by:?} {types:?}");
    }
    assert_eq!(fixture.amqp.ready(bystander), 0, "{by:?} {types:?}");
    // The total of a quorum queue is from its last tick.
    until("none to be left", || (total(vhost, &fixture.old) == 0).then_some(()));
}

#[test]
fn keys_properties_and_bodies_are_kept() {
    let vhost = Node::shared().vhost("kept");
    for types in TYPES {
        kinds_are_kept(By::Amqp, &vhost, types);
    }
}

#[test]
fn order_is_kept_over_5000_messages() {
    let vhost = Node::shared().vhost("order");
    for by in By::BOTH {
        for types in TYPES {
            let fixture = Fixture::create(&vhost, &format!("{by:?} {types:?} "), types);
            fill(&fixture.amqp, &fixture.old, 0..5000, 20);
            let moving = fixture.start(by);
            // Includes messages that are published during the transfer.
            fill(&fixture.amqp, &fixture.old, 5000..5500, 20);
            until("all of them", || (fixture.amqp.ready(&fixture.new) >= 5500).then_some(()));
            // A shovel that is stopped before its acknowledgements returns the messages, which are then in both queues.
            if by == By::Shovel {
                until("the acknowledgements", || (total(&vhost, &fixture.old) == 0).then_some(()));
            }
            let last = block_on(moving.stop()).unwrap();
            assert_eq!(last.moved.unwrap_or(5500), 5500);
            assert_eq!((last.possible_duplicates, last.in_flight, last.state), (0, 0, State::Stopped));
            let taken = numbers(&take(&fixture.amqp, &fixture.new, 5500));
            assert!(taken.into_iter().eq(0..5500), "{by:?} {types:?}");
            assert_eq!(fixture.amqp.ready(&fixture.old), 0);
        }
    }
    assert!(shovels(&vhost).is_empty());
}

#[test]
fn stop_leaves_each_message_in_one_queue() {
    let vhost = Node::shared().vhost("stop");
    for types in TYPES {
        // Repeated if all messages had moved.
        assert!((0..5).any(|game| stopped_in_the_middle(&vhost, types, game)), "{types:?}");
    }
}

/// Returns true if messages were left when the transfer stopped.
fn stopped_in_the_middle(vhost: &Vhost<'_>, types: (&str, &str), game: usize) -> bool {
    let fixture = Fixture::create(vhost, &format!("{types:?} {game} "), types);
    fill(&fixture.amqp, &fixture.old, 0..20_000, 20);
    let Move::Amqp(moving) = fixture.start(By::Amqp) else { panic!("by AMQP") };
    until("the first", || (moving.progress().moved > Some(100)).then_some(()));
    let last = block_on(moving.stop());
    let moved = last.moved.unwrap();
    assert_eq!((last.possible_duplicates, last.state), (0, State::Stopped));
    let moved = usize::try_from(moved).unwrap();
    in_order(&numbers(&take(&fixture.amqp, &fixture.new, moved)), 0, &format!("{types:?}, at the target"));
    rest_is_there(&fixture, types, moved);
    moved < 20_000
}

/// Expects the remaining messages in the source queue, without a delivery.
fn rest_is_there(fixture: &Fixture<'_>, types: (&str, &str), moved: usize) {
    until("all others, where they were", || {
        (usize::try_from(fixture.amqp.ready(&fixture.old)).unwrap() + moved == 20_000).then_some(())
    });
    let rest = take(&fixture.amqp, &fixture.old, 20_000 - moved);
    let back = rest.iter().filter(|message| message.redelivered).count();
    in_order(&numbers(&rest), moved, &format!("{types:?}, at the source, {back} of them returned"));
    assert_eq!(back, 0, "{types:?}");
}

#[test]
fn stop_with_a_slow_queue_requeues_no_message() {
    let node = Node::shared();
    let vhost = node.vhost("slow");
    for types in TYPES {
        let fixture = Fixture::create(&vhost, &format!("{} {} ", types.0, types.1), types);
        fill(&fixture.amqp, &fixture.old, 0..20_000, 20);
        let files = ["looks", "slow", "over"].map(|what| node.folder().join(format!("{}{what}", fixture.old)));
        let slow_down = slow_down(&fixture, &files);
        let [looks, is_slow, is_over] = &files;
        let last = std::thread::scope(|scope| {
            scope.spawn(|| node.ctl(["eval", &slow_down]));
            until("the first poll", || looks.exists().then_some(()));
            let Move::Amqp(moving) = fixture.start(By::Amqp) else { panic!("by AMQP") };
            until("a slow queue", || is_slow.exists().then_some(()));
            // The queue has not processed the acknowledgements of its deliveries yet, and would deliver them again.
            until_ok(&format!("all acknowledgements of {types:?}"), || {
                let progress = moving.progress();
                assert!(!progress.state.is_over(), "{types:?}: {progress:?}");
                let is_acknowledged = progress.moved >= Some(1000) && progress.in_flight == 0;
                is_acknowledged.then_some(()).ok_or_else(|| format!("{progress:?}"))
            });
            block_on(async {
                let goes_on = async {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    std::fs::write(is_over, "").unwrap();
                };
                futures_util::future::join(moving.stop(), goes_on).await.0
            })
        });
        assert_eq!((last.possible_duplicates, last.state), (0, State::Stopped), "{types:?}");
        let moved = usize::try_from(last.moved.unwrap()).unwrap();
        // The stop waited for the available messages.
        assert!((2000..20_000).contains(&moved), "{types:?}: {moved}");
        in_order(&numbers(&take(&fixture.amqp, &fixture.new, moved)), 0, &format!("{types:?}, at the target"));
        rest_is_there(&fixture, types, moved);
    }
}

/// Returns Erlang code that suspends the old queue after it has delivered more than 1100 of 20,000 messages.
///
/// The consumer has a prefetch count of 1000, so the queue has then processed acknowledgements. This is necessary
/// because 3.8 queries a quorum queue after the first 1000 deliveries, before it replies to `basic.consume`. A quorum
/// queue may not have applied all publishes when they are confirmed, so the code first waits until all messages are
/// ready, and writes the first file. It writes the second file after the suspension. It resumes the queue when the
/// third file exists, or after a minute. It fails if the queue delivers no messages, or all of them between two polls.
fn slow_down(fixture: &Fixture<'_>, [looks, is_slow, is_over]: &[PathBuf; 3]) -> String {
    format!(
        r#"{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"{}">>, queue, <<"{}">>)),
        Wait = fun Wait(N) when N > 0 ->
            {{ok, Ready, _}} = rabbit_amqqueue:stat(Q),
            if Ready > 18900; Ready =:= 0 -> timer:sleep(1), Wait(N - 1); true -> ok end
        end,
        Fill = fun Fill(N) when N > 0 ->
            case rabbit_amqqueue:stat(Q) of {{ok, 20000, _}} -> ok; _ -> timer:sleep(10), Fill(N - 1) end
        end,
        Over = fun Over(0) -> ok;
            Over(N) -> case filelib:is_file("{}") of true -> ok; false -> timer:sleep(50), Over(N - 1) end
        end,
        Who = case amqqueue:get_pid(Q) of {{Name, _}} -> Name; Pid -> Pid end,
        Fill(6000), ok = file:write_file("{}", <<>>), Wait(30000),
        sys:suspend(Who), ok = file:write_file("{}", <<>>), Over(1200), sys:resume(Who)."#,
        fixture.vhost.name(),
        fixture.old,
        is_over.display(),
        looks.display(),
        is_slow.display(),
    )
}

/// Expects consecutive numbers from the first one on, and reports gaps.
fn in_order(numbers: &[usize], first: usize, what: &str) {
    if let Some(at) = numbers.iter().zip(first..).position(|(number, expected)| *number != expected) {
        let near = &numbers[at.saturating_sub(3)..numbers.len().min(at + 20)];
        panic!("{what}: after {at} from {first} on: {near:?}");
    }
}

#[test]
fn unusual_names_are_moved() {
    for name in ["a/b", "a b", "%", "%2F", "ü", "日本", "a@b:c?d#e&f=g;h+i", "\"'<>\\"] {
        let vhost = Vhost::create(Node::shared(), format!("transport {name}"));
        for by in By::BOTH {
            let fixture = Fixture::create(&vhost, &format!("{by:?} {name} "), TYPES[0]);
            fill(&fixture.amqp, &fixture.old, 0..10, 0);
            assert_eq!(fixture.move_all(by, 10).state, State::Stopped);
            assert!(numbers(&take(&fixture.amqp, &fixture.new, 10)).into_iter().eq(0..10), "{by:?} {name}");
        }
        assert!(shovels(&vhost).is_empty());
    }
}
