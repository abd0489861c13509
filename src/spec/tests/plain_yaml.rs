//! Checks that the fast parser builds the same trees as the parser that uses the library.

use crate::spec::diagnostic::Diagnostics;
use crate::spec::node::SourceFile;
use crate::spec::{plain_yaml, yaml};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::path::Path;

/// Checks that both parsers build the same tree. Returns true if the fast parser can read the text.
fn agrees(text: &str) -> Result<bool, TestCaseError> {
    let Some(fast) = plain_yaml::documents(0, text) else { return Ok(false) };
    let source = SourceFile { name: "a.yaml".to_owned(), text: text.to_owned() };
    let mut diagnostics = Diagnostics::new();
    let slow = yaml::any_documents(0, &source, &mut diagnostics);
    prop_assert!(diagnostics.is_empty(), "{text:?} is wrong: {diagnostics}");
    prop_assert_eq!(Some(fast), slow, "{:?}", text);
    Ok(true)
}

const SCALARS: &[&str] = &[
    "",
    "a",
    "null",
    "~",
    "Null",
    "true",
    "FALSE",
    "yes",
    "1",
    "-1",
    "+5",
    "007",
    "0o17",
    "0x1F",
    "1_000",
    "1.0",
    "-0",
    "1e3",
    "1e400",
    "-1e400",
    ".5",
    "5.",
    ".inf",
    "-.INF",
    ".nan",
    "99999999999999999999",
    "9223372036854775808",
    "1h",
    "7d",
    "12:30:45",
    "2026-11-20",
    "a b",
    "a#b",
    "a #b",
    "#b",
    "*",
    "*a",
    "&a",
    "&a b",
    "!x",
    "!!str 5",
    "\"x\"",
    "\"5\"",
    "'it''s'",
    "\"\\u00e9\\n\"",
    "\"a\n  b\"",
    "'a\n\n  b'",
    "a\n  b",
    "é注",
    "orders.#",
    "'#'",
    "|",
    "|\n  x\n  y",
    ">-\n  x\n  y",
    "|+\n  x\n\n",
    "{}",
    "[]",
    "{a: 1}",
    "{a: , b}",
    "[1, a, \"b\"]",
    "[a: 1]",
    "{\"a\":1}",
    "? a",
    "<<",
    "${X}",
    "%a",
    "@a",
    "`a",
    "a: b",
    "- a",
    "-",
    "0b1",
    "1e",
    "0x",
    "+",
    "1.5.2",
    "NaN",
    "=",
    "\t",
    "a\t",
];

const KEYS: &[&str] =
    &["a", "b", "a b", "\"a\"", "'b'", "1", "null", "<<", "true", "é", "x.y", "? k", "1.0", "&k k", "!t k", "*"];

fn line() -> impl Strategy<Value = String> {
    let scalar = prop::sample::select(SCALARS);
    let key = prop::sample::select(KEYS);
    let form = prop::sample::select(
        &["{k}: {v}", "{k}: {v}", "{k}:", "- {v}", "- {k}: {v}", "{v}", "{k}: # c\n", "---", "# {v}", ""][..],
    );
    (0..4_usize, form, key, scalar, prop::bool::weighted(0.05)).prop_map(|(indent, form, key, value, is_dos)| {
        let end = if is_dos { "\r\n" } else { "\n" };
        format!("{}{}{end}", "  ".repeat(indent), form.replace("{k}", key).replace("{v}", value))
    })
}

#[test]
fn random_texts_have_equal_trees() {
    let cases = if std::env::var_os("TOPO_LONG").is_some() { 500_000 } else { 20_000 };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let read = Cell::new(0);
    let texts = prop::collection::vec(line(), 0..7).prop_map(|lines| lines.concat());
    let result = runner.run(&texts, |text| {
        read.set(read.get() + usize::from(agrees(&text)?));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(read.get() > 500, "both parsers read only {} texts", read.get());
}

#[test]
fn scalars_have_equal_trees() {
    let mut read = 0;
    for scalar in SCALARS {
        for text in [
            format!("a: {scalar}\n"),
            format!("a:\n  - {scalar}\n  - b\n"),
            format!("a: [{scalar}]\n"),
            format!("a: {scalar}"),
        ] {
            read += usize::from(agrees(&text).unwrap_or_else(|error| panic!("{error}")));
        }
    }
    assert!(read > 150, "both parsers read only {read} texts");
}

#[test]
fn specs_have_equal_trees() {
    fn check_folder(folder: &Path, found: &mut [usize; 2]) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                check_folder(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "yaml")
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                found[usize::from(agrees(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))] += 1;
            }
        }
    }
    let mut found = [0; 2];
    for folder in ["examples", "tests"] {
        check_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut found);
    }
    let [unread, read] = found;
    println!("the fast parser read {read} of {} files", read + unread);
    assert!(read > 2 * unread, "the fast parser read only {read} of {} files", read + unread);
}
