//! Tests the lock of an apply: one apply runs, and the other applies report its holder. Every apply releases its lock.
//! An apply that has lost its lock makes no further changes, except that it completes a started recreation.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::random::is_long;
use crate::support::{Fault, Gate, Node, Output, Proxy, Running, Topo, Vhost, deletes, gets, posts, puts, until};

pub(super) const SPEC: &str = "\
owns: ['*']
exchanges: {orders: {type: topic}}
queues: {orders.work: {type: classic}}
bindings: [{source: orders, destination: orders.work, routingKey: 'order.#'}]
";

/// Returns a proxy that delays the binding request until the gate opens, so that the lock is held until then.
fn gated() -> (Proxy, Gate) {
    let gate = Gate::default();
    (Proxy::to(Node::shared()).on(posts(), gate.fault()), gate)
}

fn through(proxy: &Proxy, vhost: &Vhost<'_>) -> Topo {
    Topo::new(vhost).through(proxy).spec(SPEC)
}

fn until_locked(vhost: &Vhost<'_>, queue: &str) {
    until("the lock", || vhost.queue(queue)["arguments"]["x-topo-holder"].is_string().then_some(()));
}

/// A lease that is longer than a test.
pub(super) const LONG: Duration = Duration::from_secs(600);

/// Declares the lock queue of another apply.
pub(super) fn put_lock(vhost: &Vhost<'_>, queue: &str, holder: &str, lease: Duration) {
    vhost.http().put(&vhost.path("queues", &[queue]), &lock_of(holder, lease)).expect_status(201);
}

pub(super) fn lock_of(holder: &str, lease: Duration) -> Value {
    let arguments = json!({
        "x-queue-type": "classic",
        "x-expires": u64::try_from(lease.as_millis()).unwrap(),
        "x-topo-holder": holder,
        "x-topo-token": format!("{holder}'s"),
    });
    json!({"durable": true, "auto_delete": false, "arguments": arguments})
}

fn is_done(vhost: &Vhost<'_>) {
    assert_eq!(vhost.names("queues"), ["orders.work"]);
    assert_eq!(vhost.list("bindings").len(), 1);
}

/// Starts this number of applies simultaneously. Exactly one of them changes the broker.
fn race(contenders: usize) {
    let vhost = Node::shared().vhost("race");
    let (proxy, gate) = gated();
    let topos: Vec<Topo> = (0..contenders).map(|_| through(&proxy, &vhost)).collect();
    // The timeout exceeds the delay, so that topo does not retry the delayed request.
    let mut runs: Vec<_> = topos.iter().map(|topo| topo.start(["apply", "--yes", "--timeout", "170s"])).collect();
    // An apply that starts after the first apply has finished succeeds, too.
    until("the others to be over", || {
        let over = runs.iter_mut().map(|run| usize::from(run.is_over())).sum::<usize>();
        (over + 1 >= contenders).then_some(())
    });
    gate.open();
    let pids: Vec<u32> = runs.iter().map(Running::pid).collect();
    let outputs: Vec<Output> = runs.into_iter().map(Running::wait).collect();
    let winners: Vec<u32> =
        outputs.iter().zip(&pids).filter(|(output, _)| output.code == Some(0)).map(|(_, pid)| *pid).collect();
    assert_eq!(winners.len(), 1, "{}", outputs.iter().map(ToString::to_string).collect::<String>());
    for output in outputs.into_iter().filter(|output| output.code != Some(0)) {
        let held = format!("vhost {} is locked by ", vhost.name());
        let output = output.expect_code(6).expect_error(&held).expect_text("--lock-timeout");
        assert!(output.stderr.contains(&format!("pid {},", winners[0])), "{output}");
    }
    is_done(&vhost);
    assert_eq!(proxy.count(&posts()), 1);
}

#[test]
fn one_of_two_concurrent_applies_runs() {
    race(2);
}

#[test]
fn one_of_eight_concurrent_applies_runs() {
    race(8);
}

