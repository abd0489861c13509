//! Renders graphs as text: Mermaid for Markdown, DOT for Graphviz, and SVG. Each format has a module, and the other
//! modules are shared.

pub mod dot;
pub mod json;
pub mod mermaid;
mod palette;
pub mod svg;
mod words;
