//! Applies random policy changes to queues with messages. For every lost message, the plan must report `message-drop`.
//!
//! `TOPO_SEED` repeats a run; `TOPO_LONG=1` runs thirty times as many cases.

mod case;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::case::{Case, draw};
use crate::support::wait::TIMEOUT;
use crate::support::{Amqp, NONE, Node, Options, Random, Topo, Vhost, cases, draws_on, seed, text, until};

/// The number of queues per vhost.
const QUEUES: usize = 60;
/// The numbers of vhosts in a short run and in a long run.
const VHOSTS: [usize; 2] = [1, 30];
/// The minimum number of occurrences of each event in a meaningful run.
const ENOUGH: usize = 8;
/// The time without changes after which a count is final: two ticks of 5 s. Quorum queues update their counts only at a
/// tick, and queues expire faster.
const TWO_TICKS: Duration = Duration::from_secs(11);

const NO_QUEUE: [&str; 0] = [];

/// The message counts; `None` for a deleted queue.
type Totals = BTreeMap<String, u64>;

fn totals(vhost: &Vhost<'_>) -> Totals {
    let path = vhost.path("queues", &[]) + "?disable_stats=true&enable_queue_totals=true";
    let listed = until("the totals", || {
        let answer = vhost.http().get(&path);
        (answer.status == 200).then_some(answer.body)
    });
    let count = |queue: &Value| Some((queue["name"].as_str()?.to_owned(), queue["messages"].as_u64()?));
    listed.as_array().unwrap().iter().filter_map(count).collect()
}

/// Returns the totals after they have not changed for two ticks.
fn final_totals(vhost: &Vhost<'_>) -> Totals {
    let deadline = Instant::now() + TIMEOUT;
    let (mut seen, mut since) = (totals(vhost), Instant::now());
    while since.elapsed() < TWO_TICKS {
        assert!(Instant::now() < deadline, "the totals keep changing: {seen:?}");
        std::thread::sleep(Duration::from_millis(200));
        let now = totals(vhost);
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
    seen
}

/// Creates the current state with its messages.
fn arrange(vhost: &Vhost<'_>, amqp: &Amqp, cases: &BTreeMap<String, Case>) {
    let http = vhost.http();
    amqp.declare_exchange("nowhere", "fanout", NONE).unwrap();
    for (name, case) in cases {
        for (policy, body) in case.live_policies(name) {
            http.put(&vhost.path("policies", &[&policy]), &body).expect_status(201);
        }
        let body = json!({"durable": true, "auto_delete": false, "arguments": case.arguments});
        http.put(&vhost.path("queues", &[name]), &body).expect_status(201);
    }
    // Up to 3.8, a queue keeps its initial policy until a policy of the vhost changes.
    let never = json!({"pattern": "^$", "apply-to": "queues", "priority": -1000, "definition": {"max-length": 1}});
    http.put(&vhost.path("policies", &["never"]), &never).expect_status(201);
    for (name, case) in cases {
        for _ in 0..case.messages {
            // A full queue may reject the message.
            amqp.publish("", name, "ten bytes.");
        }
        if case.rejected > 0 {
            amqp.reject(name, case.rejected);
        }
    }
}

fn spec(cases: &BTreeMap<String, Case>) -> String {
    let queue = |case: &Case| {
        let mut arguments = case.arguments.clone();
        let kind = arguments.remove("x-queue-type");
        json!({"type": kind, "arguments": arguments})
    };
    let queues: BTreeMap<&String, Value> = cases.iter().map(|(name, case)| (name, queue(case))).collect();
    let policies: BTreeMap<&String, Value> =
        cases.iter().filter_map(|(name, case)| Some((name, case.desired_policy(name)?))).collect();
    let removed: Vec<&String> =
        cases.iter().filter(|(_, case)| case.after.is_none() && case.before.is_some()).map(|(name, _)| name).collect();
    format!(
        "exchanges: {{nowhere: {{type: fanout}}}}\nqueues: {}\npolicies: {}\nremoved: {}\n",
        json!(queues),
        json!(policies),
        json!({"policies": removed})
    )
}

/// Returns the queues for which the plan reports `message-drop`.
fn warned(plan: &Value, vhost: &Vhost<'_>) -> BTreeMap<String, Vec<String>> {
    let mut warned: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for hazard in plan["vhosts"][0]["hazards"].as_array().expect("a list") {
        let address = hazard["address"].as_str().unwrap();
        if let (Some(name), "message-drop") =
            (address.strip_prefix(&format!("queues/{}/", vhost.name())), hazard["kind"].as_str().unwrap())
        {
            warned.entry(name.to_owned()).or_default().push(hazard["text"].as_str().unwrap().to_owned());
        }
    }
    warned
}

#[derive(Default)]
struct Counts {
    silent: Vec<String>,
    /// The numbers of queues with lost and reported messages, with reported but no lost messages, and with neither, by
    /// type.
    met: BTreeMap<String, usize>,
    /// The number of reports without a loss, by the first words of the warning.
    needless: BTreeMap<String, usize>,
}

fn play(node: &Node, random: &mut Random, counts: &mut Counts) {
    let vhost = node.vhost("drops");
    let amqp = vhost.amqp();
    let cases: BTreeMap<String, Case> = (0..QUEUES).map(|number| (format!("q{number}"), draw(random, node))).collect();
    arrange(&vhost, &amqp, &cases);
    let before = final_totals(&vhost);
    let topo = Topo::new(&vhost).spec(&spec(&cases));
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let warned = warned(&plan, &vhost);
    let applied = topo.run(["apply", "-y", "--allow", "message-drop,publisher-block,mass-delete"]);
    // A queue that expires within a second may be missing at the apply, which reports this.
    let expired = |line: &str| {
        let name = line.strip_prefix("  queues/").and_then(|address| address.split('/').nth(1));
        name.and_then(|name| cases.get(name)?.after.as_ref()).is_some_and(|after| after["expires"] == 1000)
    };
    let mut is_rolled_back = applied
        .stdout
        .lines()
        .skip_while(|line| !line.starts_with("Applied: "))
        .filter(|line| line.starts_with("  queues/"));
    assert!(applied.code == Some(0) || (applied.code == Some(4) && is_rolled_back.all(expired)), "{applied}");
    let after = final_totals(&vhost);
    for (name, case) in &cases {
        let held = before.get(name).copied().unwrap_or_default();
        let lost = held.saturating_sub(after.get(name).copied().unwrap_or_default());
        let kind = &case.arguments["x-queue-type"];
        let what = match (lost > 0, warned.get(name)) {
            (true, Some(_)) => "lost and reported",
            (true, None) => {
                counts.silent.push(format!("{name} lost {lost} of {held}: {case:?}"));
                "lost without a report"
            }
            (false, Some(texts)) => {
                let words: Vec<&str> = texts[0].split(' ').take(3).collect();
                *counts.needless.entry(words.join(" ")).or_default() += 1;
                "reported and not lost"
            }
            (false, None) => "neither",
        };
        *counts.met.entry(format!("{what}, {}", kind.as_str().unwrap())).or_default() += 1;
    }
}

/// Returns the events that occurred too rarely.
fn rare(counts: &Counts) -> BTreeSet<&'static str> {
    let expected = ["lost and reported, classic", "lost and reported, quorum", "neither, classic", "neither, quorum"];
    expected.into_iter().filter(|what| counts.met.get(*what).copied().unwrap_or_default() < ENOUGH).collect()
}

