//! How finished values look on a screen: colours, numbers, and lines.
//!
//! Colour is always written; the stream that it goes to strips it where it does not belong.

use crate::model::BrokerVersion;
use crate::model::count::number;
pub use crate::model::printable::{clean, one_line};
use anstyle::{AnsiColor, Style};
use std::fmt::{self, Display};

/// For what is made.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// For what is changed.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// For what is deleted, and for what stands in the way.
pub const RED: Style = AnsiColor::Red.on_default();
/// For what is less important.
pub const DIM: Style = Style::new().dimmed();
/// For headings.
pub const BOLD: Style = Style::new().bold();

/// Text in a style.
pub struct Painted<T>(pub Style, pub T);

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.0, self.1, self.0.render_reset())
    }
}

/// For which RabbitMQ something holds, and who says so: nobody asked a broker.
pub fn for_version(said: Option<BrokerVersion>) -> String {
    match said {
        Some(version) => format!("RabbitMQ {} (set by --broker-version)", version.series()),
        None => {
            let newest = BrokerVersion::NEWEST_KNOWN.series();
            format!("RabbitMQ {newest} (the newest known; --broker-version sets another)")
        }
    }
}

/// `1 delivery`, `4 deliveries`.
pub fn deliveries(value: u64) -> String {
    if value == 1 { "1 delivery".to_owned() } else { format!("{} deliveries", number(value)) }
}

/// `1 retry`, `3 retries`.
pub fn retries(value: u64) -> String {
    if value == 1 { "1 retry".to_owned() } else { format!("{} retries", number(value)) }
}

/// How many columns a text takes; wide and combining characters are rare enough in names to be counted as one.
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The words of a sentence; what stands between backticks is one of them.
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

/// Words in lines of at most `width` columns; a word that is longer stands alone.
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

/// The parts of a heading in lines of at most `width` columns: broken between two parts, and where one part is longer, at
/// its blanks.
pub fn heading(parts: &[String], width: usize) -> Vec<String> {
    wrap(parts, " · ", width).iter().flat_map(|line| wrap(&words_and_code(line), " ", width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_broken_between_its_parts_first() {
        let parts = ["queue q".to_owned(), "RabbitMQ 4.3 (the newest known)".to_owned(), "q.yaml:3".to_owned()];
        assert_eq!(heading(&parts, 80), [parts.join(" · ")]);
        assert_eq!(heading(&parts, 45), ["queue q · RabbitMQ 4.3 (the newest known)", "q.yaml:3"]);
        assert_eq!(heading(&parts, 22), ["queue q", "RabbitMQ 4.3 (the", "newest known)", "q.yaml:3"]);
    }

    #[test]
    fn what_is_to_be_copied_stays_together() {
        assert_eq!(
            words_and_code("or: `topo apply --abort q`, at once"),
            ["or:", "`topo apply --abort q`,", "at", "once"]
        );
        assert_eq!(words_and_code("it says `that' and more"), ["it", "says", "`that'", "and", "more"]);
    }
}
