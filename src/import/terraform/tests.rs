//! Tests the conversion of Terraform resources.

use super::*;

fn state(resources: &Value) -> String {
    json!({"version": 4, "terraform_version": "1.9.0", "resources": resources}).to_string()
}

fn resource(kind: &str, attributes: &Value) -> Value {
    json!({"mode": "managed", "type": kind, "name": "it", "instances": [{"attributes": attributes}]})
}

#[test]
fn attributes_become_definitions() {
    let resources = json!([
        resource("rabbitmq_vhost", &json!({"name": "shop", "description": "", "max_queues": "5", "tracing": true})),
        resource("rabbitmq_queue", &json!({"name": "q", "vhost": "shop", "settings": [{"durable": true,
            "auto_delete": false, "arguments": null, "arguments_json": "{\"x-message-ttl\":5}"}]})),
        resource("rabbitmq_policy", &json!({"name": "p", "vhost": "shop", "policy": [{"pattern": "^q", "priority": 0,
            "apply_to": "queues", "definition": {"max-length": "5", "overflow": "drop-head"}}]})),
        resource("rabbitmq_shovel", &json!({"name": "s", "vhost": "shop", "info": [{"source_uri": "amqp://",
            "source_queue": "q", "prefetch_count": 0, "delete_after": "", "destination_uri": "amqp://u:p@h"}]})),
        resource("rabbitmq_user", &json!({"name": "app", "password": "hunter2", "tags": ["a", "b"]})),
        resource("rabbitmq_queue", &json!({"name": null})),
        resource("rabbitmq_other", &json!({"name": "x"})),
        {"mode": "data", "type": "rabbitmq_exchange", "name": "x", "instances": [{"attributes": {"name": "x"}}]},
    ]);
    let Imported { definitions, left_out, .. } = import(&state(&resources)).unwrap();
    assert!(!definitions.to_string().contains("hunter2"));
    assert_eq!(definitions["vhosts"], json!([{"name": "shop"}]));
    assert_eq!(definitions["queues"][0]["arguments"], json!({"x-message-ttl": 5}));
    assert_eq!(definitions["policies"][0]["definition"], json!({"max-length": 5, "overflow": "drop-head"}));
    let shovel = json!({"src-uri": "amqp://", "src-queue": "q", "dest-uri": "amqp://u:p@h"});
    assert_eq!(definitions["parameters"][1]["value"], shovel);
    assert_eq!(definitions["users"], json!([{"name": "app", "tags": "a,b"}]));
    let left_out: Vec<String> = left_out.iter().map(|it| format!("{}: {}", it.what, it.why)).collect();
    assert_eq!(
        left_out,
        [
            "`tracing` of rabbitmq_vhost.it: topo does not support it",
            "rabbitmq_queue.it: the attribute `settings` is missing or not known yet",
            "rabbitmq_other.it: topo does not support this type of resource",
        ]
    );
}

#[test]
fn unknown_and_invalid_attributes_are_reported() {
    let settings = json!([{"durable": true}]);
    let resources = json!([
        resource("rabbitmq_queue", &json!({"name": "q", "settings": settings})),
        resource("rabbitmq_queue", &json!({"name": "q", "vhost": "v", "settings": [{"durable": "no"}]})),
        resource(
            "rabbitmq_binding",
            &json!({"vhost": "v", "source": "a", "destination": "b",
                                             "destination_type": "queue"})
        ),
        resource("rabbitmq_permissions", &json!({"user": "u", "vhost": "v", "permissions": ["abc"]})),
        resource("rabbitmq_topic_permissions", &json!({"user": "u", "vhost": "v", "permissions": [null, 5]})),
        resource("rabbitmq_vhost", &json!({"name": "v", "max_queues": "many"})),
    ]);
    let Imported { is_empty, left_out, .. } = import(&state(&resources)).unwrap();
    assert!(is_empty);
    let why: Vec<&str> = left_out.iter().map(|it| it.why.as_str()).collect();
    assert_eq!(
        why,
        [
            "the attribute `vhost` is missing or not known yet",
            "`durable` is neither true nor false",
            "the attribute `routing_key` is missing or not known yet",
            "the attribute `permissions` is missing or not known yet",
            "the topic permission has no exchange",
            "`max_queues` is not a number",
        ]
    );
}

#[test]
fn plans_with_modules_are_read() {
    let child = json!({"resources": [{"address": "module.a.rabbitmq_vhost.v[0]", "mode": "managed",
                                      "type": "rabbitmq_vhost", "values": {"name": "v"}}]});
    let plan = json!({"format_version": "1.2", "planned_values": {"root_module": {"child_modules": [child]}}});
    assert_eq!(import(&plan.to_string()).unwrap().definitions["vhosts"], json!([{"name": "v"}]));
}

#[test]
fn other_files_are_refused() {
    let error = |text: &str| import(text).unwrap_err().to_string();
    assert!(error("PK\u{3}\u{4}").starts_with("it is not valid JSON"));
    assert_eq!(error("{}"), "it is neither a Terraform state nor the output of `terraform show -json`");
    assert_eq!(error(&state(&json!([]))), "no resources of the rabbitmq provider found");
}
