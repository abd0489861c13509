//! Tests changes immediately before the deletion of the queue, and during the return of its messages.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fixture::{Conversion, Fixture, Q, QUORUM, TRANSPORTS, TTL, expect_each_once, supports_quorum_queues};
use super::traffic::{EXCHANGE, Publisher, emptied};
use crate::support::{Amqp, Fault, NONE, Node, Outcome, Proxy, deletes, gets, puts, run_concurrently, text, until};

/// A time that exceeds the interval of binding reads during the drain.
const NO_READ: Duration = Duration::from_secs(4);

/// To confirm that a quorum queue is empty, topo waits for two ticks, 12 s with the default interval. Without a check,
/// a binding that is added during this time would be lost.
#[test]
fn binding_added_during_the_proof_is_kept() {
    if !supports_quorum_queues() {
        return;
    }
    run_concurrently(2, TRANSPORTS, |transport| {
        let (fixture, proxy) = Fixture::on(Node::with_default_intervals(), "late", QUORUM, &[]).through();
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(20);
        let published = publisher.published();
        let old = during_the_proof(&fixture, &proxy, move |amqp| {
            amqp.bind_queue(EXCHANGE, Q, "late.binding", NONE);
            assert_eq!(amqp.publish(EXCHANGE, "late.binding", &published.to_string()), Outcome::Routed);
        });
        let output = fixture.migrate(transport, &[]).expect_code(0);
        let context = format!("by {transport}\n{output}");
        let bound_to = old.try_recv().expect("the proof takes a while");
        assert_eq!(bound_to["arguments"][QUORUM.old.unwrap().0], QUORUM.old.unwrap().1, "too late: {context}");
        assert!(fixture.is_new(), "{context}");
        expect_each_once(emptied(&fixture.vhost, Q), published + 1, &context);
        let bindings = fixture.vhost.list("bindings");
        let is_late = |it: &&Value| it["routing_key"] == "late.binding" && it["destination"] == Q;
        assert_eq!(bindings.iter().filter(is_late).count(), 1, "{context}");
    });
}

/// From 3.9 to 3.13, and for a quorum queue on 3.8, a consumer that exists during an immediate swap receives neither a
/// cancel nor messages. topo must therefore count the consumers after the proof.
#[test]
fn consumer_that_subscribes_during_the_proof_is_canceled() {
    if !supports_quorum_queues() {
        return;
    }
    let (fixture, proxy) = Fixture::on(Node::with_default_intervals(), "subscribes", QUORUM, &[]).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(20);
    // With an outdated count, topo drains the queue twice, and then never swaps immediately.
    let listed = listed_messages(&fixture);
    until("the count", || (listed() == Some(20)).then_some(()));
    let (tell, told) = channel();
    let _old = during_the_proof(&fixture, &proxy, move |amqp| tell.send(amqp.try_hold(Q, 0).unwrap()).unwrap());
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    let mut held = told.try_recv().expect("the proof takes a while");
    fixture.expect_migrated(&output);
    until("the cancel", || (!held.is_subscribed()).then_some(()));
    expect_each_once(emptied(&fixture.vhost, Q), 20, &output);
}

/// Calls a function once while topo confirms that the queue is empty, inside a read of the message count, so that topo
/// waits for the function. The returned value receives the state of the queue at that time.
fn during_the_proof(
    fixture: &Fixture<'_>,
    proxy: &Proxy,
    what: impl FnOnce(&Amqp) + Send + 'static,
) -> Receiver<Value> {
    // The time of the last read of the bindings during the drain.
    let last: Arc<Mutex<Option<Instant>>> = Arc::default();
    let (begun, looked) = (Arc::clone(&last), Arc::clone(&last));
    let begin = move || *begun.lock().unwrap() = Some(Instant::now());
    proxy.add(deletes().path("/e/q.topo.tap/q/"), Fault::Meanwhile(Box::new(begin)));
    let look = move || {
        if let Some(last) = looked.lock().unwrap().as_mut() {
            *last = Instant::now();
        }
    };
    proxy.add(gets().path(&fixture.vhost.path("bindings", &[])), Fault::Meanwhile(Box::new(look)));
    let (tell, told) = channel();
    let (http, queue, amqp) = (fixture.vhost.http(), fixture.vhost.path("queues", &[Q]), amqp(fixture));
    // The drain ends when the broker lists the queue as empty.
    let (listed, mut empty_since) = (listed_messages(fixture), None);
    let mut what = Some(what);
    let count = move || {
        if what.is_some() && empty_since.is_none() && listed() == Some(0) {
            empty_since = Some(Instant::now());
        }
        if [*last.lock().unwrap(), empty_since].iter().all(|it| it.is_some_and(|since| since.elapsed() > NO_READ))
            && let Some(what) = what.take()
        {
            tell.send(http.get(&queue).found()).unwrap();
            what(&amqp);
        }
    };
    proxy.add(gets().path("enable_queue_totals"), Fault::Meanwhile(Box::new(count)));
    told
}

