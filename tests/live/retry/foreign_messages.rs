//! Tests messages whose keys and headers have a meaning for this ladder or for another ladder.

use std::collections::BTreeMap;

use lapin::protocol::basic::AMQPProperties;
use lapin::types::{FieldArray, FieldTable};

use super::dead_lettered_message::{deaths, header};
use super::fixture::{Fixture, deaths_in, fail_all, fail_times, in_parallel, keys, since, until_ready};
use super::worker::{Verb, publish, ready};
use crate::support::{Argument, Message, block_on, text};

/// Returns a spec with a ladder of three attempts, and a second ladder with the same dead-letter queue.
fn spec(kind: &str) -> String {
    format!(
        "defaults: {{queue: {{type: {kind}}}, deadLetter: dead, retry: {{delays: [200ms, 300ms]}}}}\n\
         exchanges:\n  orders: {{type: topic}}\n  all: {{type: fanout}}\n  tagged: {{type: headers}}\n  \
           outer: {{type: direct}}\n\
         queues:\n  work:\n    bindings:\n      - {{exchange: orders, routingKey: '#'}}\n      \
           - {{exchange: all}}\n      - {{exchange: tagged, arguments: {{x-match: any, for: work}}}}\n  \
           other: {{bindings: [{{exchange: all}}]}}\n\
         deadLetterQueues: {{dead: {{}}}}\n"
    )
}

fn with_headers(headers: &[(&str, Argument)]) -> AMQPProperties {
    let mut table = FieldTable::default();
    for (name, value) in headers {
        table.insert((*name).into(), value.clone());
    }
    AMQPProperties::default().with_delivery_mode(2).with_headers(table)
}

fn list(items: &[&str]) -> Argument {
    let mut list = FieldArray::default();
    for item in items {
        list.push(text(item));
    }
    Argument::FieldArray(list)
}

/// Returns a forged entry of `x-death`.
fn forged(queue: &str, reason: &str, count: i64) -> Argument {
    let mut death = FieldTable::default();
    let mut keys = FieldArray::default();
    keys.push(text("forged"));
    for (name, value) in [
        ("queue", text(queue)),
        ("reason", text(reason)),
        ("count", Argument::LongLongInt(count)),
        ("exchange", text("forged")),
        ("time", Argument::Timestamp(1_600_000_000)),
        ("routing-keys", Argument::FieldArray(keys)),
    ] {
        death.insert(name.into(), value);
    }
    Argument::FieldTable(death)
}

fn forged_list(deaths: &[(&str, &str, i64)]) -> Argument {
    let mut list = FieldArray::default();
    for (queue, reason, count) in deaths {
        list.push(forged(queue, reason, *count));
    }
    Argument::FieldArray(list)
}

/// A message, and the keys of its deliveries after the first one.
struct Stray {
    exchange: &'static str,
    key: String,
    properties: AMQPProperties,
    retries: &'static [&'static str],
}

const ALL: &[&str] = &["work.retry.1", "work.retry.2"];

fn stray(exchange: &'static str, key: &str) -> Stray {
    Stray { exchange, key: key.to_owned(), properties: with_headers(&[]), retries: ALL }
}

/// Publishes all messages and fails them until they are dead-lettered. Compares the number of deliveries, and expects
/// one dead-lettered copy of each message.
fn prove(fixture: &Fixture, strays: &[Stray]) -> BTreeMap<String, Message> {
    let [seen, dead_messages] = block_on(async {
        let channel = fixture.channel().await;
        for (number, it) in strays.iter().enumerate() {
            publish(&channel, it.exchange, &it.key, number.to_string().as_bytes(), it.properties.clone()).await;
        }
        fail_all(&channel, "work", &Verb::NackAway, "dead", strays.len()).await
    });
    for (number, it) in strays.iter().enumerate() {
        let body = number.to_string();
        let expected: Vec<&str> = [it.key.as_str()].into_iter().chain(it.retries.iter().copied()).collect();
        let came = seen.get(&body).map_or(&[][..], |it| it);
        assert_eq!(keys(came), expected, "{:?} with {:?}: {:?}", it.exchange, it.key, it.properties.headers());
        assert_eq!(dead_messages.get(&body).map(Vec::len), Some(1), "{:?} with {:?}", it.exchange, it.key);
    }
    dead_messages.into_iter().map(|(body, mut dead_messages)| (body, dead_messages.remove(0))).collect()
}

