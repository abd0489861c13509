//! Reads Markdown pages, runs their commands, and compares the output with the text of the page.
//!
//! - A `console` block contains commands, `$ …`, each followed by its standard output. If a command fails, the test
//!   fails, unless the line continues after the command (`…; echo "exit code $?"`). A command whose line ends in `\`
//!   continues on the next line.
//! - A block whose first line is `# NAME`, with a dot in the name, is a file that later commands can read.
//!
//! `TOPO_UPDATE=1` rewrites the page.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstyle::{Color, RgbColor};
use anstyle_lossy::palette::Palette;
use anstyle_svg::Term;
use tempfile::TempDir;

use super::{Node, child, temp_dir, until};

/// The maximum number of differing lines in a message.
const MAX_LINES_SHOWN: usize = 20;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A page of the project.
pub(crate) struct Page {
    path: PathBuf,
    pub(crate) text: String,
}

/// A part of a page; all parts in order form the page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    /// A line outside of blocks, with its line end.
    Line(&'a str),
    /// A fence.
    Fence(&'a str),
    /// The lines between two fences.
    Block { language: &'a str, text: &'a str },
}

impl Page {
    /// Reads a page by its path from the root of the project.
    pub(crate) fn read(path: &str) -> Self {
        let path = root().join(path);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path, text }
    }

    /// Reads all Markdown pages of a folder, sorted by name.
    pub(crate) fn of_folder(folder: &str) -> Vec<Self> {
        let listed = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
        let mut names: Vec<String> = listed
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|it| it.ends_with(".md"))
            .collect();
        names.sort();
        names.iter().map(|name| Self::read(&format!("{folder}/{name}"))).collect()
    }

    /// Reads all Markdown pages of the documentation.
    pub(crate) fn of_docs() -> Vec<Self> {
        ["docs", "docs/tutorials", "docs/how-to", "docs/explanation", "docs/maintainers"]
            .into_iter()
            .flat_map(Self::of_folder)
            .collect()
    }

    /// Returns the path of the page from the root of the project.
    pub(crate) fn name(&self) -> &str {
        self.path.strip_prefix(root()).unwrap().to_str().unwrap()
    }

    pub(crate) fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        let mut open: Option<(&str, usize)> = None;
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            match (line.strip_prefix("```"), open) {
                (Some(language), None) => {
                    parts.push(Part::Fence(line));
                    open = Some((language.trim_end(), at + line.len()));
                }
                (Some(_), Some((language, start))) => {
                    parts.push(Part::Block { language, text: &self.text[start..at] });
                    parts.push(Part::Fence(line));
                    open = None;
                }
                (None, None) => parts.push(Part::Line(line)),
                (None, Some(_)) => {}
            }
            at += line.len();
        }
        assert!(open.is_none(), "{}: a block is not closed", self.name());
        parts
    }

    /// Returns the text of each block in this language.
    pub(crate) fn blocks(&self, language: &str) -> Vec<&str> {
        let in_language = |part| match part {
            Part::Block { language: it, text } if it == language => Some(text),
            Part::Block { .. } | Part::Line(_) | Part::Fence(_) => None,
        };
        self.parts().into_iter().filter_map(in_language).collect()
    }

    /// Returns the page with new texts for some of its parts.
    pub(crate) fn rewritten(&self, mut becomes: impl FnMut(Part<'_>) -> Option<String>) -> String {
        let mut text = String::new();
        for part in self.parts() {
            let (Part::Line(as_it_is) | Part::Fence(as_it_is) | Part::Block { text: as_it_is, .. }) = part;
            text.push_str(&becomes(part).unwrap_or_else(|| as_it_is.to_owned()));
        }
        text
    }

    /// Fails unless the page has this text; `TOPO_UPDATE=1` writes the text.
    pub(crate) fn expect(&self, updated: &str) {
        if std::env::var_os("TOPO_UPDATE").is_some() {
            fs::write(&self.path, updated).unwrap();
            return;
        }
        // A changed block is replaced as a whole, so the first changed line may be one that the comparison ignores.
        let lines = self.text.lines().zip(updated.lines()).enumerate();
        let differing = lines.filter(|(_, (old, new))| old != new);
        let differing = differing.map(|(number, (old, new))| format!("line {}\n- {old}\n+ {new}\n", number + 1));
        assert!(
            self.text == updated,
            "{} is outdated: run the tests with TOPO_UPDATE=1, and look at the difference.\n{}",
            self.name(),
            differing.take(MAX_LINES_SHOWN).collect::<String>()
        );
    }
}

