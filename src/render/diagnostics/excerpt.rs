//! Divides the locations of a diagnostic into parts. Each part has an excerpt: the lines around the locations. An
//! excerpt shortens very long lines, because the renderer reads the whole excerpt for each diagnostic, and a generated
//! file can consist of one line. If the terminal is too narrow, the labels of underlines become notes.

use super::masked::masked;
use crate::render::style::columns;
use crate::spec::{Diagnostic, Location, SourceFile};
use annotate_snippets::{AnnotationKind, Element, Origin, Snippet};
use std::borrow::Cow;
use std::ops::Range;

/// The number of lines before and after a location that are passed to the renderer.
const CONTEXT: usize = 2;
/// The maximum length, in bytes, of a line that is passed unchanged to the renderer. The renderer truncates the line to
/// the terminal width.
const LONG: usize = 2000;
/// The number of bytes that are kept before the first and after the last underlined part. Terminals are narrower than
/// this.
const AROUND: usize = 1000;
/// The number of bytes that are kept around each end of an underlined part.
const NEAR: usize = 24;
/// The replacement for omitted text.
const GAP: &str = "...";

/// The maximum number of lines between two adjacent locations in one excerpt.
const FAR: usize = 200;
/// The number of columns between a line number and the text of the line.
const GUTTER: usize = " | ".len();

/// A file, and the offset at which each of its lines starts.
pub(super) struct FileLines<'a> {
    pub(super) file: &'a SourceFile,
    /// The text with masked secrets. Masking does not change the length in bytes.
    text: Cow<'a, str>,
    starts: Vec<usize>,
}

/// Some lines of a file, possibly shortened.
pub(super) struct Excerpt {
    /// The text of the excerpt.
    pub(super) text: String,
    /// The number of the first line.
    pub(super) line: usize,
    /// The ranges of the file that are kept, with their offsets in `text`.
    kept: Vec<(Range<usize>, usize)>,
}

impl<'a> FileLines<'a> {
    /// Masks the secrets of a file, and finds the start of each line. `secrets` contains the locations of literal
    /// secrets.
    pub(super) fn new<'l>(file: &'a SourceFile, secrets: impl Iterator<Item = &'l Location>) -> Self {
        let breaks = file.text.match_indices('\n').map(|(at, _)| at + 1);
        Self { file, text: masked(&file.text, secrets), starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// Extracts the lines that contain the locations, with some context, for an output that is `width` columns wide.
    /// `locations` must be sorted by line.
    pub(super) fn excerpt(&self, locations: &[Location], width: usize) -> Excerpt {
        let line = |at: Option<&Location>| at.map_or(1, |at| at.line).clamp(1, self.starts.len());
        let first = line(locations.first()).saturating_sub(CONTEXT).max(1);
        let last = (line(locations.last()) + CONTEXT).min(self.starts.len());
        let mut excerpt = Excerpt { text: String::new(), line: first, kept: Vec::new() };
        for number in first..=last {
            let start = self.starts[number - 1];
            let end = self.starts.get(number).copied().unwrap_or(self.file.text.len());
            for (index, range) in self.ranges_to_keep(start..end, locations, width).into_iter().enumerate() {
                if index > 0 {
                    excerpt.text.push_str(GAP);
                }
                excerpt.kept.push((range.clone(), excerpt.text.len()));
                excerpt.text.push_str(&self.text[range]);
            }
            if number < last && !excerpt.text.ends_with('\n') {
                excerpt.text.push('\n');
            }
        }
        excerpt
    }

    /// Returns the ranges of a line that the excerpt keeps, in order.
    fn ranges_to_keep(&self, line: Range<usize>, locations: &[Location], width: usize) -> Vec<Range<usize>> {
        let mut ends: Vec<usize> = locations.iter().flat_map(|at| [at.start, at.end]).collect();
        ends.retain(|end| line.contains(end) || *end == line.end);
        ends.sort_unstable();
        let (Some(first), Some(last)) = (ends.first().copied(), ends.last().copied()) else {
            // The line has no underline, so only its beginning is kept.
            return vec![self.align(line.start, (line.start + LONG).min(line.end))];
        };
        if line.len() <= LONG && last - first <= width {
            return vec![line];
        }
        let before = first.saturating_sub(AROUND).max(line.start)..first;
        let after = last..(last + AROUND).min(line.end);
        let near = ends.iter().map(|end| end.saturating_sub(NEAR).max(line.start)..(end + NEAR).min(line.end));
        let candidates = std::iter::once(before).chain(near).chain(std::iter::once(after));
        let mut kept: Vec<Range<usize>> = Vec::new();
        for range in candidates {
            let range = self.align(range.start, range.end);
            match kept.last_mut() {
                Some(before) if range.start <= before.end + GAP.len() => before.end = before.end.max(range.end),
                Some(_) | None => kept.push(range),
            }
        }
        kept
    }

    /// Moves both offsets back to character boundaries.
    fn align(&self, start: usize, end: usize) -> Range<usize> {
        let text = &self.file.text;
        let back = |mut at: usize| {
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        back(start)..back(end)
    }
}

impl Excerpt {
    /// Converts the offset of a byte in the file to its offset in the excerpt. For an omitted byte, returns the end of
    /// the preceding range that is kept, or 0 if there is no such range.
    pub(super) fn offset_of(&self, byte: usize) -> usize {
        let known = self.kept.partition_point(|(range, _)| range.start <= byte);
        self.kept[..known].last().map_or(0, |(range, at)| at + byte.min(range.end) - range.start).min(self.text.len())
    }
}

/// Locations that are shown in one excerpt of a file.
pub(super) struct Part<'a> {
    /// The path, line and column of the main location. For an empty file, only the path.
    title: String,
    pub(super) excerpt: Option<Excerpt>,
    locations: Vec<(Location, &'a str, AnnotationKind)>,
}

/// Groups the locations of a diagnostic. The group of the primary location is first, and nearby locations share an
/// excerpt.
pub(super) fn parts<'a>(diagnostic: &'a Diagnostic, files: &[FileLines<'_>], width: usize) -> Vec<Part<'a>> {
    let primary = (diagnostic.primary, diagnostic.label.as_str(), AnnotationKind::Primary);
    let others = diagnostic.secondary.iter().map(|(at, label)| (*at, label.as_str(), AnnotationKind::Context));
    let mut locations: Vec<(Location, &str, AnnotationKind)> = std::iter::once(primary).chain(others).collect();
    locations.sort_by_key(|(at, ..)| (at.file != diagnostic.primary.file, at.file, at.line, at.column));
    let mut groups: Vec<Vec<(Location, &str, AnnotationKind)>> = Vec::new();
    for location in locations {
        let is_near = |(last, ..): &(Location, &str, AnnotationKind)| {
            last.file == location.0.file && location.0.line.saturating_sub(last.line) <= FAR
        };
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(is_near) => group.push(location),
            Some(_) | None => groups.push(vec![location]),
        }
    }
    // The renderer treats the first group as the primary group.
    groups.sort_by_key(|group| !group.iter().any(|(at, ..)| *at == diagnostic.primary));
    let part = |locations: Vec<(Location, &'a str, AnnotationKind)>| {
        let (first, ..) = *locations.first()?;
        let lines = files.get(first.file)?;
        let name = lines.file.name.as_str();
        if lines.file.text.is_empty() {
            return Some(Part { title: name.to_owned(), excerpt: None, locations });
        }
        let main = locations.iter().find(|(at, ..)| *at == diagnostic.primary).map_or(first, |(at, ..)| *at);
        let title = format!("{name}:{}:{}", main.line, main.column);
        let at: Vec<Location> = locations.iter().map(|(at, ..)| *at).collect();
        Some(Part {
            title,
            excerpt: Some(lines.excerpt(&at, width.saturating_sub(main.line.to_string().len() + GUTTER))),
            locations,
        })
    };
    groups.into_iter().filter_map(part).collect()
}

impl Part<'_> {
    pub(super) fn element(&self) -> Element<'_> {
        let Some(excerpt) = &self.excerpt else { return Origin::path(self.title.as_str()).into() };
        let text = excerpt.text.as_str();
        let mut snippet = Snippet::source(text).line_start(excerpt.line).path(self.title.as_str());
        for (at, label, kind) in &self.locations {
            let from = excerpt.offset_of(at.start);
            let to = excerpt.offset_of(at.end).max(from);
            // An empty span is extended to the next character, because the renderer cannot underline a position between
            // two characters.
            let width = text[from..].chars().next().map_or(0, char::len_utf8);
            let to = if to == from { from + width } else { to };
            let annotation = kind.span(from..to);
            snippet = snippet.annotation(if label.is_empty() { annotation } else { annotation.label(*label) });
        }
        snippet.into()
    }

