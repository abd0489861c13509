//! Tests that a run is killed before any of its requests or at any time, and that the next run completes the migration.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::super::ownership::objects;
use super::fixture::{
    Conversion, Fixture, Q, QUORUM, TO_QUORUM, TRANSPORTS, TTL, duplicates, reported_duplicates, supports_quorum_queues,
};
use super::traffic::{Publisher, disorder, emptied};
use crate::support::random::is_long;
use crate::support::{
    AmqpProxy, Fault, Proxy, Random, Running, SetOnDrop, Stop, deletes, number, puts, run_concurrently, seed, until,
    writes,
};

/// The number of messages in the queue before the migration.
const MESSAGES: usize = 200;
/// The number of messages in total, of which the rest is published during the migration.
const MOST: usize = 2_000;
/// The number of publishes per second during the migration.
const RATE: usize = 100;
/// The in-flight limit of a transport.
const PREFETCH: usize = 1000;
/// The time between two renewals of the lock, in seconds.
const BETWEEN_RENEWALS: usize = 15;

/// Returns the number of writes of an uninterrupted run, without lock renewals, which a faster run sends less often.
pub(super) fn request_count(conversion: Conversion, transport: &str) -> usize {
    let (fixture, proxy) = Fixture::new("undisturbed", conversion).through();
    let began = Instant::now();
    let output = fixture.migrate(transport, &[]).expect_code(0);
    let renewals = usize::try_from(began.elapsed().as_secs()).unwrap() / BETWEEN_RENEWALS;
    fixture.expect_migrated(&output);
    proxy.count(&writes()) - renewals
}

/// Returns the requests at which the run is killed: every request in the long form, otherwise every n-th from a varying
/// first one.
pub(super) fn points(requests: usize, stride: usize) -> Vec<usize> {
    let first = usize::try_from(seed() % stride as u64).unwrap();
    if is_long() { (1..=requests).collect() } else { (1 + first..=requests).step_by(stride).collect() }
}

/// Kills the run when it sends its n-th request. Returns false if the run ended before this request.
pub(super) fn killed_before(n: usize, proxy: &Proxy, mut running: Running) -> bool {
    until("a request that hangs", || (proxy.hangs() || running.is_over()).then_some(()));
    if !proxy.hangs() {
        running.wait().expect_code(0);
        return false;
    }
    let last = proxy.requests().pop();
    println!(
        "killed before request {n}: {}",
        last.map_or_else(String::new, |last| format!("{} {}", last.method, last.path))
    );
    running.signal("KILL");
    assert_eq!(running.wait().code, None);
    proxy.wait_until_idle();
    true
}

impl Fixture<'_> {
    pub(super) fn start(&self, transport: &str) -> Running {
        let words = Self::apply(transport);
        self.topo.start(words.iter().map(String::as_str))
    }

    /// Deletes the lock of a killed run. The lease would expire, but the test does not wait for a minute.
    pub(super) fn unlock(&self) {
        let lock = self.vhost.path("queues", &["topo.lock"]);
        assert!(matches!(self.vhost.http().delete(&lock).status, 204 | 404));
    }
}

/// Returns true if the killed run may have moved a message. It could not report its messages in flight.
pub(super) fn has_moved(proxy: &Proxy) -> bool {
    proxy.count(&deletes().path("/e/q.topo.tap/q/")) > 0 || proxy.count(&puts().path("/parameters/shovel/")) > 0
}

/// Counts the outcomes of the kills.
#[derive(Default)]
struct Tally {
    kills: AtomicUsize,
    over_before: AtomicUsize,
    duplicates: AtomicUsize,
    most_twice: AtomicUsize,
    late: AtomicUsize,
}

impl Tally {
    fn print_outcome(&self, what: &str) {
        let [kills, over, duplicated, most, late] =
            [&self.kills, &self.over_before, &self.duplicates, &self.most_twice, &self.late]
                .map(|it| it.load(Ordering::Relaxed));
        println!(
            "{what}: {kills} kills, {over} ended before, {duplicated} duplicates (at most {most} per run), {late} late"
        );
    }
}

/// Kills a run. The next run completes the migration with its own transport.
fn killed(
    conversion: Conversion,
    transports: [&str; 2],
    n: Option<usize>,
    kill: impl FnOnce(&Proxy, Running) -> bool,
    tally: &Tally,
) {
    killed_on(Fixture::new("killed", conversion), transports, n, kill, tally);
}

