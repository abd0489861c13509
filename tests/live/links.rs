//! Tests shovels, federation upstreams, upstream sets and other parameters in a spec: topo compares them without a
//! restart, never shows a password, and writes and deletes them in a safe order.

use serde_json::{Value, json};
use topo::model::record_kinds::{Comparison, FieldShape, RecordField};
use topo::model::{BrokerVersion, RecordKind};

use super::users::{expect_no_secret, no_changes};
use crate::support::vhost::segment;
use crate::support::{Fault, Node, Options, Output, Proxy, Topo, Vhost, gets, puts, until, writes};

/// A spec with a shovel that connects to the shared node as `guest`, with the password in the variable `OLD`.
fn spec() -> String {
    SPEC.replace("PORT", &Node::shared().amqp_port().to_string())
}

const SPEC: &str = "\
exchanges: {orders: {type: topic}}
queues: {incoming: {type: classic}}
upstreams:
  us: {uri: 'amqps://fed@us.invalid/shop', password: {env: US}, messageTtl: 1h}
upstreamSets:
  regions: [us]
  special: [{upstream: us, exchange: orders-us, expires: 2h}]
policies:
  federated: {pattern: '^orders$', applyTo: exchanges, definition: {federationUpstreamSet: regions}}
shovels:
  from-old:
    source: {queue: incoming, prefetch: 500}
    destination: {uri: 'amqp://guest@127.0.0.1:PORT', password: {env: OLD}, exchange: orders, addForwardHeaders: true}
    reconnectDelay: 30s
";

/// Returns the value of a parameter on the broker.
fn live(vhost: &Vhost<'_>, component: &str, name: &str) -> Value {
    vhost.http().get(&vhost.path(&format!("parameters/{component}"), &[name])).body["value"].clone()
}

fn put(vhost: &Vhost<'_>, component: &str, name: &str, value: &Value) {
    let path = vhost.path(&format!("parameters/{component}"), &[name]);
    let answer = vhost.http().put(&path, &json!({ "value": value }));
    assert!(answer.is_success(), "{component} {name}: {}", answer.body);
}

/// Returns the status of a shovel; null if the shovel is not listed.
fn status(vhost: &Vhost<'_>, name: &str) -> Value {
    let listed = vhost.http().get(&format!("/api/shovels/{}", segment(vhost.name())));
    let entries = listed.body.as_array().cloned().unwrap_or_default();
    entries.into_iter().find(|entry| entry["name"] == name).unwrap_or(Value::Null)
}

#[test]
fn links_are_created_changed_and_deleted() {
    let vhost = Node::shared().vhost("links");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).env("US", "pa#s s/ü").env("OLD", "guest").spec(&spec());
    topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified");
    let uri = "amqps://fed:pa%23s%20s%2F%C3%BC@us.invalid/shop";
    assert_eq!(live(&vhost, "federation-upstream", "us"), json!({"uri": uri, "message-ttl": 3_600_000}));
    let member = json!([{"upstream": "us", "exchange": "orders-us", "expires": 7_200_000}]);
    assert_eq!(live(&vhost, "federation-upstream-set", "special"), member);
    let shovel = json!({
        "src-uri": format!("amqp:///{}", vhost.name()), "src-queue": "incoming", "src-prefetch-count": 500,
        "dest-uri": format!("amqp://guest:guest@127.0.0.1:{}", Node::shared().amqp_port()), "dest-exchange": "orders", "dest-add-forward-headers": true,
        "reconnect-delay": 30,
    });
    assert_eq!(live(&vhost, "shovel", "from-old"), shovel);
    no_changes(&topo);
    let written = proxy.count(&writes());
    topo.run(["apply", "-y"]).expect_code(0).expect_text("No changes");
    assert_eq!(proxy.count(&writes()), written, "a second apply writes nothing");
    // The order of creations: exchanges, upstreams, sets, policies, queues, shovels.
    let place =
        |part: &str| proxy.requests().iter().position(|seen| seen.method == "PUT" && seen.path.contains(part)).unwrap();
    let order =
        ["/exchanges/", "/federation-upstream/", "/federation-upstream-set/", "/policies/", "/incoming", "/shovel/"];
    let places = order.map(place);
    assert!(places.is_sorted(), "{places:?}");
    // Changes.
    let shovel_restarts = ("duplicates", "shovel from-old restarts; messages in flight may be delivered twice");
    let links_restart = ("duplicates", "the links to upstream us restart; messages in flight may be delivered twice");
    let mut spec = spec();
    for (old, new, (hazard, text)) in [
        ("prefetch: 500", "prefetch: 600", shovel_restarts),
        ("reconnectDelay: 30s", "reconnectDelay: 40s\n    ackMode: no-ack", shovel_restarts),
        (
            "reconnectDelay: 40s",
            "reconnectDelay: 50s",
            ("message-loss", "shovel from-old restarts; messages in flight are lost with ackMode no-ack"),
        ),
        ("messageTtl: 1h", "maxHops: 2", links_restart),
    ] {
        spec = spec.replace(old, new);
        topo.rewrite(&spec);
        let blocked = topo.run(["apply", "-y"]).expect_code(3).expect_text(hazard);
        assert!(blocked.says(text), "{blocked}");
        topo.run(["apply", "-y", &format!("--allow={hazard}")]).expect_code(0).expect_text("1 of 1 step done");
        no_changes(&topo);
    }
    assert_eq!(live(&vhost, "federation-upstream", "us"), json!({"uri": uri, "max-hops": 2}));
    let spec = spec.replace("regions: [us]", "regions: []");
    topo.rewrite(&spec);
    let text = "objects that use the upstream set regions lose their links to us";
    let blocked = topo.run(["apply", "-y"]).expect_code(3);
    assert!(blocked.says(text), "{blocked}");
    topo.run(["apply", "-y", "--allow=routing-gap"]).expect_code(0);
    no_changes(&topo);
    // Deletions.
    let removed =
        "removed: {shovels: [from-old], upstreams: [us], upstreamSets: [regions, special], policies: [federated]}\n";
    topo.rewrite(&format!(
        "exchanges: {{orders: {{type: topic}}}}\nqueues: {{incoming: {{type: classic}}}}\n{removed}"
    ));
    let plan = topo.run(["plan"]).expect_code(0).expect_text("shovel from-old no longer moves messages");
    plan.expect_text("the links to upstream us stop: no more messages arrive from it");
    let seen = proxy.requests().len();
    topo.run(["apply", "-y", "--allow=routing-gap,mass-delete"]).expect_code(0).expect_text("Verified");
    let requests = proxy.requests();
    let place = |part: &str| {
        requests[seen..].iter().position(|seen| seen.method == "DELETE" && seen.path.contains(part)).unwrap()
    };
    let places = ["/shovel/", "/policies/", "/federation-upstream-set/", "/federation-upstream/"].map(place);
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(live(&vhost, "shovel", "from-old"), Value::Null);
    no_changes(&topo);
}

