//! Tests the schema in an editor. Sends the requests of VS Code, Neovim and other editors to yaml-language-server.
//! docs/how-to/editor.md shows the responses; `TOPO_UPDATE=1` rewrites this page.

mod every_key;
mod server;

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::examples::examples;
use server::Server;

/// Returns the path of a tool that `tests/editor/get` provides.
pub(crate) fn tool(name: &str) -> String {
    let get = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editor/get");
    let output = Command::new(get).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let found = printed.lines().filter_map(|line| line.split_once('=')).find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("tests/editor/get: {}", String::from_utf8_lossy(&output.stderr))).1.to_owned()
}

const HEAD: &str = "version: 1\nvhost: shop\n";
const QUEUE: &str = "queues:\n  orders.work:\n    type: quorum\n";

fn labels(found: &[(String, String)]) -> Vec<&str> {
    found.iter().map(|(label, _)| label.as_str()).collect()
}

#[test]
fn keys_and_words_are_completed() {
    let mut server = Server::start();
    let queue = server.completions(&format!("{HEAD}{QUEUE}    |\n"));
    for key in ["bindings", "deadLetter", "maxRetries", "retry", "deliveryLimit", "overflow", "onConflict"] {
        let found = queue.iter().find(|(label, _)| label == key);
        assert!(found.is_some_and(|(_, meaning)| !meaning.is_empty()), "{key} in {queue:?}");
    }
    for key in ["type", "maxPriority", "maxAge", "queueMode"] {
        assert!(!labels(&queue).contains(&key), "a quorum queue with a type does not accept {key}");
    }
    let stream = server.completions(&format!("{HEAD}queues:\n  audit:\n    type: stream\n    |\n"));
    assert!(labels(&stream).contains(&"maxAge") && !labels(&stream).contains(&"retry"), "{stream:?}");
    let mut words = |text: &str| {
        let found = server.completions(&format!("{HEAD}{text}"));
        found.into_iter().map(|(label, _)| label).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(words("queues:\n  orders.work:\n    type: |\n"), "classic quorum stream");
    assert_eq!(words(&format!("{QUEUE}    overflow: |\n")), "drop-head reject-publish reject-publish-dlx");
    assert_eq!(words(&format!("{QUEUE}    onConflict: |\n")), "refuse ifEmpty migrate discard");
    assert_eq!(words(&format!("{QUEUE}    retry:\n      |\n")), "maxRetries strategy delays backoff jitter");
    assert_eq!(words(&format!("{QUEUE}    retry:\n      strategy: |\n")), "ladder republish redeliver delayed");
    let definition = words("policies:\n  limits:\n    pattern: x\n    definition:\n      |\n");
    assert!(definition.contains("maxLengthBytes max-length-bytes"), "{definition}");
    assert!(!definition.contains("maxPriority"), "a policy cannot set it: {definition}");
    let overflow = words("policies:\n  limits:\n    pattern: x\n    definition:\n      overflow: |\n");
    assert_eq!(overflow, "drop-head reject-publish reject-publish-dlx");
    let top = words("|\n");
    assert!(top.contains("queues") && top.contains("deadLetterQueues") && !top.contains("vhost"), "{top}");
}

#[test]
fn keys_and_words_are_explained() {
    let mut server = Server::start();
    let mut hover = |text: &str| server.hover(&format!("{HEAD}{text}"));
    let shown = hover(&format!("{QUEUE}    max|Retries: 5\n"));
    assert!(shown.contains("N retries mean N + 1 deliveries"), "{shown}");
    let shown = hover(&format!("{QUEUE}    message|Ttl: 30s\n"));
    assert!(shown.contains("waits longer than this is dead-lettered") && shown.contains("30s"), "{shown}");
    let shown = hover("queues:\n  orders.work:\n    type: quo|rum\n");
    assert!(shown.contains("cannot change") && shown.contains("`quorum`: Replicated with Raft"), "{shown}");
    let shown = hover(&format!("{QUEUE}    retry:\n      strat|egy: ladder\n"));
    assert!(shown.contains("`ladder`"), "Markdown is not escaped: {shown}");
}

#[test]
fn mistakes_are_underlined_and_examples_have_none() {
    let mut server = Server::start();
    let mut wrong = |text: &str| server.diagnostics(&format!("{HEAD}{text}"));
    let one = |text: &str, message: &str| vec![(text.to_owned(), message.to_owned())];
    let found = wrong(&format!("{QUEUE}    maxLenght: 5\n"));
    assert_eq!(found, one("maxLenght", "Property maxLenght is not allowed."));
    let found = wrong(&format!("{QUEUE}    messageTtl: 30sec\n"));
    assert_eq!(found, one("30sec", "a duration needs a unit, such as 500ms, 30s, 5m, 1h30m or 7d"));
    let found = wrong(&format!("{QUEUE}    maxPriority: 5\n"));
    assert_eq!(found, one("maxPriority", "Property maxPriority is not allowed."));
    let found = wrong(&format!("{QUEUE}    retry: {{delays: [5]}}\n"));
    assert_eq!(found, one("5", "Incorrect type. Expected \"string\"."));
    let found = wrong("queues:\n  orders.work:\n    type: qurom\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(wrong(&format!("{QUEUE}    messageTtl: ${{TTL:-30s}}\n    maxLength: \"${{MAX}}\"\n")), []);
    for (folder, text) in examples() {
        let found = server.diagnostics(&text);
        assert!(found.is_empty(), "{}: {found:?}", folder.display());
    }
}

