//! Compares topo's predictions for random exchanges, bindings and policies with the responses of a real broker.
//!
//! `TOPO_SEED` repeats a run; `TOPO_LONG=1` runs six times as many cases.

mod bindings;
mod exchanges;
mod policies;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use secrecy::SecretString;
use serde_json::Value;
use topo::broker::{BaseUrl, Broker, ConnectionOptions, Snapshot};
use topo::model::{Exchange, Scope, Topology};
use topo::plan::document::Options;
use topo::plan::{Activity, Desired, PlanContext, RecordFacts, Request, VhostPlan, plan_vhost};

use super::differential_report::{Scenario, Wrong, smallest};
use crate::support::http::Answer;
use crate::support::random::is_long;
use crate::support::{Http, Node, Random, Vhost, block_on, draws_on, seed, until};

/// The number of concurrent requests. A request spends most of its time waiting for the broker.
const AT_ONCE: usize = 8;
/// The number of cases per vhost, which is read once for all of them.
const BATCH: usize = 50;
/// The minimum number of occurrences of each event in a meaningful run.
const ENOUGH: usize = 150;
/// Without `TOPO_LONG`, only one of this many cases runs, because the cases load a broker more than all other tests
/// together.
const PART_OF_A_SHORT_RUN: usize = 6;

/// The label of cases with an existing object, and their minimum number.
const LIVE: &str = "live and desired";
const ENOUGH_LIVE: usize = 2000;

/// The events of a case, or its disagreement.
type Judged = Result<Vec<String>, Wrong>;

/// A kind of case.
trait Kind: Sync {
    type Case: Clone + Debug + Send + Sync;
    /// The name of the kind.
    const WHAT: &'static str;

    fn draw(&self, random: &mut Random) -> Self::Case;
    /// Runs several cases in a new vhost, and returns one result for each case.
    fn play(&self, road: &Road<'_>, cases: &[Self::Case]) -> Vec<Judged>;
    /// Returns the case without each property in turn.
    fn smaller(&self, case: &Self::Case) -> Vec<Self::Case>;
    /// Returns the scenario of a failed case.
    fn scenario(&self, case: &Self::Case, wrong: Wrong) -> Scenario;
    /// Returns the events that are possible on this broker and must occur.
    fn expected(&self) -> BTreeSet<String>;
}

/// A new vhost with the connections of topo and of the test.
struct Road<'node> {
    vhost: Vhost<'node>,
    http: Http,
    broker: Broker,
}

impl<'node> Road<'node> {
    fn to(node: &'node Node, hint: &str) -> Self {
        let base_url = BaseUrl::parse(&node.url()).unwrap().url;
        let broker = Broker::connect(ConnectionOptions::new(base_url, "guest", SecretString::from("guest"))).unwrap();
        Self { vhost: node.vhost(hint), http: node.http(), broker }
    }

    fn read(&self) -> Snapshot {
        let mut read = block_on(self.broker.read(&[self.vhost.name().into()])).unwrap();
        read.remove(0)
    }

    /// Sends a request of topo.
    fn send(&self, request: &Request) -> Answer {
        self.ask(request.method.as_str(), &request.path, request.body.as_ref())
    }

    /// Sends a request. Retries if the broker closes the connection, as it does after 1,000 requests and after a body
    /// that is too large.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        until("an answer", || self.http.send(method, path, body).ok())
    }

    /// Declares an object that a case requires.
    fn put(&self, kind: &str, name: &str, body: &Value) -> Answer {
        self.ask("PUT", &self.vhost.path(kind, &[name]), Some(body))
    }

    fn list(&self, kind: &str) -> Vec<Value> {
        let listed = self.ask("GET", &self.vhost.path(kind, &[]), None).expect_status(200);
        listed.as_array().expect("lists are arrays").clone()
    }

    fn topology(&self) -> Topology {
        let mut topology = Topology::missing(self.vhost.name().into());
        topology.settings = Some(topo::model::Vhost::default());
        topology
    }
}

/// Returns topo's plan for a topology and the current state.
fn plan(snapshot: &Snapshot, topology: Topology, scope: Scope, options: &Options) -> VhostPlan {
    let desired = Arc::new(Desired { topology, scope, sources: Vec::new() });
    let context = PlanContext {
        current: &snapshot.topology,
        desired: &desired,
        activity: &Activity::default(),
        properties_keys: &snapshot.properties_keys,
        untouchable: &snapshot.untouchable,
        lacks_auto_delete: &snapshot.lacks_auto_delete,
        records: &RecordFacts::default(),
        profile: &snapshot.profile,
    };
    let plan = plan_vhost(&context, options);
    let defect = plan.blocks.iter().find(|block| block.text.contains("defect in topo"));
    assert!(defect.is_none(), "{defect:?}");
    plan
}

