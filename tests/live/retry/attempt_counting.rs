//! Tests the counting of attempts: rejections, requeues, and workers that crash.

use std::time::{Duration, Instant};

use super::case::Strategy;
use super::fixture::{Fixture, TIMEOUT, deaths_in, fail_times, fail_until_dead, in_parallel, since, until_ready};
use super::worker::{Verb, ack, channel, consume, next, publish_plain, ready, take_next};
use crate::support::{Vhost, block_on};

/// A number that exceeds the delivery limits of the tests and the broker's default.
const MANY: usize = 30;

const DEAD: &str = "deadLetterQueues: {dead: {type: classic}}\n";

/// The time without messages after the last crash.
const QUIET: Duration = Duration::from_secs(3);

/// Takes a message on a separate connection, and closes the connection without an acknowledgement. Returns `None` if no
/// message arrives in time.
fn crash(vhost: &Vhost<'_>, queue: &str, within: Duration) -> Option<Instant> {
    let amqp = vhost.amqp();
    let mut consumer = block_on(async { consume(&channel(&amqp).await, queue, 1).await });
    let came = block_on(next(&mut consumer, within)).map(|_| Instant::now());
    drop(amqp);
    came
}

/// Crashes this number of times, or until no message arrives.
fn crashes(vhost: &Vhost<'_>, queue: &str, times: usize) -> Vec<Instant> {
    std::iter::repeat_with(|| crash(vhost, queue, TIMEOUT)).take(times).map_while(|it| it).collect()
}

/// The worker requeues messages with `basic.nack`. From 4.3 on, the limit does not apply to such messages.
#[test]
fn requeue_by_nack_is_not_counted_from_4_3() {
    let fixture = Fixture::new(
        "verbs",
        &format!(
            "defaults: {{queue: {{type: quorum}}, deadLetter: dead, maxRetries: 3}}\nqueues: {{nacked: {{}}, rejected: {{}}, both: {{}}}}\n{DEAD}"
        ),
    );
    block_on(async {
        let channel = fixture.channel().await;
        publish_plain(&channel, "", "rejected", "poison").await;
        let (seen, dead_messages) = fail_until_dead(&channel, "rejected", &Verb::RejectBack, "dead").await;
        assert_eq!((seen.len(), dead_messages.len()), (4, 1));
        publish_plain(&channel, "", "nacked", "poison").await;
        if since(4, 3) {
            fail_times(&channel, "nacked", &Verb::NackBack, MANY).await;
            until_ready(&channel, "nacked", 1).await;
            assert_eq!(ready(&channel, "dead").await, 0);
            // The broker counts a rejection of the same message.
            let (seen, _) = fail_until_dead(&channel, "nacked", &Verb::RejectBack, "dead").await;
            assert_eq!(seen.len(), 4);
        } else {
            let (seen, dead_messages) = fail_until_dead(&channel, "nacked", &Verb::NackBack, "dead").await;
            assert_eq!((seen.len(), dead_messages.len()), (4, 1));
        }
        publish_plain(&channel, "", "both", "poison").await;
        fail_times(&channel, "both", &Verb::NackBack, 2).await;
        let (seen, dead_messages) = fail_until_dead(&channel, "both", &Verb::RejectBack, "dead").await;
        assert_eq!(seen.len(), if since(4, 3) { 4 } else { 2 });
        assert_eq!(deaths_in(&dead_messages[0], "both"), ["delivery_limit 1"]);
    });
    fixture.is_left_empty();
}

/// With the delayed retries of 4.3, the delay stays at the first value, and the limit does not apply.
#[test]
fn delayed_redelivery_does_not_count_a_requeue_by_nack() {
    if !since(4, 3) {
        return;
    }
    let keys = "type: quorum, deadLetter: dead, maxRetries: 2, retry: {strategy: delayed, delays: [100ms, 200ms]}";
    let fixture = Fixture::new("delayed", &format!("queues: {{work: {{{keys}}}}}\n{DEAD}"));
    block_on(async {
        let channel = fixture.channel().await;
        publish_plain(&channel, "", "work", "poison").await;
        let began = Instant::now();
        fail_times(&channel, "work", &Verb::NackBack, 8).await;
        assert!(began.elapsed() >= Duration::from_millis(7 * 100), "each waits: {:?}", began.elapsed());
        let (seen, dead_messages) = fail_until_dead(&channel, "work", &Verb::RejectBack, "dead").await;
        assert_eq!((seen.len(), dead_messages.len()), (3, 1));
    });
    fixture.is_left_empty();
}

