//! Compares the dead-letter edges of `topo graph` with a claim.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Claim;

/// The edges of a vhost in the graph, by node names.
pub(super) struct Edges<'a> {
    /// The source, target and kind of each edge.
    edges: BTreeSet<(&'a str, &'a str, &'a str)>,
    kinds: BTreeMap<&'a str, &'a str>,
    notes: BTreeMap<&'a str, Vec<&'a str>>,
}

/// The node of the default exchange, whose edges lead to all queues.
const DEFAULT: &str = "default exchange";

impl<'a> Edges<'a> {
    pub(super) fn of(graph: &'a Value) -> Self {
        let nodes = graph["nodes"].as_array().expect("nodes");
        let text = |value: &'a Value| value.as_str().expect("a text");
        let name =
            |place: &Value| text(&nodes[usize::try_from(place.as_u64().expect("a place")).expect("small")]["name"]);
        let edges = graph["arrows"].as_array().expect("arrows").iter();
        let notes = |node: &'a Value| node["notes"].as_array().expect("notes").iter().map(text).collect();
        Self {
            edges: edges.map(|it| (name(&it["from"]), name(&it["to"]), text(&it["kind"]))).collect(),
            kinds: nodes.iter().map(|node| (text(&node["name"]), text(&node["kind"]))).collect(),
            notes: nodes.iter().map(|node| (text(&node["name"]), notes(node))).collect(),
        }
    }

    fn is_exchange(&self, name: &str) -> bool {
        self.kinds[name].to_lowercase().ends_with("exchange")
    }

    /// Returns the nodes where the dead-letter edges of a queue end.
    fn ends(&self, queue: &str) -> BTreeSet<&'a str> {
        let own = self.edges.iter().filter(|(from, _, kind)| *from == queue && *kind == "deadLetter");
        own.map(|(_, to, _)| *to).collect()
    }

    /// Returns all nodes that a message can reach from a node; only exchanges forward messages.
    fn reachable(&self, from: &'a str) -> BTreeSet<&'a str> {
        let (mut found, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(name) = todo.pop() {
            if found.insert(name) && self.is_exchange(name) {
                todo.extend(self.edges.iter().filter(|(from, ..)| *from == name).map(|(_, to, _)| *to));
            }
        }
        found
    }

    /// Returns true if an edge of a queue passes an undeclared exchange, which may have additional bindings.
    pub(super) fn are_open(&self, queue: &str) -> bool {
        self.ends(queue).into_iter().any(|end| self.is_open(end))
    }

    fn is_open(&self, end: &'a str) -> bool {
        self.reachable(end).iter().any(|name| self.kinds[name] == "foreignExchange" && *name != DEFAULT)
    }

    /// Returns all differences between the edges and a claim.
    pub(super) fn differences(&self, queue: &str, claim: &Claim) -> Vec<String> {
        let ends = self.ends(queue);
        let returns = self.notes[queue].contains(&"dead-lettered messages return");
        if claim.reach == "never" {
            let lies = ends.iter().map(|to| format!("an edge leads to {to}, but every message is dropped")).collect();
            return if returns { vec!["a note shows messages that come back".to_owned()] } else { lies };
        }
        let mut found = Vec::new();
        if ends.is_empty() && !returns {
            found.push("no edge shows the destination of dead-lettered messages".to_owned());
        }
        let claimed: BTreeSet<&str> = claim.queues.union(&claim.possible).map(String::as_str).collect();
        let mut all: BTreeSet<&str> = returns.then_some(queue).into_iter().collect();
        for end in ends {
            let reachable = self.reachable(end);
            if !self.is_open(end) && !reachable.contains(DEFAULT) && reachable.is_disjoint(&claimed) {
                found.push(format!("an edge leads to {end}, and from there to none of {claimed:?}"));
            }
            all.extend(reachable);
        }
        if !all.contains(DEFAULT) {
            let missing = claimed.difference(&all);
            found.extend(missing.map(|queue| format!("no edge leads to {queue}, where messages arrive")));
        }
        found
    }
}
