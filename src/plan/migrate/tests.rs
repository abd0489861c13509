//! Tests that a migration reaches the same state regardless of where it is interrupted.

use super::*;
use crate::model::naming::MigrationNames;
use crate::model::{Binding, BrokerVersion, Destination, Exchange, ExchangeName, ObjectId, Topology};
use crate::plan::action::{Action, Level};
use crate::plan::simulate::perform;
use std::collections::BTreeMap;

fn queue(arguments: &[(&str, ArgumentValue)]) -> Queue {
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Queue { durable: true, auto_delete: false, exclusive: false, arguments }
}

fn exchange(kind: &str) -> Exchange {
    Exchange { kind: kind.to_owned(), durable: true, auto_delete: false, internal: false, arguments: Arguments::new() }
}

fn binding(source: &str, key: &str, arguments: Arguments) -> Binding {
    Binding {
        source: source.into(),
        destination: Destination::Queue("orders".into()),
        routing_key: key.to_owned(),
        arguments,
    }
}

fn live() -> Topology {
    let mut live = Topology::missing("shop".into());
    live.settings = Some(crate::model::Vhost::default());
    live.exchanges.insert("events".into(), exchange("topic"));
    live.exchanges.insert("heads".into(), exchange("headers"));
    live.queues.insert("orders".into(), queue(&[("x-message-ttl", 60_000.into())]));
    live.queues.insert("other".into(), queue(&[]));
    let header: Arguments = [("kind".to_owned(), "a".into())].into();
    live.bindings.extend([
        binding("events", "order.#", Arguments::new()),
        binding("events", "", Arguments::new()),
        binding("heads", "", header),
        Binding { destination: Destination::Queue("other".into()), ..binding("events", "order.#", Arguments::new()) },
    ]);
    live
}

fn migration(shield: bool) -> Migration {
    let policy = Policy {
        pattern: "x".to_owned(),
        apply_to: crate::model::ApplyTo::Queues,
        priority: crate::model::Priority(1.0),
        definition: Arguments::new(),
    };
    Migration {
        queue: "orders".into(),
        desired: queue(&[("x-message-ttl", 30_000.into())]),
        goal: Goal::Recreate,
        holding: queue(&[("x-queue-type", "classic".into())]),
        shield: shield.then_some(policy),
    }
}

fn remaining(migration: &Migration, live: &Topology) -> Vec<NextAction> {
    let profile = BrokerProfile::of(BrokerVersion::NEWEST_KNOWN);
    let is_desired = live.queues.get(&migration.queue).is_some_and(|live| migration.is_desired(live, &profile));
    migration.remaining_actions(live, &BTreeMap::new(), is_desired)
}

/// Returns the topology after all actions. Panics if an action is not possible at its position.
fn perform_all(mut live: Topology, actions: &[NextAction]) -> Topology {
    for one in actions {
        if let Err(why) = perform(&mut live, &one.action) {
            panic!("{:?}: {why}", one.action);
        }
    }
    live
}

fn with_queue(queue: Queue) -> Topology {
    let mut after = live();
    after.queues.insert("orders".into(), queue);
    after
}

#[test]
fn complete_migration_changes_only_the_queue() {
    for shield in [false, true] {
        let migration = migration(shield);
        let todo = remaining(&migration, &live());
        assert_eq!(perform_all(live(), &todo), with_queue(migration.desired.clone()));
        assert!(todo.is_sorted_by_key(|one| one.stage), "{todo:#?}");
    }
}

#[test]
fn interrupted_migration_resumes() {
    for shield in [false, true] {
        let migration = migration(shield);
        let todo = remaining(&migration, &live());
        for stop in 0..=todo.len() {
            let halfway = perform_all(live(), &todo[..stop]);
            let rest = remaining(&migration, &halfway);
            assert_eq!(
                perform_all(halfway.clone(), &rest),
                with_queue(migration.desired.clone()),
                "stopped before {stop}"
            );
            // The rest of the migration is interrupted again, before each of its actions.
            for again in 0..rest.len() {
                let halfway = perform_all(halfway.clone(), &rest[..again]);
                let rest = remaining(&migration, &halfway);
                assert_eq!(perform_all(halfway, &rest), with_queue(migration.desired.clone()), "{stop}, then {again}");
            }
        }
    }
}

