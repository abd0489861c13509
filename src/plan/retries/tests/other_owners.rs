//! Tests that topo does not retire other owners' objects, even if they have names that topo would generate. Also tests
//! the `contract-change` hazard.

use super::{LADDER, REPUBLISH, desired, plan_for, retirement, work};
use crate::model::{Arguments, Binding, Destination, Exchange, Queue, Topology};
use crate::plan::hazard::HazardKind;

fn exchange(kind: &str) -> Exchange {
    let arguments = Arguments::new();
    Exchange { kind: kind.to_owned(), durable: true, auto_delete: false, internal: false, arguments }
}

fn bind(live: &mut Topology, source: &str, routing_key: &str, destination: Destination) {
    let (routing_key, arguments) = (routing_key.to_owned(), Arguments::new());
    live.bindings.insert(Binding { source: source.into(), destination, routing_key, arguments });
}

fn to_queue(name: &str) -> Destination {
    Destination::Queue(name.into())
}

/// Covers objects with names that topo would generate, and objects that are bound to generated exchanges.
#[test]
fn objects_of_other_owners_are_not_retired() {
    type AddObjects = fn(&mut Topology);
    let cases: [(&str, AddObjects); 7] = [
        ("manual dead-lettering", |live| {
            live.exchanges.insert("work.dlx".into(), exchange("fanout"));
            bind(live, "work.dlx", "", to_queue("dead"));
        }),
        ("manual retries that return through the default exchange", |live| {
            live.exchanges.insert("work.retry".into(), exchange("direct"));
            for (name, back) in [("work.retry.1.5s", ""), ("work.retry.2.30s", "work.back")] {
                let arguments: Arguments = [("x-dead-letter-exchange".to_owned(), back.into())].into();
                let queue = Queue { durable: true, auto_delete: false, exclusive: false, arguments };
                live.queues.insert(name.into(), queue);
                bind(live, "work.retry", "1", to_queue(name));
            }
        }),
        ("a shop's returns", |live| {
            live.exchanges.insert("work.return".into(), exchange("fanout"));
            bind(live, "work.return", "", to_queue("work"));
        }),
        ("manual headers exchange", |live| {
            live.exchanges.insert("work.dlx".into(), exchange("headers"));
            live.exchanges.insert("work.retry.first".into(), exchange("topic"));
        }),
        ("retries of a different queue", |live| {
            let text = "queues: {work.too: {type: quorum, retry: {delays: [7s]}, deadLetter: dead}}\n\
                        deadLetterQueues: {dead: {type: quorum}}\n";
            let other = desired(text).topology;
            live.queues.extend(other.queues);
            live.exchanges.extend(other.exchanges);
            live.bindings.extend(other.bindings);
        }),
        ("a queue with the name of a tier", |live| {
            let queue = Queue { durable: true, auto_delete: false, exclusive: false, arguments: Arguments::new() };
            live.queues.insert("work.retry.9.1h".into(), queue);
        }),
        ("dead-lettered messages with a different key", |live| {
            live.exchanges.insert("work.retry".into(), exchange("direct"));
            live.exchanges.insert("elsewhere".into(), exchange("fanout"));
            bind(live, "work.retry", "work.retry.9", Destination::Exchange("elsewhere".into()));
        }),
    ];
    for (case, add_objects) in cases {
        for keys in ["retry: none", "maxRetries: 2"] {
            let desired = work(keys, "");
            let mut live = desired.topology.clone();
            add_objects(&mut live);
            assert_eq!(retirement(&live, &desired), "", "{case}, {keys}");
        }
    }
    for keys in [LADDER, REPUBLISH] {
        let desired = work(keys, "");
        let mut live = desired.topology.clone();
        // Other owners' bindings from and to the generated exchanges.
        for tap in ["work.retry", "work.return"] {
            live.exchanges.insert("parked".into(), exchange("fanout"));
            bind(&mut live, tap, "work.retry.1", to_queue("dead"));
            bind(&mut live, "parked", "", Destination::Exchange(tap.into()));
            bind(&mut live, "parked", "", to_queue("work.retry.1.5s"));
        }
        assert_eq!(retirement(&live, &desired), "", "{keys}");
    }
}

#[test]
fn changed_strategy_changes_the_contract() {
    let reported = |before: &str, after: &str| -> Vec<String> {
        let plan = plan_for(&work(before, "").topology, &work(after, ""), &[]);
        let contract = plan.hazards.into_iter().filter(|hazard| hazard.kind == HazardKind::ContractChange);
        contract.map(|hazard| hazard.text).collect()
    };
    let (redeliver, with_limit) = ("maxRetries: 3", "maxRetries: 2, deliveryLimit: 7, retry: {strategy: republish}");
    assert_eq!(
        reported(LADDER, redeliver),
        ["queue work will retry with redeliver instead of ladder: on failure, workers must call basic.reject with \
             requeue=true instead of basic.nack with requeue=false"]
    );
    assert_eq!(
        reported(redeliver, LADDER),
        ["queue work will retry with ladder instead of redeliver: on failure, workers must call basic.nack with \
             requeue=false instead of basic.reject with requeue=true"]
    );
    assert_eq!(
        reported(LADDER, "retry: none"),
        ["queue work will no longer retry with ladder: the first basic.nack with requeue=false will be final"]
    );
    assert_eq!(reported(REPUBLISH, LADDER).len(), 1);
    assert_eq!(reported(redeliver, "retry: none").len(), 1);
    for (before, after) in [
        (LADDER, "retry: {delays: [1s]}"),
        (redeliver, "maxRetries: 5"),
        ("retry: none", LADDER),
        (with_limit, with_limit),
        (with_limit, "deliveryLimit: 7, maxLength: 5, maxRetries: 2, retry: {strategy: republish}"),
    ] {
        assert_eq!(reported(before, after), [""; 0], "{before} → {after}");
    }
}
