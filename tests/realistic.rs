//! Checks that realistic topologies in `lint/realistic` have exactly the findings in their comments:
//! `# finds: SEVERITY RULE, …` at the line of each finding. `# version: V` sets the RabbitMQ version.

use crate::support::Topo;
use std::collections::BTreeSet;
use std::path::Path;

/// A finding and its line.
type Found = (usize, String);

/// Returns the findings in the comments of a file.
fn expected(text: &str) -> Vec<Found> {
    let mut expected = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some((_, findings)) = line.split_once("# finds: ") else { continue };
        expected.extend(findings.split(", ").map(|it| (index + 1, it.trim().to_owned())));
    }
    expected.sort();
    expected
}

fn found(text: &str) -> Vec<Found> {
    let version = text.lines().find_map(|line| line.strip_prefix("# version: "));
    let topo = Topo::offline().file("topology.yaml", text);
    let mut flags = vec!["validate", "--format", "json"];
    flags.extend(version.map(|_| "--broker-version"));
    flags.extend(version);
    let document = topo.run(flags).json();
    let diagnostics = document["diagnostics"].as_array().unwrap();
    let word = |it: &serde_json::Value, key: &str| it[key].as_str().unwrap().to_owned();
    let one = |it: &serde_json::Value| {
        let line = usize::try_from(it["at"]["line"].as_u64().unwrap()).unwrap();
        (line, format!("{} {}", word(it, "severity"), word(it, "code")))
    };
    let mut found: Vec<Found> = diagnostics.iter().map(one).collect();
    found.sort();
    found
}

#[test]
fn rules_find_exactly_the_expected_problems() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint/realistic");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 20, "{paths:?}");
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let (found, expected) = (found(&text), expected(&text));
        if found != expected {
            wrong.push(format!("{}\n  found    {found:?}\n  expected {expected:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_finds_something() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint/realistic");
    let read = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.unwrap().path()).unwrap();
    let texts: Vec<String> = std::fs::read_dir(folder).unwrap().map(read).collect();
    let expected: BTreeSet<String> =
        texts.iter().flat_map(|text| expected(text)).map(|(_, findings)| findings).collect();
    let is_found =
        |name: &str| expected.iter().any(|findings| findings.split_once(' ').is_some_and(|(_, rule)| rule == name));
    let document = Topo::offline().run(["rules", "--format", "json"]).json();
    let rules = document["rules"].as_array().unwrap();
    let names = rules.iter().map(|rule| rule["name"].as_str().unwrap());
    let missing: Vec<&str> = names.filter(|name| !is_found(name)).collect();
    assert!(missing.is_empty(), "no spec in tests/lint/realistic contains `# finds: SEVERITY RULE` for {missing:?}");
}

#[test]
fn expectations_are_parsed() {
    assert_eq!(
        expected("a: 1\nb: 2 # finds: info x, error y\n"),
        [(2, "error y".to_owned()), (2, "info x".to_owned())]
    );
}
