//! Moves labels of underlines into notes if the terminal is too narrow.

use super::{Part, margin};
use crate::render::style::columns;
use crate::spec::Location;

/// Removes labels and returns them as notes. With a width, these are the labels that do not fit next to their
/// underlines; without a width, all labels.
pub(super) fn below(parts: &mut [Part<'_>], primary: Location, width: Option<usize>) -> Vec<String> {
    let margin = margin(parts);
    let is_alone = parts.iter().map(|part| part.places.len()).sum::<usize>() == 1;
    let mut notes = Vec::new();
    for part in parts {
        for index in 0..part.places.len() {
            let (at, label, _) = part.places[index];
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
            part.places[index].1 = "";
        }
    }
    notes
}

impl Part<'_> {
    /// Returns the column after a location in the excerpt.
    fn end_of(&self, at: Location) -> usize {
        let Some(excerpt) = &self.excerpt else { return 0 };
        let before = excerpt.text.get(..excerpt.shown(at.end)).unwrap_or_default();
        columns(before.rsplit('\n').next().unwrap_or_default())
    }
}
