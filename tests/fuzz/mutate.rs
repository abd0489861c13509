//! Generates inputs that are almost valid specs: seeds with typical accidental changes.

use std::fs;
use std::path::Path;

use crate::broken;
use crate::examples::examples;
use crate::support::Random;

/// The maximum size of an input. Larger inputs find no additional failures and take longer.
const MAX_LENGTH: usize = 32 * 1024;

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

/// The files of a run, and the values of their variables.
pub(super) struct Input {
    pub(super) files: Vec<String>,
    pub(super) variables: Vec<(String, String)>,
}

impl Input {
    /// Writes all files and variables to a folder for the binary.
    pub(super) fn write(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        let _ = fs::remove_file(folder.join("more.yaml"));
        for (name, text) in ["fuzz.yaml", "more.yaml"].into_iter().zip(&self.files) {
            fs::write(folder.join(name), text).unwrap();
        }
        let lines: Vec<String> = self.variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        fs::write(folder.join("variables"), lines.concat()).unwrap();
    }
}

/// Returns the seeds: the examples and the specs of the scenarios, repeated to outweigh the invalid specs.
pub(super) fn seeds() -> Vec<String> {
    let files = broken::cases().into_iter().flat_map(|case| broken::files(&case));
    let mut seeds: Vec<String> = files.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()).collect();
    let mut good: Vec<String> = examples().into_iter().map(|(_, text)| text).collect();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")).unwrap() {
        let scenario = fs::read_to_string(entry.unwrap().path()).unwrap();
        let specs = scenario.split("```yaml spec\n").skip(1).filter_map(|rest| rest.split("```").next());
        good.extend(specs.map(|spec| format!("version: 1\nvhost: shop\n{spec}")));
    }
    assert!(good.len() > 50 && seeds.len() > 60, "{} and {}", good.len(), seeds.len());
    let times = 3 * seeds.len() / good.len();
    (0..times).for_each(|_| seeds.extend(good.iter().cloned()));
    seeds
}

/// Returns the next input.
pub(super) fn input(seeds: &[String], random: &mut Random) -> Input {
    let mut files = vec![text(seeds, random)];
    if random.chance(20) {
        // In some cases, both files are equal, so that every object is declared twice.
        files.push(if random.chance(20) { files[0].clone() } else { text(seeds, random) });
    }
    if random.chance(5) {
        let bomb = bomb(random);
        files[0] = format!("{bomb}{}", files[0]);
    }
    let mut variables = Vec::new();
    let count = if random.chance(30) { 1 + random.below(3) } else { 0 };
    for _ in 0..count {
        let name = (*random.pick(&["X", "NAME", "SHOP", "MAX", "TTL"])).to_owned();
        let at = random.below(files.len());
        let value = random.pick(PIECES).repeat(1 + random.below(3));
        files[at] = with_variable(&files[at], &name, random);
        // Other characters are impossible in an argument or in a line of a variable file.
        variables.push((name, value.replace(['\0', '\n', '\r'], "")));
    }
    Input { files, variables }
}

/// Replaces a value, or a part of it, with a variable.
fn with_variable(text: &str, name: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let at = random.below(lines.len());
    let used = match random.below(4) {
        0 => format!("${{{name}:-{}}}", random.pick(PIECES)),
        1 => format!("$${{{name}}}"),
        _ => format!("${{{name}}}"),
    };
    let line = &lines[at];
    lines[at] = match line.split_once(": ") {
        Some((key, value)) if !value.starts_with(['{', '[']) && random.chance(70) => format!("{key}: \"{used}\""),
        Some(_) | None => {
            let mut characters: Vec<char> = line.chars().collect();
            let start = random.below(characters.len() + 1);
            characters.splice(start..start, used.chars());
            characters.into_iter().collect()
        }
    };
    lines.join("\n")
}

/// Returns anchors that each contain the previous anchor several times. Most are too small for an alias bomb.
fn bomb(random: &mut Random) -> String {
    let (levels, width) = (1 + random.below(12), 1 + random.below(12));
    let kind = random.below(3);
    let mut text = "x-0: &a0 {type: quorum}\n".to_owned();
    for level in 1..=levels {
        let aliases: Vec<String> = (0..width).map(|_| format!("*a{}", level - 1)).collect();
        let value = match kind {
            0 => format!("[{}]", aliases.join(", ")),
            1 => format!("{{<<: [{}]}}", aliases.join(", ")),
            _ => {
                let entry = |(index, alias): (usize, &String)| format!("k{index}: {alias}");
                format!("{{{}}}", aliases.iter().enumerate().map(entry).collect::<Vec<_>>().join(", "))
            }
        };
        text.push_str(&format!("x-{level}: &a{level} {value}\n"));
    }
    if random.chance(50) {
        text.push_str(&format!("queues: {{bomb: {{type: classic, arguments: {{x-b: *a{levels}}}}}}}\n"));
    }
    text
}

fn text(seeds: &[String], random: &mut Random) -> String {
    let mut text = random.pick(seeds).clone();
    if random.chance(10) {
        // Selects random lines of all seeds.
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
    let end = (0..=text.len().min(MAX_LENGTH)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
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
        // Inserts a very long key or value, or one that is repeated very often.
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
