//! From specs and a broker to a plan: the reading, joined with the pure parts.

use super::access::Access;
use super::arguments::PlanningArguments;
use super::failure::Failure;
use super::findings::{self, Found};
use super::input::Loaded;
use super::offline_arguments::LintArguments;
use super::output;
use super::progress::Progress;
use super::reading::Reading;
use super::shell;
use super::sources::Sources;
use super::typed::Recreate;
use crate::broker::Snapshot;
use crate::model::{Address, ObjectId, ObjectKind, OnConflict, VhostName};
use crate::plan::{
    Activity, Allowance, Allowances, Obstacles, Options, Plan, Situation, Target, VhostPlan, Wanted,
    allowances_without_effect, counted_late, deletes_exchanges, deletes_queues, moves_messages, needs_activity,
    plan_vhost, seal,
};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Vhosts whose counts are asked for at once.
const VHOSTS_AT_ONCE: usize = 4;

/// What the flags ask for beyond the spec.
pub(super) fn options(arguments: &PlanningArguments) -> Result<Options, Failure> {
    let mut recreate: BTreeMap<Address, OnConflict> = BTreeMap::new();
    for Recreate(address, how) in &arguments.recreate {
        if let Some(other) = recreate.insert(address.clone(), *how).filter(|other| other != how) {
            // One of them loses messages where the other keeps them: which is meant is not for topo to guess.
            return Err(Failure::usage(format!("--recreate {address} is given twice: ={other} and ={how}")).hint(
                format!("only one can be done: leave one of them out; --recreate {address}=migrate keeps messages"),
            ));
        }
    }
    Ok(Options {
        prune: arguments.prune.iter().flat_map(|kinds| kinds.0.iter().copied()).collect(),
        recreate,
        targets: arguments.target.clone(),
        abort: BTreeSet::new(),
    })
}

/// All that the flags allow.
pub(super) fn allowances(typed: &[Allowances]) -> Vec<Allowance> {
    typed.iter().flat_map(|allowances| allowances.0.iter().cloned()).collect()
}

/// The flags again, as they would be typed.
pub(super) fn flags(arguments: &PlanningArguments) -> String {
    let mut line = String::new();
    for target in &arguments.target {
        line.push_str(&format!(" --target {}", shell::quoted(target.as_str())));
    }
    for recreate in &arguments.recreate {
        line.push_str(&format!(" --recreate {}", shell::quoted(&format!("{}={}", recreate.0, recreate.1))));
    }
    if !arguments.prune.is_empty() {
        let kinds = [
            (ObjectKind::Exchange, "exchanges"),
            (ObjectKind::Queue, "queues"),
            (ObjectKind::Binding, "bindings"),
            (ObjectKind::Policy, "policies"),
        ];
        let pruned = |kind: &ObjectKind| arguments.prune.iter().any(|kinds| kinds.0.contains(kind));
        let words: Vec<&str> = kinds.iter().filter(|(kind, _)| pruned(kind)).map(|(_, word)| *word).collect();
        line.push_str(" --prune");
        if words.len() < kinds.len() {
            line.push_str(&format!("={}", words.join(",")));
        }
    }
    line.push_str(&arguments.intervals.flags());
    for allowance in allowances(&arguments.allow) {
        line.push_str(&format!(" --allow {}", shell::quoted(&allowance.to_string())));
    }
    line
}

/// A plan, what it was made of, and what the rules find for the broker that it is for.
pub(super) struct Planned {
    pub(super) loaded: Loaded,
    pub(super) plan: Plan,
    pub(super) wanted: Vec<Arc<Wanted>>,
    pub(super) found: Found,
}

/// Reads the specs and their vhosts, and plans what the specs want of that broker.
pub(super) async fn read(
    access: &Access,
    sources: Sources,
    options: &Options,
    lint: &LintArguments,
    progress: &Progress,
) -> Result<Planned, Failure> {
    let reading = progress.spin(format!("reading {}", access.broker.shown_url()));
    let Reading { loaded, wanted, found, snapshots } =
        super::reading::read(&access.broker, sources, findings::levels(lint), options.prune.clone()).await?;
    let plan = of(access, &snapshots, &wanted, options).await?;
    drop(reading);
    Ok(Planned { loaded, plan, wanted, found })
}

/// Reads the vhosts and plans what is known to be wanted.
pub(super) async fn plan(
    access: &Access,
    wanted: &[Arc<Wanted>],
    options: &Options,
    progress: &Progress,
) -> Result<Plan, Failure> {
    let vhosts: Vec<VhostName> = wanted.iter().map(|wanted| wanted.topology.vhost.clone()).collect();
    let broker = &access.broker;
    let reading = progress.spin(format!("reading {}", broker.shown_url()));
    let snapshots = broker.read(&vhosts).await?;
    let plan = of(access, &snapshots, wanted, options).await;
    drop(reading);
    plan
}