/// Returns a value in the notation of a spec that differs from the field's default.
fn other_value(field: &RecordField) -> String {
    if let FieldShape::Words(words) = field.shape {
        return words.iter().find(|word| **word != field.default).unwrap().to_string();
    }
    let known = [(FieldShape::Boolean, "true"), (FieldShape::Seconds, "70s")];
    let is_count = matches!(field.shape, FieldShape::Count(..));
    let of_shape = known.iter().find(|(shape, _)| *shape == field.shape).map(|(_, value)| *value);
    of_shape.unwrap_or(if is_count { "7" } else { field.example }).to_owned()
}

/// The keys that only AMQP 1.0 supports.
const ONLY_AMQP_1_0: [&str; 4] = ["address", "properties", "applicationProperties", "messageAnnotations"];

/// Returns the shovels or upstreams of a spec, each with the same keys and one further field of the table of kinds that
/// this version supports.
fn with_each_field(kind: RecordKind, is_set: bool) -> String {
    let version: BrokerVersion = Node::shared().version().parse().unwrap();
    let is_supported = |field: &&RecordField| field.since.is_none_or(|since| version >= since);
    let mut spec = String::new();
    for field in kind.row().settings().iter().filter(is_supported) {
        let value = if is_set { format!("{}: {}", field.key, other_value(field)) } else { String::new() };
        let is_local = field.key == "protocol";
        if matches!(field.shape, FieldShape::Secret { .. }) || is_local || field.comparison == Comparison::Never {
            continue;
        }
        let uri = if field.key == "uri" && is_set { "" } else { "uri: 'amqp://'" };
        if kind == RecordKind::Upstream {
            spec += &format!("  {}: {{{uri}, {value}}}\n", field.name).replace("{,", "{").replace(", }", "}");
            continue;
        }
        let is_amqp_1_0 = ONLY_AMQP_1_0.contains(&field.key);
        let end = |group: &str| {
            let target =
                match (is_amqp_1_0, field.group == group && is_set && ["exchange", "queue"].contains(&field.key)) {
                    (true, _) if field.key == "address" && field.group == group && is_set => "protocol: amqp10",
                    (true, _) => "protocol: amqp10, address: /queues/a",
                    (false, true) => "",
                    (false, false) if field.group == group && field.key == "routingKey" => "exchange: amq.topic",
                    (false, false) => "queue: a",
                };
            let own = if field.group == group { value.as_str() } else { "" };
            let uri = if field.group == group { uri } else { "uri: 'amqp://'" };
            let keys: Vec<&str> = [uri, target, own].into_iter().filter(|key| !key.is_empty()).collect();
            format!("{{{}}}", keys.join(", "))
        };
        let own = if field.group.is_empty() { format!(", {value}") } else { String::new() };
        let shovel = format!("source: {}, destination: {}{own}", end("source"), end("destination"));
        spec += &format!("  {}: {{{}}}\n", field.name, shovel.trim_end_matches(", "));
    }
    spec
}

