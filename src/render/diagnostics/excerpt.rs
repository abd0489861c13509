//! The lines of a file that a message is about, cut where they are very long: the renderer reads all that it is given, for
//! each message anew, and a generated file may be one line.

use crate::model::printable::masked;
use crate::spec::{Location, SourceFile};
use std::borrow::Cow;
use std::ops::Range;

/// Lines around a place that are handed to the renderer.
const CONTEXT: usize = 2;
/// Lines up to that many bytes are left to the renderer, which cuts them at the edges of the screen.
const LONG: usize = 2000;
/// Bytes that are kept at both ends of all that is underlined: more than any screen is wide.
const AROUND: usize = 1000;
/// Bytes that are kept around each end of what is underlined.
const NEAR: usize = 24;
/// What stands for what is left out.
const GAP: &str = "...";

/// A file, and where its lines start.
pub(super) struct FileLines<'a> {
    pub(super) file: &'a SourceFile,
    /// Its text without passwords, byte by byte.
    text: Cow<'a, str>,
    starts: Vec<usize>,
}

/// Some lines of a file, as they are shown.
pub(super) struct Excerpt {
    /// What is shown.
    pub(super) text: String,
    /// The number of the first line.
    pub(super) line: usize,
    /// Stretches of the file, and where each begins in `text`.
    kept: Vec<(Range<usize>, usize)>,
}

impl<'a> FileLines<'a> {
    pub(super) fn new(file: &'a SourceFile) -> Self {
        let breaks = file.text.match_indices('\n').map(|(at, _)| at + 1);
        Self { file, text: masked(&file.text), starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// The lines of these places, which are in the order of lines, and some around; for a screen that is so wide.
    pub(super) fn excerpt(&self, places: &[Location], width: usize) -> Excerpt {
        let line = |at: Option<&Location>| at.map_or(1, |at| at.line).clamp(1, self.starts.len());
        let first = line(places.first()).saturating_sub(CONTEXT).max(1);
        let last = (line(places.last()) + CONTEXT).min(self.starts.len());
        let mut excerpt = Excerpt { text: String::new(), line: first, kept: Vec::new() };
        for number in first..=last {
            let start = self.starts[number - 1];
            let end = self.starts.get(number).copied().unwrap_or(self.file.text.len());
            for (index, range) in self.kept(start..end, places, width).into_iter().enumerate() {
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

    /// What is kept of a line, in order.
    fn kept(&self, line: Range<usize>, places: &[Location], width: usize) -> Vec<Range<usize>> {
        let mut ends: Vec<usize> = places.iter().flat_map(|at| [at.start, at.end]).collect();
        ends.retain(|end| line.contains(end) || *end == line.end);
        ends.sort_unstable();
        let (Some(first), Some(last)) = (ends.first().copied(), ends.last().copied()) else {
            // Nothing is underlined: it is there for the numbers of the lines.
            return vec![self.whole(line.start, (line.start + LONG).min(line.end))];
        };
        if line.len() <= LONG && last - first <= width {
            return vec![line];
        }
        let before = first.saturating_sub(AROUND).max(line.start)..first;
        let behind = last..(last + AROUND).min(line.end);
        let near = ends.iter().map(|end| end.saturating_sub(NEAR).max(line.start)..(end + NEAR).min(line.end));
        let desired = std::iter::once(before).chain(near).chain(std::iter::once(behind));
        let mut kept: Vec<Range<usize>> = Vec::new();
        for range in desired {
            let range = self.whole(range.start, range.end);
            match kept.last_mut() {
                Some(before) if range.start <= before.end + GAP.len() => before.end = before.end.max(range.end),
                Some(_) | None => kept.push(range),
            }
        }
        kept
    }

    /// The same with whole characters.
    fn whole(&self, start: usize, end: usize) -> Range<usize> {
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
    /// Where a byte of the file is shown; what is left out is shown where it would begin.
    pub(super) fn shown(&self, byte: usize) -> usize {
        let known = self.kept.partition_point(|(range, _)| range.start <= byte);
        self.kept[..known].last().map_or(0, |(range, at)| at + byte.min(range.end) - range.start).min(self.text.len())
    }
}
