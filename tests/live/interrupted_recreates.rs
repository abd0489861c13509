//! Kills a recreation at every request. The next apply completes the recreation and restores every unmanaged binding.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapin::options::ExchangeDeclareOptions;

use super::ownership::objects;
use crate::support::topic_permissions::{khepri, permissions, restrict};
use crate::support::{Amqp, Argument, Fault, NONE, Node, Proxy, Topo, Vhost, any, cases, deletes, seed, until};

/// An object to recreate, with its dependents.
struct RecreateCase {
    hint: &'static str,
    /// Returns the node for this case, or `None` if its version does not support the case.
    node: fn() -> Option<&'static Node>,
    spec: &'static str,
    /// Flags that the second run omits, as a user may.
    flags: &'static [&'static str],
    prepare: fn(&Amqp),
    /// Objects that exist only after the apply.
    new: &'static [&'static str],
    is_new: fn(&Vhost<'_>) -> bool,
}

const SHORT: ExchangeDeclareOptions =
    ExchangeDeclareOptions { auto_delete: true, durable: true, internal: false, nowait: false, passive: false };

const QUEUE: RecreateCase = RecreateCase {
    hint: "killed-queue",
    node: || Some(Node::shared()),
    spec: "exchanges:\n  mine: {type: topic}\n  lonely: {external: true}\nqueues:\n  q:\n    type: classic\n    \
           maxLength: 2\n    onConflict: ifEmpty\n    bindings:\n      - {exchange: mine, routingKey: new}\n      \
           - {exchange: mine, routingKey: old}\n      - {exchange: lonely, routingKey: k}\n",
    flags: &["--allow=routing-gap"],
    prepare: |amqp| {
        amqp.declare_queue("q", &[("x-max-length", Argument::LongInt(1))]).unwrap();
        amqp.declare_exchange("mine", "topic", NONE).unwrap();
        amqp.bind_queue("mine", "q", "old", NONE);
        amqp.bind_queue("amq.topic", "q", "unmanaged", NONE);
        amqp.bind_queue("amq.headers", "q", "", &[("n", Argument::LongInt(1))]);
        // The queue is bound to two auto-delete exchanges: one is unmanaged, and the spec declares the binding of the
        // other.
        for (exchange, key) in [("passing", "theirs"), ("lonely", "k")] {
            amqp.declare_exchange_as(exchange, "topic", SHORT, NONE).unwrap();
            amqp.bind_queue(exchange, "q", key, NONE);
        }
    },
    new: &["mine -new-> queue q"],
    is_new: |vhost| vhost.queue("q")["arguments"]["x-max-length"] == 2,
};

const EXCHANGE: RecreateCase = RecreateCase {
    hint: "killed-exchange",
    node: || Some(Node::shared()),
    spec: "exchanges:\n  hub: {type: direct, onConflict: discard}\nqueues:\n  q: {type: classic, bindings: [{exchange: \
           hub, routingKey: mine}]}\n",
    flags: &["--allow=routing-gap"],
    prepare: |amqp| {
        amqp.declare_exchange("hub", "topic", NONE).unwrap();
        amqp.declare_exchange_as("passing", "topic", SHORT, NONE).unwrap();
        amqp.declare_queue("q", NONE).unwrap();
        amqp.bind_queue("hub", "q", "mine", NONE);
        amqp.bind_queue("hub", "q", "theirs", NONE);
        amqp.bind_exchange("amq.topic", "hub", "in", NONE);
        amqp.bind_exchange("passing", "hub", "in", NONE);
        amqp.bind_exchange("hub", "amq.fanout", "out", NONE);
    },
    new: &[],
    is_new: |vhost| vhost.exchange("hub")["type"] == "direct",
};

