//! Checks that `topo explain` and the simulation of `topo test` agree about a message that always fails: the number and
//! times of its attempts, the queues in which it waits, and the dead-letter queues that receive it.

use std::collections::{BTreeMap, BTreeSet};

use topo::cases::Subject;
use topo::contract::lifecycle::{Explanation, Lifecycle, State, explanation};
use topo::expand::expand;
use topo::model::{BrokerVersion, ExchangeName, QueueName};
use topo::rabbitmq::BrokerProfile;
use topo::simulation::{Behavior, End, EventKind, Outcome, Publication, Worker};
use topo::spec::{SourceFile, Variables, parse};

use crate::support::{Random, seed};

/// The number of random queues for each version.
const QUEUES: usize = 800;
const VERSIONS: [(u16, u16); 5] = [(3, 8), (3, 10), (3, 13), (4, 0), (4, 3)];

/// Returns a random spec with the queue `work`. The parser or the expansion may reject it.
fn draw(random: &mut Random) -> (String, &'static str) {
    let strategy = *random.pick(&["ladder", "ladder", "republish", "redeliver", "delayed", "none"]);
    let delays = *random.pick(&[
        "[5s]",
        "[5s, 30s]",
        "[1s, 1s, 5m]",
        "[1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s, 9s, 10s, 11s, 12s, 13s]",
    ]);
    let retries = *random.pick(&["", "", ", maxRetries: 1", ", maxRetries: 3", ", maxRetries: 20"]);
    let retry = match strategy {
        "none" => (*random.pick(&["", ", maxRetries: 2", ", deliveryLimit: 3"])).to_owned(),
        "redeliver" => {
            format!("{}, retry: {{strategy: redeliver}}", if retries.is_empty() { ", maxRetries: 4" } else { retries })
        }
        "republish" if random.chance(40) => {
            format!(", retry: {{strategy: republish}}{}", if retries.is_empty() { ", maxRetries: 2" } else { retries })
        }
        _ => format!("{retries}, retry: {{strategy: {strategy}, delays: {delays}}}"),
    };
    let kind = *random.pick(&["quorum", "quorum", "classic"]);
    let dead_letter = *random.pick(&[
        "",
        ", deadLetter: none",
        ", deadLetter: dead",
        ", deadLetter: dead",
        ", deadLetter: {exchange: shared}",
        ", deadLetter: {exchange: shared, routingKey: other}",
        ", deadLetter: {exchange: empty}",
    ]);
    let spec = format!(
        "version: 1\nvhost: v\nexchanges: {{orders: {{type: topic}}, shared: {{type: direct}}, empty: {{type: fanout}}}}\n\
         queues:\n  work: {{type: {kind}{retry}{dead_letter}, bindings: [{{exchange: orders, routingKey: order.paid}}]}}\n  \
         graveyard: {{type: classic, bindings: [{{exchange: shared, routingKey: order.paid}}, {{exchange: shared, routingKey: other}}]}}\n\
         deadLetterQueues: {{dead: {{type: quorum}}}}\n"
    );
    (spec, strategy)
}

/// Returns the lifecycle of `work`, and the simulated result of a message whose attempts all fail.
fn described_and_simulated(text: &str, profile: &BrokerProfile) -> Option<(Lifecycle, Outcome)> {
    let file = SourceFile { name: "topology.yaml".to_owned(), text: text.to_owned() };
    let specs = parse(&[file], &Variables::new()).ok()?;
    let spec = &specs.vhosts[0];
    let expansion = expand(spec, profile).ok()?;
    let work = QueueName::new("work");
    let Some(Explanation::Queue(lifecycle)) = explanation(&work, spec, &expansion, profile) else {
        panic!("no lifecycle: {text}");
    };
    let operator_policies = expansion.topology.operator_policies();
    let subject = Subject::new((spec, &expansion), &operator_policies, profile);
    if !subject.contracts().contains_key(&work) {
        // A queue without retries and dead-lettering has no contract, so test files cannot use `fail`.
        return None;
    }
    let publication = Publication {
        exchange: ExchangeName::new("orders"),
        routing_key: "order.paid".to_owned(),
        headers: BTreeMap::new(),
        expiration: None,
        count: 1,
    };
    let outcome = subject.simulation().run(&publication, &[(work, Worker::Always(Behavior::Fail))].into());
    Some((*lifecycle, outcome))
}

