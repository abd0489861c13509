//! Tests `tests/new-rule`.

use std::path::Path;
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn new_rule(tree: &Path, arguments: &[&str]) -> Output {
    Command::new(root().join("tests/new-rule")).args(arguments).env("TOPO_TREE", tree).output().unwrap()
}

/// Creates a folder with the files that the script changes.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    for file in ["src/lint/rules/mod.rs", "src/spec/rule_names.rs"] {
        let copy = tree.path().join(file);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(root().join(file), copy).unwrap();
    }
    tree
}

#[test]
fn new_rule_writes_two_files_and_registers_the_rule() {
    let tree = tree();
    let output = new_rule(tree.path(), &["lonely-queue", "no application consumes the queue"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |file: &str| std::fs::read_to_string(tree.path().join(file)).unwrap();
    let code = read("src/lint/rules/lonely_queue.rs");
    for part in [
        "name: \"lonely-queue\"",
        "summary: \"no application consumes the queue\"",
        "include_str!(\"lonely_queue.md\")",
    ] {
        assert!(code.contains(part), "{code}");
    }
    let page = read("src/lint/rules/lonely_queue.md");
    assert!(page.starts_with("# lonely-queue\n\nNo application consumes the queue.\n"), "{page}");
    for part in ["## What it finds", "## Why it matters", "## What to do", "## Examples", "```yaml bad", "```yaml good"]
    {
        assert!(page.contains(part), "{page}");
    }
    let list = read("src/lint/rules/mod.rs");
    assert!(
        list.contains("    &limit_too_small::RULE,\n    &lonely_queue::RULE,\n    &mirrored_queue_policy::RULE,\n"),
        "{list}"
    );
    assert!(list.contains("mod limit_too_small;\nmod lonely_queue;\nmod mirrored_queue_policy;\n"), "{list}");
    let names = read("src/spec/rule_names.rs");
    let known: Vec<&str> = names.lines().filter(|line| line.starts_with("    (\"")).collect();
    assert!(
        known.is_sorted() && known.contains(&"    (\"lonely-queue\", \"no application consumes the queue\"),"),
        "{names}"
    );
}

#[test]
fn existing_and_invalid_names_are_refused() {
    let tree = tree();
    let before = std::fs::read_to_string(tree.path().join("src/lint/rules/mod.rs")).unwrap();
    std::fs::write(tree.path().join("src/lint/rules/lazy_mode.rs"), "").unwrap();
    for arguments in [&["lazy-mode", "again"][..], &["Lonely"], &["lonely_queue", "x"], &["lonely-queue"], &[]] {
        let output = new_rule(tree.path(), arguments);
        assert!(!output.status.success() && !output.stderr.is_empty(), "{arguments:?}");
    }
    assert_eq!(std::fs::read_to_string(tree.path().join("src/lint/rules/mod.rs")).unwrap(), before);
}
