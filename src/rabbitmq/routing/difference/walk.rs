//! Finds a shortest routing key that matches one pattern from each wanted set and no unwanted pattern.
//!
//! The breadth-first search extends the key word by word. A state follows one pattern from each wanted set, and all
//! unwanted patterns at once. The search tries only the words in the wanted patterns and one word that no pattern
//! contains, because any other word can only match more unwanted patterns. The search skips a state if it has already
//! seen a state with the same wanted patterns and a subset of the unwanted patterns (antichains: De Wulf, Doyen,
//! Henzinger, Raskin, CAV 2006).

use super::budget::{Budget, TooComplex};
use crate::rabbitmq::routing::TopicIndex;
use crate::rabbitmq::routing::topic_index::Word;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The maximum number of states in a search.
const MAX_STATES: usize = 50_000;
/// The maximum length of a routing key in bytes.
const MAX_KEY: usize = 255;

/// A state of the search.
struct State<'a> {
    /// The node of the followed pattern in each wanted set.
    wanted: Vec<usize>,
    /// The nodes of the unwanted patterns.
    unwanted: BTreeSet<usize>,
    /// The last word, and the number of the previous state; `None` for a start state.
    step: Option<(Word<'a>, usize)>,
}

/// Returns a shortest key; `None` if no key meets the requirements. The key is empty only if no other key is possible.
/// `is_used` returns true for words that a pattern contains.
pub(super) fn shortest_key(
    wanted: &[TopicIndex<'_>],
    unwanted: &TopicIndex<'_>,
    is_used: &dyn Fn(&str) -> bool,
    budget: &Budget,
) -> Result<Option<String>, TooComplex> {
    let fresh = fresh_word(is_used);
    let accepts = |state: &State<'_>| {
        wanted.iter().zip(&state.wanted).all(|(index, node)| index.is_end(*node))
            && !state.unwanted.iter().any(|node| unwanted.is_end(*node))
    };
    let starts = combinations(wanted.iter().map(TopicIndex::start).collect(), MAX_STATES)?;
    let mut states: Vec<State<'_>> = Vec::new();
    let mut todo = VecDeque::new();
    let mut is_empty_accepted = false;
    for wanted in starts {
        let state = State { wanted, unwanted: unwanted.start(), step: None };
        is_empty_accepted |= accepts(&state);
        todo.push_back(states.len());
        states.push(state);
    }
    // The start states are not marked as seen, because the empty key is only a last resort.
    let mut seen: BTreeMap<Vec<usize>, Vec<BTreeSet<usize>>> = BTreeMap::new();
    while let Some(number) = todo.pop_front() {
        let (at, after_unwanted) = (states[number].wanted.clone(), states[number].unwanted.clone());
        for word in words_after(wanted, &at) {
            let next = wanted.iter().zip(&at).map(|(index, node)| index.after(*node, word)).collect();
            let unwanted_next: BTreeSet<usize> =
                after_unwanted.iter().flat_map(|node| unwanted.after(*node, word)).collect();
            // A single empty word is the empty key, which is not accepted here. Longer keys that start with an empty
            // word can be accepted.
            let is_empty_key = word == Some("") && states[number].step.is_none();
            for wanted in combinations(next, MAX_STATES - states.len())? {
                budget.take(1 + unwanted_next.len() / 8)?;
                if !is_empty_key {
                    let earlier = seen.entry(wanted.clone()).or_default();
                    if earlier.iter().any(|fewer| fewer.is_subset(&unwanted_next)) {
                        continue;
                    }
                    earlier.push(unwanted_next.clone());
                }
                let state = State { wanted, unwanted: unwanted_next.clone(), step: Some((word, number)) };
                if accepts(&state) {
                    let key = key(&states, &state, &fresh);
                    // A single empty word is the empty key, which has no words.
                    if !key.is_empty() && key.len() <= MAX_KEY {
                        return Ok(Some(key));
                    }
                }
                if states.len() >= MAX_STATES {
                    return Err(TooComplex);
                }
                todo.push_back(states.len());
                states.push(state);
            }
        }
    }
    Ok(is_empty_accepted.then(String::new))
}

/// Returns the possible next words: the next words of the wanted patterns, and a word that no pattern contains.
fn words_after<'a>(wanted: &[TopicIndex<'a>], at: &[usize]) -> Vec<Word<'a>> {
    let literals: BTreeSet<&'a str> = wanted.iter().zip(at).flat_map(|(index, node)| index.literals(*node)).collect();
    std::iter::once(None).chain(literals.into_iter().map(Some)).collect()
}

/// Returns all combinations of one node from each set.
///
/// # Errors
/// There are more than `max` combinations.
fn combinations(sets: Vec<BTreeSet<usize>>, max: usize) -> Result<Vec<Vec<usize>>, TooComplex> {
    let number = sets.iter().fold(1_usize, |all, set| all.saturating_mul(set.len()));
    if number > max {
        return Err(TooComplex);
    }
    Ok(sets.into_iter().fold(vec![Vec::new()], |all, set| {
        all.iter().flat_map(|start| set.iter().map(move |node| [&start[..], &[*node]].concat())).collect()
    }))
}

fn key(states: &[State<'_>], last: &State<'_>, fresh: &str) -> String {
    let mut words = Vec::new();
    let mut step = last.step;
    while let Some((word, before)) = step {
        words.push(word.unwrap_or(fresh));
        step = states[before].step;
    }
    words.reverse();
    words.join(".")
}

/// Returns a short word that no pattern contains.
fn fresh_word(is_used: &dyn Fn(&str) -> bool) -> String {
    let numbered = (1..).map(|number: u64| format!("x{number}"));
    let mut words = ["x".to_owned(), "y".to_owned(), "z".to_owned()].into_iter().chain(numbered);
    words.find(|word| !is_used(word)).unwrap_or_default()
}