/// Each field of the table is created, compared, changed and removed.
#[test]
fn every_field_is_written_and_compared() {
    let vhost = Node::shared().vhost("links-fields");
    let topo = Topo::new(&vhost).spec(
        "queues: {a: {type: classic}, orders.work: {type: classic}, orders.copy: {type: quorum}}\n\
                                      exchanges: {orders: {type: topic}}\n",
    );
    topo.run(["apply", "-y"]).expect_code(0);
    for is_set in [true, false, true] {
        let [shovels, upstreams] = [RecordKind::Shovel, RecordKind::Upstream].map(|kind| with_each_field(kind, is_set));
        topo.rewrite(&format!("shovels:\n{shovels}upstreams:\n{upstreams}"));
        topo.run(["apply", "-y", "--allow=duplicates,message-loss"]).expect_code(0).expect_text("Verified");
        no_changes(&topo);
    }
    // The broker rejects each field that the table marks as unsupported in this version.
    let fields = [RecordKind::Shovel, RecordKind::Upstream].map(|kind| (kind, kind.row().settings()));
    let version: BrokerVersion = Node::shared().version().parse().unwrap();
    for (kind, field) in fields.iter().flat_map(|(kind, fields)| fields.iter().map(move |field| (kind, field))) {
        if field.since.is_none_or(|since| version >= since) {
            continue;
        }
        let value = if let FieldShape::Words(words) = field.shape {
            json!(words[1])
        } else if field.shape == FieldShape::Text {
            json!("x")
        } else if field.shape == FieldShape::Boolean {
            json!(true)
        } else {
            json!({})
        };
        let mut fields = if *kind == RecordKind::Shovel {
            json!({"src-uri": "amqp://", "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"})
        } else {
            json!({"uri": "amqp://"})
        };
        fields[field.name] = value;
        let path = vhost.path(kind.row().path, &["refused"]);
        let answer = vhost.http().put(&path, &json!({ "value": fields }));
        assert_eq!(answer.status, 400, "{}: {}", field.name, answer.body);
    }
}

/// A spec with a field that this version does not support is blocked.
#[test]
fn unsupported_fields_block_the_plan() {
    let vhost = Node::shared().vhost("links-since");
    let topo = Topo::new(&vhost);
    let end = |keys: &str| format!("shovels: {{s: {{source: {{queue: a{keys}}}, destination: {{queue: b}}}}}}\n");
    for (keys, since) in [
        (", queueArguments: {x-queue-type: quorum}", (3, 8, 12)),
        (", consumerArguments: {x-priority: 1}", (3, 9, 0)),
        (", predeclared: true", (4, 0, 0)),
        (", protocol: local", (4, 2, 0)),
        (", consumerName: shovel", (4, 3, 0)),
    ] {
        topo.rewrite(&end(keys));
        let plan = topo.run(["plan", "--detailed-exitcode"]);
        match Node::shared().is_at_least_patch(since.0, since.1, since.2) {
            true => plan.expect_code(2),
            false => plan.expect_code(3).expect_text("requires RabbitMQ"),
        };
    }
}

/// Values that mean the same are equal, so the broker does not restart the shovel.
#[test]
fn equivalent_values_are_equal() {
    let vhost = Node::shared().vhost("links-equal");
    let uri = format!("amqp://127.0.0.1:1/{}", segment(vhost.name()));
    let spec = format!(
        "upstreams: {{us: {{uri: '{uri}'}}}}\nshovels:\n  s:\n    source: {{uri: '{uri}', queue: a}}\n    \
         destination: {{uri: 'amqp://u@127.0.0.1:1', password: {{env: PW}}, queue: b}}\n"
    );
    let topo = Topo::new(&vhost).env("PW", "a:b").spec(&spec);
    let shovel = json!({"src-uri": uri, "src-queue": "a", "dest-uri": "amqp://u:a%3Ab@127.0.0.1:1", "dest-queue": "b"});
    let with = |more: Value| {
        let mut value = shovel.clone();
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        value
    };
    for value in [
        shovel.clone(),
        with(json!({"src-uri": [uri.clone()], "dest-uri": ["amqp://u:%61%3ab@127.0.0.1:1/%2f"]})),
        with(json!({"src-protocol": "amqp091", "ack-mode": "on-confirm", "reconnect-delay": 5})),
        with(json!({"prefetch-count": 1000, "add-forward-headers": false, "delete-after": "never"})),
        with(json!({"src-prefetch-count": 1000, "dest-add-timestamp-header": false, "src-delete-after": "never"})),
        with(json!({"src-exchange-key": "", "dest-publish-properties": {}, "reconnect-delay": 5.0})),
    ] {
        put(&vhost, "shovel", "s", &value);
        let upstream = json!({"uri": [uri.replace("amqp", "AMQP").replace("127.0.0.1:1/", "127.0.0.1:01/")], "prefetch-count": 1000,
                              "max-hops": 1, "ack-mode": "on-confirm", "reconnect-delay": 5, "trust-user-id": false});
        put(&vhost, "federation-upstream", "us", &upstream);
        no_changes(&topo);
    }
    for (more, text) in [
        (json!({"dest-uri": "amqp://u:other@127.0.0.1:1"}), "a different value → environment variable PW"),
        (json!({"dest-uri": "amqp://u@127.0.0.1:1"}), "absent → environment variable PW"),
        (json!({"src-uri": format!("{uri}?heartbeat=5")}), "?heartbeat=5\" → amqp://127.0.0.1:1"),
        (json!({"src-prefetch-count": 5}), "src-prefetch-count"),
    ] {
        put(&vhost, "shovel", "s", &with(more));
        let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(3);
        assert!(plan.says(text), "{plan}");
    }
}