fn killed_on(
    fixture: Fixture<'_>,
    transports: [&str; 2],
    n: Option<usize>,
    kill: impl FnOnce(&Proxy, Running) -> bool,
    tally: &Tally,
) {
    let conversion = fixture.conversion;
    let (mut fixture, proxy) = fixture.through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    if let Some(n) = n {
        proxy.add(writes().nth(n), Fault::HangBefore);
    }
    let full = AtomicBool::new(false);
    let (was_killed, output) = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publisher.keep_on_to(MOST, RATE, &full));
        let _stop = SetOnDrop([&full]);
        let was_killed = kill(&proxy, fixture.start(transports[0]));
        let output = was_killed.then(|| {
            fixture.unlock();
            fixture.directly();
            // The broker may execute a lock request after its sender was killed.
            fixture.migrate(transports[1], &["--lock-timeout=2m"])
        });
        full.store(true, Ordering::Relaxed);
        publishing.join().unwrap();
        (was_killed, output)
    });
    if !was_killed {
        tally.over_before.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let context = format!("{} by {transports:?}, request {n:?}\n{}", conversion.name, output.as_ref().unwrap());
    let output = output.unwrap();
    assert_eq!(output.code, Some(0), "{context}");
    let reported = reported_duplicates(&output);
    publisher.expect_all_taken();
    let left = emptied(&fixture.vhost, Q);
    let late = disorder(&left).late;
    let duplicated = duplicates(left, publisher.published(), &context);
    let may_be = reported + if has_moved(&proxy) { PREFETCH } else { 0 };
    assert!(duplicated <= may_be, "{duplicated} duplicates, at most {may_be} expected: {context}");
    fixture.expect_migrated(&context);
    tally.kills.fetch_add(1, Ordering::Relaxed);
    tally.duplicates.fetch_add(duplicated, Ordering::Relaxed);
    tally.most_twice.fetch_max(duplicated, Ordering::Relaxed);
    tally.late.fetch_add(late, Ordering::Relaxed);
}

/// Kills at each of these requests. Every third migration is resumed with the other transport.
fn kill_everywhere(conversion: Conversion, transport: &'static str, stride: usize) {
    let requests = request_count(conversion, transport);
    let tally = Tally::default();
    let other = if transport == "amqp" { "shovel" } else { "amqp" };
    let points = points(requests, stride);
    let count = points.len();
    run_concurrently(4, points, |n| {
        let next = if n % 3 == 0 { other } else { transport };
        killed(conversion, [transport, next], Some(n), |proxy, running| killed_before(n, proxy, running), &tally);
    });
    tally.print_outcome(&format!("{} by {transport}, before {count} of {requests} requests", conversion.name));
    assert!(tally.over_before.into_inner() <= count / 4, "too few were killed");
}

#[test]
fn run_killed_at_any_request_is_completed() {
    kill_everywhere(TTL, "amqp", 5);
}

#[test]
fn killed_shovel_migration_resumes() {
    kill_everywhere(TTL, "shovel", 9);
}

#[test]
fn killed_quorum_migration_resumes() {
    if !supports_quorum_queues() {
        return;
    }
    run_concurrently(
        4,
        [(TO_QUORUM, "amqp"), (QUORUM, "shovel"), (TO_QUORUM, "shovel"), (QUORUM, "amqp")],
        |(conversion, transport)| {
            if is_long() || conversion.name == TO_QUORUM.name && transport == "amqp" {
                kill_everywhere(conversion, transport, 20);
            }
        },
    );
}

/// The AMQP methods that make changes: one write deletes and declares the queue, and one write binds while no message
/// is in flight.
#[test]
fn run_killed_at_any_method_is_completed() {
    let conversions =
        [TTL, TO_QUORUM, QUORUM].into_iter().take(if is_long() && supports_quorum_queues() { 3 } else { 1 });
    let tally = Tally::default();
    let cases: Vec<(Conversion, Stop)> = conversions
        .flat_map(|conversion| {
            let fixture = Fixture::new("undisturbed", conversion);
            let road = AmqpProxy::to(fixture.vhost.node(), None);
            let fixture = fixture.through_proxies(&road);
            let output = fixture.migrate("amqp", &[]).expect_code(0);
            fixture.expect_migrated(&output);
            let methods = road.methods();
            println!("{}: {}", conversion.name, methods.join(", "));
            // A quorum queue may delay the declaration of the new queue, which topo then sends over HTTP.
            let swaps = methods.windows(2).any(|two| two == ["queue.delete", "queue.declare"]);
            assert!(swaps || conversion.is_slow(), "{methods:?}");
            assert_eq!(methods.last(), Some(&"queue.bind"), "{methods:?}");
            (1..=methods.len()).flat_map(move |n| [Stop::Before(n), Stop::After(n)]).map(move |stop| (conversion, stop))
        })
        .collect();
    let count = cases.len();
    run_concurrently(4, cases, |(conversion, stop)| {
        let fixture = Fixture::new("killed", conversion);
        let road = AmqpProxy::to(fixture.vhost.node(), Some(stop));
        let kill = |proxy: &Proxy, mut running: Running| {
            until("a method that hangs", || (road.hangs() || running.is_over()).then_some(()));
            if !road.hangs() {
                running.wait().expect_code(0);
                return false;
            }
            println!("{}: killed {stop:?} {}", conversion.name, road.methods().join(", "));
            running.signal("KILL");
            assert_eq!(running.wait().code, None);
            proxy.wait_until_idle();
            true
        };
        killed_on(fixture.through_proxies(&road), ["amqp", "amqp"], None, kill, &tally);
    });
    tally.print_outcome(&format!("{count} AMQP methods"));
    assert!(tally.over_before.into_inner() <= count / 4, "too few were killed");
}

