//! Where boxes and arrows are: layers from left to right, after Sugiyama. Labels are boxes of the layout, so that nothing
//! can be drawn over them. Knows nothing of queues; deterministic.
//!
//! Written here because no kept library does it: `rust-sugiyama` 0.4 keeps to itself where an arrow passes the layers
//! between its ends, so that arrows would run through boxes; `layout-rs` draws by itself, labels across each other.

mod acyclic;
mod layers;
mod order;
mod pack;
mod place;
mod route;
#[cfg(test)]
mod tests;

pub use pack::arrange;
pub use route::Route;

/// How large something is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// From left to right.
    pub width: f64,
    /// From top to bottom.
    pub height: f64,
}

/// A place; y grows downwards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// From the left.
    pub x: f64,
    /// From the top.
    pub y: f64,
}

/// An arrow to be placed, between the places of boxes; never from a box to itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// Where it begins.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// The size of what is written above it.
    pub label: Option<Size>,
}

/// Everything placed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// All of it.
    pub size: Size,
    /// The left upper corners of the boxes.
    pub boxes: Vec<Point>,
    /// The ways of the wires.
    pub routes: Vec<Route>,
}

/// One connected graph.
fn layered(boxes: &[Size], wires: &[Wire]) -> Layout {
    let is_reversed = acyclic::reversed(boxes.len(), wires);
    let mut graph = layers::Layered::of(boxes, wires, &is_reversed);
    order::order(&mut graph);
    place::place(&mut graph);
    route::routed(&graph, boxes, wires, &is_reversed)
}
