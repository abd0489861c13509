//! Renders the grammar as a JSON Schema (draft-07) for editors. The parser and the schema use the same tables, so they
//! accept the same keys. Only the parser checks references and the ranges of values with units.

use super::cluster_keys::CLUSTER_DOCUMENT;
use super::environment_keys::ENVIRONMENTS_DOCUMENT;
use super::keys::{DOCUMENT, OPTIONAL, POLICY_KEYS};
use super::schema_values as values;
use super::secrets;
use super::shape::{Key, Object, Shape};
use crate::model::QueueType;
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use schemars::Schema;
use schemars::transform::{RemoveRefSiblings, Transform, transform_subschemas};
use serde_json::{Map, Value, json};

/// The `$id` of the schema. It is not a URL, because editors and SchemaStore use their own URLs.
const ID: &str = "urn:topo:topology:1";
/// Mutually exclusive keys.
const EXCLUSIVE: [&str; 2] = ["delays", "backoff"];
/// The pattern for names that only an external object can have.
const RESERVED_NAMES: &str = r"^amq\.|^topo\.lock$|\.topo\.";
/// The pattern for unknown policy keys that are accepted because they follow RabbitMQ's spelling.
const OTHER_POLICY_KEYS: &str = "^(?!x-)[^A-Z_]+$";

/// Returns the JSON Schema for a spec document.
pub fn schema() -> Value {
    let mut definitions = Map::new();
    let mut document = |object: &Object, title: &str, description: &str| {
        let mut document = table(object.keys_of(None), &mut definitions);
        (document["title"], document["description"]) = (title.into(), description.into());
        document["patternProperties"] = anchors();
        document
    };
    let vhost = document(&DOCUMENT, "A spec", "The topology of one RabbitMQ vhost.");
    let cluster = document(&CLUSTER_DOCUMENT, "A cluster spec", "The objects of the cluster.");
    let environments = document(&ENVIRONMENTS_DOCUMENT, "Environments", "Named brokers with variables.");
    let documents = [(&DOCUMENT, vhost), (&CLUSTER_DOCUMENT, cluster), (&ENVIRONMENTS_DOCUMENT, environments)];
    definitions.extend(documents.map(|(object, document)| (object.name.to_owned(), document)));
    let reference = |object: &Object| json!({"$ref": format!("#/definitions/{}", object.name)});
    let mut all = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ID,
        "title": "A topo spec",
        "description": "The topology of one RabbitMQ vhost, the objects of the cluster, or environments.",
        "type": "object",
        "if": {"required": ["cluster"], "not": {"required": ["vhost"]}},
        "then": reference(&CLUSTER_DOCUMENT),
        "else": {
            "if": {"required": ["environments"], "not": {"required": ["vhost"]}},
            "then": reference(&ENVIRONMENTS_DOCUMENT), "else": reference(&DOCUMENT)
        },
    });
    definitions.insert("Argument".to_owned(), argument());
    if let Value::Object(all) = &mut all {
        all.insert("definitions".to_owned(), Value::Object(definitions));
    }
    finish(all)
}

/// Returns the JSON Schema for documents that consist of one mapping. `id` is the `$id` of the schema.
pub(crate) fn document_schema(object: &'static Object, id: &str, title: &str, description: &str) -> Value {
    let mut definitions = Map::new();
    let mut all = table(object.keys_of(None), &mut definitions);
    (all["$schema"], all["$id"]) = ("http://json-schema.org/draft-07/schema#".into(), id.into());
    (all["title"], all["description"]) = (title.into(), description.into());
    all["patternProperties"] = anchors();
    definitions.insert("Argument".to_owned(), argument());
    all["definitions"] = Value::Object(definitions);
    finish(all)
}

/// Returns the schema for keys that only define anchors.
fn anchors() -> Value {
    json!({"^x-": {"description": "topo ignores this key. It can define anchors."}})
}