#[test]
fn ladder_accepts_messages_from_any_route() {
    in_parallel(["classic", "quorum"], |kind| {
        let fixture = Fixture::new("strays", &spec(kind));
        fixture.amqp.bind_exchange("outer", "orders", "through", &[]);
        let mut strays = vec![stray("", "work"), stray("outer", "through")];
        let keys =
            ["other.retry.1", "other.retry.2", "work.retry", "work.retry.1.200ms", "Work.retry.1", "work.retry1"];
        strays.extend(keys.map(|key| stray("orders", key)));
        let keys = ["", ".", "other", "a.work.retry.1", "#", "*", "a.b"];
        strays.extend(keys.map(|key| stray("orders", key)));
        strays.push(stray("orders", &"k".repeat(255)));
        let tagged = with_headers(&[("for", text("work"))]);
        strays.push(Stray { properties: tagged, ..stray("tagged", "other.retry.2") });
        // A message with several keys matches none of the retry exchange, so there is one copy.
        for name in ["CC", "BCC"] {
            let copies = with_headers(&[(name, list(&["other.retry.1", "elsewhere"]))]);
            strays.push(Stray { properties: copies, ..stray("orders", "order.created") });
        }
        let dead_messages = prove(&fixture, &strays);
        for dead_message in dead_messages.values() {
            assert_eq!(deaths_in(dead_message, "work"), ["rejected 3"]);
            assert_eq!(header(dead_message, "x-first-death-queue"), Some(text("work")));
        }
        fixture.is_left_empty();
    });
}

/// A publisher whose keys begin with the queue's name and `.retry.` skips tiers. topo cannot prevent this.
#[test]
fn publisher_can_enter_a_later_tier() {
    in_parallel(["classic", "quorum"], |kind| {
        let fixture = Fixture::new("skips", &spec(kind));
        let mut strays = vec![
            Stray { retries: &["work.retry.2"], ..stray("orders", "work.retry.1") },
            Stray { retries: &[], ..stray("orders", "work.retry.2") },
        ];
        // A key with a word instead of a number matches no tier, like a key after the last retry.
        let keys =
            ["work.retry.0", "work.retry.3", "work.retry.01", "work.retry.first", "work.retry.1 ", "work.retry."];
        strays.extend(keys.map(|key| Stray { retries: &[], ..stray("orders", key) }));
        for name in ["CC", "BCC"] {
            let copies = with_headers(&[(name, list(&["work.retry.1"]))]);
            strays.push(Stray { properties: copies, retries: &["work.retry.2"], ..stray("orders", "order.created") });
            let copies = with_headers(&[(name, list(&["work.retry.2"]))]);
            strays.push(Stray { properties: copies, retries: &[], ..stray("orders", "order.created") });
        }
        prove(&fixture, &strays);
        fixture.is_left_empty();
    });
}

#[test]
fn forged_deaths_have_no_effect() {
    in_parallel(["classic", "quorum"], |kind| {
        let fixture = Fixture::new("forged", &spec(kind));
        let of = |headers: &[(&str, Argument)]| Stray { properties: with_headers(headers), ..stray("orders", "a") };
        let x_death = |deaths: &[(&str, &str, i64)]| of(&[("x-death", forged_list(deaths))]);
        let mut strays = vec![
            x_death(&[("work", "rejected", 99)]),
            x_death(&[("work.retry.1.200ms", "expired", 7), ("work", "rejected", 7)]),
            x_death(&[("elsewhere", "expired", 1), ("elsewhere", "maxlen", 1)]),
            of(&[("x-death", forged_list(&[]))]),
            of(&[("x-first-death-queue", text("forged")), ("x-first-death-reason", text("expired"))]),
            of(&[("x-delivery-count", Argument::LongLongInt(99)), ("x-acquired-count", Argument::LongLongInt(99))]),
            of(&[("x-retry-count", Argument::LongInt(99))]),
        ];
        for reason in ["delivery_limit", "expired", "maxlen", "rejected"] {
            let last = [("x-last-death-queue", text("work")), ("x-last-death-reason", text(reason))];
            // Versions that have the guard exchange's bindings but no authoritative header trust the header of the
            // publisher, for example from a newer broker. The message is not retried.
            let is_believed = since(3, 10) && !since(3, 13) && reason != "rejected";
            strays.push(Stray { retries: if is_believed { &[] } else { ALL }, ..of(&last) });
        }
        if since(4, 0) {
            // Earlier brokers trust these headers; see the last test.
            strays.push(x_death(&[("work", "expired", 1)]));
            strays.push(x_death(&[("work.retry.1.200ms", "expired", 1), ("work", "expired", 1)]));
            strays.push(of(&[("x-death", text("no list"))]));
        }
        let dead_messages = prove(&fixture, &strays);
        for (body, dead_message) in &dead_messages {
            let number: usize = body.parse().unwrap();
            let is_forged = strays[number].properties.headers().as_ref().is_some_and(|it| it.contains_key("x-death"));
            if since(4, 0) || !is_forged {
                let attempts = strays[number].retries.len() + 1;
                assert_eq!(deaths_in(dead_message, "work"), [format!("rejected {attempts}")], "{body}");
            }
        }
        fixture.is_left_empty();
    });
}

