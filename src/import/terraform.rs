//! Converts resources of the `cyrilgdn/rabbitmq` Terraform provider. The input is a state file (`terraform.tfstate`),
//! or the output of `terraform show -json` for a state or a plan.
//!
//! Source: the resource schemas in provider versions 1.8 to 1.10.

#[cfg(test)]
mod tests;

use super::definitions::{
    Builder, Converted, flag, mapping, number, parameter, permission, policy, rename_fields, text, topic_permission,
    vhost_limits,
};
use super::{ImportError, Imported};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The prefix of the provider's resource types.
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
    /// The provider in a state file, such as `provider["…"].staging`; empty if unknown.
    provider: String,
}

/// Converts a state or a plan in JSON.
///
/// # Errors
/// Returns an error if `file` is not a state or a plan, or contains no resources of the provider.
pub fn import(file: &str) -> Result<Imported, ImportError> {
    let document: Value = serde_json::from_str(file.trim_start_matches('\u{feff}'))
        .map_err(|error| ImportError::NotJson(error.to_string()))?;
    let mut builder = Builder::default();
    let resources = resources(&document)?;
    resources.iter().for_each(|resource| add(&mut builder, resource));
    let providers: BTreeSet<&str> = resources.iter().map(|resource| resource.provider.as_str()).collect();
    if providers.len() > 1 {
        let names = providers.into_iter().collect::<Vec<_>>().join(", ");
        builder.leave_out(
            "separate specs for the providers",
            format!("one spec contains the objects of all providers: {names}"),
        );
    }
    if builder.is_empty() {
        return Err(ImportError::Nothing("resources of the rabbitmq provider"));
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
        // The next `terraform apply` deletes a deposed instance.
        if instance.get("deposed").is_some() {
            continue;
        }
        let index = instance.get("index_key").map_or_else(String::new, |index| format!("[{index}]"));
        let values = instance.get("attributes").cloned().unwrap_or_default();
        let address = format!("{module}{kind}.{name}{index}");
        let provider = text(resource, "provider").unwrap_or_default().to_owned();
        found.push(Resource { address, kind: kind.to_owned(), values, provider });
    }
}

/// Adds the resources of a module and of its child modules in the output of `terraform show -json`.
fn add_module(found: &mut Vec<Resource>, module: &Value) {
    for resource in module.get("resources").and_then(Value::as_array).into_iter().flatten() {
        let kind = text(resource, "type").unwrap_or_default();
        if text(resource, "mode") == Some("managed") && kind.starts_with(PREFIX) {
            let address = text(resource, "address").unwrap_or_default().to_owned();
            let values = resource.get("values").cloned().unwrap_or_default();
            found.push(Resource { address, kind: kind.to_owned(), values, provider: String::new() });
        }
    }
    let children = module.get("child_modules").and_then(Value::as_array).into_iter().flatten();
    children.for_each(|child| add_module(found, child));
}

/// Returns the first entry of a block, such as `settings { … }`. A block has at most one entry.
fn block<'a>(values: &'a Value, name: &str) -> Result<&'a Value, String> {
    let block = values.get(name).and_then(|block| block.get(0)).filter(|block| block.is_object());
    block.ok_or_else(|| missing(name))
}

fn missing(name: &str) -> String {
    format!("the attribute `{name}` is missing or not known yet")
}

fn required<'a>(values: &'a Value, name: &str) -> Result<&'a str, String> {
    text(values, name).ok_or_else(|| missing(name))
}

/// Returns the arguments of a queue, an exchange or a binding, from the JSON in `arguments_json` or from the
/// `arguments` mapping.
fn arguments(settings: &Value) -> Result<Value, String> {
    match text(settings, "arguments_json") {
        Some(json) => {
            serde_json::from_str(json).map_err(|error| format!("`arguments_json` is not valid JSON: {error}"))
        }
        None => mapping(settings, "arguments"),
    }
}

fn add(builder: &mut Builder, Resource { address, kind, values, .. }: &Resource) {
    if *kind == "rabbitmq_vhost" && values["tracing"] == json!(true) {
        builder.leave_out(&format!("`tracing` of {address}"), "topo does not support it");
    }
    builder.add(address, convert_values(kind.trim_start_matches(PREFIX), values));
}

