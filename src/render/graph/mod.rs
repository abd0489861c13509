//! Renders graphs as JSON, as Mermaid for Markdown, as DOT for Graphviz, and as SVG. Each format except JSON has a
//! module. The formats share the other modules.

pub mod dot;
pub mod mermaid;
mod palette;
pub mod svg;
mod words;

use crate::graph::Graph;
use crate::model::printable::clean_json;
use serde_json::json;

/// The format version of the JSON document.
const FORMAT_VERSION: u32 = 1;

/// Renders a graph as JSON. The `from` and `to` fields of an arrow are zero-based indexes of nodes in the same vhost.
pub fn json(graph: &Graph) -> String {
    let document = json!({ "formatVersion": FORMAT_VERSION, "isPlan": graph.is_plan, "vhosts": graph.vhosts });
    clean_json(format!("{document:#}\n"))
}
