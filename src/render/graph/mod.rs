//! Renders graphs: as JSON, Mermaid for Markdown, DOT for Graphviz, and SVG. Each format except JSON has a module, and
//! the other modules are shared.

pub mod dot;
pub mod mermaid;
mod palette;
pub mod svg;
mod words;

use crate::graph::Graph;
use crate::model::printable::clean_json;
use serde_json::json;

/// The version of the document format.
const FORMAT_VERSION: u32 = 1;

/// Renders a graph as JSON. `from` and `to` of an arrow are indexes of the nodes of its vhost, from 0.
pub fn json(graph: &Graph) -> String {
    let document = json!({ "formatVersion": FORMAT_VERSION, "isPlan": graph.is_plan, "vhosts": graph.vhosts });
    clean_json(format!("{document:#}\n"))
}
