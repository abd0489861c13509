//! Scenarios: a story a file in `scenarios/`, told on a real broker with the real binary.
//!
//! A file is Markdown: a title, a sentence why, and fenced blocks. `json live` and `messages` are what is there before;
//! `needs` is what the broker must be; `yaml spec` and `flags` are what topo is given; `text plan exit N` is the plan,
//! word for word, and the exit code of `plan --detailed-exitcode`. Several plans tell a story in acts: each has the
//! spec before it and the flags right before it. An act with exit code 3 stays blocked, and nothing may change; every
//! other is applied, and then there must be nothing left to do. `TOPO_UPDATE=1` rewrites plans and exit codes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::vhost::segment;
use crate::support::{Node, Output, Proxy, Topo, Vhost, gets, until};

/// The file, cut at its plans.
struct Explanation {
    path: PathBuf,
    text: String,
    needs: String,
    live: Value,
    messages: Vec<(String, usize)>,
    acts: Vec<Act>,
}

/// One plan and what led to it.
struct Act {
    spec: String,
    flags: Vec<String>,
    plan: String,
    exit: i32,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// The fenced blocks of a Markdown text: what stands behind the fence, and what stands within.
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

impl Explanation {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{}: no title", path.display());
        let mut story =
            Self { path, needs: String::new(), live: Value::Null, messages: Vec::new(), acts: Vec::new(), text };
        let (mut spec, mut flags) = (String::new(), Vec::new());
        for (name, body) in blocks(&story.text) {
            match name.as_str() {
                "json live" => story.live = serde_json::from_str(&body).unwrap(),
                "yaml spec" => spec = body,
                "flags" => flags = body.split_whitespace().map(str::to_owned).collect(),
                "needs" => story.needs = body,
                "messages" => {
                    let counts = body.lines().filter_map(|line| line.rsplit_once(": "));
                    story.messages =
                        counts.map(|(queue, count)| (queue.to_owned(), count.trim().parse().unwrap())).collect();
                }
                plan => {
                    let exit = plan.strip_prefix("text plan exit ").unwrap_or_else(|| panic!("what is `{plan}`?"));
                    let flags = std::mem::take(&mut flags);
                    let exit = exit.parse().unwrap_or(-1);
                    story.acts.push(Act { spec: spec.clone(), flags, plan: body, exit });
                }
            }
        }
        assert!(!story.acts.is_empty(), "{}: no plan", story.path.display());
        story
    }

    /// Whether this broker can tell the story: `at least 3.9`, `before 3.9`, one a line.
    fn can_be_told(&self, node: &Node) -> bool {
        self.needs.lines().all(|line| {
            let (word, version) = line.rsplit_once(' ').unwrap();
            let (major, minor) = version.split_once('.').unwrap();
            let at_least = node.at_least(major.parse().unwrap(), minor.parse().unwrap());
            match word {
                "at least" => at_least,
                "before" => !at_least,
                other => panic!("{}: what is `{other}`?", self.path.display()),
            }
        })
    }

