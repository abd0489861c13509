//! Converts resources of the Terraform provider `cyrilgdn/rabbitmq`: from a state file (`terraform.tfstate`), or from
//! `terraform show -json` of a state or a plan.
//!
//! Source: the schemas of the resources in the provider 1.8 to 1.10.

use super::definitions::{
    Builder, DEFAULT_VHOST, Entry, parameter, policy as policy_entry, renamed, text, vhost_limits,
};
use super::{ImportError, Imported};
use serde_json::{Value, json};

/// The prefix of the types of the provider's resources.
const PREFIX: &str = "rabbitmq_";

/// The settings of a shovel, each with its name in requests.
const SHOVEL: &[(&str, &str)] = &[
    ("ack_mode", "ack-mode"),
    ("add_forward_headers", "add-forward-headers"),
    ("delete_after", "delete-after"),
    ("destination_add_forward_headers", "dest-add-forward-headers"),
    ("destination_add_timestamp_header", "dest-add-timestamp-header"),
    ("destination_address", "dest-address"),
    ("destination_application_properties", "dest-application-properties"),
    ("destination_exchange", "dest-exchange"),
    ("destination_exchange_key", "dest-exchange-key"),
    ("destination_properties", "dest-properties"),
    ("destination_protocol", "dest-protocol"),
    ("destination_publish_properties", "dest-publish-properties"),
    ("destination_queue", "dest-queue"),
    ("destination_queue_arguments", "dest-queue-args"),
    ("destination_uri", "dest-uri"),
    ("prefetch_count", "prefetch-count"),
    ("reconnect_delay", "reconnect-delay"),
    ("source_address", "src-address"),
    ("source_delete_after", "src-delete-after"),
    ("source_exchange", "src-exchange"),
    ("source_exchange_key", "src-exchange-key"),
    ("source_prefetch_count", "src-prefetch-count"),
    ("source_protocol", "src-protocol"),
    ("source_queue", "src-queue"),
    ("source_uri", "src-uri"),
];

/// The settings of a federation upstream, each with its name in requests.
const UPSTREAM: &[(&str, &str)] = &[
    ("uri", "uri"),
    ("prefetch_count", "prefetch-count"),
    ("reconnect_delay", "reconnect-delay"),
    ("ack_mode", "ack-mode"),
    ("trust_user_id", "trust-user-id"),
    ("exchange", "exchange"),
    ("max_hops", "max-hops"),
    ("expires", "expires"),
    ("message_ttl", "message-ttl"),
    ("queue", "queue"),
];

/// A resource of the provider.
struct Resource {
    address: String,
    kind: String,
    values: Value,
}

/// Converts a state or a plan in JSON.
///
/// # Errors
/// The text is not a state or a plan, or contains no resources of the provider.
pub fn import(file: &str) -> Result<Imported, ImportError> {
    let document: Value = serde_json::from_str(file.trim_start_matches('\u{feff}'))
        .map_err(|error| ImportError::NotJson(error.to_string()))?;
    let mut builder = Builder::default();
    for resource in resources(&document)? {
        add(&mut builder, &resource);
    }
    if builder.is_empty() {
        return Err(ImportError::Nothing("resources of the provider rabbitmq"));
    }
    Ok(builder.finish())
}

/// Returns the managed resources of the provider.
fn resources(document: &Value) -> Result<Vec<Resource>, ImportError> {
    let mut found = Vec::new();
    if let Some(resources) = document.get("resources").and_then(Value::as_array) {
        resources.iter().for_each(|resource| add_instances(&mut found, resource));
        return Ok(found);
    }
    let values = document.get("planned_values").or_else(|| document.get("values"));
    let Some(root) = values.and_then(|values| values.get("root_module")) else {
        return Err(ImportError::Unknown("it is neither a Terraform state nor the output of `terraform show -json`"));
    };
    add_module(&mut found, root);
    Ok(found)
}

