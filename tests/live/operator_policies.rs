//! Tests operator policies in a spec: topo creates, changes, deletes, exports and refuses them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use topo::model::{Arguments, Object, Record, RecordId, RecordKind};
use topo::rabbitmq::{BrokerProfile, refusals};

use crate::support::{NONE, Node, Proxy, Topo, Vhost, gets, until, writes};

const SPEC: &str = "\
owns: ['orders*']
queues: {orders: {type: classic}}
operatorPolicies:
  orders.ceiling: {pattern: '^orders$', applyTo: queues, priority: 1, definition: {maxLength: 5, messageTtl: 1h}}
";

/// Returns the operator policies of a vhost by name, without the vhost.
fn live(vhost: &Vhost<'_>) -> BTreeMap<String, Value> {
    let list = vhost.list("operator-policies").into_iter();
    let named = list.map(|mut policy| {
        let fields = policy.as_object_mut().unwrap();
        fields.remove("vhost");
        (fields.remove("name").unwrap().as_str().unwrap().to_owned(), policy)
    });
    named.collect()
}

fn ceiling(definition: Value) -> Value {
    json!({"pattern": "^orders$", "apply-to": "queues", "priority": 1, "definition": definition})
}

fn put(vhost: &Vhost<'_>, name: &str, body: &Value) {
    let answer = vhost.http().put(&vhost.path("operator-policies", &[name]), body);
    assert!(answer.is_success(), "{name}: {body}");
}

