//! Tests changes of retries while messages wait: no loss, no duplicates, the specified number of attempts, and no
//! obsolete objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::fixture::{Fixture, QUIET, TIMEOUT, in_parallel};
use super::worker::{Verb, channel, consume, fail, next, publish_plain, take};
use crate::support::{Amqp, Output, SetOnDrop, block_on, number};

/// The maximum number of retries of the worker.
const MOST: u32 = 3;
/// The time within which the broker completes each change.
const SLACK: Duration = Duration::from_secs(1);

fn spec(kind: &str, retry: &str) -> String {
    format!(
        "exchanges: {{orders: {{type: topic}}}}\n\
         queues:\n  work: {{type: {kind}, {retry}, bindings: [{{exchange: orders, routingKey: \"order.#\"}}]}}\n\
         deadLetterQueues: {{dead: {{type: classic}}, other: {{type: classic}}}}\n"
    )
}

/// A strategy, consecutive delays, and the action of the worker.
struct RetryChange {
    name: &'static str,
    kind: &'static str,
    strategy: &'static str,
    delays: &'static [&'static str],
}

impl RetryChange {
    fn spec(&self, index: usize) -> String {
        let Self { kind, strategy, delays, .. } = self;
        spec(kind, &format!("retry: {{strategy: {strategy}, delays: [{}]}}, deadLetter: dead", delays[index]))
    }

    fn verb(&self) -> Verb {
        match self.strategy {
            "ladder" => Verb::NackAway,
            _ => Verb::Republish { retries: MOST, tiers: vec![1; MOST as usize], jitter: 0 },
        }
    }

    /// Returns the minimum and maximum number of retries of a message that failed between these times.
    ///
    /// `applied` contains the start and the end of each apply. During an apply, both the old and the new delays are
    /// possible.
    fn promised(&self, applied: &[(Instant, Instant)], tries: &Tries) -> (usize, usize) {
        let held = |index: &usize| {
            let is_over = applied.get(*index).is_some_and(|(_, until)| *until + SLACK < tries.first);
            let has_begun = index.checked_sub(1).is_none_or(|before| applied[before].0 <= tries.last + SLACK);
            has_begun && !is_over
        };
        self.counts(held)
    }

    /// Returns the minimum and maximum number of retries of the selected delays.
    fn counts(&self, held: impl Fn(&usize) -> bool) -> (usize, usize) {
        let counts = || (0..self.delays.len()).filter(&held).map(|index| self.delays[index].split(", ").count());
        (counts().min().unwrap(), counts().max().unwrap())
    }
}

const STORIES: [RetryChange; 4] = [
    RetryChange {
        name: "ladder",
        kind: "classic",
        strategy: "ladder",
        delays: &["300ms, 600ms", "200ms, 500ms", "200ms, 400ms, 300ms", "100ms", "300ms, 600ms"],
    },
    RetryChange {
        name: "republish",
        kind: "classic",
        strategy: "republish",
        delays: &["300ms, 600ms", "200ms, 500ms", "200ms, 400ms, 300ms", "100ms", "300ms, 600ms"],
    },
    RetryChange {
        name: "quorum-ladder",
        kind: "quorum",
        strategy: "ladder",
        delays: &["400ms, 600ms", "200ms, 600ms", "300ms"],
    },
    RetryChange { name: "quorum-republish", kind: "quorum", strategy: "republish", delays: &["400ms", "200ms, 700ms"] },
];

/// The minimum number of messages of a meaningful test.
const ENOUGH: usize = 60;

