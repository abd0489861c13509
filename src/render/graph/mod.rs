//! Pictures as text: Mermaid for Markdown, DOT for Graphviz, SVG as it is. One file a format; what they have in common is
//! here.

pub mod dot;
pub mod json;
pub mod mermaid;
mod palette;
pub mod svg;
mod words;
