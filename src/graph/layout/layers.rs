//! Assigns boxes to layers, and turns each wire into a chain with one stop in each layer that it crosses. Boxes are in
//! even layers, and labels in odd layers. A wire that closes a cycle is reversed, so that the layered graph has no
//! cycle.

/// A width and a height.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// The horizontal extent.
    pub width: f64,
    /// The vertical extent.
    pub height: f64,
}

/// A position. The y coordinate increases downward.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// The distance from the left edge.
    pub x: f64,
    /// The distance from the top edge.
    pub y: f64,
}

/// An arrow between two different boxes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// The index of the box where the arrow begins.
    pub from: usize,
    /// The index of the box where the arrow ends.
    pub to: usize,
    /// The size of the label above the arrow, or `None` if the arrow has no label.
    pub label: Option<Size>,
}

/// A layered graph. Each link connects a layer with the next layer.
#[derive(Debug, Default)]
pub(super) struct Layered {
    /// The boxes, labels and passing wires. The first stops are the boxes.
    pub(super) stops: Vec<Stop>,
    /// The stops in each layer, from top to bottom.
    pub(super) layers: Vec<Vec<usize>>,
    /// The stops of each wire from left to right, including both boxes.
    pub(super) chains: Vec<Vec<usize>>,
    /// For each stop, the linked stops in the previous layer.
    pub(super) left: Vec<Vec<usize>>,
    /// For each stop, the linked stops in the next layer.
    pub(super) right: Vec<Vec<usize>>,
}

/// A box, a label or a passing wire in a layer.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) kind: StopKind,
    pub(super) layer: usize,
    pub(super) size: Size,
    /// The vertical center. For a label, the vertical position of the line below the label.
    pub(super) y: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopKind {
    Box,
    Label,
    /// A wire that passes through the layer.
    Pass,
}

impl Layered {
    pub(super) fn of(boxes: &[Size], wires: &[Wire], is_reversed: &[bool]) -> Self {
        let ends: Vec<(usize, usize)> = wires
            .iter()
            .zip(is_reversed)
            .map(|(wire, is_reversed)| if *is_reversed { (wire.to, wire.from) } else { (wire.from, wire.to) })
            .collect();
        let ranks = ranks(boxes.len(), &ends);
        let mut graph = Self::default();
        for (size, rank) in boxes.iter().zip(&ranks) {
            graph.add_stop(StopKind::Box, 2 * rank, *size);
        }
        for (wire, (from, to)) in wires.iter().zip(&ends) {
            let mut chain = vec![*from];
            for layer in 2 * ranks[*from] + 1..2 * ranks[*to] {
                let is_first = chain.len() == 1;
                let stop = match wire.label.filter(|_| is_first) {
                    Some(size) => graph.add_stop(StopKind::Label, layer, size),
                    None => graph.add_stop(StopKind::Pass, layer, Size::default()),
                };
                chain.push(stop);
            }
            chain.push(*to);
            for pair in chain.windows(2) {
                graph.right[pair[0]].push(pair[1]);
                graph.left[pair[1]].push(pair[0]);
            }
            graph.chains.push(chain);
        }
        graph
    }

    /// Adds a stop and returns its index.
    fn add_stop(&mut self, kind: StopKind, layer: usize, size: Size) -> usize {
        let index = self.stops.len();
        self.stops.push(Stop { kind, layer, size, y: 0.0 });
        self.left.push(Vec::new());
        self.right.push(Vec::new());
        if self.layers.len() <= layer {
            self.layers.resize(layer + 1, Vec::new());
        }
        self.layers[layer].push(index);
        index
    }
}

/// Returns the column of each box. A box is to the right of all its sources. A box without a source is one column to
/// the left of its nearest destination, or in the first column if it has no destination.
fn ranks(count: usize, ends: &[(usize, usize)]) -> Vec<usize> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut waits_for = vec![0_usize; count];
    for (from, to) in ends {
        out[*from].push(*to);
        waits_for[*to] += 1;
    }
    let has_source: Vec<bool> = waits_for.iter().map(|it| *it > 0).collect();
    let mut ranks: Vec<usize> = vec![0; count];
    let mut open: Vec<usize> = (0..count).filter(|it| waits_for[*it] == 0).collect();
    while let Some(from) = open.pop() {
        for to in &out[from] {
            ranks[*to] = ranks[*to].max(ranks[from] + 1);
            waits_for[*to] -= 1;
            if waits_for[*to] == 0 {
                open.push(*to);
            }
        }
    }
    for from in (0..count).filter(|it| !has_source[*it]) {
        let nearest = out[from].iter().map(|to| ranks[*to]).min();
        ranks[from] = nearest.map_or(0, |nearest| nearest.saturating_sub(1));
    }
    ranks
}

/// Returns, for each wire, whether the wire must be reversed.
pub(super) fn wires_to_reverse(count: usize, wires: &[Wire]) -> Vec<bool> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut has_source = vec![false; count];
    for (number, wire) in wires.iter().enumerate() {
        out[wire.from].push(number);
        has_source[wire.to] = true;
    }
    let mut reversed = vec![false; wires.len()];
    let mut state = vec![State::New; count];
    // The walks start at the boxes without an incoming wire, then at the remaining boxes in order.
    let starts = (0..count).filter(|it| !has_source[*it]).chain(0..count);
    for start in starts {
        if state[start] != State::New {
            continue;
        }
        state[start] = State::Open;
        let mut walk = vec![(start, 0)];
        while let Some((from, next)) = walk.pop() {
            let Some(number) = out[from].get(next) else {
                state[from] = State::Done;
                continue;
            };
            walk.push((from, next + 1));
            let to = wires[*number].to;
            match state[to] {
                State::Open => reversed[*number] = true,
                State::Done => {}
                State::New => {
                    state[to] = State::Open;
                    walk.push((to, 0));
                }
            }
        }
    }
    reversed
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// On the path of the current walk.
    Open,
    Done,
}
