//! Tests of the hazard `contract-change`.

use super::{LADDER, REPUBLISH, planned, work};
use crate::plan::HazardKind;

#[test]
fn changed_strategy_changes_the_contract() {
    let reported = |before: &str, after: &str| -> Vec<String> {
        let plan = planned(&work(before, "").topology, &work(after, ""), &[]);
        let contract = plan.hazards.into_iter().filter(|hazard| hazard.kind == HazardKind::ContractChange);
        contract.map(|hazard| hazard.text).collect()
    };
    let (redeliver, delayed) = ("maxRetries: 3", "maxRetries: 2, deliveryLimit: 7, retry: {strategy: republish}");
    assert_eq!(
        reported(LADDER, redeliver),
        [
            "queue work retries by redeliver instead of ladder: on failure, workers must call basic.reject with requeue=true instead of basic.nack with requeue=false"
        ]
    );
    assert_eq!(
        reported(redeliver, LADDER),
        [
            "queue work retries by ladder instead of redeliver: on failure, workers must call basic.nack with requeue=false instead of basic.reject with requeue=true"
        ]
    );
    assert_eq!(
        reported(LADDER, "retry: none"),
        ["queue work no longer retries by ladder: the first basic.nack with requeue=false is final"]
    );
    assert_eq!(reported(REPUBLISH, LADDER).len(), 1);
    assert_eq!(reported(redeliver, "retry: none").len(), 1);
    for (before, after) in [
        (LADDER, "retry: {delays: [1s]}"),
        (redeliver, "maxRetries: 5"),
        ("retry: none", LADDER),
        (delayed, delayed),
        (delayed, "deliveryLimit: 7, maxLength: 5, maxRetries: 2, retry: {strategy: republish}"),
    ] {
        assert_eq!(reported(before, after), [""; 0], "{before} → {after}");
    }
}
