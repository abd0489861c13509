//! Renders the alerts for specs: as Prometheus rules, as promtool tests for these rules, and as a Grafana dashboard.

mod dashboard;
mod promtool;
mod rules;
mod text;

pub use dashboard::dashboard;
pub use promtool::{UntestableMatcher, tests as promtool_tests};
pub use rules::rules;

/// The first characters of the files that the renderers create: rules, tests and dashboards.
pub const BEGINNINGS: [&str; 3] = [rules::TITLE, promtool::TITLE, dashboard::BEGINNING];
