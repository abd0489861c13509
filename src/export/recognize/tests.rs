//! What hand-made topologies are recognized as.

use crate::export::tests::{applied, profile, text};

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
