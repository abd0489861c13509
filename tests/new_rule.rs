//! Tests `tests/new-rule`.

use std::path::Path;
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn new_rule(tree: &Path, arguments: &[&str]) -> Output {
    Command::new(root().join("tests/new-rule")).args(arguments).env("TOPO_TREE", tree).output().unwrap()
}

/// Creates a folder with the files that the script changes, each with two rules.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (file, text) in [
        (
            "src/lint/rules/mod.rs",
            "mod lazy_mode;\nmod unused_allow;\n\nstatic RULES: &[&Rule] = &[\n    &lazy_mode::RULE,\n    \
             &unused_allow::RULE,\n];\n",
        ),
        (
            "src/spec/rule_names.rs",
            "const RULES: &[(&str, &str)] = &[\n    (\"lazy-mode\", \"x\"),\n    (\"unused-allow\", \"x\"),\n];\n",
        ),
    ] {
        let path = tree.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
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
    assert!(list.starts_with("mod lazy_mode;\nmod lonely_queue;\nmod unused_allow;\n"), "{list}");
    let rules = "    &lazy_mode::RULE,\n    &lonely_queue::RULE,\n    &unused_allow::RULE,\n";
    assert!(list.contains(rules), "{list}");
    let names = read("src/spec/rule_names.rs");
    let rules =
        "    (\"lazy-mode\", \"x\"),\n    (\"lonely-queue\", \"no application consumes the queue\"),\n    (\"unused";
    assert!(names.contains(rules), "{names}");
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
