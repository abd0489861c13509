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

/// Escapes text like [`inline`], but keeps the code spans of a message, such as "routing key `order.x`". If the number
/// of backticks is odd, or if two backticks are adjacent, the code spans are ambiguous. In that case, all backticks are
/// escaped.
pub(super) fn with_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let last = parts.len() - 1;
    let is_ambiguous = last % 2 == 1 || parts.get(1..last).is_some_and(|inner| inner.contains(&""));
    if is_ambiguous {
        return inline(text);
    }
    let part = |(index, part): (usize, &&str)| match index % 2 {
        0 => inline(part),
        // In a table, a pipe ends the cell even in a code span.
        _ => format!("`{}`", clean(part).replace('|', "\\|")),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Returns a fence that is longer than any run of backticks in the text.
pub(super) fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_spans_are_kept_unless_they_are_ambiguous() {
        assert_eq!(with_code("a_b `c_*|d`, `e`"), "a\\_b `c_*\\|d`, `e`");
        assert_eq!(with_code("no code"), "no code");
        for text in ["key `a`b` c", "key `````", "key `a``b`", "``", "`"] {
            assert_eq!(with_code(text), inline(text), "{text}");
        }
    }

    #[test]
    fn names_do_not_become_markup() {
        assert_eq!(inline("a|b"), "a\\|b");
        assert_eq!(inline("<img>"), "&lt;img&gt;");
        assert_eq!(inline("@all"), "@\u{200b}all");
    }
}
