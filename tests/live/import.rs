//! Tests that the specs that `topo import` writes match the objects that other tools create on the broker.

use serde_json::{Value, json};

use crate::support::{Node, Topo, User, Vhost};

/// Sends the requests that another tool sends for the objects of the tests.
fn create_objects(vhost: &Vhost<'_>, user: &User<'_>) {
    let put = |path: String, body: Value| {
        let answer = vhost.http().put(&path, &body);
        assert!(answer.is_success(), "{path}: {}", answer.body);
    };
    put(vhost.path("exchanges", &["orders"]), json!({"type": "topic", "durable": true, "arguments": {}}));
    let arguments = json!({"x-queue-type": "classic", "x-message-ttl": 3_600_000});
    put(vhost.path("queues", &["a/b ü"]), json!({"durable": true, "auto_delete": false, "arguments": arguments}));
    let key = json!({"routing_key": "order.#", "arguments": {}});
    let bound = vhost.http().post(&vhost.path("bindings", &["e", "orders", "q", "a/b ü"]), &key);
    assert!(bound.is_success(), "{}", bound.body);
    let policy =
        |definition: Value| json!({"pattern": "^a", "priority": 1, "apply-to": "queues", "definition": definition});
    put(vhost.path("policies", &["cap"]), policy(json!({"max-length": 5, "overflow": "drop-head"})));
    put(vhost.path("operator-policies", &["ceiling"]), policy(json!({"max-length": 9})));
    put(vhost.path("vhost-limits", &["max-queues"]), json!({"value": 50}));
    put(vhost.path("permissions", &[&user.name]), json!({"configure": "", "write": "^orders$", "read": ".*"}));
    let topic = json!({"exchange": "orders", "write": "^order", "read": ".*"});
    put(vhost.path("topic-permissions", &[&user.name]), topic);
    let upstream = json!({"uri": ["amqp://fed:rose@127.0.0.1:1"], "prefetch-count": 5, "trust-user-id": false});
    put(vhost.path("parameters/federation-upstream", &["us"]), json!({ "value": upstream }));
    let shovel = json!({
        "src-uri": ["amqp://u:tulip@127.0.0.1:1"], "src-queue": "a/b ü", "dest-uri": ["amqp://127.0.0.1:1"],
        "dest-exchange": "orders", "ack-mode": "on-publish", "reconnect-delay": 60,
    });
    put(vhost.path("parameters/shovel", &["from-old"]), json!({ "value": shovel }));
}

/// Returns a Terraform state with these resources, each with its type and its attributes.
fn state(resources: &[(&str, Value)]) -> String {
    let resource = |(kind, attributes): &(&str, Value)| {
        json!({"mode": "managed", "type": format!("rabbitmq_{kind}"), "name": "it",
               "provider": "provider[\"registry.terraform.io/cyrilgdn/rabbitmq\"]",
               "instances": [{"schema_version": 0, "attributes": attributes}]})
    };
    json!({"version": 4, "resources": resources.iter().map(resource).collect::<Vec<_>>()}).to_string()
}

fn expect_no_changes(topo: &Topo, exported: &str) {
    topo.write("topology.yaml", exported);
    let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    plan.expect_no_text("tulip");
}