/// The number of deliveries of a message whose worker always crashes.
struct Crashing {
    queue: String,
    strategy: Strategy,
    kind: &'static str,
    keys: &'static str,
    /// The number of deliveries; `None` if unlimited.
    deliveries: Option<usize>,
}

impl Crashing {
    fn all() -> Vec<Self> {
        // Quorum queues have a default limit since 4.0; classic queues have none.
        let own_limit = since(4, 0).then_some(21);
        let mut all = Vec::new();
        let mut add = |strategy, kind, keys, deliveries| {
            let queue = format!("{kind}.{strategy:?}.{}", all.len());
            all.push(Self { queue, strategy, kind, keys, deliveries });
        };
        add(Strategy::Ladder, "classic", "retry: {delays: [200ms]}", None);
        add(Strategy::Ladder, "quorum", "retry: {delays: [200ms]}", own_limit);
        if since(3, 13) {
            add(Strategy::Ladder, "quorum", "deliveryLimit: 4, retry: {delays: [200ms]}", Some(5));
        }
        add(Strategy::Republish, "classic", "retry: {strategy: republish, delays: [200ms]}", None);
        add(Strategy::Republish, "quorum", "retry: {strategy: republish, delays: [200ms]}", own_limit);
        add(Strategy::Republish, "quorum", "deliveryLimit: 4, retry: {strategy: republish, delays: [200ms]}", Some(5));
        add(Strategy::Redeliver, "quorum", "maxRetries: 2", Some(3));
        if since(4, 3) {
            add(Strategy::Delayed, "quorum", "retry: {strategy: delayed, delays: [200ms, 400ms]}", Some(3));
        }
        all
    }

    fn prove(&self, vhost: &Vhost<'_>) {
        let (queue, dead) = (self.queue.as_str(), format!("{}.dead", self.queue));
        let amqp = vhost.amqp();
        let channel = &block_on(channel(&amqp));
        block_on(publish_plain(channel, "", queue, "poison"));
        let seen = crashes(vhost, queue, self.deliveries.unwrap_or(MANY + 1));
        match self.deliveries {
            Some(expected) => {
                assert_eq!(seen.len(), expected, "{queue}");
                assert!(crash(vhost, queue, QUIET).is_none(), "{queue}: more than {expected} deliveries came");
                let dead_message = block_on(take_next(channel, &dead, TIMEOUT));
                assert_eq!(deaths_in(&dead_message, queue), ["delivery_limit 1"], "{queue}");
            }
            None => {
                assert_eq!(seen.len(), MANY + 1, "{queue}");
                // Crashes do not use attempts, so the last worker has all attempts.
                let verb = match self.strategy {
                    Strategy::Republish => Verb::Republish { retries: 1, tiers: vec![200], jitter: 0 },
                    Strategy::Ladder | Strategy::Redeliver | Strategy::Delayed | Strategy::Final => Verb::NackAway,
                };
                let (seen, dead_messages) = block_on(fail_until_dead(channel, queue, &verb, &dead));
                assert_eq!((seen.len(), dead_messages.len()), (2, 1), "{queue}");
                let rejected = if self.strategy == Strategy::Ladder { "rejected 2" } else { "rejected 1" };
                assert_eq!(deaths_in(&dead_messages[0], queue), [rejected], "{queue}");
            }
        }
        if self.strategy == Strategy::Delayed {
            let waits: Vec<Duration> = seen.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(waits[0] >= Duration::from_millis(200) && waits[1] >= Duration::from_millis(400), "{waits:?}");
        }
    }
}