#[test]
fn migration_can_be_rolled_back_until_the_old_queue_is_deleted() {
    let migration = migration(true);
    let todo = remaining(&migration, &live());
    let swap = todo.iter().position(|one| matches!(&one.action, Action::DeleteQueue { .. })).unwrap();
    for stop in 0..=swap {
        let halfway = perform_all(live(), &todo[..stop]);
        let back = remaining(&migration.for_rollback(), &halfway);
        let mut after = perform_all(halfway, &back);
        // topo creates the shield before the first holding queue. Without that queue, topo does not recognize the
        // shield.
        after.policies.remove(&migration.names().shield);
        assert_eq!(after, live(), "stopped before {stop}");
    }
}

#[test]
fn migration_resumes_after_an_interrupted_rollback() {
    let migration = migration(true);
    let todo = remaining(&migration, &live());
    let swap = todo.iter().position(|one| matches!(&one.action, Action::DeleteQueue { .. })).unwrap();
    let MigrationNames { drained, .. } = migration.names();
    for stop in 0..=swap {
        let halfway = perform_all(live(), &todo[..stop]);
        let back = remaining(&migration.for_rollback(), &halfway);
        for cut in 0..=back.len() {
            let interrupted = perform_all(halfway.clone(), &back[..cut]);
            let rest = remaining(&migration, &interrupted);
            // The oldest messages are back in the queue, so all other messages must return before the queue is
            // drained.
            let moves: Vec<String> = rest
                .iter()
                .filter_map(|one| {
                    if let Action::MoveMessages { from, .. } = &one.action { Some(from.to_string()) } else { None }
                })
                .collect();
            let has_moved = back[..cut].iter().any(|one| matches!(&one.action, Action::MoveMessages { .. }));
            let is_held = interrupted.queues.contains_key(&QueueName::new(&drained));
            if has_moved && is_held && interrupted.bindings.iter().any(|it| it.source.as_str().ends_with(".topo.back"))
            {
                assert_eq!(moves[0], drained, "{stop} {cut}");
            }
            assert_eq!(
                perform_all(interrupted, &rest),
                with_queue(migration.desired.clone()),
                "stopped before {stop}, {cut}"
            );
        }
    }
}

#[test]
fn redeclared_old_queue_is_swapped_again() {
    let migration = migration(false);
    let todo = remaining(&migration, &live());
    let swap = todo.iter().position(|one| matches!(&one.action, Action::DeleteQueue { .. })).unwrap();
    let mut raced = perform_all(live(), &todo[..=swap]);
    raced.queues.insert("orders".into(), live().queues[&QueueName::from("orders")].clone());
    raced.bindings.insert(binding("events", "order.#", Arguments::new()));
    let rest = remaining(&migration, &raced);
    assert_eq!(perform_all(raced, &rest), with_queue(migration.desired.clone()));
}

#[test]
fn old_messages_return_before_new_ones() {
    let migration = migration(false);
    let MigrationNames { hold, drained, .. } = migration.names();
    let moves: Vec<(String, Level)> = remaining(&migration, &live())
        .into_iter()
        .filter_map(|one| {
            let Action::MoveMessages { from, until, .. } = one.action else { return None };
            Some((from.to_string(), until))
        })
        .collect();
    let expected = [
        ("orders".to_owned(), Level::Empty),
        (drained, Level::Empty),
        (hold.clone(), Level::NearlyEmpty),
        (hold, Level::Empty),
    ];
    assert_eq!(moves, expected);
}

#[test]
fn names_for_a_long_queue_name_are_valid() {
    let long = QueueName::new("q".repeat(250));
    let MigrationNames { hold, drained, probe, tap, back, shield } = MigrationNames::of(&long);
    let mut names = vec![hold.as_str(), drained.as_str(), probe.as_str(), tap.as_str(), back.as_str(), shield.as_str()];
    assert!(names.iter().all(|name| name.len() <= 255));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 6);
    let _: (ExchangeName, ObjectId) = (tap, ObjectId::Queue(long));
}

