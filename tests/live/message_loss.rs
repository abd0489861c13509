//! Tests that topo deletes no message without an allowance, regardless of what the broker reports, omits or receives.

use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{
    Amqp, Argument, Fault, Http, NONE, Node, Proxy, Topo, Vhost, any, deletes, gets, posts, text, until,
};

/// The additional allowances for the recreation of a queue.
const ALL_BUT_LOSS: &str = "--allow=routing-gap,consumer-disruption";
const LOSS: &str = "--allow=message-loss";
/// The list with message totals.
const TOTALS: &str = "enable_queue_totals";

/// A queue whose TTL differs from the spec.
struct Scene<'a> {
    vhost: Vhost<'a>,
    amqp: Amqp,
    proxy: Proxy,
    topo: Topo,
}

impl Scene<'_> {
    fn of(kind: &str) -> Self {
        Self::on(Node::shared(), kind)
    }

    fn on(node: &'static Node, kind: &str) -> Self {
        let vhost = node.vhost("loss");
        let amqp = vhost.amqp();
        let live = [("x-queue-type", text(kind)), ("x-max-length-bytes", Argument::LongLongInt(1_000_000))];
        amqp.declare_queue("q", &live).unwrap();
        let proxy = Proxy::to(node);
        let spec = format!("queues:\n  q: {{type: {kind}, maxLengthBytes: 2MB}}\n");
        let topo = Topo::new(&vhost).through(&proxy).spec(&spec);
        Self { vhost, amqp, proxy, topo }
    }

    fn with(kind: &str, messages: usize) -> Self {
        let scene = Self::of(kind);
        scene.amqp.fill("q", messages);
        scene
    }

    /// Returns `--recreate=queues/VHOST/q=HOW`.
    fn recreate(&self, how: &str) -> String {
        format!("--recreate=queues/{}/q={how}", self.vhost.name())
    }

    fn is_recreated(&self) -> bool {
        self.vhost.queue("q")["arguments"]["x-max-length-bytes"] == 2_000_000
    }

    #[track_caller]
    fn is_as_it_was(&self, ready: u32) {
        assert!(!self.is_recreated());
        assert_eq!(self.amqp.ready("q"), ready);
        assert_eq!(self.vhost.names("queues"), ["q"], "no lock is left");
        assert_eq!(self.vhost.names("exchanges"), [""; 0], "no object of topo is left");
    }

    #[track_caller]
    fn nothing_was_written(&self) {
        assert_eq!(self.proxy.count(&any()), self.proxy.count(&gets()), "{:?}", self.proxy.requests());
    }

    /// Returns the number of DELETE requests for the queue.
    fn deletions(&self) -> usize {
        self.proxy.count(&deletes().path(&format!("/{}/q", self.vhost.name())))
    }

    /// Returns a function that publishes over a second connection, for a fault.
    fn publisher(&self) -> Box<dyn FnMut() + Send> {
        let amqp = self.vhost.amqp();
        Box::new(move || amqp.fill("q", 1))
    }

    /// Returns a fault that removes the counts from the list of totals.
    fn countless(&self) -> Fault {
        let http = Http::to(&self.vhost.node().url(), "guest", "guest");
        let path = format!("{}?disable_stats=true&{TOTALS}=true", self.vhost.path("queues", &[]));
        Fault::Instead(Box::new(move || {
            let mut list = http.get(&path).expect_status(200);
            for queue in list.as_array_mut().into_iter().flatten() {
                queue.as_object_mut().unwrap().retain(|key, _| !key.starts_with("messages"));
            }
            list
        }))
    }
}

fn hazards(plan: &Value) -> Vec<&str> {
    let hazards = plan["vhosts"][0]["hazards"].as_array().expect("a list");
    hazards.iter().filter_map(|hazard| hazard["kind"].as_str()).collect()
}

