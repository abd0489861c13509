//! Tests unusual topologies: unusual names, transient objects, objects that a spec cannot represent, and manual
//! retries.

use std::collections::BTreeSet;

use lapin::options::QueueDeclareOptions;
use serde_json::json;

use super::round_trip::{exported, plans_to_nothing, round_trip};
use crate::scenarios::make_live;
use crate::support::{NONE, Node, Topo, text as text_argument};

/// Names that YAML 1.2, YAML 1.1 or a shell would interpret.
const NAMES: [&str; 44] = [
    "a/b",
    "a b",
    "%",
    "null",
    "yes",
    "1e3",
    "~",
    "*",
    "*.x",
    "#",
    "#.x",
    "é",
    "日本",
    "🦀",
    "true",
    "0x1F",
    "010",
    "2024-01-01",
    "12:30:45",
    "<<",
    "=",
    "---",
    "...",
    "- a",
    "? a",
    ": a",
    "a: b",
    "a #b",
    "a # topo: allow x y",
    "{x}",
    "[x]",
    "&x",
    "!x",
    "|",
    ">",
    "'",
    "\"",
    "\\",
    "`",
    "@x",
    ",",
    "${HOME}",
    "$${x}",
    "x-y",
];

const DROPPED: &str =
    "does not exist (the spec marks it as optional); the broker drops messages that would be routed to it";

fn left_out(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().take_while(|line| line.starts_with('#')).skip(1) {
        match (line.strip_prefix("#     "), lines.last_mut()) {
            (Some(rest), Some(last)) => {
                last.push(' ');
                last.push_str(rest);
            }
            (_, _) => lines.push(line[1..].trim().to_owned()),
        }
    }
    lines
}

#[test]
fn unusual_names_round_trip() {
    let vhost = Node::shared().vhost("odd");
    let key = |name: &str| if name == "null" { "null." } else { name }.to_owned();
    let bindings = NAMES.iter().flat_map(|name| {
        let arguments = json!({"x-match": "all", *name: *name, "n": [1, 1.0, "1", true, {"a": "1e3"}]});
        // A `~` in the routing key of a binding with arguments breaks the list of bindings.
        let arguments = if name.contains('~') { json!({}) } else { arguments };
        [
            json!({"source": name, "destination": name, "routing_key": key(name), "destination_type": "queue", "arguments": arguments}),
            json!({"source": name, "destination": "amq.topic", "routing_key": key(name), "destination_type": "exchange"}),
        ]
    });
    let queue = |name: &&str| json!({"name": name, "arguments": {"x-queue-type": "classic", "x-odd": name, "x-dead-letter-exchange": name, "x-dead-letter-routing-key": name}});
    let policy = |name: &&str| json!({"name": name, "pattern": name.replace(['*', '?', '[', '{', '\\'], "."), "definition": {"max-length": 5}});
    make_live(
        &vhost,
        &json!({
            "exchanges": NAMES.iter().map(|name| json!({"name": name, "type": "topic", "arguments": {"alternate-exchange": name, "odd": name}})).collect::<Vec<_>>(),
            "queues": NAMES.iter().map(queue).collect::<Vec<_>>(),
            "bindings": bindings.collect::<Vec<_>>(),
            "policies": NAMES.iter().map(policy).collect::<Vec<_>>(),
        }),
    );
    // Only bindings permit keys with line breaks.
    for key in ["a\nb", "\r", "\t", " ", "a\u{7f}", "\u{2028}"] {
        vhost.amqp().bind_queue("é", "é", key, NONE);
    }
    let text = round_trip(&vhost);
    assert_eq!(left_out(&text), [""; 0], "{text}");
}

#[test]
fn vhost_can_have_any_name() {
    let vhost = Node::shared().vhost("odd {a}: #'\" ${x} *é");
    vhost.amqp().declare_queue("q", NONE).unwrap();
    plans_to_nothing(&vhost, &exported(&vhost));
}

#[test]
fn transient_objects_are_omitted_and_counted() {
    let vhost = Node::shared().vhost("passing");
    let amqp = vhost.amqp();
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    amqp.declare_queue_as("", options, NONE).unwrap();
    let server_named = vhost.names("queues").remove(0);
    let options = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    amqp.declare_queue_as("mine", options, NONE).unwrap();
    make_live(
        &vhost,
        &json!({
            "exchanges": [{"name": "e", "type": "topic"}, {"name": "goes", "type": "topic", "auto_delete": true},
                          {"name": "short", "type": "fanout", "durable": false}],
            "queues": [{"name": "stays"}, {"name": "goes", "auto_delete": true}, {"name": "null-bound"}],
            "bindings": [{"source": "goes", "destination": "stays", "routing_key": "k", "destination_type": "queue"},
                         {"source": "e", "destination": "goes", "routing_key": "k", "destination_type": "queue"},
                         {"source": "e", "destination": "null-bound", "routing_key": "null", "destination_type": "queue"}],
        }),
    );
    let output = Topo::new(&vhost).run(["export", "--vhost", "{vhost}"]).expect_code(0);
    let text = &output.stdout;
    plans_to_nothing(&vhost, text);
    let expected: BTreeSet<String> = [
        "1 exclusive queue: mine".to_owned(),
        format!("1 server-named queue: {server_named}"),
        "1 auto-delete queue: goes".to_owned(),
        "1 auto-delete exchange: goes".to_owned(),
        "1 transient exchange: short".to_owned(),
        "1 binding from objects that are not exported: goes ─ k → stays".to_owned(),
        "1 binding that cannot be represented in a spec: e ─ null → null-bound (the routing key cannot be `null`)"
            .to_owned(),
    ]
    .into();
    let counted: BTreeSet<String> = left_out(text).into_iter().collect();
    assert_eq!(counted, expected, "{text}");
    // `topo export` prints the same list if it writes no file.
    assert!(expected.iter().all(|line| output.says(&format!("not in the spec: {line}"))), "{output}");
    for name in ["mine", "goes", "short", &server_named] {
        assert!(text.lines().all(|line| line.starts_with('#') || !line.contains(name)), "{text}");
    }
}

