//! Tests applications that publish through the default exchange to a queue that is recreated.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::protocol::basic::AMQPProperties;
use topo::model::known_clients::KNOWN_CLIENTS;

use super::{ALLOW, EXCHANGE, QUEUE, Worker, has_listed_client, vhost_of};
use crate::support::random::is_long;
use crate::support::{Node, SetOnDrop, Topo, Vhost, block_on, until};

/// The maximum lengths of the old and the new queue: more messages than the test publishes, so that neither queue drops any.
/// After a rollback, the old queue contains the messages that arrived while the worker did not run.
const OLD_LIMIT: &str = "900000";
const LIMIT: usize = 1_000_000;

/// Applications that publish through the default exchange are a hazard with their rate. The broker reports the exchange only
/// with `management.rates_mode = detailed`.
#[test]
fn publishes_through_the_default_exchange_are_a_hazard() {
    let vhost = Node::shared().vhost("default-exchange");
    let amqp = vhost.amqp();
    amqp.declare_queue(QUEUE, &[]).unwrap();
    amqp.declare_queue("quiet", &[]).unwrap();
    let spec = "queues:\n  jobs: {type: classic, maxLength: 5000, onConflict: migrate, deadLetter: none}\n  \
                quiet: {type: classic, maxLength: 5000, onConflict: migrate, deadLetter: none}\n";
    let topo = Topo::new(&vhost).spec(spec);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = SetOnDrop([&over]);
        scope.spawn(|| {
            // The broker discards the counts of a channel that was closed before it collected them.
            let amqp = vhost.amqp();
            let channel = amqp.channel();
            let options = BasicPublishOptions::default();
            while !over.load(Ordering::Relaxed) {
                block_on(channel.basic_publish("".into(), QUEUE.into(), options, b"1", AMQPProperties::default()))
                    .unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let hazard = until("the rate", || {
            let plan = topo.run(["plan", "--format", "json"]).plan();
            let hazards = plan["vhosts"][0]["hazards"].as_array().unwrap().clone();
            let found: Vec<_> = hazards.into_iter().filter(|hazard| hazard["kind"] == "publish-loss").collect();
            found.iter().any(|hazard| hazard["mustBeAllowed"] == true).then_some(found)
        });
        assert_eq!(hazard.len(), 1, "{hazard:?}");
        assert_eq!(hazard[0]["address"], format!("queues/{}/jobs", vhost.name()));
        let text = hazard[0]["text"].as_str().unwrap();
        assert!(text.contains(" per second in the last minute)"), "{text}");
        let refused = topo.run(["apply", "-y", "--allow=routing-gap,consumer-disruption"]);
        refused.expect_code(3).expect_text("publish-loss");
        // Other exchanges also route to the queue.
        amqp.declare_exchange(EXCHANGE, "direct", &[]).unwrap();
        amqp.bind_queue(EXCHANGE, QUEUE, "other", &[]);
        until("the maximum", || topo.run(["plan"]).says("(at most").then_some(()));
    });
    topo.run(["apply", "-y", ALLOW]).expect_code(0);
}

/// Publishes 250 messages per second, each with a number, until `over` is set: through the exchange if `advised` is set,
/// otherwise through the default exchange. Returns the number of messages, all of which the broker confirmed.
fn publish(vhost: &Vhost<'_>, advised: &AtomicBool, over: &AtomicBool) -> usize {
    let amqp = vhost.amqp();
    let channel = amqp.channel();
    block_on(channel.confirm_select(ConfirmSelectOptions::default())).unwrap();
    let mut confirms = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let exchange = if advised.load(Ordering::Relaxed) { EXCHANGE } else { "" };
        let body = confirms.len().to_string();
        let (options, properties) = (BasicPublishOptions::default(), AMQPProperties::default());
        let sent = channel.basic_publish(exchange.into(), QUEUE.into(), options, body.as_bytes(), properties);
        confirms.push(block_on(sent).unwrap());
        std::thread::sleep(Duration::from_millis(4));
    }
    let published = confirms.len();
    for confirm in confirms {
        assert!(block_on(confirm).unwrap().is_ack());
    }
    published
}

/// Returns the numbers of the messages that a Celery worker logged: it receives, logs and deletes unknown messages.
fn logged(log: &str) -> BTreeSet<usize> {
    let bodies = log.lines().filter_map(|line| line.split_once("The full contents of the message body was: body: '"));
    bodies.filter_map(|(_, rest)| rest.split('\'').next()?.parse().ok()).collect()
}

/// The long form also counts the messages that are lost if the advice is ignored.
#[test]
fn advice_for_publishers_of_celery_loses_no_message() {
    let celery = KNOWN_CLIENTS.iter().find(|client| client.name == "Celery").expect("a row");
    for is_advised in if is_long() { &[true, false][..] } else { &[true] } {
        let vhost = vhost_of(celery, None);
        let mut worker = Worker::start_with(celery, &vhost, true, &[("MAX_LENGTH", OLD_LIMIT)]);
        until("the queue", || vhost.names("queues").contains(&QUEUE.to_owned()).then_some(()));
        until("the client of the consumer", || has_listed_client(&vhost).then_some(()));
        let topo = Topo::new(&vhost).spec(&format!(
            "exchanges: {{{EXCHANGE}: {{type: direct}}}}\n\
             queues:\n  {QUEUE}: {{type: classic, maxLength: {LIMIT}, onConflict: migrate, deadLetter: none, \
             bindings: [{{exchange: {EXCHANGE}, routingKey: {QUEUE}}}]}}\n"
        ));
        let (advised, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let (published, applied) = std::thread::scope(|scope| {
            let stop = SetOnDrop([&over]);
            let publishing = scope.spawn(|| publish(&vhost, &advised, &over));
            let plan = until("the rate", || {
                let plan = topo.run(["plan", "--detailed-exitcode"]);
                plan.says("publish to a different exchange, or pause the publishers").then_some(plan)
            });
            plan.expect_code(3).expect_text("publish-loss");
            topo.run(["apply", "-y", "--allow=routing-gap,consumer-disruption"]).expect_code(3);
            advised.store(*is_advised, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(100));
            let applied = topo.run(["apply", "-y", ALLOW, "--format=json"]);
            std::thread::sleep(Duration::from_secs(1));
            drop(stop);
            (publishing.join().unwrap(), applied)
        });
        let report = applied.json();
        let migrated = &report["vhosts"][0]["migrated"][0];
        let is_rolled_back = migrated["isRolledBack"] == true;
        assert_eq!(applied.code == Some(0), !is_rolled_back, "{applied}");
        assert!(is_rolled_back || migrated["redeclared"].as_u64() < Some(2), "{migrated}");
        // The worker logs a message before it acknowledges the message. The broker requeues unacknowledged messages.
        worker.kill();
        let mut found = logged(&worker.printed());
        until("the messages of the worker", || {
            let queue = vhost.queue(QUEUE);
            (queue["messages_unacknowledged"] == 0 && queue["consumers"] == 0).then_some(())
        });
        let left = vhost.amqp().get_all(QUEUE);
        found.extend(left.iter().filter_map(|message| String::from_utf8_lossy(&message.body).parse::<usize>().ok()));
        let lost = (0..published).filter(|number| !found.contains(number)).count();
        println!(
            "{} Celery: {published} published, {lost} lost, advised: {is_advised}, rolled back: {is_rolled_back}, \
             redeclared: {}, not existing for {} ms",
            vhost.node().version(),
            migrated["redeclared"],
            migrated["unroutedMilliseconds"]
        );
        assert!(lost == 0 || !is_advised, "{lost} of {published} lost\n{applied}");
    }
}
