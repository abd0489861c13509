//! Renders graphs as text: Mermaid for Markdown, DOT for Graphviz, and SVG. Each format has one file; this module holds
//! the common parts.

pub mod dot;
pub mod json;
pub mod mermaid;
mod palette;
pub mod svg;
mod words;
