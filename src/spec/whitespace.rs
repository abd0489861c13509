//! Finds the whitespace that makes a text invalid YAML: a tab that indents a line, and a colon without a space after
//! it. The YAML library reports both on a later line.

use super::diagnostic::Diagnostic;
use super::explained::key_names;
use super::node::Location;

/// Returns the first tabs in an indentation, on this line or a later one.
pub(super) fn tab(text: &str, at: Location) -> Option<Location> {
    let skipped = at.line.saturating_sub(1);
    let mut start = text.split_inclusive('\n').take(skipped).map(str::len).sum::<usize>();
    for line in text.split_inclusive('\n').skip(skipped) {
        let content = line.trim_start_matches([' ', '\t']);
        let indentation = &line[..line.len() - content.len()];
        if let Some(tab) = indentation.find('\t').filter(|_| !content.trim().is_empty()) {
            let count = indentation[tab..].bytes().take_while(|byte| *byte == b'\t').count();
            return Some(Location::spanning(at.file, text, start + tab..start + tab + count));
        }
        start += line.len();
    }
    None
}

/// Reports `type:quorum` on this line, or on the lines directly above it.
pub(super) fn missing_space(text: &str, at: Location) -> Option<Diagnostic> {
    let lines: Vec<&str> = text.split_inclusive('\n').take(at.line).collect();
    let mut found = None;
    for (index, line) in lines.iter().enumerate().rev() {
        let content = line.trim();
        match joined(content) {
            Some(pair) => found = Some((index, pair)),
            // The error may be on the next line, after comments and empty lines.
            None if index + 1 == lines.len() || content.is_empty() || content.starts_with('#') => {}
            None => break,
        }
    }
    let (index, (key, value)) = found?;
    let before: usize = lines[..index].iter().map(|line| line.len()).sum();
    let start = before + lines[index].find(&format!("{key}:"))?;
    let primary = Location::spanning(at.file, text, start..start + key.len() + 1 + value.len());
    let message = format!("missing space after the colon of `{key}`");
    Some(Diagnostic::error("syntax", message, primary).hint(format!("write `{key}: {value}`")))
}

/// Returns a key of a spec and its value, if there is no space between them.
fn joined(content: &str) -> Option<(&str, &str)> {
    let content = content.strip_prefix("- ").unwrap_or(content);
    let content = content.split(" #").next()?.trim_end();
    let (key, value) = content.split_once(':')?;
    let is_joined = value.starts_with(|c: char| !c.is_whitespace() && c != '/' && c != ':');
    let is_flow = value.starts_with(['{', '[']) && !key.is_empty() && !key.contains(char::is_whitespace);
    let is_plain = !value.contains(": ") && !value.ends_with(':') && key_names().contains(key);
    (is_joined && (is_flow || is_plain)).then_some((key, value))
}
