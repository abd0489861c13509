//! Determines the effects of changed policies on existing queues and exchanges: the governing policy, the effective
//! settings, and the messages that the broker would drop.

mod infos;
mod retry_hazards;
mod value_hazard;
mod wiring;

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::PlannedChange;
use super::document::{ChangeKind, Options};
use super::hazard::HazardKind;
use super::migrate::Migration;
use super::wiring::wired_queues;
use crate::model::naming::MigrationNames;
use crate::model::units::with_unit;
use crate::model::{
    Exchange, ExchangeName, Object, ObjectId, ObjectKind, Policy, PolicyName, Queue, QueueName, RecordKind, naming,
};
use crate::rabbitmq::WIRING_KEYS;
use crate::rabbitmq::effective::effective_alternate;
use crate::rabbitmq::policy_keys::POLICY_KEYS;
use crate::rabbitmq::profile::predeclared_in_every_vhost;
use crate::rabbitmq::{ActivePolicies, EffectiveSettings, Governed, Governing, Named, Policies, Source};
use std::collections::{BTreeMap, BTreeSet};
use value_hazard::ValueHazard;

/// Adds the hazards of policies that the plan creates, changes or deletes, and of policies that govern new or recreated
/// objects.
pub(super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    let version = context.profile.version;
    let (policies, affected) = policies_after(builder, context);
    let operator_before = context.operator_policies();
    let (operator_after, operator_affected) = operator_policies_after(builder, &operator_before);
    let wired: BTreeSet<&PolicyName> = wired_queues(&context.desired.topology).map(|wired| wired.name).collect();
    let sides = Sides {
        context,
        before: Policies::new(&context.current.policies, version),
        after: Policies::new(&policies, version),
        without_wiring: Policies::new(policies.iter().filter(|(name, _)| !wired.contains(name)), version),
        operator_before: Policies::new(&operator_before, version),
        operator: Policies::new(&operator_after, version),
    };
    let changes: BTreeMap<ObjectId, PlannedChange> = builder
        .changes
        .iter()
        .filter(|change| {
            matches!(change.after.as_ref().or(change.before.as_ref()), Some(Object::Queue(..) | Object::Exchange(..)))
        })
        .filter_map(|change| Some((change.id()?, change.clone())))
        .collect();
    infos::report_unmanaged_policies(builder, &sides, &changes);
    retry_hazards::add_generated_queue_hazards(builder, &sides, &changes);
    retry_hazards::add_retry_hazards(builder, &sides, options);
    wiring::check(builder, &sides, options);
    infos::report_affected_policies(builder, context, &sides.after, &affected, ObjectKind::Policy);
    infos::report_affected_policies(builder, context, &sides.operator, &operator_affected, OPERATOR_POLICY);
    let is_unaffected = affected.is_empty() && operator_affected.is_empty();
    for (name, queue) in &context.current.queues {
        let id = ObjectId::Queue(name.clone());
        match changes.get(&id).map(|change| (change.kind, &change.after)) {
            Some((ChangeKind::Delete, _)) => {}
            Some((ChangeKind::Recreate, Some(Object::Queue(_, made)))) => {
                sides.recreated_queue_hazard(builder, name, queue, made)
            }
            Some(_) | None if is_unaffected || queue.is_created_by_topo() => {}
            Some(_) | None => sides.existing_queue_hazards(builder, name, queue),
        }
    }
    for migration in builder.migrations.clone() {
        sides.returned_message_hazards(builder, &migration);
    }
    if affected.is_empty() {
        return;
    }
    let plain = Exchange {
        kind: String::new(),
        durable: true,
        auto_delete: false,
        internal: false,
        arguments: crate::model::Arguments::new(),
    };
    // A topology does not contain the predeclared exchanges, but policies govern these exchanges.
    let predeclared: Vec<ExchangeName> = predeclared_in_every_vhost().collect();
    for (name, exchange) in predeclared.iter().map(|name| (name, &plain)).chain(&context.current.exchanges) {
        let is_deleted = changes.get(&ObjectId::Exchange(name.clone())).is_some_and(|it| it.kind == ChangeKind::Delete);
        if !is_deleted && !exchange.is_created_by_topo() {
            sides.exchange_hazards(builder, name, exchange);
        }
    }
}

