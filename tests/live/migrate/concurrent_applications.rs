//! Tests applications that declare, bind or consume during a migration, and conditions that prevent a transport.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lapin::options::BasicConsumeOptions;
use lapin::protocol::basic::AMQPProperties;
use lapin::types::FieldTable;
use serde_json::json;

use super::super::ownership::objects;
use super::fixture::{
    Conversion, DEAD_LETTERS, Fixture, Q, QUORUM, TO_QUORUM, TRANSPORTS, TTL, declare_old, duplicates,
    expect_each_once, supports_quorum_queues,
};
use super::traffic::{Counts, EXCHANGE, Publisher, consume_until, disorder, emptied};
use crate::support::random::is_long;
use crate::support::{
    Argument, Fault, Node, Options, Outcome, Proxy, SetOnDrop, Topo, block_on, deletes, posts, puts, run_concurrently,
    text,
};

const OFTEN: Duration = Duration::from_millis(5);
/// No process listens on port 1, and no other test uses it.
const CLOSED: &str = "--amqp-url=amqp://127.0.0.1:1";

/// Repeats an operation while the queue is migrated under load.
fn with_concurrent(
    fixture: &Fixture,
    transport: &str,
    publisher: &mut Publisher,
    mut rival: impl FnMut() + Send,
) -> crate::support::Output {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                rival();
                std::thread::sleep(OFTEN);
            }
        });
        let publishing = scope.spawn(|| publisher.keep_on_to(2_000, 100, over));
        let stop = SetOnDrop([over]);
        let output = fixture.migrate(transport, &["--drain-timeout=20s"]);
        drop(stop);
        publishing.join().unwrap();
        output
    })
}

/// The outdated application sometimes declares the queue before topo does.
#[test]
fn redeclared_old_queue_does_not_block_the_migration() {
    let conversions = if is_long() && supports_quorum_queues() { vec![TTL, TO_QUORUM, QUORUM] } else { vec![TTL] };
    let cases = conversions.into_iter().flat_map(|conversion| TRANSPORTS.map(|transport| (conversion, transport)));
    run_concurrently(3, cases, |(conversion, transport)| {
        let fixture = Fixture::new("declares", conversion);
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(200);
        let (mut amqp, mut tries) = (fixture.vhost.amqp(), 0);
        let won = AtomicUsize::new(0);
        let output = with_concurrent(&fixture, transport, &mut publisher, || {
            // In lapin 4, each refusal permanently uses up one of the connection's 2,047 channels.
            tries += 1;
            if tries % 500 == 0 {
                amqp = fixture.vhost.amqp();
            }
            let mut arguments = vec![("x-queue-type", text(conversion.from))];
            arguments.extend(conversion.old.map(|(name, value)| (name, Argument::LongLongInt(value))));
            won.fetch_add(usize::from(amqp.declare_queue(Q, &arguments).is_ok()), Ordering::Relaxed);
        });
        let mut context = format!("{} by {transport}\n{output}", conversion.name);
        // The application may declare the queue first in each of topo's two attempts. In this case, topo rolls back, and
        // the user retries after updating the application.
        if output.code != Some(0) {
            assert!(matches!(output.code, Some(1 | 4)), "{context}");
            assert!(output.says("redeclared the old queue twice"), "{context}");
            assert!(!fixture.is_new(), "{context}");
            let again = fixture.migrate(transport, &[]);
            context.push_str(&again.to_string());
            assert_eq!(again.code, Some(0), "{context}");
        }
        assert!(fixture.is_new(), "{context}");
        publisher.expect_all_taken();
        let left = emptied(&fixture.vhost, Q);
        println!(
            "declares {} by {transport}: code {:?}, {} declared, {:?}",
            conversion.name,
            output.code,
            won.into_inner(),
            disorder(&left)
        );
        expect_each_once(left, publisher.published(), &context);
        fixture.expect_migrated(&context);
    });
}