#[test]
fn waiting_apply_completes_or_does_nothing() {
    let vhost = Node::shared().vhost("patience");
    let (first, gate) = gated();
    let topo = through(&first, &vhost);
    let running = topo.start(["apply", "--yes"]);
    until_locked(&vhost, "topo.lock");
    let roads = [(); 2].map(|()| Proxy::to(Node::shared()));
    let same = through(&roads[0], &vhost);
    let more = through(&roads[1], &vhost);
    more.rewrite("queues: {orders.mail: {type: classic}, orders.work: {type: classic}}");
    let waiting = [&same, &more].map(|topo| topo.start(["apply", "--yes", "--lock-timeout", "2m"]));
    for road in &roads {
        until("a read of the lock", || (road.count(&gets().path("topo.lock")) > 0).then_some(()));
    }
    gate.open();
    running.wait().expect_code(0);
    for output in waiting.map(Running::wait) {
        let output = output.expect_code(0).expect_text("Verified: the broker matches the spec.");
        let waits = format!("waiting for the lock of vhost {}, held by ", vhost.name());
        assert!(output.stderr.contains(&waits) && output.stderr.matches(&waits).count() == 1, "{output}");
    }
    assert_eq!(vhost.names("queues"), ["orders.mail", "orders.work"]);
    // `--lock-timeout` limits the wait.
    put_lock(&vhost, "topo.lock", "me@far-away", LONG);
    let begun = Instant::now();
    vhost.http().delete(&vhost.path("exchanges", &["orders"])).expect_status(204);
    let output = same.run(["apply", "--yes", "--lock-timeout", "2s"]).expect_code(6);
    output.expect_error("is locked by me@far-away");
    assert!(begun.elapsed() >= Duration::from_secs(2));
}

#[test]
fn lock_of_a_killed_apply_expires() {
    let vhost = Node::shared().vhost("killed-apply");
    let proxy = Proxy::to(Node::shared()).on(posts(), Fault::HangBefore);
    let topo = through(&proxy, &vhost);
    let running = topo.start(["apply", "--yes"]);
    until("a request that hangs", || proxy.hangs().then_some(()));
    let pid = running.pid();
    running.signal("KILL");
    assert_eq!(running.wait().code, None);
    let other = Topo::new(&vhost).spec("queues: {late: {type: classic}}");
    let output = other.run(["apply", "--yes"]).expect_code(6).expect_error(&format!("pid {pid},"));
    output.expect_text("the lock of a crashed holder expires within a minute");
    assert!(vhost.queue("late").is_null());
    assert_eq!(vhost.queue("topo.lock")["arguments"]["x-expires"], 60_000);
}

#[test]
fn expired_lock_is_free() {
    let vhost = Node::shared().vhost("lease");
    put_lock(&vhost, "topo.lock", "me@crashed", Duration::from_secs(15));
    let topo = Topo::new(&vhost).spec(SPEC);
    topo.run(["apply", "--yes"]).expect_code(6).expect_error("is locked by me@crashed");
    let begun = Instant::now();
    topo.run(["apply", "--yes", "--lock-timeout", "2m"]).expect_code(0);
    assert!(begun.elapsed() < Duration::from_secs(60), "a read must not renew the lease: {:?}", begun.elapsed());
    is_done(&vhost);
}

/// Two applies detect that the node of a lock is down. The first apply replaces the lock before the second one deletes
/// it. Runs only in the long form, because the takeover takes a minute.
#[test]
fn takeover_of_a_replaced_lock_is_refused() {
    if !is_long() {
        return;
    }
    let (vhost, first) = (Node::shared().vhost("down"), Node::shared().vhost("down-alone"));
    for vhost in [&vhost, &first] {
        put_lock(vhost, "topo.lock", "me@down", LONG);
    }
    let node = vhost.queue("topo.lock")["node"].clone();
    let down = || {
        let node = node.clone();
        let nodes = Fault::Instead(Box::new(move || json!([{"name": node, "running": false}])));
        Proxy::to(Node::shared()).on(gets().path("/api/nodes"), nodes)
    };
    let alone = down();
    let run_timeout = Duration::from_secs(200);
    let waiting = through(&alone, &first).timeout(run_timeout);
    let running = waiting.start(["apply", "--yes", "--lock-timeout", "90s"]);
    let (path, other) = (vhost.path("queues", &["topo.lock"]), vhost.http());
    let proxy = down();
    let name = vhost.name().to_owned();
    let meanwhile = move || {
        other.delete(&path).expect_status(204);
        let lock = json!({"durable": true, "arguments": {"x-topo-holder": "me@first", "x-topo-token": "first"}});
        other.put(&path, &lock).expect_status(201);
    };
    proxy.add(puts().path("topo.lock.topo.deleting"), Fault::Meanwhile(Box::new(meanwhile)));
    let begun = Instant::now();
    let topo = through(&proxy, &vhost).timeout(run_timeout);
    let output = topo.run(["apply", "--yes", "--lock-timeout", "75s"]).expect_code(6);
    assert!(begun.elapsed() > Duration::from_secs(60));
    output.expect_error(&format!("vhost {name} is locked by me@first"));
    assert_eq!(proxy.count(&deletes().path("/topo.lock")), 1, "of its right to take it away");
    assert_eq!(vhost.queue("topo.lock")["arguments"]["x-topo-holder"], "me@first");
    // The waiting apply acquires the lock.
    running.wait().expect_code(0);
    is_done(&first);
}