/// Returns the policies in the vhost after the plan, and the names of the policies that the plan creates, changes or
/// deletes.
fn policies_after(
    builder: &PlanBuilder,
    context: &PlanContext<'_>,
) -> (BTreeMap<PolicyName, Policy>, BTreeSet<PolicyName>) {
    let mut after = context.current.policies.clone();
    let mut affected = BTreeSet::new();
    for change in &builder.changes {
        match (change.kind, &change.before, &change.after) {
            (ChangeKind::Create | ChangeKind::Change, _, Some(Object::Policy(name, policy))) => {
                after.insert(name.clone(), policy.clone());
                affected.insert(name.clone());
            }
            (ChangeKind::Delete, Some(Object::Policy(name, _)), _) => {
                after.remove(name);
                affected.insert(name.clone());
            }
            _ => {}
        }
    }
    (after, affected)
}

/// Returns the operator policies in the vhost after the plan, and the names of the operator policies that the plan
/// creates, changes or deletes.
fn operator_policies_after(
    builder: &PlanBuilder,
    before: &BTreeMap<PolicyName, Policy>,
) -> (BTreeMap<PolicyName, Policy>, BTreeSet<PolicyName>) {
    let mut after = before.clone();
    let mut affected = BTreeSet::new();
    for change in &builder.changes {
        let policy = |object: &Option<Object>| object.as_ref().and_then(Object::operator_policy);
        let Some((name, _)) = policy(&change.after).or_else(|| policy(&change.before)) else { continue };
        match policy(&change.after) {
            Some((_, policy)) => drop(after.insert(name.clone(), policy)),
            None => drop(after.remove(&name)),
        }
        affected.insert(name);
    }
    (after, affected)
}

/// The policies before and after the plan.
struct Sides<'a> {
    context: &'a PlanContext<'a>,
    before: Policies<'a>,
    after: Policies<'a>,
    /// The policies after the plan, without the policies that wire dead-lettering. They determine which policy would
    /// govern a queue if no policy wired it.
    without_wiring: Policies<'a>,
    /// The operator policies before the plan.
    operator_before: Policies<'a>,
    /// The operator policies after the plan.
    operator: Policies<'a>,
}

const OPERATOR_POLICY: ObjectKind = ObjectKind::Record(RecordKind::OperatorPolicy);

impl<'a> Sides<'a> {
    fn values(&self, queue: &Queue, policy: Option<Named<'_>>, operator: Option<Named<'_>>) -> EffectiveSettings {
        EffectiveSettings::of(queue, policy, operator, self.context.profile)
    }

    /// Returns the policies that govern queues before the plan.
    fn governors_before(&self) -> ActivePolicies<'_, 'a> {
        ActivePolicies::of(&self.before, self.context.profile).with_operators(&self.operator_before)
    }

    /// Returns the policies that govern queues after the plan.
    fn governors(&self) -> ActivePolicies<'_, 'a> {
        ActivePolicies::of(&self.after, self.context.profile).with_operators(&self.operator)
    }

    /// Describes the unmanaged policy or the operator policy that sets an effective setting of a queue; `None` if there
    /// is no such policy. The policy that wires the queue may repeat a setting of an unmanaged policy. In that case,
    /// describes the displaced unmanaged policy.
    fn unmanaged_policy(&self, name: &QueueName, queue: &Queue, key: &str, source: &Source) -> Option<String> {
        let declared = &self.context.desired.topology.policies;
        match source {
            Source::OperatorPolicy(name) => Some(format!("operator policy {name}")),
            Source::Policy(policy) if !declared.contains_key(policy) => Some(format!("policy {policy}")),
            Source::Policy(policy) if *policy == naming::dead_letter_policy(name) && !WIRING_KEYS.contains(&key) => {
                let displaced = self.without_wiring.governing(name.as_str(), queue.into()).likely()?;
                (!declared.contains_key(displaced.name)).then(|| format!("policy {}", displaced.name))
            }
            Source::Policy(_) | Source::Argument | Source::Default => None,
        }
    }

