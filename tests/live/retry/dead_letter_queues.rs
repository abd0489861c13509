//! Tests dead-letter queues in every notation, for every strategy that supports the notation.

use lapin::protocol::basic::AMQPProperties;
use lapin::types::AMQPValue;

use super::case::{Case, Strategy, prove_with};
use super::dead_lettered_message::{deaths, header};
use super::fixture::{Fixture, QUIET, TIMEOUT, deaths_in, fail_times, fail_until_dead, since, until_ready};
use super::worker::{Verb, publish_plain, ready, take_next};
use crate::support::{Argument, NONE, block_on, text};

fn waits(strategy: Strategy) -> &'static [u64] {
    match strategy {
        Strategy::Ladder | Strategy::Republish | Strategy::Delayed => &[200, 400],
        Strategy::Redeliver => &[0, 0],
        Strategy::Final => &[],
    }
}

/// Dead-lettering is set by a policy or by arguments, and uses each exchange type, including an internal exchange.
#[test]
fn dead_lettered_messages_arrive_with_any_wiring() {
    let mut cases = Vec::new();
    for kind in ["classic", "quorum"] {
        for strategy in [Strategy::of(kind), vec![Strategy::Final]].concat() {
            for (what, wiring, dead_keys) in [
                ("policy", "policy", ""),
                ("topic", "arguments", ", exchange: {type: topic}"),
                ("direct", "arguments", ", exchange: {type: direct}"),
                ("key", "policy", ", exchange: {type: direct, routingKey: dead}"),
                ("internal", "policy", ", exchange: {internal: true}"),
                ("named", "arguments", ", exchange: {type: fanout, name: NAME}"),
            ] {
                if strategy == Strategy::Ladder && matches!(what, "direct" | "key") {
                    // topo refuses this: a ladder keeps the keys of dead-lettered messages.
                    continue;
                }
                let queue = format!("{kind}.{strategy:?}.{what}").to_lowercase();
                let case = Case::new(&queue, kind, strategy, waits(strategy));
                let dead_letter = Some(format!("{{queue: {:?}, wiring: {wiring}}}", case.dead()));
                let dead_keys = dead_keys.replace("NAME", &format!("\"all of {queue}\""));
                cases.push(Case { dead_letter, dead_keys, published: AMQPProperties::default(), ..case });
            }
        }
    }
    // This policy governs all queues without a dead-lettering policy from topo.
    let policy = "policies: {all: {pattern: '.*', applyTo: queues, priority: 5, definition: {expires: 1h}}}\n";
    prove_with("wired", &cases, policy);
}

/// Many queues with different strategies share a dead-letter queue. The headers identify the original queue.
#[test]
fn many_queues_can_share_a_dead_letter_queue() {
    let fixture = Fixture::new(
        "many",
        "defaults: {deadLetter: {queue: all.dead-letters, wiring: policy}}\n\
         queues:\n  ladder: {type: classic, retry: {delays: [200ms]}}\n  final: {type: classic, maxRetries: 0}\n  \
           redeliver: {type: quorum, maxRetries: 1}\n  \
           republish: {type: quorum, retry: {strategy: republish, delays: [200ms]}}\n\
         deadLetterQueues: {all.dead-letters: {type: quorum, exchange: {name: all.dead, internal: true}}}\n",
    );
    assert_eq!(fixture.vhost.exchange("all.dead")["internal"], true);
    block_on(async {
        let channel = fixture.channel().await;
        for (queue, verb, attempts, death) in [
            ("ladder", Verb::NackAway, 2, "rejected 2"),
            ("final", Verb::NackAway, 1, "rejected 1"),
            ("redeliver", Verb::RejectBack, 2, "delivery_limit 1"),
            ("republish", Verb::Republish { retries: 1, tiers: vec![200], jitter: 0 }, 2, "rejected 1"),
        ] {
            publish_plain(&channel, "", queue, queue).await;
            let (seen, dead_messages) = fail_until_dead(&channel, queue, &verb, "all.dead-letters").await;
            assert_eq!((seen.len(), dead_messages.len()), (attempts, 1), "{queue}");
            assert_eq!(deaths_in(&dead_messages[0], queue), [death]);
            assert_eq!(dead_messages[0].body, queue.as_bytes());
        }
    });
    fixture.is_left_empty();
}

