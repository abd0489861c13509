//! Tests the objects that each strategy generates on several broker versions, and the errors for invalid retries.

use crate::expand::origin::CreatedFor;
use crate::expand::tests::{expand_for, format_topology, spec};
use crate::expand::{Expansion, expand};
use crate::model::ObjectId;
use crate::rabbitmq::BrokerProfile;
use crate::spec::Diagnostic;

mod names;

const DEAD: &str = "deadLetterQueues: {orders.dead: {type: classic}}\n";

/// Returns a spec that declares a dead-letter queue, and a queue with these keys.
fn text(keys: &str) -> String {
    format!("queues:\n  orders.work: {{{keys}, deadLetter: orders.dead}}\n{DEAD}")
}

fn expand_keys(version: &str, keys: &str) -> Expansion {
    expand_for(version, &text(keys))
}

/// Lists the objects of the topology, except the dead-letter queue, its exchange and its binding.
fn list_objects(version: &str, keys: &str) -> String {
    let dead_letter_objects =
        ["exchange orders.dead.dlx ", "queue orders.dead ", "binding orders.dead.dlx ─ \"\" → orders.dead"];
    let listed = format_topology(&expand_keys(version, keys));
    let lines = listed.lines().filter(|line| !dead_letter_objects.iter().any(|other| line.starts_with(other)));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the source text, the message and the hint of each error on a broker version.
fn errors(version: &str, text: &str) -> String {
    let whole = format!("version: 1\nvhost: shop\n{text}");
    let profile = BrokerProfile::of(version.parse().unwrap());
    let found = expand(&spec(text), &profile).expect_err("this spec cannot be expanded");
    let line = |it: &Diagnostic| {
        let hint = it.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        format!("{}: {}{hint}", &whole[it.primary.start..it.primary.end], it.message)
    };
    found.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats the retries of the first queue on two lines.
fn family(expansion: &Expansion) -> String {
    let family = &expansion.scope.families[0];
    format!("{family}\n{} {}: {}", family.strategy, family.retries, crate::model::retry::count_by_kind(&family.members))
}

const GUARD: &str = "\
binding orders.work.dlx ─ {x-last-death-reason: delivery_limit, x-match: all-with-x} → orders.dead.dlx
binding orders.work.dlx ─ {x-last-death-reason: expired, x-match: all-with-x} → orders.dead.dlx
binding orders.work.dlx ─ {x-last-death-reason: maxlen, x-match: all-with-x} → orders.dead.dlx
";

#[test]
fn ladder_expands_to_exchanges_tiers_and_bindings() {
    let keys = "type: classic, retry: {delays: [5s, 30s, 5m]}";
    let expansion = expand_keys("3.13.7", keys);
    let expected = format!(
        "\
exchange orders.work.dlx headers {{alternate-exchange: orders.work.retry}}
exchange orders.work.retry direct {{alternate-exchange: orders.work.retry.switch}}
exchange orders.work.retry.first fanout {{alternate-exchange: orders.work.retry.first.switch}}
exchange orders.work.retry.first.switch fanout {{}}
exchange orders.work.retry.over topic {{alternate-exchange: orders.work.retry.first}}
exchange orders.work.retry.switch direct {{alternate-exchange: orders.work.retry.over}}
exchange orders.work.return fanout {{}}
queue orders.work {{x-dead-letter-exchange: orders.work.dlx, x-queue-type: classic}}
queue orders.work.retry.1.5s {{x-dead-letter-exchange: orders.work.return, x-dead-letter-routing-key: orders.work.retry.1, x-message-ttl: 5000, x-queue-type: classic}}
queue orders.work.retry.2.30s {{x-dead-letter-exchange: orders.work.return, x-dead-letter-routing-key: orders.work.retry.2, x-message-ttl: 30000, x-queue-type: classic}}
queue orders.work.retry.3.5m {{x-dead-letter-exchange: orders.work.return, x-dead-letter-routing-key: orders.work.retry.3, x-message-ttl: 300000, x-queue-type: classic}}
{GUARD}\
binding orders.work.retry ─ orders.work.retry.1 → orders.work.retry.2.30s
binding orders.work.retry ─ orders.work.retry.2 → orders.work.retry.3.5m
binding orders.work.retry.first ─ \"\" → orders.work.retry.1.5s
binding orders.work.retry.over ─ orders.work.retry.* → orders.dead.dlx
binding orders.work.return ─ \"\" → orders.work
"
    );
    assert_eq!(list_objects("3.13.7", keys), expected);
    assert_eq!(list_objects("4.3.6", keys), expected, "the same on every version that supports the guard");
    assert_eq!(list_objects("3.8.9", keys), expected.replace(GUARD, ""), "3.8 refuses `all-with-x`");
    assert_eq!(
        family(&expansion),
        "orders.work → 5s → 30s → 5m → orders.dead\nladder 3: 7 exchanges, 3 tier queues, 8 bindings"
    );
    assert_eq!(expansion.retries[&"orders.work".into()].to_string(), "orders.work → 5s → 30s → 5m → orders.dead");
    let tier = &expansion.origins[&ObjectId::Queue("orders.work.retry.2.30s".into())];
    assert_eq!(tier.because, CreatedFor::Retry("orders.work".into()));
    assert_eq!(tier.to_string(), "topology.yaml:4:40 (retries of orders.work)");
}

#[test]
fn tiers_of_a_quorum_queue_use_at_least_once_if_supported() {
    let keys = "type: quorum, retry: {delays: [5s]}, maxRetries: 2";
    let tier = |version: &str| {
        let generated = list_objects(version, keys);
        let lines: Vec<&str> = generated.lines().filter(|line| line.starts_with("queue orders.work.retry.2")).collect();
        lines.join("\n")
    };
    let arguments = "x-dead-letter-exchange: orders.work.return, x-dead-letter-routing-key: orders.work.retry.2";
    let safe = format!(
        "queue orders.work.retry.2.5s {{{arguments}, x-dead-letter-strategy: at-least-once, x-message-ttl: 5000, \
         x-overflow: reject-publish, x-queue-type: quorum}}"
    );
    assert_eq!([tier("3.10.8"), tier("4.3.6")], [safe.clone(), safe]);
    // Quorum queues on 3.8.9 do not support a TTL.
    let classic = format!("queue orders.work.retry.2.5s {{{arguments}, x-message-ttl: 5000, x-queue-type: classic}}");
    assert_eq!(tier("3.8.9"), classic);
    let optional = expand_keys("4.0.5", keys).scope.optional;
    let optional: Vec<String> = optional.iter().map(|(name, it)| format!("{name}: {it:?}")).collect();
    let both = r#"{"x-dead-letter-strategy", "x-overflow"}"#;
    assert_eq!(optional, [format!("orders.work.retry.1.5s: {both}"), format!("orders.work.retry.2.5s: {both}")]);
    assert_eq!(
        family(&expand_keys("4.0.5", keys)),
        "orders.work → 5s ×2 → orders.dead\nladder 2: 7 exchanges, 2 tier queues, 7 bindings"
    );
}

#[test]
fn ladder_can_be_wired_by_a_policy() {
    let listed = format_topology(&expand_for(
        "4.0.5",
        &format!(
            "queues: {{q: {{type: classic, retry: {{delays: [1s]}}, deadLetter: {{queue: orders.dead, wiring: policy}}}}}}\n{DEAD}"
        ),
    ));
    assert!(listed.contains("queue q {x-queue-type: classic}\n"), "{listed}");
    assert!(listed.contains("policy q.topo.dead-letter ^q$ queues 1 {dead-letter-exchange: q.dlx}\n"), "{listed}");
}

#[test]
fn republish_with_delays_creates_tiers() {
    let keys = "type: classic, retry: {strategy: republish, delays: [5s, 1m30s], jitter: 1s}";
    assert_eq!(
        list_objects("3.8.9", keys),
        "\
exchange orders.work.retry direct {alternate-exchange: orders.work.retry.switch}
exchange orders.work.retry.over topic {alternate-exchange: orders.work.retry.first}
exchange orders.work.retry.switch direct {alternate-exchange: orders.work.retry.over}
exchange orders.work.return fanout {}
queue orders.work {x-dead-letter-exchange: orders.dead.dlx, x-queue-type: classic}
queue orders.work.retry.1.5s {x-dead-letter-exchange: orders.work.return, x-dead-letter-routing-key: orders.work.retry.1, x-message-ttl: 5000, x-queue-type: classic}
queue orders.work.retry.2.1m30s {x-dead-letter-exchange: orders.work.return, x-dead-letter-routing-key: orders.work.retry.2, x-message-ttl: 90000, x-queue-type: classic}
binding orders.work.retry ─ 1 → orders.work.retry.1.5s
binding orders.work.retry ─ 2 → orders.work.retry.2.1m30s
binding orders.work.retry.over ─ # → orders.dead.dlx
binding orders.work.return ─ \"\" → orders.work
"
    );
    assert_eq!(
        family(&expand_keys("3.8.9", keys)),
        "orders.work → 5s → 1m30s → orders.dead\nrepublish 2: 4 exchanges, 2 tier queues, 4 bindings"
    );
    let nowhere = format_topology(&expand_for(
        "4.0.5",
        "queues: {q: {type: classic, deadLetter: none, retry: {strategy: republish, delays: [1s]}}}\n",
    ));
    assert!(!nowhere.contains("binding q.retry.over"), "{nowhere}");
}

#[test]
fn republish_without_delays_creates_no_objects() {
    let keys = "type: classic, maxRetries: 2, retry: {strategy: republish}";
    let plain = "queue orders.work {x-dead-letter-exchange: orders.dead.dlx, x-queue-type: classic}\n";
    assert_eq!(list_objects("3.8.9", keys), plain);
    assert_eq!(family(&expand_keys("3.8.9", keys)), "orders.work → to the back ×2 → orders.dead\nrepublish 2: ");
}

#[test]
fn redeliver_sets_a_delivery_limit() {
    for version in ["3.8.9", "4.3.6"] {
        assert_eq!(
            list_objects(version, "type: quorum, maxRetries: 3"),
            "queue orders.work {x-dead-letter-exchange: orders.dead.dlx, x-delivery-limit: 3, x-queue-type: quorum}\n"
        );
    }
    assert_eq!(
        family(&expand_keys("4.0.5", "type: quorum, maxRetries: 3")),
        "orders.work → immediate ×3 → orders.dead\nredeliver 3: "
    );
    let dropped = expand_for("4.0.5", "queues: {q: {type: quorum, maxRetries: 1}}\n");
    assert_eq!(family(&dropped), "q → immediate → dropped\nredeliver 1: ");
    let with_default = "defaults: {queue: {type: quorum, deliveryLimit: 9}}\nqueues: {q: {maxRetries: 1}}\n";
    assert!(
        format_topology(&expand_for("4.0.5", with_default)).contains("queue q {x-delivery-limit: 1,"),
        "the strategy overrides a default"
    );
}

#[test]
fn delayed_sets_four_arguments() {
    assert_eq!(
        list_objects("4.3.6", "type: quorum, maxRetries: 5, retry: {strategy: delayed, delays: [1s, 2s, 3s]}"),
        "queue orders.work {x-dead-letter-exchange: orders.dead.dlx, x-delayed-retry-max: 3000, \
         x-delayed-retry-min: 1000, x-delayed-retry-type: all, x-delivery-limit: 5, x-queue-type: quorum}\n"
    );
}

#[test]
fn zero_retries_create_no_objects() {
    for keys in ["type: classic, maxRetries: 0", "type: quorum, maxRetries: 0, retry: {strategy: ladder}"] {
        let expansion = expand_keys("4.0.5", keys);
        assert!(expansion.scope.families.is_empty() && expansion.retries.is_empty());
        assert_eq!(expansion.topology.queues.len(), 2);
    }
    let limited = list_objects("4.0.5", "type: quorum, maxRetries: 0, retry: {strategy: redeliver}");
    assert!(limited.contains("x-delivery-limit: 0"), "{limited}");
}

#[test]
fn quorum_dead_letter_queues_have_no_delivery_limit() {
    let text = "queues: {q: {type: quorum, deadLetter: d}}\ndeadLetterQueues: {d: {type: quorum}, e: {type: quorum, deliveryLimit: 7}}\n";
    assert!(
        format_topology(&expand_for("4.0.5", text)).contains("queue d {x-delivery-limit: -1, x-queue-type: quorum}")
    );
    assert!(format_topology(&expand_for("4.0.5", text)).contains("queue e {x-delivery-limit: 7, "));
    assert!(
        format_topology(&expand_for("3.13.7", text)).contains("queue d {x-queue-type: quorum}"),
        "on 3.13, -1 means one delivery"
    );
    assert!(expand_for("4.0.5", text).scope.is_optional(&"d".into(), "x-delivery-limit"));
}

#[test]
fn error_about_a_strategy_suggests_strategies_that_work() {
    for (version, keys, expected) in [
        (
            "4.3.6",
            "type: classic, maxRetries: 3",
            "3: `maxRetries` alone is not enough for classic queue `orders.work`, which does not count deliveries \
             (add delays to let the broker count attempts: `retry: {delays: [5s, 30s]}`; use \
             `retry: {strategy: republish}` to let the workers count attempts; or use `type: quorum`)",
        ),
        (
            "4.3.6",
            "type: classic, maxRetries: 3, retry: {strategy: redeliver}",
            "redeliver: strategy `redeliver` needs a queue that counts deliveries, but queue `orders.work` is a classic queue \
             (use `strategy: republish`)",
        ),
        (
            "4.0.5",
            "type: quorum, retry: {strategy: delayed, delays: [1s]}",
            "delayed: strategy `delayed` requires RabbitMQ 4.3; the broker is 4.0.5 \
             (use `strategy: ladder` or `strategy: republish`)",
        ),
        (
            "4.3.6",
            "type: classic, retry: {strategy: delayed, delays: [1s]}",
            "delayed: strategy `delayed` needs a queue that counts deliveries, but queue `orders.work` is a classic queue \
             (use `strategy: ladder` or `strategy: republish`)",
        ),
        (
            "3.10.8",
            "type: quorum, messageTtl: 1h, retry: {delays: [1s]}",
            "messageTtl: a ladder on RabbitMQ 3.10.8 does not support `messageTtl`: before 3.13, the broker drops a message as \
             a cycle if this setting dead-letters it after a retry (use `strategy: republish`)",
        ),
        (
            "3.8.9",
            "type: classic, maxLength: 5, retry: {delays: [1s]}",
            "maxLength: a ladder on RabbitMQ 3.8.9 does not support `maxLength`: before 3.13, the broker drops a message as \
             a cycle if this setting dead-letters it after a retry (use `strategy: republish`)",
        ),
        (
            "4.3.6",
            "type: quorum, maxRetries: 101, retry: {delays: [1s]}",
            "101: 101 retries with delays need 101 delayed retry queues; the maximum is 100 \
             (use `strategy: delayed`)",
        ),
        (
            "4.3.6",
            "type: classic, maxRetries: 101, retry: {strategy: republish, delays: [1s]}",
            "101: 101 retries with delays need 101 delayed retry queues; the maximum is 100 \
             (remove the delays and use `strategy: republish`)",
        ),
        (
            "3.10.8",
            "type: quorum, maxRetries: 101, retry: {delays: [1s]}",
            "101: 101 retries with delays need 101 delayed retry queues; the maximum is 100 \
             (remove the delays and use `strategy: republish` or `strategy: redeliver`)",
        ),
    ] {
        assert_eq!(errors(version, &text(keys)), expected, "{keys} on {version}");
    }
    for (version, keys) in [
        ("3.13.7", "type: quorum, messageTtl: 1h, maxLength: 5, deliveryLimit: 4, retry: {delays: [1s]}"),
        ("3.10.8", "type: quorum, maxLength: 5, overflow: reject-publish, retry: {delays: [1s]}"),
    ] {
        expand_keys(version, keys);
    }
}

#[test]
fn settings_that_conflict_with_the_retries_are_refused() {
    for (keys, expected) in [
        (
            "type: classic, overflow: reject-publish, retry: {delays: [1s]}",
            "queue `orders.work` rejects messages when it is full, and would lose messages that return for a retry \
             (use `type: quorum`, where retries wait until the queue has room, or `overflow: drop-head`)",
        ),
        (
            "type: classic, overflow: reject-publish-dlx, retry: {strategy: republish, delays: [1s]}",
            "queue `orders.work` rejects messages when it is full",
        ),
        (
            "type: quorum, deliveryLimit: 5, maxRetries: 3",
            "`deliveryLimit` conflicts with the retries of queue `orders.work`, which set it (keep one of the two)",
        ),
    ] {
        let found = errors("4.3.0", &text(keys));
        assert!(found.contains(expected), "{keys}: {found}");
    }
    expand_keys("4.3.0", "type: classic, overflow: reject-publish, maxRetries: 2, retry: {strategy: republish}");
}

#[test]
fn ladder_needs_a_target_that_accepts_every_key() {
    let queue = |dead_letter: &str, rest: &str| {
        format!(
            "exchanges: {{corp: {{external: true}}, plain: {{type: direct}}, wide: {{type: topic}}}}\n\
             queues: {{q: {{type: classic, retry: {{delays: [1s]}}, deadLetter: {dead_letter}}}}}\n{rest}"
        )
    };
    for (dead_letter, rest, expected) in [
        ("none", "", "the ladder of queue `q` needs a dead-letter queue for messages that have no retries left"),
        ("{exchange: plain}", "", "so direct exchange `plain` does not route them"),
        ("{exchange: amq.direct}", "", "so direct exchange `amq.direct` does not route them"),
        ("{exchange: \"\", routingKey: q}", "", "cannot dead-letter messages to the default exchange"),
        ("{exchange: corp, routingKey: k}", "", "so the routing key \"k\" cannot be set"),
        ("{exchange: wide, routingKey: k}", "", "so the routing key \"k\" cannot be set"),
        ("d", "deadLetterQueues: {d: {type: classic, exchange: {type: direct}}}\n", "direct exchange `d.dlx`"),
        (
            "d",
            "deadLetterQueues: {d: {type: classic, exchange: {type: topic, routingKey: k}}}\n",
            "so the routing key \"k\" cannot be set",
        ),
    ] {
        let found = errors("4.0.5", &queue(dead_letter, rest));
        assert!(found.contains(expected), "{dead_letter}: {found}");
    }
    for (dead_letter, rest, shown) in [
        ("{exchange: corp}", "", "q → 1s → exchange corp"),
        ("{exchange: wide}", "", "q → 1s → exchange wide"),
        ("{exchange: amq.fanout, routingKey: k}", "", "q → 1s → exchange amq.fanout"),
        ("d", "deadLetterQueues: {d: {external: true, exchange: {name: x}}}\n", "q → 1s → d"),
        ("d", "deadLetterQueues: {d: {type: classic, exchange: {type: topic}}}\n", "q → 1s → d"),
    ] {
        let expansion = expand_for("4.0.5", &queue(dead_letter, rest));
        assert_eq!(expansion.scope.families[0].to_string(), shown);
    }
    let without_dead_letter = errors("4.0.5", "queues: {q: {type: classic, retry: {delays: [1s]}}}\n");
    assert!(without_dead_letter.contains("needs a dead-letter queue for messages"), "{without_dead_letter}");
}

#[test]
fn long_paths_are_shortened() {
    let path = |keys: &str| expand_keys("4.3.6", keys).scope.families[0].path.clone();
    assert_eq!(
        path("type: classic, maxRetries: 20, retry: {backoff: {initial: 1s, factor: 1.5, max: 30s}}"),
        "1s → 1s500ms → 2s250ms → 3s375ms → 5s63ms → 7s594ms → 11s391ms → 17s86ms → 25s629ms → 30s ×11 → orders.dead"
    );
    assert_eq!(
        path(
            "type: quorum, retry: {strategy: delayed, maxRetries: 50, delays: [1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s, 9s, 10s, 11s, 12s]}"
        ),
        "1s → 2s → 3s → 4s → 5s → … → 12s ×39 → orders.dead"
    );
}

#[test]
fn two_queues_can_share_a_dead_letter_queue() {
    let expansion = expand_for(
        "4.0.5",
        &format!(
            "defaults: {{queue: {{type: classic}}, retry: {{delays: [1s]}}, deadLetter: orders.dead}}\nqueues: {{a: {{}}, b: {{}}}}\n{DEAD}"
        ),
    );
    let families: Vec<String> = expansion.scope.families.iter().map(ToString::to_string).collect();
    assert_eq!(families, ["a → 1s → orders.dead", "b → 1s → orders.dead"]);
    assert_eq!(expansion.topology.exchanges.len(), 15);
}
