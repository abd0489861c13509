//! Formats commands to paste into a shell.

use crate::broker::redacted_argument;
pub(super) use crate::render::shell::quoted;
use std::path::Path;

/// Formats a path as an argument. A leading `-` would make it a flag.
pub(super) fn path(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.starts_with('-') && text != "-" { quoted(&format!("./{text}")) } else { quoted(&text) }
}

/// Formats a path for a message. A user may have typed a URL with credentials instead.
pub(super) fn shown(path: &Path) -> String {
    redacted_argument(&path.to_string_lossy())
}