    fn existing_queue_hazards(&self, builder: &mut PlanBuilder, name: &QueueName, queue: &Queue) {
        let kind = Governed::from(queue);
        let (was, is) = (self.before.governing(name.as_str(), kind), self.after.governing(name.as_str(), kind));
        let bounds =
            (self.operator_before.governing(name.as_str(), kind), self.operator.governing(name.as_str(), kind));
        if was == is && bounds.0 == bounds.1 {
            return;
        }
        let id = ObjectId::Queue(name.clone());
        let address = self.context.address(&id);
        if was.names() != is.names() || bounds.0.names() != bounds.1.names() {
            let shifts = [("", shift(&was, &is)), ("operator policy: ", shift(&bounds.0, &bounds.1))];
            let differ = [was.names() != is.names(), bounds.0.names() != bounds.1.names()];
            let shifts = shifts.iter().zip(differ).filter(|(_, differs)| *differs);
            let mut text = shifts.map(|((of, shift), _)| format!("{of}{shift}")).collect::<Vec<_>>().join("; ");
            let before = was.certain().zip(bounds.0.certain());
            if let Some(((was, old), (is, new))) = before.zip(is.certain().zip(bounds.1.certain())) {
                text += &changed_settings(&self.values(queue, was, old), &self.values(queue, is, new));
            }
            builder.hazard(HazardKind::PolicyShift, &address, text, None);
        }
        let live = self.context.live(&id);
        let (pairs, bounds) = (pairs(&was, &is), pairs(&bounds.0, &bounds.1));
        let cases = pairs.len() * bounds.len();
        let mut found: Vec<(ValueHazard, usize)> = Vec::new();
        for (was, is) in pairs {
            for (bound_before, bound) in &bounds {
                let (old, new) = (self.values(queue, was, *bound_before), self.values(queue, is, *bound));
                for hazard in value_hazard::hazards(queue, live, self.context.activity.intervals, &old, &new) {
                    match found.iter_mut().find(|(known, _)| *known == hazard) {
                        Some((_, count)) => *count += 1,
                        None => found.push((hazard, 1)),
                    }
                }
            }
        }
        for (ValueHazard { kind, text, messages }, count) in found {
            let text = if count == cases { text } else { format!("possibly: {text}") };
            builder.hazard(kind, &address, text, messages);
        }
    }

    /// Adds a hazard if a different policy will govern the recreated queue, for example because the queue type changes.
    fn recreated_queue_hazard(&self, builder: &mut PlanBuilder, name: &QueueName, before: &Queue, after: &Queue) {
        let was = self.before.governing(name.as_str(), before.into());
        let is = self.after.governing(name.as_str(), after.into());
        if was.names() != is.names() {
            let address = self.context.address(&ObjectId::Queue(name.clone()));
            builder.hazard(HazardKind::PolicyShift, &address, shift(&was, &is), None);
        }
    }

    /// Adds the hazards for messages that a migration returns to the new queue, including messages that an interrupted
    /// run left in holding queues. The settings in this plan apply to the returned messages, because the queue of the
    /// interrupted run may no longer exist.
    fn returned_message_hazards(&self, builder: &mut PlanBuilder, migration: &Migration) {
        let Migration { queue: name, desired, .. } = migration;
        let address = self.context.address(&ObjectId::Queue(name.clone()));
        let original = migration.old_queue(self.context.current);
        let Some(old) = original.as_ref().or_else(|| self.context.current.queues.get(name)) else { return };
        let held = MigrationNames::of(name);
        let messages = [name.clone(), QueueName::new(held.hold), QueueName::new(held.drained)]
            .into_iter()
            .filter(|queue| self.context.current.queues.contains_key(queue))
            .map(|queue| self.context.live(&ObjectId::Queue(queue)).and_then(|live| live.messages))
            .try_fold(0_u64, |sum, messages| Some(sum + messages?));
        let was = self.governors_before().likely(name, old);
        let new = self.governors().likely(name, desired);
        let mut found = value_hazard::return_hazards(desired, messages, &was, &new);
        if original.is_some() {
            // Policies may have changed since the migration started, and no policy applies to the holding queues.
            for more in value_hazard::overflow_hazards(desired, messages, &self.values(old, None, None), &new) {
                if !found.contains(&more) {
                    found.push(more);
                }
            }
        }
        for ValueHazard { kind, text, messages } in found {
            builder.hazard(kind, &address, text, messages);
        }
    }