#[test]
fn run_killed_at_any_moment_is_completed() {
    let seed = seed();
    let mut random = Random::new(seed);
    let times = number("TOPO_KILLS").unwrap_or(if is_long() { 20 } else { 3 });
    let tally = Tally::default();
    let cases: Vec<(Conversion, &str, u64)> = (0..times)
        .map(|_| {
            let slow = is_long() && supports_quorum_queues();
            let conversion = if slow { *random.pick(&[TTL, TO_QUORUM, QUORUM]) } else { TTL };
            let longest = if conversion.from == "quorum" { 30_000 } else { 4_000 };
            (conversion, *random.pick(&TRANSPORTS), random.next() % longest)
        })
        .collect();
    run_concurrently(3, cases, |(conversion, transport, moment)| {
        let kill = |proxy: &Proxy, mut running: Running| {
            // The test kills the run after this time.
            std::thread::sleep(Duration::from_millis(moment));
            if !running.is_over() {
                running.signal("KILL");
            }
            let output = running.wait();
            proxy.wait_until_idle();
            assert!(matches!(output.code, None | Some(0)), "{output}");
            output.code.is_none()
        };
        killed(conversion, [transport, transport], None, kill, &tally);
    });
    tally.print_outcome(&format!("{times} random moments, seed {seed}"));
}

#[test]
fn unresumable_migration_is_reported_as_partial() {
    let (mut fixture, proxy) = Fixture::new("halfway", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    proxy.add(deletes().path("/q.topo.tap/q/q/"), Fault::HangBefore);
    assert!(killed_before(1, &proxy, fixture.start("amqp")));
    fixture.unlock();
    proxy.reset();
    proxy.add(writes().path("q.topo"), Fault::Status(400));
    let output = fixture.migrate("amqp", &[]).expect_code(4);
    assert!(output.says("stopped halfway: 0 of "), "{output}");
    assert!(output.says("Interrupted: the migration of queue q"), "{output}");
    fixture.directly();
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    let duplicated = duplicates(emptied(&fixture.vhost, Q), publisher.published(), &output.to_string());
    assert!(duplicated <= PREFETCH, "{duplicated} duplicates: {output}");
}

fn shovels(fixture: &Fixture<'_>) -> usize {
    let path = fixture.vhost.path("parameters/shovel", &[]);
    fixture.vhost.http().get(&path).expect_status(200).as_array().unwrap().len()
}

/// A leftover shovel continues to move messages. A run that does not detect it would compete with it.
#[test]
fn leftover_shovel_is_removed_or_reported() {
    let (mut fixture, proxy) = Fixture::new("left", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    // The first consumer could belong to a leftover shovel.
    proxy.add(deletes().path("/api/parameters/shovel/").nth(2), Fault::HangBefore);
    assert!(killed_before(2, &proxy, fixture.start("shovel")));
    fixture.unlock();
    fixture.directly();
    assert_eq!(shovels(&fixture), 1);
    let user = fixture.vhost.node().user("management").may_everything(&fixture.vhost);
    let fixture = fixture.by_user(&user);
    let before = objects(&fixture.vhost);
    // The statistics list consumers with a delay.
    let output = until("a plan that sees it", || {
        let words = Fixture::apply("amqp");
        let plan = words[1..].iter().map(String::as_str).filter(|word| *word != "-y");
        let output = fixture.topo.run(["plan"].into_iter().chain(plan));
        output.says("a shovel from the interrupted run is still moving messages from q").then_some(output)
    });
    output.expect_text("this user is not allowed to delete it").expect_text("apply as a user with the policymaker tag");
    let output = fixture.migrate("amqp", &[]).expect_code(3);
    assert_eq!((objects(&fixture.vhost), shovels(&fixture)), (before, 1), "{output}");
    let fixture = fixture.by_guest();
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    let duplicated = duplicates(emptied(&fixture.vhost, Q), publisher.published(), &output.to_string());
    assert!(duplicated <= PREFETCH, "{duplicated} duplicates: {output}");
}

#[test]
fn refused_new_queue_rolls_back_after_the_deletion() {
    let (mut fixture, proxy) = Fixture::new("gone", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    let path = format!("/api/queues/{}/{Q}", fixture.vhost.name());
    // The names of the holding queues and of a probe begin with the name of the queue.
    proxy.add(puts().path(&path).nth(4), Fault::HangBefore);
    assert!(killed_before(4, &proxy, fixture.start("shovel")));
    assert!(proxy.requests().last().is_some_and(|last| last.path == path) && fixture.vhost.queue(Q).is_null());
    fixture.unlock();
    proxy.reset();
    proxy.add(puts().path(&path).first(1), Fault::Status(400));
    let output = fixture.migrate("shovel", &[]).expect_code(1);
    assert!(output.says("could not be completed and was rolled back: all messages have returned"), "{output}");
    fixture.directly();
    fixture.expect_as_before(&output);
    let duplicated = duplicates(emptied(&fixture.vhost, Q), publisher.published(), &output);
    assert!(duplicated <= PREFETCH, "{duplicated} duplicates: {output}");
    fixture.migrate("shovel", &[]).expect_code(0);
    fixture.expect_migrated(&output);
}
