//! Orders and positions the stops within each layer. The order places linked stops at similar positions, so that few
//! wires cross. Each stop is as close as possible to its linked stops, at a minimum distance from its neighbors.

use super::layers::{Layered, Stop, StopKind};
use std::cmp::Ordering;

/// The number of rounds in which stops move toward their linked stops.
const ROUNDS: usize = 48;

/// Sets the vertical position of every stop.
pub(super) fn place(graph: &mut Layered) {
    for layer in 0..graph.layers.len() {
        let preferred = vec![0.0; graph.layers[layer].len()];
        resolve_positions(graph, layer, &preferred, &vec![1.0; preferred.len()]);
    }
    let count = graph.layers.len();
    for round in 0..ROUNDS {
        for step in 0..count {
            let layer = if round % 2 == 0 { step } else { count - 1 - step };
            // The last rounds use both sides, so that neither side dominates.
            let sides = if round + 24 >= ROUNDS { (true, true) } else { (round % 2 == 0, round % 2 == 1) };
            let (preferred, weights) = preferred_positions(graph, layer, sides);
            resolve_positions(graph, layer, &preferred, &weights);
        }
    }
    let top = graph.stops.iter().map(|stop| stop.y - above(stop)).fold(f64::INFINITY, f64::min);
    for stop in &mut graph.stops {
        stop.y -= top;
    }
}

/// Returns the extent of a stop above its line.
pub(super) fn above(stop: &Stop) -> f64 {
    match stop.kind {
        StopKind::Box | StopKind::Pass => stop.size.height / 2.0,
        StopKind::Label => stop.size.height,
    }
}

/// Returns the extent of a stop below its line.
pub(super) fn below(stop: &Stop) -> f64 {
    match stop.kind {
        StopKind::Box | StopKind::Pass => stop.size.height / 2.0,
        StopKind::Label => 2.0,
    }
}

/// Returns the minimum distance between the lines of two neighbors.
fn min_distance(upper: &Stop, lower: &Stop) -> f64 {
    let gap = match (upper.kind, lower.kind) {
        (StopKind::Box, StopKind::Box) => 18.0,
        (StopKind::Box, StopKind::Pass | StopKind::Label) | (StopKind::Pass | StopKind::Label, StopKind::Box) => 14.0,
        (StopKind::Label, StopKind::Label) => 6.0,
        (StopKind::Pass, StopKind::Pass | StopKind::Label) | (StopKind::Label, StopKind::Pass) => 9.0,
    };
    below(upper) + gap + above(lower)
}

/// Returns the preferred position and the weight of each stop. Links between two stops that are not boxes have the
/// highest weight, so that long lines stay straight. `(left, right)` selects the links on each side.
fn preferred_positions(graph: &Layered, layer: usize, (left, right): (bool, bool)) -> (Vec<f64>, Vec<f64>) {
    let one = |stop: &usize| {
        let current = &graph.stops[*stop];
        let (mut sum, mut weight) = (0.0, 0.0);
        let sides = [(left, &graph.left[*stop]), (right, &graph.right[*stop])];
        for other in sides.iter().filter(|(is_used, _)| *is_used).flat_map(|(_, others)| *others) {
            let other = &graph.stops[*other];
            let link_weight = match (current.kind == StopKind::Box, other.kind == StopKind::Box) {
                (true, true) => 1.0,
                (true, false) | (false, true) => 2.0,
                (false, false) => 16.0,
            };
            sum += link_weight * other.y;
            weight += link_weight;
        }
        if weight > 0.0 { (sum / weight, weight) } else { (current.y, 0.05) }
    };
    graph.layers[layer].iter().map(one).unzip()
}

/// Sets the positions of the stops in a layer. Minimizes the squared distances to the preferred positions, but keeps
/// the order and the minimum distances. Stops with conflicting preferred positions form a block at their weighted mean.
fn resolve_positions(graph: &mut Layered, layer: usize, preferred: &[f64], weights: &[f64]) {
    let stops = graph.layers[layer].clone();
    let mut offsets = Vec::new();
    let mut offset = 0.0;
    for (index, stop) in stops.iter().enumerate() {
        if let Some(upper) = index.checked_sub(1).map(|before| stops[before]) {
            offset += min_distance(&graph.stops[upper], &graph.stops[*stop]);
        }
        offsets.push(offset);
    }
    // Blocks of neighbors that move together: mean, weight, number of stops.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (index, offset) in offsets.iter().enumerate() {
        let mut block = (preferred[index] - offset, weights[index], 1);
        while let Some(before) = blocks.pop_if(|before| before.0 > block.0) {
            let weight = before.1 + block.1;
            block = ((before.0 * before.1 + block.0 * block.1) / weight, weight, before.2 + block.2);
        }
        blocks.push(block);
    }
    let means = blocks.iter().flat_map(|(mean, _, count)| std::iter::repeat_n(*mean, *count));
    for ((stop, offset), mean) in stops.iter().zip(&offsets).zip(means) {
        graph.stops[*stop].y = mean + offset;
    }
}

