//! Tests names that the broker accepts: topo creates, binds, compares, addresses, unbinds and deletes objects with such
//! names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::{Argument, NONE, Node, Proxy, Topo, Vhost, deletes, posts, text};

/// Returns names, each of which is used for a queue, an exchange, a policy and a routing key.
fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "a/b",
        "/",
        "//",
        "%2F",
        "a%b",
        "%",
        "with space",
        " ",
        "@",
        "a@b.c",
        "#",
        "a#b",
        ":",
        "a:b:3",
        ",",
        "a,b",
        "~",
        "til~de",
        "ünïcödé",
        "日本",
        "🦀",
        "quo\"te",
        "apo'strophe",
        "back\\slash",
        "*",
        "st*r",
        "?",
        "qu?stion=1",
        "+",
        "pl+us",
        "&",
        "a&amp;b",
        "-dash",
        "--yes",
        "...",
        ".hidden",
        "a;b",
        "[x]",
        "{x}",
        "<b>",
        "$x",
        "`x`",
        "|",
        "queues/v/x",
        "null",
        "undefined",
        "true",
        "1",
    ]
    .map(str::to_owned)
    .into();
    names.push("é".repeat(127) + "x");
    names
}

/// Creates a vhost whose name contains special characters.
fn hard_vhost() -> Vhost<'static> {
    let vhost = Node::shared().vhost("-a/b %2F@#:,~é🦀\"'*?+&");
    assert_eq!(vhost.names("queues"), [""; 0]);
    vhost
}

fn spec(parts: &[(&str, Value)]) -> String {
    // JSON is valid YAML and quotes every name.
    parts.iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
}

fn all<T: Into<Value>>(value: impl Fn(&str) -> T) -> Value {
    names().iter().map(|name| (name.clone(), value(name).into())).collect::<serde_json::Map<_, _>>().into()
}

/// Returns the address segment of a name as documented: all characters except `A-Za-z0-9-._~` are encoded.
fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Returns the routing key for a name. `null` and `undefined` have a separate test.
fn key(name: &str) -> String {
    if matches!(name, "null" | "undefined") { format!("{name}.") } else { name.to_owned() }
}

