//! Tests names, file names and values that move the cursor, change the text direction, or contain workflow commands.

use std::fs;

use crate::support::{Output, Topo};

/// A character of each kind: C0 with and without a line break, DEL, C1, line and paragraph separators, bidirectional
/// controls, zero width, a byte order mark, a tag, and an invisible character.
pub(crate) const HIDDEN: &str = "\u{1b}[31m\u{7}\u{8}\t\u{7f}\u{9b}1m\u{85}\u{2028}\u{2029}\u{202e}\u{2066}\u{200b}\u{200d}\u{feff}\u{e0041}\u{3164}";
pub(crate) const COMMANDS: &str = " ::set-output name=x::y ##[add-path]z";

/// Returns hostile text for queue names, which cannot contain line breaks.
fn name() -> String {
    format!("q{HIDDEN}{COMMANDS}")
}

/// Returns hostile text for routing keys, arguments and files.
fn lines() -> String {
    format!("k{HIDDEN}\n::error title=pwned::k\r\n::add-mask::k{COMMANDS}")
}

/// Returns true if a character must not be printed. Does not use the list of topo.
fn is_hostile(c: char) -> bool {
    let code = u32::from(c);
    (code < 0x20 && c != '\n')
        || (0x7f..0xa0).contains(&code)
        || matches!(code, 0xad | 0x61c | 0x115f | 0x1160 | 0x3164 | 0xffa0 | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff)
        || (0xe0000..0xe1000).contains(&code)
}

/// Fails if a stream or a written file is harmful. In a workflow, each line that begins with `::` is a command, so only
/// topo itself may print such lines.
#[track_caller]
fn expect_harmless(output: &Output, text: &str) {
    // In Markdown, topo inserts a zero-width space after `@`, so that a name does not mention a user.
    let text = text.replace("@\u{200b}", "@");
    let hostile: Vec<String> =
        text.chars().filter(|c| is_hostile(*c)).map(|c| format!("{:04x}", u32::from(c))).collect();
    assert!(hostile.is_empty(), "hidden characters {hostile:?} in {text:?}: {output}");
    for line in text.lines().map(str::trim_start).filter(|line| line.starts_with("::")) {
        let is_own = ["error", "warning", "notice"].iter().any(|level| {
            let rest = line.strip_prefix("::").and_then(|line| line.strip_prefix(level));
            rest.is_some_and(|rest| {
                (rest.starts_with(" file=") || rest.starts_with(" title=")) && !rest.starts_with(" title=pwned")
            })
        });
        assert!(is_own, "a workflow command: {line}\n{output}");
    }
    assert!(!text.lines().any(|line| line.trim_start().starts_with("k\u{fffd}")), "{text}");
}

#[track_caller]
pub(crate) fn harmless(output: Output) -> Output {
    expect_harmless(&output, &output.stdout);
    expect_harmless(&output, &output.stderr);
    // A runner detects its legacy commands anywhere in a line. JSON and YAML, which programs read, contain the name
    // unchanged.
    let is_document = ["{", "version:", "formatVersion:", "#"].iter().any(|start| output.stdout.starts_with(start));
    if output.stdout.starts_with('{') {
        let document = serde_json::from_str::<serde_json::Value>(&output.stdout);
        assert!(document.is_ok(), "{document:?}: {output}");
    }
    assert!((is_document || !output.stdout.contains("##[")) && !output.stderr.contains("##["), "{output}");
    output
}

/// Returns the text as a quoted YAML string, in which hidden characters are escaped.
pub(crate) fn quoted(text: &str) -> String {
    let one = |c: char| if is_hostile(c) || c == '\n' { format!("\\U{:08X}", u32::from(c)) } else { c.to_string() };
    format!("\"{}\"", text.chars().map(one).collect::<String>())
}

/// Returns a spec in which every text is hostile if possible.
fn spec() -> String {
    let (name, lines) = (quoted(&name()), quoted(&lines()));
    format!(
        "version: 1\nvhost: {name}\nowns: ['*']\n\
         exchanges:\n  {name}: {{type: topic, arguments: {{{lines}: {lines}}}}}\n\
         queues:\n  {name}:\n    type: quorum\n    retry: {{delays: [5s, 30s]}}\n    deadLetter: {dead}\n    bindings: [{{exchange: {name}, routingKey: {lines}, arguments: {{{lines}: {lines}}}}}]\n\
    \x20 '::error title=pwned::x': {{type: classic}}\n  '##[add-path]x': {{type: classic}}\n\
         deadLetterQueues:\n  {dead}: {{type: classic}}\n\
         policies:\n  {name}: {{pattern: {lines}, applyTo: queues, definition: {{maxLength: 5}}}}\n",
        dead = quoted(&format!("d{HIDDEN}{COMMANDS}")),
    )
}

