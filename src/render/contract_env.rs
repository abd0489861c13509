//! Renders contracts as lines that a shell, or any reader of environment files, can read.

use super::shell::quoted;
use std::fmt::Write;

/// Renders `NAME=value` lines. An empty line separates the groups of queues.
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
