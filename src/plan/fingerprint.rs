//! The fingerprint of a plan, and whether one plan is what is left of another.

use super::document::{Plan, PlannedChange, Step};
use super::{Action, Guard};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// A hash of the target, the options, the wanted topology and every step; counts are not in it, so that traffic alone
/// does not make a plan stale.
pub fn fingerprint(plan: &Plan) -> String {
    let mut hash = Sha256::new();
    let mut add = |part: &dyn erased::Json| {
        hash.update(part.json());
        hash.update([0]);
    };
    add(&plan.format_version);
    add(&(&plan.target.cluster, &plan.options));
    for part in &plan.vhosts {
        add(&(&part.vhost, &part.wanted.topology, &part.wanted.scope));
        for change in &part.changes {
            add(&(&change.address, &change.kind, &change.before, &change.after));
        }
        for step in &part.steps {
            add(&(step.address.as_str(), operation(step)));
        }
    }
    let digest = hash.finalize();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What a step does, apart from the guard: that follows the counts and the allowances.
fn operation(step: &Step) -> Action {
    let mut action = step.action.clone();
    if let Action::DeleteQueue { guard: guard @ (Guard::AtMost(_) | Guard::Nothing), .. } = &mut action {
        *guard = Guard::Empty;
    }
    action
}

/// How a plan that was made again relates to the saved one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// The same steps.
    Same,
    /// Some of the saved steps are done already, and nothing is new.
    Rest,
    /// The broker changed: steps that were not in the saved plan, as `address: method path`.
    Stale(Vec<String>),
}

/// Compares a plan made now with the saved one, step by step.
pub fn staleness(saved: &Plan, now: &Plan) -> Staleness {
    let keys = |plan: &Plan| -> BTreeSet<(String, Vec<u8>)> {
        let steps = plan.vhosts.iter().flat_map(|part| part.steps.iter().map(move |step| (part, step)));
        steps
            .map(|(part, step)| {
                let shown = match &step.request {
                    Some(request) => format!("{}: {} {}", step.address, request.method, request.path),
                    None => format!("{}: messages are moved", step.address),
                };
                (shown, erased::Json::json(&(&part.vhost, operation(step))))
            })
            .collect()
    };
    let (saved_steps, steps) = (keys(saved), keys(now));
    let mut news: Vec<String> = steps.difference(&saved_steps).map(|(shown, _)| shown.clone()).collect();
    let known: BTreeSet<_> = saved.blocks().map(|block| (&block.address, &block.text)).collect();
    news.extend(
        now.blocks()
            .filter(|block| !known.contains(&(&block.address, &block.text)))
            .map(|block| format!("{}: {}", block.address, block.text)),
    );
    // What is changed or deleted must be what the reviewed plan saw; what is done already is not there any more.
    let seen: BTreeMap<_, _> = changes(saved).map(|change| (&change.address, &change.before)).collect();
    news.extend(changes(now).filter_map(|change| {
        let known = seen.get(&change.address)?.as_ref()?;
        let is = change.before.as_ref()?;
        (is != known).then(|| format!("{}: it is no longer what it was", change.address))
    }));
    if saved.target.cluster != now.target.cluster {
        news.push(format!("the plan is for cluster {}, this is {}", saved.target.cluster, now.target.cluster));
    }
    if !news.is_empty() {
        Staleness::Stale(news)
    } else if steps == saved_steps {
        Staleness::Same
    } else {
        Staleness::Rest
    }
}

fn changes(plan: &Plan) -> impl Iterator<Item = &PlannedChange> {
    plan.vhosts.iter().flat_map(|part| &part.changes)
}

/// JSON as bytes, for values of different types in one list.
mod erased {
    pub(super) trait Json {
        fn json(&self) -> Vec<u8>;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> Vec<u8> {
            serde_json::to_vec(self).expect("plans hold nothing that JSON cannot: all keys are text")
        }
    }
}
