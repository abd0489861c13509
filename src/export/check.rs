//! Checks that an exported spec describes the current state. Parses, expands and plans the spec like any other spec,
//! and reports each difference with the objects that cause it.

use super::CurrentVhost;
use super::recognize::patterns::Recognized;
use crate::expand::{CreatedFor, Expansion, expand};
use crate::model::naming::TierName;
use crate::model::yaml::Text;
use crate::model::{Address, Object, ObjectId, Queue, Topology};
use crate::plan::{
    Activity, Desired, InterruptedMigration, Options, PlanContext, PlannedChange, RecordFacts, VhostPlan, plan_vhost,
};
use crate::spec::{Diagnostic, Diagnostics, SourceFile, Spec, Variables, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A difference between the exported spec and the broker.
#[derive(Clone, Debug)]
pub(super) struct Mismatch {
    /// The objects that cause the difference, the most likely cause first; empty if the cause is unknown.
    pub(super) causes: Vec<ObjectId>,
    /// A description of the difference, in one sentence.
    pub(super) why: String,
}

/// An exported spec after parsing and expansion.
pub(super) struct ParsedExport {
    pub(super) spec: Spec,
    pub(super) expansion: Expansion,
}

/// Parses and expands an exported spec for this broker.
pub(super) fn read(text: &Text, live: &CurrentVhost<'_>) -> Result<ParsedExport, Vec<Mismatch>> {
    let files = [SourceFile { name: "export".to_owned(), text: text.text.clone() }];
    let all = |found: &Diagnostics| found.iter().map(|it| from_diagnostic(text, it)).collect::<Vec<_>>();
    let specs = parse(&files, &Variables::new()).map_err(|found| all(&found))?.vhosts;
    let [spec] =
        <[Spec; 1]>::try_from(specs).map_err(|_| vec![unknown("the text does not contain exactly one spec")])?;
    let expansion = expand(&spec, live.profile).map_err(|found| all(&found))?;
    Ok(ParsedExport { spec, expansion })
}

/// Returns all differences between an exported spec and the kept objects. These are the changes and the blockers in the
/// plan for the spec, kept objects that the spec does not declare, and queues with different arguments.
pub(super) fn mismatches(
    read: &ParsedExport,
    live: &CurrentVhost<'_>,
    kept: &Topology,
    recognized: &Recognized,
) -> Vec<Mismatch> {
    let Expansion { topology, origins, scope, .. } = &read.expansion;
    let plan = plan_of(read, live);
    let causes = |id: &ObjectId| -> Vec<ObjectId> {
        let tier = || match id {
            ObjectId::Queue(name) => TierName::parse(name).map(|tier| tier.queue),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        };
        let owner = origins.get(id).and_then(|origin| match &origin.because {
            CreatedFor::Declared => None,
            CreatedFor::DeadLetterExchange(queue)
            | CreatedFor::DeadLetterBinding(queue)
            | CreatedFor::DeadLetterPolicy(queue)
            | CreatedFor::Retry(queue) => Some(queue.clone()),
        });
        let owner = owner.or_else(|| recognized.generated.get(id).cloned());
        let owner = owner.or_else(|| tier().filter(|_| !origins.contains_key(id)));
        owner.map(ObjectId::Queue).into_iter().chain([id.clone()]).collect()
    };
    let changes = plan.changes.iter().filter_map(|change| {
        // The plan retires a retry object only because the queue that it belongs to exists.
        let of = change.retires.clone().map(ObjectId::Queue);
        Some(from_change(change, of.into_iter().chain(causes(&change.id()?)).collect()))
    });
    let mut mismatches: Vec<Mismatch> = changes.collect();
    let by_address: BTreeMap<Address, &ObjectId> =
        origins.keys().chain(&scope.external).map(|id| (Address::of(&topology.vhost, id), id)).collect();
    mismatches.extend(plan.blocks.iter().map(|block| {
        let id = by_address.get(&block.address).copied();
        // The export itself declared the object as external, so the text of the blocker would be misleading.
        let why = match id.filter(|id| scope.external.contains(id)) {
            Some(missing) => format!("{missing} does not exist"),
            None => block.text.clone(),
        };
        Mismatch { causes: id.map_or_else(Vec::new, causes), why }
    }));
    let undeclared = ids(kept).into_iter().filter(|id| plan.desired.topology.object(id).is_none());
    mismatches.extend(undeclared.map(|id| Mismatch { causes: causes(&id), why: format!("{id} would be missing") }));
    let current_and_desired =
        plan.desired.topology.queues.iter().filter_map(|(name, desired)| Some((name, desired, kept.queues.get(name)?)));
    let different = current_and_desired
        .filter(|(name, desired, live)| !is_equivalent(desired, live) && !recognized.generates_queue(name));
    mismatches.extend(different.map(|(name, ..)| {
        let id = ObjectId::Queue(name.clone());
        Mismatch { causes: causes(&id), why: format!("the arguments of {id} would differ") }
    }));
    mismatches
}

/// Returns the migrations that a plan for the exported spec would resume, or that another apply is executing.
pub(super) fn interrupted_migrations(read: &ParsedExport, live: &CurrentVhost<'_>) -> Vec<InterruptedMigration> {
    plan_of(read, live).interrupted
}

/// Returns true if two queues are equivalent. A current queue without a type is a classic queue.
fn is_equivalent(desired: &Queue, live: &Queue) -> bool {
    let mut live = live.clone();
    live.arguments.entry("x-queue-type".to_owned()).or_insert_with(|| "classic".into());
    live == *desired
}

fn plan_of(read: &ParsedExport, live: &CurrentVhost<'_>) -> VhostPlan {
    let Expansion { topology, scope, .. } = &read.expansion;
    let desired = Arc::new(Desired { topology: topology.clone(), scope: scope.clone(), sources: Vec::new() });
    let context = PlanContext {
        current: live.topology,
        desired: &desired,
        // Message counts are irrelevant, because the plan must not change anything.
        activity: &Activity { applying: live.lock_holder.map(str::to_owned), ..Activity::default() },
        properties_keys: live.properties_keys,
        untouchable: live.untouchable,
        lacks_auto_delete: &BTreeSet::new(),
        records: &RecordFacts::default(),
        profile: live.profile,
    };
    plan_vhost(&context, &Options::default())
}

fn ids(topology: &Topology) -> Vec<ObjectId> {
    let exchanges = topology.exchanges.keys().cloned().map(ObjectId::Exchange);
    let queues = topology.queues.keys().cloned().map(ObjectId::Queue);
    let policies = topology.policies.keys().cloned().map(ObjectId::Policy);
    let bindings = topology.bindings.iter().cloned().map(ObjectId::Binding);
    let records = topology.records.keys().cloned().map(ObjectId::Record);
    exchanges.chain(queues).chain(policies).chain(bindings).chain(records).collect()
}

fn from_change(change: &PlannedChange, causes: Vec<ObjectId>) -> Mismatch {
    let what = match (&change.before, &change.after) {
        (None, _) => "it would be created",
        (Some(_), None) => "it would be deleted",
        (Some(Object::Vhost(_)), Some(_)) => "the vhost would be changed",
        (Some(_), Some(_)) => "it would be changed",
    };
    Mismatch { causes, why: what.to_owned() }
}

fn from_diagnostic(text: &Text, diagnostic: &Diagnostic) -> Mismatch {
    let positions = [diagnostic.primary].into_iter().chain(diagnostic.secondary.iter().map(|(at, _)| *at));
    let causes = positions.flat_map(|at| text.at(at.start)).cloned().collect();
    Mismatch { causes, why: diagnostic.message.clone() }
}

fn unknown(why: &str) -> Mismatch {
    Mismatch { causes: Vec::new(), why: why.to_owned() }
}