/// Messages published over the application's new binding may be delivered twice; the plan reports this.
///
/// The broker may also reject some of them. A channel looks up the queues of a message, and then monitors them. If the
/// old queue is deleted in between, the broker sends a `basic.nack`, although the holding queue has the message
/// (`rabbit_channel:handle_publishing_queue_down` in 3.8, `rabbit_classic_queue:handle_event` in later versions: the
/// exit reason is `noproc`, not `normal`).
#[test]
fn rebound_old_queue_does_not_block_the_migration() {
    run_concurrently(2, TRANSPORTS, |transport| {
        let fixture = Fixture::new("binds", TTL);
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(200);
        let amqp = fixture.vhost.amqp();
        let output = with_concurrent(&fixture, transport, &mut publisher, || bind(&amqp));
        let context = format!("by {transport}\n{output}");
        publisher.expect_none_returned();
        let duplicated = duplicates(emptied(&fixture.vhost, Q), publisher.published(), &context);
        println!(
            "binds by {transport}: code {:?}, {duplicated} of {} duplicated, {} rejected",
            output.code,
            publisher.published(),
            publisher.rejected()
        );
        match output.code {
            Some(0) => fixture.expect_migrated(&context),
            // The deletion guard or a timeout stopped the migration.
            Some(1 | 3) => fixture.expect_as_before(&context),
            _ => panic!("{context}"),
        }
    });
}

/// Binds the queue, which may be missing at this time.
fn bind(amqp: &crate::support::Amqp) {
    let bound = block_on(async {
        let channel = amqp.new_channel().await?;
        let options = lapin::options::QueueBindOptions::default();
        channel.queue_bind(Q.into(), EXCHANGE.into(), "work.#".into(), options, FieldTable::default()).await?;
        channel.close(200, "done".into()).await
    });
    drop(bound);
}

/// A single active consumer receives every message, so it drains the queue itself.
#[test]
fn single_active_consumer_drains_or_the_migration_is_rolled_back() {
    run_concurrently(2, TRANSPORTS, |transport| {
        let with = |hint| {
            let desired = "type: classic, messageTtl: 2h, singleActiveConsumer: true";
            let more = [("x-single-active-consumer", Argument::Boolean(true))];
            let fixture = Fixture::with(hint, Conversion { new: desired, ..TTL }, &more);
            let mut publisher = Publisher::new(&fixture.vhost);
            publisher.fill(300);
            (fixture, publisher)
        };
        let (fixture, mut publisher) = with("single");
        let (over, counts) = (AtomicBool::new(false), Counts::default());
        let (output, consumed) = std::thread::scope(|scope| {
            let consumer = scope.spawn(|| consume_until(&fixture.vhost, Q, Duration::from_millis(1), &counts, &over));
            let _stop = SetOnDrop([&over]);
            crate::support::until("a consumer", || (counts.seen.load(Ordering::Relaxed) > 0).then_some(()));
            let output = with_concurrent(&fixture, transport, &mut publisher, || {});
            over.store(true, Ordering::Relaxed);
            (output, consumer.join().unwrap())
        });
        let context = format!("by {transport}\n{output}");
        assert_eq!(output.code, Some(0), "{context}");
        let mut numbers = consumed.seen;
        numbers.extend(emptied(&fixture.vhost, Q));
        println!("single by {transport}: {:?}", disorder(&numbers));
        expect_each_once(numbers, publisher.published(), &context);
        fixture.expect_migrated(&context);

        let (fixture, publisher) = with("single-idle");
        let held = fixture.amqp.hold(Q, 1);
        let output = fixture.migrate(transport, &["--drain-timeout=3s"]);
        let context = format!("by {transport}\n{output}");
        assert_eq!(output.code, Some(1), "{context}");
        fixture.expect_as_before(&context);
        drop(held);
        expect_each_once(emptied(&fixture.vhost, Q), publisher.published(), &context);
    });
}

/// The broker refuses a second consumer in addition to an exclusive one.
#[test]
fn exclusive_consumer_rolls_the_migration_back() {
    run_concurrently(2, TRANSPORTS, |transport| {
        let fixture = Fixture::new("exclusive", TTL);
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(20);
        let channel = block_on(fixture.amqp.new_channel()).unwrap();
        let consumer = block_on(async {
            channel.basic_qos(1, lapin::options::BasicQosOptions::default()).await?;
            let options = BasicConsumeOptions { exclusive: true, ..Default::default() };
            channel.basic_consume(Q.into(), "".into(), options, FieldTable::default()).await
        });
        let consumer = consumer.unwrap();
        let output = fixture.migrate(transport, &["--drain-timeout=3s"]);
        let context = format!("by {transport}\n{output}");
        assert_eq!(output.code, Some(1), "{context}");
        assert!(output.says("exclusive") || output.says("for itself"), "{context}");
        fixture.expect_as_before(&context);
        block_on(channel.close(200, "done".into())).unwrap();
        drop(consumer);
        expect_each_once(emptied(&fixture.vhost, Q), 20, &context);
    });
}

