//! Checks that an exported text describes the current state: it is read, expanded and planned by the same code as every
//! spec. Each difference is reported with the objects that cause it.

use super::Live;
use super::recognize::Recognized;
use crate::expand::{CreatedFor, Expansion, expand};
use crate::model::naming::TierName;
use crate::model::yaml::Text;
use crate::model::{Address, Object, ObjectId, Queue, Topology};
use crate::plan::{
    Activity, Desired, InterruptedMigration, Options, PlanContext, PlannedChange, VhostPlan, plan_vhost,
};
use crate::spec::{Diagnostic, Diagnostics, SourceFile, Spec, Variables, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Something that does not come out as it is live.
#[derive(Clone, Debug)]
pub(super) struct Wrong {
    /// The objects that say it, the one that is most to blame first; none where nobody knows.
    pub(super) set_by: Vec<ObjectId>,
    /// What is wrong, in one sentence.
    pub(super) why: String,
}

/// A text that was read.
pub(super) struct Read {
    pub(super) spec: Spec,
    pub(super) expansion: Expansion,
}

/// Reads a text as the spec of that broker.
pub(super) fn read(text: &Text, live: &Live<'_>) -> Result<Read, Vec<Wrong>> {
    let files = [SourceFile { name: "export".to_owned(), text: text.text.clone() }];
    let all = |found: &Diagnostics| found.iter().map(|it| diagnosed(text, it)).collect::<Vec<_>>();
    let specs = parse(&files, &Variables::new()).map_err(|found| all(&found))?;
    let [spec] = <[Spec; 1]>::try_from(specs).map_err(|_| vec![unknown("it is not one spec")])?;
    let expansion = expand(&spec, live.profile).map_err(|found| all(&found))?;
    Ok(Read { spec, expansion })
}

/// All that a plan of it would change, and all of what is kept that it does not say.
pub(super) fn wrongs(read: &Read, live: &Live<'_>, kept: &Topology, recognized: &Recognized) -> Vec<Wrong> {
    let Expansion { topology, origins, scope, .. } = &read.expansion;
    let plan = plan_of(read, live);
    let says = |id: &ObjectId| -> Vec<ObjectId> {
        let tier = || match id {
            ObjectId::Queue(name) => TierName::parse(name).map(|tier| tier.queue),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        };
        let maker = origins.get(id).and_then(|origin| match &origin.because {
            CreatedFor::Declared => None,
            CreatedFor::DeadLetterExchange(queue)
            | CreatedFor::DeadLetterBinding(queue)
            | CreatedFor::DeadLetterPolicy(queue)
            | CreatedFor::Retry(queue) => Some(queue.clone()),
        });
        let maker = maker.or_else(|| recognized.made.get(id).cloned());
        let maker = maker.or_else(|| tier().filter(|_| !origins.contains_key(id)));
        maker.map(ObjectId::Queue).into_iter().chain([id.clone()]).collect()
    };
    let changes = plan.changes.iter().filter_map(|change| {
        // What is taken for a remnant of a queue's retries is so because the queue is there.
        let of = change.retires.clone().map(ObjectId::Queue);
        Some(changed(change, of.into_iter().chain(says(&change.id()?)).collect()))
    });
    let mut wrongs: Vec<Wrong> = changes.collect();
    let by_address: BTreeMap<Address, &ObjectId> =
        origins.keys().chain(&scope.external).map(|id| (Address::of(&topology.vhost, id), id)).collect();
    wrongs.extend(plan.blocks.iter().map(|block| {
        let id = by_address.get(&block.address).copied();
        // The export itself marks objects as external.
        let why = match id.filter(|id| scope.external.contains(id)) {
            Some(missing) => format!("{missing} does not exist"),
            None => block.text.clone(),
        };
        Wrong { set_by: id.map_or_else(Vec::new, says), why }
    }));
    let unsaid = ids(kept).into_iter().filter(|id| plan.desired.topology.object(id).is_none());
    wrongs.extend(unsaid.map(|id| Wrong { set_by: says(&id), why: format!("{id} would be missing") }));
    let current_and_desired =
        plan.desired.topology.queues.iter().filter_map(|(name, desired)| Some((name, desired, kept.queues.get(name)?)));
    let in_part =
        current_and_desired.filter(|(name, desired, live)| !is_said(desired, live) && !recognized.is_tier(name));
    wrongs.extend(in_part.map(|(name, ..)| {
        let id = ObjectId::Queue(name.clone());
        Wrong { set_by: says(&id), why: format!("{id} would get other arguments") }
    }));
    wrongs
}

/// The migrations that a plan of it would go on with, or that another apply works on.
pub(super) fn interrupted(read: &Read, live: &Live<'_>) -> Vec<InterruptedMigration> {
    plan_of(read, live).interrupted
}

/// Whether nothing differs but a type that is not said, and classic.
fn is_said(desired: &Queue, live: &Queue) -> bool {
    let mut live = live.clone();
    live.arguments.entry("x-queue-type".to_owned()).or_insert_with(|| "classic".into());
    live == *desired
}

fn plan_of(read: &Read, live: &Live<'_>) -> VhostPlan {
    let Expansion { topology, scope, .. } = &read.expansion;
    let desired = Arc::new(Desired { topology: topology.clone(), scope: scope.clone(), sources: Vec::new() });
    let context = PlanContext {
        current: live.topology,
        desired: &desired,
        // What is in the queues is no matter where nothing changes.
        activity: &Activity { applying: live.applying.map(str::to_owned), ..Activity::default() },
        properties_keys: live.properties_keys,
        untouchable: live.untouchable,
        lacks_auto_delete: &BTreeSet::new(),
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

fn changed(change: &PlannedChange, set_by: Vec<ObjectId>) -> Wrong {
    let what = match (&change.before, &change.after) {
        (None, _) => "it would be created",
        (Some(_), None) => "it would be deleted",
        (Some(Object::Vhost(_)), Some(_)) => "the vhost would be changed",
        (Some(_), Some(_)) => "it would be changed",
    };
    Wrong { set_by, why: what.to_owned() }
}

fn diagnosed(text: &Text, diagnostic: &Diagnostic) -> Wrong {
    let places = [diagnostic.primary].into_iter().chain(diagnostic.secondary.iter().map(|(at, _)| *at));
    let set_by = places.flat_map(|at| text.at(at.start)).cloned().collect();
    Wrong { set_by, why: diagnostic.message.clone() }
}

fn unknown(why: &str) -> Wrong {
    Wrong { set_by: Vec::new(), why: why.to_owned() }
}