/// Returns a function that reads the number of messages in the queue from the list of queues, as topo does.
fn listed_messages(fixture: &Fixture<'_>) -> impl Fn() -> Option<u64> + Send + use<> {
    let (http, path) = (fixture.vhost.http(), fixture.vhost.path("queues", &[]));
    move || {
        let queues = http.get(&format!("{path}?disable_stats=true&enable_queue_totals=true")).expect_status(200);
        let queue = queues.as_array().unwrap().iter().find(|queue| queue["name"] == Q);
        queue.and_then(|queue| queue["messages"].as_u64())
    }
}

/// Calls a function before the declaration of the return exchange, when the queue has been swapped or will not be
/// swapped. The function runs once, even if topo retries the request.
fn before_the_return(proxy: &Proxy, what: impl FnOnce() + Send + 'static) {
    let mut what = Some(what);
    let once = move || {
        if let Some(what) = what.take() {
            what();
        }
    };
    proxy.add(puts().path("/q.topo.back"), Fault::Meanwhile(Box::new(once)));
}

/// Opens a separate connection for concurrent changes.
fn amqp(fixture: &Fixture<'_>) -> Amqp {
    Amqp::connect(fixture.vhost.node().amqp_port(), fixture.vhost.name(), "guest", "guest")
}

/// Returns a function that writes a policy or an operator policy.
fn policy(fixture: &Fixture<'_>, kind: &str) -> impl FnMut() + Send + use<> {
    let (http, path) = (fixture.vhost.http(), fixture.vhost.path(kind, &["late"]));
    let body = json!({"pattern": "^q.topo", "definition": {"max-length": 3}, "apply-to": "queues"});
    let (amqp, drained) = (amqp(fixture), "q.topo.drained");
    let (queue, governs) =
        (fixture.vhost.path("queues", &[drained]), kind.replace("policies", "policy").replace('-', "_"));
    move || {
        assert!(http.put(&path, &body).is_success());
        // The policy reaches the queue after a delay.
        until("the policy", || {
            (http.get(&queue).found()[&governs] == "late" && amqp.ready(drained) <= 3).then_some(())
        });
    }
}

/// Policies and operator policies: the path segment and the word in messages.
const KINDS: [(&str, &str); 2] = [("policies", "policy"), ("operator-policies", "operator policy")];

