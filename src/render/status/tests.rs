//! Tests the text of a status.

use super::{View, text};
use crate::model::{Address, ObjectId, VhostName};
use crate::operate::status::{
    ClusterStatus, Drift, FORMAT_VERSION, InterruptedStatus, LockStatus, Problem, QueueStatus, RetryStatus, State,
    Status, Threshold, TierStatus, Unknown, VhostStatus,
};
use crate::plan::Target;

fn queue(name: &str, messages: u64, growth: Option<i64>, age: Option<u64>) -> QueueStatus {
    QueueStatus {
        queue: name.into(),
        exists: true,
        state: State::Fine,
        messages: Some(messages),
        ready: Some(messages),
        unacknowledged: Some(0),
        growth_in_5_minutes: growth,
        not_empty_for_seconds: age,
        consumers: Some(0),
        problems: Vec::new(),
        unchecked: Vec::new(),
    }
}

fn with(problem: Problem, queue: QueueStatus) -> QueueStatus {
    QueueStatus { state: problem.state(), problems: vec![problem], ..queue }
}

fn status(vhost: VhostStatus) -> Status {
    let target = Target {
        url: "http://localhost:15672".to_owned(),
        cluster: "c".to_owned(),
        product: "RabbitMQ".to_owned(),
        version: "4.0.5".to_owned(),
    };
    Status { format_version: FORMAT_VERSION, target, state: vhost.state, cluster: None, vhosts: vec![vhost] }
}

fn vhost() -> VhostStatus {
    VhostStatus {
        vhost: "shop".into(),
        exists: true,
        state: State::Fine,
        dead_letter_queues: Vec::new(),
        queues: Vec::new(),
        retries: Vec::new(),
        temporary_queues: 0,
        drift: None,
        lock: None,
        interrupted_migrations: Vec::new(),
        unknown: Vec::new(),
    }
}

fn view() -> View {
    View { names: "shop.yaml".to_owned(), specs: " shop.yaml".to_owned(), flags: String::new(), width: 80 }
}

/// Returns the text without colors.
fn plain(status: &Status, view: &View) -> String {
    anstream::adapter::strip_str(&text(status, view)).to_string()
}

#[test]
fn tables_are_aligned() {
    let state = State::Critical;
    let dead_letter_queues = vec![
        with(Problem::Depth { state, limit: 200 }, queue("orders.dead", 212, Some(48), Some(3540))),
        with(Problem::Depth { state: State::Warning, limit: 1 }, queue("payments.dead", 3, Some(0), Some(595))),
        queue("mail.dead", 0, None, None),
    ];
    let mut work = queue("orders.work", 1204, Some(-310), Some(5));
    work.unchecked = vec![Threshold::Growth, Threshold::Age];
    let no_consumers = Problem::NoConsumers { state: State::Warning, limit_seconds: 300 };
    let work = with(no_consumers, work);
    let tier = TierStatus { tier: "t".into(), retry: 1, delay_milliseconds: 60_000, messages: 17 };
    let vhost = VhostStatus {
        state,
        dead_letter_queues,
        queues: vec![work],
        retries: vec![RetryStatus { queue: "orders.work".into(), messages: 17, tiers: vec![tier] }],
        drift: Some(Drift { changes: 3, conflicts: 1, unmanaged: 2 }),
        lock: Some(LockStatus { holder: "me@host, pid 7".to_owned(), is_lock: true, node_is_up: Some(true) }),
        unknown: vec![Unknown { what: "nodes".to_owned(), reason: "user `u` lacks the tag monitoring".to_owned() }],
        ..vhost()
    };
    let expected = "\
vhost shop · RabbitMQ 4.0.5 at http://localhost:15672 · spec shop.yaml

  dead-letter queues  messages  in 5 min  not empty for  threshold
! orders.dead              212       +48          ≥ 59m  critical: depth 200
~ payments.dead              3         0        ≥ 9m55s  warning: depth 1
  mail.dead                  0         –              –

  queues              messages  in 5 min      consumers  threshold
~ orders.work            1,204      -310              0
    warning: no consumers, not empty for 5m
                                                         unknown: growth, age

  retries             messages                           delays
  orders.work               17                           1m: 17

lock        held by me@host, pid 7
drift       3 changes pending (1 conflict), 2 unmanaged objects; run
            `topo plan shop.yaml`
unknown     nodes: user `u` lacks the tag monitoring

Critical: 1, warning: 2 (of 4 queues).
Next: topo dlq list orders.dead --vhost shop
";
    assert_eq!(plain(&status(vhost), &view()), expected);
}

