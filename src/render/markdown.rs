//! Escapes text for Markdown.

use super::style::clean;

/// Escapes text for a Markdown line or table cell, so that a name cannot become markup, a mention or a new cell.
pub(super) fn inline(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("@\u{200b}"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_become_markup() {
        assert_eq!(inline("a|b"), "a\\|b");
        assert_eq!(inline("<img>"), "&lt;img&gt;");
        assert_eq!(inline("@all"), "@\u{200b}all");
    }
}
