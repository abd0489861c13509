//! Plans specs against a broker. Reads the specs and the broker's objects concurrently, and calls the pure planner.
//! topo parses and lints the specs while the broker prepares its responses.

use super::arguments::{LintArguments, PlanningArguments};
use super::failure::{Exit, Failure};
use super::findings::{self, SpecFindings};
use super::input::{self, Loaded};
use super::output;
use super::progress::Progress;
use super::sources::Sources;
use super::value_parsers::Recreate;
use crate::apply;
use crate::broker::{Access, Broker, ClusterSnapshot, Snapshot, Survey};
use crate::expand::Expansion;
use crate::lint::Levels;
use crate::model::record_kinds::RecordRow;
use crate::model::{Address, BrokerVersion, ObjectId, ObjectKind, OnConflict, VhostName};
use crate::plan::{Allowance, Allowances, Blockers, Desired, Options, Plan, allowances_without_effect};
use crate::rabbitmq::BrokerProfile;
use crate::render::shell::quote;
use crate::spec::Environment;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;
use tokio::try_join;

/// Converts the planning flags to planner options. Refuses contradictory `--recreate` flags.
pub(super) fn options(arguments: &PlanningArguments, environment: Option<&Environment>) -> Result<Options, Failure> {
    let mut recreate: BTreeMap<Address, OnConflict> = BTreeMap::new();
    for Recreate(address, how) in &arguments.recreate {
        if let Some(other) = recreate.insert(address.clone(), *how).filter(|other| other != how) {
            // One method may lose messages that the other would keep, so topo does not choose between them.
            return Err(Failure::usage(format!("--recreate {address} is set twice: ={other} and ={how}"))
                .hint(format!("use only one of these flags; --recreate {address}=migrate keeps the messages")));
        }
    }
    Ok(Options {
        environment: environment.map(|environment| environment.name.clone()),
        prune: arguments.prune.iter().flat_map(|kinds| kinds.0.iter().copied()).collect(),
        recreate,
        targets: arguments.target.clone(),
        abort: BTreeSet::new(),
    })
}

/// Collects the allowances from all `--allow` flags.
pub(super) fn allowances(typed: &[Allowances]) -> Vec<Allowance> {
    typed.iter().flat_map(|allowances| allowances.0.iter().cloned()).collect()
}

/// Returns the planning flags for a suggested command.
pub(super) fn flags(arguments: &PlanningArguments) -> String {
    let mut line = String::new();
    for target in &arguments.target {
        line.push_str(&format!(" --target {}", quote(target.as_str())));
    }
    for recreate in &arguments.recreate {
        line.push_str(&format!(" --recreate {}", quote(&format!("{}={}", recreate.0, recreate.1))));
    }
    if !arguments.prune.is_empty() {
        let defaults = [
            (ObjectKind::Exchange, "exchanges"),
            (ObjectKind::Queue, "queues"),
            (ObjectKind::Binding, "bindings"),
            (ObjectKind::Policy, "policies"),
        ];
        let records = RecordRow::prunable().map(|row| (ObjectKind::Record(row.kind), row.section));
        let kinds: Vec<_> = defaults.into_iter().chain(records).collect();
        let is_pruned = |kind: &ObjectKind| arguments.prune.iter().any(|kinds| kinds.0.contains(kind));
        let words: Vec<&str> = kinds.iter().filter(|(kind, _)| is_pruned(kind)).map(|(_, word)| *word).collect();
        line.push_str(" --prune");
        if !defaults.iter().all(|(kind, _)| is_pruned(kind)) || words.len() > defaults.len() {
            line.push_str(&format!("={}", words.join(",")));
        }
    }
    line.push_str(&arguments.intervals.flags());
    for allowance in allowances(&arguments.allow) {
        line.push_str(&format!(" --allow {}", quote(&allowance.to_string())));
    }
    line
}

/// A plan with its inputs and the lint findings.
pub(super) struct Planned {
    pub(super) loaded: Loaded,
    pub(super) plan: Plan,
    pub(super) desired: Vec<Arc<Desired>>,
    pub(super) found: SpecFindings,
}

/// Reads the specs and their vhosts, and plans the changes.
pub(super) async fn read_and_plan(
    access: &Access,
    sources: Sources,
    options: &Options,
    lint: &LintArguments,
    progress: &Progress,
) -> Result<Planned, Failure> {
    let reading = progress.start_spinner(format!("reading {}", access.broker.shown_url()));
    let Reading { loaded, desired, found, cluster, snapshots } =
        read_concurrently(&access.broker, sources, findings::levels(lint), options.prune.clone()).await?;
    let plan = apply::plan_snapshots(access, cluster.as_ref(), &snapshots, &desired, options).await?;
    drop(reading);
    Ok(Planned { loaded, plan, desired, found })
}

/// Reads the vhosts, and plans the changes to the desired topologies.
pub(super) async fn plan(
    access: &Access,
    desired: &[Arc<Desired>],
    options: &Options,
    progress: &Progress,
) -> Result<Plan, Failure> {
    let reading = progress.start_spinner(format!("reading {}", access.broker.shown_url()));
    let plan = apply::plan(access, desired, options).await;
    drop(reading);
    Ok(plan?)
}

