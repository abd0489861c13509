//! Runs the scenarios in `scenarios/` on a real broker with the real binary.
//!
//! A scenario is a Markdown file with a title, a reason, and fenced blocks.
//!
//! - `needs` is the required broker version; `json live` and `messages` are the current state.
//! - `yaml spec` and `flags` are the input of topo.
//! - `text plan exit N` is the expected plan, with the exit code of `plan --detailed-exitcode`.
//!
//! Each plan ends an act, which has the last spec before the plan and the flags immediately before it. An act with exit
//! code 3 is blocked and must change nothing. Every other act is applied, and a second plan must be empty.
//! `TOPO_UPDATE=1` rewrites plans and exit codes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::vhost::segment;
use crate::support::{Node, Output, Proxy, Topo, Vhost, gets, until};

/// A parsed scenario.
struct Scenario {
    path: PathBuf,
    text: String,
    needs: String,
    live: Value,
    messages: Vec<(String, usize)>,
    acts: Vec<Act>,
}

/// A plan and its input.
struct Act {
    spec: String,
    flags: Vec<String>,
    plan: String,
    exit: i32,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// Returns the fenced blocks of a Markdown text: the info string and the content of each.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (open.take(), line.strip_prefix("```")) {
            (None, Some(name)) => open = Some((name.trim().to_owned(), String::new())),
            (Some(block), Some(_)) => blocks.push(block),
            (Some((name, mut body)), None) => {
                body.push_str(line);
                body.push('\n');
                open = Some((name, body));
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed:\n{text}");
    blocks
}

impl Scenario {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{}: no title", path.display());
        let mut scenario =
            Self { path, needs: String::new(), live: Value::Null, messages: Vec::new(), acts: Vec::new(), text };
        let (mut spec, mut flags) = (String::new(), Vec::new());
        for (name, body) in blocks(&scenario.text) {
            match name.as_str() {
                "json live" => scenario.live = serde_json::from_str(&body).unwrap(),
                "yaml spec" => spec = body,
                "flags" => flags = body.split_whitespace().map(str::to_owned).collect(),
                "needs" => scenario.needs = body,
                "messages" => {
                    let counts = body.lines().filter_map(|line| line.rsplit_once(": "));
                    scenario.messages =
                        counts.map(|(queue, count)| (queue.to_owned(), count.trim().parse().unwrap())).collect();
                }
                plan => {
                    let exit = plan.strip_prefix("text plan exit ").unwrap_or_else(|| panic!("unknown block `{plan}`"));
                    let flags = std::mem::take(&mut flags);
                    let exit = exit.parse().unwrap_or(-1);
                    scenario.acts.push(Act { spec: spec.clone(), flags, plan: body, exit });
                }
            }
        }
        assert!(!scenario.acts.is_empty(), "{}: no plan", scenario.path.display());
        scenario
    }

    /// Returns true if this broker meets the needs: `at least 3.9`, `before 3.9`, one per line.
    fn is_possible(&self, node: &Node) -> bool {
        self.needs.lines().all(|line| {
            let (word, version) = line.rsplit_once(' ').unwrap();
            let (major, minor) = version.split_once('.').unwrap();
            let at_least = node.at_least(major.parse().unwrap(), minor.parse().unwrap());
            match word {
                "at least" => at_least,
                "before" => !at_least,
                other => panic!("{}: unknown need `{other}`", self.path.display()),
            }
        })
    }

