//! Computes the fingerprint of a plan, and compares a saved plan with a new plan.

use super::action::{Action, Guard};
use super::changes_by_kind::summary;
use super::document::{Plan, PlannedChange, Step, VhostPlan};
use super::hazard::HazardKind;
use super::request::request;
use crate::model::{Address, ObjectId};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Returns a hash of the reviewed content: the cluster name, the options, every change with its values, every step, and
/// the structural hazards. The hash excludes counts, so that traffic alone does not make a plan stale. The hash also
/// excludes unchanged objects, so that other users can merge and apply their changes before this plan is applied.
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
    for part in plan.parts().filter(|part| !part.changes.is_empty() || !part.steps.is_empty()) {
        add(&part.vhost);
        for change in &part.changes {
            add(&(&change.address, &change.kind, &change.before, &change.after));
        }
        for step in &part.steps {
            add(&(step.address.as_str(), operation(step)));
        }
        add(&structural_hazards(part));
    }
    short_hex(hash)
}

/// Returns a hash of the whole document except its `contentHash`. Unlike the fingerprint, this hash includes the URL,
/// and all hazards with their counts.
pub fn content_hash(plan: &Plan) -> String {
    let mut text = Vec::new();
    let unsealed = Plan { content_hash: String::new(), ..plan.clone() };
    erased::Json::write(&unsealed, &mut text);
    let mut hash = Sha256::new();
    hash.update(&text);
    short_hex(hash)
}

fn short_hex(hash: Sha256) -> String {
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Checks a plan that was read from a file: its hashes, summary and requests must match its content. Returns the first
/// inconsistency; `None` if the plan is consistent.
///
/// A fingerprint is not a signature: a user who edits a plan can also recompute its fingerprint.
pub fn inconsistency(plan: &Plan) -> Option<String> {
    let content = fingerprint(plan);
    if content != plan.fingerprint {
        return Some(format!("the fingerprint of its content is {content}, not {}", plan.fingerprint));
    }
    if summary(plan.parts()) != plan.summary {
        return Some("its summary does not match its changes".to_owned());
    }
    let steps = plan.parts().flat_map(|part| part.steps.iter().map(move |step| (part, step)));
    let differs = |(part, step): &(&VhostPlan, &Step)| request(&part.vhost, &step.action) != step.request;
    if let Some((part, step)) = steps.into_iter().find(differs) {
        let (step, part) = (step.id, part.vhost.in_words());
        return Some(format!("the request in step {step} of {part} does not match the action of the step"));
    }
    let content = content_hash(plan);
    let stated = if plan.content_hash.is_empty() { "missing" } else { &plan.content_hash };
    (content != plan.content_hash)
        .then(|| format!("the hash of the whole document is {content}, but its contentHash is {stated}"))
}

/// Returns the structural hazards. A new structural hazard means that the same steps now have a larger effect than at
/// the time of the review. For example, a policy now governs one more queue in the spec, or a large share of the owned
/// objects is now deleted. Omits hazards that depend on counts. Also omits hazards for unmanaged objects that the plan
/// does not change, because other users create and delete such objects.
fn structural_hazards(part: &VhostPlan) -> BTreeSet<(&'static str, &Address)> {
    let is_structural = |kind: HazardKind| match kind {
        HazardKind::AccessGain
        | HazardKind::AccessLoss
        | HazardKind::RoutingGap
        | HazardKind::RoutingLoss
        | HazardKind::PolicyShift
        | HazardKind::ContractChange
        | HazardKind::DurabilityDown
        | HazardKind::MassDelete => true,
        HazardKind::MessageLoss
        | HazardKind::MessageDrop
        | HazardKind::ShovelInterference
        | HazardKind::PublishLoss
        | HazardKind::ConsumerDisruption
        | HazardKind::CredentialChange
        | HazardKind::Duplicates
        | HazardKind::Reorder
        | HazardKind::LimitReached
        | HazardKind::PublisherBlock => false,
    };
    let hazards = || part.hazards.iter().filter(|hazard| is_structural(hazard.kind));
    let mut ours: BTreeSet<Address> = BTreeSet::new();
    // Builds the set only if there are structural hazards: such hazards are rare, and the set is as large as the spec.
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

/// Returns the action of a step, without a guard that depends on counts and allowances.
fn operation(step: &Step) -> Cow<'_, Action> {
    if let Action::DeleteQueue { name, guard: Guard::AtMost(_) | Guard::Nothing } = &step.action {
        return Cow::Owned(Action::DeleteQueue { name: name.clone(), guard: Guard::Empty });
    }
    Cow::Borrowed(&step.action)
}

/// The result of comparing a new plan with a saved plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// Both plans have the same steps.
    Same,
    /// Some steps in the saved plan are already done, and the new plan has no additional steps.
    Rest,
    /// The new plan differs from the saved plan by more than the steps that are already done. Contains the differences.
    /// An additional step has the form `address: method path`.
    Stale(Vec<String>),
}

