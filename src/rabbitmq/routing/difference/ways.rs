//! Lists the ways from an entry to a queue through a hop. A way contains each exchange at most once.

use super::graph::{Graph, Hop};
use crate::model::{Destination, ExchangeName, QueueName};
use std::collections::BTreeSet;

/// The maximum number of ways through a hop.
const MAX_WAYS: usize = 2_000;

/// There are too many ways from these entries.
pub(super) struct TooMany {
    pub(super) entries: BTreeSet<ExchangeName>,
}

/// A way with its entry and its queue.
pub(super) type Way<'a> = (ExchangeName, QueueName, Vec<Hop<'a>>);

/// Returns the ways through a hop.
pub(super) fn ways_through<'a>(
    graph: &Graph<'_, 'a>,
    hop: &Hop<'a>,
    entries: &BTreeSet<ExchangeName>,
) -> Result<Vec<Way<'a>>, TooMany> {
    let starts = before(graph, &hop.from);
    let too_many =
        || TooMany { entries: all_before(graph, &hop.from).into_iter().filter(|it| entries.contains(it)).collect() };
    if starts.len() > MAX_WAYS {
        return Err(too_many());
    }
    if !starts.iter().any(|(entry, _)| entries.contains(entry)) {
        return Ok(Vec::new());
    }
    let ends = after(graph, &hop.to).ok_or_else(too_many)?;
    let mut ways = Vec::new();
    for (entry, start) in starts.iter().filter(|(entry, _)| entries.contains(entry)) {
        for (queue, end) in &ends {
            let way: Vec<Hop<'a>> = start.iter().chain([hop]).chain(end).cloned().collect();
            let exchanges: BTreeSet<&ExchangeName> = way.iter().map(|hop| &hop.from).collect();
            if exchanges.len() == way.len() {
                ways.push((entry.clone(), queue.clone(), way));
            }
            if ways.len() > MAX_WAYS {
                return Err(too_many());
            }
        }
    }
    Ok(ways)
}

/// Returns the ways from an entry to a queue; `None` if there are too many.
pub(super) fn ways_to<'a>(graph: &Graph<'_, 'a>, entry: &ExchangeName, queue: &QueueName) -> Option<Vec<Vec<Hop<'a>>>> {
    let mut ways = Vec::new();
    for last in graph.hops_to(&Destination::Queue(queue.clone())) {
        let starts = before(graph, &last.from);
        if starts.len() > MAX_WAYS {
            return None;
        }
        let of_entry = starts.into_iter().filter(|(first, _)| first == entry);
        ways.extend(of_entry.map(|(_, way)| [way, vec![last.clone()]].concat()));
    }
    Some(ways)
}

/// Returns the ways to an exchange, each with its first exchange. At most [`MAX_WAYS`] and one, which is too many.
fn before<'a>(graph: &Graph<'_, 'a>, exchange: &ExchangeName) -> Vec<(ExchangeName, Vec<Hop<'a>>)> {
    let mut found = vec![(exchange.clone(), Vec::new())];
    let mut next = 0;
    while let Some((first, way)) = found.get(next).cloned() {
        next += 1;
        for hop in graph.hops_to(&Destination::Exchange(first)) {
            let is_new = hop.from != *exchange && way.iter().all(|later: &Hop<'a>| later.from != hop.from);
            if is_new && found.len() <= MAX_WAYS {
                found.push((hop.from.clone(), [vec![hop], way.clone()].concat()));
            }
        }
    }
    found
}

/// Returns the exchanges from which messages can reach an exchange, and the exchange.
fn all_before(graph: &Graph<'_, '_>, exchange: &ExchangeName) -> BTreeSet<ExchangeName> {
    let mut found = BTreeSet::from([exchange.clone()]);
    let mut todo = vec![exchange.clone()];
    while let Some(at) = todo.pop() {
        let from = graph.hops_to(&Destination::Exchange(at)).into_iter().map(|hop| hop.from);
        todo.extend(from.filter(|from| found.insert(from.clone())));
    }
    found
}

/// Returns the ways from a destination to queues; `None` if there are too many.
fn after<'a>(graph: &Graph<'_, 'a>, destination: &Destination) -> Option<Vec<(QueueName, Vec<Hop<'a>>)>> {
    let mut todo: Vec<(Destination, Vec<Hop<'a>>)> = vec![(destination.clone(), Vec::new())];
    let (mut found, mut steps) = (Vec::new(), 0);
    while let Some((at, way)) = todo.pop() {
        steps += 1;
        if steps > MAX_WAYS {
            return None;
        }
        match at {
            Destination::Queue(queue) => found.push((queue, way)),
            Destination::Exchange(exchange) => {
                let is_new = |hop: &Hop<'a>| way.iter().all(|earlier| earlier.from != hop.from);
                for hop in graph.hops_from(&exchange).into_iter().filter(is_new) {
                    todo.push((hop.to.clone(), [way.clone(), vec![hop]].concat()));
                }
            }
        }
    }
    Some(found)
}
