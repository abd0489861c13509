//! Renders diagnostics in the style of rustc: the message, the line with an underline, and a hint.
//!
//! Diagnostics with the same severity and code form a group. The first few diagnostics in a group are rendered in full.
//! The next ones are rendered on one line each, and the remaining ones are only counted. A mistake in a generated spec
//! can occur thousands of times, and the first few diagnostics are sufficient to fix the mistake.

use super::style::{clean, columns, fold};
use crate::model::count::number;
use crate::model::printable::is_hidden;
use crate::spec::{Diagnostic, Diagnostics, Severity, SourceFile};
use annotate_snippets::{Group, Level, Renderer};
use excerpt::{FileLines, Part, margin, parts};
use std::collections::BTreeMap;
use std::fmt::Write;

mod excerpt;
mod masked;

/// Renders diagnostics, separated by empty lines. The result ends with a line break unless it is empty. Renders only
/// the first few diagnostics of each kind in full.
pub fn diagnostics(diagnostics: &Diagnostics, files: &[SourceFile], color: bool, width: usize) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let lines = |(index, file)| {
        let secrets = diagnostics.iter().filter_map(|it| it.secret.as_ref());
        FileLines::new(file, secrets.filter(move |at| at.file == index))
    };
    let texts: Vec<FileLines<'_>> = files.iter().enumerate().map(lines).collect();
    let grouped = Grouped::new(diagnostics);
    let full = grouped.full.iter().map(|it| render_one(it, &texts, &renderer, width) + "\n");
    let repeats = grouped.paragraphs(files, width).into_iter().map(|((severity, code), title, lines)| {
        let title = Group::with_title(level(severity).primary_title(title).id(code));
        format!("{}\n{lines}", renderer.render(&[title]))
    });
    full.chain(repeats).collect::<Vec<String>>().join("\n")
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    }
}

