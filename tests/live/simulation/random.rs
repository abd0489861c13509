//! Generates cases.

use topo::simulation::Behavior;

use super::case::Case;
use crate::support::{Node, Random};

/// Returns cases for all strategies of retries, and for routes, alternate exchanges and cycles.
pub(in crate::live) fn fixed() -> Vec<Case> {
    let base = Case {
        work: String::new(),
        dead: "type: classic".to_owned(),
        exchange: "",
        key: "work.N",
        more_keys: None,
        count: 1,
        expiration: None,
        behaviors: None,
    };
    let mut cases = Vec::new();
    for work in [
        "type: classic, deadLetter: dead.N, retry: {delays: [100ms, 300ms]}",
        "type: quorum, deadLetter: dead.N, retry: {delays: [100ms, 300ms]}",
        "type: classic, deadLetter: dead.N, retry: {strategy: republish, delays: [100ms, 200ms]}",
        "type: quorum, deadLetter: dead.N, maxRetries: 2, retry: {strategy: republish}",
        "type: quorum, deadLetter: dead.N, maxRetries: 2, retry: {strategy: redeliver}",
        "type: classic, deadLetter: dead.N",
    ] {
        for behaviors in [vec![Behavior::Fail], vec![Behavior::GiveUp], vec![Behavior::Fail, Behavior::Ack]] {
            cases.push(Case { work: work.to_owned(), behaviors: Some(behaviors), ..base.clone() });
        }
        for name in ["CC", "BCC"] {
            let (more_keys, behaviors) = (Some((name, "other.N")), Some(vec![Behavior::Fail]));
            cases.push(Case { work: work.to_owned(), more_keys, behaviors, ..base.clone() });
        }
    }
    let routed = "type: classic, messageTtl: 200ms, deadLetter: dead.N, bindings: [{exchange: x.N, routingKey: 'a.#'}]";
    for (exchange, key) in [("x.N", "a.b"), ("x.N", "b"), ("alt.N", "")] {
        cases.push(Case { work: routed.to_owned(), exchange, key, ..base.clone() });
    }
    // The dead-letter queue returns the messages: a cycle without a rejection, which the broker drops.
    let work = "type: classic, messageTtl: 100ms, deadLetter: dead.N".to_owned();
    let dead = "type: classic, messageTtl: 100ms, arguments: {x-dead-letter-exchange: '', x-dead-letter-routing-key: \
                work.N}"
        .to_owned();
    cases.push(Case { work, dead, ..base });
    cases
}

/// Returns a random case.
pub(in crate::live) fn random_case(random: &mut Random, node: &Node) -> Case {
    let kind = *random.pick(&["classic", "quorum"]);
    let is_quorum = kind == "quorum";
    let has_worker = random.chance(65);
    let mut work = format!("type: {kind}");
    let has_ttl = !is_quorum || node.at_least(3, 10);
    if random.chance(85) {
        work += ", deadLetter: dead.N";
        if has_worker {
            let retries = [
                "",
                "",
                ", retry: {delays: [100ms]}",
                ", retry: {delays: [100ms, 300ms]}",
                ", retry: {strategy: republish, delays: [100ms, 200ms]}",
                ", maxRetries: 2, retry: {strategy: republish}",
                ", maxRetries: 1, retry: {strategy: redeliver}",
                ", maxRetries: 3, retry: {strategy: redeliver}",
                ", maxRetries: 2, retry: {strategy: delayed, delays: [100ms, 200ms]}",
            ];
            let most = if is_quorum && node.at_least(4, 3) {
                9
            } else if is_quorum {
                8
            } else {
                6
            };
            work += retries[random.below(most)];
        }
    } else {
        work += ", deadLetter: none";
    }
    // A worker receives the messages before they expire or exceed a limit.
    if !has_worker {
        if has_ttl && random.chance(50) {
            work += ", messageTtl: 300ms";
        }
        if random.chance(60) {
            work += *random.pick(&[", maxLength: 1", ", maxLength: 2", ", maxLength: 3"]);
            let overflow = ["", ", overflow: reject-publish", ", overflow: reject-publish-dlx"];
            // A quorum queue of 3.8.9 does not support `overflow`.
            let most = if !is_quorum {
                3
            } else if node.at_least(3, 10) {
                2
            } else {
                1
            };
            work += overflow[random.below(most)];
        }
    }
    let is_routed = random.chance(30);
    if is_routed {
        work += ", bindings: [{exchange: x.N, routingKey: 'a.*'}]";
    }
    let (exchange, key) = match (is_routed, random.chance(75)) {
        (true, true) => ("x.N", "a.b"),
        (true, false) => ("x.N", "a.b.c"),
        (false, _) => ("", "work.N"),
    };
    let dead = *random.pick(&["type: classic", "type: quorum", "type: classic, maxLength: 1"]);
    let behaviors = has_worker.then(|| behaviors(random));
    // A worker that requeues receives the next message at a time that depends on the broker.
    let count = if has_worker { 1 } else { 1 + random.below(4) as u64 };
    let more_keys =
        random.chance(25).then(|| (*random.pick(&["CC", "BCC"]), *random.pick(&["other.N", "dead.N", "a.c", "a.b"])));
    let expiration = (!has_worker && random.chance(30)).then(|| 300 + 100 * random.below(4) as i64);
    // The broker decides whether a copy in the dead-letter queue arrives before or after a dead-lettered message. Behind such a
    // message, which has no expiration, the copy would stay, but reading it would drop it (measured on 3.10.8).
    let expiration = expiration.filter(|_| count == 1 || more_keys.is_none_or(|(_, key)| key != "dead.N"));
    Case { work, dead: dead.to_owned(), exchange, key, more_keys, count, expiration, behaviors }
}

/// Returns up to four behaviors. The last one, which repeats, ends the message.
fn behaviors(random: &mut Random) -> Vec<Behavior> {
    let some = [Behavior::Requeue, Behavior::NackRequeue, Behavior::Crash, Behavior::Nack, Behavior::Reject];
    let last = [Behavior::Ack, Behavior::Nack, Behavior::Reject, Behavior::Fail, Behavior::Fail, Behavior::GiveUp];
    let mut behaviors: Vec<Behavior> =
        (0..random.below(4)).map(|_| if random.chance(40) { Behavior::Fail } else { *random.pick(&some) }).collect();
    behaviors.push(*random.pick(&last));
    behaviors
}
