//! The fingerprint of a plan, and whether one plan is what is left of another.

use super::document::{Plan, PlannedChange, Step, VhostPlan};
use super::planner::summary;
use super::request::request;
use super::{Action, Guard, HazardKind};
use crate::model::{Address, ObjectId};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A hash of what is reviewed: the target, the options, what changes from what to what, every step, and what that
/// disturbs. Not in it are counts, so that traffic alone does not make a plan stale, and what the spec says of all that
/// stays as it is: what others merge and apply meanwhile is no part of this change.
pub fn fingerprint(plan: &Plan) -> String {
    let mut hash = Sha256::new();
    let mut text = Vec::new();
    let mut add = |part: &dyn erased::Json| {
        part.write(&mut text);
        text.push(0);
        hash.update(&text);
        text.clear();
    };
    add(&plan.format_version);
    add(&(&plan.target.cluster, &plan.options));
    for part in plan.vhosts.iter().filter(|part| !part.changes.is_empty() || !part.steps.is_empty()) {
        add(&part.vhost);
        for change in &part.changes {
            add(&(&change.address, &change.kind, &change.before, &change.after));
        }
        for step in &part.steps {
            add(&(step.address.as_str(), operation(step)));
        }
        add(&disturbed(part));
    }
    shortened(hash)
}

/// A hash of the whole document: also of what the fingerprint leaves out, such as the URL, the hazards and their numbers.
pub fn content_hash(plan: &Plan) -> String {
    let mut text = Vec::new();
    let unsealed = Plan { content_hash: String::new(), ..plan.clone() };
    erased::Json::write(&unsealed, &mut text);
    let mut hash = Sha256::new();
    hash.update(&text);
    shortened(hash)
}

fn shortened(hash: Sha256) -> String {
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Compares a plan that was read from a file with itself: its hashes, its numbers and the requests that it shows must
/// follow from its content. Returns the first difference, as of a plan that was edited.
///
/// A fingerprint is no signature: the author of an edited plan can compute its fingerprint, too.
pub fn inconsistency(plan: &Plan) -> Option<String> {
    let content = fingerprint(plan);
    if content != plan.fingerprint {
        return Some(format!("the fingerprint of its content is {content}, not {}", plan.fingerprint));
    }
    if summary(&plan.vhosts) != plan.summary {
        return Some("its summary does not match its changes".to_owned());
    }
    let steps = plan.vhosts.iter().flat_map(|part| part.steps.iter().map(move |step| (part, step)));
    let is_other = |(part, step): &(&VhostPlan, &Step)| request(&part.vhost, &step.action) != step.request;
    if let Some((part, step)) = steps.into_iter().find(is_other) {
        let (step, vhost) = (step.id, &part.vhost);
        return Some(format!("the request of step {step} of vhost {vhost} differs from the one that its action sends"));
    }
    let content = content_hash(plan);
    let stated = if plan.content_hash.is_empty() { "missing" } else { &plan.content_hash };
    (content != plan.content_hash)
        .then(|| format!("the hash of the whole document is {content}, but its contentHash is {stated}"))
}

/// What the same steps do to more than they did when they were reviewed: a policy that meanwhile governs one more queue
/// of the spec, a deletion that meanwhile is much of what is owned. The other hazards follow counts, and so do the queues
/// of others, which come and go.
fn disturbed(part: &VhostPlan) -> BTreeSet<(&'static str, &Address)> {
    let structural = |kind: HazardKind| match kind {
        HazardKind::AccessGain
        | HazardKind::AccessLoss
        | HazardKind::RoutingGap
        | HazardKind::PolicyShift
        | HazardKind::ContractChange
        | HazardKind::DurabilityDown
        | HazardKind::MassDelete => true,
        HazardKind::MessageLoss
        | HazardKind::MessageDrop
        | HazardKind::ShovelInterference
        | HazardKind::ConsumerDisruption
        | HazardKind::Duplicates
        | HazardKind::Reorder
        | HazardKind::LimitReached
        | HazardKind::PublisherBlock => false,
    };
    let hazards = || part.hazards.iter().filter(|hazard| structural(hazard.kind));
    let mut ours: BTreeSet<Address> = BTreeSet::new();
    // Seldom, and as long as the spec.
    if hazards().next().is_some() {
        let topology = &part.desired.topology;
        let queues = topology.queues.keys().cloned().map(ObjectId::Queue);
        let exchanges = topology.exchanges.keys().cloned().map(ObjectId::Exchange);
        ours.extend(queues.chain(exchanges).chain([ObjectId::Vhost]).map(|id| Address::of(&part.vhost, &id)));
        ours.extend(part.changes.iter().map(|change| change.address.clone()));
    }
    hazards()
        .filter(|hazard| ours.contains(&hazard.address))
        .map(|hazard| (hazard.kind.as_str(), &hazard.address))
        .collect()
}

/// What a step does, apart from the guard: that follows the counts and the allowances.
fn operation(step: &Step) -> Cow<'_, Action> {
    if let Action::DeleteQueue { name, guard: Guard::AtMost(_) | Guard::Nothing } = &step.action {
        return Cow::Owned(Action::DeleteQueue { name: name.clone(), guard: Guard::Empty });
    }
    Cow::Borrowed(&step.action)
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
                let mut what = Vec::new();
                erased::Json::write(&(&part.vhost, operation(step)), &mut what);
                (shown, what)
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
    news.extend(shown_otherwise(saved, now, steps == saved_steps));
    // What is changed or deleted must be what the reviewed plan saw; what is done already is not there any more.
    let seen: BTreeMap<_, _> = changes(saved).map(|change| (&change.address, &change.before)).collect();
    news.extend(changes(now).filter_map(|change| {
        let known = seen.get(&change.address)?.as_ref()?;
        let is = change.before.as_ref()?;
        (is != known).then(|| format!("{}: it changed after the plan", change.address))
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

/// The changes that the saved plan shows otherwise than they are planned now. After a part of the steps, a recreated object is
/// yet to be created, and what is done is no change any more: then only the results are compared.
fn shown_otherwise(saved: &Plan, now: &Plan, is_whole: bool) -> Vec<String> {
    let by_address = |plan| -> BTreeMap<&Address, &PlannedChange> {
        changes(plan).map(|change: &PlannedChange| (&change.address, change)).collect()
    };
    let (shown, planned) = (by_address(saved), by_address(now));
    let mut news = Vec::new();
    for (address, change) in &planned {
        let is_same = match shown.get(address) {
            Some(shown) if is_whole => {
                (shown.kind, &shown.after, &shown.fields) == (change.kind, &change.after, &change.fields)
            }
            Some(shown) => shown.after == change.after,
            None => !is_whole,
        };
        if !is_same {
            news.push(format!("{address}: the saved plan contains another change of it"));
        }
    }
    let is_gone = |address: &&&Address| is_whole && !planned.contains_key(**address);
    news.extend(
        shown
            .keys()
            .filter(is_gone)
            .map(|address| format!("{address}: the saved plan contains a change, but nothing differs")),
    );
    news
}

fn changes(plan: &Plan) -> impl Iterator<Item = &PlannedChange> {
    plan.vhosts.iter().flat_map(|part| &part.changes)
}

/// JSON as bytes, for values of different types in one list.
mod erased {
    pub(super) trait Json {
        fn write(&self, into: &mut Vec<u8>);
    }

    impl<T: serde::Serialize> Json for T {
        fn write(&self, into: &mut Vec<u8>) {
            serde_json::to_writer(into, self).expect("plans hold nothing that JSON cannot: all keys are text");
        }
    }
}