/// Publishes continuously until it is stopped and has published enough messages. Returns the number of messages.
fn publish_until(amqp: &Amqp, stop: &AtomicBool) -> usize {
    block_on(async {
        let channel = channel(amqp).await;
        let mut published = 0;
        while !stop.load(Ordering::Relaxed) || published < ENOUGH {
            publish_plain(&channel, "orders", "order.created", &format!("message {published}")).await;
            published += 1;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        published
    })
}

/// The number of deliveries of each message.
type Counts = BTreeMap<String, usize>;

/// The number of deliveries of a message, and the times of its first and last failure.
struct Tries {
    count: usize,
    first: Instant,
    last: Instant,
}

/// Fails every delivery until it is stopped and no message arrives. Returns the deliveries of each message.
fn fail_until(amqp: &Amqp, verb: &Verb, stop: &AtomicBool) -> BTreeMap<String, Tries> {
    let mut seen: BTreeMap<String, Tries> = BTreeMap::new();
    block_on(async {
        let channel = channel(amqp).await;
        let mut consumer = consume(&channel, "work", 50).await;
        let mut last = Instant::now();
        // The longest delay plus a margin.
        while !stop.load(Ordering::Relaxed) || last.elapsed() < Duration::from_millis(600) + 2 * QUIET {
            let Some(delivery) = next(&mut consumer, Duration::from_millis(50)).await else { continue };
            let body = String::from_utf8(delivery.data.clone()).expect("bodies are text here");
            let first = Instant::now();
            fail(&channel, "work", delivery, verb).await;
            last = Instant::now();
            let tries = seen.entry(body).or_insert(Tries { count: 0, first, last });
            (tries.count, tries.last) = (tries.count + 1, last);
        }
    });
    seen
}

/// Waits until each message is dead-lettered. A worker that stops earlier would leave a late message in a tier. The
/// caller compares the counts.
fn until_dead(amqp: &Amqp, messages: usize) {
    let began = Instant::now();
    while (amqp.ready("dead") as usize) < messages && began.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn dead_lettered(amqp: &Amqp, queue: &str) -> Counts {
    let mut found = Counts::new();
    block_on(async {
        let channel = channel(amqp).await;
        while let Some(dead_message) = take(&channel, queue).await {
            *found.entry(String::from_utf8(dead_message.body).expect("bodies are text here")).or_default() += 1;
        }
    });
    found
}

/// Applies each spec in turn while messages fail, and then waits for the last dead-lettered message.
fn apply_in_turn(retry_change: &RetryChange) {
    let fixture = Fixture::new(retry_change.name, &retry_change.spec(0));
    let (full, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut times = Vec::new();
    let (published, seen) = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| publish_until(&fixture.vhost.amqp(), &full));
        let worker = scope.spawn(|| fail_until(&fixture.vhost.amqp(), &retry_change.verb(), &over));
        let _stop = SetOnDrop([&full, &over]);
        for index in 1..retry_change.delays.len() {
            fixture.topo.rewrite(&retry_change.spec(index));
            let began = Instant::now();
            let applied = fixture.topo.run(["apply", "-y", "--drain-timeout=0s"]).expect_code(0);
            assert!(applied.stdout.contains("the broker matches the spec"), "{applied}");
            times.push((began, Instant::now()));
        }
        // The messages published last use only the last delays.
        std::thread::sleep(2 * SLACK);
        full.store(true, Ordering::Relaxed);
        let published = publisher.join().unwrap();
        until_dead(&fixture.amqp, published);
        over.store(true, Ordering::Relaxed);
        (published, worker.join().unwrap())
    });
    let found = dead_lettered(&fixture.amqp, "dead");
    let mut exact = 0;
    for number in 0..published {
        let body = format!("message {number}");
        let tries = seen.get(&body).unwrap_or_else(|| panic!("{}: {body} never came", retry_change.name));
        assert_eq!(found.get(&body), Some(&1), "{}: {body} came {} times", retry_change.name, tries.count);
        let (fewest, most) = retry_change.promised(&times, tries);
        let promised = fewest + 1..=most + 1;
        assert!(
            promised.contains(&tries.count),
            "{}: {body} had {} attempts, expected {promised:?}",
            retry_change.name,
            tries.count
        );
        exact += usize::from(fewest == most);
    }
    let deliveries: usize = seen.values().map(|tries| tries.count).sum();
    println!("{}: {published} messages, {exact} with one possible count, {deliveries} deliveries", retry_change.name);
    assert!(exact > 5, "{exact}: too few to prove anything");
    assert_eq!(found.len(), published);
    assert!(published >= ENOUGH, "{published}: too few to prove anything");

    fixture.topo.run(["apply", "-y"]).expect_code(0);
    fixture.topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes.");
    // Compares with a vhost to which only this spec was applied.
    let fresh = Fixture::new("fresh", &retry_change.spec(retry_change.delays.len() - 1));
    for kind in ["queues", "exchanges"] {
        assert_eq!(fixture.vhost.names(kind), fresh.vhost.names(kind), "{}", retry_change.name);
    }
    assert_eq!(bindings(&fixture), bindings(&fresh), "{}", retry_change.name);
    fixture.is_left_empty();
}

fn bindings(fixture: &Fixture) -> BTreeSet<String> {
    let text = |binding: &serde_json::Value| {
        format!("{} {} {} {}", binding["source"], binding["routing_key"], binding["destination"], binding["arguments"])
    };
    fixture.vhost.list("bindings").iter().map(text).collect()
}

