//! Tests ladders whose messages also die because of a TTL, an overflow or a delivery limit.
//!
//! Such a death is final, before and after a retry. Before 3.13, the broker cannot distinguish it from a rejection, and
//! topo refuses the ladder.

use std::time::Duration;

use futures_util::future::join_all;
use lapin::Channel;
use lapin::protocol::basic::AMQPProperties;

use super::dead_lettered_message::{death, deaths};
use super::fixture::{Fixture, QUIET, TIMEOUT, deaths_in, fail_on_arrival, fail_times, since, until_ready};
use super::worker::{Verb, publish, publish_plain, take, take_next};
use crate::support::{Node, Topo, block_on};

/// A cause of death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Ttl,
    /// The message's own `expiration`, which the broker removes at the first death.
    Expiration,
    Overflow,
    Limit,
    /// The default delivery limit.
    DefaultLimit,
}

#[derive(Clone, Copy, Debug)]
struct Dying {
    by: By,
    kind: &'static str,
    /// True if the message was first rejected once and has returned from a tier.
    after_a_tier: bool,
    /// True if the queue dead-letters at least once.
    at_least_once: bool,
}

impl Dying {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for by in [By::Ttl, By::Expiration, By::Overflow, By::Limit, By::DefaultLimit] {
            for kind in ["classic", "quorum"] {
                for (after_a_tier, at_least_once) in [(false, false), (true, false), (false, true), (true, true)] {
                    let counts = matches!(by, By::Limit | By::DefaultLimit);
                    // Classic queues do not count deliveries, and do not support the at-least-once strategy. This
                    // strategy excludes drop-head. The first death removes an `expiration`.
                    let cannot = kind == "classic" && (counts || at_least_once)
                        || at_least_once && by == By::Overflow
                        || after_a_tier && by == By::Expiration;
                    if !cannot {
                        all.push(Self { by, kind, after_a_tier, at_least_once });
                    }
                }
            }
        }
        all
    }

    fn queue(self) -> String {
        let when = if self.after_a_tier { "after" } else { "before" };
        let hop = if self.at_least_once { "at-least-once" } else { "at-most-once" };
        format!("{}.{:?}.{when}.{hop}", self.kind, self.by)
    }

    fn keys(self) -> String {
        let cause = match self.by {
            By::Ttl => "messageTtl: 500ms, ",
            By::Overflow => "maxLength: 1, ",
            By::Limit => "deliveryLimit: 2, ",
            By::Expiration | By::DefaultLimit => "",
        };
        let strategy =
            if self.at_least_once { "deadLetterStrategy: at-least-once, overflow: reject-publish, " } else { "" };
        format!("type: {}, {cause}{strategy}retry: {{delays: [200ms, 300ms]}}", self.kind)
    }

    fn reason(self) -> &'static str {
        match self.by {
            By::Ttl | By::Expiration => "expired",
            By::Overflow => "maxlen",
            By::Limit | By::DefaultLimit => "delivery_limit",
        }
    }

    async fn prove(self, channel: &Channel) {
        let (queue, dead) = (self.queue(), format!("{}.dead", self.queue()));
        let properties = AMQPProperties::default().with_delivery_mode(2);
        let properties = if self.by == By::Expiration { properties.with_expiration("300".into()) } else { properties };
        if self.after_a_tier {
            // A worker that starts after the publish may receive the message after its TTL.
            fail_on_arrival(channel, ("orders", &queue), &Verb::NackAway, (b"first", properties)).await;
            if self.by != By::Ttl {
                until_ready(channel, &queue, 1).await;
            }
        } else {
            publish(channel, "orders", &queue, b"first", properties).await;
        }
        match self.by {
            By::Ttl | By::Expiration => {}
            By::Overflow => publish_plain(channel, "orders", &queue, "second").await,
            // A limit of N permits N + 1 deliveries. A rejection into a tier is not counted, although 4.3 keeps the
            // count.
            By::Limit => drop(fail_times(channel, &queue, &Verb::RejectBack, 3).await),
            By::DefaultLimit => drop(fail_times(channel, &queue, &Verb::RejectBack, 21).await),
        }
        let dead_message = take_next(channel, &dead, TIMEOUT).await;
        assert_eq!(dead_message.body, b"first", "{self:?}");
        let original = |reason| death(&queue, reason, 1, "orders", &queue);
        let expected = if self.after_a_tier {
            let tier = death(&format!("{queue}.retry.1.200ms"), "expired", 1, &format!("{queue}.dlx"), &queue);
            // The message returns through a different exchange with a different key, which its headers contain.
            let again = death(&queue, self.reason(), 1, &format!("{queue}.return"), &format!("{queue}.retry.1"));
            [original("rejected"), tier, again].into()
        } else {
            [original(self.reason())].into()
        };
        assert_eq!(deaths(&dead_message), expected, "{self:?}");
        if self.by == By::Overflow {
            assert_eq!(take_next(channel, &queue, TIMEOUT).await.body, b"second", "{self:?}");
        }
        tokio::time::sleep(QUIET).await;
        assert!(take(channel, &dead).await.is_none(), "{self:?}: it came twice");
    }
}