/// Compares a new plan with the saved plan, step by step.
pub fn staleness(saved: &Plan, now: &Plan) -> Staleness {
    let keys = |plan: &Plan| -> BTreeSet<(String, Vec<u8>)> {
        let steps = plan.parts().flat_map(|part| part.steps.iter().map(move |step| (part, step)));
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
    let mut differences: Vec<String> = steps.difference(&saved_steps).map(|(shown, _)| shown.clone()).collect();
    let known: BTreeSet<_> = saved.blocks().map(|block| (&block.address, &block.text)).collect();
    differences.extend(
        now.blocks()
            .filter(|block| !known.contains(&(&block.address, &block.text)))
            .map(|block| format!("{}: {}", block.address, block.text)),
    );
    differences.extend(different_changes(saved, now, steps == saved_steps));
    // The current state of each object to change or delete must match the saved plan. The new plan does not contain
    // completed changes.
    let seen: BTreeMap<_, _> = changes(saved).map(|change| (&change.address, &change.before)).collect();
    differences.extend(changes(now).filter_map(|change| {
        let known = seen.get(&change.address)?.as_ref()?;
        let is = change.before.as_ref()?;
        (is != known).then(|| format!("{}: it changed after the plan was made", change.address))
    }));
    if saved.target.cluster != now.target.cluster {
        let (planned, actual) = (&saved.target.cluster, &now.target.cluster);
        differences.push(format!("the plan is for cluster {planned}, but this broker belongs to cluster {actual}"));
    }
    if !differences.is_empty() {
        Staleness::Stale(differences)
    } else if steps == saved_steps {
        Staleness::Same
    } else {
        Staleness::Rest
    }
}

/// Returns the changes that differ between the saved plan and the new plan. If some steps are already done
/// (`has_same_steps` is false), the new plan may create an object that the saved plan recreates, and does not contain
/// completed changes. In that case, only the desired objects are compared.
fn different_changes(saved: &Plan, now: &Plan, has_same_steps: bool) -> Vec<String> {
    let by_address = |plan| -> BTreeMap<&Address, &PlannedChange> {
        changes(plan).map(|change: &PlannedChange| (&change.address, change)).collect()
    };
    let (shown, planned) = (by_address(saved), by_address(now));
    let mut differences = Vec::new();
    for (address, change) in &planned {
        let is_same = match shown.get(address) {
            Some(shown) if has_same_steps => {
                (shown.kind, &shown.after, &shown.fields) == (change.kind, &change.after, &change.fields)
            }
            Some(shown) => shown.after == change.after,
            None => !has_same_steps,
        };
        if !is_same {
            differences.push(format!("{address}: the saved plan contains a different change"));
        }
    }
    let is_missing = |address: &&&Address| has_same_steps && !planned.contains_key(**address);
    differences.extend(shown.keys().filter(is_missing).map(|address| {
        format!("{address}: the saved plan contains a change, but the object no longer differs from the spec")
    }));
    differences
}

fn changes(plan: &Plan) -> impl Iterator<Item = &PlannedChange> {
    plan.parts().flat_map(|part| &part.changes)
}

/// Serializes values of different types to JSON.
mod erased {
    pub(super) trait Json {
        fn write(&self, into: &mut Vec<u8>);
    }

    impl<T: serde::Serialize> Json for T {
        fn write(&self, into: &mut Vec<u8>) {
            serde_json::to_writer(into, self).expect("JSON can represent a plan: all keys are strings");
        }
    }
}
