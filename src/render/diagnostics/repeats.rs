//! Groups the diagnostics of one kind: the first ones are rendered in full, the next ones on one line each, and the
//! rest is counted. A mistake in a generated spec repeats thousands of times, and the first few diagnostics are enough
//! to fix it.

use crate::model::count::number;
use crate::render::style::{clean, folded};
use crate::spec::{Diagnostic, Diagnostics, Severity, SourceFile};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The maximum number of diagnostics of one kind that are rendered in full.
const IN_FULL: usize = 20;
/// The maximum number of further diagnostics of one kind that are listed on one line each.
const LISTED: usize = 20;

/// The command that prints all of them.
const LISTS_ALL: &str = "`topo validate --format json` lists all";

/// The key of a group: the severity and the code.
pub(in crate::render) type Kind = (Severity, &'static str);

/// The diagnostics that are rendered in full, and the repeated ones by kind.
pub(in crate::render) struct Grouped<'a> {
    pub(in crate::render) full: Vec<&'a Diagnostic>,
    repeats: Vec<Repeats<'a>>,
}

struct Repeats<'a> {
    kind: Kind,
    listed: Vec<&'a Diagnostic>,
    count: usize,
}

impl<'a> Grouped<'a> {
    pub(in crate::render) fn new(diagnostics: &'a Diagnostics) -> Self {
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        let mut repeats: BTreeMap<Kind, Repeats<'a>> = BTreeMap::new();
        let mut full = Vec::new();
        for diagnostic in diagnostics {
            let kind = (diagnostic.severity, diagnostic.code);
            let count = counts.entry(kind).or_default();
            *count += 1;
            if *count <= IN_FULL {
                full.push(diagnostic);
                continue;
            }
            let repeats = repeats.entry(kind).or_insert_with(|| Repeats { kind, listed: Vec::new(), count: 0 });
            repeats.count += 1;
            if repeats.listed.len() < LISTED {
                repeats.listed.push(diagnostic);
            }
        }
        Self { full, repeats: repeats.into_values().collect() }
    }

    /// Returns one entry for each kind with repeats: the first repeated diagnostic, and a sentence with their number.
    pub(in crate::render) fn rest(&self) -> impl Iterator<Item = (&'a Diagnostic, String)> {
        self.repeats.iter().filter_map(|repeats| {
            let sentence = format!("{}: {LISTS_ALL}", repeats.title());
            Some((*repeats.listed.first()?, sentence))
        })
    }

    /// Returns one entry for each kind with repeats: the kind, a title, and the lines below it.
    pub(super) fn paragraphs(&self, files: &[SourceFile], width: usize) -> Vec<(Kind, String, String)> {
        self.repeats.iter().map(|repeats| (repeats.kind, repeats.title(), repeats.lines(files, width))).collect()
    }
}

impl Repeats<'_> {
    fn title(&self) -> String {
        format!("{} more of the same kind", number(self.count as u64))
    }

    fn lines(&self, files: &[SourceFile], width: usize) -> String {
        let line = |Diagnostic { primary, message, .. }: &&Diagnostic| {
            let file = files.get(primary.file).map_or("", |file| &*file.name);
            format!("{}:{}:{}: {}", clean(file), primary.line, primary.column, clean(message))
        };
        let rest = self.count - self.listed.len();
        let more = (rest > 0).then(|| format!("and {} more: {LISTS_ALL}", number(rest as u64)));
        let mut text = String::new();
        for line in self.listed.iter().map(line).chain(more) {
            let _ = writeln!(text, "  {}", folded(&line, width.saturating_sub(4)).replace('\n', "\n    "));
        }
        text
    }
}
