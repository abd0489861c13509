//! Texts that are nearly specs: a seed, changed as people and programs change files by accident.

use std::fs;
use std::path::Path;

use crate::broken;
use crate::examples::examples;
use crate::support::Random;

/// Larger inputs say nothing new, and take longer.
const LONGEST: usize = 32 * 1024;

const PIECES: &[&str] = &[
    "",
    ":",
    ": ",
    " ",
    "\n",
    "\t",
    "{",
    "}",
    "[",
    "]",
    "é",
    "注",
    "#",
    " #",
    "*",
    "*a ",
    "&a ",
    "&a",
    "\"",
    "'",
    "- ",
    "${X}",
    "${X:-y}",
    "${",
    "<<: *a",
    "<<: ",
    "\r\n",
    "\0",
    "\u{feff}",
    "~",
    "null",
    "true",
    "yes",
    "---\n",
    "...\n",
    "|\n",
    ">-\n",
    "!!str ",
    "!x ",
    "%",
    "@",
    "`",
    "? ",
    "0x1F",
    "1e400",
    "-0",
    "99999999999999999999",
    "-9223372036854775808",
    "5s",
    "1h30m",
    "1GiB",
    ".inf",
    "quorum",
    "stream",
    "classic",
    "amq.topic",
    "none",
    "external: true",
    "x-",
    "\\",
    "\\u0000",
    "\u{2028}",
];

/// What inputs are made from: the examples and the specs of the scenarios, as often as they outweigh the broken ones.
pub(super) fn seeds() -> Vec<String> {
    // The bomb takes seconds each time, in a build for tests.
    let broken = broken::cases().into_iter().filter(|case| case != "alias-bomb.yaml");
    let files = broken.flat_map(|case| broken::files(&case));
    let mut seeds: Vec<String> = files.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()).collect();
    let mut good: Vec<String> = examples().into_iter().map(|(_, text)| text).collect();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")).unwrap() {
        let story = fs::read_to_string(entry.unwrap().path()).unwrap();
        let specs = story.split("```yaml spec\n").skip(1).filter_map(|rest| rest.split("```").next());
        good.extend(specs.map(|spec| format!("version: 1\nvhost: shop\n{spec}")));
    }
    assert!(good.len() > 50 && seeds.len() > 60, "{} and {}", good.len(), seeds.len());
    let times = 3 * seeds.len() / good.len();
    (0..times).for_each(|_| seeds.extend(good.iter().cloned()));
    seeds
}

/// The next input.
pub(super) fn input(seeds: &[String], random: &mut Random) -> String {
    let mut text = random.pick(seeds).clone();
    if random.chance(10) {
        // Lines from everywhere.
        let line = |random: &mut Random| {
            let lines: Vec<&str> = random.pick(seeds).lines().collect();
            if lines.is_empty() { String::new() } else { (*random.pick(&lines)).to_owned() }
        };
        text = "version: 1\nvhost: a\n".to_owned();
        for _ in 0..random.below(20) {
            text.push_str(&line(random));
            text.push('\n');
        }
    }
    let changes = if random.chance(50) { 1 } else { 2 + random.below(5) };
    for _ in 0..changes {
        text = changed(&text, seeds, random);
    }
    let end = (0..=text.len().min(LONGEST)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    text
}

fn changed(text: &str, seeds: &[String], random: &mut Random) -> String {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let at = random.below(lines.len());
    match random.below(10) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let other = random.below(lines.len());
            lines.swap(at, other);
        }
        3 => lines[at] = format!("{}{}", " ".repeat(random.below(9)), lines[at].trim_start()),
        4 => {
            let others: Vec<&str> = random.pick(seeds).split('\n').collect();
            let start = random.below(others.len());
            let count = 1 + random.below(6);
            let taken: Vec<String> = others.iter().skip(start).take(count).map(|line| (*line).to_owned()).collect();
            lines.splice(at..at, taken);
        }
        5 => {
            let deep = random.below(100);
            let (open, close) = *random.pick(&[("[", "]"), ("{a: ", "}"), ("- ", ""), ("{", "}")]);
            lines[at].push_str(&format!("{}{}", open.repeat(deep), close.repeat(deep)));
        }
        // A key or a value that is very long, or there very often.
        6 => {
            let piece = *random.pick(PIECES);
            lines[at].push_str(&piece.repeat(random.below(300)));
        }
        _ => {
            let mut characters: Vec<char> = lines[at].chars().collect();
            let start = random.below(characters.len() + 1);
            let end = (start + random.below(8)).min(characters.len());
            characters.splice(start..end, random.pick(PIECES).chars());
            lines[at] = characters.into_iter().collect();
        }
    }
    lines.join("\n")
}
