//! Runs a pair on the broker through the library, and checks the result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use topo::apply::{ApplyResources, CONCURRENCY, Interrupt, Report, apply};
use topo::broker::{BaseUrl, Broker, BrokerError, ConnectionOptions, Holder, Snapshot};
use topo::diff::{Change, diff};
use topo::expand::expand;
use topo::model::names::LOCK_QUEUE;
use topo::model::{Binding, BrokerVersion, Destination, ObjectId, ObjectKind, QueueName, Topology, VhostName};
use topo::plan::verdict::verdict;
use topo::plan::{
    Action, Activity, Allowance, ChangeKind, Desired, HazardKind, Options, Plan, PlanContext, RecordFacts, Target,
    assemble, blockers_of, gate, needs_activity, plan_vhost,
};
use topo::rabbitmq::BrokerProfile;
use topo::spec::{SourceFile, Variables, parse};

use super::case::Case;
use super::replay::replay;
use crate::scenarios::{everything, fill, make_live, until_counted};
use crate::support::{Argument, Http, Node, Vhost, until};

/// A failed check, with an observation.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) check: &'static str,
    pub(super) text: String,
    /// The current state before the plan of the second spec.
    pub(super) live: Value,
}

/// The number of occurrences of each event.
pub(super) type Counts = BTreeMap<String, usize>;

/// A connection with a separate runtime, one per thread.
pub(super) struct Player {
    runtime: tokio::runtime::Runtime,
    broker: Broker,
    version: BrokerVersion,
}

/// A plan with its inputs.
struct Planned {
    snapshot: Snapshot,
    activity: Activity,
    plan: Plan,
}