#[test]
fn long_names_are_complete_and_hidden_characters_are_escaped() {
    let long = "a".repeat(70);
    let vhost =
        VhostStatus { queues: vec![queue(&long, 5, Some(5), None), queue("x\u{1b}[2J", 1, None, None)], ..vhost() };
    let shown = plain(&status(vhost), &view());
    assert!(shown.contains(&format!("  {long}\n")) && shown.contains("x\\u{1b}[2J"), "{shown}");
    assert!(shown.lines().filter(|line| !line.contains(&long)).all(|line| line.chars().count() <= 80), "{shown}");
    assert!(!shown.contains("Next:"), "{shown}");
}

#[test]
fn next_command_shows_the_worst_dead_letter_queue() {
    let depth = |state| Problem::Depth { state, limit: 1 };
    let dead = |name: &str, state| with(depth(state), queue(name, 5, None, None));
    let both = VhostStatus {
        dead_letter_queues: vec![dead("a", State::Warning), dead("b c", State::Critical), dead("d", State::Critical)],
        ..vhost()
    };
    let next = |vhost: VhostStatus, view: View| {
        let shown = plain(&status(vhost), &view);
        shown.lines().find_map(|line| line.strip_prefix("Next: ").map(str::to_owned))
    };
    let flags = View { flags: " --url http://h".to_owned(), ..view() };
    assert_eq!(next(both, flags).as_deref(), Some("topo dlq list 'b c' --vhost shop --url http://h"));
    let missing = with(Problem::Missing { state: State::Warning }, queue("a", 0, None, None));
    let drift = Some(Drift { changes: 1, ..Drift::default() });
    let missing = || VhostStatus { dead_letter_queues: vec![missing.clone()], drift, ..vhost() };
    assert_eq!(next(missing(), view()).as_deref(), Some("topo plan shop.yaml"));
    assert_eq!(next(missing(), View { width: 80, ..View::default() }), None);
    let in_step = VhostStatus { drift: Some(Drift::default()), ..vhost() };
    assert_eq!(next(in_step, view()), None);
}

#[test]
fn notes_follow_the_tables() {
    let address = Address::of(&VhostName::from("shop"), &ObjectId::Queue("q".into()));
    let vhost = VhostStatus {
        exists: false,
        temporary_queues: 2,
        interrupted_migrations: vec![InterruptedStatus { address, text: "a text".to_owned(), in_progress: false }],
        lock: Some(LockStatus { holder: "me".to_owned(), is_lock: true, node_is_up: Some(false) }),
        ..vhost()
    };
    let mut status = status(vhost);
    status.cluster = Some(ClusterStatus { drift: Some(Drift::default()), unknown: Vec::new() });
    let expected = "\
vhost shop · RabbitMQ 4.0.5 at http://localhost:15672 · spec shop.yaml

missing     vhost shop does not exist
not listed  2 exclusive or server-named queues
lock        held by me; the node of the lock queue is down, so the lock does not
            expire
migration   a text

cluster
drift       no changes pending

Warning: 1 interrupted migration. No problems in 0 queues.
Next: topo plan shop.yaml
";
    assert_eq!(plain(&status, &view()), expected);
}