#[test]
fn terraform_state_becomes_a_spec_without_changes() {
    let (vhost, user) = (Node::shared().vhost("import-terraform"), Node::shared().user("monitoring"));
    create_objects(&vhost, &user);
    let name = vhost.name();
    let policy =
        |definition: Value| json!([{"pattern": "^a", "priority": 1, "apply_to": "queues", "definition": definition}]);
    let arguments = "{\"x-queue-type\":\"classic\",\"x-message-ttl\":3600000}";
    let resources = [
        ("vhost", json!({"name": name, "description": "", "max_queues": "50"})),
        (
            "exchange",
            json!({"name": "orders", "vhost": name, "settings": [{"type": "topic", "durable": true,
                            "auto_delete": false, "arguments": null}]}),
        ),
        (
            "queue",
            json!({"name": "a/b ü", "vhost": name, "settings": [{"durable": true, "auto_delete": false,
                         "arguments": null, "arguments_json": arguments}]}),
        ),
        (
            "binding",
            json!({"vhost": name, "source": "orders", "destination": "a/b ü", "destination_type": "queue",
                           "routing_key": "order.#", "arguments": null}),
        ),
        (
            "policy",
            json!({"name": "cap", "vhost": name, "policy": policy(json!({"max-length": "5", "overflow": "drop-head"}))}),
        ),
        ("operator_policy", json!({"name": "ceiling", "vhost": name, "policy": policy(json!({"max-length": "9"}))})),
        ("user", json!({"name": user.name, "password": "hunter2", "tags": ["monitoring"]})),
        (
            "permissions",
            json!({"user": user.name, "vhost": name,
                               "permissions": [{"configure": "", "write": "^orders$", "read": ".*"}]}),
        ),
        (
            "topic_permissions",
            json!({"user": user.name, "vhost": name,
                                     "permissions": [{"exchange": "orders", "write": "^order", "read": ".*"}]}),
        ),
        (
            "federation_upstream",
            json!({"name": "us", "vhost": name, "component": "federation-upstream",
                                       "definition": [{"uri": "amqp://fed:rose@127.0.0.1:1", "prefetch_count": 5,
                                                       "reconnect_delay": 5, "max_hops": 1, "expires": 0, "queue": ""}]}),
        ),
        (
            "shovel",
            json!({"name": "from-old", "vhost": name, "info": [{"source_uri": "amqp://u:tulip@127.0.0.1:1",
                          "source_queue": "a/b ü", "destination_uri": "amqp://127.0.0.1:1", "destination_exchange": "orders",
                          "ack_mode": "on-publish", "reconnect_delay": 60, "prefetch_count": 0, "delete_after": "",
                          "source_protocol": "amqp091", "destination_add_timestamp_header": false}]}),
        ),
        ("unknown", json!({"name": "x"})),
    ];
    let topo = Topo::new(&vhost);
    topo.write("terraform.tfstate", &state(&resources));
    let imported = topo.run(["import", "terraform", "terraform.tfstate"]).expect_code(0).expect_no_text("hunter2");
    let imported = imported.expect_no_text("tulip");
    assert!(
        imported.says("not converted: rabbitmq_unknown.it: topo does not support this type of resource"),
        "{imported}"
    );
    assert!(imported.says("FROM_OLD_SOURCE_PASSWORD, US_PASSWORD"), "{imported}");
    expect_no_changes(&topo, &imported.stdout);
    // The output of `terraform show -json`.
    let values = resources.iter().map(|(kind, values)| {
        json!({"address": format!("rabbitmq_{kind}.it"), "mode": "managed", "type": format!("rabbitmq_{kind}"), "values": values})
    });
    let shown = json!({"format_version": "1.0", "values": {"root_module": {"resources": values.collect::<Vec<_>>()}}});
    topo.write("show.json", &shown.to_string());
    let other = topo.run(["import", "terraform", "show.json"]).expect_code(0);
    assert_eq!(other.stdout, imported.stdout);
}

