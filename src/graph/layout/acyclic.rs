//! Which wires to turn round, so that there is no circle: those that lead back to where a walk comes from.

use super::Wire;

/// For each wire, whether it is turned.
pub(super) fn reversed(count: usize, wires: &[Wire]) -> Vec<bool> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut has_source = vec![false; count];
    for (number, wire) in wires.iter().enumerate() {
        out[wire.from].push(number);
        has_source[wire.to] = true;
    }
    let mut reversed = vec![false; wires.len()];
    let mut state = vec![State::New; count];
    // From where nothing leads to first, then whatever is left, in order.
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
    /// On the way to where the walk is.
    Open,
    Done,
}
