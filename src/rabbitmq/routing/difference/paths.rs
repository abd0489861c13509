//! Lists the paths from an entry to a queue through a hop. A path contains each exchange at most once.

use super::graph::{Graph, Hop};
use crate::model::{Destination, ExchangeName, QueueName};
use std::collections::BTreeSet;

/// The maximum number of paths through a hop.
const MAX_PATHS: usize = 2_000;

/// The error for too many paths, with the entries from which messages can reach the hop.
pub(super) struct TooManyPaths {
    pub(super) entries: BTreeSet<ExchangeName>,
}

/// A path with its entry and its queue.
pub(super) type EntryPath<'a> = (ExchangeName, QueueName, Vec<Hop<'a>>);

/// Returns the paths from one of the entries to a queue through a hop.
pub(super) fn paths_through<'a>(
    graph: &Graph<'_, 'a>,
    hop: &Hop<'a>,
    entries: &BTreeSet<ExchangeName>,
) -> Result<Vec<EntryPath<'a>>, TooManyPaths> {
    let starts = paths_before(graph, &hop.from);
    let too_many = || TooManyPaths {
        entries: exchanges_before(graph, &hop.from).into_iter().filter(|it| entries.contains(it)).collect(),
    };
    if starts.len() > MAX_PATHS {
        return Err(too_many());
    }
    if !starts.iter().any(|(entry, _)| entries.contains(entry)) {
        return Ok(Vec::new());
    }
    let ends = paths_after(graph, &hop.to).ok_or_else(too_many)?;
    let mut paths = Vec::new();
    for (entry, start) in starts.iter().filter(|(entry, _)| entries.contains(entry)) {
        for (queue, end) in &ends {
            let path: Vec<Hop<'a>> = start.iter().chain([hop]).chain(end).cloned().collect();
            let exchanges: BTreeSet<&ExchangeName> = path.iter().map(|hop| &hop.from).collect();
            if exchanges.len() == path.len() {
                paths.push((entry.clone(), queue.clone(), path));
            }
            if paths.len() > MAX_PATHS {
                return Err(too_many());
            }
        }
    }
    Ok(paths)
}

/// Returns the paths from an entry to a queue; `None` if there are too many paths.
pub(super) fn paths_to<'a>(
    graph: &Graph<'_, 'a>,
    entry: &ExchangeName,
    queue: &QueueName,
) -> Option<Vec<Vec<Hop<'a>>>> {
    let mut paths = Vec::new();
    for last in graph.hops_to(&Destination::Queue(queue.clone())) {
        let starts = paths_before(graph, &last.from);
        if starts.len() > MAX_PATHS {
            return None;
        }
        let of_entry = starts.into_iter().filter(|(first, _)| first == entry);
        paths.extend(of_entry.map(|(_, path)| [path, vec![last.clone()]].concat()));
    }
    Some(paths)
}

/// Returns the paths to an exchange, each with its first exchange. Stops after `MAX_PATHS + 1` paths, so the caller can
/// detect that there are too many.
fn paths_before<'a>(graph: &Graph<'_, 'a>, exchange: &ExchangeName) -> Vec<(ExchangeName, Vec<Hop<'a>>)> {
    let mut found = vec![(exchange.clone(), Vec::new())];
    let mut next = 0;
    while let Some((first, path)) = found.get(next).cloned() {
        next += 1;
        for hop in graph.hops_to(&Destination::Exchange(first)) {
            let is_new = hop.from != *exchange && path.iter().all(|later: &Hop<'a>| later.from != hop.from);
            if is_new && found.len() <= MAX_PATHS {
                found.push((hop.from.clone(), [vec![hop], path.clone()].concat()));
            }
        }
    }
    found
}

/// Returns an exchange, and all exchanges from which messages can reach it.
fn exchanges_before(graph: &Graph<'_, '_>, exchange: &ExchangeName) -> BTreeSet<ExchangeName> {
    let mut found = BTreeSet::from([exchange.clone()]);
    let mut todo = vec![exchange.clone()];
    while let Some(at) = todo.pop() {
        let from = graph.hops_to(&Destination::Exchange(at)).into_iter().map(|hop| hop.from);
        todo.extend(from.filter(|from| found.insert(from.clone())));
    }
    found
}

/// Returns the paths from a destination to queues; `None` if there are too many paths.
fn paths_after<'a>(graph: &Graph<'_, 'a>, destination: &Destination) -> Option<Vec<(QueueName, Vec<Hop<'a>>)>> {
    let mut todo: Vec<(Destination, Vec<Hop<'a>>)> = vec![(destination.clone(), Vec::new())];
    let (mut found, mut steps) = (Vec::new(), 0);
    while let Some((at, path)) = todo.pop() {
        steps += 1;
        if steps > MAX_PATHS {
            return None;
        }
        match at {
            Destination::Queue(queue) => found.push((queue, path)),
            Destination::Exchange(exchange) => {
                let is_new = |hop: &Hop<'a>| path.iter().all(|earlier| earlier.from != hop.from);
                for hop in graph.hops_from(&exchange).into_iter().filter(is_new) {
                    todo.push((hop.to.clone(), [path.clone(), vec![hop]].concat()));
                }
            }
        }
    }
    Some(found)
}
