//! Turns differences into planned changes, with verdicts, conflicts, hazards and blocks. `order` orders the steps.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{
    self, ChangeKind, ClusterPlan, Desired, Options, Plan, PlannedChange, Summary, Target, VhostPlan,
};
use super::{
    changes_by_kind, clients, compare_routing, conflict, deletions, effects, externals, fingerprint, keeps, links,
    lockout, migrate, old_bindings, optional_activity, order, permissions, records, recreate, retries, simulate,
    super_streams, target, topic_permissions, transient, users, wiring,
};
use crate::diff::{Change, diff};
use crate::model::naming::run_queue;
use crate::model::{Address, Object, ObjectId, OnConflict, RecordKind, Topology};
use crate::rabbitmq::{BrokerProfile, with_default_type};
use std::borrow::Cow;
use std::sync::Arc;

/// Returns true if the plan for the vhost may depend on message or consumer counts. topo reads the counts only in that
/// case.
pub fn needs_activity(current: &Topology, desired: &Desired, profile: &BrokerProfile, options: &Options) -> bool {
    let desired = &*wiring::adapt(desired, current, profile, options);
    migrate::has_interrupted_migration(current)
        || retries::has_leftover_retries(current, desired)
        || diff(current, &desired.topology, &desired.scope).iter().any(|change| match change {
            Change::Create(object) => matches!(object, Object::Policy(..)) || is_operator_policy(object),
            Change::Alter { after, .. } => !matches!(after, Object::Record(_)) || is_operator_policy(after),
            Change::Delete { object: object @ Object::Record(_), .. } => is_operator_policy(object),
            Change::Delete { object, .. } => !matches!(object, Object::Binding(_)),
        })
}

/// Returns true for an operator policy, the only kind of record whose hazards depend on message or consumer counts.
fn is_operator_policy(object: &Object) -> bool {
    matches!(object, Object::Record(record) if record.id.kind == RecordKind::OperatorPolicy)
}

/// Returns true if the plan may move messages, regardless of the contents of the queues. topo checks the transports
/// only in that case.
pub fn moves_messages(current: &Topology, desired: &Desired, profile: &BrokerProfile, options: &Options) -> bool {
    let desired = &*wiring::adapt(desired, current, profile, options);
    let migrates = |change: &Change| match change {
        Change::Alter { after: after @ Object::Queue(..), .. } => {
            let id = after.id();
            let address = Address::of(&current.vhost, &id);
            conflict::on_conflict(&desired.scope, options, &id, &address) == OnConflict::Migrate
        }
        Change::Alter { .. } | Change::Create(_) | Change::Delete { .. } => false,
    };
    migrate::has_interrupted_migration(current) || diff(current, &desired.topology, &desired.scope).iter().any(migrates)
}

/// Computes the plan for one vhost.
pub fn plan_vhost(context: &PlanContext<'_>, options: &Options) -> VhostPlan {
    let readable = records::without_unreadable(context);
    let mut part = plan_readable(&PlanContext { desired: &readable, ..*context }, options);
    if !context.records.unreadable.is_empty() {
        part.desired = Arc::clone(context.desired);
        records::block_unreadable(&mut part, context, options);
    }
    part
}