/// Adds the instances of a resource in a state file.
fn add_instances(found: &mut Vec<Resource>, resource: &Value) {
    let kind = text(resource, "type").unwrap_or_default();
    if text(resource, "mode") != Some("managed") || !kind.starts_with(PREFIX) {
        return;
    }
    let module = text(resource, "module").map_or_else(String::new, |module| format!("{module}."));
    let name = text(resource, "name").unwrap_or_default();
    for instance in resource.get("instances").and_then(Value::as_array).into_iter().flatten() {
        // The next apply of Terraform deletes a deposed instance.
        if instance.get("deposed").is_some() {
            continue;
        }
        let index = instance.get("index_key").map_or_else(String::new, |index| format!("[{index}]"));
        let values = instance.get("attributes").cloned().unwrap_or_default();
        found.push(Resource { address: format!("{module}{kind}.{name}{index}"), kind: kind.to_owned(), values });
    }
}

/// Adds the resources of a module and of its child modules in the output of `terraform show -json`.
fn add_module(found: &mut Vec<Resource>, module: &Value) {
    for resource in module.get("resources").and_then(Value::as_array).into_iter().flatten() {
        let kind = text(resource, "type").unwrap_or_default();
        if text(resource, "mode") == Some("managed") && kind.starts_with(PREFIX) {
            let address = text(resource, "address").unwrap_or_default().to_owned();
            let values = resource.get("values").cloned().unwrap_or_default();
            found.push(Resource { address, kind: kind.to_owned(), values });
        }
    }
    let children = module.get("child_modules").and_then(Value::as_array).into_iter().flatten();
    children.for_each(|child| add_module(found, child));
}

/// Returns the only entry of a block, such as `settings { … }`.
fn block<'a>(values: &'a Value, name: &str) -> Option<&'a Value> {
    values.get(name).and_then(|block| block.get(0))
}

/// Returns the arguments of a queue or a binding: JSON, or a mapping to strings.
fn arguments(settings: &Value) -> Option<Value> {
    match text(settings, "arguments_json") {
        Some(json) => serde_json::from_str(json).ok(),
        None => Some(settings.get("arguments").filter(|it| it.is_object()).cloned().unwrap_or(json!({}))),
    }
}