#[test]
fn only_quorum_queues_count_crashes() {
    let all = Crashing::all();
    let (mut queues, mut dead) = (String::new(), String::new());
    for it in &all {
        let Crashing { queue, kind, keys, .. } = it;
        queues += &format!("  {queue:?}: {{type: {kind}, {keys}, deadLetter: \"{queue}.dead\"}}\n");
        dead += &format!("  \"{queue}.dead\": {{type: {kind}}}\n");
    }
    let fixture = Fixture::new("crashes", &format!("queues:\n{queues}deadLetterQueues:\n{dead}"));
    let vhost = &fixture.vhost;
    in_parallel(&all, |it| it.prove(vhost));
    fixture.is_left_empty();
}

/// A crash on a ladder uses no attempt. After a retry, it does not return the message to the first tier.
#[test]
fn crash_between_retries_uses_no_attempt() {
    let keys = |kind| format!("{{type: {kind}, deadLetter: {kind}.dead, retry: {{delays: [200ms, 300ms]}}}}");
    let spec = format!(
        "queues: {{classic: {}, quorum: {}}}\n\
         deadLetterQueues: {{classic.dead: {{type: classic}}, quorum.dead: {{type: quorum}}}}\n",
        keys("classic"),
        keys("quorum")
    );
    let fixture = Fixture::new("between", &spec);
    in_parallel(["classic", "quorum"], |queue| {
        let channel = block_on(fixture.channel());
        block_on(publish_plain(&channel, "", queue, "poison"));
        for retry in ["", ".retry.1", ".retry.2"] {
            assert!(crash(&fixture.vhost, queue, TIMEOUT).is_some());
            let seen = block_on(fail_times(&channel, queue, &Verb::NackAway, 1));
            assert_eq!(seen[0].routing_key, format!("{queue}{retry}"));
            assert!(seen[0].redelivered);
        }
        let dead_message = block_on(take_next(&channel, &format!("{queue}.dead"), TIMEOUT));
        assert_eq!(deaths_in(&dead_message, queue), ["rejected 3"]);
    });
    fixture.is_left_empty();
}

/// From 4.3 on, crashes add up over all retries. Before, each return to the queue starts a new count. No message is
/// lost.
#[test]
fn crashes_add_up_over_retries_from_4_3() {
    if !since(4, 0) {
        return;
    }
    let keys = "type: quorum, deliveryLimit: 2, deadLetter: dead, retry: {delays: [200ms, 200ms]}";
    let fixture = Fixture::new("add-up", &format!("queues: {{work: {{{keys}}}}}\n{DEAD}"));
    let channel = block_on(fixture.channel());
    block_on(publish_plain(&channel, "", "work", "poison"));
    for _ in 0..2 {
        assert!(crash(&fixture.vhost, "work", TIMEOUT).is_some());
        block_on(fail_times(&channel, "work", &Verb::NackAway, 1));
    }
    assert!(crash(&fixture.vhost, "work", TIMEOUT).is_some());
    if !since(4, 3) {
        block_on(fail_times(&channel, "work", &Verb::NackAway, 1));
    }
    let dead_message = block_on(take_next(&channel, "dead", TIMEOUT));
    let expected = if since(4, 3) { vec!["delivery_limit 1", "rejected 2"] } else { vec!["rejected 3"] };
    assert_eq!(deaths_in(&dead_message, "work"), expected);
    fixture.is_left_empty();
}

/// A worker that succeeds after crashes leaves no message.
#[test]
fn message_can_succeed_after_a_crash() {
    let fixture = Fixture::new(
        "survives",
        &format!("queues: {{work: {{type: quorum, maxRetries: 2, deadLetter: dead}}}}\n{DEAD}"),
    );
    block_on(async { publish_plain(&fixture.channel().await, "", "work", "fine").await });
    for _ in 0..2 {
        assert!(crash(&fixture.vhost, "work", TIMEOUT).is_some());
    }
    block_on(async {
        let mut consumer = consume(&fixture.channel().await, "work", 1).await;
        let delivery = next(&mut consumer, TIMEOUT).await.expect("the third delivery");
        assert_eq!(ack(delivery).await.message.body, b"fine");
    });
    fixture.is_left_empty();
}