/// Computes the plan for one vhost whose desired records are all readable.
fn plan_readable(context: &PlanContext<'_>, options: &Options) -> VhostPlan {
    // Precondition: the spec is expanded. The first pass adapts the spec to the current tiers, and the second pass
    // adapts the spec to the current policies.
    let adapted = retries::adapt(context);
    let adapted = wiring::adapt(&adapted, context.current, context.profile, options);
    let desired = match &adapted {
        Cow::Borrowed(same) if std::ptr::eq(*same, &raw const **context.desired) => Arc::clone(context.desired),
        Cow::Borrowed(_) | Cow::Owned(_) => Arc::new(adapted.into_owned()),
    };
    let context = &PlanContext { desired: &desired, ..*context };
    let PlanContext { current, .. } = context;
    let mut builder = PlanBuilder::default();
    if options.abort.is_empty() {
        plan_changes(&mut builder, context, options);
    } else {
        migrate::abort(&mut builder, context, options);
    }
    // Precondition: the changes and migrations are final.
    let steps = order::steps(&mut builder, context, options);
    // Precondition: the steps are ordered, because only the ordered steps show which exchanges are deleted.
    topic_permissions::hazards(&mut builder, context, &steps);
    lockout::check(&mut builder, context, &steps);
    lockout::check_users(&mut builder, context);
    if options.abort.is_empty() {
        simulate::check(&mut builder, context, options, &steps);
    }
    let routing = compare_routing::compare(&mut builder, context, &steps);
    let PlanBuilder { changes, unmanaged, infos, blocks, mut hazards, migrations, interrupted } = builder;
    // Hazards of the same kind keep their order.
    hazards.sort_by_key(|hazard| hazard.kind.severity());
    let topology = &desired.topology;
    VhostPlan {
        vhost: current.vhost.clone(),
        changes,
        unmanaged,
        infos,
        blocks,
        hazards,
        interrupted,
        migrations,
        routing,
        steps,
        compared_objects: 1
            + topology.exchanges.len()
            + topology.queues.len()
            + topology.policies.len()
            + topology.records.len(),
        compared_bindings: topology.bindings.len(),
        desired,
    }
}

/// Plans the changes, with their hazards, blocks and notes. A comment states the precondition of each group of passes.
fn plan_changes(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    let PlanContext { current, desired, .. } = context;
    let mut removals = Vec::new();
    let changes = diff(current, &with_default_types(&desired.topology, context.profile), &desired.scope);
    // Reserves the capacity in advance: changes are large, and a growing vector temporarily stores two copies.
    builder.changes.reserve(changes.len());

    // Precondition: the differences are known. A deletion becomes a removal, and any other difference becomes a change.
    for change in changes {
        match change {
            Change::Create(object) => create(builder, context, object),
            Change::Alter { before, after, fields } => {
                conflict::alter(builder, context, options, (before, after), &fields)
            }
            Change::Delete { object, reason } => removals.push((object, reason)),
        }
    }
    // Precondition: the removals are complete. Extracts the removals of retry objects, which topo retires instead.
    retries::retire(builder, context, options, &mut removals);
    // Precondition: the removals contain no retries.
    deletions::plan(builder, context, options, removals);

    // Precondition: all differences are changes or notes. These passes add blocks and notes, but no changes.
    externals::check(builder, context);
    report_missing_arguments(builder, context);
    keeps::report_orphans(builder, context);
    block_exclusive_queues(builder, context);
    // Precondition: all other conflicts are known. Adds recreations of exchanges that have no other conflict.
    conflict::restore_auto_delete(builder, context, options);
    // Precondition: all changes to retries are planned, including retirements.
    retries::hazards(builder, context);
    retries::final_target_hazards(builder, context);

    // Precondition: all changes are planned, because a target includes the changes that it requires.
    target::restrict(builder, context, options);
    // Precondition: only targeted changes are left. Drops the migrations of all other queues.
    migrate::keep_planned(builder);
    // Precondition: the plan is restricted. Describes all interrupted migrations, and resumes the targeted migrations.
    migrate::resume(builder, context, options);
    // Precondition: all recreations and binding deletions are planned.
    recreate::drop_undesired_bindings(builder);

    // Precondition: the changes and migrations are final. These passes add hazards, blocks and notes, but no changes.
    deletions::block_unmanaged_auto_delete(builder, context);
    super_streams::check(builder, context, options);
    block_running_dlq_commands(builder, context);
    records::block_missing_owners(builder, context, options);
    optional_activity::shovel_hazards(builder, context);
    clients::hazards(builder, context);
    transient::hazards(builder, context);
    optional_activity::report_unqueried_queues(builder, context);
    old_bindings::report(builder, context);
    effects::hazards(builder, context, options);
    optional_activity::limit_hazards(builder, context);
    permissions::hazards(builder, context);
    users::check(builder, context);
    links::hazards(builder, context);
    links::block_disabled_plugins(builder, context);
    links::block_excluded(builder, context);
    deletions::last_binding_hazards(builder, context);
    deletions::mass_delete_hazard(builder, context);
}

