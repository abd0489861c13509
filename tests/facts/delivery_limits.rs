//! How often a quorum queue delivers a message before it gives up: `model::known_arguments`, `plan::advice`.

use serde_json::{Value, json};

use super::{Stage, since};

/// More than any limit here.
const MANY: usize = 25;

/// How often a message is delivered that is always rejected and given back, at most [`MANY`] times.
fn deliveries(stage: &Stage, arguments: Value) -> usize {
    stage.queue("q", "quorum", arguments).created();
    stage.amqp().fill("q", 1);
    let mut deliveries = 0;
    for _ in 0..MANY {
        if stage.take("q", "reject_requeue_true").body.as_array().expect("a list").is_empty() {
            break;
        }
        deliveries += 1;
    }
    stage.delete("queues", "q").taken();
    deliveries
}

/// The sentence of `deliveryLimit` in the schema.
#[test]
fn a_delivery_limit_of_n_is_n_plus_one_deliveries() {
    let stage = Stage::new("n-plus-one");
    for limit in [0, 2] {
        assert_eq!(deliveries(&stage, json!({"x-delivery-limit": limit})), limit + 1);
    }
}

/// No limit at all is said by -1, and before 4.0 by none.
#[test]
fn without_a_limit_there_are_21_deliveries_since_4_0() {
    let stage = Stage::new("unlimited");
    assert_eq!(deliveries(&stage, json!({})), if since(4, 0) { 21 } else { MANY });
    // Before 4.0 it is less than 0, and so the first delivery is one too many.
    assert_eq!(deliveries(&stage, json!({"x-delivery-limit": -1})), if since(4, 0) { MANY } else { 1 });
}

/// `plan::advice::by_policy`: a policy can tighten the argument.
#[test]
fn of_two_delivery_limits_the_smaller_one_holds() {
    let stage = Stage::new("two-limits");
    stage.policy("p", 1.0, json!({"delivery-limit": 1})).created();
    assert_eq!(deliveries(&stage, json!({})), 2);
    assert_eq!(deliveries(&stage, json!({"x-delivery-limit": 5})), 2);
    stage.policy("p", 1.0, json!({"delivery-limit": 5})).taken();
    assert_eq!(deliveries(&stage, json!({"x-delivery-limit": 1})), 2);
}

/// `plan::effects`, `plan::advice`: a live queue takes in a new limit.
#[test]
fn a_negative_limit_gives_way_to_the_other_since_4_0() {
    let stage = Stage::new("negative");
    let written = stage.policy("p", 1.0, json!({"delivery-limit": -1}));
    if !since(4, 0) {
        return written.refused("Validation failed\n\n-1 is not a valid delivery limit\n");
    }
    written.created();
    assert_eq!(deliveries(&stage, json!({"x-delivery-limit": 2})), 3);
    stage.policy("p", 1.0, json!({"delivery-limit": 2})).taken();
    assert_eq!(deliveries(&stage, json!({"x-delivery-limit": -1})), 3);
}
