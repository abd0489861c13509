//! From specs and a broker to a plan: the reading, joined with the pure parts.

use super::access::Access;
use super::arguments::PlanningArguments;
use super::failure::Failure;
use super::input::Loaded;
use super::progress::Progress;
use super::shell;
use crate::behaviour::Dialect;
use crate::broker::Snapshot;
use crate::model::{Address, BrokerVersion, ObjectId, ObjectKind, VhostName};
use crate::plan::{
    Activity, Allowance, Obstacles, Options, Plan, Situation, Target, VhostPlan, Wanted, moves_messages,
    needs_activity, plan_vhost, seal,
};
use std::collections::BTreeSet;

/// What the flags ask for beyond the spec.
pub(super) fn options(arguments: &PlanningArguments) -> Options {
    Options {
        prune: arguments.prune.iter().flat_map(|kinds| kinds.0.iter().copied()).collect(),
        recreate: arguments.recreate.iter().map(|recreate| (recreate.0.clone(), recreate.1)).collect(),
        targets: arguments.target.clone(),
        abort: BTreeSet::new(),
    }
}

/// All that the flags allow.
pub(super) fn allowances(arguments: &PlanningArguments) -> Vec<Allowance> {
    arguments.allow.iter().flat_map(|allowances| allowances.0.iter().cloned()).collect()
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
    for allowance in allowances(arguments) {
        line.push_str(&format!(" --allow {}", shell::quoted(&allowance.to_string())));
    }
    line
}

/// A plan, and how the broker behaves that it is for, a vhost each.
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) dialects: Vec<Dialect>,
}

/// Reads the vhosts and plans what the specs want of that broker; also says what was read of the broker itself.
pub(super) async fn read(
    access: &Access,
    loaded: &mut Loaded,
    options: &Options,
    progress: &Progress,
) -> Result<Planned, Failure> {
    let broker = &access.broker;
    let reading = progress.spin(format!("reading {}", broker.shown_url()));
    let snapshots = broker.read(&loaded.vhosts()).await?;
    let newest = Dialect::of(BrokerVersion::NEWEST_KNOWN);
    loaded.expand_for(|index| snapshots.get(index).map_or(&newest, |snapshot| &snapshot.dialect))?;
    let plan = of(access, &snapshots, &loaded.wanted(), options).await?;
    drop(reading);
    Ok(Planned { plan, dialects: snapshots.into_iter().map(|snapshot| snapshot.dialect).collect() })
}

/// Reads the vhosts and plans what is known to be wanted.
pub(super) async fn plan(
    access: &Access,
    wanted: &[Wanted],
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
async fn of(access: &Access, snapshots: &[Snapshot], wanted: &[Wanted], options: &Options) -> Result<Plan, Failure> {
    let broker = &access.broker;
    let mut parts: Vec<VhostPlan> = Vec::new();
    for (snapshot, wanted) in snapshots.iter().zip(wanted) {
        // Counts are read only where something may be lost or disturbed.
        let activity = if needs_activity(&snapshot.topology, wanted, &snapshot.dialect, options) {
            let vhost = &wanted.topology.vhost;
            let mut activity = broker.activity(vhost).await?;
            if moves_messages(&snapshot.topology, wanted, &snapshot.dialect, options) {
                activity.movers = access.movers(vhost, snapshot.dialect.version).await;
                activity.queue_limit = broker.queue_limit(vhost).await?;
            }
            activity
        } else {
            Activity::default()
        };
        parts.push(one(snapshot, wanted, &activity, options));
    }
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
pub(super) fn one(snapshot: &Snapshot, wanted: &Wanted, activity: &Activity, options: &Options) -> VhostPlan {
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

/// A refusal, for commands that stop at it.
pub(super) fn blocked(obstacles: &Obstacles) -> Failure {
    Failure::failed(format!("{}; nothing was changed", crate::render::plan_text::blocked_by(obstacles)))
        .exit(super::exit::Exit::Blocked)
}
