//! Builds the body of the request that writes a shovel or a federation upstream.
//!
//! The broker restarts a shovel or the links of an upstream if the value changes in any way, even to an equivalent
//! value (RabbitMQ 3.8 to 4.3). Therefore, topo sends no request for an equivalent value. The body omits fields that
//! have their default value, because older versions of RabbitMQ may not support these fields.

use crate::model::record_kinds::{FieldShape, RecordField};
use crate::model::secret::Template;
use crate::model::{AmqpUri, ArgumentValue, Record, SecretRef};
use serde_json::{Map, Value, json};

/// Returns the body of the request. Templates represent URIs with secrets.
pub(super) fn body(link: &Record) -> Value {
    let mut value = Map::new();
    for field in link.id.fields() {
        let Some(current) = link.fields.get(field.name).filter(|it| field.default_value().as_ref() != Some(it)) else {
            continue;
        };
        match field.shape {
            FieldShape::Secret { .. } => {}
            FieldShape::Uris { .. } => drop(value.insert(field.name.to_owned(), uris(link, &field))),
            FieldShape::Text
            | FieldShape::BindingKey
            | FieldShape::Words(_)
            | FieldShape::Pattern
            | FieldShape::Number
            | FieldShape::Definition
            | FieldShape::Limit
            | FieldShape::Any
            | FieldShape::Tags
            | FieldShape::Boolean
            | FieldShape::Flag
            | FieldShape::Count(..)
            | FieldShape::Milliseconds
            | FieldShape::Seconds
            | FieldShape::Arguments
            | FieldShape::Table
            | FieldShape::Members => drop(value.insert(field.name.to_owned(), json!(current))),
        }
    }
    json!({ "value": value })
}

/// Returns one URI or a list of URIs. The password applies to each URI that contains a user name.
fn uris(link: &Record, field: &RecordField) -> Value {
    let password = Record::password_field(field, link.id.kind);
    let password = password.and_then(|field| link.fields.get(field.name)).and_then(SecretRef::of);
    let uri = |item: &ArgumentValue| match (SecretRef::of(item), item.as_text(), &password) {
        (Some(secret), _, _) => Template::Secret(secret).to_json(),
        (None, Some(uri), Some(password)) if AmqpUri::parse(uri).is_ok_and(|uri| uri.user().is_some()) => {
            Template::Uri { uri: uri.to_owned(), password: password.clone() }.to_json()
        }
        (None, _, _) => json!(item),
    };
    match link.items(field.name) {
        [only] => uri(only),
        several => several.iter().map(uri).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arguments, RecordId, RecordKind};

    fn body_of(kind: RecordKind, fields: &str) -> Value {
        let fields: Arguments = serde_json::from_str(fields).unwrap();
        body(&Record::new(RecordId::named(kind, "x"), fields).unwrap())
    }

    #[test]
    fn body_contains_templates_and_no_defaults() {
        let body = body_of(
            RecordKind::Shovel,
            r#"{"src-uri": "amqps://sync@old/shop", "src-password": {"env": "OLD"}, "src-queue": "orders",
                "src-prefetch-count": 1000, "dest-uri": ["amqp:///shop", {"file": "/run/uri"}], "dest-exchange": "orders",
                "ack-mode": "on-publish", "reconnect-delay": 5}"#,
        );
        let source = json!({"$uri": "amqps://sync@old/shop", "password": {"env": "OLD"}});
        let destination = json!(["amqp:///shop", {"$secret": {"file": "/run/uri"}}]);
        let value = json!({"src-uri": source, "src-queue": "orders", "dest-uri": destination, "dest-exchange": "orders",
                           "ack-mode": "on-publish"});
        assert_eq!(body, json!({ "value": value }));
    }

    #[test]
    fn password_belongs_only_to_uris_with_a_user() {
        let fields = r#"{"uri": ["amqp://a@h", "amqp://h"], "uri-password": {"env": "P"}}"#;
        let first = json!({"$uri": "amqp://a@h", "password": {"env": "P"}});
        assert_eq!(body_of(RecordKind::Upstream, fields), json!({"value": {"uri": [first, "amqp://h"]}}));
    }
}