#[test]
fn no_output_contains_a_password_of_a_uri() {
    let vhost = Node::shared().vhost("links-secret");
    let (old, new, whole) = ("tulip/ä \"old\"", "tulip%2F:@ new", "rose-whole");
    let secrets = [old, new, whole];
    let spec = "\
        queues: {a: {type: classic}}\n\
        upstreams: {us: {uri: {env: WHOLE}}}\n\
        shovels: {s: {source: {queue: a}, destination: {uri: 'amqp://u@127.0.0.1:1', password: {env: PW}, queue: b}}}\n";
    let whole_uri = format!("amqp://fed:{whole}@127.0.0.1:1/v");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).env("PW", old).env("WHOLE", &whole_uri).spec(spec);
    let check = |output: Output| {
        expect_no_secret(&secrets, &format!("{}{}", output.stdout, output.stderr));
        for file in std::fs::read_dir(topo.path(".")).unwrap() {
            let (name, text) = (file.as_ref().unwrap().file_name(), std::fs::read_to_string(file.unwrap().path()));
            // The backup must be able to restore the URIs.
            if name != "backup.json" {
                expect_no_secret(&secrets, &text.unwrap_or_default());
            }
        }
    };
    let all = || {
        for format in ["text", "json", "markdown", "github", "short"] {
            check(topo.run(["plan", "--format", format, "-v"]));
        }
        check(topo.run(["plan", "--out=plan.json", "-v"]));
        check(topo.run(["validate", "topology.yaml", "--format=json"]));
        check(topo.run(["show", "--expanded"]));
        check(topo.run(["explain", "a"]));
    };
    all();
    check(topo.run(["apply", "-y", "--format=json"]).expect_code(0));
    // Another client changed both values.
    let live_shovel = json!({"src-uri": "amqp://", "src-queue": "a", "dest-uri": format!("amqp://u:{whole}@127.0.0.1:1"),
                             "dest-queue": "b"});
    put(&vhost, "shovel", "s", &live_shovel);
    put(&vhost, "federation-upstream", "us", &json!({"uri": ["amqp://a:tulip%252F%3A%40%20new@127.0.0.1:1"]}));
    all();
    let backup = topo.path("backup.json");
    let flag = format!("--backup={}", backup.display());
    check(topo.run(["apply", "--plan=plan.json", "-v", "--allow=duplicates", &flag]).expect_code(0));
    let saved = std::fs::read_to_string(&backup).unwrap();
    assert!(saved.contains(&format!("amqp://u:{whole}@127.0.0.1:1")), "{saved}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
    }
    no_changes(&topo);
    check(topo.run(["export", "--with=all", "--vhost", vhost.name()]).expect_code(0));
    // The broker repeats the URI in its reason.
    for (path, hops) in [("/parameters/shovel/", 3), ("/parameters/federation-upstream/", 4)] {
        let reason = format!("\"{whole_uri}\" not a valid URI: {{bad, '{old}'}}");
        let refusing = Proxy::to(Node::shared()).on(puts().path(path), Fault::Reason(400, reason));
        let refused = Topo::new(&vhost).through(&refusing).env("PW", old).env("WHOLE", &whole_uri);
        let changed = format!("upstreams: {{us: {{maxHops: {hops}, ");
        let spec = spec.replace("queue: b", &format!("queue: c{hops}")).replace("upstreams: {us: {", &changed);
        refused.rewrite(&spec);
        let output = refused.run(["apply", "-y", "--allow=duplicates"]);
        assert_ne!(output.code, Some(0), "{output}");
        check(output.expect_text("topo hides the broker's response"));
    }
}