type Checked<T> = Result<T, (&'static str, String)>;

fn broken(check: &'static str) -> impl Fn(BrokerError) -> (&'static str, String) {
    move |error| (check, error.to_string())
}

impl Player {
    pub(super) fn new(node: &Node) -> Self {
        let url = BaseUrl::parse(&node.url()).unwrap().url;
        let options = ConnectionOptions::new(url, "guest", SecretString::from("guest"));
        let options = ConnectionOptions { intervals: crate::live::transport::fixture::intervals_of(node), ..options };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let broker = runtime.block_on(async { Broker::connect(options) }).unwrap();
        Self { runtime, broker, version: node.version().parse().unwrap() }
    }

    fn plan(&self, desired: &Arc<Desired>, options: &Options) -> Result<Planned, BrokerError> {
        self.runtime.block_on(async {
            let vhost = &desired.topology.vhost;
            let snapshot = self.broker.read(std::slice::from_ref(vhost)).await?.remove(0);
            let activity = if needs_activity(&snapshot.topology, desired, &snapshot.profile, options) {
                self.broker.activity(vhost).await?
            } else {
                Activity::default()
            };
            let plan = plan_of(&snapshot, desired, &activity, options);
            Ok(Planned { snapshot, activity, plan })
        })
    }

    /// Applies like `topo apply`: lock, plan again, gates, execute. Returns `None` if topo refuses the plan.
    fn apply(
        &self,
        desired: &Arc<Desired>,
        options: &Options,
        allowed: &[Allowance],
    ) -> Result<Option<Report>, BrokerError> {
        let vhost = &desired.topology.vhost;
        let holder = Holder::new("the convergence test");
        let name = QueueName::from(LOCK_QUEUE);
        let holder = (holder, self.version);
        let lock = self.runtime.block_on(self.broker.lock(vhost, &name, holder, Duration::ZERO, |_| false))?;
        let planned = self.plan(desired, options)?;
        let report = match gate(planned.plan, allowed) {
            Err(_) => None,
            Ok(approved) => {
                let part = &approved.plan().vhosts[0];
                Some(self.runtime.block_on(apply(
                    (part, &part.steps),
                    &lock,
                    &Interrupt::default(),
                    ApplyResources { concurrency: CONCURRENCY, transport: None, drain_timeout: Duration::ZERO },
                    |_| {},
                )))
            }
        };
        self.runtime.block_on(lock.release())?;
        Ok(report)
    }

    fn read(&self, vhost: &VhostName) -> Result<Topology, BrokerError> {
        let read = self.runtime.block_on(self.broker.read(std::slice::from_ref(vhost)));
        Ok(read?.remove(0).topology)
    }

    /// Runs a case in a new vhost. Returns `Ok(None)` for an invalid case, whose spec is inconsistent.
    pub(super) fn play(&self, case: &Case, node: &Node) -> Result<Option<Counts>, Wrong> {
        let vhost = node.vhost("pair");
        let mut live = json!(null);
        self.steps(case, &vhost, &mut live).map_err(|(check, text)| Wrong { check, text, live })
    }

    fn steps(&self, case: &Case, vhost: &Vhost<'_>, live: &mut Value) -> Checked<Option<Counts>> {
        let (Some(first), Some(second)) = (desired(&case.first, vhost), desired(&case.second, vhost)) else {
            return Ok(None);
        };
        let all: Vec<Allowance> =
            HazardKind::ALL.map(|hazard| Allowance { hazard, addresses: None, messages: None }).into();
        let none = Options::default();
        complete("the first apply", self.apply(&first, &none, &all).map_err(broken("the first apply"))?)?;
        empty("the first spec's second plan", &self.plan(&first, &none).map_err(broken("reading"))?.plan)?;

        let _held = create_unmanaged(&case.unmanaged, vhost);
        *live = everything(vhost);
        let options = Options { prune: case.prune.iter().map(|word| kind(word)).collect(), ..Options::default() };
        let planned = self.plan(&second, &options).map_err(broken("reading"))?;
        let before = &planned.snapshot.topology;
        same_bytes(&planned, &self.plan(&second, &options).map_err(broken("reading"))?, &second, &options)?;
        let part = &planned.plan.vhosts[0];
        let foreseen = replay(before, &part.steps).map_err(|why| ("the steps", why))?;

        let mut counts = Counts::new();
        count_plan(&mut counts, &planned, &second);
        let allowed = if case.allow { all } else { Vec::new() };
        let open = blockers_of(&planned.plan, &allowed);
        if let Some(block) = open.blocks.iter().find(|block| block.text.contains("defect in topo")) {
            return Err(("topo's own simulation", block.text.clone()));
        }
        let report = self.apply(&second, &options, &allowed).map_err(broken("the second apply"))?;
        let after = self.read(&second.topology.vhost).map_err(broken("reading"))?;
        if !open.is_empty() {
            add(&mut counts, "blocked pairs");
            return match report {
                Some(_) => Err(("a blocked plan", "it was applied".to_owned())),
                None if after != *before => Err(("a blocked plan", difference(before, &after))),
                None => Ok(Some(counts)),
            };
        }
        complete("the second apply", report)?;
        add(&mut counts, "applied pairs");
        count_applied(&mut counts, &planned);
        if foreseen != after {
            return Err(("what the steps lead to", difference(&foreseen, &after)));
        }
        untouched(&planned.snapshot, &after, &second, &options)?;
        let again = self.plan(&second, &options).map_err(broken("reading"))?;
        empty("the second spec's second plan", &again.plan)?;
        messages(&planned, &self.runtime.block_on(self.broker.activity(&after.vhost)).map_err(broken("reading"))?)?;
        Ok(Some(counts))
    }
}

fn plan_of(snapshot: &Snapshot, desired: &Arc<Desired>, activity: &Activity, options: &Options) -> Plan {
    let context = PlanContext {
        current: &snapshot.topology,
        desired,
        activity,
        properties_keys: &snapshot.properties_keys,
        untouchable: &snapshot.untouchable,
        lacks_auto_delete: &snapshot.lacks_auto_delete,
        records: &RecordFacts::default(),
        profile: &snapshot.profile,
    };
    let target = Target {
        url: String::new(),
        cluster: snapshot.cluster.clone(),
        product: snapshot.product.clone(),
        version: snapshot.profile.version.to_string(),
    };
    assemble(target, options.clone(), None, vec![plan_vhost(&context, options)])
}

/// Returns the spec as JSON, which is valid YAML.
pub(super) fn text_of(spec: &Value, vhost: &str) -> String {
    let mut spec = spec.clone();
    spec["vhost"] = vhost.into();
    serde_json::to_string_pretty(&spec).unwrap()
}

fn desired(spec: &Value, vhost: &Vhost<'_>) -> Option<Arc<Desired>> {
    let file = SourceFile { name: "spec".to_owned(), text: text_of(spec, vhost.name()) };
    let specs = parse(&[file], &Variables::new()).ok()?.vhosts;
    let profile = BrokerProfile::of(vhost.node().version().parse().unwrap());
    let expansion = expand(specs.first()?, &profile).ok()?;
    Some(Arc::new(Desired { topology: expansion.topology, scope: expansion.scope, sources: Vec::new() }))
}

fn kind(word: &str) -> ObjectKind {
    match word {
        "exchanges" => ObjectKind::Exchange,
        "queues" => ObjectKind::Queue,
        "bindings" => ObjectKind::Binding,
        _ => ObjectKind::Policy,
    }
}

/// Creates the unmanaged objects, and waits until the broker lists them. The consumers exist until the returned value
/// is dropped.
fn create_unmanaged(
    objects: &Value,
    vhost: &Vhost<'_>,
) -> Option<(crate::support::Amqp, Vec<crate::support::amqp::Held>)> {
    make_live(vhost, objects);
    let http: Http = vhost.http();
    let mut counts = Vec::new();
    for (queue, count) in objects["messages"].as_object().unwrap() {
        let count = usize::try_from(count.as_u64().unwrap()).unwrap();
        counts.push((queue.clone(), count));
    }
    fill(vhost, &counts);
    let (int32, eaten) = (objects["int32"].as_array().unwrap(), objects["consumers"].as_array().unwrap());
    let mut held = None;
    if !int32.is_empty() || !eaten.is_empty() {
        let amqp = vhost.amqp();
        for binding in int32 {
            let text = |key: &str| binding[key].as_str().unwrap();
            amqp.bind_queue(text("source"), text("destination"), "int32", &[("n", Argument::LongInt(1))]);
        }
        let consumers = eaten.iter().map(|queue| amqp.hold(queue.as_str().unwrap(), 0)).collect();
        held = Some((amqp, consumers));
    }
    until("every consumer to be listed with its peer", || {
        // A node that has just started may respond with 500.
        let listed = Some(http.get(&vhost.path("consumers", &[]))).filter(|answer| answer.status != 500)?;
        let listed = listed.expect_status(200);
        let known = |entry: &&Value| entry["channel_details"]["peer_port"].is_number();
        (listed.as_array().unwrap().iter().filter(known).count() == eaten.len()).then_some(())
    });
    until_counted(vhost, &counts);
    held
}

fn complete(check: &'static str, report: Option<Report>) -> Checked<()> {
    let Some(report) = report else { return Err((check, "it was refused".to_owned())) };
    if report.is_complete() {
        return Ok(());
    }
    let failed: Vec<String> =
        report.failed.iter().map(|failed| format!("{}: {}", failed.step.address, failed.error)).collect();
    Err((check, failed.join("\n")))
}

fn empty(check: &'static str, plan: &Plan) -> Checked<()> {
    if plan.is_empty() {
        return Ok(());
    }
    let changes = plan.vhosts[0].changes.iter().map(|change| format!("{:?} {}", change.kind, change.address));
    let blocks = plan.blocks().map(|block| format!("{}: {}", block.address, block.text));
    Err((check, changes.chain(blocks).collect::<Vec<_>>().join("\n")))
}

fn same_bytes(one: &Planned, other: &Planned, desired: &Arc<Desired>, options: &Options) -> Checked<()> {
    let bytes = |plan: &Plan| serde_json::to_string_pretty(plan).unwrap();
    let first = bytes(&one.plan);
    if first != bytes(&plan_of(&one.snapshot, desired, &one.activity, options)) {
        return Err(("planning twice from one reading", first));
    }
    if first != bytes(&other.plan) {
        return Err(("planning twice", format!("{first}\n--- and\n{}", bytes(&other.plan))));
    }
    Ok(())
}

fn difference(expected: &Topology, found: &Topology) -> String {
    let lines = |topology: &Topology| -> BTreeSet<String> {
        let exchanges = topology.exchanges.iter().map(|object| format!("{object:?}"));
        let queues = topology.queues.iter().map(|object| format!("{object:?}"));
        let policies = topology.policies.iter().map(|object| format!("{object:?}"));
        let bindings = topology.bindings.iter().map(ToString::to_string);
        exchanges.chain(queues).chain(policies).chain(bindings).collect()
    };
    let (expected, found) = (lines(expected), lines(found));
    let missing = expected.difference(&found).map(|line| format!("- {line}"));
    let surplus = found.difference(&expected).map(|line| format!("+ {line}"));
    missing.chain(surplus).collect::<Vec<_>>().join("\n")
}

fn end(binding: &Binding) -> ObjectId {
    match &binding.destination {
        Destination::Queue(name) => ObjectId::Queue(name.clone()),
        Destination::Exchange(name) => ObjectId::Exchange(name.clone()),
    }
}

/// Checks that only declared, removed or pruned objects differ. Does not use topo's own comparison.
fn untouched(snapshot: &Snapshot, after: &Topology, desired: &Arc<Desired>, options: &Options) -> Checked<()> {
    let before = &snapshot.topology;
    let (desired, scope) = (&desired.topology, &desired.scope);
    let may_go = |id: &ObjectId, declared: bool| {
        let name = id.name().unwrap_or_default();
        let asked = scope.removed.contains(id) || scope.owns(name) && options.prune.contains(&id.kind());
        asked && !declared && !scope.protects(name) && !scope.ignores(name) && !scope.external.contains(id)
    };
    let wrong = |what: &str, id: &ObjectId| Err(("unmanaged objects", format!("{id} {what}")));
    let mut gone = BTreeSet::new();
    for (name, exchange) in &before.exchanges {
        let id = ObjectId::Exchange(name.clone());
        let declared = desired.exchanges.contains_key(name);
        match after.exchanges.get(name) {
            None => {
                // An auto-delete exchange was deleted with its last binding; the bindings are checked below.
                let unused = exchange.auto_delete && before.bindings.iter().any(|binding| binding.source == *name);
                let asked = may_go(&id, declared) && !snapshot.untouchable.contains(&id);
                if !unused && !asked {
                    return wrong("was deleted", &id);
                }
                gone.insert(id);
            }
            Some(now) if now != exchange && (!declared || scope.protects(name.as_str())) => {
                return wrong("was changed", &id);
            }
            Some(_) => {}
        }
    }
    for (name, queue) in &before.queues {
        let id = ObjectId::Queue(name.clone());
        let declared = desired.queues.contains_key(name);
        match after.queues.get(name) {
            None if may_go(&id, declared) && !snapshot.untouchable.contains(&id) => drop(gone.insert(id)),
            None => return wrong("was deleted", &id),
            Some(now) if now != queue && (!declared || scope.protects(name.as_str())) => {
                return wrong("was changed", &id);
            }
            Some(_) => {}
        }
    }
    for (name, policy) in &before.policies {
        let id = ObjectId::Policy(name.clone());
        let declared = desired.policies.contains_key(name);
        match after.policies.get(name) {
            None if may_go(&id, declared) => {}
            None => return wrong("was deleted", &id),
            Some(now) if now != policy && !declared => return wrong("was changed", &id),
            Some(_) => {}
        }
    }
    for binding in before.bindings.difference(&after.bindings) {
        let id = ObjectId::Binding(binding.clone());
        let source = ObjectId::Exchange(binding.source.clone());
        let destination = end(binding);
        let declared = match &binding.destination {
            Destination::Queue(name) => desired.queues.contains_key(name),
            Destination::Exchange(name) => desired.exchanges.contains_key(name),
        };
        let seen = !scope.ignores(binding.source.as_str()) && !scope.ignores(binding.destination.name());
        let pruned = options.prune.contains(&ObjectKind::Binding)
            && declared
            && scope.owns(binding.destination.name())
            && !scope.external.contains(&source)
            && !desired.bindings.contains(binding);
        let asked = seen && !snapshot.untouchable.contains(&id) && (pruned || scope.removed.contains(&id));
        if !asked && !gone.contains(&source) && !gone.contains(&destination) {
            return wrong("was lost", &id);
        }
    }
    let new_bindings = after.bindings.difference(&before.bindings).find(|binding| !desired.bindings.contains(*binding));
    let new_exchanges = after
        .exchanges
        .keys()
        .find(|name| !before.exchanges.contains_key(*name) && !desired.exchanges.contains_key(*name));
    let new_queues =
        after.queues.keys().find(|name| !before.queues.contains_key(*name) && !desired.queues.contains_key(*name));
    match (new_bindings, new_exchanges, new_queues) {
        (None, None, None) => Ok(()),
        (binding, exchange, queue) => {
            Err(("an unexpected object", format!("{binding:?} {exchange:?} {queue:?} is new")))
        }
    }
}

/// Checks that queues that were not recreated keep their messages, except messages that an allowed policy drops.
fn messages(planned: &Planned, now: &Activity) -> Checked<()> {
    let part = &planned.plan.vhosts[0];
    let affected: BTreeSet<QueueName> = part
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::DeleteQueue { name, .. } => Some(name.clone()),
            Action::PutVhost { .. }
            | Action::DeclareExchange { .. }
            | Action::PutTopicPermission { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. }
            | Action::Bind { .. }
            | Action::Unbind { .. }
            | Action::DeleteExchange { .. }
            | Action::DeletePolicy { .. }
            | Action::PutRecord { .. }
            | Action::DeleteRecord { .. }
            | Action::MoveMessages { .. } => None,
        })
        .collect();
    for (name, activity) in &planned.activity.queues {
        let dropped = part.hazards.iter().any(|hazard| {
            hazard.kind == HazardKind::MessageDrop && hazard.address.as_str().ends_with(&format!("/{name}"))
        });
        let found = now.queues.get(name).and_then(|queue| queue.messages);
        if !affected.contains(name) && !dropped && name.as_str() != LOCK_QUEUE && found != activity.messages {
            return Err(("the messages", format!("{name}: {:?} before, {found:?} now", activity.messages)));
        }
    }
    Ok(())
}

