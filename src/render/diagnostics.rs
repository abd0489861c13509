//! Diagnostics as rustc prints them: the sentence, the line, the place underlined, and a hint.

use crate::spec::{Diagnostic, Diagnostics, Location, Severity, SourceFile};
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

/// Lines around a place that are handed to the renderer: it reads all that it is given, for each message anew.
const CONTEXT: usize = 2;

/// Renders all of them, with an empty line between two; ends with a line break unless there are none.
pub fn diagnostics(diagnostics: &Diagnostics, files: &[SourceFile], color: bool, width: usize) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() }.term_width(width);
    let texts: Vec<FileLines<'_>> = files.iter().map(FileLines::new).collect();
    let rendered: Vec<String> = diagnostics.iter().map(|it| renderer.render(&[group(it, &texts)]) + "\n").collect();
    rendered.join("\n")
}

/// A file, and where its lines start.
struct FileLines<'a> {
    file: &'a SourceFile,
    starts: Vec<usize>,
}

impl<'a> FileLines<'a> {
    fn new(file: &'a SourceFile) -> Self {
        let breaks = file.text.match_indices('\n').map(|(at, _)| at + 1);
        Self { file, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// The text of the lines between two, from 1, both included and with some around; with its first line and byte.
    fn window(&self, first: usize, last: usize) -> (&'a str, usize, usize) {
        let first = first.saturating_sub(CONTEXT).clamp(1, self.starts.len());
        let start = self.starts[first - 1];
        let end = self.starts.get(last + CONTEXT).copied().unwrap_or(self.file.text.len());
        (&self.file.text[start..end], first, start)
    }
}

fn group<'a>(diagnostic: &'a Diagnostic, files: &[FileLines<'a>]) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()).id(diagnostic.code));
    let primary = (diagnostic.primary, diagnostic.label.as_str(), AnnotationKind::Primary);
    let others = diagnostic.secondary.iter().map(|(at, label)| (*at, label.as_str(), AnnotationKind::Context));
    let mut places: Vec<(Location, &str, AnnotationKind)> = std::iter::once(primary).chain(others).collect();
    // The primary place's file first, then the lines in order; places that are near share a snippet.
    places.sort_by_key(|(at, ..)| (at.file != diagnostic.primary.file, at.file, at.line, at.column));
    while let Some(&(first, ..)) = places.first() {
        let mut count = 1;
        let mut last = first;
        while let Some(&(next, ..)) = places.get(count).filter(|(next, ..)| next.file == first.file) {
            last = next;
            count += 1;
        }
        let rest = places.split_off(count);
        let (here, file) = (std::mem::replace(&mut places, rest), files.get(first.file));
        let Some(file) = file else { continue };
        group = group.element(snippet(file, first.line, last.line, here));
    }
    match &diagnostic.hint {
        Some(hint) => group.element(Level::HELP.message(hint.as_str())),
        None => group,
    }
}

fn snippet<'a>(
    file: &FileLines<'a>,
    first: usize,
    last: usize,
    places: Vec<(Location, &'a str, AnnotationKind)>,
) -> Element<'a> {
    if file.file.text.is_empty() {
        return Origin::path(file.file.name.as_str()).into();
    }
    let (window, line, start) = file.window(first, last);
    let mut snippet = Snippet::source(window).line_start(line).path(file.file.name.as_str());
    for (at, label, kind) in places {
        let from = at.start.saturating_sub(start).min(window.len());
        let to = at.end.saturating_sub(start).clamp(from, window.len());
        // A place without a width would be underlined between two characters.
        let width = window[from..].chars().next().map_or(0, char::len_utf8);
        let to = if to == from { from + width } else { to };
        let annotation = kind.span(from..to);
        snippet = snippet.annotation(if label.is_empty() { annotation } else { annotation.label(label) });
    }
    snippet.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Variables, parse};

    fn rendered(texts: &[&str]) -> String {
        let name = |index| ["a.yaml", "b.yaml"][index];
        let texts = texts.iter().enumerate();
        let files: Vec<SourceFile> =
            texts.map(|(index, text)| SourceFile { name: name(index).to_owned(), text: (*text).to_owned() }).collect();
        let found = parse(&files, &Variables::new()).expect_err("these specs are wrong");
        diagnostics(&found, &files, false, 100)
    }

    #[test]
    fn the_place_is_underlined() {
        let text = "version: 1\nvhost: shop\nexchanges:\n  orders: {type: topic}\nqueues:\n  work:\n    type: quorum\n    \
                    bindings:\n      - {exchange: ordres, routingKey: x}\n    maxPriority: 5\n";
        assert_eq!(
            rendered(&[text]),
            r#"error[undeclared]: the source of this binding is exchange `ordres`, which is neither declared nor external
 --> a.yaml:9:20
  |
9 |       - {exchange: ordres, routingKey: x}
  |                    ^^^^^^ no such exchange
  |
  = help: did you mean `orders`? Otherwise declare it under `exchanges:`, or mark it there with `external: true`

error[wrong-queue-type]: queue `work` is a quorum queue, which takes no `maxPriority`
  --> a.yaml:10:5
   |
 7 |     type: quorum
   |     ---- its type is said here
...
10 |     maxPriority: 5
   |     ^^^^^^^^^^^
   |
   = help: only queues of type `classic` take it
"#
        );
    }

    #[test]
    fn two_files_are_two_snippets() {
        let one = "version: 1\nvhost: shop\nqueues:\n  wörk: {type: quorum}\n";
        assert_eq!(
            rendered(&[one, one]),
            r#"error[declared-twice]: queue `wörk` is declared twice
 --> b.yaml:4:3
  |
4 |   wörk: {type: quorum}
  |   ^^^^ again here
  |
 ::: a.yaml:4:3
  |
4 |   wörk: {type: quorum}
  |   ---- first here
  |
  = help: keep one of the two
"#
        );
    }

    #[test]
    fn an_empty_file_has_a_name() {
        assert_eq!(
            rendered(&[""]),
            r#"error[empty]: `a.yaml` says nothing
--> a.yaml
 = help: a spec starts with `version: 1` and `vhost: NAME`
"#
        );
    }

    #[test]
    fn any_place_can_be_shown() {
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
