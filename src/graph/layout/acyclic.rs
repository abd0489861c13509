//! Breaks cycles: finds the wires that lead back to a box on the current walk, so that they can be reversed.

use super::Wire;

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
