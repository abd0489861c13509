//! Formats text for a terminal: colors, counts, line breaks, and Markdown pages.
//!
//! [`Painted`] always writes color codes. The output stream strips them if the target does not support colors.

use crate::model::BrokerVersion;
use crate::model::count::number;
pub use crate::model::printable::{clean, one_line};
use anstyle::{AnsiColor, Style};
use std::fmt::{self, Display};

/// The style for creations and success.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// The style for changes and warnings.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// The style for deletions, blockers and failures.
pub const RED: Style = AnsiColor::Red.on_default();
/// The style for less important text.
pub const DIM: Style = Style::new().dimmed();
/// The style for headings.
pub const BOLD: Style = Style::new().bold();

/// A value to display in a style.
pub struct Painted<T>(pub Style, pub T);

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.0, self.1, self.0.render_reset())
    }
}

/// Describes the RabbitMQ version that topo assumes without a broker, and the origin of this version.
pub fn for_version(selected: Option<BrokerVersion>) -> String {
    match selected {
        Some(version) => format!("RabbitMQ {} (set by --broker-version)", version.series()),
        None => {
            let newest = BrokerVersion::NEWEST_KNOWN.series();
            format!("RabbitMQ {newest} (the newest known; override with --broker-version)")
        }
    }
}

/// Formats a count as `1 delivery` or `4 deliveries`.
pub fn deliveries(value: u64) -> String {
    if value == 1 { "1 delivery".to_owned() } else { format!("{} deliveries", number(value)) }
}

/// Formats a count as `1 retry` or `3 retries`.
pub fn retries(value: u64) -> String {
    if value == 1 { "1 retry".to_owned() } else { format!("{} retries", number(value)) }
}

/// Returns the width of a string in columns. Counts each character as one column, because wide and combining characters
/// are rare in names.
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Splits a sentence into words. Treats code in backticks as part of one word.
pub fn words_and_code(sentence: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut backticks = sentence.matches('`').count();
    for word in sentence.split(' ') {
        match words.last_mut() {
            Some(code) if backticks > 0 && !code.matches('`').count().is_multiple_of(2) => {
                code.push(' ');
                code.push_str(word);
            }
            Some(_) | None => words.push(word.to_owned()),
        }
        backticks -= word.matches('`').count();
    }
    words
}

/// Joins parts into lines of at most `width` columns. Puts a part that is wider than `width` on a separate line. The
/// `textwrap` crate is not suitable, because it would break lines inside code spans, heading parts and command flags.
pub fn wrap(parts: &[String], separator: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if columns(line) + columns(separator) + columns(part) <= width => {
                line.push_str(separator);
                line.push_str(part);
            }
            Some(_) | None => lines.push(part.clone()),
        }
    }
    lines
}

/// Joins the parts of a heading into lines of at most `width` columns. Breaks lines between parts. Breaks a part at its
/// spaces only if the part is wider than `width`.
pub fn heading(parts: &[String], width: usize) -> Vec<String> {
    wrap(parts, " · ", width).iter().flat_map(|line| wrap(&words_and_code(line), " ", width)).collect()
}

/// Wraps each line of a string between words. Keeps each code span on one line.
pub fn fold(sentence: &str, width: usize) -> String {
    let lines = sentence.lines().flat_map(|line| wrap(&words_and_code(line), " ", width));
    lines.collect::<Vec<_>>().join("\n")
}

/// Wraps the paragraphs and list items of a Markdown page to `width` columns. Leaves headings, tables, quotes, indented
/// lines and code blocks unchanged.
pub fn fold_page(page: &str, width: usize) -> String {
    let mut folded = String::new();
    let mut paragraph: Vec<&str> = Vec::new();
    let mut is_code = false;
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        let is_fixed = is_code || is_fence || line.is_empty() || line.starts_with(['#', '|', '>', ' ']);
        if is_fixed || is_item(line) {
            fill(&mut folded, &mut paragraph, width);
        }
        is_code ^= is_fence;
        if is_fixed {
            folded.push_str(line);
            folded.push('\n');
        } else {
            paragraph.push(line);
        }
    }
    fill(&mut folded, &mut paragraph, width);
    folded
}

fn is_item(line: &str) -> bool {
    line.starts_with("- ") || line.starts_with("* ")
}

/// Wraps the lines of `paragraph` as one paragraph, and clears `paragraph`.
fn fill(folded: &mut String, paragraph: &mut Vec<&str>, width: usize) {
    let text = std::mem::take(paragraph).join(" ");
    if text.is_empty() {
        return;
    }
    let indent = if is_item(&text) { "  " } else { "" };
    let lines = wrap(&words_and_code(&text), " ", width.saturating_sub(indent.len()));
    folded.push_str(&lines.join(&format!("\n{indent}")));
    folded.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heading_breaks_between_parts_first() {
        let parts = ["queue q".to_owned(), "RabbitMQ 4.3 (the newest known)".to_owned(), "q.yaml:3".to_owned()];
        assert_eq!(heading(&parts, 80), [parts.join(" · ")]);
        assert_eq!(heading(&parts, 45), ["queue q · RabbitMQ 4.3 (the newest known)", "q.yaml:3"]);
        assert_eq!(heading(&parts, 22), ["queue q", "RabbitMQ 4.3 (the", "newest known)", "q.yaml:3"]);
    }

    #[test]
    fn code_is_one_word() {
        assert_eq!(
            words_and_code("or: `topo apply --abort q`, right now"),
            ["or:", "`topo apply --abort q`,", "right", "now"]
        );
        assert_eq!(words_and_code("it is `that' and more"), ["it", "is", "`that'", "and", "more"]);
    }
}

#[cfg(test)]
mod page_tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_and_code_is_unchanged() {
        let page = "# a-rule\n\nOne two three\nfour `five six` seven.\n\n- an item that\n- another\n\n```yaml\nqueues: {a: {type: quorum, maxLength: 5}}\n```\n";
        let expected = "# a-rule\n\nOne two three four\n`five six` seven.\n\n- an item that\n- another\n\n```yaml\nqueues: {a: {type: quorum, maxLength: 5}}\n```\n";
        assert_eq!(fold_page(page, 20), expected);
    }
}
