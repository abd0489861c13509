//! Defines the colors and strokes of graphs, which all formats except JSON share. No information depends on color
//! alone. A word, a symbol or a stroke always conveys the same information.

use crate::graph::{ArrowKind, Kind, Mark, Node};

/// The colors of a box: background, border and text.
#[derive(Clone, Copy)]
pub(super) struct Paint {
    /// The class name in style sheets.
    pub(super) class: &'static str,
    pub(super) fill: &'static str,
    pub(super) stroke: &'static str,
    pub(super) ink: &'static str,
}

const fn paint(class: &'static str, fill: &'static str, stroke: &'static str, ink: &'static str) -> Paint {
    Paint { class, fill, stroke, ink }
}

pub(super) const EXCHANGE: Paint = paint("exchange", "#e7f0fd", "#3b73c4", "#12315e");
pub(super) const QUEUE: Paint = paint("queue", "#e8f5ec", "#3d8b55", "#123c20");
pub(super) const STREAM: Paint = paint("stream", "#e1f3f5", "#278792", "#0b3a3f");
pub(super) const DEAD: Paint = paint("dead", "#fdecea", "#c4453b", "#5c1a15");
pub(super) const TIER: Paint = paint("tier", "#fff3dc", "#c08416", "#4d3303");
pub(super) const FOREIGN: Paint = paint("foreign", "#f3f4f6", "#8a919c", "#3c434d");
/// The colors of unchanged objects in the graph of a plan.
pub(super) const UNCHANGED: Paint = paint("unchanged", "#f6f7f9", "#a9b1bc", "#4e5762");

/// The colors of all boxes, in the order of the style sheet.
pub(super) const PAINTS: [Paint; 12] = [
    EXCHANGE,
    QUEUE,
    STREAM,
    TIER,
    DEAD,
    FOREIGN,
    UNCHANGED,
    of_mark(Mark::Created),
    of_mark(Mark::Changed),
    of_mark(Mark::Recreated),
    of_mark(Mark::Deleted),
    of_mark(Mark::Conflict),
];

/// Returns the colors of an object with this mark.
pub(super) const fn of_mark(mark: Mark) -> Paint {
    match mark {
        Mark::Created => paint("created", "#dcf5e3", "#1a7f37", "#0b3d1a"),
        Mark::Changed => paint("changed", "#fff6cc", "#9a6700", "#4a3200"),
        Mark::Recreated => paint("recreated", "#e9e5ff", "#6a4fd0", "#2c1d6b"),
        Mark::Deleted => paint("deleted", "#ffe5e3", "#cf222e", "#6b0f16"),
        Mark::Conflict => paint("conflict", "#ffdff0", "#b0136f", "#5c0638"),
    }
}

/// Returns the colors of an object kind.
pub(super) fn of_kind(kind: Kind) -> Paint {
    match kind {
        Kind::Exchange => EXCHANGE,
        Kind::Queue => QUEUE,
        Kind::Stream => STREAM,
        Kind::DeadLetterQueue => DEAD,
        Kind::Tier => TIER,
        Kind::ForeignExchange | Kind::ForeignQueue => FOREIGN,
    }
}

/// Returns the colors of a box. In the graph of a plan, the mark of the object determines the colors. In the graph of a
/// spec, the kind of the object determines the colors.
pub(super) fn of_node(node: &Node, is_plan: bool) -> Paint {
    for_change(of_kind(node.kind), node.mark, is_plan)
}

/// Returns the colors for a mark. Without a mark, returns [`UNCHANGED`] in the graph of a plan, and `default` in the
/// graph of a spec.
pub(super) fn for_change(default: Paint, mark: Option<Mark>, is_plan: bool) -> Paint {
    match mark {
        Some(mark) => of_mark(mark),
        None if is_plan => UNCHANGED,
        None => default,
    }
}

/// The style of an arrow.
#[derive(Clone, Copy)]
pub(super) struct Stroke {
    /// The class name in style sheets.
    pub(super) class: &'static str,
    pub(super) color: &'static str,
    /// The lengths of dashes and gaps. Empty for a solid line.
    pub(super) dashes: &'static str,
}

/// Returns the style of an arrow kind.
pub(super) fn of_arrow(kind: ArrowKind) -> Stroke {
    let stroke = |class, color, dashes| Stroke { class, color, dashes };
    match kind {
        ArrowKind::Binding => stroke("binding", "#5a6675", ""),
        ArrowKind::Alternate => stroke("alternate", "#7d4fd3", "10 3 2 3"),
        ArrowKind::Retry => stroke("retry", "#b0780f", "2 3"),
        ArrowKind::DeadLetter => stroke("dead-letter", "#c4453b", "7 4"),
    }
}

/// Returns the color of an arrow. In the graph of a plan, the mark of the arrow determines the color. In the graph of a
/// spec, the kind of the arrow determines the color.
pub(super) fn arrow_color(kind: ArrowKind, mark: Option<Mark>, is_plan: bool) -> &'static str {
    match mark {
        Some(mark) => of_mark(mark).stroke,
        None if is_plan => UNCHANGED.stroke,
        None => of_arrow(kind).color,
    }
}