/// After the swap, a rollback is impossible, so topo completes the migration and reports the loss.
#[test]
fn policy_on_the_holding_queue_is_reported() {
    run_concurrently(2, TRANSPORTS.into_iter().zip(KINDS), |(transport, (kind, word))| {
        let (fixture, proxy) = Fixture::new("taken", TTL).through();
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(20);
        before_the_return(&proxy, policy(&fixture, kind));
        let output = fixture.migrate(transport, &[]).expect_code(4);
        let policy = &format!("because {word} late sets max-length on q.topo.hold");
        let output = output.expect_error(&format!("but messages may be missing, {policy}"));
        assert!(fixture.is_new(), "{output}");
        let left = emptied(&fixture.vhost, Q);
        // The broker's log shows whether it restarted a shovel, which can deliver messages twice.
        let logged = fixture.vhost.node().logged(fixture.vhost.name());
        assert_eq!(left.len(), 3, "{left:?}: {output}\n{logged:#?}");
        let missing = match transport {
            "amqp" => "17 of 20 messages that topo moved out of the queue did not return",
            _ => "messages may be missing",
        };
        // The report states the reason too. Its lines are folded.
        let report = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains(&format!("{missing}, {policy}")), "{output}");
        let plan = fixture.topo.run(["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, Some(0), "nothing is left over: {plan}\n{output}");
    });
}

/// Before the swap, topo rolls the migration back.
#[test]
fn policy_before_the_swap_rolls_back() {
    // The combinations differ from those of the previous test, so that both transports are tested with both kinds.
    run_concurrently(2, TRANSPORTS.into_iter().rev().zip(KINDS), |(transport, (kind, word))| {
        let (fixture, proxy) = Fixture::new("taking", TTL).through();
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(20);
        proxy.add(deletes().path("/e/q.topo.tap/q/"), Fault::Meanwhile(Box::new(policy(&fixture, kind))));
        let output = fixture.migrate(transport, &[]).expect_code(1);
        let output = output.expect_text(&format!("{word} late sets max-length on q.topo."));
        assert!(!fixture.is_new() && emptied(&fixture.vhost, Q).len() == 3, "{output}");
        let expected = if transport == "amqp" { "17 messages did not return" } else { "might not have returned" };
        output.expect_error(expected).expect_no_text("the queue and its messages are unchanged");
    });
}

/// topo's own exchanges must not use the alternate exchange of a policy, because topo would treat a redirected message
/// as returned.
#[test]
fn alternate_exchange_policy_does_not_redirect_returned_messages() {
    let fixture = Fixture::new("alternate", TTL);
    fixture.amqp.declare_exchange("other", "fanout", NONE).unwrap();
    fixture.amqp.declare_queue("other", NONE).unwrap();
    fixture.amqp.bind_queue("other", "other", "", NONE);
    let body = json!({"pattern": ".*", "definition": {"alternate-exchange": "other"}, "apply-to": "exchanges"});
    assert!(fixture.vhost.http().put(&fixture.vhost.path("policies", &["alternate"]), &body).is_success());
    let (fixture, proxy) = fixture.remembered().through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(300);
    // An application deletes the new queue after the return starts and before a message arrives.
    let (http, queue) = (fixture.vhost.http(), fixture.vhost.path("queues", &[Q]));
    let bindings = fixture.vhost.path("exchanges", &["q.topo.back"]) + "/bindings/source";
    let mut is_deleted = false;
    let delete = move || {
        let bound = http.get(&bindings).body;
        if !is_deleted && bound.as_array().is_some_and(|bound| !bound.is_empty()) {
            is_deleted = http.delete(&queue).is_success();
        }
    };
    proxy.add(gets().path("enable_queue_totals"), Fault::Meanwhile(Box::new(delete)));
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    assert_eq!(fixture.amqp.ready("other"), 0, "{output}");
    fixture.expect_migrated(&output);
    expect_each_once(emptied(&fixture.vhost, Q), 300, &output);
}

/// The new queue is deleted between its declaration and its first binding.
#[test]
fn deleted_new_queue_is_declared_again() {
    let (fixture, proxy) = Fixture::new("deleted", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(20);
    let (http, queue) = (fixture.vhost.http(), fixture.vhost.path("queues", &[Q]));
    before_the_return(&proxy, move || assert!(http.delete(&queue).is_success()));
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    expect_each_once(emptied(&fixture.vhost, Q), 20, &output);
}

/// Messages that exceed the limit are held until the queue has room.
#[test]
fn full_queue_that_rejects_is_reported() {
    run_concurrently(2, TRANSPORTS, |transport| {
        let limit = Conversion {
            old: Some(("x-max-length", 60)),
            new: "type: classic, maxLength: 50, overflow: reject-publish",
            becomes: ("x-max-length", "50"),
            ..TTL
        };
        let (mut fixture, proxy) = Fixture::with("full", limit, &[("x-overflow", text("reject-publish"))]).through();
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(50);
        let amqp = amqp(&fixture);
        before_the_return(&proxy, move || {
            for number in 50..60 {
                assert_eq!(amqp.publish(EXCHANGE, "work.k", &number.to_string()), Outcome::Routed);
            }
        });
        let output = fixture.migrate(transport, &["--drain-timeout=15s"]).expect_code(4);
        let why =
            "queue q is full (50 of 50 messages) and is rejecting new messages; consume from it or raise its limit";
        let output = output.expect_text(why).expect_no_text("are unacknowledged").expect_no_text("is unacknowledged");
        fixture.directly();
        let mut numbers = emptied(&fixture.vhost, Q);
        let again = fixture.migrate(transport, &[]).expect_code(0);
        let context = format!("{output}\n{again}");
        fixture.expect_migrated(&context);
        numbers.extend(emptied(&fixture.vhost, Q));
        assert!(super::fixture::duplicates(numbers, 60, &context) <= 10, "{context}");
    });
}

/// Parses the numbers in `14/30 move messages …`.
fn number_of_line(line: &str) -> Option<(usize, usize)> {
    let (step, of) = line.split_whitespace().next()?.split_once('/')?;
    Some((step.parse().ok()?, of.parse().ok()?))
}

/// The report mentions the changed order of moved messages, and makes no false statement.
#[test]
fn rollback_report_lists_reordered_messages() {
    let (fixture, proxy) = Fixture::new("undone", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(20);
    let held = fixture.amqp.hold(Q, 5);
    let amqp = amqp(&fixture);
    // The message is published through the default exchange, which topo cannot redirect.
    before_the_return(&proxy, move || {
        for number in 20..22 {
            assert_eq!(amqp.publish("", Q, &number.to_string()), Outcome::Routed);
        }
    });
    let output = fixture.migrate("amqp", &["--drain-timeout=15s"]).expect_code(1);
    let output = output.expect_error("was rolled back: all messages have returned, 15 of them behind newer messages");
    let output = output.expect_text("15 messages returned; 15 messages are now behind newer messages.");
    let output = output.expect_text("Rolled back: 1 migration, because of the errors above.");
    let output = output
        .expect_text("To try again:")
        .expect_no_text("not attempted")
        .expect_no_text("To see the remaining changes");
    let numbers: Vec<(usize, usize)> = output.stderr.lines().filter_map(number_of_line).collect();
    assert!(!numbers.is_empty() && numbers.iter().all(|(step, of)| step <= of && *of == numbers[0].1), "{output}");
    fixture.expect_as_before(&output);
    drop(held);
    expect_each_once(emptied(&fixture.vhost, Q), 22, &output);
}