/// The page shows the responses of the editor.
#[test]
fn page_shows_the_responses_of_the_editor() {
    let mut server = Server::start();
    let mut page = String::from(include_str!("editor/page.md"));
    let shown = |text: &str| format!("```yaml\n{text}```\n");
    for (title, text) in [
        ("Keys of a quorum queue", format!("{QUEUE}    |\n")),
        ("Keys of a retry", format!("{QUEUE}    retry:\n      |\n")),
        ("Retry strategies", format!("{QUEUE}    retry:\n      strategy: |\n")),
        (
            "A policy definition",
            "policies:\n  limits:\n    pattern: '^orders\\.'\n    definition:\n      |\n".to_owned(),
        ),
    ] {
        let found = server.completions(&format!("{HEAD}{text}"));
        let _ = write!(page, "\n### {title}\n\n{}\n", shown(&text));
        for (label, meaning) in found {
            let _ = writeln!(page, "- `{label}` – {}", meaning.replace('\n', " "));
        }
    }
    let _ = write!(page, "\n## Hover\n");
    for text in [
        format!("{QUEUE}    max|Retries: 5\n"),
        format!("{QUEUE}    message|Ttl: 30s\n"),
        "queues:\n  orders.work:\n    type: quo|rum\n".to_owned(),
    ] {
        let found = server.hover(&format!("{HEAD}{text}"));
        let quoted: Vec<String> = found.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
        let _ = write!(page, "\n{}\n{}\n", shown(&text), quoted.join("\n"));
    }
    let _ = write!(page, "\n## Mistakes\n");
    for text in [
        format!("{QUEUE}    maxLenght: 5\n"),
        format!("{QUEUE}    messageTtl: 30sec\n"),
        format!("{QUEUE}    maxPriority: 5\n"),
        format!("{QUEUE}    retry: {{delays: [5, 30]}}\n"),
    ] {
        let _ = write!(page, "\n{}\n", shown(&text));
        for (place, message) in server.diagnostics(&format!("{HEAD}{text}")) {
            let _ = writeln!(page, "- `{place}`: {message}");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to/editor.md");
    if std::env::var_os("TOPO_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/how-to/editor.md is outdated: run this test with TOPO_UPDATE=1\n{page}");
}