/// Returns a broker with similar objects, some of them in conflict with the spec.
fn definitions() -> String {
    let (name, lines) = (name(), lines());
    serde_json::json!({
        "rabbit_version": "4.0.5",
        "vhosts": [{"name": name}],
        "queues": [
            {"name": name, "vhost": name, "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "classic", "x-note": lines}},
            {"name": "::error title=pwned::y", "vhost": name, "durable": true, "auto_delete": false, "arguments": {}},
            {"name": "##[add-path]y", "vhost": name, "durable": true, "auto_delete": false, "arguments": {}},
            {"name": format!("other {name}"), "vhost": name, "durable": true, "auto_delete": false, "arguments": {}},
        ],
        "exchanges": [{"name": name, "vhost": name, "type": lines, "durable": true, "auto_delete": false, "internal": false, "arguments": {}}],
        "bindings": [{"source": name, "vhost": name, "destination": format!("other {name}"), "destination_type": "queue", "routing_key": lines, "arguments": {lines.clone(): lines}}],
        "policies": [{"name": name, "vhost": name, "pattern": "^x", "apply-to": "queues", "priority": 0, "definition": {"max-length": 6}}],
    })
    .to_string()
}

fn topo() -> Topo {
    let topo = Topo::offline().env("COLUMNS", "60");
    topo.file("topology.yaml", &spec()).file("live.json", &definitions())
}

#[test]
fn validate_escapes_hostile_names() {
    for format in ["text", "json", "github"] {
        let output = harmless(topo().run(["validate", "--format", format]));
        assert!(matches!(output.code, Some(0 | 1 | 65)), "{output}");
        for broken in [
            format!("version: 1\nvhost: v\nqueues: {{{}: {{type: {}}}}}\n", quoted(&lines()), quoted(&lines())),
            format!("version: 1\nvhost: v\n{}: 1\nqueues: {{a: {{{}: 1}}}}\n", quoted(&lines()), quoted(&lines())),
            format!(
                "version: 1\nvhost: v\nqueues:\n  a: {{type: quorum, bindings: [{{exchange: {}, routingKey: {}}}]}} #{}\n",
                quoted(&lines()),
                quoted(&lines()),
                name().replace('\u{8}', "")
            ),
            format!("version: 1\nvhost: v\nqueues: [{}\n{}\n", name(), lines()),
        ] {
            let topo = Topo::offline().file("topology.yaml", &broken);
            harmless(topo.run(["validate", "--format", format])).expect_code(65);
        }
    }
}

#[test]
fn plans_escape_hostile_names() {
    for against in ["empty", "live.json"] {
        for format in ["text", "json", "markdown", "github"] {
            let plan = |more: &[&str]| {
                let arguments = ["plan", "--against", against, "--format", format];
                harmless(topo().run(arguments.into_iter().chain(more.iter().copied())))
            };
            plan(&[]).expect_code(0);
            plan(&["-v", "--show", "all", "--prune"]).expect_code(0);
        }
    }
    // A written file contains the same text as the terminal.
    let topo = topo();
    for also in ["json", "markdown", "github"] {
        let file = format!("{also}=also.{also}");
        let arguments = ["plan", "--against", "live.json", "--prune", "--out", "plan.json", "--also", &file];
        let output = harmless(topo.run(arguments)).expect_code(0);
        expect_harmless(&output, &topo.read(&format!("also.{also}")));
        expect_harmless(&output, &topo.read("plan.json"));
    }
}

#[test]
fn graphs_contracts_and_explanations_escape_hostile_names() {
    let topo = topo();
    topo.run(["plan", "--against", "live.json", "--out", "plan.json"]).expect_code(0);
    for format in ["mermaid", "dot", "svg", "json"] {
        for more in [&[][..], &["--show", "all"], &["--plan", "plan.json"]] {
            let arguments = || ["graph", "--format", format].into_iter().chain(more.iter().copied());
            let shown = harmless(topo.run(arguments())).expect_code(0);
            // A written file contains the same text as the terminal.
            let file = format!("drawing.{format}");
            let output = topo.run(arguments().chain(["--out", &file])).expect_code(0);
            assert_eq!(topo.read(&file), shown.stdout, "{output}");
        }
    }
    for more in ["--format=text", "--format=json", "--format=markdown", "--format=github", "--short"] {
        harmless(topo.run(["show", "plan.json", more])).expect_code(0);
    }
    for format in ["table", "json", "yaml", "env"] {
        harmless(topo.run(["contract", "--format", format])).expect_code(0);
    }
    let (name, lines) = (name(), lines());
    for format in ["text", "json"] {
        harmless(topo.run(["explain", &name, "--format", format])).expect_code(0);
        harmless(topo.run(["explain", &lines, "--format", format]));
    }
}

#[test]
fn exports_escape_hostile_names() {
    let output = harmless(topo().run(["export", "--definitions", "live.json"]));
    // An import of the escaped text returns the original text.
    let topo = topo();
    let written = harmless(topo.run(["export", "--definitions", "live.json", "--out", "exported.yaml"])).expect_code(0);
    expect_harmless(&written, &topo.read("exported.yaml"));
    assert_eq!(topo.read("exported.yaml"), output.stdout);
    let again = Topo::offline().file("topology.yaml", &output.stdout).file("live.json", &definitions());
    let plan = harmless(again.run(["plan", "--against", "live.json", "--detailed-exitcode"]));
    plan.expect_code(0).expect_text("No changes");
}

#[test]
fn names_of_files_and_arguments_are_escaped() {
    let name = lines().replace('/', "");
    let file = format!("{name}.yaml");
    let topo = topo();
    fs::write(topo.path(&file), "version: 1\nvhost: v\nqueues: {a: {type: qurom}}\n").unwrap();
    for format in ["text", "json", "github"] {
        harmless(topo.run(["validate", "--format", format, &file])).expect_code(65);
    }
    fs::write(topo.path(&file), "version: 1\nvhost: v\nqueues: {a: {type: quorum}}\n").unwrap();
    for format in ["text", "json", "github", "markdown"] {
        harmless(topo.run(["plan", "--against", "empty", "--format", format, &file])).expect_code(0);
    }
    harmless(topo.run(["contract", &file])).expect_code(0);
    harmless(topo.run(["explain", "a", &file])).expect_code(0);
    for arguments in [
        &["validate", &name][..],
        &["plan", &format!("--{name}")],
        &["plan", "--format", &name],
        &["plan", &format!("--format={name}")],
        &["plan", "--url", &name, &file],
        &["plan", "--against", &name, &file],
        &["plan", "--target", &name, "--against", "empty", &file],
        &["plan", "--allow", &name, &file],
        &["plan", "--vhost", &name, &file],
        &["plan", "--recreate", &name, &file],
        &["plan", "--var", &name, &file],
        &["plan", "--var-file", &name, &file],
        &["plan", "--config", &name, "-N", &name, &file],
        &["apply", "--plan", &name],
        &["apply", "--abort", &name],
        &["graph", "--plan", &name],
        &["graph", "--focus", &name, &file],
        &["graph", "--out", &format!("{name}/x"), &file],
        &["export", "--definitions", &name],
        &["export", "--definitions", "live.json", "--out", &name],
        &["export", "--definitions", "live.json", "--vhost", &name],
        &["contract", "--queue", &name, &file],
        &["man", &format!("{file}/x")],
        &["completions", &name],
        &[&name],
    ] {
        let output = harmless(topo.run(arguments.iter().copied()));
        assert!(output.code.is_some_and(|code| code != 0 && code != 101) || arguments[0] == "export", "{output}");
    }
    // Invalid plan, definitions and variable files.
    for arguments in [
        ["apply", "--plan", "x"],
        ["export", "--definitions", "x"],
        ["plan", "--var-file", "x"],
        ["plan", "--config", "x"],
    ] {
        for text in [
            name.clone(),
            format!("{{\"{name}"),
            format!("{{{}: {}}}", serde_json::json!(name), serde_json::json!(name)),
        ] {
            fs::write(topo.path("x"), text).unwrap();
            harmless(topo.run(arguments));
        }
    }
}