    /// Returns the text of the scenario with these plans.
    fn updated(&self, plans: &[(String, i32)]) -> String {
        let mut text = String::new();
        let mut plans = plans.iter();
        let mut skip = false;
        for line in self.text.lines() {
            if line.starts_with("```text plan") {
                let (plan, exit) = plans.next().unwrap();
                let _ = write!(text, "```text plan exit {exit}\n{plan}");
                skip = true;
                continue;
            }
            skip = skip && !line.starts_with("```");
            if !skip {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

/// Creates the objects of a definitions file. Bindings may omit `destination_type` and `routing_key`.
pub(crate) fn make_live(vhost: &Vhost<'_>, live: &Value) {
    let http = vhost.http();
    let list = |kind: &str| live[kind].as_array().cloned().unwrap_or_default();
    let named = |kind: &str, default: Value| {
        for mut object in list(kind) {
            for (key, value) in default.as_object().unwrap() {
                object.as_object_mut().unwrap().entry(key).or_insert_with(|| value.clone());
            }
            let path = vhost.path(kind, &[object["name"].as_str().unwrap()]);
            http.put(&path, &object).expect_status(201);
        }
    };
    if let Some(settings) = live.get("vhost") {
        http.put(&format!("/api/vhosts/{}", segment(vhost.name())), settings).expect_status(204);
    }
    named("exchanges", json!({"durable": true, "arguments": {}}));
    named("policies", json!({}));
    named("operator-policies", json!({}));
    named("queues", json!({"durable": true, "arguments": {}}));
    for binding in list("bindings") {
        let text = |key: &str| binding[key].as_str().unwrap_or_default();
        let to = if text("destination_type") == "exchange" { "e" } else { "q" };
        let path = vhost.path("bindings", &["e", text("source"), to, text("destination")]);
        // `e` and `q` need no encoding.
        let arguments = binding.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let body = json!({"routing_key": text("routing_key"), "arguments": arguments});
        http.post(&path, &body).expect_status(201);
    }
}

/// Waits until the totals show these messages. Quorum queues update their totals at each tick.
pub(crate) fn until_counted(vhost: &Vhost<'_>, messages: &[(String, usize)]) {
    let path = vhost.path("queues", &[]) + "?disable_stats=true&enable_queue_totals=true";
    until("the totals to show every message", || {
        // A node that has just started responds with 500 while it has no statistics of a new queue.
        let listed = Some(vhost.http().get(&path)).filter(|answer| answer.status != 500)?.expect_status(200);
        let shows = |(queue, count): &(String, usize)| {
            let found = listed.as_array().unwrap().iter().find(|listed| listed["name"] == queue.as_str()).unwrap();
            found["arguments"]["x-queue-type"] == "stream" || found["messages"] == *count
        };
        messages.iter().all(shows).then_some(())
    });
}

/// Replaces the parts that differ between brokers.
fn normalized(output: &Output, vhost: &Vhost<'_>, proxy: &Proxy) -> String {
    let plain = output.stdout.replace(&proxy.url(), "http://localhost:15672");
    plain.replace(vhost.node().version(), "VERSION").replace(vhost.name(), "shop")
}

/// Returns all objects except the vhost itself.
pub(crate) fn everything(vhost: &Vhost<'_>) -> Value {
    let mut all = json!({});
    for kind in ["exchanges", "queues", "bindings", "policies", "operator-policies"] {
        let mut list = vhost.list(kind);
        for object in &mut list {
            // Removes statistics, because they vary.
            object.as_object_mut().unwrap().retain(|key, _| {
                ["name", "type", "durable", "auto_delete", "internal", "arguments", "source", "destination"]
                    .contains(&key.as_str())
                    || ["destination_type", "routing_key", "properties_key", "pattern", "apply-to", "priority"]
                        .contains(&key.as_str())
                    || key == "definition"
            });
        }
        list.sort_by_key(Value::to_string);
        all[kind] = list.into();
    }
    all
}

fn run(topo: &Topo, arguments: &[&str], flags: &[String]) -> Output {
    topo.run(arguments.iter().copied().chain(flags.iter().map(String::as_str)))
}

/// Plans, applies, and expects that a second plan is empty. Returns the first plan.
fn play(act: &Act, vhost: &Vhost<'_>, proxy: &Proxy) -> (String, i32) {
    let topo = Topo::new(vhost).through(proxy).spec(&act.spec);
    let before = everything(vhost);
    // A plan contains the tick, which differs between the brokers of the tests.
    let shown = Topo::new(vhost).through(proxy).spec(&act.spec).env("TOPO_TICK_INTERVAL", "5s");
    let planned = run(&shown, &["plan", "--detailed-exitcode"], &act.flags);
    let exit = planned.code.unwrap();
    let plan = normalized(&planned, vhost, proxy);
    assert!([0, 2, 3].contains(&exit), "{planned}");
    let twice = [(); 2].map(|()| run(&topo, &["plan", "--format", "json"], &act.flags).expect_code(0).stdout);
    assert_eq!(twice[0], twice[1], "the same plan twice is not the same bytes");
    assert_eq!(everything(vhost), before, "a plan changed something");

    proxy.reset();
    let applied = run(&topo, &["apply", "-y"], &act.flags);
    if exit == 3 {
        let applied = applied.expect_code(3);
        assert_eq!(proxy.count(&gets()), proxy.requests().len(), "a blocked apply wrote: {applied}");
        assert_eq!(everything(vhost), before, "a blocked apply changed something");
        return (plan, exit);
    }
    applied.expect_code(0);
    let left = run(&topo, &["plan", "--detailed-exitcode"], &act.flags).expect_code(0);
    assert!(left.stdout.contains("No changes."), "{left}");
    let after = everything(vhost);
    proxy.reset();
    let again = run(&topo, &["apply", "-y"], &act.flags).expect_code(0);
    assert_eq!(proxy.count(&gets()), proxy.requests().len(), "an apply with nothing to do wrote: {again}");
    assert_eq!(everything(vhost), after, "an apply with nothing to do changed something");
    (plan, exit)
}

/// Runs a scenario and returns its failure, if any.
fn run_scenario(path: PathBuf) -> Result<(), String> {
    let scenario = Scenario::read(path);
    let node = Node::shared();
    if !scenario.is_possible(node) {
        return Ok(());
    }
    // The name has the same length as `shop`, because its width affects alignment and wrapping.
    static NUMBER: AtomicUsize = AtomicUsize::new(1);
    let vhost = Vhost::create(node, format!("v{:03}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    let second = segment(&format!("{}-two", vhost.name()));
    let proxy = Proxy::to(node);
    make_live(&vhost, &scenario.live);
    fill(&vhost, &scenario.messages);
    until_counted(&vhost, &scenario.messages);
    let plans: Vec<(String, i32)> = scenario.acts.iter().map(|act| play(act, &vhost, &proxy)).collect();
    // A spec may create a second vhost.
    let _ = node.http().send("DELETE", &format!("/api/vhosts/{second}"), None);
    let updated = scenario.updated(&plans);
    if updated == scenario.text {
        return Ok(());
    }
    if std::env::var_os("TOPO_UPDATE").is_some() {
        std::fs::write(&scenario.path, updated).unwrap();
        return Ok(());
    }
    let mut wrong = String::new();
    for (act, (plan, exit)) in scenario.acts.iter().zip(&plans) {
        if act.plan != *plan || act.exit != *exit {
            let _ = write!(wrong, "--- expected, exit {}\n{}--- got, exit {exit}\n{plan}", act.exit, act.plan);
        }
    }
    Err(wrong + "(TOPO_UPDATE=1 rewrites the expected text; review the difference)")
}

/// Publishes over AMQP, because a 3.8 that has just started sometimes responds to a publish over HTTP with 500.
pub(crate) fn fill(vhost: &Vhost<'_>, messages: &[(String, usize)]) {
    if !messages.is_empty() {
        let amqp = vhost.amqp();
        messages.iter().for_each(|(queue, count)| amqp.fill(queue, *count));
    }
}

#[test]
fn scenarios_produce_the_expected_plans_and_converge() {
    let only = std::env::var("TOPO_SCENARIO").unwrap_or_default();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.retain(|path| path.file_stem().is_some_and(|name| name.to_string_lossy().contains(&only)));
    paths.sort();
    let count = paths.len();
    // Runs scenarios concurrently, because a scenario spends most of its time waiting for the broker.
    let queue = std::sync::Mutex::new(paths);
    let failed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(path) = queue.lock().unwrap().pop() else { break };
                    let name = path.file_name().unwrap().to_string_lossy().into_owned();
                    let plans = std::panic::catch_unwind(|| run_scenario(path)).unwrap_or_else(|panic| {
                        let text = panic.downcast_ref::<String>().cloned();
                        Err(text.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
                    });
                    if let Err(wrong) = plans {
                        failed.lock().unwrap().push(format!("=== {name}\n{wrong}\n"));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort();
    assert!(failed.is_empty(), "{} of {count} scenarios:\n{}", failed.len(), failed.concat());
    println!("{count} scenarios");
}