/// Renders one diagnostic. Puts each label next to its underline if the label fits there, otherwise in a note.
fn render_one(diagnostic: &Diagnostic, files: &[FileLines<'_>], renderer: &Renderer, width: usize) -> String {
    let mut parts = parts(diagnostic, files, width);
    let mut below = Vec::new();
    let mut rendered = render_parts(diagnostic, &parts, &below, renderer, width);
    for moves_all in [false, true] {
        if rendered.lines().all(|line| columns(&without_colors(line)) <= width) {
            break;
        }
        let moved: Vec<String> = excerpt::take_labels(&mut parts, diagnostic.primary, (!moves_all).then_some(width));
        if !moved.is_empty() {
            below.extend(moved);
            rendered = render_parts(diagnostic, &parts, &below, renderer, width);
        }
    }
    rendered
}

fn render_parts(
    diagnostic: &Diagnostic,
    parts: &[Part<'_>],
    notes: &[String],
    renderer: &Renderer,
    width: usize,
) -> String {
    let prefix = format!("{}[{}]: ", diagnostic.severity.as_str(), diagnostic.code);
    let title = fold(&diagnostic.message, width.saturating_sub(columns(&prefix)));
    let mut group = Group::with_title(level(diagnostic.severity).primary_title(title).id(diagnostic.code));
    group = group.elements(parts.iter().map(Part::element));
    let indent = margin(parts) + "help: ".len();
    for note in notes {
        group = group.element(Level::NOTE.message(fold(note, width.saturating_sub(indent))));
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.message(fold(hint, width.saturating_sub(indent))));
    }
    // The renderer does not include the line numbers in the width.
    let renderer = renderer.clone().term_width(width.saturating_sub(margin(parts)));
    let mut rendered = renderer.render(&[group]);
    for part in parts {
        part.fix_location(&mut rendered);
    }
    replace_hidden(&mut rendered);
    if parts.iter().all(|part| part.excerpt.is_none()) {
        // Without line numbers, the renderer uses an indentation that is one column narrower.
        rendered = rendered.replacen("\n-->", "\n -->", 1).replacen("\n =", "\n  =", 1);
    }
    rendered
}

/// Replaces each hidden character from a file with a one-column character, so that underlines stay aligned. The
/// renderer replaces most hidden characters, but not all of them. Also breaks up `##[`, so that the GitHub Actions
/// runner does not execute text from the file as a command.
fn replace_hidden(rendered: &mut String) {
    let is_from_file = |c: char| is_hidden(c) && !matches!(c, '\n' | '\u{1b}');
    if rendered.chars().any(is_from_file) {
        *rendered = rendered.chars().map(|c| if is_from_file(c) { char::REPLACEMENT_CHARACTER } else { c }).collect();
    }
    // The runner recognizes a command that starts with `##[` anywhere in a line.
    if rendered.contains("##[") {
        *rendered = rendered.replace("##[", "#\u{fffd}[");
    }
}

/// Removes the color codes from a line.
fn without_colors(line: &str) -> String {
    let text = line.split('\u{1b}').enumerate().map(|(index, part)| match part.split_once('m') {
        Some((_, text)) if index > 0 => text,
        Some(_) | None => part,
    });
    text.collect()
}

/// The maximum number of diagnostics of one kind that are rendered completely.
const IN_FULL: usize = 20;
/// The maximum number of additional diagnostics of one kind that are listed on one line each.
const LISTED: usize = 20;

/// The reference to the command that prints all diagnostics.
const LISTS_ALL: &str = "`topo validate --format json` lists all of them";

/// The kind of a diagnostic: its severity and its code.
pub(in crate::render) type Kind = (Severity, &'static str);

/// The diagnostics that are rendered completely, and the other diagnostics, grouped by kind.
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

    /// Returns one entry for each kind with repeats: the first repeat, and a sentence with the number of repeats.
    pub(in crate::render) fn rest(&self) -> impl Iterator<Item = (&'a Diagnostic, String)> {
        self.repeats.iter().filter_map(|repeats| {
            let sentence = format!("{}: {LISTS_ALL}", repeats.title());
            Some((*repeats.listed.first()?, sentence))
        })
    }

    /// Returns one entry for each kind with repeats: the kind, a title, and the lines below the title.
    fn paragraphs(&self, files: &[SourceFile], width: usize) -> Vec<(Kind, String, String)> {
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
            let _ = writeln!(text, "  {}", fold(&line, width.saturating_sub(4)).replace('\n', "\n    "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Location;
    use crate::spec::{Variables, parse};

    fn render_texts(texts: &[&str]) -> String {
        let name = |index| ["a.yaml", "b.yaml"][index];
        let texts = texts.iter().enumerate();
        let files: Vec<SourceFile> =
            texts.map(|(index, text)| SourceFile { name: name(index).to_owned(), text: (*text).to_owned() }).collect();
        let found = parse(&files, &Variables::new()).expect_err("these specs are invalid");
        diagnostics(&found, &files, false, 100)
    }

    #[test]
    fn location_is_underlined() {
        let text = "version: 1\nvhost: shop\nexchanges:\n  orders: {type: topic}\nqueues:\n  work:\n    type: quorum\n    \
                    bindings:\n      - {exchange: ordres, routingKey: x}\n    maxPriority: 5\n";
        assert_eq!(
            render_texts(&[text]),
            r#"error[undeclared]: the source of this binding, exchange `ordres`, is not declared
 --> a.yaml:9:20
  |
9 |       - {exchange: ordres, routingKey: x}
  |                    ^^^^^^ no such exchange
  |
  = help: did you mean `orders`? Otherwise, declare it under `exchanges:`; add `external: true`
          there if it is managed elsewhere

error[wrong-queue-type]: quorum queue `work` does not support `maxPriority`
  --> a.yaml:10:5
   |
 7 |     type: quorum
   |     ---- the type is set here
...
10 |     maxPriority: 5
   |     ^^^^^^^^^^^
   |
   = help: only queues of type `classic` support it
"#
        );
    }

    #[test]
    fn each_file_has_its_own_snippet() {
        let one = "version: 1\nvhost: shop\nqueues:\n  wörk: {type: quorum}\n";
        assert_eq!(
            render_texts(&[one, one]),
            r#"error[declared-twice]: queue `wörk` is declared twice
 --> b.yaml:4:3
  |
4 |   wörk: {type: quorum}
  |   ^^^^ again here
  |
 ::: a.yaml:4:3
  |
4 |   wörk: {type: quorum}
  |   ---- first declared here
  |
  = help: keep one of the two: topo merges all files of a vhost; keep variants in separate folders,
          or use `${NAME}` variables
"#
        );
    }

    #[test]
    fn label_without_room_becomes_a_note() {
        let text = "version: 1\nvhost: shop\nexchanges:\n  orders: {type: tpic}\nqueues: {a: {type: quorum}, a: {type: quorum}}\n";
        let file = SourceFile { name: "a.yaml".to_owned(), text: text.to_owned() };
        let files = [file];
        let found = parse(&files, &Variables::new()).expect_err("these specs are invalid");
        for (width, label, note) in [
            (50, "^^^^\n", "= note: expected `direct`, `fanout`, `topic` or\n"),
            (120, "^^^^ expected `direct`, `fanout`, `topic` or `headers`, or", "^ again here\n"),
            (40, "^\n", "= note: at 5:29: again here\n"),
        ] {
            for color in [false, true] {
                let shown = diagnostics(&found, &files, color, width);
                let plain: String = shown.lines().map(|line| without_colors(line) + "\n").collect();
                assert!(plain.contains(label) && plain.contains(note), "at {width}:\n{plain}");
                assert!(plain.lines().all(|line| columns(line) <= width), "at {width}:\n{plain}");
            }
        }
    }

    #[test]
    fn empty_file_is_reported_without_a_line() {
        assert_eq!(
            render_texts(&[""]),
            r#"error[empty]: `a.yaml` is empty
 --> a.yaml
  = help: start the spec with `version: 1` and `vhost: NAME`
"#
        );
    }

    #[test]
    fn very_long_line_is_shortened_around_its_locations() {
        let queues =
            |range: std::ops::Range<usize>| range.map(|n| format!("q{n}: {{type: quorum}}, ")).collect::<String>();
        let text = format!(
            "version: 1\nvhost: é\nqueues: {{{}é: {{type: quorum, maxPriority: 5}}, z: {{type: qurom}}}}\n",
            queues(0..1000)
        );
        let column = |what: &str| {
            text[..text.find(what).unwrap_or_default()].chars().count() - "version: 1\nvhost: é\n".chars().count() + 1
        };
        let shown = render_texts(&[&text]);
        for what in ["maxPriority", "qurom"] {
            assert!(shown.contains(&format!(" --> a.yaml:3:{}\n", column(what))), "{shown}");
        }
        assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
        // Two locations that are far apart on one line are both shown.
        let text =
            format!("version: 1\nvhost: s\nqueues: {{a: {{type: quorum}}, {}a: {{type: quorum}}}}\n", queues(0..1000));
        let shown = render_texts(&[&text]);
        assert!(shown.contains("first set here") && shown.contains("again here"), "{shown}");
        assert!(
            shown.contains(&format!(" --> a.yaml:3:{}\n", text.lines().last().unwrap_or_default().len() - 17)),
            "{shown}"
        );
        assert!(shown.lines().all(|line| line.chars().count() <= 160), "{shown}");
    }

    #[test]
    fn repeats_are_listed_and_then_counted() {
        let queues = |count| (0..count).map(|n| format!("  q{n}: {{type: qurom}}\n")).collect::<String>();
        let shown = |count| render_texts(&[&format!("version: 1\nvhost: s\nqueues:\n{}", queues(count))]);
        let titles = |shown: &str| shown.matches("\n --> ").count() + shown.matches("\n  --> ").count();
        assert_eq!(titles(&shown(20)), 20);
        assert!(!shown(20).contains(" more"), "{}", shown(20));
        let few = shown(21);
        assert_eq!(titles(&few), 20);
        assert!(few.ends_with("]: 1 more of the same kind\n  a.yaml:24:15: `type` cannot be `qurom`\n"), "{few}");
        let many = shown(1050);
        assert_eq!(titles(&many), 20);
        assert!(many.contains("]: 1,030 more of the same kind\n  a.yaml:24:15: "), "{many}");
        assert!(many.ends_with("\n  and 1,010 more: `topo validate --format json` lists all of them\n"), "{many}");
    }

    /// A file with thousands of errors can consist of a single line. topo must not reread the whole line for each
    /// error.
    #[test]
    fn excerpt_size_does_not_depend_on_the_line_length() {
        let text = |count| {
            let queues: Vec<String> = (0..count).map(|n| format!("q{n}: {{type: qurom}}")).collect();
            format!("{{version: 1, vhost: a, queues: {{{}}}}}", queues.join(", "))
        };
        let text = text(2000);
        let file = SourceFile { name: "a.json".to_owned(), text };
        let lines = FileLines::new(&file, std::iter::empty());
        for at in [0, 10, file.text.len() / 2, file.text.len()] {
            let location = Location { file: 0, start: at, end: at, line: 1, column: at + 1 };
            assert!(lines.excerpt(&[location], 100).text.len() < 2500);
        }
    }

    #[test]
    fn any_location_can_be_rendered() {
        let text = "version: 1\nvhost: é\nqueues:\n  q: {type: \"\\0\"}\n";
        let files = [SourceFile { name: "a.yaml".to_owned(), text: text.to_owned() }];
        for start in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            for (file, end) in [(0, start), (0, text.len()), (7, start), (0, 10_000)] {
                let mut all = Diagnostics::new();
                let at = Location { file, start, end, line: 4, column: 1 };
                all.push(Diagnostic::error("x", "message", at).also(Location::start_of(0), "here"));
                assert!(diagnostics(&all, &files, true, 40).contains("message"));
            }
        }
    }
}
