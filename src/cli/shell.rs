//! Lines to paste into a shell.

use crate::broker::redacted_argument;
pub(super) use crate::render::shell::quoted;
use std::path::Path;

/// A path as an argument. A leading `-` would make it a flag.
pub(super) fn path(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.starts_with('-') && text != "-" { quoted(&format!("./{text}")) } else { quoted(&text) }
}

/// A path in a message. A user may have confused it with a URL that has credentials.
pub(super) fn shown(path: &Path) -> String {
    redacted_argument(&path.to_string_lossy())
}