/// Refuses an unknown address in `--target` or `--recreate`. Otherwise, a typo could result in a plan without changes.
pub(super) fn check_addresses(plan: &Plan) -> Result<(), Failure> {
    let options = &plan.options;
    if options.targets.is_empty() && options.recreate.is_empty() {
        return Ok(());
    }
    let mut addresses: BTreeSet<Address> = BTreeSet::new();
    for part in plan.parts() {
        let topology = &part.desired.topology;
        let address = |id: ObjectId| Address::of(&topology.vhost, &id);
        addresses.insert(address(ObjectId::Vhost));
        addresses.extend(topology.exchanges.keys().map(|name| address(ObjectId::Exchange(name.clone()))));
        addresses.extend(topology.queues.keys().map(|name| address(ObjectId::Queue(name.clone()))));
        addresses.extend(topology.policies.keys().map(|name| address(ObjectId::Policy(name.clone()))));
        addresses.extend(topology.bindings.iter().map(|binding| address(ObjectId::Binding(binding.clone()))));
        addresses.extend(topology.records.keys().map(|id| address(ObjectId::Record(id.clone()))));
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
    let failure = Failure::usage(format!(
        "{flag} {value}: the address matches no object that the spec declares or that `owns` matches"
    ));
    Err(match near {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure,
    })
}

/// Warns about each `--allow` that has no effect on this plan.
pub(super) fn report_allowances(plan: &Plan, allowed: &[Allowance]) {
    for text in allowances_without_effect(plan, allowed) {
        output::eprint(&format!("warning: {text}\n"));
    }
}

/// Returns the failure for a blocked plan.
pub(super) fn blocked_failure(blockers: &Blockers) -> Failure {
    Failure::failed(format!("{}; nothing was changed", crate::render::plan_summary::blocked_summary(blockers)))
        .exit(Exit::Blocked)
}

/// The loaded specs, and the current state of their vhosts in the same order.
pub(super) struct Reading {
    pub(super) loaded: Loaded,
    /// The desired topologies for this broker. The desired topology of the cluster, if any, is first.
    pub(super) desired: Vec<Arc<Desired>>,
    /// The lint findings for this broker.
    pub(super) found: SpecFindings,
    pub(super) cluster: Option<ClusterSnapshot>,
    pub(super) snapshots: Vec<Snapshot>,
}

/// Reads the specs and their vhosts concurrently. Reports errors in the specs without waiting for the broker.
pub(super) async fn read_concurrently(
    broker: &Broker,
    sources: Sources,
    levels: Levels,
    prune: BTreeSet<ObjectKind>,
) -> Result<Reading, Failure> {
    let guessed = sources.guess_vhosts();
    let (sender, receiver) = oneshot::channel();
    let surveyed: Arc<OnceLock<Survey>> = Arc::default();
    let known = Arc::clone(&surveyed);
    let load = async {
        let known = move |vhost: &VhostName| known.get().map(|survey| survey.profile(vhost));
        let loaded = on_other_thread(move || input::load_for_known(sources, known)).await?;
        // Sending cannot fail: `lists` keeps the receiver until the vhosts arrive.
        let _ = sender.send(loaded.vhosts());
        Ok::<_, Failure>(loaded)
    };
    let specs = async {
        let read_survey = async {
            let survey = broker.survey().await;
            // The response usually arrives before the specs are parsed. In that case, topo expands the specs only once.
            if let Ok(survey) = &survey {
                surveyed.get_or_init(|| survey.clone());
            }
            Ok(survey)
        };
        let (mut loaded, survey) = try_join!(load, read_survey)?;
        let survey = survey?;
        let profiles: Vec<BrokerProfile> = loaded.vhosts().iter().map(|vhost| survey.profile(vhost)).collect();
        let expand_and_lint = move || {
            let newest = BrokerProfile::of(BrokerVersion::NEWEST_KNOWN);
            loaded.expand_for(|index| profiles.get(index).unwrap_or(&newest))?;
            let found = findings::for_profiles(&loaded, profiles.iter(), &levels);
            Ok((loaded, found, levels))
        };
        Ok::<_, Failure>((survey, on_other_thread(expand_and_lint).await?))
    };
    let lists = async {
        let guess = broker.lists(&guessed).await;
        match receiver.await {
            Ok(vhosts) if vhosts != guessed => Ok(broker.lists(&vhosts).await),
            Ok(_) | Err(_) => Ok(guess),
        }
    };
    let ((survey, (mut loaded, found, levels)), listed) = try_join!(specs, lists)?;
    let cluster = match &loaded.cluster {
        Some((_, Expansion { topology, scope, .. })) => {
            Some(broker.read_cluster_for_plan(&survey, topology, scope).await?)
        }
        None => None,
    };
    let mut snapshots = listed.snapshots(survey)?;
    for (snapshot, (_, Expansion { topology, scope, .. })) in snapshots.iter_mut().zip(&loaded.expanded) {
        broker.read_records_for_plan(snapshot, topology, scope).await?;
    }
    let join = move || {
        let found = found.with_live_objects(&loaded, &snapshots, (&levels, &prune));
        let desired = loaded.take_cluster().into_iter().chain(loaded.take_desired()).map(Arc::new).collect();
        Ok(Reading { loaded, desired, found, cluster, snapshots })
    };
    on_other_thread(join).await
}

/// Runs a computation on another thread, while the current thread receives the broker's responses.
async fn on_other_thread<T: Send + 'static>(
    compute: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(compute).await {
        Ok(result) => result,
        // The task is never canceled.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
