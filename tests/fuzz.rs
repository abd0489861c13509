//! Random and mutated specs through all that works offline: reading, expanding, the rules, the plan against an empty broker,
//! contracts, and the words for all of it. One file or two, with variables, with bombs of aliases; some of them also through
//! the program itself, with `--var` and a file of variables. Nothing panics, hangs, or takes memory without end.
//!
//! ```text
//! cargo test --test suite fuzz::                      # two seconds, as in every run; a minute with TOPO_LONG=1
//! TOPO_FUZZ=600 cargo test --test suite fuzz::        # ten minutes
//! TOPO_SEED=7 TOPO_FUZZ=60 cargo test --test suite fuzz::   # the same inputs again
//! ```
//!
//! The inputs are tried in a process of its own, whose memory is limited; what stops it is left in
//! `target/fuzz-failure/`, and what took longest in `target/fuzz-slowest/`. Nothing here needs a nightly compiler,
//! as cargo-fuzz would.

mod mutate;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use topo::broker::definitions;
use topo::contract::contracts;
use topo::expand::expand;
use topo::lint::{Levels, PartialSpec, Subject, lint};
use topo::model::BrokerVersion;
use topo::plan::{Activity, Desired, Options, PlanContext, Target, obstacles, plan_vhost, seal};
use topo::rabbitmq::BrokerProfile;
use topo::render::plan_text::{self, View};
use topo::render::{diagnostics::diagnostics, findings, plan_github, plan_markdown};
use topo::spec::{Diagnostics, SourceFile, Variables, parse_all};

use crate::support::{Random, child, number, seed};
use mutate::Input;

/// One input may take so long, in a build for tests on a machine that does much else.
const LONGEST: Duration = Duration::from_secs(30);
/// Kilobytes of address space, of which the process itself takes some hundred thousand.
const MEMORY: &str = "1500000";

/// On a machine that does much else, two seconds are few inputs.
const FEWEST: usize = 150;
/// One in so many inputs also goes through the program.
const PROGRAM: usize = 100;

fn failure() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/fuzz-failure")
}

#[test]
fn nothing_panics_hangs_or_grows() {
    let seconds = number("TOPO_FUZZ").unwrap_or(if std::env::var_os("TOPO_LONG").is_some() { 60 } else { 2 });
    let seed = seed();
    let inputs = child("/bin/sh")
        .args(["-c", &format!("ulimit -v {MEMORY} && exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "fuzz::inputs", "--ignored", "--nocapture"])
        .env("TOPO_SEED", seed.to_string())
        .env("TOPO_FUZZ", seconds.to_string())
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&inputs.stdout);
    let tried = said.lines().find_map(|line| line.strip_prefix("tried ")).unwrap_or("nothing");
    println!("fuzz: seed {seed}, {seconds} s: {tried}");
    let error: String = String::from_utf8_lossy(&inputs.stderr).chars().take(8000).collect();
    assert!(
        inputs.status.success() && said.contains("1 passed"),
        "seed {seed}: {} in {}:\n{error}",
        inputs.status,
        failure().display()
    );
}

/// The inputs, in a process of its own; with the stack that a program has, which is more than a test's.
#[test]
#[ignore = "nothing_panics_hangs_or_grows runs it"]
fn inputs() {
    let tried = thread::Builder::new().stack_size(8 << 20).spawn(try_inputs).unwrap().join();
    assert!(tried.is_ok(), "it is said above what went wrong");
}

fn try_inputs() {
    let until = Instant::now() + Duration::from_secs(number("TOPO_FUZZ").unwrap_or(2));
    let seeds = mutate::seeds();
    let mut random = Random::new(seed());
    let begun = Arc::new(Mutex::new(Instant::now()));
    let watched = Arc::clone(&begun);
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_millis(200));
            if watched.lock().unwrap().elapsed() > LONGEST {
                eprintln!("one input took more than {LONGEST:?}");
                std::process::abort();
            }
        }
    });
    let (mut count, mut good, mut run, mut slowest) = (0, 0, 0, Duration::ZERO);
    while Instant::now() < until || count < FEWEST {
        let input = mutate::input(&seeds, &mut random);
        // Before it is tried: what ends this process leaves no time for it.
        input.write(&failure());
        *begun.lock().unwrap() = Instant::now();
        let planned = catch_unwind(AssertUnwindSafe(|| offline(&input)));
        let taken = begun.lock().unwrap().elapsed();
        if taken > slowest {
            slowest = taken;
            input.write(&failure().with_file_name("fuzz-slowest"));
        }
        if random.below(PROGRAM) == 0 {
            *begun.lock().unwrap() = Instant::now();
            program(&input, &failure());
            run += 1;
        }
        good += usize::from(planned.expect("it is said above where it panicked"));
        count += 1;
    }
    // Another run may have taken it away.
    let _ = fs::remove_dir_all(failure());
    println!(
        "\ntried {count} inputs, {good} of them good to the plan, {run} through the program; the slowest took {slowest:?}"
    );
    assert!(good > 0, "{count} inputs, {good} good");
}