/// The broker accepts a shovel that cannot connect, and topo reports it.
#[test]
fn shovel_that_does_not_run_is_reported() {
    let vhost = Node::shared().vhost("links-stopped");
    let uri = format!("amqp://guest@127.0.0.1:{}", Node::shared().amqp_port());
    let spec = format!(
        "shovels: {{s: {{source: {{uri: '{uri}', password: {{env: PW}}, queue: a}}, destination: {{queue: b}}}}}}\n"
    );
    let topo = Topo::new(&vhost).env("PW", "tulip").spec(&spec);
    let applied = topo.run(["apply", "-y", "--format=json"]).expect_code(0).expect_no_text("tulip");
    let stopped = applied.json()["stoppedShovels"].clone();
    assert_eq!(stopped[0]["address"], format!("shovels/{}/s", vhost.name()), "{applied}");
    let text = stopped[0]["text"].as_str().unwrap();
    assert!(text.starts_with("shovel s is not running: "), "{text}");
    assert!(applied.stderr.contains(&format!("warning: shovels/{}/s: {text}", vhost.name())), "{applied}");
    let topo = topo.env("PW", "guest");
    let applied = topo.run(["apply", "-y", "--allow=duplicates"]).expect_code(0);
    assert!(!applied.says("is not running"), "{applied}");
}

/// The broker's reason is shown if it contains no URI.
#[test]
fn refusal_without_a_uri_is_shown() {
    let vhost = Node::shared().vhost("links-refused");
    let user = Node::shared().user("policymaker").may_everything(&vhost);
    let other = Node::shared().vhost("links-other");
    let spec = format!(
        "shovels: {{s: {{source: {{queue: a}}, destination: {{uri: 'amqp:///{}', queue: b}}}}}}\n",
        segment(other.name())
    );
    let topo = Topo::new(&vhost).user(&user).spec(&spec);
    let refused = topo.run(["apply", "-y"]).expect_code(1);
    assert!(refused.says("may not connect to vhost"), "{refused}");
}

#[test]
fn missing_secrets_are_reported() {
    let vhost = Node::shared().vhost("links-unset");
    let uri = "amqp://u:rose@127.0.0.1:1";
    put(&vhost, "federation-upstream", "us", &json!({ "uri": uri }));
    let spec = "queues: {q: {type: classic}}\nupstreams: {us: {uri: 'amqp://u@127.0.0.1:1', password: {env: UNSET}}}\n";
    let topo = Topo::new(&vhost).spec(spec);
    let note = "the password is not compared: environment variable UNSET is not set";
    topo.run(["plan"]).expect_code(0).expect_text(note).expect_text("1 object to create");
    let refused = topo.run(["apply", "-y"]).expect_code(1).expect_text("environment variable UNSET is not set");
    refused.expect_text("nothing was changed");
    assert!(vhost.names("queues").is_empty());
    topo.rewrite("upstreams: {us: {uri: {env: INVALID}}}\n");
    let topo = topo.env("INVALID", "amqp://u:pa#ss@h");
    let plan = topo.run(["plan"]).expect_code(0).expect_no_text("pa#ss");
    let text = "the value of environment variable INVALID is not a valid AMQP URI: it contains a `#`";
    assert!(plan.says(text), "{plan}");
}

/// A change of a user's password precedes the change of the shovel that uses the password, and the shovel runs.
#[test]
fn password_of_a_user_changes_before_its_shovel() {
    let vhost = Node::shared().vhost("links-rotate");
    let user = Node::shared().user("").may_everything(&vhost);
    // An open connection survives the changes of the password.
    let open = user.amqp(&vhost);
    let uri = format!("amqp://{}@127.0.0.1:{}/{}", user.name, Node::shared().amqp_port(), segment(vhost.name()));
    let spec = format!(
        "version: 1\ncluster: {{}}\nusers: {{{}: {{password: {{env: PW}}}}}}\n---\nversion: 1\nvhost: \"{{vhost}}\"\n\
         queues: {{a: {{type: classic}}, b: {{type: classic}}}}\nshovels:\n  orders-copy:\n    \
         source: {{uri: '{uri}', password: {{env: PW}}, queue: a}}\n    \
         destination: {{uri: '{uri}', password: {{env: PW}}, queue: b}}\n",
        user.name
    );
    let proxy = Proxy::to(Node::shared());
    let topo = super::cluster::topo(&vhost).through(&proxy).env("PW", "tulip-1").spec(&spec);
    topo.run(["apply", "-y", "--allow=credential-change"]).expect_code(0);
    let is_running = || (status(&vhost, "orders-copy")["state"] == "running").then_some(());
    until("the shovel runs", is_running);
    vhost.amqp().publish("", "a", "first");
    until("the message is moved", || (vhost.amqp().ready("b") == 1).then_some(()));
    let topo = topo.env("PW", "tulip-2");
    let plan = topo.run(["plan"]).expect_code(0).expect_text("credential-change");
    assert!(plan.says("shovel orders-copy"), "{plan}");
    let seen = proxy.requests().len();
    topo.run(["apply", "-y", "--allow=credential-change,duplicates"]).expect_code(0).expect_text("Verified");
    let requests = proxy.requests();
    let place =
        |part: &str| requests[seen..].iter().position(|it| it.method == "PUT" && it.path.contains(part)).unwrap();
    assert!(place("/api/users/") < place("/parameters/shovel/"));
    until("the shovel runs again", is_running);
    vhost.amqp().publish("", "a", "second");
    until("the second message is moved", || (vhost.amqp().ready("b") == 2).then_some(()));
    assert_eq!(open.ready("b"), 2);
    no_changes(&topo);
}

