//! Places the labels of underlines. Where the terminal is too narrow, they become notes below.

use super::{Part, margin};
use crate::render::style::columns;
use crate::spec::Location;

/// Takes the labels away that do not fit beside what they are about on a screen of that width, or all of them, and returns
/// them as notes.
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
            let place = file.map_or(String::new(), |file| format!("{file}:"));
            notes.push(match is_alone {
                true => label.to_owned(),
                false => format!("at {place}{}:{}: {label}", at.line, at.column),
            });
            part.places[index].1 = "";
        }
    }
    notes
}

impl Part<'_> {
    /// The column in which a place ends, as it is shown.
    fn end_of(&self, at: Location) -> usize {
        let Some(excerpt) = &self.excerpt else { return 0 };
        let before = excerpt.text.get(..excerpt.shown(at.end)).unwrap_or_default();
        columns(before.rsplit('\n').next().unwrap_or_default())
    }
}
