//! Converts layers into columns and chains into lines. A line is curved between columns and horizontal within a column,
//! so it does not cross any box.

use super::layers::{Layered, Point, Size, StopKind, Wire};
use super::place::{above, below};
use std::cmp::Ordering;

/// The minimum distance between two columns. The distance grows with the vertical distance that the lines between the
/// columns cover.
const GAP: f64 = 18.0;
/// The maximum distance between two columns.
const MAX_GAP: f64 = 84.0;
/// The maximum distance between two lines at a box.
const PORTS: f64 = 9.0;

/// The path of one wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// Pairs of points from the beginning of the wire to its end. The line is horizontal within a pair, and a curve
    /// connects one pair to the next.
    pub levels: Vec<(Point, Point)>,
    /// The upper left corner of the label above the wire.
    pub label: Option<Point>,
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

/// Computes the layout from the ordered and placed stops.
pub(super) fn layout(graph: &Layered, boxes: &[Size], wires: &[Wire], is_reversed: &[bool]) -> Layout {
    let columns = columns(graph);
    let width = columns.last().map_or(0.0, |last| last.0 + last.1);
    let height = graph.stops.iter().map(|stop| stop.y + below(stop)).fold(0.0, f64::max);
    let corner = |index: usize| {
        let stop = &graph.stops[index];
        Point { x: columns[stop.layer].0, y: stop.y - above(stop) }
    };
    let ports = ports(graph);
    let route = |number: usize| {
        let chain = &graph.chains[number];
        let mut label = None;
        let mut levels: Vec<(Point, Point)> = Vec::new();
        for (index, stop) in chain.iter().enumerate() {
            let stop = &graph.stops[*stop];
            let (left, wide) = columns[stop.layer];
            // A column without width needs no horizontal line.
            if stop.kind == StopKind::Pass && wide == 0.0 {
                continue;
            }
            let level = |from: f64, to: f64, y: f64| (Point { x: from, y }, Point { x: to, y });
            levels.push(match (stop.kind, index) {
                (StopKind::Box, 0) => level(left + stop.size.width, left + wide, stop.y + ports[number].0),
                (StopKind::Box, _) => level(left, left, stop.y + ports[number].1),
                (StopKind::Label | StopKind::Pass, _) => level(left, left + wide, stop.y),
            });
            if stop.kind == StopKind::Label {
                label = Some(Point { x: left + (wide - stop.size.width) / 2.0, y: stop.y - stop.size.height });
            }
        }
        if is_reversed[number] {
            levels.reverse();
            for level in &mut levels {
                *level = (level.1, level.0);
            }
        }
        Route { levels, label }
    };
    Layout {
        size: Size { width, height },
        boxes: (0..boxes.len()).map(corner).collect(),
        routes: (0..wires.len()).map(route).collect(),
    }
}

/// Returns the left edge and the width of the column of each layer.
fn columns(graph: &Layered) -> Vec<(f64, f64)> {
    let mut columns: Vec<(f64, f64)> = Vec::new();
    let mut x = 0.0;
    for (number, layer) in graph.layers.iter().enumerate() {
        let wide = layer.iter().map(|stop| graph.stops[*stop].size.width).fold(0.0, f64::max);
        columns.push((x, wide));
        let climbs = layer.iter().flat_map(|stop| graph.right[*stop].iter().map(move |other| (stop, other)));
        let climb = climbs.map(|(one, other)| (graph.stops[*one].y - graph.stops[*other].y).abs()).fold(0.0, f64::max);
        if number + 1 < graph.layers.len() {
            x += wide + (GAP + climb * 0.16).min(MAX_GAP);
        }
    }
    columns
}

/// Returns the vertical offsets of each wire from the middle of its first box and from the middle of its last box.
fn ports(graph: &Layered) -> Vec<(f64, f64)> {
    let mut ports = vec![(0.0, 0.0); graph.chains.len()];
    let mut out: Vec<Vec<(f64, usize)>> = vec![Vec::new(); graph.stops.len()];
    let mut into = out.clone();
    for (number, chain) in graph.chains.iter().enumerate() {
        if let [first, second, ..] = chain[..] {
            out[first].push((graph.stops[second].y, number));
        }
        if let [.., before, last] = chain[..] {
            into[last].push((graph.stops[before].y, number));
        }
    }
    for (stop, (mut out, mut into)) in graph.stops.iter().zip(out.into_iter().zip(into)) {
        for side in [&mut out, &mut into] {
            side.sort_by(|one, other| one.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal).then(one.1.cmp(&other.1)));
        }
        // Keeps lines away from the corners.
        let room = (stop.size.height - 16.0).max(0.0);
        let spread = |side: &[(f64, usize)]| {
            let gaps = side.len().saturating_sub(1) as f64;
            let step = if gaps > 0.0 { (room / gaps).min(PORTS) } else { 0.0 };
            side.iter()
                .enumerate()
                .map(|(at, (_, number))| (*number, (at as f64 - gaps / 2.0) * step))
                .collect::<Vec<_>>()
        };
        for (number, offset) in spread(&out) {
            ports[number].0 = offset;
        }
        for (number, offset) in spread(&into) {
            ports[number].1 = offset;
        }
    }
    ports
}