/// What was written to a folder through the program: it ends, and with a code that is its own.
fn program(input: &Input, folder: &Path) {
    let mut command = child(env!("CARGO_BIN_EXE_topo"));
    command.current_dir(folder).args(["validate", "--var-file", "variables", "fuzz.yaml"]);
    command.args((input.files.len() > 1).then_some("more.yaml"));
    if let Some((name, value)) = input.variables.first() {
        command.arg("--var").arg(format!("{name}={value}"));
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 64 | 65)), "{}: {error}", output.status);
}

/// All that is done with a spec and no broker; whether it came to a plan.
fn offline(input: &Input) -> bool {
    let names = ["fuzz.yaml", "more.yaml"].into_iter();
    let file = |(name, text): (&str, &String)| SourceFile { name: name.to_owned(), text: text.clone() };
    let files: Vec<SourceFile> = names.zip(&input.files).map(file).collect();
    let mut variables = Variables::new();
    input.variables.iter().for_each(|(name, value)| variables.set(name, value));
    let told = |found: &Diagnostics| {
        assert!(!diagnostics(found, &files, true, 80).is_empty() || found.is_empty());
        findings::json(found, &files, None);
        findings::github(found, &files);
        findings::lines(found, &files, 80);
    };
    let (specs, found) = parse_all(&files, &variables);
    if let Err(found) = found.or_value(()) {
        assert!(!found.is_empty());
        let rest = specs
            .iter()
            .map(|spec| PartialSpec::new(spec, &found).errors(&BrokerProfile::of(BrokerVersion::NEWEST_KNOWN)));
        told(&rest.fold(found.clone(), Diagnostics::and));
        return false;
    }
    let mut parts = Vec::new();
    let options = Options::default();
    // Both ends of what is supported expand the same spec to other things.
    for version in [BrokerVersion::NEWEST_KNOWN, "3.8".parse().expect("a version")] {
        let profile = BrokerProfile::of(version);
        for spec in &specs {
            let expansion = match expand(spec, &profile) {
                Ok(expansion) => expansion,
                Err(found) => {
                    told(&found);
                    return false;
                }
            };
            let mut found = Diagnostics::new();
            lint(&Subject::new(spec, &expansion, &profile), &Levels::new()).iter().for_each(|it| found.push(it.into()));
            told(&found);
            let promised = contracts(spec, &expansion, &profile);
            assert!(!serde_json::to_string(&promised).unwrap().is_empty());
            let empty = definitions::empty(spec.vhost.value.clone(), version);
            let desired =
                Arc::new(Desired { topology: expansion.topology, scope: expansion.scope, sources: Vec::new() });
            let context = PlanContext {
                current: &empty.topology,
                desired: &desired,
                activity: &Activity::default(),
                properties_keys: &empty.properties_keys,
                untouchable: &empty.untouchable,
                profile: &profile,
            };
            parts.push(plan_vhost(&context, &options));
        }
    }
    let target = Target {
        url: "empty".to_owned(),
        cluster: String::new(),
        product: "RabbitMQ".to_owned(),
        version: "4".to_owned(),
    };
    let plan = seal(target, options, parts);
    assert!(!serde_json::to_string(&plan).unwrap().is_empty());
    let obstacles = obstacles(&plan, &[]);
    let view = View { width: 80, obstacles: &obstacles, specs: "fuzz.yaml", apply: None, details: true, all: true };
    let shown = plan_text::plan(&plan, &view);
    assert!(!plan_markdown::plan(&plan, &view, &shown).is_empty());
    assert!(!plan_github::plan(&plan, &obstacles, &plan_text::summary_line(&plan)).is_empty());
    true
}
