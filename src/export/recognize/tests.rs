//! What hand-made topologies are recognized as.

use crate::export::tests::{applied, profile, text};

/// A queue whose publishers set a TTL for each message has none itself. Its objects tell it from a work queue, before its name does.
#[test]
fn work_queues_behind_a_retry_queue_without_a_ttl_are_no_dead_letter_queues() {
    let retried = "
exchanges: {events: {type: topic}, orders.x: {type: direct}}
queues:
  jobs: {type: classic, bindings: [{exchange: orders.x, routingKey: jobs}, {exchange: events, routingKey: '#'}]}
  side: {type: classic, deadLetter: {exchange: orders.x, routingKey: jobs}}
";
    let is_dead = |spec: &str| {
        let topology = applied(spec, &profile("4.0.5"));
        let found = text(&topology, "4.0.5", &[]);
        assert_eq!(applied(&found, &profile("4.0.5")), topology, "{found}");
        found.contains("deadLetterQueues")
    };
    // Bound to an exchange that no dead letters are sent to.
    assert!(!is_dead(retried));
    let alone = retried.replace(", {exchange: events, routingKey: '#'}", "");
    assert!(is_dead(&alone));
    let to_sinks_only = retried.replace("{type: topic}", "{type: topic}, other: {type: direct}")
        + "  more: {type: classic, bindings: [], deadLetter: {exchange: events, routingKey: jobs}}\n";
    assert!(is_dead(&to_sinks_only));
    // Its own name tells more than its second binding.
    assert!(is_dead(&retried.replace("jobs", "jobs.dead")));
    // Its own dead letters return, by a policy.
    let policy = "policies: {p: {pattern: '^jobs$', definition: {deadLetterExchange: back}}}\n";
    let side = "side: {type: classic, bindings: [{exchange: back}],";
    let back =
        alone.replace("{type: topic}", "{type: topic}, back: {type: fanout}").replace("side: {type: classic,", side);
    assert!(!is_dead(&format!("{back}{policy}")));
    assert!(is_dead(
        &format!("{alone}policies: {{p: {{pattern: '^jobs$', definition: {{deadLetterExchange: ''}}}}}}\n")
            .replace("Exchange: ''", "Exchange: events")
    ));
    // Nothing but names differs.
    for (retry, work, expected) in
        [("orders.hold", "orders", false), ("orders.retry", "jobs", false), ("orders", "orders.hold", true)]
    {
        let renamed = alone.replace("side:", &format!("{retry}:")).replace("jobs", work);
        assert_eq!(is_dead(&renamed), expected, "{renamed}");
    }
}

/// As Spring Cloud Stream makes them: one exchange for all dead letters, and the key says whose they are.
#[test]
fn dead_letter_queues_behind_one_exchange_are_told_apart_by_their_keys() {
    let by_hand = "
exchanges: {DLX: {type: direct}, orders: {type: topic}}
queues:
  orders.billing: {type: classic, deadLetter: {exchange: DLX, routingKey: orders.billing}, bindings: [{exchange: orders, routingKey: '#'}]}
  orders.mail: {type: classic, deadLetter: {exchange: DLX, routingKey: orders.mail}, bindings: [{exchange: orders, routingKey: '#'}]}
  orders.billing.dlq: {type: classic, bindings: [{exchange: DLX, routingKey: orders.billing}]}
  orders.mail.dlq: {type: classic, bindings: [{exchange: DLX, routingKey: orders.mail}]}
  audit: {type: classic, bindings: [{exchange: DLX, routingKey: somebody.else}]}
";
    let profile = profile("4.0.5");
    let topology = applied(by_hand, &profile);
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
    assert!(found.contains("audit: {bindings: [{exchange: DLX, routingKey: somebody.else}]}"), "{}", found);
    assert_eq!(applied(&found, &profile), topology);
    // A key of several is nobody's own.
    let copied = by_hand.replace("somebody.else", "orders.mail");
    let found = text(&applied(&copied, &profile), "4.0.5", &[]);
    assert!(!found.contains("deadLetterQueues"), "{found}");
}
