//! Tests the conversion of custom resources.

use super::*;
use crate::model::SecretRef;
use crate::model::secret::Template;

fn object(kind: &str, name: &str, spec: Value) -> Value {
    let mut spec = spec;
    if spec.get("rabbitmqClusterReference").is_none() {
        spec["rabbitmqClusterReference"] = json!({"name": "prod"});
    }
    json!({"apiVersion": "rabbitmq.com/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

#[test]
fn invalid_objects_are_reported() {
    let mut child = object("Queue", "s-0", json!({"name": "s-0"}));
    child["metadata"]["ownerReferences"] = json!([{"kind": "SuperStream", "name": "s"}]);
    let objects = [
        object("Queue", "a", json!({})),
        object("Queue", "b", json!({"name": "b", "durable": "no"})),
        object("SuperStream", "s", json!({"name": "s", "partitions": 1})),
        child,
        object("SuperStream", "t", json!({"name": "t", "partitions": 3_000_000})),
        object("TopicPermission", "c", json!({"user": "u", "permissions": {"exchange": ""}})),
        json!({"apiVersion": "rabbitmq.com/v1beta1", "kind": "Queue"}),
        json!({"apiVersion": "rabbitmq.com/v1beta1", "kind": "RabbitmqCluster", "metadata": {"name": "prod"}}),
    ];
    let Imported { definitions, left_out, .. } = import(&objects, None).unwrap();
    assert_eq!(definitions["queues"].as_array().unwrap().len(), 1);
    let left_out: Vec<String> = left_out.iter().map(|it| format!("{}: {}", it.what, it.why)).collect();
    assert_eq!(
        left_out,
        [
            "Queue: it lacks `metadata.name` or `spec`",
            "Queue/a: the field `name` is missing",
            "Queue/b: `durable` is neither true nor false",
            "SuperStream/t: `partitions` is not between 1 and 1000, or a routing key is not a string",
            "TopicPermission/c: the topic permission has no exchange",
        ]
    );
}

#[test]
fn default_types_limits_and_variables_are_converted() {
    let secret = |name: &str| json!({ "name": name });
    let mut user = object("User", "app", json!({"limits": {"connections": 0}}));
    user["status"] = json!({"credentials": {"name": "app-login"}});
    let objects = [
        object("Vhost", "v", json!({"name": "v", "defaultQueueType": "quorum"})),
        object("Queue", "q", json!({"name": "q", "vhost": "v"})),
        object("Federation", "x", json!({"name": "a-b", "vhost": "v", "uriSecret": secret("one")})),
        object("Federation", "y", json!({"name": "a.b", "vhost": "v", "uriSecret": secret("two")})),
        user,
        json!({"kind": "Secret", "metadata": {"name": "app-login"}, "data": {"username": "YXBw"}}),
    ];
    let definitions = import(&objects, None).unwrap().definitions;
    assert_eq!(definitions["queues"][0]["arguments"], json!({"x-queue-type": "quorum"}));
    assert_eq!(definitions["users"], json!([{"name": "app", "tags": "", "limits": {"max-connections": 0}}]));
    let uris: Vec<&Value> =
        definitions["parameters"].as_array().unwrap().iter().map(|it| &it["value"]["uri"]).collect();
    let reference = |name: &str| Template::Secret(SecretRef::Env(name.to_owned())).to_json();
    assert_eq!(uris, [&reference("A_B_URI"), &reference("A_B_URI_2")]);
}

#[test]
fn clusters_in_two_namespaces_are_different() {
    let of =
        |namespace: &str| json!({"name": "v", "rabbitmqClusterReference": {"name": "prod", "namespace": namespace}});
    let objects = [object("Vhost", "a", of("one")), object("Vhost", "b", of("two"))];
    let both = vec!["one/prod".to_owned(), "two/prod".to_owned()];
    assert_eq!(import(&objects, None), Err(ImportError::SeveralClusters(both.clone())));
    assert_eq!(import(&objects, Some("prod")), Err(ImportError::SeveralClusters(both)));
    assert!(import(&objects, Some("two/prod")).is_ok());
    assert_eq!(import(&objects, Some("three")), Err(ImportError::UnknownCluster("three".to_owned())));
}