#[test]
fn apply_that_lost_its_lock_changes_nothing_more() {
    for taken_over in [true, false] {
        let vhost = Node::shared().vhost("stolen");
        let (http, path) = (vhost.http(), vhost.path("queues", &["topo.lock"]));
        let steal = move || {
            http.delete(&path).expect_status(204);
            if taken_over {
                http.put(&path, &lock_of("me@thief", LONG)).expect_status(201);
            }
        };
        let meanwhile = Fault::Meanwhile(Box::new(steal));
        let proxy = Proxy::to(Node::shared()).on(puts().path("/exchanges/").nth(1), meanwhile);
        let output = through(&proxy, &vhost).run(["apply", "--yes"]).expect_code(4);
        let output = output.expect_error("stopped halfway: 1 of 3 steps done, 1 failed, 1 not attempted");
        let why = if taken_over { "it is held by me@thief" } else { "it had expired or was deleted" };
        let output = output.expect_text(&format!("the lock on vhost {} was lost: ", vhost.name())).expect_text(why);
        assert!(output.stdout.contains("not attempted bind"), "{output}");
        assert!(vhost.queue("orders.work").is_null() && vhost.list("bindings").is_empty());
        // topo does not delete the lock of another holder.
        assert_eq!(!vhost.queue("topo.lock").is_null(), taken_over);
    }
}

#[test]
fn lost_lock_does_not_leave_a_recreated_queue_deleted() {
    let vhost = Node::shared().vhost("stolen-recreate");
    Topo::new(&vhost).spec(SPEC).run(["apply", "--yes"]).expect_code(0);
    let (http, path) = (vhost.http(), vhost.path("queues", &["topo.lock"]));
    let steal = Fault::Meanwhile(Box::new(move || drop(http.delete(&path).expect_status(204))));
    let proxy = Proxy::to(Node::shared()).on(deletes().path("/orders.work").first(1), steal);
    let changed = SPEC.replace("{type: classic}", "{type: classic, maxLength: 5, onConflict: ifEmpty}");
    let topo = Topo::new(&vhost).through(&proxy).spec(&changed);
    topo.run(["apply", "--yes", "--allow=routing-gap"]).expect_code(0);
    assert_eq!(vhost.queue("orders.work")["arguments"]["x-max-length"], 5);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0);
}

#[test]
fn locks_with_different_names_are_independent() {
    let vhost = Node::shared().vhost("name");
    put_lock(&vhost, "topo.lock", "me@elsewhere", LONG);
    let (proxy, gate) = gated();
    let topo = through(&proxy, &vhost);
    let running = topo.start(["apply", "--yes", "--prune", "--lock-name", "my.lock"]);
    until_locked(&vhost, "my.lock");
    // A plan contains neither lock, even if `owns` matches all names.
    let plan = Topo::new(&vhost).spec(SPEC).run(["plan", "--prune"]).expect_code(0);
    plan.expect_no_text("topo.lock").expect_no_text("my.lock");
    gate.open();
    running.wait().expect_code(0).expect_no_text("my.lock");
    assert_eq!(vhost.names("queues"), ["orders.work", "topo.lock"]);
    let plan = Topo::new(&vhost).spec(SPEC).run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0);
    plan.expect_text("No changes").expect_no_text("topo.lock");
}