/// Converts a schema to the form that editors need.
fn finish(document: Value) -> Value {
    let mut schema = Schema::try_from(document).unwrap_or_default();
    Markdown.transform(&mut schema);
    // Draft-07 ignores the siblings of a `$ref`, such as the description, so the `$ref` must be inside an `allOf`.
    RemoveRefSiblings::default().transform(&mut schema);
    schema.to_value()
}

/// Copies each `description` to `markdownDescription`. Editors escape the Markdown in `description`, and render it in
/// `markdownDescription`.
struct Markdown;

impl Transform for Markdown {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(description) = schema.get("description").cloned() {
            schema.insert("markdownDescription".to_owned(), description);
        }
        transform_subschemas(self, schema);
    }
}

impl Object {
    /// Returns the keys of the mapping. If a queue type is given, returns only the keys that this type supports.
    pub(super) fn keys_of(&self, queue_type: Option<QueueType>) -> Vec<Key> {
        let supports = |key: &Key| match (queue_type, known(key.name)) {
            (Some(QueueType::Stream), None) => !key.excludes_streams,
            (Some(queue_type), Some(known)) => known.support_for(queue_type).is_some(),
            (Some(_), None) | (None, _) => true,
        };
        // A stream does not dead-letter messages, and a spec can state this with `deadLetter: none`.
        let is_dead_letter_of_stream = |key: &Key| queue_type == Some(QueueType::Stream) && key.name == "deadLetter";
        let key_for_type = |key: &Key| {
            if is_dead_letter_of_stream(key) {
                Some(Key { shape: Shape::OneOf(&["none"]), example: "none", ..*key })
            } else {
                supports(key).then_some(*key)
            }
        };
        self.keys().iter().filter_map(key_for_type).collect()
    }
}

fn known(key: &str) -> Option<&'static KnownArgument> {
    KNOWN_ARGUMENTS.iter().find(|known| known.key == key)
}

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Returns the schema for a mapping that accepts only these keys.
fn table(keys: Vec<Key>, definitions: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in &keys {
        let Value::Object(mut property) = value(key.shape, definitions) else { continue };
        property.insert("description".to_owned(), key.doc.into());
        if !key.default.is_empty() {
            property.insert("default".to_owned(), yaml(key.default));
        }
        if !key.example.is_empty() {
            property.insert("examples".to_owned(), json!([yaml(key.example)]));
        }
        properties.insert(key.name.to_owned(), Value::Object(property));
        if key.is_required {
            required.push(key.name);
        }
    }
    let mut table = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    if EXCLUSIVE.iter().all(|name| keys.iter().any(|key| key.name == *name)) {
        table["not"] = json!({"required": EXCLUSIVE});
    }
    table
}

/// Returns a reference to the definition of a mapping. The first reference to a mapping creates its definition.
fn reference(object: &'static Object, definitions: &mut Map<String, Value>) -> Value {
    if !definitions.contains_key(object.name) {
        // The placeholder prevents infinite recursion for recursive mappings.
        definitions.insert(object.name.to_owned(), Value::Null);
        let definition = definition(object, definitions);
        definitions.insert(object.name.to_owned(), definition);
    }
    json!({"$ref": format!("#/definitions/{}", object.name)})
}