/// The broker refuses a shovel while the plugin is disabled.
#[test]
fn disabled_plugin_blocks_the_plan() {
    let node = Node::start(Options::default().without_plugin("rabbitmq_shovel"));
    let vhost = node.vhost("links-plugin");
    let spec = "queues: {a: {type: classic}, b: {type: classic}}\n\
                shovels: {orders-copy: {source: {queue: a}, destination: {queue: b}}}\n";
    let topo = Topo::new(&vhost).spec(spec);
    let refused = topo.run(["apply", "-y"]).expect_code(3).expect_text("the rabbitmq_shovel plugin is not enabled");
    assert!(refused.says("rabbitmq-plugins enable rabbitmq_shovel"), "{refused}");
    assert!(vhost.names("queues").is_empty());
}

/// A deleted shovel cannot declare its deleted queue again.
#[test]
fn shovel_is_deleted_before_its_queue() {
    let vhost = Node::shared().vhost("links-queue");
    let spec = "queues: {a: {type: quorum}, b: {type: classic}}\n\
                shovels: {orders-copy: {source: {queue: a}, destination: {queue: b}, reconnectDelay: 1s}}\n";
    let topo = Topo::new(&vhost).spec(spec);
    topo.run(["apply", "-y"]).expect_code(0);
    until("the shovel runs", || (status(&vhost, "orders-copy")["state"] == "running").then_some(()));
    // The shovel is changed before the queue is deleted.
    topo.rewrite(
        "queues: {b: {type: classic}, c: {type: classic}}\nremoved: {queues: [a]}\n\
         shovels: {orders-copy: {source: {queue: c}, destination: {queue: b}, reconnectDelay: 1s}}\n",
    );
    topo.run(["plan"]).expect_code(0).expect_text("orders-copy").expect_no_text("shovel-interference");
    topo.rewrite("queues: {b: {type: classic}}\nremoved: {queues: [a], shovels: [orders-copy]}\n");
    topo.run(["plan"]).expect_code(0).expect_no_text("shovel-interference");
    topo.run(["apply", "-y", "--allow=routing-gap,mass-delete,consumer-disruption"]).expect_code(0);
    // A shovel that still ran would reconnect and declare the queue every second.
    std::thread::sleep(std::time::Duration::from_secs(10));
    assert_eq!(vhost.names("queues"), ["b"]);
}

#[test]
fn links_are_exported_and_read_from_definitions_files() {
    let vhost = Node::shared().vhost("links-export");
    let topo = Topo::new(&vhost).env("US", "rose").env("OLD", "guest").spec(&spec());
    topo.run(["apply", "-y"]).expect_code(0);
    put(&vhost, "federation-upstream", "mixed", &json!({"uri": ["amqp://a:b@127.0.0.1:1", "amqp://a:c@127.0.0.1:1"]}));
    put(
        &vhost,
        "shovel",
        "once",
        &json!({"src-uri": "amqp://", "src-queue": "a", "dest-uri": "amqp://",
                                          "dest-queue": "b", "src-delete-after": "queue-length"}),
    );
    let exported = topo.run(["export", "--with=shovels,upstreams,upstreamSets,parameters", "--vhost", vhost.name()]);
    let exported = exported.expect_code(0).expect_no_text("rose").expect_no_text(":guest@");
    let needed = "an apply needs these environment variables FROM_OLD_DESTINATION_PASSWORD, US_PASSWORD";
    assert!(exported.says(needed), "{exported}");
    assert!(exported.says("(its URIs have different passwords)"), "{exported}");
    topo.write("topology.yaml", &exported.stdout);
    no_changes(&topo);
    let topo = topo.env("FROM_OLD_DESTINATION_PASSWORD", "guest").env("US_PASSWORD", "other");
    let changed = topo.run(["plan", "--detailed-exitcode"]).expect_code(3);
    assert!(changed.says("a different value → environment variable US_PASSWORD"), "{changed}");
    let topo = topo.env("US_PASSWORD", "rose");
    no_changes(&topo);
    // Other tests delete vhosts at the same time, and the broker then responds with 500.
    let definitions = until("the definitions", || {
        let answer = Node::shared().http().get(&format!("/api/definitions/{}", segment(vhost.name())));
        (answer.status == 200).then_some(answer.body)
    });
    topo.write("definitions.json", &definitions.to_string());
    let against = ["plan", "--against=definitions.json", "--detailed-exitcode"];
    topo.run(against).expect_code(0).expect_text("No changes");
    let from_file = ["export", "--definitions=definitions.json", "--with=all", "--vhost", vhost.name()];
    topo.run(from_file).expect_code(0).expect_text("FROM_OLD_DESTINATION_PASSWORD").expect_no_text("rose");
}