/// Fails unless the file of the project has this content; `TOPO_UPDATE=1` writes the content.
pub(crate) fn expect_file(path: &str, content: &str) {
    let file = root().join(path);
    if std::env::var_os("TOPO_UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        return;
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == content, "{path} is outdated: run the tests with TOPO_UPDATE=1, and look at the difference");
}

/// Returns an SVG image of a command and its output on a dark terminal.
pub(crate) fn screenshot(command: &str, output: &str) -> String {
    let color = |[red, green, blue]: [u8; 3]| RgbColor(red, green, blue);
    let palette = Palette(COLORS.map(color));
    let [text, paper] = [[0xc9, 0xd1, 0xd9], [0x0d, 0x11, 0x17]].map(|it| Color::Rgb(color(it)));
    let term = Term::new().palette(palette).fg_color(text).bg_color(paper);
    term.render_svg(&format!("$ {command}\n{}", output.trim_end()))
}

/// Black, red, green, yellow, blue, magenta, cyan and white, followed by the bright variants.
const COLORS: [[u8; 3]; 16] = [
    [0x48, 0x4f, 0x58],
    [0xff, 0x7b, 0x72],
    [0x3f, 0xb9, 0x50],
    [0xd2, 0x99, 0x22],
    [0x58, 0xa6, 0xff],
    [0xbc, 0x8c, 0xff],
    [0x39, 0xc5, 0xcf],
    [0xb1, 0xba, 0xc4],
    [0x6e, 0x76, 0x81],
    [0xff, 0xa1, 0x98],
    [0x56, 0xd3, 0x64],
    [0xe3, 0xb3, 0x41],
    [0x79, 0xc0, 0xff],
    [0xd2, 0xa8, 0xff],
    [0x56, 0xd4, 0xdd],
    [0xff, 0xff, 0xff],
];

/// Returns the file name at the start of a block, if any.
pub(crate) fn file_name(block: &str) -> Option<&str> {
    let name = block.lines().next()?.strip_prefix("# ")?;
    (name.contains('.') && !name.contains(char::is_whitespace)).then_some(name)
}

/// Runs the commands of a page in a separate folder, as if RabbitMQ listened on the default ports.
pub(crate) struct Shell<'node> {
    folder: TempDir,
    node: &'node Node,
}

impl<'node> Shell<'node> {
    pub(crate) fn new(node: &'node Node) -> Self {
        Self { folder: temp_dir::folder(), node }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file in the folder.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.folder().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns the `console` block with the current output of its commands.
    pub(crate) fn session(&self, block: &str) -> String {
        let mut session = String::new();
        let mut lines = block.lines().peekable();
        while let Some(line) = lines.next() {
            let first = line.strip_prefix("$ ").unwrap_or_else(|| panic!("a block begins with a command: {line}"));
            let mut command = first.to_owned();
            while command.ends_with('\\') {
                command = format!("{command}\n{}", lines.next().expect("a continued line"));
            }
            let mut before = String::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                let _ = writeln!(before, "{line}");
            }
            let now = self.run(&command);
            let is_the_same = steady(&before) == steady(&now);
            let _ = write!(session, "$ {command}\n{}", if is_the_same { before } else { now });
        }
        session
    }

    /// Runs a step of a pipeline as a runner does: the step ends at the first failed command.
    pub(crate) fn step(&self, step: &str) {
        self.run(&format!("set -e; export GITHUB_STEP_SUMMARY=summary.md\n{step}"));
    }