/// A broker with Khepri deletes topic permissions together with the exchange.
const RESTRICTED: RecreateCase = RecreateCase {
    hint: "killed-restricted",
    node: khepri,
    spec: "exchanges:\n  hub: {type: topic, alternateExchange: amq.fanout, onConflict: discard}\nqueues:\n  q: {type: \
           classic, bindings: [{exchange: hub, routingKey: mine}]}\n",
    flags: &["--allow=routing-gap"],
    prepare: |amqp| {
        amqp.declare_exchange("hub", "topic", NONE).unwrap();
        amqp.declare_queue("q", NONE).unwrap();
        amqp.bind_queue("hub", "q", "mine", NONE);
    },
    new: &[],
    is_new: |vhost| vhost.exchange("hub")["arguments"]["alternate-exchange"] == "amq.fanout",
};

impl RecreateCase {
    fn begin(&self) -> (Vhost<'static>, BTreeSet<String>, Proxy) {
        let node = (self.node)().expect("a version that can");
        let vhost = node.vhost(self.hint);
        (self.prepare)(&vhost.amqp());
        if !vhost.exchange("hub").is_null() {
            restrict(&vhost, "guest", "hub", "^mine$");
        }
        let mut expected = self.state(&vhost);
        expected.extend(self.new.iter().map(|line| (*line).to_owned()));
        (vhost, expected, Proxy::to(node))
    }

    /// Returns all objects and topic permissions.
    fn state(&self, vhost: &Vhost<'_>) -> BTreeSet<String> {
        let mut state = objects(vhost);
        state.extend(permissions(vhost));
        state
    }

    fn topo(&self, vhost: &Vhost<'_>) -> Topo {
        Topo::new(vhost).spec(self.spec)
    }

    fn apply(&self) -> Vec<&'static str> {
        ["apply", "-y"].iter().chain(self.flags).copied().collect()
    }

    /// Returns the methods of all requests of an uninterrupted run.
    fn requests(&self) -> Vec<String> {
        let (vhost, expected, proxy) = self.begin();
        self.topo(&vhost).through(&proxy).run(self.apply()).expect_code(0);
        assert_eq!(self.state(&vhost), expected);
        assert!((self.is_new)(&vhost));
        proxy.requests().into_iter().map(|request| request.method).collect()
    }

    /// Kills a run at its n-th request, and runs topo again. Returns true if the object was missing after the kill.
    /// Returns `None` if there was no such request, because a slow run renews its lock more often.
    fn killed_at(&self, n: usize, after: bool) -> Option<bool> {
        let (vhost, expected, proxy) = self.begin();
        proxy.add(any().nth(n), if after { Fault::HangAfter } else { Fault::HangBefore });
        let topo = self.topo(&vhost).through(&proxy);
        let mut running = topo.start(self.apply());
        until("a request that hangs", || (proxy.hangs() || running.is_over()).then_some(()));
        if !proxy.hangs() {
            running.wait().expect_code(0);
            return None;
        }
        running.signal("KILL");
        assert_eq!(running.wait().code, None);
        proxy.wait_until_idle();
        let between = self.state(&vhost);
        let last = proxy.requests().pop();
        let context = || format!("killed at request {n} ({last:?}, done: {after}); then there was {between:#?}");
        let was_away = expected.difference(&between).any(|line| !self.new.contains(&line.as_str()));
        assert!(!was_away || between.iter().any(|line| line.ends_with(".topo.keep")), "{}", context());

        // The lease would expire, but the test does not wait for a minute.
        let lock = vhost.path("queues", &["topo.lock"]);
        assert!(matches!(vhost.http().delete(&lock).status, 204 | 404));
        let again = self.topo(&vhost).run(self.apply());
        assert_eq!(again.code, Some(0), "{}\n{again}", context());
        assert_eq!(self.state(&vhost), expected, "{}\n{again}", context());
        assert!((self.is_new)(&vhost), "{}", context());
        let plan = self.topo(&vhost).run(["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, Some(0), "{}\n{plan}", context());
        Some(was_away)
    }

    fn killed_everywhere(&self) {
        let requests = self.requests();
        // A kill at a read changes nothing on the broker, so a short run tests only some of the reads.
        let stride = cases(4, 1);
        let is_drawn = |index: usize| (index as u64 + seed()).is_multiple_of(stride as u64);
        let mut points = Vec::new();
        for (index, method) in requests.iter().enumerate() {
            match method.as_str() {
                "GET" if is_drawn(index) => points.push((index + 1, false)),
                "GET" => {}
                _ => points.extend([(index + 1, false), (index + 1, true)]),
            }
        }
        let (away, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let rest = Mutex::new(points.clone());
        // The kills run concurrently, because a run spends most of its time waiting for vhosts and processes.
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let Some((n, after)) = rest.lock().unwrap().pop() else { break };
                        match self.killed_at(n, after) {
                            Some(was_away) => away.fetch_add(usize::from(was_away), Ordering::Relaxed),
                            None => over.fetch_add(1, Ordering::Relaxed),
                        };
                    }
                });
            }
        });
        let (away, over) = (away.into_inner(), over.into_inner());
        println!(
            "{}: {} requests, killed {} times, {away} times with something away; {over} times over before",
            self.hint,
            requests.len(),
            points.len() - over
        );
        assert!(away >= 2 && over <= 6, "{away} {over}");
    }
}