#[test]
fn message_drops_are_reported_by_the_plan() {
    let node = Node::shared();
    let seed = seed();
    let vhosts = cases(VHOSTS[0], VHOSTS[1]);
    println!("TOPO_SEED={seed}, RabbitMQ {}", node.version());
    let mut random = Random::new(seed);
    let mut counts = Counts::default();
    let mut played = 0;
    while draws_on(played, vhosts, || rare(&counts).is_empty()) {
        play(node, &mut random, &mut counts);
        played += 1;
    }
    println!("{} changes of policies", played * QUEUES);
    counts.met.iter().for_each(|(what, times)| println!("{times:>6}  {what}"));
    println!("reported and not lost, by warning:");
    counts.needless.iter().for_each(|(what, times)| println!("{times:>6}  {what} …"));
    assert!(counts.silent.is_empty(), "TOPO_SEED={seed}\n{}", counts.silent.join("\n"));
    let rare = rare(&counts);
    assert!(rare.is_empty(), "TOPO_SEED={seed}: less than {ENOUGH} times: {rare:?}");
}

/// Waits until the count of a filled queue is its count before or after the publish. A count of a tick during the
/// publish is used until the next tick.
fn until_counted_before_or_after(vhost: &Vhost<'_>, queue: &str, messages: u64) {
    until("a count from before or after the publish", || {
        let count = totals(vhost).get(queue).copied().unwrap_or_default();
        (count == 0 || count == messages).then_some(())
    });
}

/// The count of a quorum queue may be out of date, and a new queue has no count.
#[test]
fn just_filled_quorum_queue_is_not_considered_empty() {
    let node = Node::shared();
    let vhost = node.vhost("just-filled");
    let amqp = vhost.amqp();
    amqp.declare_queue("old", &[("x-queue-type", text("quorum"))]).unwrap();
    let topo = Topo::new(&vhost).spec(
        "queues: {old: {type: quorum}, new: {type: quorum}}\n\
         policies: {limit: {pattern: '', applyTo: queues, definition: {maxLength: 2}}}\n",
    );
    amqp.fill("old", 5);
    until_counted_before_or_after(&vhost, "old", 5);
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let warned = warned(&plan, &vhost);
    assert_eq!(warned.keys().collect::<Vec<_>>(), ["old"], "{warned:?}");
    topo.run(["apply", "-y"]).expect_code(3);
    assert_eq!(amqp.ready("old"), 5);
    topo.run(["apply", "-y", "--allow", "message-drop"]).expect_code(0);
    until("three to be dropped", || (amqp.ready("old") == 2).then_some(()));
}