/// The exchange is unmanaged: external in the spec, or undeclared; with a routing key if the strategy permits one.
#[test]
fn dead_letters_can_use_an_unmanaged_exchange() {
    let vhost = crate::support::Node::shared().vhost("external");
    let amqp = vhost.amqp();
    for (exchange, kind) in [("corp.dlx", "fanout"), ("corp.keys", "direct"), ("corp.topics", "topic")] {
        amqp.declare_exchange(exchange, kind, NONE).unwrap();
    }
    for (queue, exchange, key) in
        [("corp.dead", "corp.dlx", ""), ("billing.dead", "corp.keys", "billing"), ("topics.dead", "corp.topics", "#")]
    {
        amqp.declare_queue(queue, &[("x-queue-type", text("classic"))]).unwrap();
        amqp.bind_queue(exchange, queue, key, NONE);
    }
    let spec = "exchanges: {corp.keys: {external: true}, corp.topics: {external: true}}\n\
         queues:\n  ladder: {type: quorum, deadLetter: corp.dead, retry: {delays: [200ms]}}\n  \
           topics: {type: classic, deadLetter: {exchange: corp.topics}, retry: {delays: [200ms]}}\n  \
           keyed: {type: quorum, deadLetter: {exchange: corp.keys, routingKey: billing}, maxRetries: 1}\n  \
           tiers: {type: classic, deadLetter: {exchange: corp.keys, routingKey: billing}, retry: {strategy: republish, delays: [200ms]}}\n\
         deadLetterQueues: {corp.dead: {external: true, exchange: {name: corp.dlx}}}\n";
    super::case::applied(&vhost, spec);
    block_on(async {
        let channel = super::worker::channel(&amqp).await;
        let republish = Verb::Republish { retries: 1, tiers: vec![200], jitter: 0 };
        for (queue, verb, dead) in [
            ("ladder", Verb::NackAway, "corp.dead"),
            ("topics", Verb::NackAway, "topics.dead"),
            ("keyed", Verb::RejectBack, "billing.dead"),
            ("tiers", republish, "billing.dead"),
        ] {
            publish_plain(&channel, "", queue, "poison").await;
            let (seen, dead_messages) = fail_until_dead(&channel, queue, &verb, dead).await;
            assert_eq!((seen.len(), dead_messages.len()), (2, 1), "{queue}");
            assert!(deaths(&dead_messages[0]).iter().any(|it| it.queue == queue), "{queue}");
        }
    });
    drop(amqp);
    super::case::nothing_left(&vhost);
}

/// The broker intentionally drops a failed message.
#[test]
fn failed_message_is_dropped_without_a_dead_letter_queue() {
    let spec = "queues:\n  none: {type: classic, deadLetter: none}\n  \
                limited: {type: quorum, deadLetter: none, maxRetries: 1}\n  \
                tiers: {type: classic, deadLetter: none, retry: {strategy: republish, delays: [200ms]}}\n";
    let fixture = Fixture::new("nowhere", spec);
    block_on(async {
        let channel = fixture.channel().await;
        let republish = Verb::Republish { retries: 1, tiers: vec![200], jitter: 0 };
        for (queue, verb, attempts) in
            [("none", Verb::NackAway, 1), ("limited", Verb::RejectBack, 2), ("tiers", republish, 2)]
        {
            publish_plain(&channel, "", queue, "poison").await;
            fail_times(&channel, queue, &verb, attempts).await;
            tokio::time::sleep(QUIET).await;
            assert_eq!(ready(&channel, queue).await, 0, "{queue}");
        }
    });
    fixture.is_left_empty();
}

/// The limit is unlimited, where the broker supports it, or the limit in the spec, which finally drops a message.
#[test]
fn delivery_limit_of_a_dead_letter_queue_matches_the_spec() {
    let fixture = Fixture::new(
        "limits",
        "queues: {work: {type: quorum, deadLetter: kept}, other: {type: quorum, deadLetter: limited}}\n\
         deadLetterQueues:\n  kept: {type: quorum}\n  plain: {type: classic}\n  limited: {type: quorum, deliveryLimit: 7}\n",
    );
    let limit = |queue: &str| fixture.vhost.queue(queue)["arguments"]["x-delivery-limit"].as_i64();
    assert_eq!(limit("kept"), since(4, 0).then_some(-1));
    assert_eq!(limit("plain"), None);
    assert_eq!(limit("limited"), Some(7));
    block_on(async {
        let channel = fixture.channel().await;
        publish_plain(&channel, "", "work", "message").await;
        fail_times(&channel, "work", &Verb::NackAway, 1).await;
        fail_times(&channel, "kept", &Verb::RejectBack, 60).await;
        until_ready(&channel, "kept", 1).await;
        assert_eq!(take_next(&channel, "kept", TIMEOUT).await.body, b"message");
        publish_plain(&channel, "", "other", "message").await;
        fail_times(&channel, "other", &Verb::NackAway, 1).await;
        fail_times(&channel, "limited", &Verb::RejectBack, 8).await;
        tokio::time::sleep(QUIET).await;
        assert_eq!(ready(&channel, "limited").await, 0);
    });
    fixture.is_left_empty();
}

/// A dead-letter queue may have its own dead-letter exchange. Here, messages expire into an archive.
#[test]
fn dead_letter_queue_can_dead_letter_too() {
    let fixture = Fixture::new(
        "archive",
        "queues: {work: {type: quorum, deadLetter: dead, retry: {delays: [200ms]}}}\n\
         deadLetterQueues:\n  dead: {type: quorum, maxLength: 1, deadLetter: archive}\n  archive: {type: classic}\n",
    );
    block_on(async {
        let channel = fixture.channel().await;
        for body in ["first", "second"] {
            publish_plain(&channel, "", "work", body).await;
            fail_times(&channel, "work", &Verb::NackAway, 2).await;
            until_ready(&channel, "dead", 1).await;
        }
        let dead_message = take_next(&channel, "archive", TIMEOUT).await;
        assert_eq!(dead_message.body, b"first");
        assert_eq!(
            (deaths_in(&dead_message, "work"), deaths_in(&dead_message, "dead")),
            (vec!["rejected 2".into()], vec!["maxlen 1".into()])
        );
        let first: Option<Argument> = header(&dead_message, "x-first-death-queue");
        assert_eq!(
            first.as_ref().and_then(AMQPValue::as_long_string).map(ToString::to_string).as_deref(),
            Some("work")
        );
        assert_eq!(take_next(&channel, "dead", TIMEOUT).await.body, b"second");
    });
    fixture.is_left_empty();
}