#[test]
fn message_of_another_user_stops_the_migration() {
    let fixture = Fixture::new("user-id", TTL);
    let node = fixture.vhost.node();
    let other = node.user("management").may_everything(&fixture.vhost);
    let mine = AMQPProperties::default().with_user_id("guest".into());
    let theirs = AMQPProperties::default().with_user_id(other.name.as_str().into());
    assert_eq!(fixture.amqp.publish_with(EXCHANGE, "work.k", "0", mine), Outcome::Routed);
    let output = {
        let amqp = other.amqp(&fixture.vhost);
        assert_eq!(amqp.publish_with(EXCHANGE, "work.k", "1", theirs), Outcome::Routed);
        fixture.migrate("amqp", &["--drain-timeout=20s"]).expect_code(1)
    };
    let context = output.expect_text(&format!("a message with the user_id `{}`", other.name));
    fixture.expect_as_before(&context);
    let impersonator = node.user("administrator,impersonator").may_everything(&fixture.vhost);
    let fixture = fixture.by_user(&impersonator);
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    let amqp = &fixture.amqp;
    // The first rollback changed the order.
    let mut of =
        [amqp.get(Q), amqp.get(Q)].map(|it| it.unwrap().properties.user_id().as_ref().map(ToString::to_string));
    of.sort();
    assert_eq!(of.to_vec(), [Some("guest".to_owned()), Some(other.name.clone())]);
}