#[test]
fn two_ladders_can_share_a_dead_letter_queue() {
    in_parallel(["classic", "quorum"], |kind| {
        let fixture = Fixture::new("shared", &spec(kind));
        block_on(async {
            let channel = fixture.channel().await;
            publish(&channel, "all", "both", b"both", with_headers(&[])).await;
            let other = fixture.channel().await;
            let ([seen, dead_messages], of_other) = tokio::join!(
                fail_all(&channel, "work", &Verb::NackAway, "dead", 2),
                fail_times(&other, "other", &Verb::NackAway, 3),
            );
            assert_eq!(keys(&seen["both"]), ["both", "work.retry.1", "work.retry.2"]);
            assert_eq!(keys(&of_other), ["both", "other.retry.1", "other.retry.2"]);
            let queues = dead_messages["both"].iter().map(|it| header(it, "x-first-death-queue"));
            let mut queues: Vec<_> =
                queues.flatten().filter_map(|it| it.as_long_string().map(ToString::to_string)).collect();
            queues.sort();
            assert_eq!(queues, ["other", "work"]);
            for dead_message in &dead_messages["both"] {
                let of = |queue: &str| deaths(dead_message).iter().any(|it| it.queue.starts_with(queue));
                assert!(of("work") != of("other"), "{dead_message:?}");
            }
        });
        fixture.is_left_empty();
    });
}

/// Creates the ladder and uses only its last tiers, because the complete delay would take too long.
#[test]
fn ladder_can_have_a_hundred_tiers() {
    let kind = if std::env::var_os("TOPO_LONG").is_some() { "quorum" } else { "classic" };
    let delays = vec!["10m"; 99].join(", ");
    let fixture = Fixture::new(
        "hundred",
        &format!(
            "queues: {{work: {{type: {kind}, deadLetter: dead, retry: {{delays: [{delays}, 300ms]}}}}}}\n\
             deadLetterQueues: {{dead: {{type: {kind}}}}}\n"
        ),
    );
    assert_eq!(fixture.vhost.names("queues").len(), 102);
    block_on(async {
        let channel = fixture.channel().await;
        publish(&channel, "work.retry", "work.retry.99", b"late", with_headers(&[])).await;
        let [seen, dead_messages] = fail_all(&channel, "work", &Verb::NackAway, "dead", 1).await;
        assert_eq!(keys(&seen["late"]), ["work.retry.100"]);
        assert_eq!(dead_messages["late"].len(), 1);
        publish(&channel, "", "work", b"first", with_headers(&[])).await;
        fail_times(&channel, "work", &Verb::NackAway, 1).await;
        until_ready(&channel, "work.retry.1.10m", 1).await;
        assert_eq!(ready(&channel, "work").await, 0);
    });
}

/// Up to 3.12, the broker trusts the history in a message's headers. It drops a retry as a cycle if the history
/// contains a death in this queue for another reason than a rejection, as in a replay with all headers.
#[test]
fn history_of_other_deaths_loses_a_message_before_3_13() {
    if since(3, 13) {
        return;
    }
    in_parallel(["classic", "quorum"], |kind| {
        let fixture = Fixture::new("history", &spec(kind));
        block_on(async {
            let channel = fixture.channel().await;
            for (body, history) in [
                ("expired", forged_list(&[("work", "expired", 1)])),
                ("limit", forged_list(&[("work", "delivery_limit", 1)])),
                ("both", forged_list(&[("work", "rejected", 1), ("work", "maxlen", 1)])),
                ("rejected", forged_list(&[("work", "rejected", 1)])),
            ] {
                publish(&channel, "orders", "a", body.as_bytes(), with_headers(&[("x-death", history)])).await;
            }
            let [seen, dead_messages] = fail_all(&channel, "work", &Verb::NackAway, "dead", 1).await;
            for body in ["expired", "limit", "both"] {
                assert_eq!(keys(&seen[body]), ["a"], "{kind} {body}");
            }
            assert_eq!(keys(&seen["rejected"]), ["a", "work.retry.1", "work.retry.2"], "{kind}");
            assert_eq!(dead_messages.keys().collect::<Vec<_>>(), ["rejected"], "{kind}");
        });
    });
}