#[test]
fn delays_and_counts_change_while_messages_wait() {
    in_parallel(STORIES, |retry_change| apply_in_turn(&retry_change));
}

fn one_dead_lettered_message(fixture: &Fixture, worker: impl FnOnce()) {
    worker();
    let began = Instant::now();
    let mut found = Counts::new();
    while found.is_empty() && began.elapsed() < TIMEOUT {
        found = dead_lettered(&fixture.amqp, "dead");
    }
    assert_eq!(found.values().sum::<usize>(), 1, "{found:?}");
}

fn failing(fixture: &Fixture, times: usize) {
    block_on(async {
        let channel = fixture.channel().await;
        super::fixture::fail_times(&channel, "work", &Verb::NackAway, times).await;
    });
}

fn planned(fixture: &Fixture, code: i32) -> Output {
    fixture.topo.run(["plan", "--detailed-exitcode"]).expect_code(code)
}

/// The message in the tier returns only after an hour.
#[test]
fn incomplete_retirement_is_reported() {
    for kind in ["classic", "quorum"] {
        let with = |delays: &str| spec(kind, &format!("retry: {{delays: [{delays}]}}, deadLetter: dead"));
        let fixture = Fixture::new("unfinished", &with("1h, 200ms"));
        block_on(async {
            let channel = fixture.channel().await;
            publish_plain(&channel, "orders", "order.created", "waits").await;
        });
        failing(&fixture, 1);
        fixture.vhost.until_counted("work.retry.1.1h", 1);

        fixture.topo.rewrite(&with("100ms"));
        let report = fixture.topo.run(["apply", "-y", "--drain-timeout=1s"]).expect_code(0);
        // The progress line shows the message during the wait.
        let waits = |line: &str| line.contains(" waiting: ") && line.ends_with(": delete queue work.retry.1.1h");
        assert!(report.stderr.lines().any(waits), "{report}");
        report
            .expect_text("1 message is waiting in it and will return within 1h")
            .expect_text("deferred queue work.retry.1.1h: ")
            .expect_text("To finish later:");
        assert!(
            !fixture.vhost.names("queues").contains(&"work.retry.2.200ms".to_owned()),
            "the empty tier was deleted"
        );
        planned(&fixture, 2).expect_text("- retired: 1 tier queue").expect_text("queue work                 unchanged");
        let again = fixture.topo.run(["apply", "-y", "--format=json", "--drain-timeout=0s"]).expect_code(0).json();
        assert_eq!(
            again["vhosts"][0]["waiting"][0]["address"].as_str().unwrap().rsplit('/').next(),
            Some("work.retry.1.1h")
        );
        assert_eq!(again["result"], "applied");

        // New failures use the new tier. The message in the old tier returns with an obsolete key.
        block_on(async {
            let channel = fixture.channel().await;
            publish_plain(&channel, "orders", "order.created", "new").await;
        });
        one_dead_lettered_message(&fixture, || failing(&fixture, 2));
        let back = fixture.amqp.get("work.retry.1.1h").expect("it still waits");
        assert_eq!(back.body, b"waits");
        fixture.vhost.until_counted("work.retry.1.1h", 0);
        fixture.topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified: the broker matches the spec.");
        planned(&fixture, 0).expect_text("No changes.");
        fixture.is_left_empty();
    }
}

/// Retries whose dead-lettering is set by a policy are added and removed in place, and the plan reports the changed
/// contract.
#[test]
fn retries_wired_by_a_policy_change_in_place() {
    let with = |retry: &str| spec("classic", &format!("{retry}, deadLetter: {{queue: dead, wiring: policy}}"));
    let ladder = with("retry: {delays: [300ms, 300ms]}");
    let fixture = Fixture::new("comes-and-goes", &with("maxRetries: 0"));
    let bare = (fixture.vhost.names("queues"), fixture.vhost.names("exchanges"), bindings(&fixture));
    fixture.topo.rewrite(&ladder);
    fixture.topo.run(["apply", "-y"]).expect_code(0);
    block_on(async {
        let channel = fixture.channel().await;
        publish_plain(&channel, "orders", "order.created", "one").await;
    });
    failing(&fixture, 1);

    // The retries are removed while a message is in a tier. The message returns, and its next failure is final.
    fixture.topo.rewrite(&with("maxRetries: 0"));
    let refused = fixture.topo.run(["apply", "-y"]).expect_code(3);
    refused.expect_text(
        "queue work will no longer retry with ladder: the first basic.nack with requeue=false will be \
                         final",
    );
    fixture.topo.run(["apply", "-y", "--allow", "contract-change"]).expect_code(0);
    one_dead_lettered_message(&fixture, || failing(&fixture, 1));
    fixture.topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!((fixture.vhost.names("queues"), fixture.vhost.names("exchanges"), bindings(&fixture)), bare);
    fixture.is_left_empty();
}