    /// The file with what really was planned.
    fn updated(&self, told: &[(String, i32)]) -> String {
        let mut text = String::new();
        let mut told = told.iter();
        let mut skip = false;
        for line in self.text.lines() {
            if line.starts_with("```text plan") {
                let (plan, exit) = told.next().unwrap();
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

/// Makes what a definitions file would say. Bindings may lack `destination_type` and `routing_key`.
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
        // `e` and `q` have nothing to encode.
        let arguments = binding.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let body = json!({"routing_key": text("routing_key"), "arguments": arguments});
        http.post(&path, &body).expect_status(201);
    }
}

/// Waits until the totals that plans are made of show what is there: those of quorum queues lag by up to a tick.
pub(crate) fn until_counted(vhost: &Vhost<'_>, messages: &[(String, usize)]) {
    let path = vhost.path("queues", &[]) + "?disable_stats=true&enable_queue_totals=true";
    until("the totals to show every message", || {
        // A node that has just started answers 500 for as long as it has no statistics of a new queue.
        let listed = Some(vhost.http().get(&path)).filter(|answer| answer.status != 500)?.expect_status(200);
        let shows = |(queue, count): &(String, usize)| {
            let found = listed.as_array().unwrap().iter().find(|listed| listed["name"] == queue.as_str()).unwrap();
            found["arguments"]["x-queue-type"] == "stream" || found["messages"] == *count
        };
        messages.iter().all(shows).then_some(())
    });
}

/// What differs between two runs on two brokers.
fn normalised(output: &Output, vhost: &Vhost<'_>, proxy: &Proxy) -> String {
    let plain = output.stdout.replace(&proxy.url(), "http://localhost:15672");
    plain.replace(vhost.node().version(), "VERSION").replace(vhost.name(), "shop")
}

/// Everything but the names of the vhost itself.
pub(crate) fn everything(vhost: &Vhost<'_>) -> Value {
    let mut all = json!({});
    for kind in ["exchanges", "queues", "bindings", "policies", "operator-policies"] {
        let mut list = vhost.list(kind);
        for object in &mut list {
            // Statistics come and go.
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

/// Plans, applies, and finds nothing left to do. What was planned comes back.
fn play(act: &Act, vhost: &Vhost<'_>, proxy: &Proxy) -> (String, i32) {
    let topo = Topo::new(vhost).through(proxy).spec(&act.spec);
    let before = everything(vhost);
    // A plan names the tick, which differs between the brokers of the tests.
    let shown = Topo::new(vhost).through(proxy).spec(&act.spec).env("TOPO_TICK_INTERVAL", "5s");
    let planned = run(&shown, &["plan", "--detailed-exitcode"], &act.flags);
    let exit = planned.code.unwrap();
    let plan = normalised(&planned, vhost, proxy);
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

/// Tells a story; what is wrong with it, if anything.
fn tell(path: PathBuf) -> Result<(), String> {
    let story = Explanation::read(path);
    let node = Node::shared();
    if !story.can_be_told(node) {
        return Ok(());
    }
    // As long as `shop`, because texts are aligned, and broken where they are too long.
    static NUMBER: AtomicUsize = AtomicUsize::new(1);
    let vhost = Vhost::create(node, format!("v{:03}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    let second = segment(&format!("{}-two", vhost.name()));
    let proxy = Proxy::to(node);
    make_live(&vhost, &story.live);
    fill(&vhost, &story.messages);
    until_counted(&vhost, &story.messages);
    let told: Vec<(String, i32)> = story.acts.iter().map(|act| play(act, &vhost, &proxy)).collect();
    // A spec may create a second vhost.
    let _ = node.http().send("DELETE", &format!("/api/vhosts/{second}"), None);
    let updated = story.updated(&told);
    if updated == story.text {
        return Ok(());
    }
    if std::env::var_os("TOPO_UPDATE").is_some() {
        std::fs::write(&story.path, updated).unwrap();
        return Ok(());
    }
    let mut wrong = String::new();
    for (act, (plan, exit)) in story.acts.iter().zip(&told) {
        if act.plan != *plan || act.exit != *exit {
            let _ = write!(wrong, "--- expected, exit {}\n{}--- got, exit {exit}\n{plan}", act.exit, act.plan);
        }
    }
    Err(wrong + "(TOPO_UPDATE=1 rewrites what is expected; then look at the difference)")
}

/// Over AMQP: publishing over HTTP is answered with 500 now and then by a 3.8 that has just started.
pub(crate) fn fill(vhost: &Vhost<'_>, messages: &[(String, usize)]) {
    if !messages.is_empty() {
        let amqp = vhost.amqp();
        messages.iter().for_each(|(queue, count)| amqp.fill(queue, *count));
    }
}

#[test]
fn every_scenario_converges_as_it_is_told() {
    let only = std::env::var("TOPO_SCENARIO").unwrap_or_default();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.retain(|path| path.file_stem().is_some_and(|name| name.to_string_lossy().contains(&only)));
    paths.sort();
    let count = paths.len();
    // Several at once: most of the time is spent waiting for the broker.
    let queue = std::sync::Mutex::new(paths);
    let failed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(path) = queue.lock().unwrap().pop() else { break };
                    let name = path.file_name().unwrap().to_string_lossy().into_owned();
                    let told = std::panic::catch_unwind(|| tell(path)).unwrap_or_else(|panic| {
                        let text = panic.downcast_ref::<String>().cloned();
                        Err(text.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
                    });
                    if let Err(wrong) = told {
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