#[test]
fn message_loss_requires_allow() {
    let scene = Scene::with("classic", 1);
    let discard = scene.recreate("discard");
    let refused = scene.topo.run(["apply", "-y", &discard, ALL_BUT_LOSS]).expect_code(3);
    let flag = format!("--allow message-loss@queues/{}/q", scene.vhost.name());
    refused.expect_text("1 message will be deleted").expect_text(&flag).expect_text("nothing was changed");
    scene.nothing_was_written();
    scene.is_as_it_was(1);
    // The result is the same with `onConflict` in the spec.
    scene.topo.rewrite("queues:\n  q: {type: classic, maxLengthBytes: 2MB, onConflict: discard}\n");
    scene.topo.run(["apply", "-y", ALL_BUT_LOSS]).expect_code(3).expect_text(&flag);
    scene.nothing_was_written();
    scene.topo.run(["apply", "-y", ALL_BUT_LOSS, LOSS]).expect_code(0);
    assert!(scene.is_recreated());
    assert_eq!((scene.amqp.ready("q"), scene.deletions()), (0, 1));
    scene.topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn unknown_count_requires_allow() {
    let scene = Scene::with("classic", 2);
    scene.proxy.add(gets().path(TOTALS), scene.countless());
    let discard = scene.recreate("discard");
    let plan = scene.topo.run(["plan", "--format=json", &discard]).expect_code(0).plan();
    assert_eq!(hazards(&plan), ["message-loss", "routing-gap"]);
    assert_eq!(plan["vhosts"][0]["hazards"][0].get("messages"), None);
    for allowed in [ALL_BUT_LOSS, "--allow=message-loss:1000,routing-gap", "--allow=message-loss:1000"] {
        let refused = scene.topo.run(["apply", "-y", &discard, ALL_BUT_LOSS, allowed]);
        if allowed.contains("1000,") {
            refused.expect_code(64);
        } else {
            refused.expect_code(3).expect_text("does not report the queue's message count");
        }
    }
    let refused = scene.topo.run(["apply", "-y", &scene.recreate("ifEmpty"), ALL_BUT_LOSS]).expect_code(3);
    refused.expect_text("so `ifEmpty` does not recreate the queue");
    scene.nothing_was_written();
    scene.is_as_it_was(2);
    scene.topo.run(["apply", "-y", &discard, ALL_BUT_LOSS, LOSS]).expect_code(0);
    assert!(scene.is_recreated());
}

#[test]
fn missing_count_before_the_deletion_stops_it() {
    for how in ["ifEmpty", "discard"] {
        let scene = Scene::of("classic");
        // The plan, the plan under the lock, and the guard each read the totals.
        scene.proxy.add(gets().path(TOTALS).from(3), scene.countless());
        let refused = scene.topo.run(["apply", "-y", &scene.recreate(how), ALL_BUT_LOSS]).expect_code(3);
        refused.expect_text("does not report whether it contains messages");
        assert_eq!(scene.deletions(), 0);
        scene.is_as_it_was(0);
    }
}

#[test]
fn unacknowledged_messages_count() {
    let scene = Scene::with("classic", 1);
    let held = scene.amqp.hold("q", 1);
    assert_eq!(scene.amqp.ready("q"), 0);
    let refused = scene.topo.run(["apply", "-y", &scene.recreate("discard"), ALL_BUT_LOSS]).expect_code(3);
    refused.expect_text("1 message will be deleted (it is unacknowledged)");
    let refused = scene.topo.run(["apply", "-y", &scene.recreate("ifEmpty"), ALL_BUT_LOSS]).expect_code(3);
    refused.expect_text("it contains 1 message, so `ifEmpty` does not recreate it");
    scene.nothing_was_written();
    drop(held);
    scene.vhost.until_counted("q", 1);
    scene.is_as_it_was(1);
}

#[test]
fn stream_is_never_proven_empty() {
    if !Node::shared().at_least(3, 9) {
        let spec = "queues: {q: {type: stream}}";
        let plan = Topo::new(&Node::shared().vhost("no-streams"))
            .spec(spec)
            .run(["plan", "--detailed-exitcode"])
            .expect_code(3);
        return drop(plan.expect_text("streams require RabbitMQ 3.9"));
    }
    let scene = Scene::of("stream");
    let refused = scene.topo.run(["apply", "-y", &scene.recreate("ifEmpty"), ALL_BUT_LOSS, LOSS]).expect_code(3);
    refused.expect_text("a stream cannot be proven empty");
    let discard = scene.recreate("discard");
    for allowed in [ALL_BUT_LOSS, "--allow=message-loss:1000"] {
        let refused = scene.topo.run(["apply", "-y", &discard, ALL_BUT_LOSS, allowed]).expect_code(3);
        refused.expect_text("message-loss@").expect_text("nothing was changed");
    }
    scene.nothing_was_written();
    scene.is_as_it_was(0);
    scene.topo.run(["apply", "-y", &discard, ALL_BUT_LOSS, LOSS]).expect_code(0);
    assert!(scene.is_recreated());
}

#[test]
fn allowed_number_of_messages_is_enforced() {
    let scene = Scene::with("classic", 3);
    let discard = scene.recreate("discard");
    let refused = scene.topo.run(["apply", "-y", &discard, ALL_BUT_LOSS, "--allow=message-loss:2"]).expect_code(3);
    refused.expect_text("3 messages will be deleted");
    scene.nothing_was_written();
    scene.is_as_it_was(3);
    scene.topo.run(["apply", "-y", &discard, ALL_BUT_LOSS, "--allow=message-loss:3"]).expect_code(0);
    assert!(scene.is_recreated());
}

#[test]
fn queue_that_exceeds_the_allowed_number_is_kept() {
    // The messages arrive between the displayed plan and the plan under the lock, or between that plan and the
    // deletion.
    for (look, words) in [(2, "BLOCKED by 1 hazard"), (3, "4 messages")] {
        let scene = Scene::with("classic", 3);
        scene.proxy.add(gets().path(TOTALS).nth(look), Fault::Meanwhile(scene.publisher()));
        let bound = "--allow=message-loss:3";
        let refused = scene.topo.run(["apply", "-y", &scene.recreate("discard"), ALL_BUT_LOSS, bound]).expect_code(3);
        refused.expect_text(words);
        assert_eq!(scene.deletions(), 0);
        scene.is_as_it_was(4);
    }
}

#[test]
fn late_message_prevents_the_deletion() {
    for how in ["ifEmpty", "discard"] {
        let scene = Scene::of("classic");
        scene.proxy.add(deletes().path("if-empty").nth(1), Fault::Meanwhile(scene.publisher()));
        // The allowance does not include messages that arrive after the plan.
        let apply = ["apply", "-y", &scene.recreate(how), ALL_BUT_LOSS, LOSS, "--format=json"];
        let report = scene.topo.run(apply).expect_code(3).json();
        assert_eq!(report["result"], "blocked");
        let steps = &report["vhosts"][0];
        assert_eq!((&steps["done"], steps["failed"].as_array().map(Vec::len)), (&Value::Array(Vec::new()), Some(1)));
        assert_eq!(steps["failed"][0]["what"], "delete queue q");
        assert_eq!(steps["notAttempted"][0]["what"], "declare queue q");
        assert!(
            steps["failed"][0]["error"].as_str().unwrap().contains("it contains an unknown number of messages"),
            "{report:#}"
        );
        scene.is_as_it_was(1);
    }
}

#[test]
fn refused_recreate_is_rolled_back() {
    let scene = Scene::of("classic");
    scene.amqp.bind_queue("amq.topic", "q", "unmanaged.key", NONE);
    scene.proxy.add(deletes().path("if-empty").nth(1), Fault::Meanwhile(scene.publisher()));
    let refused = scene.topo.run(["apply", "-y", &scene.recreate("ifEmpty"), ALL_BUT_LOSS]).expect_code(3);
    refused.expect_text("rolled back   declare exchange q.topo.keep").expect_text("Stopped: 0 of ");
    scene.is_as_it_was(1);
    assert_eq!(scene.vhost.list("bindings").len(), 1);
}

#[test]
fn empty_queue_with_a_consumer_is_recreated() {
    let scene = Scene::of("classic");
    let mut held = scene.amqp.hold("q", 0);
    scene.topo.run(["apply", "-y", &scene.recreate("ifEmpty"), ALL_BUT_LOSS]).expect_code(0);
    assert!(scene.is_recreated());
    // topo does not wait until the cancel of the broker arrives at the consumer.
    until("the consumer to be cancelled", || (!held.is_subscribed()).then_some(()));
}

#[test]
fn quorum_queue_is_observed_before_the_deletion() {
    let scene = Scene::of("quorum");
    scene.proxy.add(gets().path(TOTALS).nth(3), Fault::Meanwhile(scene.publisher()));
    let refused = scene.topo.run(["apply", "-y", &scene.recreate("ifEmpty"), ALL_BUT_LOSS]).expect_code(3);
    refused.expect_text("was not deleted: it contains");
    assert_eq!(scene.deletions(), 0);
    scene.is_as_it_was(1);
}

#[test]
fn quorum_queue_is_observed_for_the_allowed_number() {
    let scene = Scene::with("quorum", 2);
    scene.vhost.until_counted("q", 2);
    scene.proxy.add(gets().path(TOTALS).nth(5), Fault::Meanwhile(scene.publisher()));
    let bound = "--allow=message-loss:2";
    let refused = scene.topo.run(["apply", "-y", &scene.recreate("discard"), ALL_BUT_LOSS, bound]).expect_code(3);
    refused.expect_text("3 messages");
    assert_eq!(scene.deletions(), 0);
    scene.is_as_it_was(3);
    let bound = "--allow=message-loss:3";
    scene.topo.run(["apply", "-y", &scene.recreate("discard"), ALL_BUT_LOSS, bound]).expect_code(0);
    assert!(scene.is_recreated());
}

/// The path of `basic.get`, the last request before the deletion.
const ASKED: &str = "/q/get";

#[test]
fn message_before_the_next_tick_keeps_a_quorum_queue() {
    thread::scope(|scope| {
        for last_total in [false, true] {
            scope.spawn(move || {
                let scene = Scene::on(Node::with_default_intervals(), "quorum");
                let mut publish = scene.publisher();
                if last_total {
                    // The message arrives once, in the middle of the wait. The plans make the first two reads.
                    let (mut first, mut is_done) = (None, false);
                    let half = crate::live::transport::fixture::intervals_of(scene.vhost.node()).one_tick();
                    let late = move || {
                        let is_late = first.get_or_insert_with(Instant::now).elapsed() >= half;
                        if is_late && !std::mem::replace(&mut is_done, true) {
                            publish();
                        }
                    };
                    scene.proxy.add(gets().path(TOTALS).from(3), Fault::Meanwhile(Box::new(late)));
                } else {
                    scene.proxy.add(posts().path(ASKED).nth(1), Fault::Meanwhile(publish));
                }
                let refused = scene.topo.run(["apply", "-y", &scene.recreate("ifEmpty"), ALL_BUT_LOSS]).expect_code(3);
                refused.expect_text("was not deleted: it contains");
                assert_eq!((scene.deletions(), scene.proxy.count(&posts().path(ASKED)) <= 1), (0, true));
                scene.vhost.until_counted("q", 1);
                scene.is_as_it_was(1);
            });
        }
    });
}

#[test]
fn quorum_queue_without_read_permission_is_only_observed() {
    thread::scope(|scope| {
        scope.spawn(|| {
            let scene = Scene::of("quorum");
            let user = Node::shared().user("management").may(&scene.vhost, ".*", ".*", "^(?!q$).*");
            let topo = scene.topo.user(&user);
            topo.run(["apply", "-y", &format!("--recreate=queues/{}/q=ifEmpty", scene.vhost.name()), ALL_BUT_LOSS])
                .expect_code(0);
            assert_eq!(scene.proxy.count(&posts().path(ASKED)), 1);
            assert_eq!(scene.vhost.queue("q")["arguments"]["x-max-length-bytes"], 2_000_000);
        });
        scope.spawn(|| {
            let vhost = Node::shared().vhost("single-active");
            let arguments = [("x-queue-type", text("quorum")), ("x-single-active-consumer", Argument::Boolean(true))];
            vhost.amqp().declare_queue("q", &arguments).unwrap();
            let topo = Topo::new(&vhost).spec("removed: {queues: [q]}\n");
            topo.run(["apply", "-y", "--allow=mass-delete"]).expect_code(0);
            assert_eq!(vhost.names("queues"), [""; 0]);
        });
    });
}

#[test]
fn empty_quorum_queue_is_recreated() {
    let scene = Scene::of("quorum");
    let started = Instant::now();
    scene.topo.run(["apply", "-y", &scene.recreate("ifEmpty"), ALL_BUT_LOSS]).expect_code(0);
    assert!(
        started.elapsed() >= crate::live::transport::fixture::intervals_of(scene.vhost.node()).two_ticks(),
        "two reads, two ticks apart"
    );
    assert!(scene.is_recreated());
}

#[test]
fn removed_queues_have_the_same_guards() {
    let vhost = Node::shared().vhost("removed");
    let amqp = vhost.amqp();
    amqp.declare_queue("old", NONE).unwrap();
    amqp.declare_queue("older", NONE).unwrap();
    amqp.fill("old", 1);
    let late = vhost.amqp();
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec("removed: {queues: [old, older]}\n");
    let mass = "--allow=mass-delete";
    let refused = topo.run(["apply", "-y", mass]).expect_code(3);
    refused.expect_text(&format!("--allow message-loss@queues/{}/old", vhost.name()));
    assert_eq!(vhost.names("queues"), ["old", "older"]);
    let fill = Fault::Meanwhile(Box::new(move || late.fill("older", 1)));
    proxy.add(deletes().path("/older?").nth(1), fill);
    let loss = format!("--allow=message-loss@queues/{}/old", vhost.name());
    let stopped = topo.run(["apply", "-y", mass, &loss]).expect_code(3);
    stopped.expect_text("not attempted delete queue old");
    assert_eq!((amqp.ready("old"), amqp.ready("older")), (1, 1));
    topo.run(["apply", "-y", mass, &loss]).expect_code(3).expect_text("message-loss@");
    assert!(amqp.get("older").is_some());
    topo.run(["apply", "-y", mass, &loss]).expect_code(0);
    assert_eq!(vhost.names("queues"), [""; 0]);
}

#[test]
fn deletion_without_a_response_is_not_repeated() {
    let vhost = Node::shared().vhost("lost-answer");
    let http = vhost.http();
    let (queue, exchange) = (vhost.path("queues", &["old"]), vhost.path("exchanges", &["old"]));
    for (path, kind) in [(&queue, "queues"), (&exchange, "exchanges")] {
        let body = if kind == "queues" { json!({"durable": true}) } else { json!({"type": "fanout", "durable": true}) };
        for allowed in ["--allow=mass-delete", "--allow=mass-delete,message-loss"] {
            http.put(path, &body);
            let proxy = Proxy::to(Node::shared()).on(deletes().path("/old").nth(1), Fault::CutAfter);
            let topo = Topo::new(&vhost).through(&proxy).spec(&format!("removed: {{{kind}: [old]}}\n"));
            // The queue is missing, so the goal is reached.
            topo.run(["apply", "-y", allowed]).expect_code(0);
            assert_eq!(proxy.count(&deletes().path("/old")), 1);
            // The queue exists, but its origin is unknown.
            http.put(path, &body);
            proxy.reset();
            let (again, path, body) = (vhost.http(), path.clone(), body.clone());
            proxy.add(deletes().path("/old").nth(1), Fault::CutAfter);
            let remade = Fault::Meanwhile(Box::new(move || drop(again.put(&path, &body))));
            proxy.add(gets().path("/old?").nth(1), remade);
            let output = topo.run(["apply", "-y", allowed]);
            println!("{:?} {output}", proxy.requests());
            output.expect_text("may have executed this step");
            assert_eq!(proxy.count(&deletes().path("/old")), 1);
            assert_eq!(vhost.names(kind), ["old"]);
        }
    }
}

#[test]
fn rejected_deletion_is_retried() {
    let vhost = Node::shared().vhost("turned-away");
    vhost.amqp().declare_queue("old", NONE).unwrap();
    let proxy = Proxy::to(Node::shared()).on(deletes().path("/old").first(2), Fault::Status(503));
    let topo = Topo::new(&vhost).through(&proxy).spec("removed: {queues: [old]}\n");
    topo.run(["apply", "-y", "--allow=mass-delete"]).expect_code(0);
    assert_eq!(proxy.count(&deletes().path("/old")), 3);
}