/// Combines the plans for the cluster and for all vhosts into one document, with a summary and a fingerprint.
pub fn assemble(target: Target, options: Options, cluster: Option<ClusterPlan>, vhosts: Vec<VhostPlan>) -> Plan {
    let mut plan = Plan {
        format_version: document::FORMAT_VERSION,
        target,
        options,
        fingerprint: String::new(),
        summary: Summary::default(),
        cluster,
        vhosts,
        content_hash: String::new(),
    };
    plan.summary = changes_by_kind::summary(plan.parts());
    plan.fingerprint = fingerprint::fingerprint(&plan);
    plan
}

/// Returns the topology as the broker stores it, with the default type set on each queue without a type. An expanded
/// spec always sets the type, but a definitions file may omit it.
fn with_default_types<'a>(topology: &'a Topology, profile: &BrokerProfile) -> Cow<'a, Topology> {
    let mut stored = Cow::Borrowed(topology);
    for (name, queue) in &topology.queues {
        if let Cow::Owned(complete) = with_default_type(queue, profile) {
            stored.to_mut().queues.insert(name.clone(), complete);
        }
    }
    stored
}

fn create(builder: &mut PlanBuilder, context: &PlanContext<'_>, object: Object) {
    let planned = context.change(ChangeKind::Create, None, Some(object));
    conflict::refuse_invalid(builder, context, &planned);
    builder.changes.push(planned);
}

/// Reports arguments that topo now sets and that an existing queue does not have. Such a difference does not justify
/// recreating the queue.
fn report_missing_arguments(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    for (name, arguments) in &context.desired.scope.optional {
        let Some(live) = context.current.queues.get(name) else { continue };
        let lacks = |argument: &&String| !live.arguments.contains_key(*argument);
        let missing: Vec<&str> = arguments.iter().filter(lacks).map(String::as_str).collect();
        if !missing.is_empty() {
            let text = format!(
                "it was created without {}, which topo now sets; topo will not change it",
                missing.join(" and ")
            );
            builder.info(&context.address(&ObjectId::Queue(name.clone())), text);
        }
    }
}

/// Blocks the deletion and the recreation of a queue while `topo dlq` is holding or moving its messages. The command
/// refuses to start while an apply holds the vhost's lock.
fn block_running_dlq_commands(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let is_removed = |kind| matches!(kind, ChangeKind::Delete | ChangeKind::Recreate);
    let removed = builder.changes.iter().filter(|change| is_removed(change.kind)).filter_map(PlannedChange::id);
    let running: Vec<ObjectId> = removed
        .filter(|id| match id {
            ObjectId::Queue(name) => context.current.queues.contains_key(&run_queue(name)),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => false,
        })
        .collect();
    for id in running {
        let remedy = "wait until the command ends, then run this command again".to_owned();
        builder.block(&context.address(&id), format!("a `topo dlq` command is using {id}"), Some(remedy));
    }
}

/// Blocks the plan if a desired queue exists and is exclusive to a connection. The broker rejects every declaration
/// from other connections, even an identical declaration.
fn block_exclusive_queues(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    for name in context.desired.topology.queues.keys() {
        let id = ObjectId::Queue(name.clone());
        let address = context.address(&id);
        let is_exclusive = context.current.queues.get(name).is_some_and(|queue| queue.exclusive);
        if is_exclusive && !builder.blocks.iter().any(|block| block.address == address) {
            let remedy = "wait until that connection is closed, or use a different name".to_owned();
            builder.block(
                &address,
                format!("{id} already exists and is exclusive to another connection"),
                Some(remedy),
            );
        }
    }
}
