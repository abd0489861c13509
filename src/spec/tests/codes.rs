//! Checks that every error code has a page, and that every page belongs to a code. Also breaks specs at random, and
//! checks that every problem is reported at a valid position.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

/// Collects the first string of each call that creates an error, in all sources of a folder.
fn collect_codes(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{error}")) {
        let path = entry.unwrap_or_else(|error| panic!("{error}")).path();
        if path.is_dir() {
            collect_codes(&path, found);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        // Tests create errors of their own.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for call in ["Diagnostic::error(", "bad(", "report("] {
            for behind in text.split(call).skip(1) {
                found.extend(
                    behind.trim_start().strip_prefix('"').and_then(|it| it.split('"').next()).map(str::to_owned),
                );
            }
        }
    }
}

#[test]
fn codes_and_pages_match() {
    let mut found: BTreeSet<String> = ["wrong-type".to_owned()].into();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for folder in ["spec", "expand", "cli"] {
        collect_codes(&src.join(folder), &mut found);
    }
    let known: BTreeSet<String> = code_names().map(str::to_owned).collect();
    assert_eq!(found, known);
    assert!(code_names().is_sorted());
    assert!(code_names().all(|code| code_page(code).is_some_and(|page| page.starts_with(&format!("# {code}\n")))));
}

/// Text that people and programs insert into files by accident.
const PIECES: &[&str] = &[
    "", ":", " ", "\n", "\t", "{", "}", "[", "]", "é", "#", "*", "&a ", "\"", "'", "-", "${X}", "<<: ", "\r\n", "\0",
    "~", "- ",
];

proptest! {
    #[test]
    fn broken_specs_are_reported(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, prop::sample::select(PIECES)), 1..4),
    ) {
        let mut characters: Vec<char> = BIG.chars().collect();
        for (index, removed, piece) in edits {
            let start = index.index(characters.len());
            let end = (start + removed).min(characters.len());
            characters.splice(start..end, piece.chars());
        }
        let text: String = characters.into_iter().collect();
        let Err(diagnostics) = parse(&[file(&text)], &Variables::new()) else { return Ok(()) };
        prop_assert!(!diagnostics.is_empty());
        for diagnostic in &diagnostics {
            for at in std::iter::once(&diagnostic.primary).chain(diagnostic.secondary.iter().map(|(at, _)| at)) {
                prop_assert!(text.get(at.start..at.end).is_some(), "{diagnostic:?} in\n{text}");
                prop_assert!(at.line >= 1 && at.column >= 1);
            }
        }
    }
}
