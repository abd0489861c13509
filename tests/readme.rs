//! Checks the README and the reference pages: their specs are valid, and their tables are complete.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::shells::commands;
use crate::live::guide::PAGES;
use crate::support::page::expect_file;
use crate::support::{Page, Topo};

/// A page shows a command only if `live::guide` runs the page.
#[test]
fn every_command_of_a_page_is_run() {
    let is_run = |page: &Page| PAGES.iter().any(|path| page.name() == format!("docs/{path}.md"));
    for page in Page::of_docs().iter().chain([&Page::read("README.md")]) {
        assert_eq!(!page.blocks("console").is_empty(), is_run(page), "{}", page.name());
    }
}

/// The excerpt in the README consists of lines of the complete output, which `live::quickstart` checks.
#[test]
fn excerpt_is_part_of_the_output_of_the_quickstart() {
    let (readme, tutorial) = (Page::read("README.md"), Page::read("docs/tutorials/quickstart.md"));
    let mut rest = tutorial.blocks("text")[0];
    for piece in readme.blocks("text")[0].split("…\n") {
        let at = rest
            .find(piece)
            .unwrap_or_else(|| panic!("the quickstart does not print this, or not in this order:\n{piece}"));
        rest = &rest[at + piece.len()..];
    }
}

/// The image of the retry ladder is drawn from the spec above it, and the other image from an example.
#[test]
fn images_of_the_readme_are_current() {
    let readme = Page::read("README.md");
    let example = Page::read("examples/criticality/topology.yaml").text;
    for (image, spec) in [("ladder", readme.blocks("yaml")[0]), ("graph", &example)] {
        let topo = Topo::offline().file("topology.yaml", spec);
        let drawn = topo.run(["graph", "--format", "svg"]).expect_code(0).stdout;
        expect_file(&format!("docs/images/{image}.svg"), &drawn);
    }
}

#[test]
fn spec_is_valid_and_plans() {
    let page = Page::read("docs/spec.md");
    let topo = Topo::offline().file("topology.yaml", page.blocks("yaml")[0]);
    // The statements about classic queues are correct.
    topo.run(["validate"]).expect_code(0).expect_text("Valid").expect_no_text("warning");
    topo.run(["plan", "--against", "empty"]).expect_code(0).expect_text("exchange legacy is marked `external: true`");
}

/// The example of `forEach` declares the objects of each item.
#[test]
fn for_each_example_plans() {
    let page = Page::read("docs/spec.md");
    let example = page.blocks("yaml").into_iter().find(|block| block.contains("forEach")).expect("an example");
    let topo = Topo::offline().file("topology.yaml", example);
    topo.run(["validate"]).expect_code(0).expect_text("4 queues").expect_no_text("warning");
    let plan = topo.run(["plan", "--against", "empty"]).expect_code(0);
    plan.expect_text("queue parcels.eu ").expect_text("x-max-length 250000").expect_text("parcel.us.#");
}

/// The first table of the reference lists each command of the help.
#[test]
fn table_of_commands_is_complete() {
    let page = Page::read("docs/reference.md").text;
    for command in commands() {
        let is_listed = page.lines().any(|line| line.starts_with(&format!("| `topo {command}")));
        assert!(is_listed, "`topo {command}` is missing in the table of commands in docs/reference.md");
    }
}

/// The reference contains every flag of the help, and the help contains every flag of the reference.
#[test]
fn tables_list_every_flag() {
    let text = Page::read("docs/reference.md").text;
    let reference = &text[text.find("## Commands").unwrap()..text.find("## Dead-letter queues").unwrap()];
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for command in [
        "plan", "apply", "show", "status", "lock", "validate", "export", "graph", "alerts", "contract", "explain",
        "rules", "schema",
    ] {
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

/// The section on dead-letter queues lists each flag of each command of `topo dlq`.
#[test]
fn reference_lists_the_flags_of_dead_letter_queues() {
    let page = Page::read("docs/reference.md").text;
    let section = page[page.find("## Dead-letter queues").unwrap()..].split("\n## ").next().unwrap();
    let connection = &page[page.find("### Connection").unwrap()..page.find("### Planning").unwrap()];
    let global = ["--help", "--format", "--vhost", "--color", "--quiet", "--verbose"];
    let mut known = BTreeSet::new();
    for command in ["list", "peek", "replay", "drop", "export", "restore"] {
        let help = Topo::offline().run(["dlq", command, "--help"]).expect_code(0).stdout;
        for flag in flags(&help) {
            let is_listed = section.contains(flag.as_str()) || connection.contains(flag.as_str());
            assert!(
                is_listed || global.contains(&flag.as_str()),
                "`topo dlq {command}` has {flag}, the reference has not"
            );
            known.insert(flag);
        }
    }
    for flag in flags(section) {
        assert!(known.contains(&flag), "the reference has {flag}, no command of topo dlq has");
    }
}

/// The reference lists the flags without an environment variable.
#[test]
fn flags_without_a_variable_are_listed() {
    let mut without: BTreeSet<String> = BTreeSet::new();
    for command in [
        "plan", "apply", "show", "status", "lock", "validate", "export", "graph", "alerts", "contract", "explain",
        "rules", "schema",
    ] {
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
    let listed = page[page.find("### Environment").unwrap()..].split("The password").next().unwrap();
    assert_eq!(flags(listed).into_iter().collect::<BTreeSet<_>>(), without, "docs/reference.md");
}

/// The table lists each hazard of `--allow` once.
#[test]
fn table_of_hazards_is_complete() {
    let refused = Topo::offline().spec("").run(["plan", "--allow", "danger"]).expect_code(64).stderr;
    let words = refused.split_whitespace().collect::<Vec<_>>().join(" ");
    let list = words.split("not a hazard; the hazards are ").nth(1).unwrap();
    let is_hazard = |c: char| c.is_ascii_lowercase() || c == '-' || c == ',' || c == ' ';
    let list: String = list.chars().take_while(|c| is_hazard(*c)).collect();
    // Text after the list is ignored.
    let mut known: Vec<&str> = list.split(", ").map(|word| word.split(' ').next().unwrap()).collect();
    let page = Page::read("docs/reference.md").text;
    let section = page[page.find("## Hazards").unwrap()..].lines();
    let mut listed: Vec<&str> =
        section.filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(hazard, _)| hazard).collect();
    known.sort_unstable();
    listed.sort_unstable();
    assert!(known.len() > 10, "{known:?}");
    assert_eq!(listed, known, "the table of hazards in docs/reference.md, and the hazards of topo");
}

/// The exit codes in the table are those in the help.
#[test]
fn table_of_exit_codes_is_complete() {
    let help = Topo::offline().run(["--help"]).expect_code(0).stdout;
    let codes = |text: &str, from: &str, first: fn(&str) -> Option<&str>| -> Vec<u8> {
        let lines = text[text.find(from).unwrap()..].lines().skip(1);
        lines.map_while(|line| Some(first(line)?.trim().to_owned())).filter_map(|word| word.parse().ok()).collect()
    };
    let known = codes(&help, "Exit codes:", |line| line.split_whitespace().next());
    let page = Page::read("docs/reference.md").text;
    let listed = codes(&page, "| exit code |", |line| line.strip_prefix('|')?.split('|').next());
    assert!(known.len() > 8, "{known:?}");
    assert_eq!(listed, known);
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