/// A different strategy conflicts with the arguments of the queue, and workers must use a different method.
#[test]
fn changed_strategy_names_both_worker_methods() {
    let with = |retry: &str| spec("quorum", &format!("{retry}, deadLetter: dead"));
    let fixture = Fixture::new("another-strategy", &with("retry: {delays: [200ms]}"));
    fixture.topo.rewrite(&with("maxRetries: 2"));
    let refused = planned(&fixture, 3).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for reported in
        ["! contract-change queues/", "call basic.reject with requeue=true", "basic.nack with requeue=false"]
    {
        assert!(refused.contains(reported), "{reported}: {refused}");
    }
    // topo recreates the empty queue, and then deletes the ladder.
    let apply = [
        "apply",
        "-y",
        "--recreate",
        &format!("queues/{}/work=ifEmpty", fixture.vhost.name()),
        "--allow",
        "contract-change,routing-gap",
    ];
    fixture.topo.run(apply).expect_code(0);
    planned(&fixture, 0).expect_text("No changes.");
    let names = fixture.vhost.names("queues");
    assert!(names.iter().all(|name| !name.starts_with("work.retry")), "{names:?}");
    block_on(async {
        let channel = fixture.channel().await;
        publish_plain(&channel, "orders", "order.created", "one").await;
        super::fixture::fail_times(&channel, "work", &Verb::RejectBack, 3).await;
    });
    one_dead_lettered_message(&fixture, || {});
}

/// The next run completes a change that was killed at any request.
#[test]
fn killed_change_is_completed() {
    let seed = crate::support::seed();
    let times = number("TOPO_KILLS").unwrap_or(if std::env::var_os("TOPO_LONG").is_some() { 40 } else { 8 });
    let retry_change = &STORIES[0];
    let fixture = Fixture::new("killed-change", &retry_change.spec(0));
    let mut random = crate::support::Random::new(seed);
    let (full, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (published, seen) = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| publish_until(&fixture.vhost.amqp(), &full));
        let worker = scope.spawn(|| fail_until(&fixture.vhost.amqp(), &retry_change.verb(), &over));
        let _stop = SetOnDrop([&full, &over]);
        for round in 0..times {
            fixture
                .topo
                .rewrite(&retry_change.spec(1 + usize::try_from(round).unwrap() % (retry_change.delays.len() - 1)));
            let running = fixture.topo.start(["apply", "-y", "--drain-timeout=0s"]);
            std::thread::sleep(Duration::from_millis(random.next() % 400));
            running.signal("KILL");
            running.wait();
            let lock = fixture.vhost.path("queues", &["topo.lock"]);
            assert!(matches!(fixture.vhost.http().delete(&lock).status, 204 | 404));
        }
        // The broker may execute requests of a killed run later, including the request for its lock, which expires with
        // its lease.
        fixture.topo.run(["apply", "-y", "--drain-timeout=0s", "--lock-timeout=2m"]).expect_code(0);
        full.store(true, Ordering::Relaxed);
        let published = publisher.join().unwrap();
        until_dead(&fixture.amqp, published);
        over.store(true, Ordering::Relaxed);
        (published, worker.join().unwrap())
    });
    let found = dead_lettered(&fixture.amqp, "dead");
    let deliveries: usize = seen.values().map(|tries| tries.count).sum();
    println!("{times} kills, {published} messages, {deliveries} deliveries, seed {seed}");
    // The partial change of a killed run is effective until another run completes it.
    let (fewest, most) = retry_change.counts(|_| true);
    for number in 0..published {
        let body = format!("message {number}");
        let tries = seen.get(&body).map_or(0, |tries| tries.count);
        assert_eq!(found.get(&body), Some(&1), "{body} came {tries} times");
        assert!((fewest + 1..=most + 1).contains(&tries), "{body} had {tries} attempts");
    }
    fixture.topo.run(["apply", "-y"]).expect_code(0);
    planned(&fixture, 0).expect_text("No changes.");
    let names = fixture.vhost.names("queues");
    assert!(names.iter().all(|name| !name.contains('~')), "{names:?}");
    fixture.is_left_empty();
}