    /// Adds the hazards of a changed alternate exchange. RabbitMQ itself defines no other policy key for exchanges.
    fn exchange_hazards(&self, builder: &mut PlanBuilder, name: &ExchangeName, exchange: &Exchange) {
        let was = self.before.governing(name.as_str(), Governed::Exchange);
        let is = self.after.governing(name.as_str(), Governed::Exchange);
        if was == is {
            return;
        }
        let address = self.context.address(&ObjectId::Exchange(name.clone()));
        let pairs = pairs(&was, &is);
        let prefix = if pairs.len() == 1 { "" } else { "possibly: " };
        let mut reported = BTreeSet::new();
        for (was, is) in pairs {
            let alternate = |policy| effective_alternate(exchange, policy).map(|found| found.value);
            let (old, new) = (alternate(was), alternate(is));
            if old == new || !reported.insert((old.clone(), new.clone())) {
                continue;
            }
            let names = shift_of(was, is);
            match (old, new) {
                // The effect on messages determines the kind of the hazard, as for a removed dead-letter exchange.
                (Some(old), None) => {
                    let text = format!(
                        "{prefix}its alternate exchange ({old}) will be unset: from then on, unroutable messages will \
                         be dropped"
                    );
                    builder.hazard(HazardKind::MessageDrop, &address, text, None);
                }
                (old, Some(new)) => {
                    let old = old.map_or_else(|| "absent".to_owned(), |old| old.to_string());
                    let text = format!(
                        "{prefix}{names}alternate-exchange {old} → {new}: from then on, the new alternate exchange \
                         will receive unroutable messages"
                    );
                    builder.hazard(HazardKind::PolicyShift, &address, text, None);
                }
                (None, None) => {}
            }
        }
    }
}

/// Pairs each policy that may govern the object before the plan with each policy that may govern it after the plan. Two
/// different policies are not paired if both may govern the object before the plan and both may govern it after the
/// plan.
fn pairs<'a>(was: &Governing<'a>, is: &Governing<'a>) -> Vec<(Option<Named<'a>>, Option<Named<'a>>)> {
    let (old_names, new_names) = (was.names(), is.names());
    let name = |named: &Option<Named<'a>>| named.map(|named| named.name);
    let mut pairs = Vec::new();
    for old in was.possible() {
        for new in is.possible() {
            let both_stay = new_names.contains(&name(old)) && old_names.contains(&name(new));
            if name(old) == name(new) || !both_stay {
                pairs.push((*old, *new));
            }
        }
    }
    pairs
}

fn shift(was: &Governing<'_>, is: &Governing<'_>) -> String {
    let list = |governing: &Governing<'_>| {
        let names: Vec<String> = governing.possible().iter().map(|named| policy(*named)).collect();
        names.join(" or ")
    };
    format!("governed by {} → {}", list(was), list(is))
}

fn shift_of(was: Option<Named<'_>>, is: Option<Named<'_>>) -> String {
    let differs = was.map(|named| named.name) != is.map(|named| named.name);
    if differs { format!("governed by {} → {}: ", policy(was), policy(is)) } else { String::new() }
}

fn policy(named: Option<Named<'_>>) -> String {
    named.map_or_else(|| "no policy".to_owned(), |named| named.name.to_string())
}

/// Describes the changed settings: `: max-length 1000 → absent`. Returns an empty string if no setting changes.
fn changed_settings(old: &EffectiveSettings, new: &EffectiveSettings) -> String {
    let text = |key: &str, values: &EffectiveSettings| {
        values.get(key).map_or_else(|| "absent".to_owned(), |found| with_unit(key, &found.value))
    };
    let differs = |key: &&str| old.get(key).map(|it| &it.value) != new.get(key).map(|it| &it.value);
    let affecting = POLICY_KEYS.iter().filter(|key| key.affects_messages).map(|key| key.name);
    let settings: Vec<String> =
        affecting.filter(differs).map(|key| format!("{key} {} → {}", text(key, old), text(key, new))).collect();
    if settings.is_empty() { String::new() } else { format!(": {}", settings.join(", ")) }
}
