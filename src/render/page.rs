//! Renders Markdown pages for a terminal: wraps paragraphs and lists to the width, and leaves everything else
//! unchanged.

use super::style::{words_and_code, wrap};

/// Wraps a page to lines of this width, as far as the words allow it.
pub fn folded(page: &str, width: usize) -> String {
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

/// Writes the collected lines as one paragraph.
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
    fn paragraphs_are_wrapped_and_code_is_unchanged() {
        let page = "# a-rule\n\nOne two three\nfour `five six` seven.\n\n- an item that\n- another\n\n```yaml\nqueues: {a: {type: quorum, maxLength: 5}}\n```\n";
        let expected = "# a-rule\n\nOne two three four\n`five six` seven.\n\n- an item that\n- another\n\n```yaml\nqueues: {a: {type: quorum, maxLength: 5}}\n```\n";
        assert_eq!(folded(page, 20), expected);
    }
}