fn no_changes(topo: &Topo) {
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn operator_policies_are_created_changed_and_deleted() {
    let vhost = Node::shared().vhost("operator");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    topo.run(["apply", "-y"]).expect_code(0);
    let mut definition = json!({"max-length": 5, "message-ttl": 3_600_000});
    assert_eq!(live(&vhost)["orders.ceiling"], ceiling(definition.clone()));
    no_changes(&topo);
    let written = proxy.count(&writes());
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(proxy.count(&writes()), written, "a second apply writes nothing");
    let mut spec = SPEC.to_owned();
    for (old, new, change) in [
        ("maxLength: 5", "maxLength: 6", ("max-length", json!(6))),
        (", messageTtl: 1h", "", ("message-ttl", Value::Null)),
        ("{maxLength: 6}", "{maxLength: 6, expires: 2h}", ("expires", json!(7_200_000))),
    ] {
        spec = spec.replace(old, new);
        topo.rewrite(&spec);
        topo.run(["plan"]).expect_code(0).expect_text(&format!("~ {}", change.0));
        // An empty queue without consumers may expire.
        let apply = topo.run(["apply", "-y", "--allow=message-drop"]).expect_code(0);
        apply.expect_text("put operator policy orders.ceiling");
        if change.1.is_null() {
            definition.as_object_mut().unwrap().remove(change.0);
        } else {
            definition[change.0] = change.1;
        }
        assert_eq!(live(&vhost)["orders.ceiling"], ceiling(definition.clone()));
        no_changes(&topo);
    }
    for (old, new) in [("'^orders$'", "'^orders'"), ("applyTo: queues", "applyTo: all"), ("priority: 1", "priority: 2")]
    {
        spec = spec.replace(old, new);
        topo.rewrite(&spec);
        topo.run(["apply", "-y"]).expect_code(0);
        no_changes(&topo);
    }
    // An operator policy without an entry in the section is unmanaged. Without the section, topo does not compare
    // operator policies.
    put(&vhost, "others", &ceiling(json!({"max-length": 9})));
    let (head, _) = spec.split_once("operatorPolicies:").unwrap();
    topo.rewrite(head);
    topo.run(["plan", "--prune=operatorPolicies"]).expect_code(0).expect_text("No changes").expect_no_text("ceiling");
    topo.rewrite(&format!("{head}operatorPolicies: {{}}\n"));
    topo.run(["plan", "--prune"])
        .expect_code(0)
        .expect_text("operator policy orders.ceiling")
        .expect_text("No changes");
    topo.run(["apply", "-y", "--prune=operatorPolicies"]).expect_code(0);
    assert_eq!(live(&vhost).keys().collect::<Vec<_>>(), ["others"]);
    topo.rewrite(&format!("{head}removed: {{operatorPolicies: [others, none]}}\n"));
    topo.run(["apply", "-y"]).expect_code(0);
    assert!(live(&vhost).is_empty());
    no_changes(&topo);
}

#[test]
fn prune_of_operator_policies_respects_protect() {
    let vhost = Node::shared().vhost("operator-protect");
    put(&vhost, "orders.kept", &ceiling(json!({"max-length": 9})));
    let topo = Topo::new(&vhost)
        .spec("owns: ['*']\nprotect: ['orders.kept']\noperatorPolicies: {}\nqueues: {q: {type: classic}}\n");
    let kept = "operator policy orders.kept is unmanaged, but protected: topo keeps it";
    topo.run(["apply", "-y", "--prune=operatorPolicies"]).expect_code(0).expect_text(kept);
    assert_eq!(live(&vhost).len(), 1);
}

#[test]
fn dropped_messages_of_an_operator_policy_are_predicted() {
    let vhost = Node::shared().vhost("operator-drop");
    let amqp = vhost.amqp();
    amqp.declare_queue("orders", NONE).unwrap();
    for _ in 0..8 {
        amqp.publish("", "orders", "m");
    }
    vhost.until_counted("orders", 8);
    let topo = Topo::new(&vhost).spec(SPEC);
    let refused = topo.run(["apply", "-y"]).expect_code(3);
    refused.expect_text(
        "max-length will become 5, and the queue holds 8 messages: the oldest will be removed \
                         immediately",
    );
    assert!(live(&vhost).is_empty());
    topo.run(["apply", "-y", "--allow=message-drop"]).expect_code(0);
    vhost.until_counted("orders", 5);
    // Because of an unmanaged operator policy with a higher priority, the operator policy of the spec has no effect.
    put(
        &vhost,
        "others",
        &json!({"pattern": "^o", "apply-to": "queues", "priority": 7, "definition": {"max-length": 90}}),
    );
    topo.rewrite(&SPEC.replace("maxLength: 5", "maxLength: 4"));
    let plan = topo.run(["plan"]).expect_code(0);
    plan.expect_text("it governs no queue: operator policy others takes precedence").expect_no_text("message-drop");
}

#[test]
fn operator_policies_are_exported_on_request() {
    let vhost = Node::shared().vhost("operator-export");
    put(&vhost, "ceiling", &ceiling(json!({"max-length": 5, "message-ttl": 3_600_000})));
    let plain = json!({"pattern": "^a\"'\\d: #", "definition": {"max-length-bytes": 1_048_576}});
    put(&vhost, "na me", &plain);
    let topo = Topo::new(&vhost).spec("queues: {q: {type: classic}}\n");
    topo.run(["apply", "-y"]).expect_code(0);
    let export = topo.run(["export", "--vhost", "{vhost}"]).expect_code(0).expect_no_text("operatorPolicies");
    assert!(export.stderr.contains("not in the spec: 2 operator policies: ceiling, na me"), "{export}");
    for kinds in ["--with=operatorPolicies", "--with=all"] {
        let export = topo.run(["export", "--vhost", "{vhost}", kinds]).expect_code(0);
        let text = export.stdout.clone();
        assert!(export.stderr.contains("0 policies, 2 operator policies"), "{export}");
        export.expect_text("operatorPolicies:");
        topo.write("topology.yaml", &text);
        no_changes(&topo);
        // An apply to an empty vhost creates the same operator policies.
        let fresh = Node::shared().vhost("operator-import");
        let other = Topo::new(&fresh).file("topology.yaml", &text.replacen(vhost.name(), fresh.name(), 1));
        other.run(["apply", "-y"]).expect_code(0);
        assert_eq!(live(&fresh), live(&vhost), "{text}");
    }
    let chosen = topo.run(["export", "--vhost", "{vhost}", "--with=all", "--match=ceil*"]).expect_code(0);
    chosen.expect_text("ceiling").expect_no_text("na me");
    topo.run(["export", "--with=bindings"]).expect_code(64).expect_error("use operatorPolicies");
}

#[test]
fn definitions_files_have_operator_policies() {
    let vhost = Node::shared().vhost("operator-definitions");
    put(&vhost, "ceiling", &ceiling(json!({"max-length": 5})));
    let topo = Topo::new(&vhost).spec(&SPEC.replace("orders.ceiling", "ceiling").replace(", messageTtl: 1h", ""));
    topo.run(["apply", "-y"]).expect_code(0);
    let all = vhost.http().list("/api/definitions");
    topo.write("definitions.json", &all.to_string());
    topo.run(["plan", "--against=definitions.json"]).expect_code(0).expect_text("No changes");
    let export = topo.run(["export", "--definitions=definitions.json", "--vhost={vhost}", "--with=all"]).expect_code(0);
    export.expect_text("ceiling: {pattern: ^orders$, applyTo: queues, priority: 1, definition: {maxLength: 5}}");
}

#[test]
fn missing_tag_for_operator_policies_is_in_the_plan() {
    let vhost = Node::shared().vhost("operator-rights");
    let user = Node::shared().user("policymaker").may_everything(&vhost);
    let topo = Topo::new(&vhost).user(&user).spec(SPEC);
    let lacks = "cannot write operator policies: this requires the administrator tag";
    let tags = format!("rabbitmqctl set_user_tags {} policymaker administrator", user.name);
    topo.run(["plan"]).expect_code(0).expect_text(lacks).expect_text(&tags);
    let refused = topo.run(["apply", "-y"]).expect_code(1);
    refused.expect_error("lacks rights for this plan; nothing was changed").expect_text(&tags);
    assert!(live(&vhost).is_empty() && vhost.names("queues").is_empty());
    // A plan requires only `management`, and an apply without changes requires no tag.
    Topo::new(&vhost).spec(SPEC).run(["apply", "-y"]).expect_code(0);
    let user = Node::shared().user("management").may(&vhost, "", "", "");
    no_changes(&Topo::new(&vhost).user(&user).spec(SPEC));
}

#[test]
fn specs_without_the_section_send_no_other_request() {
    let vhost = Node::shared().vhost("operator-requests");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    topo.run(["apply", "-y"]).expect_code(0);
    let count = |spec: &str| {
        topo.rewrite(spec);
        let before = proxy.count(&gets());
        no_changes(&topo);
        proxy.count(&gets()) - before
    };
    let (head, _) = SPEC.split_once("operatorPolicies:").unwrap();
    assert_eq!(count(head), count(SPEC));
}

/// For every policy key of any version, the broker accepts an operator policy with the key only if topo does.
#[test]
fn refused_keys_of_operator_policies_are_those_of_the_broker() {
    let vhost = Node::shared().vhost("operator-keys");
    let version = Node::shared().version().parse().unwrap();
    let profile = BrokerProfile::of(version);
    let cases = [
        ("expires", json!(1000)),
        ("message-ttl", json!(1000)),
        ("max-length", json!(5)),
        ("max-length-bytes", json!(5)),
        ("max-in-memory-length", json!(5)),
        ("max-in-memory-bytes", json!(5)),
        ("delivery-limit", json!(5)),
        ("queue-version", json!(2)),
        ("overflow", json!("reject-publish")),
        ("target-group-size", json!(3)),
        ("delayed-retry-min", json!(1000)),
        ("delayed-retry-max", json!(1000)),
        ("dead-letter-exchange", json!("amq.fanout")),
        ("dead-letter-routing-key", json!("k")),
        ("alternate-exchange", json!("amq.fanout")),
        ("queue-leader-locator", json!("balanced")),
        ("max-age", json!("7D")),
        ("consumer-timeout", json!(100_000)),
        ("max-length", json!(-1)),
        ("max-length", json!("5")),
        ("nonsense", json!(1)),
    ];
    for (key, value) in cases {
        let body = json!({"pattern": "^none$", "definition": {key: value}});
        let answer = vhost.http().put(&vhost.path("operator-policies", &[key]), &body);
        let fields: Arguments = serde_json::from_value(body.clone()).unwrap();
        let record = Record::new(RecordId::named(RecordKind::OperatorPolicy, key), fields).unwrap();
        let predicted = refusals(&Object::Record(record), &profile);
        assert_eq!(predicted.is_empty(), answer.is_success(), "{body}: {} {predicted:?}", answer.status);
    }
}

#[test]
fn refused_operator_policies_block_the_plan() {
    let vhost = Node::shared().vhost("operator-refused");
    let topo = Topo::new(&vhost).spec(&SPEC.replace("maxLength: 5", "deadLetterExchange: amq.fanout"));
    topo.run(["plan", "--detailed-exitcode"])
        .expect_code(3)
        .expect_text("an operator policy cannot set dead-letter-exchange");
    topo.run(["apply", "-y"]).expect_code(3);
    assert!(vhost.names("queues").is_empty() && live(&vhost).is_empty());
}

/// A backup contains the operator policies that a run changes, so that they can be restored.
#[test]
fn backups_hold_changed_operator_policies() {
    let vhost = Node::shared().vhost("operator-backup");
    let topo = Topo::new(&vhost).spec(SPEC);
    topo.run(["apply", "-y"]).expect_code(0);
    topo.rewrite(&SPEC.replace("maxLength: 5", "maxLength: 50"));
    topo.run(["apply", "-y", "--backup=backup.json"]).expect_code(0);
    let backup = topo.read("backup.json");
    assert!(backup.contains("operator_policy") && backup.contains("orders.ceiling"), "{backup}");
    // An import restores the operator policy.
    let body: Value = serde_json::from_str(&backup).unwrap();
    let answer = vhost.http().post("/api/definitions", &body);
    assert!(answer.is_success(), "{backup}");
    until("the operator policy of the backup", || {
        (live(&vhost)["orders.ceiling"]["definition"]["max-length"] == 5).then_some(())
    });
}
