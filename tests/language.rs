//! Refuses words of the project's old vocabulary in code, comments, texts and file names.
//!
//! `docs/glossary.md` has the terms to use. A quote of a broker or of another program belongs in [`ALLOWED`].

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The refused words and sequences of words. Punctuation between two words interrupts a sequence.
const REFUSED: &[&str] = &[
    "for ever",
    "is no",
    "lets go",
    "letter",
    "letters",
    "nobodys",
    "nobody",
    "said",
    "shall",
    "so many",
    "somebodys",
    "somebody",
    "stands",
    "whoever",
];

/// Permitted sequences that contain a refused one.
const PERMITTED: &[&str] = &["dead letter", "dead letters", "is no longer", "there is no"];

/// Permitted quotes, each with the file that contains it.
const ALLOWED: &[(&str, &str)] = &[("action/run", "letters, digits")];

/// Files that the test does not check.
const SKIPPED: &[&str] = &["Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT", "target", "tests/language.rs", "docs/images"];

/// A word in lower case, its line, and true if punctuation separates it from the previous word.
struct Word {
    text: String,
    line: usize,
    starts: bool,
}

/// Splits a text into words. `deadLetterQueue` and `dead_letter_queue` both have three words.
fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut line, mut starts, mut previous) = (1, true, ' ');
    for character in text.chars() {
        if previous == '\\' {
            // An escape such as `\n`.
            starts = true;
            line += usize::from(character == '\n');
            previous = ' ';
            continue;
        } else if character.is_alphabetic() {
            let goes_on = previous.is_alphabetic() && !(previous.is_lowercase() && character.is_uppercase());
            match words.last_mut().filter(|_| goes_on) {
                Some(word) => word.text.extend(character.to_lowercase()),
                None => words.push(Word { text: character.to_lowercase().collect(), line, starts }),
            }
            starts = false;
        } else if character == '\'' && previous.is_alphabetic() {
            // An apostrophe does not separate words, so a possessive is one word.
            continue;
        } else {
            // Comment markers and list bullets can occur between two lines of a sentence.
            starts =
                starts || !(character.is_whitespace() || matches!(character, '_' | '-' | '/' | '#' | '>' | '*' | '!'));
            line += usize::from(character == '\n');
        }
        previous = character;
    }
    words
}

/// Returns true if the words from `at` on begin with this sequence.
fn is_at(words: &[Word], at: usize, sequence: &str) -> bool {
    let mut found = words[at..].iter();
    sequence
        .split(' ')
        .enumerate()
        .all(|(index, word)| found.next().is_some_and(|found| found.text == word && (index == 0 || !found.starts)))
}

/// Returns the refused sequences of a text, with their lines.
fn refused(text: &str) -> Vec<(usize, &'static str)> {
    let words = words(text);
    let mut found = Vec::new();
    let permitted: BTreeSet<usize> = (0..words.len())
        .flat_map(|at| {
            let longest = PERMITTED.iter().filter(|sequence| is_at(&words, at, sequence)).map(|s| s.split(' ').count());
            at..at + longest.max().unwrap_or(0)
        })
        .collect();
    for at in (0..words.len()).filter(|at| !permitted.contains(at)) {
        if let Some(sequence) = REFUSED.iter().find(|sequence| is_at(&words, at, sequence)) {
            found.push((words[at].line, *sequence));
        }
    }
    found
}

/// Adds all text files below a folder, with their paths relative to the root of the project.
fn files_below(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let is_hidden = name.starts_with('.')
            && ![".github", ".ci", ".pre-commit-hooks.yaml"].iter().any(|it| name.starts_with(it));
        if is_hidden || SKIPPED.iter().any(|skipped| Path::new(&name).starts_with(skipped)) {
            continue;
        }
        if path.is_dir() {
            files_below(root, &path, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            files.push((name, text));
        }
    }
}

#[test]
fn texts_use_the_vocabulary_of_the_project() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    files_below(root, root, &mut files);
    assert!(files.len() > 100, "only {} files", files.len());
    files.sort();
    let mut wrong = Vec::new();
    for (name, text) in files {
        let mut text = text;
        for (_, quote) in ALLOWED.iter().filter(|(file, _)| *file == name) {
            assert!(text.contains(quote), "{name} does not contain the allowed quote {quote:?}");
            text = text.replace(quote, "");
        }
        let stem = name.rsplit('/').next().unwrap_or_default();
        wrong.extend(refused(stem).iter().map(|(_, sequence)| format!("{name}: the name contains `{sequence}`")));
        wrong.extend(refused(&text).iter().map(|(line, sequence)| format!("{name}:{line}: `{sequence}`")));
    }
    assert!(wrong.is_empty(), "{} refused words:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ALLOWED.len() <= 10, "only ten quotes are allowed");
}

#[test]
fn refused_words_are_found_in_identifiers_and_across_lines() {
    let found = |text: &str| refused(text).into_iter().map(|(_, sequence)| sequence).collect::<Vec<_>>();
    assert_eq!(found("fn said_by() -> SaidBy"), ["said", "said"]);
    assert_eq!(found("// it runs for\n// ever"), ["for ever"]);
    assert_eq!(found("somebody's queue, one letter"), ["somebodys", "letter"]);
    assert_eq!(found("dead-letter queue, deadLetters, x-dead-letter-exchange"), [""; 0]);
    assert_eq!(found("it is no longer there. Is it? No: it is, no doubt"), [""; 0]);
    assert_eq!(found("this is no queue"), ["is no"]);
    assert_eq!(refused("one\ntwo stands").first(), Some(&(2, "stands")));
}