#[test]
fn policymaker_tag_is_required() {
    let vhost = Node::shared().vhost("links-tag");
    let spec = "shovels: {s: {source: {queue: a}, destination: {queue: b}}}\n";
    let user = Node::shared().user("management").may_everything(&vhost);
    let topo = Topo::new(&vhost).user(&user).spec(spec);
    let text = "1 shovel cannot be compared: reading shovels requires the policymaker tag";
    topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text(text);
    // Without the tag `monitoring`, topo does not know whether the plugin is enabled.
    let user = Node::shared().user("policymaker").may_everything(&vhost);
    let topo = Topo::new(&vhost).user(&user).spec(spec);
    let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(2);
    assert!(plan.says("reading plugins requires the monitoring tag"), "{plan}");
}

/// A plan sends one request for each section with records. A plan that writes such records also reads the plugins. Like
/// every plan with changes, it also sends two requests for the user's rights.
#[test]
fn requests_of_a_plan_are_counted() {
    let vhost = Node::shared().vhost("links-requests");
    let proxy = Proxy::to(Node::shared());
    let count = |spec: &str| {
        let topo = Topo::new(&vhost).through(&proxy).spec(spec);
        let before = proxy.count(&gets());
        topo.run(["plan"]).expect_code(0);
        proxy.count(&gets()) - before
    };
    let plain = count("queues: {}\n");
    assert_eq!(count("shovels: {}\nupstreams: {}\nupstreamSets: {}\nparameters: {}\n"), plain + 4);
    assert_eq!(count("shovels: {s: {source: {queue: a}, destination: {queue: b}}}\n"), plain + 4);
}

/// Registers a component that accepts every value, because no plugin of the test nodes has another component.
fn register_component(node: &Node, component: &str) {
    let forms = [
        "-module(topo_component).",
        "-behaviour(rabbit_runtime_parameter).",
        "-export([validate/5, notify/5, notify_clear/4]).",
        "validate(_, _, _, _, _) -> ok.",
        "notify(_, _, _, _, _) -> ok.",
        "notify_clear(_, _, _, _) -> ok.",
    ];
    let forms: Vec<String> = forms.iter().map(|form| format!("F(\"{form}\")")).collect();
    node.ctl([
        "eval",
        &format!(
            "F = fun(S) -> {{ok, T, _}} = erl_scan:string(S), {{ok, P}} = erl_parse:parse_form(T), P end, \
             {{ok, M, B}} = compile:forms([{}]), {{module, M}} = code:load_binary(M, \"topo\", B), \
             rabbit_registry:register(runtime_parameter, <<\"{component}\">>, topo_component).",
            forms.join(", ")
        ),
    ]);
}

/// Parameters of other components are values that topo does not interpret.
#[test]
fn parameters_of_other_components_are_managed() {
    let vhost = Node::shared().vhost("links-parameters");
    register_component(Node::shared(), "topo-test");
    let topo = Topo::new(&vhost).spec("parameters: {topo-test: {main: {depth: 3}, 'a/b ü': {}, list: [1, 1.5, x]}}\n");
    topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified");
    assert_eq!(live(&vhost, "topo-test", "main"), json!({"depth": 3}));
    no_changes(&topo);
    let exported = topo.run(["export", "--with=parameters", "--vhost", vhost.name()]).expect_code(0).stdout;
    topo.rewrite("parameters: {topo-test: {main: {depth: 4}}}\n");
    topo.run(["plan"]).expect_code(0).expect_text("1 object to change");
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&vhost, "topo-test", "main"), json!({"depth": 4}));
    topo.rewrite("owns: ['*']\nparameters: {}\n");
    topo.run(["apply", "-y", "--prune=parameters", "--allow=mass-delete"]).expect_code(0);
    assert!(vhost.list("parameters/topo-test").is_empty());
    topo.write("topology.yaml", &exported);
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&vhost, "topo-test", "list"), json!([1, 1.5, "x"]));
    no_changes(&topo);
    topo.rewrite("parameters: {nothing: {main: 1}}\n");
    let refused = topo.run(["apply", "-y"]).expect_code(1);
    assert!(refused.says("component nothing not found"), "{refused}");
}

