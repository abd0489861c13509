//! Formats tables with aligned columns.

use crate::render::style::{BOLD, Painted, columns};

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Formats rows with aligned columns and a heading. Truncates rows that are wider than `width`.
pub(super) fn table(heading: &[(&str, Align)], rows: &[Vec<String>], width: usize) -> String {
    let widths: Vec<usize> = heading
        .iter()
        .enumerate()
        .map(|(at, (name, _))| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| columns(cell));
            cells.chain([columns(name)]).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (at, cell) in cells.enumerate() {
            let (size, align) = (widths.get(at).copied().unwrap_or(0), heading.get(at).map_or(Align::Left, |it| it.1));
            let gap = " ".repeat(size.saturating_sub(columns(cell)));
            if at > 0 {
                line.push_str("  ");
            }
            match align {
                Align::Left => line.push_str(&format!("{cell}{gap}")),
                Align::Right => line.push_str(&format!("{gap}{cell}")),
            }
        }
        cut(line.trim_end(), width)
    };
    let mut text = format!("{}\n", Painted(BOLD, line(&mut heading.iter().map(|(name, _)| *name))));
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
        text.push('\n');
    }
    text
}

/// Truncates a line that is wider than `width`, and appends `…`.
pub(super) fn cut(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
