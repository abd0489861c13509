//! Tests the recognition of manually created topologies.

use crate::export::tests::{apply_spec, profile, text};

/// A retry queue has no TTL if its publishers set a TTL for each message. The bindings distinguish such a queue from a
/// work queue. If the bindings are the same, the names decide.
#[test]
fn work_queue_behind_a_retry_queue_without_ttl_is_not_a_dead_letter_queue() {
    let retried = "
exchanges: {events: {type: topic}, orders.x: {type: direct}}
queues:
  jobs: {type: classic, bindings: [{exchange: orders.x, routingKey: jobs}, {exchange: events, routingKey: '#'}]}
  side: {type: classic, deadLetter: {exchange: orders.x, routingKey: jobs}}
";
    let is_dead = |spec: &str| {
        let topology = apply_spec(spec, &profile("4.0.5"));
        let found = text(&topology, "4.0.5", &[]);
        assert_eq!(apply_spec(&found, &profile("4.0.5")), topology, "{found}");
        found.contains("deadLetterQueues")
    };
    // The queue is bound to an exchange that is not a dead-letter exchange.
    assert!(!is_dead(retried));
    let alone = retried.replace(", {exchange: events, routingKey: '#'}", "");
    assert!(is_dead(&alone));
    let to_dead_letter_exchanges_only = retried.replace("{type: topic}", "{type: topic}, other: {type: direct}")
        + "  more: {type: classic, bindings: [], deadLetter: {exchange: events, routingKey: jobs}}\n";
    assert!(is_dead(&to_dead_letter_exchanges_only));
    // The name of the queue takes precedence over the second binding.
    assert!(is_dead(&retried.replace("jobs", "jobs.dead")));
    // A policy dead-letters the queue's messages to a queue that returns them.
    let policy = "policies: {p: {pattern: '^jobs$', definition: {deadLetterExchange: back}}}\n";
    let side = "side: {type: classic, bindings: [{exchange: back}],";
    let back =
        alone.replace("{type: topic}", "{type: topic}, back: {type: fanout}").replace("side: {type: classic,", side);
    assert!(!is_dead(&format!("{back}{policy}")));
    assert!(is_dead(
        &format!("{alone}policies: {{p: {{pattern: '^jobs$', definition: {{deadLetterExchange: ''}}}}}}\n")
            .replace("Exchange: ''", "Exchange: events")
    ));
    // Only the names differ.
    for (retry, work, expected) in
        [("orders.hold", "orders", false), ("orders.retry", "jobs", false), ("orders", "orders.hold", true)]
    {
        let renamed = alone.replace("side:", &format!("{retry}:")).replace("jobs", work);
        assert_eq!(is_dead(&renamed), expected, "{renamed}");
    }
}

/// Spring Cloud Stream declares one dead-letter exchange, and a routing key for each dead-letter queue.
#[test]
fn routing_keys_distinguish_dead_letter_queues_behind_one_exchange() {
    let manual_retries = "
exchanges: {DLX: {type: direct}, orders: {type: topic}}
queues:
  orders.billing: {type: classic, deadLetter: {exchange: DLX, routingKey: orders.billing}, bindings: [{exchange: orders, routingKey: '#'}]}
  orders.mail: {type: classic, deadLetter: {exchange: DLX, routingKey: orders.mail}, bindings: [{exchange: orders, routingKey: '#'}]}
  orders.billing.dlq: {type: classic, bindings: [{exchange: DLX, routingKey: orders.billing}]}
  orders.mail.dlq: {type: classic, bindings: [{exchange: DLX, routingKey: orders.mail}]}
  audit: {type: classic, bindings: [{exchange: DLX, routingKey: other.team}]}
";
    let profile = profile("4.0.5");
    let topology = apply_spec(manual_retries, &profile);
    let found = text(&topology, "4.0.5", &[]);
    let expected = "
deadLetterQueues:
  orders.billing.dlq: {exchange: {name: DLX, type: direct, routingKey: orders.billing}}
  orders.mail.dlq: {exchange: {name: DLX, type: direct, routingKey: orders.mail}}
";
    assert!(found.ends_with(expected), "{}", found);
    for queue in ["billing", "mail"] {
        assert!(found.contains(&format!("deadLetter: orders.{queue}.dlq")), "{}", found);
    }
    assert!(found.contains("audit: {bindings: [{exchange: DLX, routingKey: other.team}]}"), "{}", found);
    assert_eq!(apply_spec(&found, &profile), topology);
    // A routing key that several queues share identifies none of these queues.
    let copied = manual_retries.replace("other.team", "orders.mail");
    let found = text(&apply_spec(&copied, &profile), "4.0.5", &[]);
    assert!(!found.contains("deadLetterQueues"), "{found}");
}
