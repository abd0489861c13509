//! Tests which retry objects a plan retires and keeps, and in which steps.

use super::super::simulate::run;
use super::Options;
use crate::expand::expand;
use crate::model::retry::count_by_kind;
use crate::model::{Destination, Glob, ObjectId, ObjectKind, Topology, Vhost};
use crate::plan::action::Action;
use crate::plan::activity::{Activity, RecordFacts};
use crate::plan::context::PlanContext;
use crate::plan::document::{Desired, Step, VhostPlan};
use crate::plan::hazard::HazardKind;
use crate::plan::planner::plan_vhost;
use crate::rabbitmq::BrokerProfile;
use crate::spec::{SourceFile, Variables, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod other_owners;
mod routing_between_steps;

const LADDER: &str = "retry: {delays: [5s, 30s]}";
const REPUBLISH: &str = "retry: {strategy: republish, delays: [5s, 30s]}";

fn profile() -> BrokerProfile {
    BrokerProfile::of("4.0.5".parse().unwrap())
}

fn desired(text: &str) -> Desired {
    let text = format!("version: 1\nvhost: shop\n{text}");
    let file = SourceFile { name: "topology.yaml".to_owned(), text };
    let specs = parse(&[file], &Variables::new()).unwrap_or_else(|error| panic!("{error}")).vhosts;
    let expansion = expand(&specs[0], &profile()).unwrap_or_else(|error| panic!("{error}"));
    Desired { topology: expansion.topology, scope: expansion.scope, sources: Vec::new() }
}

/// Returns a spec whose `work` queue has these keys. `rest` contains further keys of the spec.
fn work(keys: &str, rest: &str) -> Desired {
    desired(&format!(
        "defaults: {{queue: {{type: quorum}}}}\nqueues:\n  work: {{{keys}, deadLetter: dead}}\n\
         deadLetterQueues: {{dead: {{}}}}\n{rest}"
    ))
}

fn plan_for(live: &Topology, desired: &Desired, targets: &[&str]) -> VhostPlan {
    let targets = targets.iter().map(|target| Glob::new(*target)).collect();
    plan_with(live, desired, Options { targets, ..Options::default() })
}

fn plan_with(live: &Topology, desired: &Desired, options: Options) -> VhostPlan {
    let (activity, keys, untouchable) = (Activity::default(), BTreeMap::new(), BTreeSet::new());
    let live = Topology { settings: Some(Vhost::default()), ..live.clone() };
    let context = PlanContext {
        current: &live,
        desired: &Arc::new(desired.clone()),
        activity: &activity,
        properties_keys: &keys,
        untouchable: &untouchable,
        lacks_auto_delete: &BTreeSet::new(),
        records: &RecordFacts::default(),
        profile: &profile(),
    };
    plan_vhost(&context, &options)
}

/// Summarizes the objects that a plan retires.
fn retirement(live: &Topology, desired: &Desired) -> String {
    let plan = plan_for(live, desired, &[]);
    let defects: Vec<_> = plan.blocks.iter().filter(|block| block.text.contains("defect")).collect();
    assert!(defects.is_empty(), "{defects:?}");
    let retired = plan.changes.iter().filter(|change| change.retires.is_some()).filter_map(|change| change.id());
    count_by_kind(&retired.collect())
}

/// Lists the steps of a plan, one per line, with a blank line between waves.
fn steps(live: &Topology, desired: &Desired) -> String {
    let plan = plan_for(live, desired, &[]);
    assert_eq!(plan.blocks, []);
    let step = |step: &Step| match &step.action {
        Action::Bind { binding } => format!("+ {binding}\n"),
        Action::Unbind { binding, .. } => format!("- {binding}\n"),
        Action::DeclareQueue { name, .. } => format!("+ {name}\n"),
        Action::DeclareExchange { name, .. } => format!("+ {name}\n"),
        Action::DeleteQueue { name, guard } => format!("- {name} if {guard:?}\n"),
        Action::DeleteExchange { name } => format!("- {name}\n"),
        Action::PutTopicPermission { permission } => format!("+ {permission}\n"),
        Action::PutPolicy { name, .. } => format!("+ {name}\n"),
        Action::DeletePolicy { name } => format!("- {name}\n"),
        Action::PutRecord { record, .. } => format!("+ {}\n", record.id),
        Action::DeleteRecord { id } => format!("- {id}\n"),
        Action::PutVhost { .. } => "vhost\n".to_owned(),
        Action::MoveMessages { from, to, .. } => format!("move {from} → {to}\n"),
    };
    let waves = plan.steps.chunk_by(|one, other| one.wave == other.wave);
    waves.map(|wave| wave.iter().map(step).collect::<String>()).collect::<Vec<_>>().join("\n")
}

#[test]
fn undesired_retries_are_retired() {
    for (before, after, expected) in [
        (LADDER, LADDER, ""),
        (LADDER, "retry: {delays: [5s, 30s, 5m]}", ""),
        (LADDER, "retry: {delays: [5s]}", "1 tier queue, 1 binding"),
        (LADDER, "retry: {delays: [5s, 1m]}", "1 tier queue, 1 binding"),
        (REPUBLISH, "retry: {strategy: republish, delays: [5s, 1m]}", "1 tier queue, 1 binding"),
        (LADDER, "retry: none", "7 exchanges, 2 tier queues, 7 bindings"),
        (REPUBLISH, "maxRetries: 3", "4 exchanges, 2 tier queues, 4 bindings"),
        // Both strategies have the same tiers, and share some exchanges.
        (LADDER, REPUBLISH, "3 exchanges, 6 bindings"),
        (REPUBLISH, LADDER, "3 bindings"),
    ] {
        assert_eq!(retirement(&work(before, "").topology, &work(after, "")), expected, "{before} → {after}");
    }
}

#[test]
fn tiers_are_switched_atomically() {
    let live = work("retry: {delays: [5s, 30s]}", "").topology;
    assert_eq!(
        steps(&live, &work("retry: {delays: [1s, 1m, 1h]}", "")),
        "\
+ work.retry.1.1s
+ work.retry.2.1m
+ work.retry.3.1h

+ work.retry ─ work.retry.2 → work.retry.3.1h

+ work.retry.switch ─ work.retry.1 → work.retry.2.1m
+ work.retry.first.switch ─ \"\" → work.retry.1.1s

- work.retry ─ work.retry.1 → work.retry.2.30s
- work.retry.first ─ \"\" → work.retry.1.5s

+ work.retry ─ work.retry.1 → work.retry.2.1m
+ work.retry.first ─ \"\" → work.retry.1.1s

- work.retry.switch ─ work.retry.1 → work.retry.2.1m
- work.retry.first.switch ─ \"\" → work.retry.1.1s

- work.retry.2.30s if Drained

- work.retry.1.5s if Drained
"
    );
}

#[test]
fn retired_retries_are_deleted_entry_first() {
    let keys = |retry: &str| format!("{retry}, deadLetter: {{queue: dead, wiring: policy}}");
    let of = |retry: &str| {
        desired(&format!(
            "defaults: {{queue: {{type: classic}}}}\nqueues: {{work: {{{}}}}}\ndeadLetterQueues: {{dead: {{}}}}\n",
            keys(retry)
        ))
    };
    let (ladder, none) = (of("retry: {delays: [5s]}"), of("retry: none"));
    assert_eq!(
        steps(&ladder.topology, &none),
        "\
+ work.topo.dead-letter

+ work.retry.first.switch ─ \"\" → dead.dlx

- work.retry.first ─ \"\" → work.retry.1.5s

- work.retry.1.5s if Drained

- work.dlx

- work.retry

- work.retry.first

- work.retry.first.switch

- work.retry.over

- work.retry.switch

- work.return
"
    );
    let plan = plan_for(&ladder.topology, &none, &[]);
    let tier = plan.steps.iter().find(|step| matches!(step.action, Action::DeleteQueue { .. })).unwrap().id;
    for step in &plan.steps[4..] {
        assert!(step.after.contains(&tier), "{} waits for the tier", step.address);
    }
    // All retry objects exist before the queue is wired to them.
    let up = steps(&none.topology, &ladder);
    assert!(up.ends_with("work.return ─ \"\" → work\n\n+ work.topo.dead-letter\n"), "{up}");
}

/// A run can be interrupted after any step: the next run executes the remaining steps, and nothing more.
#[test]
fn interrupted_change_is_completed() {
    for (before, after) in [
        (LADDER, "retry: {delays: [1s, 1m, 1h]}"),
        (LADDER, "retry: {delays: [1s]}"),
        (REPUBLISH, "retry: {strategy: republish, delays: [1s, 30s, 1m]}"),
        (REPUBLISH, "retry: {strategy: republish, delays: [30s]}"),
    ] {
        let (live, desired) = (work(before, "").topology, work(after, ""));
        let plan = plan_for(&live, &desired, &[]);
        for done in 0..=plan.steps.len() {
            let between = run(&live, &plan.steps[..done]).unwrap();
            let rest = plan_for(&between, &desired, &[]);
            assert_eq!(rest.blocks, [], "{before} → {after} after {done} steps");
            let end = run(&between, &rest.steps).unwrap();
            assert_eq!(*end, desired.topology, "{before} → {after} after {done} steps");
            assert_eq!(rest.steps.is_empty(), done == plan.steps.len(), "{before} → {after} after {done} steps");
        }
    }
}

#[test]
fn changed_destination_changes_only_bindings() {
    let text = |end: &str| {
        format!(
            "queues: {{work: {{type: quorum, {LADDER}, deadLetter: {end}}}}}\n\
             deadLetterQueues: {{dead: {{type: classic}}, other: {{type: classic}}}}\n"
        )
    };
    let (live, changed) = (desired(&text("dead")).topology, desired(&text("other")));
    assert_eq!(retirement(&live, &changed), "4 bindings");
    let hazards = plan_for(&live, &changed, &[]).hazards;
    let reported: Vec<_> = hazards.iter().map(|hazard| (hazard.kind, hazard.text.as_str())).collect();
    let text = "the dead-lettered messages from queue work will go to other.dlx instead of dead.dlx: a message that is \
                dead-lettered at that moment will go to both";
    assert_eq!(reported, [(HazardKind::Duplicates, text)]);
}

/// The dead-letter exchange of a queue cannot be an exchange that is being retired.
#[test]
fn retired_exchanges_cannot_receive_dead_letters() {
    let live = work(LADDER, "").topology;
    let guard = "queues: {work: {type: quorum, deadLetter: {exchange: work.dlx}}}\n\
                 exchanges: {work.dlx: {external: true}}\ndeadLetterQueues: {dead: {type: quorum}}\n";
    let plan = plan_for(&live, &desired(guard), &[]);
    let blocks: Vec<&str> = plan.blocks.iter().map(|block| block.text.as_str()).collect();
    let expected = "the dead-lettered messages from queue work go to exchange work.dlx, which belongs to retired \
                    retries: they would be dropped";
    assert_eq!(blocks, [expected]);
}

/// Owning a name does not allow topo to retire other owners' retries.
#[test]
fn retries_of_other_owners_are_not_listed_as_unmanaged() {
    let live = work(LADDER, "").topology;
    for theirs in [
        "owns: [\"work*\"]\nignore: [work]\n",
        "owns: [\"work*\"]\nqueues: {work: {external: true}}\n",
        // The spec of a team that owns other teams' dead-letter queues.
        "owns: [\"dead*\"]\ndeadLetterQueues: {dead: {type: quorum}}\n",
        "owns: [\"*.retry.*\", \"work.dlx\"]\n",
    ] {
        for prune in [
            BTreeSet::new(),
            BTreeSet::from([ObjectKind::Queue, ObjectKind::Exchange, ObjectKind::Binding, ObjectKind::Policy]),
        ] {
            let options = Options { prune, ..Options::default() };
            let plan = plan_with(&live, &desired(theirs), options);
            let unmanaged: Vec<String> = plan.unmanaged.iter().map(|it| it.object.to_string()).collect();
            let deleted: Vec<_> = plan.changes.iter().filter_map(|change| change.id()).collect();
            assert_eq!((unmanaged, deleted), (Vec::new(), Vec::new()), "{theirs}");
        }
    }
}

#[test]
fn conflicting_tier_is_replaced_by_a_new_generation() {
    let of = |kind: &str| {
        desired(&format!(
            "queues: {{work: {{type: {kind}, {LADDER}, deadLetter: dead}}}}\ndeadLetterQueues: {{dead: {{type: classic}}}}\n"
        ))
    };
    let (classic, quorum) = (of("classic"), of("quorum"));
    let mut live = classic.topology.clone();
    // The queue itself has already been migrated.
    live.queues.insert("work".into(), quorum.topology.queues[&"work".into()].clone());
    let up = steps(&live, &quorum);
    assert!(up.starts_with("+ work.retry.1.5s~2\n+ work.retry.2.30s~2\n"), "{up}");
    assert!(up.ends_with("- work.retry.2.30s if Drained\n\n- work.retry.1.5s if Drained\n"), "{up}");
    let first = run(&live, &plan_for(&live, &quorum, &[]).steps).unwrap();
    assert!(first.queues.contains_key(&"work.retry.1.5s~2".into()) && first.queues.len() == 4, "{first:?}");
    assert_eq!(steps(&first, &quorum), "", "the existing generation stays");
    let saved = plan_for(&live, &quorum, &[]).desired;
    assert_eq!(
        plan_for(&live, &saved, &[]).steps,
        plan_for(&live, &quorum, &[]).steps,
        "a saved plan is the same plan"
    );
    // The queue is changed back to the first type, so the first generation matches again.
    let mut back = first.into_owned();
    back.queues.insert("work".into(), classic.topology.queues[&"work".into()].clone());
    let end = run(&back, &plan_for(&back, &classic, &[]).steps).unwrap();
    assert_eq!(end.queues, classic.topology.queues);
}

/// An apply can be interrupted at any step, so existing parts of the desired retries are not retired.
#[test]
fn parts_of_desired_retries_are_not_retired() {
    for keys in [LADDER, REPUBLISH, "maxRetries: 2", "retry: none"] {
        let desired = work(keys, "");
        let whole = &desired.topology;
        assert_eq!(retirement(whole, &desired), "", "{keys}");
        let names = |topology: &Topology| -> Vec<ObjectId> {
            let queues = topology.queues.keys().cloned().map(ObjectId::Queue);
            let exchanges = topology.exchanges.keys().cloned().map(ObjectId::Exchange);
            exchanges.chain(queues).chain(topology.bindings.iter().cloned().map(ObjectId::Binding)).collect()
        };
        let all = names(whole);
        let keep = |kept: &BTreeSet<&ObjectId>| {
            let mut part = whole.clone();
            part.exchanges.retain(|name, _| kept.contains(&ObjectId::Exchange(name.clone())));
            part.queues.retain(|name, _| kept.contains(&ObjectId::Queue(name.clone())));
            let (exchanges, queues) = (part.exchanges.clone(), part.queues.clone());
            part.bindings.retain(|binding| {
                let has_destination = match &binding.destination {
                    Destination::Exchange(name) => exchanges.contains_key(name),
                    Destination::Queue(name) => queues.contains_key(name),
                };
                has_destination
                    && exchanges.contains_key(&binding.source)
                    && kept.contains(&ObjectId::Binding(binding.clone()))
            });
            part
        };
        for cut in 0..all.len() {
            let until: BTreeSet<&ObjectId> = all.iter().take(cut).collect();
            let without: BTreeSet<&ObjectId> = all.iter().filter(|id| **id != all[cut]).collect();
            for part in [keep(&until), keep(&without)] {
                assert_eq!(retirement(&part, &desired), "", "{keys} without {}", all[cut]);
            }
        }
    }
}

#[test]
fn scope_of_the_spec_limits_retirement() {
    let live = work(LADDER, "").topology;
    let fewer = "retry: {delays: [5s]}";
    assert_ne!(retirement(&live, &work(fewer, "")), "");
    // The retries of an external queue belong to its owner.
    let external = desired("queues: {work: {external: true}}\n");
    assert_eq!(retirement(&live, &external), "");
    assert_eq!(retirement(&live, &work("retry: none", "ignore: [\"work.*\"]\n")), "");
    assert_eq!(retirement(&live, &desired("queues: {other: {type: quorum}}\n")), "");
    // `removed` does not make it safe to delete a tier that may contain messages.
    let removed = work(fewer, "removed: {queues: [work.retry.2.30s]}\n");
    assert!(steps(&live, &removed).contains("- work.retry.2.30s if Drained"));
    // `protect` keeps the tiers.
    let protected = work(fewer, "protect: [\"*.retry.*\"]\n");
    assert_eq!(retirement(&live, &protected), "1 binding");
}

#[test]
fn deleting_a_queue_retires_its_retries() {
    let live = work(LADDER, "").topology;
    let dead = "deadLetterQueues: {dead: {type: quorum}}\n";
    let removed = desired(&format!("removed: {{queues: [work]}}\n{dead}"));
    assert_eq!(retirement(&live, &removed), "7 exchanges, 2 tier queues, 7 bindings");
    let down = steps(&live, &removed);
    // While the queue exists, its dead-lettered messages have a destination.
    assert!(down.starts_with("+ work.retry.first.switch ─ \"\" → dead.dlx\n\n- work.retry ─"), "{down}");
    assert!(down.contains("if Drained\n\n- work if Empty\n\n- work.dlx\n\n- work.retry\n"), "{down}");
    let plan = plan_for(&live, &removed, &[]);
    let queue = plan.steps.iter().find(|step| step.address.as_str() == "queues/shop/work").unwrap().id;
    assert!(plan.steps.iter().filter(|step| step.id > queue).all(|step| step.after.contains(&queue)));
    let reported = plan.hazards.iter().map(|hazard| (hazard.kind, hazard.text.as_str()));
    let reported: Vec<_> = reported.filter(|(kind, _)| *kind == HazardKind::MessageLoss).collect();
    let unknown = "the broker does not report how many messages are waiting for a retry: all will be deleted with it";
    assert!(reported.contains(&(HazardKind::MessageLoss, unknown)), "{reported:?}");
    // If a queue is owned but unmanaged, the plan does not list its retries.
    let owned = desired(&format!("owns: [\"work*\"]\n{dead}"));
    let plan = plan_for(&live, &owned, &[]);
    let unmanaged: Vec<String> = plan.unmanaged.iter().map(|it| it.object.to_string()).collect();
    assert_eq!((unmanaged, plan.changes.len()), (vec!["queue work".to_owned()], 0));
}

#[test]
fn target_includes_all_retries_of_a_queue() {
    let live = work(LADDER, "").topology;
    let changed = work("retry: {delays: [5s, 1m]}", "exchanges: {orders: {type: topic}}\n");
    let all = plan_for(&live, &changed, &[]).steps.len();
    for (target, expected) in [
        ("exchanges/shop/orders", 1),
        ("queues/shop/work", all - 1),
        ("queues/shop/work.retry.2.1m", all - 1),
        ("queues/shop/work.retry.2.30s", all - 1),
    ] {
        assert_eq!(plan_for(&live, &changed, &[target]).steps.len(), expected, "{target}");
    }
}
