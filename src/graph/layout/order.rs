//! Orders the stops within each layer: linked stops get close positions, so that few wires cross.

use super::layers::Layered;
use std::cmp::Ordering;

/// The number of sweeps, alternately from left to right and from right to left.
const ROUNDS: usize = 12;

/// Orders the stops of all layers.
pub(super) fn order(graph: &mut Layered) {
    set_initial_order(graph);
    let mut places = vec![0_usize; graph.stops.len()];
    let mut best = (crossings(graph, &mut places), graph.layers.clone());
    for round in 0..ROUNDS {
        let count = graph.layers.len();
        for step in 1..count {
            let (layer, is_left) = if round % 2 == 0 { (step, true) } else { (count - 1 - step, false) };
            sort(graph, layer, is_left, &mut places);
        }
        let found = crossings(graph, &mut places);
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

fn number(graph: &Layered, layer: usize, places: &mut [usize]) {
    for (place, stop) in graph.layers[layer].iter().enumerate() {
        places[*stop] = place;
    }
}

/// Sorts a layer by the mean position of the linked stops on one side.
fn sort(graph: &mut Layered, layer: usize, is_left: bool, places: &mut [usize]) {
    number(graph, layer, places);
    number(graph, if is_left { layer - 1 } else { layer + 1 }, places);
    let mut keyed: Vec<(f64, usize)> = Vec::new();
    for stop in &graph.layers[layer] {
        let others = if is_left { &graph.left[*stop] } else { &graph.right[*stop] };
        let sum: usize = others.iter().map(|other| places[*other]).sum();
        let key = if others.is_empty() { None } else { Some(sum as f64 / others.len() as f64) };
        // A stop without links on that side stays below its upper neighbor.
        let above = keyed.last().map_or(0.0, |last| last.0);
        keyed.push((key.unwrap_or(above), *stop));
    }
    keyed.sort_by(|one, other| one.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal));
    graph.layers[layer] = keyed.into_iter().map(|(_, stop)| stop).collect();
}

/// Counts the pairs of links that cross.
fn crossings(graph: &Layered, places: &mut [usize]) -> usize {
    let mut found = 0;
    for layer in 0..graph.layers.len() {
        number(graph, layer, places);
    }
    for pair in graph.layers.windows(2) {
        let mut tree = vec![0_usize; pair[1].len() + 1];
        let mut seen = 0;
        for stop in &pair[0] {
            let mut ends: Vec<usize> = graph.right[*stop].iter().map(|other| places[*other]).collect();
            ends.sort_unstable();
            // Earlier links that end further down cross this one; links of the same stop do not cross.
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
