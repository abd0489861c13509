//! Compares governing policies and effective values on a real broker with topo's predictions.
//!
//! `TOPO_SEED` repeats a run.

mod arguments;
mod by_type;
mod case;
mod patterns;
mod precedence;
mod streams;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use topo::model::{BrokerVersion, Policy, PolicyName, QueueType};
use topo::rabbitmq::governing::select_governing;
use topo::rabbitmq::policy_keys::is_accepted;
use topo::rabbitmq::{Governed, Named, Policies, Source, effective_definition};

use self::case::{Case, draw, keys};
use crate::support::http::Answer;
use crate::support::wait::TIMEOUT;
use crate::support::{Node, Vhost, cases, draws_on, seed, until};

/// The number of vhosts, each with 40 queues and separate policies, in a short run and in a long run.
const CASES: [usize; 2] = [6, 32];
/// The number of concurrent vhosts.
const AT_ONCE: usize = 16;
/// The minimum number of occurrences of each event in a meaningful run.
const ENOUGH: usize = 20;
/// The label of queues for which the broker never reports statistics, and therefore no governing policy.
const SILENT: &str = "queues without statistics";

type Counts = BTreeMap<String, usize>;

fn version(node: &Node) -> BrokerVersion {
    node.version().parse().unwrap()
}

/// Returns a name that the broker reports. A missing name, null and "" mean that there is none.
fn name(value: &Value) -> Option<&str> {
    value.as_str().filter(|name| !name.is_empty())
}

/// Returns the broker's merge of a policy and an operator policy. A missing merge and `[]` are equal to an empty one.
fn definition(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Writes policies and returns the accepted ones. The broker refuses policies with a pattern that PCRE cannot parse.
fn put(
    vhost: &Vhost<'_>,
    kind: &str,
    policies: &BTreeMap<PolicyName, Policy>,
    counts: &mut Counts,
) -> BTreeMap<PolicyName, Policy> {
    let mut taken = BTreeMap::new();
    for (name, policy) in policies {
        let answer = vhost.http().put(&vhost.path(kind, &[name.as_str()]), &serde_json::to_value(policy).unwrap());
        if answer.is_success() {
            taken.insert(name.clone(), policy.clone());
        } else {
            // Any other refusal is an error in this test.
            let reported = answer.body.to_string();
            assert!(
                answer.status == 400 && reported.contains("should be regular expression"),
                "{policy:?}: {reported}"
            );
            *counts.entry("refused patterns".to_owned()).or_default() += 1;
        }
    }
    taken
}

/// Compares objects with topo's prediction, and counts events.
struct Compared<'a> {
    users: &'a Policies<'a>,
    operators: &'a Policies<'a>,
    counts: &'a mut Counts,
    wrong: Vec<String>,
}

impl Compared<'_> {
    fn add(&mut self, what: String) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Returns the policy that the broker reports, if topo considers it possible.
    fn governing<'p>(
        &mut self,
        policies: &Policies<'p>,
        object: &str,
        kind: Governed,
        says: Option<&str>,
    ) -> Option<Named<'p>> {
        let fitting = policies.matching(object, kind);
        let governing = select_governing(&fitting);
        let found = governing.possible().iter().find(|named| named.map(|named| named.name.as_str()) == says);
        match found {
            None => {
                let possible: Vec<_> = governing.names().into_iter().collect();
                self.wrong.push(format!("{object:?} ({kind:?}): the broker reports {says:?}, topo {possible:?}"));
            }
            Some(_) if governing.possible().len() > 1 => {
                let reason =
                    if fitting.iter().all(|fit| fit.is_certain) { "equal priorities" } else { "unclear patterns" };
                self.add(reason.to_owned());
            }
            Some(None) => self.add("governed by none".to_owned()),
            Some(Some(_)) => self.add("governed by one".to_owned()),
        }
        if let Governed::Queue(Some(kind)) = kind {
            for fit in fitting.iter().filter(|fit| fit.unsupported_key.is_some()) {
                let refused = fit.named.policy.definition.keys();
                for key in refused.filter(|key| !is_accepted(key, kind, policies.version())) {
                    self.add(format!("skipped {kind} {key}"));
                }
            }
        }
        found.copied().flatten()
    }

    fn queue(&mut self, queue: &str, kind: QueueType, live: &Value) {
        let Some(says) = live.get("effective_policy_definition") else {
            return self.add(SILENT.to_owned());
        };
        self.add(format!("{kind} queues"));
        let governed = Governed::Queue(Some(kind));
        let (users, operators) = (self.users, self.operators);
        let policy = self.governing(users, queue, governed, name(&live["policy"]));
        let operator = self.governing(operators, queue, governed, name(&live["operator_policy"]));
        let merged = effective_definition(policy, operator);
        let values: Map<String, Value> =
            merged.iter().map(|(key, it)| (key.clone(), serde_json::to_value(&it.value).unwrap())).collect();
        let says = definition(says);
        if says != values {
            self.wrong.push(format!("{queue:?} ({kind}): the broker reports {says:?}, topo {values:?}"));
        }
        for (key, holds) in &merged {
            self.add(format!("governed {kind} {key}"));
            let user = policy.and_then(|named| named.policy.definition.get(key));
            let bound = operator.and_then(|named| named.policy.definition.get(key));
            if let (Some(user), Some(bound)) = (user, bound)
                && user != bound
            {
                let who = if matches!(holds.source, Source::Policy(_)) { "user" } else { "operator" };
                self.add(format!("merged {key}: {who} wins"));
            }
        }
    }
}