#[test]
fn death_other_than_a_rejection_is_final() {
    if !since(3, 13) {
        return;
    }
    let all = Dying::all();
    let (mut queues, mut dead) = (String::new(), String::new());
    for it in &all {
        let (name, keys) = (it.queue(), it.keys());
        queues += &format!(
            "  {name:?}: {{{keys}, deadLetter: \"{name}.dead\", bindings: [{{exchange: orders, routingKey: {name:?}}}]}}\n"
        );
        dead += &format!("  \"{name}.dead\": {{type: {}}}\n", it.kind);
    }
    let spec = format!("exchanges: {{orders: {{type: direct}}}}\nqueues:\n{queues}deadLetterQueues:\n{dead}");
    let fixture = Fixture::new("deaths", &spec);
    block_on(join_all(all.iter().map(async |it| it.prove(&fixture.channel().await).await)));
    fixture.is_left_empty();
}

/// The version is that of the live broker, or of `--broker-version`.
#[test]
fn ladder_without_death_routing_is_refused() {
    let vhost = Node::shared().vhost("unguarded");
    for (kind, keys, key) in [
        ("classic", "messageTtl: 1h", "messageTtl"),
        ("classic", "maxLength: 5", "maxLength"),
        ("classic", "maxLengthBytes: 5000, overflow: drop-head", "maxLengthBytes"),
        ("quorum", "deliveryLimit: 5", "deliveryLimit"),
        ("quorum", "maxLength: 5", "maxLength"),
    ] {
        let spec = format!(
            "queues: {{work: {{type: {kind}, {keys}, retry: {{delays: [1s]}}, deadLetter: dead}}}}\n\
             deadLetterQueues: {{dead: {{type: classic}}}}\n"
        );
        let topo = Topo::new(&vhost).spec(&spec);
        for version in ["3.8.9", "3.10.8", "3.12.14"] {
            let refused = topo.run(["validate", "--broker-version", version]).expect_code(65);
            let reported = format!("a ladder on RabbitMQ {version} does not support `{key}`");
            let refused = refused.expect_text(&reported);
            assert!(refused.stderr.contains("use `strategy: republish`"), "{refused}");
        }
        for version in ["3.13.7", "4.0.5", "4.3.6"] {
            topo.run(["validate", "--broker-version", version]).expect_code(0);
        }
        let plan = topo.run(["plan"]);
        if since(3, 13) {
            plan.expect_code(0).expect_text("ladder:");
        } else {
            plan.expect_code(65).expect_text("does not support").expect_no_result();
            topo.run(["apply", "-y"]).expect_code(65).expect_text("does not support").expect_no_result();
            assert!(vhost.names("queues").is_empty() && vhost.names("exchanges").is_empty());
        }
    }
}

/// A plan cannot detect the `expiration` of a publisher's messages. Before 3.13, a message that expires in the queue
/// enters the first tier. When it returns, the broker drops it as a cycle.
#[test]
fn expiration_of_a_message_loses_it_before_3_13() {
    if since(3, 13) {
        return;
    }
    let spec = "queues: {work: {type: classic, retry: {delays: [5s]}, deadLetter: dead}}\n\
                deadLetterQueues: {dead: {type: classic}}\n";
    let fixture = Fixture::new("expires", spec);
    block_on(async {
        let channel = fixture.channel().await;
        let properties = AMQPProperties::default().with_delivery_mode(2).with_expiration("100".into());
        publish(&channel, "", "work", b"lost", properties.clone()).await;
        until_ready(&channel, "work.retry.1.5s", 1).await;
        until_ready(&channel, "work.retry.1.5s", 0).await;
        tokio::time::sleep(QUIET).await;
        assert!(take(&channel, "work").await.is_none() && take(&channel, "dead").await.is_none());
        // A message that is rejected in time is not affected, because its first death removes its expiration.
        publish(&channel, "", "work", b"rejected", properties.with_expiration("60000".into())).await;
        fail_times(&channel, "work", &Verb::NackAway, 2).await;
        let dead_message = take_next(&channel, "dead", Duration::from_secs(20)).await;
        assert_eq!(deaths_in(&dead_message, "work"), ["rejected 2"]);
    });
    fixture.is_left_empty();
}