/// Returns the queues for which a lowered limit requires an allowance.
fn asks_for(topo: &Topo, vhost: &Vhost<'_>, flags: &[&str]) -> Vec<String> {
    let plan = topo.run(["plan", "--format", "json"].iter().chain(flags).copied()).expect_code(0).plan();
    warned(&plan, vhost).into_keys().collect()
}

const LIMIT: &str = "queues: {a: {type: quorum}, b: {type: quorum}}\n\
                     policies: {limit: {pattern: '', applyTo: queues, definition: {maxLength: 1}}}\n";

/// The listed count is up to 5 s old. The queue itself reports the current count, which requires no permission.
#[test]
fn empty_quorum_queue_requires_no_allowance() {
    let vhost = Node::shared().vhost("says-so");
    let amqp = vhost.amqp();
    // From 4.3 on, reading a queue requires some permission for it (`check_any_resource_access_permitted`).
    let read = if Node::shared().at_least(4, 3) { ".*" } else { "^$" };
    let user = Node::shared().user("management").may(&vhost, "^$", "^$", read);
    for name in ["a", "b"] {
        amqp.declare_queue(name, &[("x-queue-type", text("quorum"))]).unwrap();
    }
    let topo = Topo::new(&vhost).spec(LIMIT);
    let other_user = Topo::new(&vhost).user(&user).spec(LIMIT);
    // A new quorum queue elects a leader first.
    until("both to answer", || asks_for(&topo, &vhost, &[]).is_empty().then_some(()));
    // A user who cannot read the listeners must specify an AMQP port other than the default.
    let amqp_url = format!("amqp://127.0.0.1:{}", vhost.node().amqp_port());
    // If a busy broker does not respond in time, topo has no count.
    until("both to answer any user", || {
        (asks_for(&other_user, &vhost, &["--amqp-url", &amqp_url]) == NO_QUEUE).then_some(())
    });
    // If topo does not query the queue, the count is unknown.
    assert_eq!(asks_for(&topo, &vhost, &["--transport", "shovel"]), ["a", "b"]);
    assert_eq!(asks_for(&topo, &vhost, &["--amqp-url", "amqp://127.0.0.1:1"]), ["a", "b"]);
    // One message more than the limit is known, and exactly the limit is safe. If a tick occurs between both publishes,
    // topo uses its count, which is not 0, until the next tick.
    amqp.fill("a", 2);
    amqp.fill("b", 1);
    until("one more than the limit", || (asks_for(&topo, &vhost, &[]) == ["a"]).then_some(()));
    topo.run(["apply", "-y"]).expect_code(3);
    assert_eq!((amqp.ready("a"), amqp.ready("b")), (2, 1));
}

/// Unacknowledged messages are not ready but may return. Only the count of the next tick includes them.
#[test]
fn unacknowledged_messages_of_a_quorum_queue_are_counted() {
    let vhost = Node::shared().vhost("all-held");
    let amqp = vhost.amqp();
    for name in ["a", "b"] {
        amqp.declare_queue(name, &[("x-queue-type", text("quorum"))]).unwrap();
    }
    let topo = Topo::new(&vhost).spec(LIMIT);
    for name in ["a", "b"] {
        amqp.fill(name, 3);
    }
    let _consumer = amqp.hold("a", 3);
    let _taken = [(); 3].map(|()| amqp.keep_one("b"));
    assert_eq!((amqp.ready("a"), amqp.ready("b")), (0, 0));
    for name in ["a", "b"] {
        until_counted_before_or_after(&vhost, name, 3);
    }
    assert_eq!(asks_for(&topo, &vhost, &[]), ["a", "b"]);
}

/// A forwarded management port may belong to a different broker with queues of the same names.
#[test]
fn count_of_another_broker_is_ignored() {
    let vhost = Node::shared().vhost("at-home");
    let other = Node::start(Options::default());
    let path = format!("/api/vhosts/{}", vhost.name());
    other.http().put(&path, &json!({})).expect_status(201);
    let permissions = vhost.path("permissions", &["guest"]);
    other.http().put(&permissions, &json!({"configure": ".*", "write": ".*", "read": ".*"}));
    let queue = json!({"durable": true, "arguments": {"x-queue-type": "quorum"}});
    for name in ["a", "b"] {
        let path = vhost.path("queues", &[name]);
        vhost.http().put(&path, &queue).expect_status(201);
        other.http().put(&path, &queue).expect_status(201);
    }
    let topo = Topo::new(&vhost).spec(LIMIT);
    let there = format!("amqp://127.0.0.1:{}", other.amqp_port());
    until("both to answer", || asks_for(&topo, &vhost, &[]).is_empty().then_some(()));
    assert_eq!(asks_for(&topo, &vhost, &["--amqp-url", &there]), ["a", "b"]);
    // topo does not move messages on that broker, either.
    let topo = Topo::new(&vhost).spec("queues: {a: {type: classic}}\n");
    let recreate = format!("--recreate=queues/{}/a=migrate", vhost.name());
    let plan = topo.run(["plan", &recreate, "--transport", "amqp", "--amqp-url", &there, "--detailed-exitcode"]);
    plan.expect_code(3).expect_text("belongs to cluster");
}