/// Returns the differences.
fn differences(lifecycle: &Lifecycle, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: &str, described: String, simulated: String| {
        if described != simulated {
            found.push(format!("{what}: described {described}, simulated {simulated}"));
        }
    };
    let attempts = outcome.attempts.get(&lifecycle.queue).cloned().unwrap_or_default();
    let contract = lifecycle.contract.as_ref().expect("the queue is not a stream");
    check("attempts", contract.deliveries.to_string(), attempts.len().to_string());
    let mut waiting = BTreeSet::new();
    for step in &lifecycle.steps {
        let time = step.after.as_ref().map(|wait| wait.milliseconds);
        match &step.state {
            State::Attempt { number } | State::Attempts { from: number, .. } => {
                let simulated = attempts.get(*number as usize - 1);
                if let Some(time) = time {
                    check(
                        &format!("time of attempt {number}"),
                        time.to_string(),
                        format!("{}", simulated.unwrap_or(&-1)),
                    );
                }
            }
            State::Waiting { queue, .. } => waiting.extend(queue.clone()),
            // An empty list means that the queues depend on the routing key.
            State::DeadLetter { queues, .. } if queues.is_empty() => {}
            State::DeadLetter { queues, .. } => {
                let queues: BTreeSet<&QueueName> = queues.iter().collect();
                let ends: BTreeSet<&QueueName> = outcome.ends.iter().map(|copy| &copy.queue).collect();
                check("dead-letter queues", format!("{queues:?}"), format!("{ends:?}"));
            }
            State::Dropped => {
                let ends: Vec<End> = outcome.ends.iter().map(|copy| copy.end).collect();
                check("end", format!("{:?}", [End::Dropped]), format!("{ends:?}"));
            }
            State::Kept { .. } | State::Published { .. } => {}
        }
        if let (State::DeadLetter { .. } | State::Dropped, Some(time)) = (&step.state, time) {
            check("time of the end", time.to_string(), outcome.ended_at.to_string());
        }
    }
    let is_abbreviated = lifecycle.steps.iter().any(|step| matches!(step.state, State::Attempts { .. }));
    if !is_abbreviated {
        let passed = outcome.events.iter().flat_map(|event| match &event.kind {
            EventKind::Published { queues, .. } | EventKind::DeadLettered { queues, .. } => queues.clone(),
            EventKind::Delivered { .. } | EventKind::Refused { .. } => BTreeSet::new(),
        });
        let ends: BTreeSet<QueueName> = outcome.ends.iter().map(|copy| copy.queue.clone()).collect();
        let tiers: BTreeSet<QueueName> =
            passed.filter(|queue| *queue != lifecycle.queue && !ends.contains(queue)).collect();
        check("tiers", format!("{waiting:?}"), format!("{tiers:?}"));
    }
    found
}

#[test]
fn explain_and_the_simulation_agree() {
    let seed = seed();
    let mut random = Random::new(seed);
    let mut compared: BTreeMap<&str, usize> = BTreeMap::new();
    for (major, minor) in VERSIONS {
        let profile = BrokerProfile::of(BrokerVersion::new(major, minor, 0));
        for _ in 0..QUEUES {
            let (text, strategy) = draw(&mut random);
            let Some((lifecycle, outcome)) = described_and_simulated(&text, &profile) else { continue };
            *compared.entry(strategy).or_default() += 1;
            let found = differences(&lifecycle, &outcome);
            assert!(
                found.is_empty(),
                "TOPO_SEED={seed}, {major}.{minor}\n{text}\n{}\n{lifecycle:#?}",
                found.join("\n")
            );
        }
    }
    println!("{compared:?}");
    for strategy in ["ladder", "republish", "redeliver", "delayed", "none"] {
        assert!(compared.get(strategy).is_some_and(|number| *number >= 20), "TOPO_SEED={seed}: {compared:?}");
    }
}