mod source_exchanges {
    use super::*;
    use crate::plan::context::PlanContext;
    use crate::plan::migrate::blockers;
    use crate::plan::{Activity, Desired, RecordFacts};
    use std::collections::BTreeSet;

    fn with_context<T>(live: &Topology, compute: impl Fn(&PlanContext<'_>) -> T) -> T {
        let profile = BrokerProfile::of(BrokerVersion::NEWEST_KNOWN);
        compute(&PlanContext {
            current: live,
            desired: &std::sync::Arc::new(Desired::nothing(live.vhost.clone())),
            activity: &Activity::default(),
            properties_keys: &BTreeMap::new(),
            untouchable: &BTreeSet::new(),
            lacks_auto_delete: &BTreeSet::new(),
            records: &RecordFacts::default(),
            profile: &profile,
        })
    }

    #[test]
    fn some_source_exchanges_block_a_migration() {
        for (kind, expected) in [
            (
                "x-recent-history",
                "exchange events is of type x-recent-history: it sends the messages that it remembers",
            ),
            ("x-local-random", "exchange events is of type x-local-random: only queues can be bound to it"),
        ] {
            let mut live = live();
            live.exchanges.insert("events".into(), exchange(kind));
            let found = with_context(&live, |context| blockers::source_blocker(context, &"orders".into())).unwrap();
            assert!(found.text.starts_with(expected), "{found:?}");
            // The `unbound` queue is not bound to the exchange.
            assert_eq!(with_context(&live, |context| blockers::source_blocker(context, &"unbound".into())), None);
        }
        assert_eq!(with_context(&live(), |context| blockers::source_blocker(context, &"orders".into())), None);
    }

    #[test]
    fn dead_letter_cycles_of_any_length_are_found() {
        let dead = |to: &str| queue(&[("x-dead-letter-exchange", to.into())]);
        let by_name =
            |to: &str| queue(&[("x-dead-letter-exchange", "".into()), ("x-dead-letter-routing-key", to.into())]);
        let has_cycle = |queues: &[(&str, Queue)]| {
            let mut live = live();
            live.queues.extend(queues.iter().map(|(name, queue)| (QueueName::from(*name), queue.clone())));
            with_context(&live, |context| blockers::has_dead_letter_cycle(context, &"orders".into()))
        };
        assert!(!has_cycle(&[]));
        assert!(has_cycle(&[("orders", dead("events"))]));
        assert!(has_cycle(&[("orders", by_name("wait")), ("wait", by_name("orders"))]));
        assert!(has_cycle(&[("orders", by_name("wait")), ("wait", by_name("more")), ("more", dead("events"))]));
        assert!(!has_cycle(&[("orders", by_name("wait")), ("wait", by_name("other"))]));
        assert!(!has_cycle(&[("orders", dead("missing"))]));
    }

    #[test]
    fn delivery_limit_is_found_if_it_is_configured() {
        use crate::plan::migrate::hazards::configured_delivery_limit;
        let policy = |limit: i64| Policy {
            pattern: "^orders$".to_owned(),
            apply_to: crate::model::ApplyTo::Queues,
            priority: crate::model::Priority(0.0),
            definition: [("delivery-limit".to_owned(), limit.into())].into(),
        };
        let limit = |kind: &str, argument: Option<i64>, by_policy: Option<i64>| {
            let mut live = live();
            live.policies.extend(by_policy.map(|limit| ("p".into(), policy(limit))));
            let mut old = queue(&[("x-queue-type", kind.into())]);
            old.arguments.extend(argument.map(|limit| ("x-delivery-limit".to_owned(), limit.into())));
            with_context(&live, |context| configured_delivery_limit(context, &"orders".into(), &old))
        };
        assert_eq!(limit("classic", Some(3), None), None);
        assert_eq!(limit("quorum", None, None), None, "the default of 20 is not configured");
        assert_eq!(limit("quorum", Some(3), None), Some(3));
        assert_eq!(limit("quorum", Some(0), None), Some(0));
        assert_eq!(limit("quorum", None, Some(5)), Some(5));
        assert_eq!(limit("quorum", Some(3), Some(5)), Some(3), "the smaller limit applies");
        assert_eq!(limit("quorum", Some(-1), None), None);
    }
}
