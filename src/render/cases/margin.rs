//! Writes sentences with a position at the right margin.

use crate::render::style::{DIM, Painted, columns, fold};

/// Wraps a sentence, indents the lines after the first line, and puts a position at the right margin of the last line.
/// If the position does not fit on the last line, puts it in parentheses after the sentence.
pub(super) fn with_position(sentence: &str, at: &str, indent: usize, width: usize) -> String {
    let room = width.saturating_sub(indent);
    let folded = fold(sentence, room);
    let last = folded.lines().last().map_or(0, columns);
    let text = match room.checked_sub(last + columns(at)).filter(|free| *free >= 2) {
        _ if at.is_empty() => folded,
        Some(free) => format!("{folded}{}{}", " ".repeat(free), Painted(DIM, at)),
        None => fold(&format!("{sentence} ({at})"), room),
    };
    text.replace('\n', &format!("\n{}", " ".repeat(indent)))
}

#[cfg(test)]
mod tests {
    use super::with_position;

    #[test]
    fn positions_are_at_the_margin_or_follow_the_sentence() {
        let plain = |sentence: &str, width| {
            let text = with_position(sentence, "a.yaml:3", 2, width);
            anstream::adapter::strip_str(&text).to_string()
        };
        assert_eq!(plain("one two", 20), "one two   a.yaml:3");
        assert_eq!(plain("one two three", 20), "one two three\n  (a.yaml:3)");
        assert_eq!(plain("one two three four five", 20), "one two three four\n  five      a.yaml:3");
        assert_eq!(with_position("one", "", 2, 20), "one");
    }
}
