//! Formats text for a shell: quotes words, wraps commands, and renders the next command of a plan and the `NAME=value`
//! lines of contracts.

use super::style::{columns, wrap};
use crate::model::Address;
use crate::model::printable::is_hidden;
use crate::plan::Blockers;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The indentation of continuation lines.
const INDENT: &str = "    ";

/// Quotes a word for a shell if necessary. Writes hidden characters as octal escapes in `$'…'`, as defined by POSIX.
/// Also escapes `##[`, which a workflow runner would interpret as a command.
pub fn quote(word: &str) -> String {
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

/// Wraps a command between words with `\`, so that users can paste the command. Keeps a flag on the same line as its
/// value.
pub fn wrap_command(line: &str, width: usize) -> String {
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

/// Splits a command into words. The words include their quotes.
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

/// Renders `NAME=value` lines. An empty line separates the groups.
pub fn environment_lines(groups: &[Vec<(String, String)>]) -> String {
    let mut text = String::new();
    for (index, group) in groups.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        for (name, value) in group {
            let _ = writeln!(text, "{name}={}", quote(value));
        }
    }
    text
}

/// Returns the command to run after a plan. If nothing except hazards blocks the plan, returns the apply command with
/// the flags that allow these hazards. If `--recreate` flags resolve all other blockers, and the apply command does not
/// use a saved plan, returns the plan command with these flags. In that case, a new plan is necessary, because a
/// recreation can add hazards. Otherwise, returns a sentence.
pub fn next_command(apply: &str, blockers: &Blockers) -> String {
    if blockers.blocks.is_empty() {
        return with_allowances(apply, blockers);
    }
    let flags: Option<Vec<&str>> = blockers.blocks.iter().map(|block| block.flag.as_deref()).collect();
    match (flags, apply.strip_prefix("topo apply")) {
        (Some(flags), Some(rest)) if !rest.starts_with(" --plan") => {
            let rest =
                blockers.blocks.iter().fold(rest.to_owned(), |rest, block| without_recreate(&rest, &block.address));
            format!("topo plan{rest} {}", flags.join(" "))
        }
        (_, _) => "Resolve the blockers above before applying.".to_owned(),
    }
}

/// Removes the `--recreate` flag for an object from a command, because the caller adds a different `--recreate` flag.
fn without_recreate(line: &str, address: &Address) -> String {
    let flag = format!(" --recreate {address}=");
    match line.split_once(&flag) {
        Some((before, after)) => {
            let rest = after.find(' ').map_or("", |end| &after[end..]);
            format!("{before}{rest}")
        }
        None => line.to_owned(),
    }
}

/// Returns the apply command with the flags that allow the blocking hazards.
pub fn with_allowances(apply: &str, blockers: &Blockers) -> String {
    let mut line = apply.to_owned();
    let mut added = BTreeSet::new();
    // An object can have the same hazard twice, for different reasons.
    for flag in blockers.hazards.iter().map(|hazard| hazard.flag()) {
        if added.insert(flag.clone()) {
            line.push(' ');
            line.push_str(&flag);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_decodes_hidden_characters() {
        for word in ["a\n::b", "\u{1b}[31m", "it's \\ \u{202e}x", "::error::x", "$'x'"] {
            let script = format!("printf %s {}", quote(word));
            assert!(!script.chars().any(is_hidden), "{script}");
            let read = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&read.stdout), word);
        }
    }

    #[test]
    fn wrapped_command_is_one_command_for_a_shell() {
        let name = quote("it's one  word");
        let line = format!("topo apply topology.yaml --url http://localhost:15672 --allow {name} --prune --yes");
        assert_eq!(wrap_command(&line, 200), line);
        let wrapped = wrap_command(&line, 40);
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

#[cfg(test)]
mod next_command_tests {
    use super::*;
    use crate::model::ObjectId;
    use crate::plan::Block;

    #[test]
    fn suggested_recreate_flag_replaces_the_existing_flag() {
        let address = Address::of(&"v".into(), &ObjectId::Queue("q".into()));
        let flag = Some("--recreate queues/v/q=migrate".to_owned());
        let block = Block { address, text: String::new(), remedy: None, flag };
        let blockers = Blockers { blocks: vec![block], conflicts: 0, hazards: Vec::new() };
        for (apply, expected) in [
            ("topo apply a.yaml --recreate queues/v/q=ifEmpty", "topo plan a.yaml --recreate queues/v/q=migrate"),
            (
                "topo apply --recreate queues/v/q=ifEmpty --recreate queues/v/qq=discard --prune",
                "topo plan --recreate queues/v/qq=discard --prune --recreate queues/v/q=migrate",
            ),
            ("topo apply a.yaml", "topo plan a.yaml --recreate queues/v/q=migrate"),
        ] {
            assert_eq!(next_command(apply, &blockers), expected);
        }
    }
}
