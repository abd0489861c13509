//! Specs that are broken at random: every problem is reported at a valid position.

use super::*;
use proptest::prelude::*;

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
