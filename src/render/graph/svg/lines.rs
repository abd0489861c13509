//! Draws arrows with labels above them. Arrows are horizontal within a column and curved between columns.

use crate::graph::layout::{Route, Size};
use crate::graph::{Arrow, ArrowKind, Mark, VhostGraph};
use crate::render::graph::palette::{self, UNCHANGED};
use crate::render::graph::words::{self, arrow_tooltip, cells, decimal, escape_xml};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The maximum width of a label, in cells. The tooltip contains the complete label.
const MAX_WIDTH: usize = 34;
const CELL: f64 = 6.4;
const LINE: f64 = 13.0;
/// The padding on each side of a label.
const SIDE: f64 = 6.0;
/// The distance between a label and its arrow.
const LABEL_GAP: f64 = 5.0;

/// Returns the labels above an arrow.
pub(super) fn labels(arrow: &Arrow) -> Vec<String> {
    words::labels(&arrow.labels, MAX_WIDTH)
}

/// Returns the total size of the labels, or `None` if there are no labels.
pub(super) fn size(labels: &[String]) -> Option<Size> {
    let widest = labels.iter().map(|label| cells(label)).max()?;
    Some(Size { width: widest as f64 * CELL + 2.0 * SIDE, height: labels.len() as f64 * LINE + LABEL_GAP })
}

/// Returns the kinds of a vhost's arrows, including the arrows between queues and their tiers.
pub(super) fn kinds(vhost: &VhostGraph) -> BTreeSet<ArrowKind> {
    let retries = vhost.nodes.iter().filter(|node| node.retries.is_some()).map(|_| ArrowKind::Retry);
    vhost.arrows.iter().map(|arrow| arrow.kind).chain(retries).collect()
}

/// Returns the CSS classes of an arrow, which depend on the kind of the arrow and, in a plan, on its mark.
pub(super) fn class(kind: ArrowKind, mark: Option<Mark>, is_plan: bool) -> String {
    let kind = palette::of_arrow(kind).class;
    match mark {
        Some(mark) => format!("arrow {kind} to-be-{}", palette::of_mark(mark).class),
        None if is_plan => format!("arrow {kind} to-be-{}", UNCHANGED.class),
        None => format!("arrow {kind}"),
    }
}

/// Returns the ID of the arrowhead in the color of the arrow.
pub(super) fn head(kind: ArrowKind, mark: Option<Mark>, is_plan: bool) -> String {
    let color = match mark {
        Some(mark) => palette::of_mark(mark).class,
        None if is_plan => UNCHANGED.class,
        None => palette::of_arrow(kind).class,
    };
    format!("topo-{color}")
}

/// Writes a short arrow for the legend.
pub(super) fn sample(text: &mut String, kind: ArrowKind, (x, y): (f64, f64), is_plan: bool) {
    let (class, head) = (class(kind, None, is_plan), head(kind, None, is_plan));
    let (from, to, y) = (decimal(x), decimal(x + 36.0), decimal(y));
    let _ = writeln!(text, r#"<path class="{class}" d="M{from} {y}H{to}" marker-end="url(#{head})"/>"#);
}

pub(super) fn write(
    text: &mut String,
    (arrow, labels, route): (&Arrow, &[String], &Route),
    vhost: &VhostGraph,
    is_plan: bool,
) {
    let class = class(arrow.kind, arrow.mark, is_plan);
    let _ = writeln!(text, "<g><title>{}</title>", escape_xml(&arrow_tooltip(arrow, vhost).join("\n")));
    let head = head(arrow.kind, arrow.mark, is_plan);
    let _ = writeln!(text, r#"<path class="{class}" d="{}" marker-end="url(#{head})"/>"#, path(route));
    if let Some(corner) = route.label {
        for ((shown, label), line) in labels.iter().zip(arrow.labels.iter().map(Some).chain([None])).zip(1..) {
            let y = decimal(corner.y + f64::from(line) * LINE - 2.5);
            let class = self::class(arrow.kind, label.map_or(arrow.mark, |label| label.mark), is_plan);
            let x = decimal(corner.x + SIDE);
            let _ = writeln!(text, r#"<text class="label {class}" x="{x}" y="{y}">{}</text>"#, escape_xml(shown));
        }
    }
    text.push_str("</g>\n");
}

fn path(route: &Route) -> String {
    let mut path = String::new();
    let mut at = None;
    for (from, to) in &route.levels {
        let (x, y) = (decimal(from.x), decimal(from.y));
        match at {
            None => {
                let _ = write!(path, "M{x} {y}");
            }
            // At the same height, a straight line is sufficient.
            Some((_, before)) if before == from.y => {
                let _ = write!(path, "H{x}");
            }
            Some((left, before)) => {
                let middle: f64 = (left + from.x) / 2.0;
                let _ = write!(path, "C{0} {1} {0} {y} {x} {y}", decimal(middle), decimal(before));
            }
        }
        if to.x != from.x {
            let _ = write!(path, "H{}", decimal(to.x));
        }
        at = Some((to.x, to.y));
    }
    path
}
