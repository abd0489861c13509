//! Renders values as text for a terminal, a pull request, a workflow or a program. Renderers perform no I/O, and make
//! no decisions about a plan.

pub mod alerts;
pub mod cases;
mod change_details;
mod change_text;
pub mod client_config;
pub mod contract_table;
pub mod definitions;
pub mod diagnostics;
pub mod dlq;
mod family;
pub mod findings;
pub mod glossary;
pub mod graph;
pub mod lifecycle_counts;
pub mod lifecycle_text;
mod markdown;
pub mod plan_github;
pub mod plan_markdown;
pub mod plan_short;
pub mod plan_summary;
pub mod plan_text;
pub mod progress_text;
pub mod report_json;
pub mod report_text;
mod resolutions_text;
mod routing_text;
pub mod shell;
pub mod status;
pub mod style;

pub use plan_text::View;