fn definition(object: &'static Object, definitions: &mut Map<String, Value>) -> Value {
    let title = |what: &str| {
        let mut chars = object.what.trim_start_matches("a ").trim_start_matches("an ").chars();
        let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        format!("{first}{}{what}", chars.as_str())
    };
    let titled = |mut table: Value, what: &str| {
        table["title"] = title(what).into();
        table
    };
    if object.external.is_empty() {
        return titled(table(object.keys_of(None), definitions), "");
    }
    let name = object.name;
    let is_allowed_with_external = |key: &Key| key.name == "external" || object.external.contains(&key.name);
    let external: Vec<Key> = object.keys_of(None).into_iter().filter(is_allowed_with_external).collect();
    let external = titled(table(external, definitions), ", external");
    let declared = object.keys_of(None).into_iter().filter(|key| key.name != OPTIONAL).collect();
    let declared = titled(table(declared, definitions), "");
    let typed: Vec<(QueueType, Value)> = QueueType::ALL
        .into_iter()
        .map(|queue_type| {
            let table = table(object.keys_of(Some(queue_type)), definitions);
            (queue_type, restrict_to_type(titled(table, &format!(": {queue_type}")), queue_type, definitions))
        })
        .collect();
    let mut add = |name: String, table: Value| {
        definitions.insert(name.clone(), table);
        json!({"$ref": format!("#/definitions/{name}")})
    };
    let external = add(format!("External{name}"), external);
    let declared = add(format!("Own{name}"), declared);
    let is_external = json!({"properties": {"external": {"const": true}}, "required": ["external"]});
    let mut rest = declared;
    if object.is_queue {
        for (queue_type, table) in typed.into_iter().rev() {
            let then = add(format!("{}{name}", capitalized(queue_type)), table);
            let is_type = json!({"properties": {"type": {"const": queue_type.as_str()}}, "required": ["type"]});
            rest = json!({"if": is_type, "then": then, "else": rest});
        }
    }
    json!({"title": title(""), "type": "object", "if": is_external, "then": external, "else": rest})
}

fn capitalized(queue_type: QueueType) -> &'static str {
    match queue_type {
        QueueType::Classic => "Classic",
        QueueType::Quorum => "Quorum",
        QueueType::Stream => "Stream",
    }
}

/// Restricts a queue's schema to the values that one queue type supports.
fn restrict_to_type(mut table: Value, queue_type: QueueType, definitions: &mut Map<String, Value>) -> Value {
    let arguments = queue_arguments(Some(queue_type), definitions);
    table["properties"]["arguments"]["$ref"] = arguments["$ref"].clone();
    let fixed = [("durable", true), ("autoDelete", false)];
    for (key, only) in fixed.into_iter().filter(|_| queue_type != QueueType::Classic) {
        if let Some(alternatives) = table["properties"][key]["anyOf"].as_array_mut() {
            alternatives[0] = json!({"const": only});
        }
    }
    table
}

fn argument() -> Value {
    let inner = json!({"$ref": "#/definitions/Argument"});
    json!({
        "description": "Any value except null, which the management API does not accept.",
        "type": ["boolean", "number", "string", "array", "object"],
        "items": inner,
        "additionalProperties": inner,
    })
}

/// Returns the schema for a shape.
fn value(shape: Shape, definitions: &mut Map<String, Value>) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Name => values::name(),
        Shape::RoutingKey => values::routing_key(),
        Shape::Version => values::version(),
        Shape::Boolean => values::boolean(),
        Shape::Duration(min, max) => values::duration(min, max),
        Shape::Delay => values::delay(),
        Shape::Seconds => values::seconds(),
        Shape::Uri => values::uri(),
        Shape::Factor => values::factor(),
        Shape::Size(max) => values::size(max),
        Shape::Count(min, max) => values::count(min, max),
        Shape::MaxAge => values::max_age(),
        Shape::Number => values::number(),
        Shape::OneOf(words) => values::one_of(words),
        Shape::ExchangeType => values::exchange_type(),
        Shape::Tag => values::tag(),
        Shape::Secret(can_be_none) => {
            let mut alternatives: Vec<Value> =
                secrets::REFERENCES.iter().map(|table| reference(table, definitions)).collect();
            alternatives.extend(can_be_none.then(|| json!({"title": "no password", "const": "none"})));
            json!({"anyOf": alternatives})
        }
        Shape::Arguments(false) => json!({
            "type": "object",
            "propertyNames": {"minLength": 1, "maxLength": 255},
            "additionalProperties": {"$ref": "#/definitions/Argument"},
        }),
        Shape::Arguments(true) => queue_arguments(None, definitions),
        Shape::Definition => policy_definition(definitions),
        Shape::Any => json!({"type": ["boolean", "number", "string", "array", "object"]}),
        Shape::List(inner) => json!({"type": "array", "items": value(*inner, definitions)}),
        Shape::NonEmptyList(inner) => json!({"type": "array", "minItems": 1, "items": value(*inner, definitions)}),
        Shape::Map(inner) => map(*inner, definitions),
        Shape::FreeMap(inner) => json!({"type": "object", "additionalProperties": value(*inner, definitions)}),
        Shape::Object(object) => reference(object, definitions),
        Shape::Either(text, tables) => {
            let mut alternatives = vec![value(*text, definitions)];
            alternatives.extend(tables.iter().map(|table| reference(table, definitions)));
            json!({"anyOf": alternatives})
        }
        Shape::OneForm(forms) => {
            let shapes = [forms.scalar, forms.integer, forms.list, forms.map].into_iter().flatten();
            let mut alternatives: Vec<Value> = shapes.map(|shape| value(shape, definitions)).collect();
            alternatives.extend(forms.tables.iter().map(|table| reference(table, definitions)));
            json!({"anyOf": alternatives})
        }
    }
}

