//! Text for a shell: quoted words, commands that wrap at the width, and `NAME=value` lines of contracts, which any reader
//! of environment files can read, too.

use super::style::{columns, wrap};
use crate::model::printable::is_hidden;
use std::fmt::Write;

/// The indentation of continuation lines.
const INDENT: &str = "    ";

/// Quotes a word if necessary. Hidden characters are written as octal escapes between `$'` and `'`, as POSIX defines
/// them.
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

/// Wraps a command at words with `\`, so that it can be pasted. A flag stays on one line with its value.
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
    // Leaves room for the indentation and for ` \`.
    wrap(&parts, " ", width.saturating_sub(INDENT.len() + 2)).join(&format!(" \\\n{INDENT}"))
}

/// Splits a command into words, with their quotes.
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

/// Renders `NAME=value` lines. An empty line separates the groups of queues.
pub fn environment_lines(groups: &[Vec<(String, String)>]) -> String {
    let mut text = String::new();
    for (index, group) in groups.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        for (name, value) in group {
            let _ = writeln!(text, "{name}={}", quoted(value));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_decodes_hidden_characters() {
        for word in ["a\n::b", "\u{1b}[31m", "it's \\ \u{202e}x", "::error::x", "$'x'"] {
            let script = format!("printf %s {}", quoted(word));
            assert!(!script.chars().any(is_hidden), "{script}");
            let read = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&read.stdout), word);
        }
    }

    #[test]
    fn wrapped_command_is_one_command_for_a_shell() {
        let name = quoted("it's one  word");
        let line = format!("topo apply topology.yaml --url http://localhost:15672 --allow {name} --prune --yes");
        assert_eq!(in_lines(&line, 200), line);
        let wrapped = in_lines(&line, 40);
        assert_eq!(
            wrapped,
            "topo apply topology.yaml \\\n    --url http://localhost:15672 \\\n    --allow 'it'\\''s one  word' \\\n    --prune --yes"
        );
        assert!(wrapped.lines().all(|line| columns(line) <= 40));
        // The shell prints the arguments that it parses.
        let script = format!("topo() {{ printf '<%s>' \"$@\"; }}; {wrapped}");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let expected = "<apply><topology.yaml><--url><http://localhost:15672><--allow><it's one  word><--prune><--yes>";
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}
