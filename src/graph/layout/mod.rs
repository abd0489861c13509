//! Computes the positions of boxes and arrows: layers from left to right, after Sugiyama. Labels are boxes of the
//! layout, so nothing overlaps them. The layout is deterministic and independent of queues and exchanges.
//!
//! This is a custom implementation, because the maintained libraries do not fit. `rust-sugiyama` 0.4 does not expose
//! where an arrow passes the layers between its ends, so arrows would cross boxes. `layout-rs` draws by itself, and its
//! labels overlap.

mod layers;
mod order;
mod place;
mod route;
#[cfg(test)]
mod tests;

pub use place::arrange;
pub use route::Route;

/// A width and a height.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// The horizontal extent.
    pub width: f64,
    /// The vertical extent.
    pub height: f64,
}

/// A position; y grows downwards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// The distance from the left.
    pub x: f64,
    /// The distance from the top.
    pub y: f64,
}

/// An arrow between two boxes, given by their indexes. The two boxes always differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// The box where the arrow begins.
    pub from: usize,
    /// The box where the arrow ends.
    pub to: usize,
    /// The size of the label above the arrow.
    pub label: Option<Size>,
}

/// The positions of all boxes and wires.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The size of the drawing.
    pub size: Size,
    /// The upper left corners of the boxes.
    pub boxes: Vec<Point>,
    /// The paths of the wires.
    pub routes: Vec<Route>,
}

/// Lays out one connected graph.
fn lay_out(boxes: &[Size], wires: &[Wire]) -> Layout {
    let is_reversed = layers::reversed(boxes.len(), wires);
    let mut graph = layers::Layered::of(boxes, wires, &is_reversed);
    order::order(&mut graph);
    place::place(&mut graph);
    route::routed(&graph, boxes, wires, &is_reversed)
}