fn convert_values(kind: &str, values: &Value) -> Converted {
    let name = || required(values, "name");
    // If the vhost is missing from a plan, its name is not known yet. The default vhost is never missing.
    let vhost = || required(values, "vhost");
    Ok(match kind {
        "vhost" => vhost_entries(name()?, values)?,
        "queue" => {
            let settings = block(values, "settings")?;
            let (durable, auto_delete) = (flag(settings, "durable", false)?, flag(settings, "auto_delete", false)?);
            let queue = json!({"vhost": vhost()?, "name": name()?, "durable": durable, "auto_delete": auto_delete,
                               "arguments": arguments(settings)?});
            vec![("queues", queue)]
        }
        "exchange" => {
            let settings = block(values, "settings")?;
            let (durable, auto_delete) = (flag(settings, "durable", false)?, flag(settings, "auto_delete", false)?);
            let exchange = json!({"vhost": vhost()?, "name": name()?, "type": required(settings, "type")?,
                                  "durable": durable, "auto_delete": auto_delete, "internal": false,
                                  "arguments": arguments(settings)?});
            vec![("exchanges", exchange)]
        }
        "binding" => {
            let key = values.get("routing_key").ok_or_else(|| missing("routing_key"))?.as_str().unwrap_or_default();
            let (source, destination) = (required(values, "source")?, required(values, "destination")?);
            let destination_type = required(values, "destination_type")?;
            let binding = json!({"vhost": vhost()?, "source": source, "destination": destination,
                                 "destination_type": destination_type, "routing_key": key,
                                 "arguments": arguments(values)?});
            vec![("bindings", binding)]
        }
        "policy" | "operator_policy" => {
            let block = block(values, "policy")?;
            let pattern = block.get("pattern").and_then(Value::as_str).ok_or_else(|| missing("pattern"))?;
            let (priority, apply_to) = (number(block, "priority")?, required(block, "apply_to")?);
            let definition = definition(&mapping(block, "definition")?);
            let body =
                json!({"pattern": pattern, "priority": priority, "apply-to": apply_to, "definition": definition});
            vec![policy(kind == "operator_policy", vhost()?, name()?, &body)]
        }
        "user" => {
            let tags = values.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            vec![("users", json!({"name": name()?, "tags": tags.collect::<Vec<_>>().join(",")}))]
        }
        "permissions" => vec![permission(required(values, "user")?, vhost()?, block(values, "permissions")?)],
        "topic_permissions" => {
            let listed = values.get("permissions").and_then(Value::as_array).ok_or_else(|| missing("permissions"))?;
            let (user, vhost) = (required(values, "user")?, vhost()?);
            listed.iter().map(|patterns| topic_permission(user, vhost, patterns)).collect::<Result<_, _>>()?
        }
        "shovel" => {
            let info = block(values, "info")?;
            required(info, "source_uri")?;
            required(info, "destination_uri")?;
            vec![parameter("shovel", vhost()?, name()?, &rename_fields(info, SHOVEL).into())]
        }
        "federation_upstream" => {
            let definition = block(values, "definition")?;
            required(definition, "uri")?;
            vec![parameter("federation-upstream", vhost()?, name()?, &rename_fields(definition, UPSTREAM).into())]
        }
        _ => return Err("topo does not support this type of resource".to_owned()),
    })
}

fn vhost_entries(name: &str, values: &Value) -> Converted {
    let mut vhost = json!({ "name": name });
    for field in ["description", "default_queue_type"] {
        if let Some(value) = text(values, field) {
            vhost[field] = json!(value);
        }
    }
    let limit = |field: &str| match text(values, field) {
        Some(number) => number.parse().map(Some).map_err(|_| format!("`{field}` is not a number")),
        None => Ok(None),
    };
    let limits = [("max-connections", limit("max_connections")?), ("max-queues", limit("max_queues")?)];
    Ok(std::iter::once(("vhosts", vhost)).chain(vhost_limits(name, limits)).collect())
}

/// Converts the definition of a policy in the same way as the provider does. In the state, integers and the nodes in
/// `ha-params` are strings.
fn definition(definition: &Value) -> Value {
    let is_nodes_mode = definition.get("ha-mode").and_then(Value::as_str) == Some("nodes");
    let convert = |(key, value): (&String, &Value)| {
        let converted = match value.as_str() {
            Some(list) if is_nodes_mode && key == "ha-params" => json!(list.split(',').collect::<Vec<_>>()),
            Some(text) => text.parse::<i64>().map_or_else(|_| value.clone(), Value::from),
            None => value.clone(),
        };
        (key.clone(), converted)
    };
    definition.as_object().map_or_else(|| json!({}), |entries| entries.iter().map(convert).collect())
}
