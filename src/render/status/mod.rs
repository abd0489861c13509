//! Renders a status as text and as JSON.

mod table;
#[cfg(test)]
mod tests;
mod text;

pub use text::{View, text};

use crate::model::printable::clean_json;
use crate::operate::status::Status;

/// Renders a status as JSON, on one line if `is_compact` is true. The document ends with a line break.
pub fn json(status: &Status, is_compact: bool) -> String {
    // Serialization cannot fail, because all map keys in the document are strings.
    let document = if is_compact { serde_json::to_string(status) } else { serde_json::to_string_pretty(status) };
    clean_json(document.unwrap_or_default() + "\n")
}