#[test]
fn missing_transport_is_refused_by_the_plan() {
    let node = Node::start(Options::default().without_plugin("rabbitmq_shovel"));
    let vhost = node.vhost("no-transport");
    declare_old(&vhost.amqp(), TTL, &[]);
    let topo = Topo::new(&vhost).spec(&TTL.spec()).timeout(Duration::from_secs(300));
    let fixture = Fixture::of(vhost, topo, TTL);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(50);
    let refused = |transport: &str, words: &[&str]| {
        let output = fixture.migrate(transport, &[CLOSED]).expect_code(3);
        for word in words {
            assert!(output.says(word), "{word}: {output}");
        }
        fixture.expect_as_before(&output);
    };
    refused("amqp", &["topo cannot move its messages: AMQP:"]);
    refused("shovel", &["topo cannot move its messages: shovel: the broker does not support shovels"]);
    refused("auto", &["AMQP:", "shovel:", "give topo access to the AMQP port (--amqp-url)"]);
    // A single transport is sufficient.
    let output = fixture.migrate("auto", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    expect_each_once(emptied(&fixture.vhost, Q), 50, &output);
}

#[test]
fn shovel_is_used_if_the_amqp_port_is_closed() {
    let fixture = Fixture::new("no-port", TTL);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(50);
    let output = fixture.migrate("auto", &[CLOSED]).expect_code(0);
    fixture.expect_migrated(&output);
    expect_each_once(emptied(&fixture.vhost, Q), 50, &output);
}

#[test]
fn missing_permissions_leave_no_object_behind() {
    let node = Node::shared();
    let rights = [
        ("no other name", ("^(q|topo\\.lock)$", ".*", ".*")),
        ("no publish to it", (".*", "^(q|in|amq\\..*|topo\\.lock)$", ".*")),
        ("no read of the holding queue", (".*", ".*", "^(q|in|amq\\..*|topo\\.lock)$")),
    ];
    run_concurrently(3, rights, |(what, (configure, write, read))| {
        let fixture = Fixture::new("rights", TTL);
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(20);
        let user = node.user("management").may(&fixture.vhost, configure, write, read);
        let (fixture, proxy) = fixture.by_user(&user).through();
        let output = fixture.migrate("amqp", &[]);
        assert_eq!(proxy.count(&posts().path("/e/in/")), 0, "nothing was bound to a tap: {what}\n{output}");
        let context = format!("{what}\n{output}");
        assert!(matches!(output.code, Some(1 | 3 | 4)), "{context}");
        assert!(output.says("has no permission for"), "{context}");
        let fixture = fixture.by_guest();
        fixture.expect_as_before(&context);
        expect_each_once(emptied(&fixture.vhost, Q), 20, &context);
    });
}

/// The user has no write permission for the new dead-letter exchange. topo detects this before it moves any message.
#[test]
fn refused_new_queue_is_detected_before_the_migration() {
    let fixture = Fixture::new("new-rights", DEAD_LETTERS);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(20);
    let write = "^(q|q\\.topo\\..*|dead|in|amq\\..*|topo\\.lock)$";
    let user = fixture.vhost.node().user("management").may(&fixture.vhost, ".*", write, ".*");
    let (fixture, proxy) = fixture.by_user(&user).through();
    let output = fixture.migrate("amqp", &[]);
    assert!(matches!(output.code, Some(1 | 4)), "{output}");
    assert!(output.says("dead.dlx") && output.says("q.topo.probe"), "{output}");
    assert_eq!(proxy.count(&posts().path("/e/in/")), 0, "nothing was bound to a tap: {output}");
    let left: Vec<String> = objects(&fixture.vhost).into_iter().filter(|line| line.contains(".topo.")).collect();
    assert!(left.is_empty(), "{left:?}\n{output}");
    expect_each_once(emptied(&fixture.vhost, Q), 20, &output);
}

/// The user loses the write permission for the new dead-letter exchange before the swap, so the broker deletes the old queue and
/// refuses the new one. topo declares the old queue again, and rolls back. The report does not count this declaration as one of
/// an application.
#[test]
fn refused_new_queue_is_rolled_back() {
    run_concurrently(2, TRANSPORTS, |transport| {
        let fixture = Fixture::new("lost-right", DEAD_LETTERS);
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(20);
        let user = fixture.vhost.node().user("administrator").may_everything(&fixture.vhost);
        let (fixture, proxy) = fixture.by_user(&user).through();
        let (http, permission) = (fixture.vhost.http(), fixture.vhost.path("permissions", &[&user.name]));
        let body = json!({"configure": ".*", "write": "^(?!dead)", "read": ".*"});
        let revoke = Fault::Meanwhile(Box::new(move || assert!(http.put(&permission, &body).is_success())));
        proxy.add(deletes().path("/e/q.topo.tap/q/"), revoke);
        // The dead-letter queue was created before.
        let output = fixture.migrate(transport, &[]).expect_code(4);
        let output = output.expect_text("has no permission for");
        let output = output.expect_text("Rolled back: the migration of queue q:");
        let output = output.expect_no_text("redeclared the old queue");
        assert!(!fixture.is_new(), "{output}");
        expect_each_once(emptied(&fixture.vhost, Q), 20, &output);
        fixture.expect_bindings_as_before(&output);
    });
}

/// HTTP cannot represent some argument types, so a copied binding would differ. topo binds over AMQP, or refuses the
/// plan. JSON hides some differences: integers of different widths, `undefined` and void.
#[test]
fn binding_that_http_cannot_copy_is_kept() {
    for transport in TRANSPORTS {
        let fixture = Fixture::new("types", TTL);
        let odd = [
            ("at", Argument::Timestamp(1_700_000_000)),
            ("n", Argument::LongInt(1)),
            ("n", Argument::ShortInt(1)),
            ("v", Argument::Void),
            ("v", text("undefined")),
            ("f", Argument::Float(0.5)),
            ("f", Argument::Double(0.5)),
        ];
        for (name, value) in odd {
            fixture.amqp.bind_queue("amq.headers", Q, "", &[(name, value), ("x-match", text("all"))]);
        }
        let fixture = fixture.remembered();
        let keys = || {
            let mut keys: Vec<String> =
                fixture.vhost.list("bindings").iter().map(|it| it["properties_key"].to_string()).collect();
            keys.sort();
            keys
        };
        let before = keys();
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(5);
        if transport == "amqp" {
            let output = fixture.migrate(transport, &[]);
            assert_eq!(output.code, Some(0), "{output}");
            fixture.expect_migrated(&output);
        } else {
            let proxy = Proxy::to(fixture.vhost.node());
            let topo = Topo::new(&fixture.vhost).spec(&TTL.spec()).through(&proxy);
            let output = topo.run(Fixture::apply(transport).iter().map(String::as_str)).expect_code(3);
            let output = output
                .expect_text("its arguments have AMQP types that the management API cannot represent")
                .expect_text("--transport amqp");
            assert_eq!(proxy.count(&puts()) + proxy.count(&posts()), 0, "{output}");
            fixture.expect_as_before(&output);
        }
        assert_eq!(keys(), before, "by {transport}");
        expect_each_once(emptied(&fixture.vhost, Q), 5, &transport);
    }
}
