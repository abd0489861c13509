//! Passes random and mutated specs through all offline stages: parsing, expansion, lint rules, a plan against an empty
//! broker, contracts, and rendering.
//!
//! An input has one or two files, with variables and alias bombs. Some inputs also pass through the binary, with
//! `--var` and a variable file. No input may cause a panic, hang the process, or use unbounded memory.
//!
//! ```text
//! cargo test --test suite fuzz::                      # two seconds, as in every run; a minute with TOPO_LONG=1
//!
//! TOPO_FUZZ=600 cargo test --test suite fuzz::        # ten minutes
//!
//! TOPO_SEED=7 TOPO_FUZZ=60 cargo test --test suite fuzz::   # a fixed seed repeats the inputs
//! ```
//!
//! A separate process with limited memory processes the inputs. A failing input is kept in `target/fuzz-failure/`, and
//! the slowest input in `target/fuzz-slowest/`. Unlike cargo-fuzz, this test needs no nightly compiler.

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
use topo::plan::{
    Activity, Desired, Options, PlanContext, RecordFacts, Target, assemble, blockers_of, plan_cluster, plan_vhost,
};
use topo::rabbitmq::BrokerProfile;
use topo::render::plan_summary;
use topo::render::plan_text::{self, View};
use topo::render::{diagnostics::diagnostics, findings, plan_github, plan_markdown};
use topo::spec::{Diagnostics, SourceFile, Variables, parse_all};

use crate::support::{Random, child, number, seed};
use mutate::Input;

/// The time limit of an input in a test build on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The limit of the address space in KiB; the process itself needs a few hundred thousand.
const MEMORY: &str = "1500000";

/// The minimum number of inputs. On a busy machine, two seconds suffice for only a few inputs.
const FEWEST: usize = 150;
/// Every n-th input also passes through the binary.
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
    let reported = String::from_utf8_lossy(&inputs.stdout);
    let tried = reported.lines().find_map(|line| line.strip_prefix("tried ")).unwrap_or("nothing");
    println!("fuzz: seed {seed}, {seconds} s: {tried}");
    let error: String = String::from_utf8_lossy(&inputs.stderr).chars().take(8000).collect();
    assert!(
        inputs.status.success() && reported.contains("1 passed"),
        "seed {seed}: {} in {}:\n{error}",
        inputs.status,
        failure().display()
    );
}

/// Processes the inputs in a separate process with the stack size of the binary, which is larger than that of a test.
#[test]
#[ignore = "nothing_panics_hangs_or_grows runs it"]
fn inputs() {
    let tried = thread::Builder::new().stack_size(8 << 20).spawn(try_inputs).unwrap().join();
    assert!(tried.is_ok(), "the error is printed above");
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
            if watched.lock().unwrap().elapsed() > TIME_LIMIT {
                eprintln!("one input took more than {TIME_LIMIT:?}");
                std::process::abort();
            }
        }
    });
    let (mut count, mut good, mut run, mut slowest) = (0, 0, 0, Duration::ZERO);
    while Instant::now() < until || count < FEWEST {
        let input = mutate::input(&seeds, &mut random);
        // Written before the attempt, because a crash leaves no time for this.
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
        good += usize::from(planned.expect("the panic is printed above"));
        count += 1;
    }
    // A concurrent run may have removed the folder.
    let _ = fs::remove_dir_all(failure());
    println!(
        "\ntried {count} inputs, {good} of them good to the plan, {run} through the program; the slowest took {slowest:?}"
    );
    assert!(good > 0, "{count} inputs, {good} good");
}

/// Runs the binary on a folder, and expects one of its exit codes.
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

/// Passes a spec through all offline stages. Returns true if the spec reached a plan.
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
    let specs: Vec<_> = specs.cluster.into_iter().chain(specs.vhosts).collect();
    if let Err(found) = found.or_value(()) {
        assert!(!found.is_empty());
        let rest = specs
            .iter()
            .map(|spec| PartialSpec::new(spec, &found).errors(&BrokerProfile::of(BrokerVersion::NEWEST_KNOWN)));
        told(&rest.fold(found.clone(), Diagnostics::and));
        return false;
    }
    let (mut parts, mut cluster) = (Vec::new(), None);
    let options = Options::default();
    // The oldest and the newest supported version expand the same spec differently.
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
            if spec.vhost.value.is_cluster() {
                let empty = definitions::empty_cluster(version);
                let activity = Activity::default();
                let context = empty.snapshot.context(&desired, &activity);
                cluster = Some(plan_cluster(&context, &empty.facts, &options));
                continue;
            }
            let context = PlanContext {
                current: &empty.topology,
                desired: &desired,
                activity: &Activity::default(),
                properties_keys: &empty.properties_keys,
                untouchable: &empty.untouchable,
                lacks_auto_delete: &empty.lacks_auto_delete,
                records: &RecordFacts::default(),
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
    let plan = assemble(target, options, cluster, parts);
    assert!(!serde_json::to_string(&plan).unwrap().is_empty());
    let blockers = blockers_of(&plan, &[]);
    let view = View { width: 80, blockers: &blockers, specs: "fuzz.yaml", apply: None, details: true, all: true };
    let shown = plan_text::plan(&plan, &view);
    assert!(!plan_markdown::plan(&plan, &view, &shown).is_empty());
    assert!(!plan_github::plan(&plan, &blockers, &plan_summary::summary_line(&plan)).is_empty());
    true
}
