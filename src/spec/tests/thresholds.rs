//! Tests how thresholds from several sources are merged, and to which queues they apply.

use super::*;
use crate::model::{Growth, Levels, Thresholds};

fn levels<T>(warning: impl Into<Option<T>>, critical: impl Into<Option<T>>) -> Levels<T> {
    Levels { warning: warning.into(), critical: critical.into() }
}

/// Returns the effective thresholds of a queue.
fn of(spec: &Spec, queue: &str) -> Thresholds {
    spec.thresholds()[&QueueName::new(queue)]
}

#[test]
fn keys_of_a_queue_replace_the_same_keys_of_the_defaults() {
    let spec = spec(
        "defaults:
  queue: {type: quorum}
  thresholds: {depth: {warning: 10, critical: 20}, age: {critical: 2h}}
deadLetterQueues:
  plain.dead: {}
  one.dead: {thresholds: {depth: {critical: 1}}}
  aged.dead: {thresholds: {age: {warning: 1h}, noConsumers: 5m}}
  grown.dead: {thresholds: {growth: {critical: {messages: 50, within: 5m}}}}
  empty.dead: {thresholds: {depth: {}}}
  legacy.dead: {thresholds: none}
queues:
  work: {deadLetter: none}
  busy: {deadLetter: none, thresholds: {depth: {warning: 1000}, noConsumers: 5m}}
",
    );
    let defaults = Thresholds { depth: levels(10, 20), age: levels(None, 7_200_000), ..Thresholds::default() };
    assert_eq!(of(&spec, "plain.dead"), defaults);
    assert_eq!(of(&spec, "one.dead"), Thresholds { depth: levels(None, 1), ..defaults });
    let aged = Thresholds { age: levels(3_600_000, None), no_consumers: Some(300_000), ..defaults };
    assert_eq!(of(&spec, "aged.dead"), aged);
    let growth = Growth { messages: 50, within: 300_000 };
    assert_eq!(of(&spec, "grown.dead"), Thresholds { growth: levels(None, growth), ..defaults });
    assert_eq!(of(&spec, "empty.dead"), Thresholds { depth: levels(None, None), ..defaults });
    assert!(of(&spec, "legacy.dead").is_empty());
    assert!(of(&spec, "work").is_empty(), "the defaults apply only to dead-letter queues");
    let busy = Thresholds { depth: levels(1000, None), no_consumers: Some(300_000), ..Thresholds::default() };
    assert_eq!(of(&spec, "busy"), busy);
}

#[test]
fn dead_letter_queues_have_thresholds_without_settings() {
    let text = "deadLetterQueues: {a: {type: quorum}, b: {type: quorum, thresholds: {age: {warning: 1h}}}}";
    let spec = spec(text);
    assert_eq!(of(&spec, "a"), Thresholds::DEAD_LETTER_QUEUE);
    assert_eq!(of(&spec, "b").depth, Thresholds::DEAD_LETTER_QUEUE.depth);
    assert_eq!(of(&spec, "b").age, levels(3_600_000, None));
}

#[test]
fn default_of_none_removes_the_built_in_thresholds() {
    let spec = spec(
        "defaults: {queue: {type: quorum}, thresholds: none}
deadLetterQueues: {a: {}, b: {thresholds: {age: {warning: 1h}}}}",
    );
    assert!(of(&spec, "a").is_empty());
    assert!(of(&spec, "b").depth.is_empty());
    assert_eq!(of(&spec, "b").age, levels(3_600_000, None));
}

#[test]
fn defaults_apply_to_their_own_document() {
    let spec = spec(
        "defaults: {queue: {type: quorum}, thresholds: {depth: {warning: 7}}}
deadLetterQueues: {a: {}}
---
version: 1
vhost: shop
deadLetterQueues: {b: {type: quorum}}",
    );
    assert_eq!(of(&spec, "a").depth, levels(7, None));
    assert_eq!(of(&spec, "b"), Thresholds::DEAD_LETTER_QUEUE);
}

#[test]
fn external_queues_have_thresholds() {
    let spec = spec(
        "deadLetterQueues: {a.dead: {external: true, thresholds: {depth: {critical: 5}}}}
queues: {work: {external: true}}
---
version: 1
vhost: shop
queues: {work: {external: true, thresholds: {noConsumers: 1m}}}",
    );
    assert_eq!(of(&spec, "a.dead").depth, levels(None, 5));
    assert_eq!(of(&spec, "work").no_consumers, Some(60_000));
    let twice = errors(
        "queues: {work: {external: true, thresholds: {noConsumers: 2m}}}
---
version: 1
vhost: shop
queues: {work: {external: true, thresholds: {noConsumers: 1m}}}",
    );
    assert!(twice.contains("two documents set different thresholds for external queue `work`"), "{twice}");
}

#[test]
fn warning_can_equal_critical_if_the_growth_periods_differ() {
    let text = "deadLetterQueues: {a: {type: quorum, thresholds: {growth: {warning: {messages: 5, within: 1h}, critical: {messages: 5, within: 5m}}}}}";
    assert_eq!(of(&spec(text), "a").growth.warning, Some(Growth { messages: 5, within: 3_600_000 }));
}