#[test]
fn manual_retries_are_exported_with_a_comment() {
    let vhost = Node::shared().vhost("hand");
    make_live(
        &vhost,
        &json!({
            "exchanges": [{"name": "orders", "type": "topic"}, {"name": "orders.retry", "type": "direct"}, {"name": "dlx", "type": "direct"}],
            "queues": [
                {"name": "orders", "arguments": {"x-dead-letter-exchange": "orders.retry", "x-dead-letter-routing-key": "orders"}},
                {"name": "orders.retry.30s", "arguments": {"x-message-ttl": 30_000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}},
                {"name": "mail", "arguments": {"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "mail.dead"}},
                {"name": "mail.dead"}, {"name": "fax.dead"},
                {"name": "fax", "arguments": {"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "fax.dead"}},
            ],
            "bindings": [
                {"source": "orders", "destination": "orders", "routing_key": "order.#", "destination_type": "queue"},
                {"source": "orders.retry", "destination": "orders.retry.30s", "routing_key": "orders", "destination_type": "queue"},
                {"source": "dlx", "destination": "mail.dead", "routing_key": "mail.dead", "destination_type": "queue"},
                {"source": "dlx", "destination": "fax.dead", "routing_key": "fax.dead", "destination_type": "queue"},
            ],
        }),
    );
    let text = exported(&vhost);
    plans_to_nothing(&vhost, &text);
    let manual_retry =
        "# a manual retry: messages that the worker of `orders` rejects wait here for 30s and then return";
    assert!(text.contains(manual_retry), "{text}");
    // A single dead-letter exchange routes all dead-lettered messages by their keys.
    let shared = "deadLetterQueues:\n  fax.dead: {exchange: {name: dlx, type: direct}}\n  mail.dead: {exchange: {name: dlx, type: \
                  direct}}\n";
    assert!(text.ends_with(shared) && text.contains("mail: {deadLetter: mail.dead}"), "{text}");
}

#[test]
fn incomplete_ladder_is_exported_in_full() {
    let vhost = Node::shared().vhost("broken");
    let spec = "queues: {work: {type: classic, deadLetter: dead, retry: {delays: [1s, 2s]}}}\ndeadLetterQueues: {dead: {type: classic}}";
    Topo::new(&vhost).spec(spec).run(["apply", "--yes"]).expect_code(0);
    assert!(round_trip(&vhost).contains("retry: {delays: [1s, 2s]}"));
    // The additional binding of a tier's exchange is unmanaged; the ladder is complete.
    vhost.amqp().declare_queue("tap", NONE).unwrap();
    vhost.amqp().bind_queue("work.retry", "tap", "work.retry.1", NONE);
    let text = exported(&vhost);
    plans_to_nothing(&vhost, &text);
    assert!(
        text.contains("retry: {delays: [1s, 2s]}") && text.contains("1 binding that cannot be represented in a spec"),
        "{text}"
    );
    vhost.http().delete(&vhost.path("queues", &["tap"])).expect_status(204);

    vhost.http().delete(&vhost.path("exchanges", &["work.return"])).expect_status(204);
    let text = exported(&vhost);
    plans_to_nothing(&vhost, &text);
    assert!(!text.contains("delays") && text.contains("work.retry.1.1s"), "{text}");
    vhost.amqp().declare_exchange("work.return", "fanout", NONE).unwrap();
    let text = exported(&vhost);
    plans_to_nothing(&vhost, &text);
    let note = "its retries are similar to generated retries, except for binding work.return ─ \"\" → work; topo exports their objects one by one";
    let unwrapped: Vec<&str> = text.split_whitespace().filter(|word| *word != "#").collect();
    assert!(unwrapped.join(" ").contains(note), "{text}");
}

#[test]
fn dead_letters_to_nowhere_are_exported_with_a_comment() {
    let vhost = Node::shared().vhost("nowhere");
    let arguments = [("x-dead-letter-exchange", text_argument("gone"))];
    vhost.amqp().declare_queue("work", &arguments).unwrap();
    let text = exported(&vhost);
    assert!(
        text.contains(
            "# this exchange does not exist, and the broker drops the dead-lettered messages from `work`; to\n  #   create it, \
             declare it here without `external`\n  gone: {external: true, optional: true}"
        ),
        "{text}"
    );
    plans_to_nothing(&vhost, &text);
    let topo = Topo::new(&vhost).file("topology.yaml", &text);
    topo.run(["plan"]).expect_text(&format!("exchange gone {DROPPED}"));
    // The broker accepts such a queue, also in a new vhost.
    let fresh = Node::shared().vhost("fresh");
    let elsewhere = text.replacen(vhost.name(), fresh.name(), 1);
    let topo = Topo::new(&fresh).file("topology.yaml", &elsewhere);
    topo.run(["apply", "--yes"]).expect_code(0).expect_text(&format!("exchange gone {DROPPED}"));
    assert_eq!(fresh.queue("work")["arguments"]["x-dead-letter-exchange"], "gone");
    assert_eq!(exported(&fresh), elsewhere);
    // Without `optional`, the exchange must exist. A missing exchange cannot have bindings.
    let strict = elsewhere.replace(", optional: true", "");
    let other = Node::shared().vhost("strict");
    let topo = Topo::new(&other).file("topology.yaml", &strict.replacen(fresh.name(), other.name(), 1));
    topo.run(["apply", "--yes"])
        .expect_code(3)
        .expect_text("exchange gone is marked `external: true`, but does not exist");
    let bound = elsewhere.replacen(fresh.name(), other.name(), 1) + "bindings: [{source: gone, destination: work}]\n";
    topo.rewrite(&bound);
    topo.run(["apply", "--yes"]).expect_code(3).expect_text("(the spec marks it as optional), but the spec binds it");
    // This is the edit that the comment suggests.
    topo.rewrite(&bound.replace("gone: {external: true, optional: true}", "gone: {type: fanout}"));
    topo.run(["apply", "--yes"]).expect_code(0);
}

#[test]
fn all_visible_vhosts_are_exported() {
    let node = Node::shared();
    let (first, second, other) = (node.vhost("mine"), node.vhost("mine"), node.vhost("theirs"));
    for vhost in [&first, &second, &other] {
        vhost.amqp().declare_queue("q", NONE).unwrap();
    }
    let user = node.user("management").may_everything(&first).may_everything(&second);
    let topo = Topo::new(&first).user(&user);
    topo.run(["export", "--out", "specs"]).expect_code(0).expect_no_result();
    let mut files: Vec<String> = std::fs::read_dir(topo.path("specs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, [format!("{}.yaml", first.name()), format!("{}.yaml", second.name())]);
    topo.run(["plan", "specs", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    topo.run(["export", "--vhost", "{vhost}-none"]).expect_code(1).expect_error("does not exist");
}

#[test]
fn user_without_vhosts_gets_a_hint() {
    let node = Node::shared();
    let vhost = node.vhost("unseen");
    vhost.amqp().declare_queue("q", NONE).unwrap();
    let user = node.user("management");
    let topo = Topo::new(&vhost).user(&user);
    let blind = topo.run(["export", "--out", "all.yaml"]).expect_code(1);
    let right = format!("rabbitmqctl set_permissions -p VHOST {} '^$' '^$' '^$'", user.name);
    blind.expect_error(&format!("user `{}` has no access to any vhost", user.name)).expect_text(&right);
    assert!(!topo.path("all.yaml").exists());
    // The permissions in the hint are sufficient. No path can address this vhost, but a list contains it.
    let permission =
        |vhost: &str| json!({"user": user.name, "vhost": vhost, "configure": "^$", "write": "^$", "read": "^$"});
    let definitions = json!({"vhosts": [{"name": ".."}], "permissions": [permission(".."), permission(vhost.name())]});
    node.http().post("/api/definitions", &definitions).expect_status(204);
    let output = topo.run(["export", "--out", "all.yaml"]).expect_code(0);
    output.expect_text("info: vhost `..` cannot be exported: the management API cannot address it");
    assert!(topo.read("all.yaml").contains("q: {type: classic}"), "{}", topo.read("all.yaml"));
}

#[test]
fn match_option_does_not_change_the_selected_objects() {
    let vhost = Node::shared().vhost("match");
    let spec = "exchanges: {e: {type: topic}}\nqueues: {mine: {type: classic, deadLetter: dead, retry: {delays: [1s]}, bindings: [{exchange: e}]},\
                yours: {type: classic, deadLetter: dead, retry: {delays: [1s]}}}\ndeadLetterQueues: {dead: {type: classic}}";
    Topo::new(&vhost).spec(spec).run(["apply", "--yes"]).expect_code(0);
    for pattern in ["mine", "yours", "dead", "e", "*.dlx", "mine.retry", "mine.retry.1.1s"] {
        let output = Topo::new(&vhost).run(["export", "--vhost", "{vhost}", "--match", pattern, "-q"]).expect_code(0);
        plans_to_nothing(&vhost, &output.stdout);
    }
}