/// topo never changes a shovel that deletes itself, although the spec uses its name.
#[test]
fn self_deleting_shovel_is_not_overwritten() {
    let vhost = Node::shared().vhost("links-excluded");
    let uri = format!("amqp:///{}", vhost.name());
    let job =
        json!({"src-uri": uri, "src-queue": "a", "dest-uri": uri, "dest-queue": "b", "src-delete-after": 1_000_000});
    put(&vhost, "shovel", "job", &job);
    let topo = Topo::new(&vhost).spec("shovels: {job: {source: {queue: a}, destination: {queue: b}}}\n");
    let blocked = topo.run(["apply", "-y"]).expect_code(3);
    assert!(blocked.says("a shovel that deletes itself, or that the broker created, has this name"), "{blocked}");
    topo.rewrite("removed: {shovels: [job]}\n");
    let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(0);
    assert!(plan.says("and topo does not delete it"), "{plan}");
    assert_eq!(live(&vhost, "shovel", "job"), job);
}

/// A changed member of a set restarts its links.
#[test]
fn changed_member_of_a_set_is_a_hazard() {
    let vhost = Node::shared().vhost("links-members");
    let spec = |members: &str| {
        format!("upstreams: {{us: {{uri: 'amqp://127.0.0.1:1'}}}}\nupstreamSets: {{all-regions: {members}}}\n")
    };
    let topo = Topo::new(&vhost).spec(&spec("[{upstream: us, exchange: x}]"));
    topo.run(["apply", "-y"]).expect_code(0);
    topo.rewrite(&spec("[{upstream: us, exchange: x, prefetch: 7, ackMode: no-ack}]"));
    let text = "the links to upstream us in the set all-regions restart; messages in flight may be delivered twice";
    let blocked = topo.run(["apply", "-y"]).expect_code(3);
    assert!(blocked.says(text), "{blocked}");
    assert!(blocked.says("us (exchange x) → us (ack-mode no-ack, exchange x, prefetch-count 7)"), "{blocked}");
    topo.run(["apply", "-y", "--allow=duplicates"]).expect_code(0);
    topo.rewrite(&spec("[us]"));
    topo.run(["plan"]).expect_code(0).expect_text("message-loss");
}

/// An invalid value of a complete URI is reported before the first change.
#[test]
fn invalid_value_of_a_uri_stops_before_the_first_change() {
    let vhost = Node::shared().vhost("links-invalid");
    let spec = "queues: {a: {type: classic}}\nupstreams: {us: {uri: {env: WHOLE}}}\n";
    let topo = Topo::new(&vhost).env("WHOLE", "hunter2:no-uri").spec(spec);
    let refused = topo.run(["apply", "-y"]).expect_code(1).expect_no_text("hunter2");
    assert!(refused.says("environment variable WHOLE: the value is not a valid AMQP URI"), "{refused}");
    assert!(vhost.names("queues").is_empty());
}

/// A plan of users, permissions and a shovel without changes sends at most 13 requests.
#[test]
fn plan_of_several_kinds_sends_few_requests() {
    let (vhost, user) = (Node::shared().vhost("links-13"), Node::shared().user(""));
    let proxy = Proxy::to(Node::shared());
    let spec = format!(
        "version: 1\ncluster: {{}}\nusers: {{{}: {{tags: []}}}}\n---\nversion: 1\nvhost: \"{{vhost}}\"\n\
         queues: {{a: {{type: classic}}, b: {{type: classic}}}}\npermissions: {{{}: {{read: a}}}}\n\
         shovels: {{s: {{source: {{queue: a}}, destination: {{queue: b}}}}}}\n",
        user.name, user.name
    );
    let topo = super::cluster::topo(&vhost).through(&proxy).spec(&spec);
    topo.run(["apply", "-y"]).expect_code(0);
    let before = proxy.count(&gets());
    no_changes(&topo);
    let sent = proxy.count(&gets()) - before;
    assert!(sent <= 13, "{sent}");
}

/// The next run completes a run in which the broker refused any of the writes.
#[test]
fn interrupted_run_is_completed() {
    for write in 1..=6 {
        let vhost = Node::shared().vhost("links-stop");
        let uri = format!("amqp:///{}", vhost.name());
        let old = json!({"src-uri": uri, "src-queue": "incoming", "dest-uri": uri, "dest-queue": "incoming"});
        put(&vhost, "shovel", "old", &old);
        let spec = spec() + "removed: {shovels: [old]}\n";
        // The parameters: an upstream, two sets, a new shovel, a deleted shovel; and the policy.
        let faulty = writes().path("/api/p").from(write);
        let proxy = Proxy::to(Node::shared()).on(faulty, Fault::Status(400));
        let allowed = ["apply", "-y", "--allow=routing-gap,mass-delete"];
        let topo = Topo::new(&vhost).env("US", "rose").env("OLD", "guest").spec(&spec);
        let refused = Topo::new(&vhost).env("US", "rose").env("OLD", "guest").through(&proxy).spec(&spec).run(allowed);
        assert_ne!(refused.code, Some(0), "{refused}");
        topo.run(allowed).expect_code(0).expect_text("Verified");
        no_changes(&topo);
        assert_eq!(live(&vhost, "shovel", "old"), Value::Null);
    }
}