#[test]
fn any_name_is_created_compared_addressed_and_deleted() {
    let vhost = hard_vhost();
    // The apply also creates the vhost.
    let own = format!("/api/vhosts/{}", encoded(vhost.name()));
    vhost.http().delete(&own).expect_status(204);
    let exchanges = all(|_| json!({"type": "topic"}));
    let queues = |max_length: u64| all(|_| json!({"type": "classic", "maxLength": max_length}));
    let policies = all(|_| json!({"pattern": "^nothing$", "definition": {"maxLength": 1}}));
    let bindings: Value = names()
        .iter()
        .flat_map(|name| {
            let to_exchange = json!({"source": name, "destination": "amq.topic", "destinationType": "exchange",
                                     "routingKey": key(name)});
            [json!({"source": name, "destination": name, "routingKey": key(name)}), to_exchange]
        })
        .collect();
    let owns = || ("owns", json!(["*"]));
    let topo = Topo::new(&vhost).spec(&spec(&[
        owns(),
        ("exchanges", exchanges.clone()),
        ("queues", queues(1)),
        ("policies", policies.clone()),
        ("bindings", bindings),
    ]));
    let count = names().len();
    let plan = topo.run(["plan", "--format=json"]).expect_code(0).plan();
    assert_eq!(plan["summary"]["create"], 3 * count + 1);
    assert_eq!(plan["summary"]["bind"], 2 * count);
    topo.run(["apply", "-y"]).expect_code(0);
    let sorted: Vec<String> = names().into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    for kind in ["queues", "exchanges", "policies"] {
        assert_eq!(vhost.names(kind), sorted, "{kind}");
    }
    let bound: BTreeSet<_> = vhost
        .list("bindings")
        .iter()
        .filter(|binding| binding["destination_type"] == "queue")
        .map(|binding| {
            ["source", "destination", "routing_key"].map(|field| binding[field].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(bound, names().iter().map(|name| [name.clone(), name.clone(), key(name)]).collect());
    assert_eq!(vhost.list("bindings").len(), 2 * count);
    topo.run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");

    // topo removes all bindings to declared queues, and no binding to an undeclared exchange.
    let without = [owns(), ("exchanges", exchanges), ("queues", queues(2)), ("policies", policies)];
    topo.rewrite(&spec(&without));
    let targets: Vec<String> =
        names().iter().map(|name| format!("--target=bindings/*/queues/{}/*", encoded(name))).collect();
    let prune = ["apply", "-y", "--prune=bindings", "--allow=routing-gap,routing-loss"];
    // The hazard remains with `--target`.
    topo.run(["apply", "-y", "--prune", &targets[0]]).expect_code(3).expect_text("its last binding will be deleted");
    topo.run(prune.into_iter().chain(targets.iter().map(String::as_str))).expect_code(0);
    assert_eq!(vhost.list("bindings").len(), count);

    // Every second queue is recreated. Three flags select each queue only by its address.
    let chosen: Vec<String> = names().into_iter().step_by(2).collect();
    let flags: Vec<String> = chosen
        .iter()
        .flat_map(|name| {
            let address = format!("queues/{}/{}", encoded(vhost.name()), encoded(name));
            ["--target=", "--recreate=", "--allow=routing-gap@"].map(|flag| match flag {
                "--recreate=" => format!("{flag}{address}=ifEmpty"),
                _ => format!("{flag}{address}"),
            })
        })
        .collect();
    topo.run(["apply", "-y"].into_iter().chain(flags.iter().map(String::as_str))).expect_code(0);
    let limits: BTreeMap<String, u64> = vhost
        .list("queues")
        .iter()
        .map(|queue| (queue["name"].as_str().unwrap().to_owned(), queue["arguments"]["x-max-length"].as_u64().unwrap()))
        .collect();
    for name in names() {
        assert_eq!(limits[&name], if chosen.contains(&name) { 2 } else { 1 }, "{name}");
    }

    let removed = json!({"queues": names(), "exchanges": names(), "policies": names()});
    topo.rewrite(&spec(&[("removed", removed)]));
    topo.run(["apply", "-y", "--allow=mass-delete,routing-gap,routing-loss"]).expect_code(0);
    for kind in ["queues", "exchanges", "policies", "bindings"] {
        assert_eq!(vhost.list(kind).len(), 0, "{kind}");
    }
}

#[test]
fn arguments_of_bindings_keep_their_types() {
    let vhost = Node::shared().vhost("headers");
    let arguments = [
        json!({"x-match": "all", "n": 1}),
        json!({"x-match": "all", "n": "1"}),
        json!({"x-match": "any", "n": 1}),
        json!({"x-match": "all", "n": 1.5}),
        json!({"x-match": "all", "n": true}),
        json!({"x-match": "all", "n": "true"}),
        json!({"x-match": "all", "n": -1}),
        json!({"x-match": "all", "n": i64::MAX}),
        json!({"x-match": "all", "n": 0.1, "m": false}),
        json!({}),
    ];
    let bindings: Value = arguments
        .iter()
        .map(|arguments| json!({"source": "h", "destination": "q", "routingKey": "k", "arguments": arguments}))
        .collect();
    let head = [
        ("owns", json!(["*"])),
        ("exchanges", json!({"h": {"type": "headers"}})),
        ("queues", json!({"q": {"type": "classic"}})),
    ];
    let mut whole = head.to_vec();
    whole.push(("bindings", bindings));
    let topo = Topo::new(&vhost).spec(&spec(&whole));
    topo.run(["apply", "-y"]).expect_code(0);
    let live: Vec<Value> = vhost.list("bindings").into_iter().map(|binding| binding["arguments"].clone()).collect();
    assert_eq!(live.len(), arguments.len());
    assert!(arguments.iter().all(|one| live.contains(one)), "{live:?}");
    topo.run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");

    // Each binding has a separate address and label, even if only the type differs.
    topo.rewrite(&spec(&head));
    let plan = topo.run(["plan", "--prune", "--format=json"]).expect_code(0).plan();
    let changes = plan["vhosts"][0]["changes"].as_array().unwrap();
    let addresses: BTreeSet<&str> = changes.iter().filter_map(|change| change["address"].as_str()).collect();
    assert_eq!(addresses.len(), arguments.len());
    let shown = topo.run(["plan", "--prune"]).expect_code(0);
    shown.expect_text("k {n: 1, x-match: all} →").expect_text("k {n: \"1\", x-match: all} →");

    // Selects one binding by its address, and then all bindings.
    let one = format!("--target=bindings/{}/h/queues/q/k/{}", vhost.name(), encoded("n=1.5,x-match=all"));
    topo.run(["apply", "-y", "--prune", "--allow=routing-loss", &one]).expect_code(0);
    let live: Vec<Value> = vhost.list("bindings").into_iter().map(|binding| binding["arguments"].clone()).collect();
    assert!(live.len() == arguments.len() - 1 && !live.contains(&arguments[3]), "{live:?}");
    topo.run(["apply", "-y", "--prune", "--allow=routing-gap,routing-loss"]).expect_code(0);
    assert_eq!(vhost.list("bindings").len(), 0);
}

#[test]
fn integer_width_of_a_binding_argument_is_not_a_difference() {
    let vhost = Node::shared().vhost("twins");
    let amqp = vhost.amqp();
    let head = "owns: [\"*\"]\nexchanges: {h: {type: headers}}\nqueues:\n  q:\n    type: classic\n    bindings:\n";
    let first = "      - {exchange: h, routingKey: one, arguments: {n: 1}}\n";
    let second = "      - {exchange: h, routingKey: two, arguments: {n: 1}}\n";
    amqp.declare_exchange("h", "headers", NONE).unwrap();
    amqp.declare_queue("q", NONE).unwrap();
    amqp.bind_queue("h", "q", "one", &[("n", Argument::LongInt(1))]);
    let topo = Topo::new(&vhost).spec(&format!("{head}{first}"));
    topo.run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    for key in ["one", "two"] {
        for value in [Argument::LongInt(1), Argument::LongLongInt(1), Argument::ShortShortInt(1)] {
            amqp.bind_queue("h", "q", key, &[("n", value)]);
        }
    }
    assert_eq!(vhost.list("bindings").len(), 6);
    // topo treats the duplicates of a declared binding as one declared binding.
    topo.run(["plan"]).expect_code(0).expect_text("binding h ─ two {n: 1} → q");
    topo.run(["apply", "-y", "--prune", "--allow=routing-loss"]).expect_code(0);
    let keys: Vec<Value> = vhost.list("bindings").into_iter().map(|binding| binding["routing_key"].clone()).collect();
    assert_eq!(keys, ["one", "one", "one"]);
    topo.rewrite(&format!("{head}{second}"));
    topo.run(["apply", "-y", "--prune", "--allow=routing-loss"]).expect_code(0);
    let keys: Vec<Value> = vhost.list("bindings").into_iter().map(|binding| binding["routing_key"].clone()).collect();
    assert_eq!(keys, ["two"]);
}

#[test]
fn names_that_no_request_can_contain_are_refused() {
    let vhost = Node::shared().vhost("refused");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy);
    for name in [".", ".."] {
        for kind in ["queues", "exchanges"] {
            let of = if kind == "queues" { "classic" } else { "topic" };
            topo.rewrite(&spec(&[(kind, json!({name: {"type": of}}))]));
            let refused = topo.run(["plan", "--detailed-exitcode"]);
            assert!(matches!(refused.code, Some(3 | 65)), "{refused}");
            refused.expect_text("dot segment");
            assert!(matches!(topo.run(["apply", "-y"]).code, Some(3 | 65)));
        }
    }
    topo.rewrite(
        "queues:\n  q: {type: classic, bindings: [{exchange: amq.headers, routingKey: a~b, arguments: {n: 1}}]}\n",
    );
    let refused = topo.run(["plan", "--detailed-exitcode"]);
    assert!(matches!(refused.code, Some(3 | 65)), "{refused}");
    refused.expect_text("makes the management API fail");
    assert!(matches!(topo.run(["apply", "-y"]).code, Some(3 | 65)));
    for key in ["null", "undefined"] {
        topo.rewrite(&format!(
            "queues:\n  q: {{type: classic, bindings: [{{exchange: amq.topic, routingKey: \"{key}\"}}]}}\n"
        ));
        topo.run(["plan"]).expect_code(65).expect_text(key);
    }
    assert_eq!((vhost.names("queues"), proxy.count(&posts())), (Vec::new(), 0));
}

#[test]
fn undeletable_binding_is_reported_and_kept() {
    let vhost = Node::shared().vhost("null");
    let amqp = vhost.amqp();
    amqp.declare_queue("q", NONE).unwrap();
    for key in ["null", "undefined", "other"] {
        amqp.bind_queue("amq.topic", "q", key, NONE);
    }
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost)
        .through(&proxy)
        .spec("owns: [\"*\"]\nqueues: {q: {type: classic, bindings: [{exchange: amq.direct, routingKey: k}]}}\n");
    let planned = topo.run(["plan", "--prune"]).expect_code(0);
    let planned = planned.expect_text("amq.topic ─ null → q").expect_text("amq.topic ─ undefined → q");
    planned.expect_text("topo keeps it; unbind it with an AMQP client");
    topo.run(["apply", "-y", "--prune", "--allow=routing-loss"]).expect_code(0);
    assert_eq!(proxy.count(&deletes().path("/bindings/")), 1);
    topo.run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    let keys: BTreeSet<String> =
        vhost.list("bindings").iter().map(|binding| binding["routing_key"].as_str().unwrap().to_owned()).collect();
    assert_eq!(keys, ["k", "null", "undefined"].map(str::to_owned).into());
}

#[test]
fn control_characters_of_unmanaged_names_are_escaped() {
    let vhost = Node::shared().vhost("control");
    let amqp = vhost.amqp();
    let name = "a\u{1b}[31mred\u{7}";
    amqp.declare_queue(name, &[("x-max-length", Argument::LongInt(1)), ("x-note", text("\u{1b}]0;title\u{7}"))])
        .unwrap();
    let topo = Topo::new(&vhost).spec("owns: [\"*\"]\n");
    for arguments in [vec!["plan"], vec!["plan", "--prune"], vec!["apply", "-y", "--prune"]] {
        topo.run(arguments).expect_no_text("\u{1b}").expect_no_text("\u{7}");
    }
    topo.run(["apply", "-y", "--prune", "--allow=mass-delete"]).expect_code(0);
    assert_eq!(vhost.names("queues"), [""; 0]);
}
