//! Contracts as lines that a shell reads, and everything else that reads such files.

use super::shell::quoted;
use std::fmt::Write;

/// `NAME=value`, a group a queue with an empty line between.
pub fn lines(groups: &[Vec<(String, String)>]) -> String {
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