    /// Removes the line and column that the renderer adds to the path. The renderer counts columns in the excerpt,
    /// which may be shortened. The title contains the correct line and column.
    pub(super) fn fix_location(&self, rendered: &mut String) {
        let Some(start) = rendered.find(&self.title).filter(|_| self.excerpt.is_some()) else { return };
        let end = start + self.title.len();
        let rest = rendered[end..].trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
        let location = end..rendered.len() - rest.len();
        rendered.replace_range(location, "");
    }

    /// Returns the column at which a location ends in the excerpt, or 0 if there is no excerpt.
    fn end_of(&self, at: Location) -> usize {
        let Some(excerpt) = &self.excerpt else { return 0 };
        let before = excerpt.text.get(..excerpt.offset_of(at.end)).unwrap_or_default();
        columns(before.rsplit('\n').next().unwrap_or_default())
    }
}

/// Returns the width of the line numbers, including the bar after the numbers.
pub(super) fn margin(parts: &[Part<'_>]) -> usize {
    let last_line = parts.iter().flat_map(|part| &part.locations).map(|(at, ..)| at.line).max().unwrap_or_default();
    last_line.to_string().len() + GUTTER
}

/// Removes labels from their locations, and returns the removed labels as notes. If `width` is set, removes only the
/// labels that do not fit next to their underlines. Otherwise, removes all labels.
pub(super) fn take_labels(parts: &mut [Part<'_>], primary: Location, width: Option<usize>) -> Vec<String> {
    let margin = margin(parts);
    let is_alone = parts.iter().map(|part| part.locations.len()).sum::<usize>() == 1;
    let mut notes = Vec::new();
    for part in parts {
        for index in 0..part.locations.len() {
            let (at, label, _) = part.locations[index];
            let fits = width.is_some_and(|width| margin + part.end_of(at) + 1 + columns(label) <= width);
            if label.is_empty() || fits {
                continue;
            }
            let file = part.title.rsplitn(3, ':').nth(2).filter(|_| at.file != primary.file);
            let prefix = file.map_or(String::new(), |file| format!("{file}:"));
            notes.push(match is_alone {
                true => label.to_owned(),
                false => format!("at {prefix}{}:{}: {label}", at.line, at.column),
            });
            part.locations[index].1 = "";
        }
    }
    notes
}
