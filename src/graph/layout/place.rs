//! Computes vertical positions: each stop is as close as possible to the stops that it is linked to, at a minimum
//! distance from its neighbors.

use super::layers::{Layered, Stop, StopKind};

/// The number of rounds in which stops move towards the stops that they are linked to.
const ROUNDS: usize = 48;

/// Sets the height of every stop.
pub(super) fn place(graph: &mut Layered) {
    for layer in 0..graph.layers.len() {
        let desired = vec![0.0; graph.layers[layer].len()];
        resolve_positions(graph, layer, &desired, &vec![1.0; desired.len()]);
    }
    let count = graph.layers.len();
    for round in 0..ROUNDS {
        for step in 0..count {
            let layer = if round % 2 == 0 { step } else { count - 1 - step };
            // The last rounds use both sides, so that neither side dominates.
            let sides = if round + 24 >= ROUNDS { (true, true) } else { (round % 2 == 0, round % 2 == 1) };
            let (desired, weights) = preferred_positions(graph, layer, sides);
            resolve_positions(graph, layer, &desired, &weights);
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

/// Returns the preferred position and the weight of each stop. Links between two passing wires have the highest weight,
/// so that long lines stay straight.
fn preferred_positions(graph: &Layered, layer: usize, (left, right): (bool, bool)) -> (Vec<f64>, Vec<f64>) {
    let one = |stop: &usize| {
        let own = &graph.stops[*stop];
        let (mut sum, mut weight) = (0.0, 0.0);
        let sides = [(left, &graph.left[*stop]), (right, &graph.right[*stop])];
        for other in sides.iter().filter(|(is_used, _)| *is_used).flat_map(|(_, others)| *others) {
            let other = &graph.stops[*other];
            let matters = match (own.kind == StopKind::Box, other.kind == StopKind::Box) {
                (true, true) => 1.0,
                (true, false) | (false, true) => 2.0,
                (false, false) => 16.0,
            };
            sum += matters * other.y;
            weight += matters;
        }
        if weight > 0.0 { (sum / weight, weight) } else { (own.y, 0.05) }
    };
    graph.layers[layer].iter().map(one).unzip()
}

/// Sets the positions with the least squared distances to the preferred ones, in this order and with the minimum
/// distances. Stops whose preferred positions conflict form a block, and the block is at the weighted mean.
fn resolve_positions(graph: &mut Layered, layer: usize, desired: &[f64], weights: &[f64]) {
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
        let mut block = (desired[index] - offset, weights[index], 1);
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
