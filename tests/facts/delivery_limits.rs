//! Delivery limits of quorum queues. `model::known_arguments` and the resolutions of a plan rely on these facts.

use serde_json::{Value, json};

use super::{Stage, since};

/// Exceeds every limit of these tests.
const MANY: usize = 25;

/// Returns the number of deliveries of a message that is always rejected and requeued, at most [`MANY`].
fn deliveries(stage: &Stage, arguments: Value) -> usize {
    stage.queue("q", "quorum", arguments).expect_created();
    stage.amqp().fill("q", 1);
    let mut deliveries = 0;
    for _ in 0..MANY {
        if stage.take("q", "reject_requeue_true").body.as_array().expect("a list").is_empty() {
            break;
        }
        deliveries += 1;
    }
    stage.delete("queues", "q").expect_no_content();
    deliveries
}

/// Used by the description of `deliveryLimit` in the schema.
#[test]
fn delivery_limit_of_n_permits_n_plus_one_deliveries() {
    let stage = Stage::new("n-plus-one");
    for limit in [0, 2] {
        assert_eq!(deliveries(&stage, json!({"x-delivery-limit": limit})), limit + 1);
    }
}

/// -1 means no limit. Before 4.0, a missing argument means no limit, too.
#[test]
fn without_a_limit_there_are_21_deliveries_since_4_0() {
    let stage = Stage::new("unlimited");
    assert_eq!(deliveries(&stage, json!({})), if since(4, 0) { 21 } else { MANY });
    // Before 4.0, -1 is a limit below 0, which the first delivery exceeds.
    assert_eq!(deliveries(&stage, json!({"x-delivery-limit": -1})), if since(4, 0) { MANY } else { 1 });
}

/// Used by resolutions: a policy can lower the limit of the argument.
#[test]
fn smaller_delivery_limit_is_effective() {
    let stage = Stage::new("two-limits");
    stage.policy("p", 1.0, json!({"delivery-limit": 1})).expect_created();
    assert_eq!(deliveries(&stage, json!({})), 2);
    assert_eq!(deliveries(&stage, json!({"x-delivery-limit": 5})), 2);
    stage.policy("p", 1.0, json!({"delivery-limit": 5})).expect_no_content();
    assert_eq!(deliveries(&stage, json!({"x-delivery-limit": 1})), 2);
}

/// Used by `plan::effects` and resolutions: an existing queue adopts a new limit.
#[test]
fn negative_delivery_limit_is_ignored_since_4_0() {
    let stage = Stage::new("negative");
    let written = stage.policy("p", 1.0, json!({"delivery-limit": -1}));
    if !since(4, 0) {
        return written.expect_refusal("Validation failed\n\n-1 is not a valid delivery limit\n");
    }
    written.expect_created();
    assert_eq!(deliveries(&stage, json!({"x-delivery-limit": 2})), 3);
    stage.policy("p", 1.0, json!({"delivery-limit": 2})).expect_no_content();
    assert_eq!(deliveries(&stage, json!({"x-delivery-limit": -1})), 3);
}