/// The number of sweeps, which alternate between left to right and right to left.
const ORDER_ROUNDS: usize = 12;

/// Orders the stops in all layers.
pub(super) fn order(graph: &mut Layered) {
    set_initial_order(graph);
    let mut positions = vec![0_usize; graph.stops.len()];
    let mut best = (crossings(graph, &mut positions), graph.layers.clone());
    for round in 0..ORDER_ROUNDS {
        let count = graph.layers.len();
        for step in 1..count {
            let (layer, is_left) = if round % 2 == 0 { (step, true) } else { (count - 1 - step, false) };
            sort(graph, layer, is_left, &mut positions);
        }
        let found = crossings(graph, &mut positions);
        if found < best.0 {
            best = (found, graph.layers.clone());
        }
        if best.0 == 0 {
            break;
        }
    }
    graph.layers = best.1;
}

/// Sets the initial order, in which stops that follow each other on a walk are adjacent.
fn set_initial_order(graph: &mut Layered) {
    let mut is_seen = vec![false; graph.stops.len()];
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); graph.layers.len()];
    let starts: Vec<usize> = graph.layers.iter().flatten().copied().collect();
    for start in starts {
        let mut walk = vec![start];
        while let Some(stop) = walk.pop() {
            if std::mem::replace(&mut is_seen[stop], true) {
                continue;
            }
            layers[graph.stops[stop].layer].push(stop);
            walk.extend(graph.left[stop].iter().rev().chain(graph.right[stop].iter().rev()));
        }
    }
    graph.layers = layers;
}

/// Updates the position of each stop in a layer.
fn number(graph: &Layered, layer: usize, positions: &mut [usize]) {
    for (position, stop) in graph.layers[layer].iter().enumerate() {
        positions[*stop] = position;
    }
}

/// Sorts a layer by the mean position of the linked stops on one side.
fn sort(graph: &mut Layered, layer: usize, is_left: bool, positions: &mut [usize]) {
    number(graph, layer, positions);
    number(graph, if is_left { layer - 1 } else { layer + 1 }, positions);
    let mut keyed: Vec<(f64, usize)> = Vec::new();
    for stop in &graph.layers[layer] {
        let others = if is_left { &graph.left[*stop] } else { &graph.right[*stop] };
        let sum: usize = others.iter().map(|other| positions[*other]).sum();
        let key = if others.is_empty() { None } else { Some(sum as f64 / others.len() as f64) };
        // A stop without links on that side stays below its upper neighbor.
        let above = keyed.last().map_or(0.0, |last| last.0);
        keyed.push((key.unwrap_or(above), *stop));
    }
    keyed.sort_by(|one, other| one.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal));
    graph.layers[layer] = keyed.into_iter().map(|(_, stop)| stop).collect();
}

/// Counts the pairs of links that cross.
fn crossings(graph: &Layered, positions: &mut [usize]) -> usize {
    let mut found = 0;
    for layer in 0..graph.layers.len() {
        number(graph, layer, positions);
    }
    for pair in graph.layers.windows(2) {
        let mut tree = vec![0_usize; pair[1].len() + 1];
        let mut seen = 0;
        for stop in &pair[0] {
            let mut ends: Vec<usize> = graph.right[*stop].iter().map(|other| positions[*other]).collect();
            ends.sort_unstable();
            // An earlier link that ends below this link crosses it. Links of the same stop do not cross.
            for end in &ends {
                let mut above = 0;
                let mut at = end + 1;
                while at > 0 {
                    above += tree[at];
                    at &= at - 1;
                }
                found += seen - above;
            }
            for end in ends {
                let mut at = end + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
                seen += 1;
            }
        }
    }
    found
}