#[test]
fn application_queue_is_not_a_lock() {
    let vhost = Node::shared().vhost("no-lock");
    vhost.http().put(&vhost.path("queues", &["jobs"]), &json!({"durable": true})).expect_status(201);
    let output = Topo::new(&vhost).spec(SPEC).run(["apply", "--yes", "--lock-name", "jobs"]).expect_code(6);
    output.expect_error("a queue named `jobs` that topo did not create");
    // topo deletes a lock whose node is down, but never a queue that topo did not create.
    let node = vhost.queue("jobs")["node"].clone();
    let nodes = Fault::Instead(Box::new(move || json!([{"name": node, "running": false}])));
    let proxy = Proxy::to(Node::shared()).on(gets().path("/api/nodes"), nodes);
    let (apply, most) =
        (["apply", "--yes", "--lock-name", "jobs", "--lock-timeout"], if is_long() { "75s" } else { "2s" });
    let topo = through(&proxy, &vhost).timeout(Duration::from_secs(200));
    let output = topo.run(apply.into_iter().chain([most])).expect_code(6);
    output.expect_error("a queue named `jobs` that topo did not create").expect_no_text("topo deletes the lock");
    assert_eq!(proxy.count(&deletes()), 0, "nothing was deleted");
    assert!(!vhost.queue("jobs").is_null());
}

#[test]
fn lock_is_released_after_every_outcome() {
    let vhost = Node::shared().vhost("gone");
    let user = Node::shared().user("management").may(&vhost, "^(?!orders.work).*", ".*", ".*");
    Topo::new(&vhost).user(&user).spec(SPEC).run(["apply", "--yes"]).expect_code(4);
    assert!(vhost.queue("topo.lock").is_null());
    for signal in ["INT", "TERM"] {
        let (proxy, gate) = gated();
        let topo = through(&proxy, &vhost);
        topo.rewrite(&format!("{SPEC}policies: {{after-{signal}: {{pattern: x, definition: {{max-length: 1}}}}}}"));
        let running = topo.start(["apply", "--yes", "--allow", "message-drop"]);
        until("the slow request", || (proxy.count(&posts()) > 0).then_some(()));
        running.interrupt(signal);
        gate.open();
        let output = running.wait();
        // If the step in progress was the last step, all steps are done.
        assert!(matches!(output.code, Some(0 | 4)), "{output}");
        let output = output.expect_text("stopping after the current step");
        let is_late = output.says("The interruption came too late: all steps were already done.");
        assert_eq!(is_late, output.code == Some(0), "{output}");
        assert!(!vhost.list("bindings").is_empty(), "the step under way was finished: {output}");
        assert!(vhost.queue("topo.lock").is_null(), "{output}");
        vhost.http().delete(&vhost.path("exchanges", &["orders"])).expect_status(204);
    }
    Topo::new(&vhost).spec(SPEC).run(["apply", "--yes"]).expect_code(0);
    assert!(vhost.queue("topo.lock").is_null());
}

#[test]
fn interruption_between_steps_is_reported() {
    let vhost = Node::shared().vhost("interrupted");
    let gate = Gate::default();
    let proxy = Proxy::to(Node::shared()).on(puts().path("/exchanges/"), gate.fault());
    let topo = through(&proxy, &vhost);
    let running = topo.start(["apply", "--yes"]);
    until("the slow request", || (proxy.count(&puts().path("/exchanges/")) == 1).then_some(()));
    running.interrupt("INT");
    gate.open();
    let output =
        running.wait().expect_code(4).expect_error("interrupted: 1 of 3 steps done, 0 failed, 2 not attempted");
    assert!(output.stdout.contains("Interrupted: 1 of 3 steps done, 0 failed, 2 not attempted."), "{output}");
    assert!(vhost.names("queues").is_empty() && !vhost.exchange("orders").is_null());
}