#[test]
fn operator_resources_become_a_spec_without_changes() {
    let (vhost, user) = (Node::shared().vhost("import-operator"), Node::shared().user("monitoring"));
    create_objects(&vhost, &user);
    let name = vhost.name();
    let resource = |kind: &str, spec: &str| {
        format!(
            "---\napiVersion: rabbitmq.com/v1beta1\nkind: {kind}\nmetadata: {{name: it, namespace: prod}}\n\
             spec: {{rabbitmqClusterReference: {{name: prod}}, {spec}}}\n"
        )
    };
    let policy = |name: &str, definition: &str| {
        format!(
            "name: {name}, vhost: {}, pattern: ^a, priority: 1, applyTo: queues, definition: {definition}",
            vhost.name()
        )
    };
    let of_vhost = |spec: &str| format!("vhost: {name}, {spec}");
    let manifests = [
        resource("Vhost", &format!("name: {name}, limits: {{queues: 50}}")),
        resource("Exchange", &of_vhost("name: orders, type: topic, durable: true")),
        resource("Queue", &of_vhost("name: a/b ü, type: classic, arguments: {x-message-ttl: 3600000}")),
        resource(
            "Binding",
            &of_vhost("source: orders, destination: a/b ü, destinationType: queue, routingKey: 'order.#'"),
        ),
        resource("Policy", &policy("cap", "{max-length: 5, overflow: drop-head}")),
        resource("OperatorPolicy", &policy("ceiling", "{max-length: 9}")),
        resource("User", "tags: [monitoring], importCredentialsSecret: {name: login}"),
        format!(
            "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: login, namespace: prod}}\n\
             stringData: {{username: {}, password: hunter2}}\n",
            user.name
        ),
        resource("Permission", &of_vhost("userReference: {name: it}, permissions: {write: '^orders$', read: '.*'}")),
        resource(
            "TopicPermission",
            &of_vhost(&format!("user: {}, permissions: {{exchange: orders, write: ^order, read: '.*'}}", user.name)),
        ),
        resource("Federation", &of_vhost("name: us, uriSecret: {name: x}, prefetch-count: 5")),
        resource(
            "Shovel",
            &of_vhost(
                "name: from-old, uriSecret: {name: x}, srcQueue: a/b ü, destExchange: orders, ackMode: on-publish, reconnectDelay: 60",
            ),
        ),
        resource("SchemaReplication", "endpoints: x"),
    ];
    let topo = Topo::new(&vhost);
    topo.write("manifests.yaml", &manifests.concat());
    let imported = topo.run(["import", "operator", "manifests.yaml"]).expect_code(0).expect_no_text("hunter2");
    assert!(imported.says("not converted: SchemaReplication/it"), "{imported}");
    // The variables of URIs are not set, so topo does not compare the URIs.
    expect_no_changes(&topo, &imported.stdout);
    let topo =
        topo.env("US_URI", "amqp://fed:rose@127.0.0.1:1").env("FROM_OLD_SOURCE_URI", "amqp://u:tulip@127.0.0.1:1");
    let topo = topo.env("FROM_OLD_DESTINATION_URI", "amqp://127.0.0.1:1");
    expect_no_changes(&topo, &imported.stdout);
    // Objects of several clusters.
    let other = resource("Vhost", "name: other").replace("{name: prod}", "{name: staging}");
    topo.write("other.yaml", &other);
    let both = ["import", "operator", "manifests.yaml", "other.yaml"];
    topo.run(both).expect_code(65).expect_text("the objects belong to several clusters: prod/prod, prod/staging");
    let one = topo.run(both.into_iter().chain(["--cluster=staging"])).expect_code(0).expect_text("vhost: other");
    assert!(!one.stdout.contains("orders"), "{one}");
    topo.run(["import", "operator", "manifests.yaml", "--cluster=none"])
        .expect_code(65)
        .expect_text("no objects belong to");
}

#[test]
fn unusable_files_are_refused() {
    let topo = Topo::offline();
    topo.write("plan.out", "PK\u{3}\u{4}");
    let refused = topo.run(["import", "terraform", "plan.out"]).expect_code(65).expect_text("it is not valid JSON");
    refused.expect_text("terraform show -json PLAN > plan.json");
    topo.write("broken.yaml", "a: [1\n");
    topo.run(["import", "operator", "broken.yaml"]).expect_code(65).expect_text("broken.yaml:");
    topo.write("other.yaml", "apiVersion: apps/v1\nkind: Deployment\n");
    topo.run(["import", "operator", "other.yaml"])
        .expect_code(65)
        .expect_text("no objects of rabbitmq.com/v1beta1 found");
    topo.run(["import", "terraform", "missing.json"]).expect_code(64).expect_text("missing.json");
    topo.run(["import"]).expect_code(64);
}
