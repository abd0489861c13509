//! Every error code has a page, and every page belongs to a code.

use super::*;
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
