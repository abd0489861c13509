//! Converts custom resources of the RabbitMQ Messaging Topology Operator (`rabbitmq.com/v1beta1`).
//!
//! Source: the types in `api/` for operator versions 1.0 to 1.20, and the requests that the operator builds in
//! `internal/`. In operator 1.20 and later, a webhook sets a queue's missing `durable` field to true. Earlier versions
//! declare such a queue as non-durable.

mod conversion;
mod resource;
#[cfg(test)]
mod tests;

use super::definitions::{Builder, text};
use super::{ImportError, Imported};
use conversion::convert;
use resource::{Object, Users, Variables};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The operator's API group.
const GROUP: &str = "rabbitmq.com/";

/// Converts the documents in manifests. Ignores documents for other APIs, except secrets that contain the name of a
/// user. With `cluster`, converts only the objects of this `RabbitmqCluster`, specified as `NAME` or `NAMESPACE/NAME`.
///
/// # Errors
/// Returns an error if the documents contain no operator objects, if no object belongs to `cluster`, or if the selected
/// objects belong to several clusters.
pub fn import(documents: &[Value], cluster: Option<&str>) -> Result<Imported, ImportError> {
    let items = documents.iter().flat_map(|document| match document.get("items").and_then(Value::as_array) {
        Some(items) => items.iter().collect(),
        None => vec![document],
    });
    let items: Vec<&Value> = items.filter(|item| text(item, "kind") != Some("RabbitmqCluster")).collect();
    let of_operator = |item: &&&Value| text(item, "apiVersion").is_some_and(|version| version.starts_with(GROUP));
    let mut builder = Builder::default();
    let mut objects: Vec<Object<'_>> = Vec::new();
    for item in items.iter().filter(of_operator) {
        match Object::of(item) {
            Some(object) => objects.push(object),
            None => builder.leave_out(text(item, "kind").unwrap_or("an object"), "it lacks `metadata.name` or `spec`"),
        }
    }
    // The operator creates these objects for super streams.
    let streams: BTreeSet<&str> = objects.iter().filter(|it| it.kind == "SuperStream").map(|it| it.name).collect();
    objects.retain(|object| !object.super_stream.is_some_and(|owner| streams.contains(owner)));
    if objects.is_empty() {
        return Err(ImportError::Nothing("objects of rabbitmq.com/v1beta1"));
    }
    let clusters: BTreeSet<&str> = objects.iter().filter_map(|object| object.cluster.as_deref()).collect();
    let is_chosen = |object_cluster: &str| {
        let name = object_cluster.split_once('/').map_or(object_cluster, |(_, name)| name);
        cluster.is_none_or(|cluster| cluster == object_cluster || cluster == name)
    };
    let chosen: Vec<&str> = clusters.iter().copied().filter(|cluster| is_chosen(cluster)).collect();
    if let (Some(unknown), true) = (cluster, chosen.is_empty()) {
        return Err(ImportError::UnknownCluster(unknown.to_owned()));
    }
    if chosen.len() > 1 {
        return Err(ImportError::SeveralClusters(chosen.into_iter().map(str::to_owned).collect()));
    }
    let users = Users::of(&items, &objects);
    let mut variables = Variables::default();
    for object in &objects {
        match &object.cluster {
            Some(object_cluster) if !is_chosen(object_cluster) => {}
            None if cluster.is_some() => builder.leave_out(&object.address(), "it does not refer to a cluster"),
            Some(_) | None => {
                if object.kind == "Vhost" && object.spec["tracing"] == json!(true) {
                    builder.leave_out(&format!("`tracing` of {}", object.address()), "topo does not support it");
                }
                builder.add(&object.address(), convert(object, &users, &mut variables));
            }
        }
    }
    Ok(builder.finish())
}
