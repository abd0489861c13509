//! The README is true: its console blocks are run against a real broker, its spec is valid, its tables name what there is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::{Node, Topo, Vhost, scratch};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

/// The fenced blocks of a language, with where their text begins and ends.
fn blocks(text: &str, language: &str) -> Vec<(usize, usize)> {
    let opening = format!("```{language}\n");
    let mut blocks = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(&opening) {
        let start = from + at + opening.len();
        let end = start + text[start..].find("```").expect("every block is closed");
        blocks.push((start, end));
        from = end + 3;
    }
    blocks
}

/// The story of "A plan": the quickstart is live, somebody else bound to its queue. Every `$` line is run in a shell, and
/// what it prints must stand below it. `TOPO_UPDATE=1` writes the README anew.
#[test]
fn every_command_prints_what_stands_below_it() {
    let node = Node::shared();
    let vhost = Vhost::create(node, "eventhorizon".to_owned());
    let folder = scratch::folder();
    std::os::unix::fs::symlink(root().join("examples"), folder.path().join("examples")).unwrap();
    let run = |command: &str| shell(folder.path(), node, command);
    let quickstart = run("topo apply --yes examples/quickstart/topology.yaml");
    assert!(quickstart.contains("Applied"), "{quickstart}");
    let audit = json!({"routing_key": "event.created", "arguments": {}});
    vhost
        .http()
        .put(&vhost.path("exchanges", &["audit"]), &json!({"type": "topic", "durable": true}))
        .expect_status(201);
    let path = format!("/api/bindings/{}/e/audit/q/events.work", vhost.name());
    vhost.http().post(&path, &audit).expect_status(201);
    // Consumers are listed from statistics; a queue that never had one is listed without them at once.

    let text = readme();
    let mut updated = String::new();
    let mut last = 0;
    for (start, end) in blocks(&text, "console") {
        updated.push_str(&text[last..start]);
        for line in text[start..end].lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                let _ = writeln!(updated, "$ {command}");
                updated.push_str(&run(command));
            }
        }
        last = end;
    }
    updated.push_str(&text[last..]);
    if std::env::var_os("TOPO_UPDATE").is_some() {
        std::fs::write(root().join("README.md"), &updated).unwrap();
    }
    assert!(readme() == updated, "README.md is old: run the tests with TOPO_UPDATE=1, and look at the difference");
}

/// What a command prints on standard output, as on a machine where RabbitMQ is at its usual place.
fn shell(folder: &Path, node: &Node, command: &str) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_topo")).parent().unwrap();
    let output = Command::new("bash")
        .args(["-c", command])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("HOME", folder)
        .env("COLUMNS", "100")
        .env("TOPO_URL", node.url())
        .env("TOPO_USERNAME", "guest")
        .env("TOPO_PASSWORD", "guest")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!errors.contains("error:"), "{command}\n{errors}");
    text.replace(&node.url(), "http://localhost:15672")
        .replace(&format!("RabbitMQ {}", node.version()), "RabbitMQ 3.10.8")
}

#[test]
fn the_spec_is_valid_and_plans() {
    let text = readme();
    let (start, end) = blocks(&text, "yaml")[0];
    let topo = Topo::offline().file("topology.yaml", &text[start..end]);
    // A note about what no classic queue can do is right, and no fault.
    topo.run(["validate"]).expect_code(0).expect_text("Valid").expect_no_text("warning");
    topo.run(["plan", "--against", "empty"]).expect_code(0).expect_text("exchange legacy is marked `external: true`");
}

/// Every flag that the help names stands in the README, and the other way round.
#[test]
fn the_tables_name_every_flag() {
    let text = readme();
    let reference = &text[text.find("## Commands").unwrap()..text.find("## Hazards").unwrap()];
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for command in ["plan", "apply", "validate", "export", "graph", "contract", "explain", "rules", "schema"] {
        let help = Topo::offline().run([command, "--help"]).expect_code(0).stdout;
        for flag in flags(&help) {
            known.insert(flag, command);
        }
    }
    for (flag, command) in &known {
        let hidden = ["--help", "--kind"].contains(&flag.as_str());
        assert!(hidden || reference.contains(flag.as_str()), "`topo {command}` has {flag}, the README has not");
    }
    for flag in flags(reference) {
        assert!(known.contains_key(&flag), "the README has {flag}, no command has");
    }
}

fn flags(text: &str) -> Vec<String> {
    let is_flag = |c: char| c.is_ascii_lowercase() || c == '-';
    let mut flags: Vec<String> = text
        .match_indices("--")
        .filter(|(at, _)| !text[..*at].ends_with(is_flag))
        .map(|(at, _)| text[at..].chars().take_while(|c| is_flag(*c)).collect())
        .filter(|flag: &String| flag.len() > 3)
        .collect();
    flags.sort();
    flags.dedup();
    flags
}
