//! Makes a disagreement small, and writes the scenario that shows it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use topo::model::VhostName;
use topo::model::known_arguments::KnownArgument;

use super::answer::{Wrong, fresh_agrees, judge, make, predict, put};
use super::queues::{Definition, Live};
use super::{Said, broker};
use crate::support::{Node, block_on};

/// How long a failure is made smaller.
const SHRINKING: Duration = Duration::from_secs(60);

/// One pair, and the default queue type of its vhost.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) live: Live,
    pub(super) wanted: Definition,
    pub(super) default: Option<&'static str>,
}

/// Asks the one pair, in a vhost of its own.
fn play(node: &Node, pair: &Pair) -> Result<(), Wrong> {
    let vhost = super::vhost(node, pair.default);
    let http = node.http();
    if let refused @ Said::Refused { .. } = make(&http, &vhost.amqp(), &vhost, "live", &pair.live) {
        let snapshot = block_on(broker(node).read(&[VhostName::from(vhost.name())])).unwrap().remove(0);
        let predicted = predict(&snapshot, "live", &pair.live.definition);
        return fresh_agrees(predicted.refused.as_deref(), &refused);
    }
    let snapshot = block_on(broker(node).read(&[VhostName::from(vhost.name())])).unwrap().remove(0);
    let predicted = predict(&snapshot, "live", &pair.wanted);
    let again = put(&http, &vhost, "live", &pair.wanted);
    let fresh = put(&http, &vhost, "fresh", &pair.wanted);
    judge(&pair.live, &pair.wanted, &predicted, (&again, &fresh)).map(drop)
}

/// Every pair with one thing less.
fn smaller(pair: &Pair) -> Vec<Pair> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Pair)| {
        let mut one = pair.clone();
        change(&mut one);
        if one.live != pair.live || one.wanted != pair.wanted || one.default != pair.default {
            all.push(one);
        }
    };
    let names = pair.live.definition.arguments.keys().chain(pair.wanted.arguments.keys());
    for name in names {
        add(&|pair| {
            pair.live.definition.arguments.remove(name);
            pair.wanted.arguments.remove(name);
        });
        add(&|pair| drop(pair.live.definition.arguments.remove(name)));
        add(&|pair| drop(pair.wanted.arguments.remove(name)));
    }
    add(&|pair| (pair.live.definition.durable, pair.wanted.durable) = (true, true));
    add(&|pair| (pair.live.definition.auto_delete, pair.wanted.auto_delete) = (false, false));
    add(&|pair| pair.live.widths = None);
    add(&|pair| pair.default = None);
    all
}

/// Takes things away for as long as the same check fails.
pub(super) fn shrink(node: &Node, mut pair: Pair, mut wrong: Wrong) -> (Pair, Wrong) {
    let deadline = Instant::now() + SHRINKING;
    'smaller: loop {
        for candidate in smaller(&pair) {
            if Instant::now() > deadline {
                return (pair, wrong);
            }
            if let Err(again) = play(node, &candidate)
                && again.check == wrong.check
            {
                (pair, wrong) = (candidate, again);
                continue 'smaller;
            }
        }
        return (pair, wrong);
    }
}

/// The file of a scenario that shows it. What a spec cannot say belongs into a unit test instead.
pub(super) fn scenario(pair: &Pair, wrong: &Wrong) -> String {
    let mut live = json!({"queues": [pair.live.definition.body()]});
    live["queues"][0]["name"] = "work".into();
    if let Some(default) = pair.default {
        live["vhost"] = json!({"default_queue_type": default});
    }
    let mut queue = json!({"type": "classic"});
    if !pair.wanted.durable {
        queue["durable"] = false.into();
    }
    if pair.wanted.auto_delete {
        queue["autoDelete"] = true.into();
    }
    for (name, value) in &pair.wanted.arguments {
        match KnownArgument::named(name) {
            Some(known) if known.key == "type" => queue["type"] = value.clone(),
            Some(_) | None => queue["arguments"][name] = value.clone(),
        }
    }
    let spec = json!({"queues": {"work": queue}});
    let body: Value = pair.wanted.body();
    format!(
        "# {}\n\n{}\n\nWidths: {:?}; wanted over HTTP: {body}\n\n```json live\n{live}\n```\n\n```yaml spec\n{spec}\n```\n\n\
         ```text plan exit 2\n```\n",
        wrong.check, wrong.text, pair.live.widths
    )
}
