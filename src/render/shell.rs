//! Words as a shell takes them.

use super::style::{columns, wrap};
use crate::model::printable::is_hidden;

/// Before what goes on.
const INDENT: &str = "    ";

/// A word with quotes where it needs some. Hidden characters are written as octal escapes, which POSIX knows between `$'`
/// and `'`.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if word.chars().any(is_hidden) || word.contains("##[") {
        let escape = |c: char| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if is_hidden(c) || c == '#' => {
                c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\{byte:03o}")).collect()
            }
            c => c.to_string(),
        };
        format!("$'{}'", word.chars().map(escape).collect::<String>())
    } else if !word.is_empty() && !word.starts_with("::") && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A line to paste: whole where it fits; else in lines that a shell takes for one, parted between words, a flag with its
/// value.
pub fn in_lines(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let mut parts: Vec<String> = Vec::new();
    for word in words(line) {
        let is_value = !word.starts_with('-');
        match parts.last_mut() {
            Some(flag) if is_value && flag.starts_with("--") && !flag.contains([' ', '=']) => {
                flag.push(' ');
                flag.push_str(word);
            }
            Some(_) | None => parts.push(word.to_owned()),
        }
    }
    // Room for the indent, and for ` \`.
    wrap(&parts, " ", width.saturating_sub(INDENT.len() + 2)).join(&format!(" \\\n{INDENT}"))
}

/// The words of a line, with their quotes.
fn words(line: &str) -> Vec<&str> {
    let (mut words, mut start, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if !is_quoted => is_escaped = true,
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => {
                words.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&line[start..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_hidden_characters_back() {
        for word in ["a\n::b", "\u{1b}[31m", "it's \\ \u{202e}x", "::error::x", "$'x'"] {
            let script = format!("printf %s {}", quoted(word));
            assert!(!script.chars().any(is_hidden), "{script}");
            let read = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&read.stdout), word);
        }
    }

    #[test]
    fn a_long_line_is_parted_where_a_shell_takes_it_for_one() {
        let name = quoted("it's one  word");
        let line = format!("topo apply topology.yaml --url http://localhost:15672 --allow {name} --prune --yes");
        assert_eq!(in_lines(&line, 200), line);
        let parted = in_lines(&line, 40);
        assert_eq!(
            parted,
            "topo apply topology.yaml \\\n    --url http://localhost:15672 \\\n    --allow 'it'\\''s one  word' \\\n    --prune --yes"
        );
        assert!(parted.lines().all(|line| columns(line) <= 40));
        // What a shell makes of it.
        let script = format!("topo() {{ printf '<%s>' \"$@\"; }}; {parted}");
        let said = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let expected = "<apply><topology.yaml><--url><http://localhost:15672><--allow><it's one  word><--prune><--yes>";
        assert_eq!(String::from_utf8_lossy(&said.stdout), expected);
    }
}
