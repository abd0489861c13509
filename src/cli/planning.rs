//! Plans specs against a broker: reads both, and calls the pure planner.

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
use super::value_parsers::Recreate;
use crate::broker::Snapshot;
use crate::model::{Address, ObjectId, ObjectKind, OnConflict, VhostName};
use crate::plan::{
    Activity, Allowance, Allowances, Blockers, Desired, Options, Plan, PlanContext, Target, VhostPlan,
    allowances_without_effect, counted_late, deletes_exchanges, deletes_queues, moves_messages, needs_activity,
    plan_vhost, seal,
};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The number of vhosts whose counts are read concurrently.
const VHOSTS_AT_ONCE: usize = 4;

/// Converts the planning flags.
pub(super) fn options(arguments: &PlanningArguments) -> Result<Options, Failure> {
    let mut recreate: BTreeMap<Address, OnConflict> = BTreeMap::new();
    for Recreate(address, how) in &arguments.recreate {
        if let Some(other) = recreate.insert(address.clone(), *how).filter(|other| other != how) {
            // One of them may lose messages that the other keeps, so topo does not guess which one is intended.
            return Err(Failure::usage(format!("--recreate {address} is given twice: ={other} and ={how}"))
                .hint(format!("use only one of them; --recreate {address}=migrate keeps messages")));
        }
    }
    Ok(Options {
        prune: arguments.prune.iter().flat_map(|kinds| kinds.0.iter().copied()).collect(),
        recreate,
        targets: arguments.target.clone(),
        abort: BTreeSet::new(),
    })
}

/// Collects the allowances of all `--allow` flags.
pub(super) fn allowances(typed: &[Allowances]) -> Vec<Allowance> {
    typed.iter().flat_map(|allowances| allowances.0.iter().cloned()).collect()
}

/// Returns the flags as typed on the command line.
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

/// A plan with its inputs, and the lint findings for its broker.
pub(super) struct Planned {
    pub(super) loaded: Loaded,
    pub(super) plan: Plan,
    pub(super) desired: Vec<Arc<Desired>>,
    pub(super) found: Found,
}

/// Reads the specs and their vhosts, and plans the changes.
pub(super) async fn read(
    access: &Access,
    sources: Sources,
    options: &Options,
    lint: &LintArguments,
    progress: &Progress,
) -> Result<Planned, Failure> {
    let reading = progress.spin(format!("reading {}", access.broker.shown_url()));
    let Reading { loaded, desired, found, snapshots } =
        super::reading::read(&access.broker, sources, findings::levels(lint), options.prune.clone()).await?;
    let plan = of(access, &snapshots, &desired, options).await?;
    drop(reading);
    Ok(Planned { loaded, plan, desired, found })
}

/// Reads the vhosts, and plans the changes to known desired topologies.
pub(super) async fn plan(
    access: &Access,
    desired: &[Arc<Desired>],
    options: &Options,
    progress: &Progress,
) -> Result<Plan, Failure> {
    let vhosts: Vec<VhostName> = desired.iter().map(|desired| desired.topology.vhost.clone()).collect();
    let broker = &access.broker;
    let reading = progress.spin(format!("reading {}", broker.shown_url()));
    let snapshots = broker.read(&vhosts).await?;
    let plan = of(access, &snapshots, desired, options).await;
    drop(reading);
    plan
}