/// Converts JSON of the management API to a value of the model.
fn model<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"))
}

/// Returns the error in a refusal, without the escapes of older versions.
fn reason(answer: &Answer) -> String {
    let reply = answer.body["reason"].as_str().map_or_else(|| answer.body.to_string(), str::to_owned);
    reply.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Renames the fields of the management API to spec keys.
fn renamed(body: &Value, keys: &[(&str, &str)]) -> Value {
    let reply = keys.iter().filter_map(|(theirs, ours)| Some(((*ours).to_owned(), body.get(*theirs)?.clone())));
    Value::Object(reply.collect())
}

/// Returns an object for `json live`, with the same fields and its name.
fn live(name: &str, body: Option<&Value>) -> Vec<Value> {
    let named = body.cloned().map(|mut body| {
        body["name"] = name.into();
        body
    });
    named.into_iter().collect()
}

fn play<K: Kind>(kind: &K, cases: &[K::Case]) -> Vec<Judged> {
    let road = Road::to(Node::shared(), K::WHAT);
    catch_unwind(AssertUnwindSafe(|| kind.play(&road, cases))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        cases.iter().map(|_| Err(Wrong::new("arranging", text.as_str()))).collect()
    })
}

/// Returns the scenario of the smallest case with the same disagreement.
fn smallest_scenario<K: Kind>(
    kind: &K,
    case: K::Case,
    wrong: Wrong,
    play: impl Fn(&K::Case) -> Result<(), Wrong>,
) -> Scenario {
    let (case, wrong) = smallest(case, wrong, |case| kind.smaller(case), play);
    kind.scenario(&case, wrong)
}

/// Returns the events that occurred too rarely.
fn rare<K: Kind>(kind: &K, counts: &BTreeMap<String, usize>, enough: usize, enough_live: usize) -> Vec<String> {
    let expected = kind.expected().into_iter().map(|what| (what, enough)).chain([(LIVE.to_owned(), enough_live)]);
    let is_rare = |(what, enough): &(String, usize)| counts.get(what).copied().unwrap_or(0) < *enough;
    expected.filter(is_rare).map(|(what, _)| what).collect()
}

/// Generates, runs and counts cases. Fails with the scenario of the smallest failed case.
fn run<K: Kind>(kind: &K, cases: usize) {
    let seed = seed();
    // Chance has more effect in a short run, so half of the fraction suffices.
    let (part, share) = if is_long() { (1, 1) } else { (PART_OF_A_SHORT_RUN, PART_OF_A_SHORT_RUN * 2) };
    let (cases, enough, enough_live) = (cases / part, ENOUGH / share, ENOUGH_LIVE / share);
    println!("TOPO_SEED={seed}, RabbitMQ {}, {}", Node::shared().version(), K::WHAT);
    let started = Instant::now();
    let next = AtomicUsize::new(0);
    let counts: Mutex<BTreeMap<String, usize>> = Mutex::default();
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let batch = next.fetch_add(1, Ordering::Relaxed);
                    let is_enough = || rare(kind, &counts.lock().unwrap(), enough, enough_live).is_empty();
                    if !draws_on(batch * BATCH, cases, is_enough) || failed.lock().unwrap().is_some() {
                        break;
                    }
                    let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(batch as u64));
                    let drawn: Vec<K::Case> = (0..BATCH).map(|_| kind.draw(&mut random)).collect();
                    for (case, judged) in drawn.iter().zip(play(kind, &drawn)) {
                        match judged {
                            Ok(labels) => {
                                let mut counts = counts.lock().unwrap();
                                labels.into_iter().for_each(|label| *counts.entry(label).or_default() += 1);
                            }
                            Err(wrong) => drop(failed.lock().unwrap().get_or_insert((case.clone(), wrong))),
                        }
                    }
                }
            });
        }
    });
    let took = started.elapsed();
    if let Some((case, wrong)) = failed.into_inner().unwrap() {
        println!("{wrong}\n{case:?}\nmaking it smaller");
        let again = |case: &K::Case| play(kind, std::slice::from_ref(case)).pop().map_or(Ok(()), |it| it.map(drop));
        panic!("TOPO_SEED={seed}\n{}", smallest_scenario(kind, case, wrong, again));
    }
    let counts = counts.into_inner().unwrap();
    println!("{} {} in {:.1} s", (next.into_inner() - AT_ONCE) * BATCH, K::WHAT, took.as_secs_f64());
    counts.iter().for_each(|(what, times)| println!("{times:>6}  {what}"));
    let rare = rare(kind, &counts, enough, enough_live);
    assert!(rare.is_empty(), "TOPO_SEED={seed}: less than {enough} times, or {enough_live}: {rare:?}");
}
