//! Checks unmanaged policies together with topo's dead-lettering policies and retries. Dead-lettered messages arrive
//! regardless of other policies, and the plan reports a policy that would lose retries.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Amqp, Fault, Node, Outcome, Proxy, Topo, Vhost, posts, until};

const WIRED: &str = "queues: {work: {type: classic, deadLetter: {queue: dead, wiring: policy}}}\n\
                     deadLetterQueues: {dead: {type: classic}}\n";

fn put_policy(vhost: &Vhost<'_>, name: &str, pattern: &str, priority: i64, definition: &Value) {
    let body = json!({"pattern": pattern, "apply-to": "queues", "priority": priority, "definition": definition});
    let answer = vhost.http().put(&vhost.path("policies", &[name]), &body);
    assert!(answer.is_success(), "{answer:?}");
}

/// Checks that messages that are rejected in `work` arrive in `dead`, and that the broker reports this limit.
fn wired_with(vhost: &Vhost<'_>, amqp: &Amqp, limit: Option<i64>) {
    let seen = until("the wiring policy of the queue", || {
        let queue = vhost.queue("work");
        (queue["policy"] == "work.topo.dead-letter").then_some(queue)
    });
    until("the limit", || {
        let limits = vhost.queue("work")["effective_policy_definition"]["max-length"].as_i64();
        (limits == limit).then_some(())
    });
    assert_eq!(seen["arguments"]["x-dead-letter-exchange"], Value::Null);
    assert_eq!(amqp.publish("", "work", "poison"), Outcome::Routed);
    assert_eq!(amqp.reject("work", 1), 1);
    let dead_message = until("the dead letter", || amqp.get("dead"));
    assert_eq!(dead_message.body, b"poison");
}