fn add(builder: &mut Builder, Resource { address, kind, values }: &Resource) {
    let vhost = text(values, "vhost").unwrap_or(DEFAULT_VHOST);
    let name = text(values, "name");
    let converted = match (kind.trim_start_matches(PREFIX), name) {
        ("vhost", Some(name)) => Some(vhost_entries(builder, address, name, values)),
        ("queue", Some(name)) => block(values, "settings").and_then(|settings| {
            let (durable, auto_delete) = (&settings["durable"], &settings["auto_delete"]);
            let arguments = arguments(settings)?;
            let queue = json!({"vhost": vhost, "name": name, "durable": durable, "auto_delete": auto_delete,
                               "arguments": arguments});
            Some(vec![("queues", queue)])
        }),
        ("exchange", Some(name)) => block(values, "settings").and_then(|settings| {
            let (durable, auto_delete) = (&settings["durable"], &settings["auto_delete"]);
            let exchange = json!({"vhost": vhost, "name": name, "type": text(settings, "type")?, "durable": durable,
                                  "auto_delete": auto_delete, "internal": false, "arguments": arguments(settings)?});
            Some(vec![("exchanges", exchange)])
        }),
        ("binding", _) => text(values, "destination").and_then(|destination| {
            let key = values.get("routing_key").and_then(Value::as_str).unwrap_or_default();
            let binding = json!({"vhost": vhost, "source": text(values, "source")?, "destination": destination,
                                 "destination_type": text(values, "destination_type")?, "routing_key": key,
                                 "arguments": arguments(values)?});
            Some(vec![("bindings", binding)])
        }),
        (word @ ("policy" | "operator_policy"), Some(name)) => block(values, "policy").and_then(|policy| {
            let (priority, apply_to) = (&policy["priority"], text(policy, "apply_to")?);
            let definition = definition(policy.get("definition")?);
            // The pattern can be empty.
            let policy = json!({"pattern": policy["pattern"], "priority": priority, "apply-to": apply_to,
                                "definition": definition});
            Some(vec![policy_entry(word == "operator_policy", vhost, name, &policy)])
        }),
        ("user", Some(name)) => {
            let tags: Vec<&str> =
                values.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            Some(vec![("users", json!({"name": name, "tags": tags.join(",")}))])
        }
        ("permissions", _) => block(values, "permissions").and_then(|patterns| {
            let mut permission = patterns.clone();
            permission["user"] = json!(text(values, "user")?);
            permission["vhost"] = json!(vhost);
            Some(vec![("permissions", permission)])
        }),
        ("topic_permissions", _) => text(values, "user").and_then(|user| {
            let permission = |patterns: &Value| {
                let mut permission = patterns.clone();
                permission["user"] = json!(user);
                permission["vhost"] = json!(vhost);
                ("topic_permissions", permission)
            };
            Some(values.get("permissions").and_then(Value::as_array)?.iter().map(permission).collect())
        }),
        ("shovel", Some(name)) => {
            block(values, "info").map(|info| vec![parameter("shovel", vhost, name, &renamed(info, SHOVEL).into())])
        }
        ("federation_upstream", Some(name)) => block(values, "definition").map(|definition| {
            vec![parameter("federation-upstream", vhost, name, &renamed(definition, UPSTREAM).into())]
        }),
        (_, Some(_)) => return builder.leave_out(address, "topo does not support this type of resource"),
        (_, None) => None,
    };
    match converted {
        Some(entries) => builder.extend(entries),
        None => builder.leave_out(address, "a required attribute is missing or not known yet"),
    }
}

fn vhost_entries(builder: &mut Builder, address: &str, name: &str, values: &Value) -> Vec<Entry> {
    let mut vhost = json!({ "name": name });
    for field in ["description", "default_queue_type"] {
        if let Some(value) = text(values, field) {
            vhost[field] = json!(value);
        }
    }
    let limit = |field: &str| text(values, field).and_then(|number| number.parse().ok());
    let limits =
        vhost_limits(name, [("max-connections", limit("max_connections")), ("max-queues", limit("max_queues"))]);
    if values["tracing"] == json!(true) {
        builder.leave_out(address, "topo does not support `tracing`");
    }
    std::iter::once(("vhosts", vhost)).chain(limits).collect()
}

/// Converts the definition of a policy, as the provider does: integers are strings in the state.
fn definition(definition: &Value) -> Value {
    let nodes = definition.get("ha-mode").and_then(Value::as_str) == Some("nodes");
    let convert = |(key, value): (&String, &Value)| {
        let converted = match value.as_str() {
            Some(list) if nodes && key == "ha-params" => json!(list.split(',').collect::<Vec<_>>()),
            Some(text) => text.parse::<i64>().map_or_else(|_| value.clone(), Value::from),
            None => value.clone(),
        };
        (key.clone(), converted)
    };
    definition.as_object().map_or_else(|| json!({}), |entries| entries.iter().map(convert).collect())
}

#[cfg(test)]
mod tests {
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
        let Imported { definitions, left_out } = import(&state(&resources)).unwrap();
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
                "rabbitmq_vhost.it: topo does not support `tracing`",
                "rabbitmq_queue.it: a required attribute is missing or not known yet",
                "rabbitmq_other.it: topo does not support this type of resource",
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
        assert!(error("PK\u{3}\u{4}").starts_with("it is not JSON"));
        assert_eq!(error("{}"), "it is neither a Terraform state nor the output of `terraform show -json`");
        assert_eq!(error(&state(&json!([]))), "it contains no resources of the provider rabbitmq");
    }
}