/// If a renewal is in flight when the apply ends, its request would declare the lock again.
#[test]
fn late_renewal_does_not_redeclare_the_lock() {
    let vhost = Node::shared().vhost("late-renewal");
    let (proxy, binding) = gated();
    let (renewals, renewal) = (puts().path("/topo.lock"), Gate::default());
    let proxy = proxy.on(renewals.clone().nth(2), renewal.fault());
    let topo = through(&proxy, &vhost);
    let running = topo.start(["apply", "--yes", "--timeout", "170s"]);
    until("a renewal", || (proxy.count(&renewals) > 1).then_some(()));
    binding.open();
    until("the last step", || (!vhost.list("bindings").is_empty()).then_some(()));
    // Waits longer than an apply that does not wait for the renewal.
    thread::sleep(Duration::from_secs(2));
    renewal.open();
    running.wait().expect_code(0);
    thread::sleep(Duration::from_secs(1));
    is_done(&vhost);
}

/// All steps are done, and only the release hangs. Five attempts of 30 s would exceed the lease.
#[test]
fn unreleasable_lock_expires() {
    let vhost = Node::shared().vhost("unreleased");
    let releases = deletes().path("/topo.lock");
    let proxy = Proxy::to(Node::shared()).on(releases.clone(), Fault::HangBefore);
    let began = Instant::now();
    let output = through(&proxy, &vhost).run(["apply", "--yes"]).expect_code(0);
    let taken = began.elapsed();
    println!("over after {taken:?}, {} attempts", proxy.count(&releases));
    assert!(proxy.count(&releases) > 1, "{output}");
    assert!(taken < Duration::from_secs(120), "{taken:?}");
    let output = output.expect_text("warning: the lock was not released; it expires within a minute: ");
    output.expect_text("did not respond to DELETE /api/queues/").expect_text("Verified: the broker matches the spec.");
    until("the end of its lease", || vhost.queue("topo.lock").is_null().then_some(()));
    is_done(&vhost);
}

#[test]
fn second_interruption_ends_immediately() {
    let vhost = Node::shared().vhost("insisting");
    let proxy = Proxy::to(Node::shared()).on(posts(), Fault::HangBefore);
    let topo = through(&proxy, &vhost);
    let mut running = topo.start(["apply", "--yes"]);
    until("a request that hangs", || proxy.hangs().then_some(()));
    let begun = Instant::now();
    until("the end", || {
        running.signal("INT");
        running.is_over().then_some(())
    });
    // A single attempt of the request would take 30 s.
    assert!(begun.elapsed() < Duration::from_secs(25));
    running.wait().expect_code(4).expect_error("stopped immediately").expect_text("the lock was not released");
}

#[test]
fn wait_for_the_lock_can_be_interrupted() {
    let vhost = Node::shared().vhost("no-patience");
    put_lock(&vhost, "topo.lock", "me@elsewhere", LONG);
    let proxy = Proxy::to(Node::shared());
    let topo = through(&proxy, &vhost);
    let running = topo.start(["apply", "--yes", "--lock-timeout", "5m"]);
    until("the second read", || (proxy.count(&gets().path("topo.lock")) > 1).then_some(()));
    let begun = Instant::now();
    running.signal("INT");
    let output = running.wait().expect_code(130).expect_error("is locked by me@elsewhere");
    output.expect_text("nothing was changed");
    println!("ended after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(60), "immediately, not after five minutes");
}

#[test]
fn missing_lock_permission_suggests_another_name() {
    let vhost = Node::shared().vhost("no-permission");
    let user = Node::shared().user("management").may(&vhost, "^orders", ".*", ".*");
    let topo = Topo::new(&vhost).user(&user).spec(SPEC);
    let output = topo.run(["apply", "--yes"]).expect_code(1).expect_error("Access refused.");
    let output =
        output.expect_text("caused by: topo uses the queue topo.lock as a lock").expect_text("--lock-name NAME");
    // The suggested command keeps all existing permissions.
    let command = format!(
        "rabbitmqctl set_permissions -p {} {} '^topo\\.lock$|CONFIGURE' 'WRITE' 'READ'",
        vhost.name(),
        user.name
    );
    output.expect_text(&command).expect_no_text("'.*'");
    topo.run(["apply", "--yes", "--lock-name", "orders.lock"]).expect_code(0);
    is_done(&vhost);
    vhost.http().delete(&vhost.path("queues", &["orders.work"])).expect_status(204);
    let user = user.may(&vhost, "^topo\\.lock$|^orders", ".*", ".*");
    Topo::new(&vhost).user(&user).spec(SPEC).run(["apply", "--yes"]).expect_code(0);
    is_done(&vhost);
}