fn map(inner: Shape, definitions: &mut Map<String, Value>) -> Value {
    let can_be_external = matches!(inner, Shape::Object(object) if !object.external.is_empty());
    let inner = value(inner, definitions);
    let reserved = if can_be_external {
        json!({"allOf": [inner, {"properties": {"external": {"const": true}}, "required": ["external"]}]})
    } else {
        json!(false)
    };
    json!({
        "type": "object",
        "propertyNames": values::name(),
        "patternProperties": {RESERVED_NAMES: reserved},
        "additionalProperties": inner,
    })
}

/// Returns a reference to the schema for queue arguments. If a queue type is given, the schema rejects known
/// arguments that this type does not support.
fn queue_arguments(queue_type: Option<QueueType>, definitions: &mut Map<String, Value>) -> Value {
    let name = format!("{}Arguments", queue_type.map_or("Queue", capitalized));
    let mut properties = Map::new();
    for known in KNOWN_ARGUMENTS {
        let is_supported = queue_type.is_none_or(|queue_type| known.support_for(queue_type).is_some());
        let mut property = if is_supported { value(known.value.into(), definitions) } else { json!(false) };
        if let Value::Object(property) = &mut property {
            property.insert("description".to_owned(), known.doc.into());
        }
        properties.insert(known.name.to_owned(), property);
        properties.insert(known.key.to_owned(), json!(false));
    }
    let definition = json!({
        "type": "object",
        "propertyNames": {"minLength": 1, "maxLength": 255},
        "properties": properties,
        "dependencies": {"x-dead-letter-routing-key": ["x-dead-letter-exchange"]},
        "additionalProperties": {"$ref": "#/definitions/Argument"},
    });
    definitions.insert(name.clone(), definition);
    json!({"$ref": format!("#/definitions/{name}")})
}

fn policy_definition(definitions: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    for known in POLICY_KEYS.iter() {
        let mut property = value(known.shape, definitions);
        property["description"] = known.doc.into();
        if let Some(example) = values::example(known.shape) {
            property["examples"] = json!([example]);
        }
        properties.insert(known.key.to_owned(), property.clone());
        properties.insert(known.name.to_owned(), property);
    }
    for known in KNOWN_ARGUMENTS.iter().filter(|known| known.policy_key.is_none()) {
        properties.insert(known.key.to_owned(), json!(false));
        properties.insert(known.name.trim_start_matches("x-").to_owned(), json!(false));
    }
    json!({
        "title": "A policy definition",
        "type": "object",
        "minProperties": 1,
        "properties": properties,
        "patternProperties": {OTHER_POLICY_KEYS: {"$ref": "#/definitions/Argument"}},
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/topology.schema.json");

    #[test]
    fn committed_schema_is_current() {
        let printed = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(COMMITTED, &printed).unwrap();
        }
        let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
        assert!(committed == printed, "schema/topology.schema.json is outdated: run the tests with TOPO_UPDATE=1");
    }
}
