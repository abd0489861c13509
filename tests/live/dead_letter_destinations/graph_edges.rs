//! The arrows of `topo graph`: where they lead from a queue over its dead letters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Claim;

/// One vhost of the graph, by the names of its boxes.
pub(super) struct Arrows<'a> {
    /// From, to, kind.
    arrows: BTreeSet<(&'a str, &'a str, &'a str)>,
    kinds: BTreeMap<&'a str, &'a str>,
    notes: BTreeMap<&'a str, Vec<&'a str>>,
}

/// The box of the default exchange: its arrows are the names of all queues.
const DEFAULT: &str = "default exchange";

impl<'a> Arrows<'a> {
    pub(super) fn of(picture: &'a Value) -> Self {
        let nodes = picture["nodes"].as_array().expect("nodes");
        let text = |value: &'a Value| value.as_str().expect("a text");
        let name =
            |place: &Value| text(&nodes[usize::try_from(place.as_u64().expect("a place")).expect("small")]["name"]);
        let arrows = picture["arrows"].as_array().expect("arrows").iter();
        let notes = |node: &'a Value| node["notes"].as_array().expect("notes").iter().map(text).collect();
        Self {
            arrows: arrows.map(|it| (name(&it["from"]), name(&it["to"]), text(&it["kind"]))).collect(),
            kinds: nodes.iter().map(|node| (text(&node["name"]), text(&node["kind"]))).collect(),
            notes: nodes.iter().map(|node| (text(&node["name"]), notes(node))).collect(),
        }
    }

    fn is_exchange(&self, name: &str) -> bool {
        self.kinds[name].to_lowercase().ends_with("exchange")
    }

    /// The boxes where the dead-letter arrows of a queue end.
    fn ends(&self, queue: &str) -> BTreeSet<&'a str> {
        let own = self.arrows.iter().filter(|(from, _, kind)| *from == queue && *kind == "deadLetter");
        own.map(|(_, to, _)| *to).collect()
    }

    /// All boxes that a message can reach from one box: it leaves exchanges only.
    fn reachable(&self, from: &'a str) -> BTreeSet<&'a str> {
        let (mut found, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(name) = todo.pop() {
            if found.insert(name) && self.is_exchange(name) {
                todo.extend(self.arrows.iter().filter(|(from, ..)| *from == name).map(|(_, to, _)| *to));
            }
        }
        found
    }

    /// Whether an arrow leads from a queue over an exchange that the spec does not declare: more queues may be bound to it.
    pub(super) fn are_open(&self, queue: &str) -> bool {
        self.ends(queue).into_iter().any(|end| self.is_open(end))
    }

    fn is_open(&self, end: &'a str) -> bool {
        self.reachable(end).iter().any(|name| self.kinds[name] == "foreignExchange" && *name != DEFAULT)
    }

    /// Every way in which the arrows differ from a claim.
    pub(super) fn differences(&self, queue: &str, claim: &Claim) -> Vec<String> {
        let ends = self.ends(queue);
        let returns = self.notes[queue].contains(&"dead-lettered messages come back");
        if claim.reach == "never" {
            let lies = ends.iter().map(|to| format!("an arrow leads to {to}, and every message is dropped")).collect();
            return if returns { vec!["a note shows messages that come back".to_owned()] } else { lies };
        }
        let mut found = Vec::new();
        if ends.is_empty() && !returns {
            found.push("no arrow shows where dead-lettered messages arrive".to_owned());
        }
        let claimed: BTreeSet<&str> = claim.queues.union(&claim.possible).map(String::as_str).collect();
        let mut all: BTreeSet<&str> = returns.then_some(queue).into_iter().collect();
        for end in ends {
            let reachable = self.reachable(end);
            if !self.is_open(end) && !reachable.contains(DEFAULT) && reachable.is_disjoint(&claimed) {
                found.push(format!("an arrow leads to {end}, and from there to none of {claimed:?}"));
            }
            all.extend(reachable);
        }
        if !all.contains(DEFAULT) {
            let missing = claimed.difference(&all);
            found.extend(missing.map(|queue| format!("arrows do not lead to {queue}, where messages arrive")));
        }
        found
    }
}