fn add(counts: &mut Counts, what: impl Into<String>) {
    *counts.entry(what.into()).or_default() += 1;
}

/// Counts the verdicts of a plan, even if it is not applied.
fn count_plan(counts: &mut Counts, planned: &Planned, desired: &Arc<Desired>) {
    let Planned { snapshot, plan, .. } = planned;
    for change in diff(&snapshot.topology, &desired.topology, &desired.scope) {
        if let Change::Alter { before, after, fields } = change {
            for field in &fields {
                let verdict = verdict(field, &before, &after, &snapshot.profile);
                add(counts, format!("verdict {verdict}"));
            }
        }
    }
    for hazard in plan.hazards() {
        add(counts, format!("hazard {}", hazard.kind));
    }
}

/// Counts the executed steps.
fn count_applied(counts: &mut Counts, planned: &Planned) {
    let part = &planned.plan.vhosts[0];
    for change in &part.changes {
        let Some(id) = change.id() else { continue };
        match (change.kind, &id) {
            (ChangeKind::Recreate, id) => add(counts, format!("recreated {}s", id.kind())),
            (ChangeKind::Create, ObjectId::Binding(binding)) => match binding.destination {
                Destination::Exchange(_) => add(counts, "bindings between exchanges created"),
                Destination::Queue(_) => add(counts, "bindings created"),
            },
            (kind, id) => add(counts, format!("{kind:?} {}", id.kind()).to_lowercase()),
        }
        let kept = change.kept.iter().flat_map(|kept| &kept.unmanaged);
        kept.for_each(|_| add(counts, "unmanaged bindings kept over a recreation"));
    }
    for step in &part.steps {
        if let Action::Bind { binding } = &step.action
            && binding.destination.name().ends_with(".topo.keep")
        {
            add(counts, "auto-delete sources kept");
        }
        if let (Action::Bind { binding }, Some(_)) = (&step.action, &step.recreate)
            && matches!(binding.destination, Destination::Exchange(_))
        {
            add(counts, "bindings between exchanges restored");
        }
    }
    let typed = planned.snapshot.topology.bindings.iter().filter(|binding| binding.routing_key == "int32");
    typed.for_each(|_| add(counts, "bindings with an int32"));
}