    /// Runs a command, and kills it when it prints this text.
    pub(crate) fn killed_at(&self, text: &str, command: &str) {
        let log = self.folder().join("log");
        let mut child = self.bash(&format!("exec {command} > log 2>&1")).spawn().unwrap();
        until(&format!("`{text}` in the output of {command}"), || {
            let reported = fs::read_to_string(&log).unwrap_or_default();
            assert!(child.try_wait().unwrap().is_none(), "{command} is over: {reported}");
            reported.contains(text).then_some(())
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Runs a command and returns its standard output.
    pub(crate) fn run(&self, command: &str) -> String {
        let output = self.bash(&format!("set -o pipefail\n{command}")).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        let is_well = output.status.success() && !errors.contains("error:") && !errors.contains("error[");
        assert!(is_well, "{command}\n{}\n{text}\n{errors}", output.status);
        let text = text.replace(&self.node.url(), USUAL);
        [" at ", ", planned topology of"].into_iter().fold(text, |text, next| {
            text.replace(&format!("RabbitMQ {}{next}", self.node.version()), &format!("RabbitMQ 3.10.8{next}"))
        })
    }

    fn bash(&self, command: &str) -> Command {
        let programs = Path::new(env!("CARGO_BIN_EXE_topo")).parent().unwrap();
        // Defines a function instead of a script, because a new file cannot be executed while another thread starts a
        // process.
        let ctl = format!(
            "rabbitmqctl() {{ {}/tests/brokers/node --ctl {} \"$@\"; }}",
            root().display(),
            self.node.folder().display()
        );
        let command = command.replace(USUAL, &self.node.url());
        let mut bash = child("bash");
        bash.args(["-c", &format!("{ctl}\n{command}")])
            .current_dir(self.folder())
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .env("HOME", self.folder())
            .env("COLUMNS", "100")
            .envs(self.node.intervals())
            // Selects the `rabbitmqctl` of the node's version.
            .envs(std::env::var_os("TOPO_RABBITMQ").map(|path| ("TOPO_RABBITMQ", path)))
            .env("TOPO_URL", self.node.url())
            .env("TOPO_USERNAME", "guest")
            .env("TOPO_PASSWORD", "guest");
        bash
    }
}

/// The default URL of the management API.
const USUAL: &str = "http://localhost:15672";

/// Removes the parts that differ between runs or brokers: durations, the holder of a lock, the reason of a failed
/// login.
fn steady(text: &str) -> String {
    let text = &steady_ages(&steady_tables(text));
    let ends = ["the queue did not exist for ", "is locked by ", "login as user `guest` failed: "];
    let cut = |line: &str| {
        let end = ends.iter().find_map(|before| Some(line.find(before)? + before.len()));
        format!("{}\n", &line[..end.unwrap_or(line.len())])
    };
    text.lines().map(cut).collect()
}

/// Removes the ages from the rows of a list of messages, and the times of all lines.
fn steady_ages(text: &str) -> String {
    let is_age = |word: &str| word.ends_with(['s', 'm', 'h', 'd']) && word[..word.len() - 1].parse::<u64>().is_ok();
    let is_time =
        |word: &str| word.trim_end_matches(',').ends_with('Z') && word.starts_with("20") && word.contains('T');
    let mut is_row = false;
    let mut steady = String::new();
    for line in text.lines() {
        let is_head = line.contains("  oldest  ");
        is_row = is_head || (is_row && !line.is_empty());
        if is_row || line.split_whitespace().any(is_time) {
            let words = line.split_whitespace().filter(|word| !is_age(word) && !is_time(word));
            let _ = writeln!(steady, "{}", words.collect::<Vec<_>>().join(" "));
        } else {
            let _ = writeln!(steady, "{line}");
        }
    }
    steady
}

/// Removes the growth, the age and the consumers from the tables of a status, and the padding of the other columns.
fn steady_tables(text: &str) -> String {
    let mut is_row = false;
    let mut steady = String::new();
    for line in text.lines() {
        let is_head = line.contains("  in 5 min  ");
        is_row = is_head || (is_row && !line.is_empty());
        if is_row && !is_head {
            let problem =
                ["warning: ", "critical: "].iter().find_map(|word| line.find(word)).map_or("", |at| &line[at..]);
            let is_marked = line.starts_with(['!', '~']);
            let words: Vec<&str> = line.split_whitespace().skip(usize::from(is_marked)).take(2).collect();
            let _ = writeln!(steady, "{is_marked} {} {problem}", words.join(" "));
        } else {
            let _ = writeln!(steady, "{line}");
        }
    }
    steady
}
