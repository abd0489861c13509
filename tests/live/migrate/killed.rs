//! A run that is killed, before any of its requests or at any moment, is ended by the next one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::super::ownership::objects;
use super::fixture::{
    Conversion, Fixture, Q, QUORUM, TO_QUORUM, TRANSPORTS, TTL, at_once, is_long, said_twice, there_are_quorums, twice,
};
use super::traffic::{Publisher, disorder, emptied};
use crate::support::{AmqpProxy, Fault, Proxy, Random, Running, Stop, deletes, number, puts, seed, until, writes};

/// Before it begins.
const MESSAGES: usize = 200;
/// A second, while it goes on.
const RATE: usize = 100;
/// What a transport may have under way.
const PREFETCH: usize = 1000;
/// Of a lock, in seconds.
const BETWEEN_RENEWALS: usize = 15;

/// The requests of an undisturbed run that change something, but for those that renew its lock: a run that is faster has fewer.
pub(super) fn request_count(conversion: Conversion, transport: &str) -> usize {
    let (fixture, proxy) = Fixture::new("undisturbed", conversion).through();
    let began = Instant::now();
    let output = fixture.migrate(transport, &[]).expect_code(0);
    let renewals = usize::try_from(began.elapsed().as_secs()).unwrap() / BETWEEN_RENEWALS;
    fixture.expect_migrated(&output);
    proxy.count(&writes()) - renewals
}

/// Which of so many requests: all of them in the long form, and else every so-many-th, from another first one each time.
pub(super) fn points(requests: usize, stride: usize) -> Vec<usize> {
    let first = usize::try_from(seed() % stride as u64).unwrap();
    if is_long() { (1..=requests).collect() } else { (1 + first..=requests).step_by(stride).collect() }
}

/// Kills it when it sends its n-th request; false if it came to its end before that.
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

    /// The lock of a run that was killed: its lease would end it; nobody waits a minute here.
    pub(super) fn unlock(&self) {
        let lock = self.vhost.path("queues", &["topo.lock"]);
        assert!(matches!(self.vhost.http().delete(&lock).status, 204 | 404));
    }
}

/// Whether a run that was killed may have moved a message. What it had under way then it could tell nobody.
pub(super) fn has_moved(proxy: &Proxy) -> bool {
    proxy.count(&deletes().path("/e/q.topo.tap/q/")) > 0 || proxy.count(&puts().path("/parameters/shovel/")) > 0
}

/// What one kill led to.
#[derive(Default)]
struct Tally {
    kills: AtomicUsize,
    over_before: AtomicUsize,
    twice: AtomicUsize,
    most_twice: AtomicUsize,
    late: AtomicUsize,
}

impl Tally {
    fn tell(&self, what: &str) {
        let [kills, over, doubled, most, late] =
            [&self.kills, &self.over_before, &self.twice, &self.most_twice, &self.late]
                .map(|it| it.load(Ordering::Relaxed));
        println!(
            "{what}: {kills} kills, {over} over before, {doubled} messages twice (at most {most} a run), {late} late"
        );
    }
}