#[test]
fn dead_letters_arrive_with_an_unmanaged_policy() {
    let vhost = Node::shared().vhost("beside");
    let amqp = vhost.amqp();
    put_policy(&vhost, "limits", "^work$", 7, &json!({"max-length": 100, "dead-letter-exchange": "nowhere"}));
    put_policy(&vhost, "everything", "^w", 0, &json!({"max-length": 7000}));
    let topo = Topo::new(&vhost).spec(WIRED);
    let applied = topo.run(["apply", "--yes"]).expect_code(0).expect_text("the broker matches the spec");
    applied
        .expect_text("for queue work it will take precedence over policy limits (not in this spec)")
        .expect_text("max-length 100");
    wired_with(&vhost, &amqp, Some(100));
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");

    // The unmanaged policy changes, gets a higher priority, and is deleted. The next plan adapts each time.
    put_policy(&vhost, "limits", "^work$", 7, &json!({"max-length": 50}));
    topo.run(["plan", "--detailed-exitcode"]).expect_code(2).expect_text("100 → 50");
    topo.run(["apply", "--yes", "--allow=message-drop"]).expect_code(0);
    wired_with(&vhost, &amqp, Some(50));
    put_policy(&vhost, "limits", "^work$", 700, &json!({"max-length": 60}));
    topo.run(["plan", "--detailed-exitcode"]).expect_code(2).expect_text("priority");
    topo.run(["apply", "--yes"]).expect_code(0);
    wired_with(&vhost, &amqp, Some(60));
    vhost.http().delete(&vhost.path("policies", &["limits"])).expect_status(204);
    // With a lower priority, the other policy, which the same plan deletes, would briefly govern the queue.
    let high = topo.run(["plan", "--detailed-exitcode"]).expect_code(2).expect_text("60 → 7000");
    high.expect_no_text("priority");
    topo.run(["apply", "--yes"]).expect_code(0);
    wired_with(&vhost, &amqp, Some(7000));
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");

    // topo does not copy a policy that this spec removes.
    put_policy(&vhost, "limits", "^work$", 9, &json!({"max-length": 30}));
    topo.rewrite(&format!("{WIRED}removed: {{policies: [limits, everything]}}\n"));
    topo.run(["apply", "--yes"]).expect_code(0).expect_text("the broker matches the spec");
    wired_with(&vhost, &amqp, None);
    assert_eq!(vhost.names("policies"), ["work.topo.dead-letter"]);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn saved_plan_is_stale_when_an_overridden_policy_changes() {
    let vhost = Node::shared().vhost("beside-saved");
    put_policy(&vhost, "limits", "^work$", 7, &json!({"max-length": 100}));
    let topo = Topo::new(&vhost).spec(WIRED);
    topo.run(["plan", "--out=plan.json"]).expect_code(0);
    put_policy(&vhost, "limits", "^work$", 7, &json!({"max-length": 50}));
    topo.run(["apply", "--plan=plan.json"]).expect_code(5).expect_text("work.topo.dead-letter: PUT");
    put_policy(&vhost, "limits", "^work$", 7, &json!({"max-length": 100}));
    topo.run(["apply", "--plan=plan.json"]).expect_code(0);
    wired_with(&vhost, &vhost.amqp(), Some(100));
    topo.run(["apply", "--plan=plan.json"]).expect_code(0).expect_text("No changes");
}

#[test]
fn unknown_policy_during_the_apply_fails_verification() {
    let vhost = Node::shared().vhost("beside-unclear");
    let (http, path) = (vhost.http(), vhost.path("policies", &["strange"]));
    // This pattern is literal up to Erlang 27, and a repetition from Erlang 28 on.
    let body = json!({"pattern": "^wo{,1}rk", "apply-to": "queues", "priority": 0, "definition": {"max-length": 1}});
    let proxy = Proxy::to(Node::shared()).on(
        posts().nth(1),
        Fault::Meanwhile(Box::new(move || {
            http.put(&path, &body).expect_status(201);
        })),
    );
    let topo = Topo::new(&vhost).through(&proxy).spec(WIRED);
    let applied = topo.run(["apply", "--yes"]).expect_code(4).expect_text("the broker does not match the spec");
    applied.expect_text("work.topo.dead-letter");
    topo.run(["apply", "--yes"]).expect_code(3).expect_text("topo cannot evaluate the pattern of policy strange");
}

#[test]
fn retries_rejected_by_a_full_queue_are_a_hazard() {
    let vhost = Node::shared().vhost("beside-full");
    let amqp = vhost.amqp();
    put_policy(&vhost, "full", "^work$", 7, &json!({"max-length": 1, "overflow": "reject-publish"}));
    let topo = Topo::new(&vhost).spec(
        "queues: {work: {type: classic, retry: {delays: [15s]}, deadLetter: dead}}\n\
         deadLetterQueues: {dead: {type: classic}}\n",
    );
    let text = "policy full sets overflow reject-publish: a message that returns";
    topo.run(["apply", "--yes"]).expect_code(3).expect_text(text);
    assert_eq!(vhost.names("queues"), [""; 0]);
    topo.run(["apply", "--yes", "--allow=message-drop"]).expect_code(0);
    // After the allowed apply, the next plan still reports the hazard.
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text(text);

    assert_eq!(amqp.publish("", "work", "first"), Outcome::Routed);
    assert_eq!(amqp.reject("work", 1), 1);
    until("the tier", || (amqp.ready("work.retry.1.15s") == 1).then_some(()));
    assert_eq!(amqp.publish("", "work", "second"), Outcome::Routed);
    until("the end of the wait", || (amqp.ready("work.retry.1.15s") == 0).then_some(()));
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(1) {
        assert_eq!((amqp.ready("work"), amqp.ready("dead")), (1, 0), "the retry is lost");
    }
    assert_eq!(amqp.get("work").expect("the second").body, b"second");
}

#[test]
fn ladder_without_death_routing_is_a_hazard_with_a_ttl() {
    let node = Node::shared();
    let vhost = node.vhost("beside-ttl");
    let amqp = vhost.amqp();
    put_policy(&vhost, "ex", "^work$", 7, &json!({"message-ttl": 300}));
    let topo = Topo::new(&vhost).spec(
        "queues: {work: {type: classic, retry: {delays: [200ms]}, deadLetter: {queue: dead, wiring: policy}}}\n\
         deadLetterQueues: {dead: {type: classic}}\n",
    );
    if !node.at_least(3, 13) {
        let refused = topo.run(["apply", "--yes"]).expect_code(3);
        refused.expect_text("policy ex sets message-ttl 300 (300ms): RabbitMQ ").expect_text("as a cycle");
    }
    let allowed = topo.run(["apply", "--yes", "--allow=message-drop"]).expect_code(0);
    allowed.expect_text("the broker matches the spec");
    assert_eq!(amqp.publish("", "work", "late"), Outcome::Routed);
    let left = || amqp.ready("work") + amqp.ready("work.retry.1.200ms");
    if node.at_least(3, 13) {
        until("the dead letter", || amqp.get("dead"));
    } else {
        // While the broker moves the message, neither queue contains it.
        let mut since = Instant::now();
        until("the loss", || {
            if left() > 0 {
                since = Instant::now();
            }
            (since.elapsed() > Duration::from_secs(1)).then_some(())
        });
        assert_eq!(amqp.ready("dead"), 0, "dropped as a cycle: the hazard is real");
    }
    assert_eq!(left(), 0);
}