fn declare(vhost: &Vhost<'_>, case: &Case) {
    for (name, kind) in &case.queues {
        let body = json!({"durable": true, "auto_delete": false, "arguments": {"x-queue-type": kind.as_str()}});
        created(vhost, &vhost.path("queues", &[name]), &body);
    }
    for name in &case.exchanges {
        created(vhost, &vhost.path("exchanges", &[name]), &json!({"type": "fanout", "durable": true}));
    }
}

fn created(vhost: &Vhost<'_>, path: &str, body: &Value) {
    // During a slow leader election of another queue, the broker refuses a quorum queue (500 on 3.8).
    until(path, || {
        let Answer { status, body } = vhost.http().put(path, body);
        assert!(!(300..500).contains(&status), "{path}: {body}");
        (status < 300).then_some(())
    });
}

/// Runs a case and returns the remaining differences.
fn play(node: &Node, case: &Case) -> (Counts, Vec<String>) {
    let mut counts = Counts::new();
    let vhost = node.vhost("effective");
    let users = put(&vhost, "policies", &case.policies, &mut counts);
    let operators = put(&vhost, "operator-policies", &case.operator_policies, &mut counts);
    declare(&vhost, case);
    // Up to 3.8, a queue keeps its initial policy until a policy of the vhost changes; see `rabbitmq::governing`.
    if !node.at_least(3, 9) {
        let never = json!({"pattern": "^$", "apply-to": "queues", "priority": -1000, "definition": {"max-length": 1}});
        vhost.http().put(&vhost.path("policies", &["never"]), &never).expect_status(201);
    }
    let version = version(node);
    let (users, operators) = (Policies::new(&users, version), Policies::new(&operators, version));
    let amqp = vhost.amqp();
    // The statistics contain the policy of a queue: 5 s after its declaration, and later only if the queue is busy.
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let mut counts = counts.clone();
        let mut compared = Compared { users: &users, operators: &operators, counts: &mut counts, wrong: Vec::new() };
        for live in vhost.list("queues") {
            let name = live["name"].as_str().unwrap();
            compared.queue(name, case.queues[name], &live);
        }
        for live in vhost.http().get(&vhost.path("exchanges", &[])).expect_status(200).as_array().unwrap() {
            let exchange = live["name"].as_str().unwrap();
            compared.governing(&users, exchange, Governed::Exchange, name(&live["policy"]));
            compared.add("exchanges".to_owned());
        }
        let wrong = compared.wrong;
        // Without a request, the statistics of an idle queue are not updated.
        for name in case.queues.keys() {
            amqp.ready(name);
        }
        let seen: usize = QueueType::ALL.iter().filter_map(|kind| counts.get(&format!("{kind} queues"))).sum();
        if wrong.is_empty() && seen == case.queues.len() || Instant::now() > deadline {
            assert!(seen + counts.get(SILENT).copied().unwrap_or(0) == case.queues.len(), "{seen} queues: {wrong:?}");
            return (counts, wrong);
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Returns the events that occurred too rarely.
fn rare(counts: &Counts, node: &Node) -> Vec<String> {
    let version = version(node);
    let mut expected: Vec<String> =
        ["governed by none", "governed by one", "equal priorities", "unclear patterns", "exchanges"]
            .map(str::to_owned)
            .into();
    for kind in QueueType::ALL.into_iter().filter(|kind| *kind != QueueType::Stream || node.at_least(3, 9)) {
        for key in keys(version) {
            let taken = is_accepted(key, kind, version);
            expected.push(if taken { format!("governed {kind} {key}") } else { format!("skipped {kind} {key}") });
        }
    }
    for key in case::operator_keys(version) {
        expected.push(format!("merged {key}: operator wins"));
        if !["overflow", "queue-version", "delayed-retry-type"].contains(&key) {
            expected.push(format!("merged {key}: user wins"));
        }
    }
    expected.into_iter().filter(|what| counts.get(what).copied().unwrap_or(0) < ENOUGH).collect()
}

#[test]
fn governing_policies_match_the_broker() {
    let node = Node::shared();
    let seed = seed();
    println!("TOPO_SEED={seed}, RabbitMQ {}", node.version());
    let started = Instant::now();
    let next = AtomicUsize::new(0);
    let all = Mutex::new((Counts::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let is_enough = || rare(&all.lock().unwrap().0, node).is_empty();
                    if !draws_on(index, cases(CASES[0], CASES[1]), is_enough) {
                        break;
                    }
                    let case = draw(seed.wrapping_mul(1_000_003).wrapping_add(index as u64), index, version(node));
                    let (counts, wrong) = play(node, &case);
                    let mut all = all.lock().unwrap();
                    counts.into_iter().for_each(|(what, times)| *all.0.entry(what).or_default() += times);
                    all.1.extend(wrong);
                }
            });
        }
    });
    let (counts, wrong) = all.into_inner().unwrap();
    println!("{} vhosts in {:.1} s", next.into_inner() - AT_ONCE, started.elapsed().as_secs_f32());
    counts.iter().for_each(|(what, times)| println!("{times:>6}  {what}"));
    let silent = counts.get(SILENT).copied().unwrap_or(0);
    let reported: usize = QueueType::ALL.iter().filter_map(|kind| counts.get(&format!("{kind} queues"))).sum();
    assert!(silent * 10 <= reported, "no statistics of {silent} queues, statistics of {reported}");
    assert!(wrong.is_empty(), "TOPO_SEED={seed}: {} wrong\n{}", wrong.len(), wrong.join("\n"));
    let rare = rare(&counts, node);
    assert!(rare.is_empty(), "TOPO_SEED={seed}: less than {ENOUGH} times: {}", rare.join(", "));
}
