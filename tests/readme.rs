//! The reference is true: its console blocks are run against a real broker, its spec is valid, its tables name what there is.
//! What the README's first command prints is `live::quickstart`'s affair.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::json;

use crate::support::page::root;
use crate::support::{Node, Page, Part, Shell, Topo, Vhost};

/// Pages with commands whose story begins in the same place: the quickstart is live.
const STORIES: [&str; 2] = ["docs/reading-a-plan.md", "docs/workers.md"];

/// The quickstart is live, and somebody else bound to its queue.
#[test]
fn every_command_prints_what_stands_below_it() {
    let node = Node::shared();
    let vhost = Vhost::create(node, "eventhorizon".to_owned());
    let shell = Shell::new(node);
    let copied = Command::new("cp").arg("-r").arg(root().join("examples")).arg(shell.folder()).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let quickstart = shell.run("topo apply --yes examples/quickstart/topology.yaml");
    assert!(quickstart.contains("Applied"), "{quickstart}");
    let audit = json!({"routing_key": "event.created", "arguments": {}});
    vhost
        .http()
        .put(&vhost.path("exchanges", &["audit"]), &json!({"type": "topic", "durable": true}))
        .expect_status(201);
    let path = format!("/api/bindings/{}/e/audit/q/events.work", vhost.name());
    vhost.http().post(&path, &audit).expect_status(201);
    // Consumers are listed from statistics; a queue that never had one is listed without them at once.

    for page in STORIES.map(Page::read) {
        let mut sessions = 0;
        let updated = page.rewritten(|part| match part {
            Part::Block { language: "console", text } => {
                sessions += 1;
                Some(shell.session(text))
            }
            Part::Block { .. } | Part::Line(_) | Part::Fence(_) => None,
        });
        assert!(sessions > 1, "{}", page.name());
        page.expect(&updated);
    }
}

/// Nobody shows a command elsewhere without its being run.
#[test]
fn every_console_block_is_on_a_page_whose_commands_are_run() {
    let pages = Page::of_folder("docs").into_iter().chain([Page::read("README.md")]);
    for page in pages.filter(|page| !STORIES.contains(&page.name())) {
        assert!(page.blocks("console").is_empty(), "{}", page.name());
    }
}

#[test]
fn the_spec_is_valid_and_plans() {
    let page = Page::read("docs/spec.md");
    let topo = Topo::offline().file("topology.yaml", page.blocks("yaml")[0]);
    // A note about what no classic queue can do is right, and no fault.
    topo.run(["validate"]).expect_code(0).expect_text("Valid").expect_no_text("warning");
    topo.run(["plan", "--against", "empty"]).expect_code(0).expect_text("exchange legacy is marked `external: true`");
}

/// Every flag that the help names stands in the reference, and the other way round.
#[test]
fn the_tables_name_every_flag() {
    let text = Page::read("docs/reference.md").text;
    let reference = &text[text.find("## Commands").unwrap()..text.find("## Hazards").unwrap()];
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for command in
        ["plan", "apply", "show", "lock", "validate", "export", "graph", "contract", "explain", "rules", "schema"]
    {
        let help = Topo::offline().run([command, "--help"]).expect_code(0).stdout;
        for flag in flags(&help) {
            known.insert(flag, command);
        }
    }
    for (flag, command) in &known {
        let hidden = ["--help", "--kind"].contains(&flag.as_str());
        assert!(hidden || reference.contains(flag.as_str()), "`topo {command}` has {flag}, the reference has not");
    }
    for flag in flags(reference) {
        assert!(known.contains_key(&flag), "the reference has {flag}, no command has");
    }
}

/// Not every flag is a variable, too: those that are not are named where that is told.
#[test]
fn what_the_environment_cannot_say_is_named() {
    let mut without: BTreeSet<String> = BTreeSet::new();
    for command in
        ["plan", "apply", "show", "lock", "validate", "export", "graph", "contract", "explain", "rules", "schema"]
    {
        let help = Topo::offline().run([command, "--help"]).expect_code(0).stdout;
        let mut flag = None;
        for line in help.lines() {
            let start = line.trim_start();
            let is_flag = line.len() - start.len() <= 6 && start.starts_with('-');
            if let Some(found) = flags(line).into_iter().next().filter(|_| is_flag) {
                without.extend(flag.replace(found));
            } else if line.contains("[env: TOPO_") {
                flag = None;
            }
        }
        without.extend(flag);
    }
    without.remove("--help");
    assert!(without.len() > 3, "{without:?}");
    let page = Page::read("docs/reference.md").text;
    let told = page[page.find("### Environment").unwrap()..].split("The password").next().unwrap();
    assert_eq!(flags(told).into_iter().collect::<BTreeSet<_>>(), without, "docs/reference.md");
    let help = Topo::offline().run(["--help"]).expect_code(0).stdout;
    let told = help[help.find("Environment:").unwrap()..].split("Flags take").next().unwrap();
    assert_eq!(flags(told).into_iter().collect::<BTreeSet<_>>(), without, "topo --help");
}

/// The same words as `--allow` knows, each once.
#[test]
fn the_table_of_hazards_is_complete() {
    let refused = Topo::offline().spec("").run(["plan", "--allow", "danger"]).expect_code(64).stderr;
    let words = refused.split_whitespace().collect::<Vec<_>>().join(" ");
    let list = words.split("not a hazard; the hazards are ").nth(1).unwrap();
    let is_hazard = |c: char| c.is_ascii_lowercase() || c == '-' || c == ',' || c == ' ';
    let list: String = list.chars().take_while(|c| is_hazard(*c)).collect();
    // What is said behind the list is no part of it.
    let mut known: Vec<&str> = list.split(", ").map(|word| word.split(' ').next().unwrap()).collect();
    let page = Page::read("docs/reference.md").text;
    let section = page[page.find("## Hazards").unwrap()..].lines();
    let mut told: Vec<&str> =
        section.filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(hazard, _)| hazard).collect();
    known.sort_unstable();
    told.sort_unstable();
    assert!(known.len() > 10, "{known:?}");
    assert_eq!(told, known);
}

/// Exit codes, too, are those of the help.
#[test]
fn the_table_of_exit_codes_is_complete() {
    let help = Topo::offline().run(["--help"]).expect_code(0).stdout;
    let codes = |text: &str, from: &str, first: fn(&str) -> Option<&str>| -> Vec<u8> {
        let lines = text[text.find(from).unwrap()..].lines().skip(1);
        lines.map_while(|line| Some(first(line)?.trim().to_owned())).filter_map(|word| word.parse().ok()).collect()
    };
    let known = codes(&help, "Exit codes:", |line| line.split_whitespace().next());
    let page = Page::read("docs/reference.md").text;
    let told = codes(&page, "| exit code |", |line| line.strip_prefix('|')?.split('|').next());
    assert!(known.len() > 8, "{known:?}");
    assert_eq!(told, known);
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