/// The plan of vhosts that were read.
async fn of(
    access: &Access,
    snapshots: &[Snapshot],
    wanted: &[Arc<Wanted>],
    options: &Options,
) -> Result<Plan, Failure> {
    let broker = &access.broker;
    let part = async |(snapshot, wanted): (&Snapshot, &Arc<Wanted>)| {
        // Counts are read only where something may be lost or disturbed.
        let mut activity = if needs_activity(&snapshot.topology, wanted, &snapshot.dialect, options) {
            let vhost = &wanted.topology.vhost;
            let mut activity = broker.activity(vhost).await?;
            if moves_messages(&snapshot.topology, wanted, &snapshot.dialect, options) {
                activity.movers = access.movers(vhost, snapshot.dialect.version).await;
                activity.queue_limit = broker.queue_limit(vhost).await?;
                activity.out_of_reach = access.out_of_reach(&snapshot.topology, snapshot.dialect.version).await?;
            }
            activity
        } else {
            Activity::default()
        };
        activity.applying = super::locking::applying(&snapshot.topology);
        let mut part = one(snapshot, wanted, &activity, options);
        if deletes_queues(&part) {
            activity.shovels = broker.shovels(&wanted.topology.vhost).await?;
            part = one(snapshot, wanted, &activity, options);
        }
        if deletes_exchanges(&part, &snapshot.topology) {
            let (vhost, version) = (&wanted.topology.vhost, snapshot.dialect.version);
            activity.topic_permissions = broker.topic_permissions(vhost, version).await?;
            part = one(snapshot, wanted, &activity, options);
        }
        let late = counted_late(&part, &snapshot.topology, &activity);
        if access.ask(&snapshot.topology, &late, &mut activity).await {
            part = one(snapshot, wanted, &activity, options);
        }
        Ok::<_, Failure>(part)
    };
    let parts = stream::iter(snapshots.iter().zip(wanted).map(part));
    let parts: Vec<VhostPlan> = parts.buffered(VHOSTS_AT_ONCE).try_collect().await?;
    let target = snapshots.first().map_or_else(
        || Target { url: broker.shown_url(), cluster: String::new(), product: String::new(), version: String::new() },
        |snapshot| Target {
            url: broker.shown_url(),
            cluster: snapshot.cluster.clone(),
            product: snapshot.product.clone(),
            version: snapshot.dialect.version.to_string(),
        },
    );
    Ok(seal(target, options.clone(), parts))
}

/// An address that is nobody's is a typing error, and a plan without what was meant would look like "no changes".
pub(super) fn known_addresses(plan: &Plan) -> Result<(), Failure> {
    let options = &plan.options;
    if options.targets.is_empty() && options.recreate.is_empty() {
        return Ok(());
    }
    let mut addresses: BTreeSet<Address> = BTreeSet::new();
    for part in &plan.vhosts {
        let topology = &part.wanted.topology;
        let address = |id: ObjectId| Address::of(&topology.vhost, &id);
        addresses.insert(address(ObjectId::Vhost));
        addresses.extend(topology.exchanges.keys().map(|name| address(ObjectId::Exchange(name.clone()))));
        addresses.extend(topology.queues.keys().map(|name| address(ObjectId::Queue(name.clone()))));
        addresses.extend(topology.policies.keys().map(|name| address(ObjectId::Policy(name.clone()))));
        addresses.extend(topology.bindings.iter().map(|binding| address(ObjectId::Binding(binding.clone()))));
        addresses.extend(part.wanted.scope.removed.iter().map(|id| address(id.clone())));
        addresses.extend(part.changes.iter().map(|change| change.address.clone()));
        addresses.extend(part.undeclared.iter().map(|undeclared| undeclared.address.clone()));
    }
    let target = options.targets.iter().find(|glob| !addresses.iter().any(|known| glob.matches(known.as_str())));
    let recreate = options.recreate.keys().find(|address| !addresses.contains(*address));
    let (flag, said) = match (target, recreate) {
        (Some(glob), _) => ("--target", glob.as_str()),
        (None, Some(address)) => ("--recreate", address.as_str()),
        (None, None) => return Ok(()),
    };
    let near = addresses.iter().min_by_key(|known| strsim::damerau_levenshtein(known.as_str(), said));
    let failure = Failure::usage(format!("{flag} {said}: the spec has no such object, and owns none"));
    Err(match near {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure,
    })
}

/// The plan of one vhost that was read.
pub(super) fn one(snapshot: &Snapshot, wanted: &Arc<Wanted>, activity: &Activity, options: &Options) -> VhostPlan {
    let situation = Situation {
        current: &snapshot.topology,
        wanted,
        activity,
        properties_keys: &snapshot.properties_keys,
        untouchable: &snapshot.untouchable,
        operator_policies: &snapshot.operator_policies,
        dialect: &snapshot.dialect,
    };
    plan_vhost(&situation, options)
}

/// Warns of each `--allow` that allows nothing in this plan.
pub(super) fn report_allowances(plan: &Plan, allowed: &[Allowance]) {
    for text in allowances_without_effect(plan, allowed) {
        output::tell(&format!("warning: {text}\n"));
    }
}

/// A refusal, for commands that stop at it.
pub(super) fn blocked(obstacles: &Obstacles) -> Failure {
    Failure::failed(format!("{}; nothing was changed", crate::render::plan_text::blocked_by(obstacles)))
        .exit(super::exit::Exit::Blocked)
}
