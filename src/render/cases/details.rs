//! Renders the differences and the events of a failed case as plain text, for formats other than text.

use super::events::events;
use super::sentence;
use crate::cases::{FileReport, Mismatch};
use crate::model::printable::clean;
use crate::simulation::Outcome;

/// Describes the setting that determines a result, with its position, such as `maxRetries is 1 (topology.yaml:5)`.
fn reason(report: &FileReport, mismatch: &Mismatch) -> Option<String> {
    let because = clean(mismatch.because.as_deref()?);
    let at = mismatch.at.and_then(|at| report.spec_position(at));
    Some(at.map_or_else(|| because.clone(), |at| format!("{because} ({at})")))
}

/// Renders the differences and the events of a failed case as plain text.
pub(super) fn details(report: &FileReport, mismatches: &[Mismatch], simulated: &Outcome) -> String {
    let mut lines = String::new();
    for mismatch in mismatches {
        lines.push_str(&sentence(mismatch));
        lines.push('\n');
        lines.extend(reason(report, mismatch).map(|reason| format!("  {reason}\n")));
    }
    let mut shown = String::new();
    events(&mut shown, simulated, WIDTH);
    lines + &anstream::adapter::strip_str(&shown).to_string()
}

/// The width of the rendered events, in columns.
const WIDTH: usize = 100;