/// Plans vhosts that are already read.
async fn of(
    access: &Access,
    snapshots: &[Snapshot],
    desired: &[Arc<Desired>],
    options: &Options,
) -> Result<Plan, Failure> {
    let broker = &access.broker;
    let part = async |(snapshot, desired): (&Snapshot, &Arc<Desired>)| {
        // Counts are read only if the plan may lose or disturb something.
        let mut activity = if needs_activity(&snapshot.topology, desired, &snapshot.profile, options) {
            let vhost = &desired.topology.vhost;
            let mut activity = broker.activity(vhost).await?;
            if moves_messages(&snapshot.topology, desired, &snapshot.profile, options) {
                activity.transports = access.transports(vhost, snapshot.profile.version).await;
                activity.queue_limit = broker.queue_limit(vhost).await?;
                activity.out_of_reach = access.out_of_reach(&snapshot.topology, snapshot.profile.version).await?;
            }
            activity
        } else {
            Activity::default()
        };
        activity.applying = super::locking::applying(&snapshot.topology);
        let mut part = one(snapshot, desired, &activity, options);
        if deletes_queues(&part) {
            activity.shovels = broker.shovels(&desired.topology.vhost).await?;
            part = one(snapshot, desired, &activity, options);
        }
        if deletes_exchanges(&part, &snapshot.topology) {
            let (vhost, version) = (&desired.topology.vhost, snapshot.profile.version);
            activity.topic_permissions = broker.topic_permissions(vhost, version).await?;
            part = one(snapshot, desired, &activity, options);
        }
        let late = counted_late(&part, &snapshot.topology, &activity);
        if access.ask(&snapshot.topology, &late, &mut activity).await {
            part = one(snapshot, desired, &activity, options);
        }
        Ok::<_, Failure>(part)
    };
    let parts = stream::iter(snapshots.iter().zip(desired).map(part));
    let parts: Vec<VhostPlan> = parts.buffered(VHOSTS_AT_ONCE).try_collect().await?;
    let target = snapshots.first().map_or_else(
        || Target { url: broker.shown_url(), cluster: String::new(), product: String::new(), version: String::new() },
        |snapshot| Target {
            url: broker.shown_url(),
            cluster: snapshot.cluster.clone(),
            product: snapshot.product.clone(),
            version: snapshot.profile.version.to_string(),
        },
    );
    Ok(seal(target, options.clone(), parts))
}

/// Refuses an unknown address of `--target` or `--recreate`: after a typo, the plan would look like "no changes".
pub(super) fn known_addresses(plan: &Plan) -> Result<(), Failure> {
    let options = &plan.options;
    if options.targets.is_empty() && options.recreate.is_empty() {
        return Ok(());
    }
    let mut addresses: BTreeSet<Address> = BTreeSet::new();
    for part in &plan.vhosts {
        let topology = &part.desired.topology;
        let address = |id: ObjectId| Address::of(&topology.vhost, &id);
        addresses.insert(address(ObjectId::Vhost));
        addresses.extend(topology.exchanges.keys().map(|name| address(ObjectId::Exchange(name.clone()))));
        addresses.extend(topology.queues.keys().map(|name| address(ObjectId::Queue(name.clone()))));
        addresses.extend(topology.policies.keys().map(|name| address(ObjectId::Policy(name.clone()))));
        addresses.extend(topology.bindings.iter().map(|binding| address(ObjectId::Binding(binding.clone()))));
        addresses.extend(part.desired.scope.removed.iter().map(|id| address(id.clone())));
        addresses.extend(part.changes.iter().map(|change| change.address.clone()));
        addresses.extend(part.unmanaged.iter().map(|unmanaged| unmanaged.address.clone()));
    }
    let target = options.targets.iter().find(|glob| !addresses.iter().any(|known| glob.matches(known.as_str())));
    let recreate = options.recreate.keys().find(|address| !addresses.contains(*address));
    let (flag, value) = match (target, recreate) {
        (Some(glob), _) => ("--target", glob.as_str()),
        (None, Some(address)) => ("--recreate", address.as_str()),
        (None, None) => return Ok(()),
    };
    let near = addresses.iter().min_by_key(|known| strsim::damerau_levenshtein(known.as_str(), value));
    let failure = Failure::usage(format!("{flag} {value}: no such object in the spec, and none that `owns` matches"));
    Err(match near {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure,
    })
}

/// Plans one vhost that is already read.
pub(super) fn one(snapshot: &Snapshot, desired: &Arc<Desired>, activity: &Activity, options: &Options) -> VhostPlan {
    let context = PlanContext {
        current: &snapshot.topology,
        desired,
        activity,
        properties_keys: &snapshot.properties_keys,
        untouchable: &snapshot.untouchable,
        operator_policies: &snapshot.operator_policies,
        profile: &snapshot.profile,
    };
    plan_vhost(&context, options)
}

/// Warns about each `--allow` that allows nothing in this plan.
pub(super) fn report_allowances(plan: &Plan, allowed: &[Allowance]) {
    for text in allowances_without_effect(plan, allowed) {
        output::tell(&format!("warning: {text}\n"));
    }
}

/// The failure of a blocked plan.
pub(super) fn blocked(obstacles: &Blockers) -> Failure {
    Failure::failed(format!("{}; nothing was changed", crate::render::plan_text::blocked_by(obstacles)))
        .exit(super::exit::Exit::Blocked)
}