/// A run is killed, and the next one, by a transport of its own, ends it.
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
        let publishing = scope.spawn(|| publisher.keep_on(RATE, &full));
        let was_killed = kill(&proxy, fixture.start(transports[0]));
        let output = was_killed.then(|| {
            fixture.unlock();
            fixture.directly();
            // A lock that was asked for before the kill may have come after that.
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
    let said = said_twice(&output);
    publisher.expect_all_taken();
    let left = emptied(&fixture.vhost, Q);
    let late = disorder(&left).late;
    let doubled = twice(left, publisher.published(), &context);
    let may_be = said + if has_moved(&proxy) { PREFETCH } else { 0 };
    assert!(doubled <= may_be, "{doubled} came twice, at most {may_be} may: {context}");
    fixture.expect_migrated(&context);
    tally.kills.fetch_add(1, Ordering::Relaxed);
    tally.twice.fetch_add(doubled, Ordering::Relaxed);
    tally.most_twice.fetch_max(doubled, Ordering::Relaxed);
    tally.late.fetch_add(late, Ordering::Relaxed);
}

/// Killed before each of these requests; every third run is gone on with by the other transport.
fn killed_everywhere(conversion: Conversion, transport: &'static str, stride: usize) {
    let requests = request_count(conversion, transport);
    let tally = Tally::default();
    let other = if transport == "amqp" { "shovel" } else { "amqp" };
    let points = points(requests, stride);
    let count = points.len();
    at_once(4, points, |n| {
        let next = if n % 3 == 0 { other } else { transport };
        killed(conversion, [transport, next], Some(n), |proxy, running| killed_before(n, proxy, running), &tally);
    });
    tally.tell(&format!("{} by {transport}, before {count} of {requests} requests", conversion.name));
    assert!(tally.over_before.into_inner() <= count / 4, "too few were killed");
}

#[test]
fn killed_before_any_request_it_is_ended_by_the_next_run() {
    killed_everywhere(TTL, "amqp", 5);
}

#[test]
fn with_a_shovel_too() {
    killed_everywhere(TTL, "shovel", 9);
}

#[test]
fn and_with_quorum_queues() {
    if !there_are_quorums() {
        return;
    }
    at_once(
        4,
        [(TO_QUORUM, "amqp"), (QUORUM, "shovel"), (TO_QUORUM, "shovel"), (QUORUM, "amqp")],
        |(conversion, transport)| {
            if is_long() || conversion.name == TO_QUORUM.name && transport == "amqp" {
                killed_everywhere(conversion, transport, 20);
            }
        },
    );
}

/// What a run does over AMQP that changes something: it deletes and declares in one write, and binds in the moment in which
/// nothing is under way.
#[test]
fn killed_at_any_method_it_is_ended_by_the_next_run() {
    let conversions = [TTL, TO_QUORUM, QUORUM].into_iter().take(if is_long() && there_are_quorums() { 3 } else { 1 });
    let tally = Tally::default();
    let cases: Vec<(Conversion, Stop)> = conversions
        .flat_map(|conversion| {
            let fixture = Fixture::new("undisturbed", conversion);
            let road = AmqpProxy::to(fixture.vhost.node(), None);
            let fixture = fixture.by_road(&road);
            let output = fixture.migrate("amqp", &[]).expect_code(0);
            fixture.expect_migrated(&output);
            let methods = road.methods();
            println!("{}: {}", conversion.name, methods.join(", "));
            // Where a quorum queue is one of the two, it may take a while until the new one may come: then it is done over HTTP.
            let swaps = methods.windows(2).any(|two| two == ["queue.delete", "queue.declare"]);
            assert!(swaps || conversion.is_slow(), "{methods:?}");
            assert_eq!(methods.last(), Some(&"queue.bind"), "{methods:?}");
            (1..=methods.len()).flat_map(move |n| [Stop::Before(n), Stop::After(n)]).map(move |stop| (conversion, stop))
        })
        .collect();
    let count = cases.len();
    at_once(4, cases, |(conversion, stop)| {
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
        killed_on(fixture.by_road(&road), ["amqp", "amqp"], None, kill, &tally);
    });
    tally.tell(&format!("{count} AMQP methods"));
    assert!(tally.over_before.into_inner() <= count / 4, "too few were killed");
}

#[test]
fn killed_at_any_moment_it_is_ended_by_the_next_run() {
    let seed = seed();
    let mut random = Random::new(seed);
    let times = number("TOPO_KILLS").unwrap_or(if is_long() { 20 } else { 3 });
    let tally = Tally::default();
    let cases: Vec<(Conversion, &str, u64)> = (0..times)
        .map(|_| {
            let slow = is_long() && there_are_quorums();
            let conversion = if slow { *random.pick(&[TTL, TO_QUORUM, QUORUM]) } else { TTL };
            let longest = if conversion.from == "quorum" { 30_000 } else { 4_000 };
            (conversion, *random.pick(&TRANSPORTS), random.next() % longest)
        })
        .collect();
    at_once(3, cases, |(conversion, transport, moment)| {
        let kill = |proxy: &Proxy, mut running: Running| {
            // The moment is the subject.
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
    tally.tell(&format!("{times} random moments, seed {seed}"));
}

#[test]
fn one_that_cannot_even_be_gone_on_with_is_said_to_stand_halfway() {
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
    let doubled = twice(emptied(&fixture.vhost, Q), publisher.published(), &output.to_string());
    assert!(doubled <= PREFETCH, "{doubled} came twice: {output}");
}

fn shovels(fixture: &Fixture<'_>) -> usize {
    let path = fixture.vhost.path("parameters/shovel", &[]);
    fixture.vhost.http().get(&path).expect_status(200).as_array().unwrap().len()
}

/// A shovel that was left goes on; whoever does not see it would move against it.
#[test]
fn a_shovel_that_was_left_is_removed_or_said_whoever_goes_on() {
    let (mut fixture, proxy) = Fixture::new("left", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    // The first is for one that another run might have left.
    proxy.add(deletes().path("/api/parameters/shovel/").nth(2), Fault::HangBefore);
    assert!(killed_before(2, &proxy, fixture.start("shovel")));
    fixture.unlock();
    fixture.directly();
    assert_eq!(shovels(&fixture), 1);
    let user = fixture.vhost.node().user("management").may_everything(&fixture.vhost);
    let fixture = fixture.by_user(&user);
    let before = objects(&fixture.vhost);
    // Consumers are listed late.
    let output = until("a plan that sees it", || {
        let words = Fixture::apply("amqp");
        let plan = words[1..].iter().map(String::as_str).filter(|word| *word != "-y");
        let output = fixture.topo.run(["plan"].into_iter().chain(plan));
        output.says("a shovel of the interrupted run still moves messages of q").then_some(output)
    });
    output.expect_text("this user may not delete it").expect_text("apply as a user with the tag policymaker");
    let output = fixture.migrate("amqp", &[]).expect_code(3);
    assert_eq!((objects(&fixture.vhost), shovels(&fixture)), (before, 1), "{output}");
    let fixture = fixture.by_guest();
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    let doubled = twice(emptied(&fixture.vhost, Q), publisher.published(), &output.to_string());
    assert!(doubled <= PREFETCH, "{doubled} came twice: {output}");
}

#[test]
fn one_that_finds_the_old_queue_gone_and_the_new_one_refused_goes_all_the_way_back() {
    let (mut fixture, proxy) = Fixture::new("gone", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    let path = format!("/api/queues/{}/{Q}", fixture.vhost.name());
    // The holding queues and a probe have names that begin like it.
    proxy.add(puts().path(&path).nth(4), Fault::HangBefore);
    assert!(killed_before(4, &proxy, fixture.start("shovel")));
    assert!(proxy.requests().last().is_some_and(|last| last.path == path) && fixture.vhost.queue(Q).is_null());
    fixture.unlock();
    proxy.reset();
    proxy.add(puts().path(&path).first(1), Fault::Status(400));
    let output = fixture.migrate("shovel", &[]).expect_code(1);
    assert!(output.says("could not be completed and was rolled back: all messages are back"), "{output}");
    fixture.directly();
    fixture.expect_as_before(&output);
    let doubled = twice(emptied(&fixture.vhost, Q), publisher.published(), &output);
    assert!(doubled <= PREFETCH, "{doubled} came twice: {output}");
    fixture.migrate("shovel", &[]).expect_code(0);
    fixture.expect_migrated(&output);
}