#[test]
fn killed_queue_recreate_is_completed() {
    QUEUE.killed_everywhere();
}

#[test]
fn killed_exchange_recreate_is_completed() {
    EXCHANGE.killed_everywhere();
}

#[test]
fn killed_recreate_restores_topic_permissions() {
    if khepri().is_some() {
        RESTRICTED.killed_everywhere();
    }
}

/// Kills a run immediately after the deletion.
fn killed_when_deleted(recreate_case: &RecreateCase, arguments: &[&str]) -> (Vhost<'static>, BTreeSet<String>, Topo) {
    let (vhost, expected, proxy) = recreate_case.begin();
    let topo = recreate_case.topo(&vhost).through(&proxy);
    topo.run(["plan", "--out=plan.json"]).expect_code(0);
    proxy.add(deletes().path(&format!("/{}/q?", vhost.name())).nth(1), Fault::HangAfter);
    let running = topo.start(arguments.iter().copied());
    until("a request that hangs", || proxy.hangs().then_some(()));
    running.signal("KILL");
    assert_eq!(running.wait().code, None);
    proxy.wait_until_idle();
    assert_eq!(vhost.names("queues"), ["topo.lock"]);
    vhost.http().delete(&vhost.path("queues", &["topo.lock"])).expect_status(204);
    (vhost, expected, topo.url(&Node::shared().url()))
}

#[test]
fn saved_plan_completes_a_killed_recreate() {
    let apply = ["apply", "--plan=plan.json", "--allow=routing-gap"];
    let (vhost, expected, topo) = killed_when_deleted(&QUEUE, &apply);
    // The URL of the proxy differs from the URL in the plan.
    let again = apply.into_iter().chain(["--allow-other-broker"]);
    topo.run(again).expect_code(0).expect_text("an earlier recreation of queue q was interrupted");
    assert_eq!(objects(&vhost), expected);
    assert!((QUEUE.is_new)(&vhost));
}

#[test]
fn pruned_bindings_are_not_restored() {
    let (vhost, expected, topo) = killed_when_deleted(&QUEUE, &QUEUE.apply());
    topo.rewrite(&format!("owns: [\"*\"]\n{}", QUEUE.spec));
    let mut prune = QUEUE.apply();
    prune.push("--prune=bindings");
    topo.run(prune).expect_code(0);
    let theirs = ["amq.topic -unmanaged-> queue q", "amq.headers -{\"n\":1}-> queue q"].map(str::to_owned).into();
    let left = objects(&vhost);
    assert!(left.is_disjoint(&theirs) && left.contains("mine -new-> queue q"), "{left:?}");
    // topo never changes auto-delete exchanges and their bindings.
    assert!(left.contains("passing -theirs-> queue q"), "{left:?}");
    assert!(left.contains("lonely -k-> queue q") && !left.iter().any(|line| line.contains(".topo.")), "{left:?}");
    assert!(left.is_subset(&expected));
    let again = topo.run(["plan", "--prune=bindings", "--detailed-exitcode"]);
    assert_eq!(again.code, Some(0), "{again}");
}
