//! Assigns boxes to layers, and divides wires into chains with one stop in each layer. Boxes are in even layers, labels
//! in odd ones. Wires that lead back to a box on the current walk are reversed, so that the layers have no cycle.

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

/// A layered graph: each link leads from a layer to the next.
#[derive(Debug, Default)]
pub(super) struct Layered {
    pub(super) stops: Vec<Stop>,
    /// The stops of each layer, from top to bottom.
    pub(super) layers: Vec<Vec<usize>>,
    /// By wire, its stops from left to right, including both boxes.
    pub(super) chains: Vec<Vec<usize>>,
    /// By stop, the linked stops of the previous layer; then those of the next layer.
    pub(super) left: Vec<Vec<usize>>,
    pub(super) right: Vec<Vec<usize>>,
}

/// A box, a label or a passing wire in a layer.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) kind: StopKind,
    pub(super) layer: usize,
    pub(super) size: Size,
    /// The vertical center; for a label, the position of the line below it.
    pub(super) y: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopKind {
    Box,
    Label,
    /// A wire that passes the layer.
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
            graph.stop(StopKind::Box, 2 * rank, *size);
        }
        for (wire, (from, to)) in wires.iter().zip(&ends) {
            let mut chain = vec![*from];
            for layer in 2 * ranks[*from] + 1..2 * ranks[*to] {
                let is_first = chain.len() == 1;
                let stop = match wire.label.filter(|_| is_first) {
                    Some(size) => graph.stop(StopKind::Label, layer, size),
                    None => graph.stop(StopKind::Pass, layer, Size::default()),
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

    fn stop(&mut self, kind: StopKind, layer: usize, size: Size) -> usize {
        let place = self.stops.len();
        self.stops.push(Stop { kind, layer, size, y: 0.0 });
        self.left.push(Vec::new());
        self.right.push(Vec::new());
        if self.layers.len() <= layer {
            self.layers.resize(layer + 1, Vec::new());
        }
        self.layers[layer].push(place);
        place
    }
}

/// Returns the column of each box: to the right of all its sources. A box without a source is one column left of its
/// nearest destination.
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
    while let Some(place) = open.pop() {
        for to in &out[place] {
            ranks[*to] = ranks[*to].max(ranks[place] + 1);
            waits_for[*to] -= 1;
            if waits_for[*to] == 0 {
                open.push(*to);
            }
        }
    }
    for place in (0..count).filter(|it| !has_source[*it]) {
        let nearest = out[place].iter().map(|to| ranks[*to]).min();
        ranks[place] = nearest.map_or(0, |nearest| nearest.saturating_sub(1));
    }
    ranks
}

/// Returns true for each wire to reverse.
pub(super) fn reversed(count: usize, wires: &[Wire]) -> Vec<bool> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut has_source = vec![false; count];
    for (number, wire) in wires.iter().enumerate() {
        out[wire.from].push(number);
        has_source[wire.to] = true;
    }
    let mut reversed = vec![false; wires.len()];
    let mut state = vec![State::New; count];
    // First the boxes without an incoming wire, then the rest in order.
    let starts = (0..count).filter(|it| !has_source[*it]).chain(0..count);
    for start in starts {
        if state[start] != State::New {
            continue;
        }
        state[start] = State::Open;
        let mut walk = vec![(start, 0)];
        while let Some((place, next)) = walk.pop() {
            let Some(number) = out[place].get(next) else {
                state[place] = State::Done;
                continue;
            };
            walk.push((place, next + 1));
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
