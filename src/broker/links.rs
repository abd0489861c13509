//! Reads and writes shovels and federation upstreams, whose URIs contain passwords in plain text (3.8 to 4.3).
//!
//! topo splits each URI into the password and all other components. It compares the password with the secret in a spec,
//! and stores only whether they match.

use super::connection::Broker;
use super::error::BrokerError;
use super::permissions::is_hidden;
use super::plain::Plain;
use super::records::ReadRecords;
use super::secrets::Secrets;
use crate::model::naming::is_shovel;
use crate::model::record_kinds::{FieldShape, PASSWORD_IS_SET, PASSWORDS_DIFFER, RecordField, RecordRow};
use crate::model::secret::Template;
use crate::model::{AmqpUri, ArgumentValue, Arguments, Record, RecordId, RecordKind, SecretRef, Topology};
use crate::plan::request::{Request, path, record_path};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The kinds of runtime parameters with URIs, and their names in messages.
const KINDS: [(RecordKind, &str); 2] = [(RecordKind::Shovel, "shovel"), (RecordKind::Upstream, "federation upstream")];
/// The fields that make a shovel delete itself. The value [`NEVER`] has no effect.
const DELETES_ITSELF: [&str; 2] = ["src-delete-after", "delete-after"];
/// The value that prevents a shovel from deleting itself.
const NEVER: &str = "never";
/// The field that makes a shovel delete itself after a period of time.
const DURATION: &str = "src-delete-after-duration";

/// Converts the entries in a list of parameters to records. If a record's URIs match those of the desired record, the
/// record contains the desired URIs and references.
///
/// Omits shovels that the broker, its plugins or topo create, and shovels that delete themselves.
///
/// # Errors
/// [`BrokerError::Secret`] if the value of a secret cannot be used.
pub(super) fn records(
    row: &RecordRow,
    entries: Vec<Arguments>,
    desired: &Topology,
    secrets: &Secrets,
) -> Result<ReadRecords, BrokerError> {
    let mut read = ReadRecords::default();
    for mut entry in entries {
        let Some(ArgumentValue::Text(name)) = entry.remove("name") else { continue };
        let Some(ArgumentValue::Table(fields)) = entry.remove("value") else { continue };
        add(&mut read, row, &name, fields, (desired, secrets))?;
    }
    Ok(read)
}

/// Converts one parameter to a record. Returns false if a spec cannot contain the parameter.
pub(super) fn add(
    read: &mut ReadRecords,
    row: &RecordRow,
    name: &str,
    mut fields: Arguments,
    (desired, secrets): (&Topology, &Secrets),
) -> Result<bool, BrokerError> {
    let id = RecordId::named(row.kind, name);
    if is_shovel(name) {
        return Ok(false);
    }
    if is_excluded(&fields) {
        read.excluded.insert(id);
        return Ok(false);
    }
    fields.retain(|name, _| !DELETES_ITSELF.contains(&name.as_str()) && name != INTERNAL);
    // In topo, these fields represent the passwords in URIs. No RabbitMQ version has fields with these names.
    fields.retain(|name, _| row.settings().iter().all(|field| field.name != name || !is_secret(field)));
    let mut references = Vec::new();
    for field in row.settings().iter().filter(|field| matches!(field.shape, FieldShape::Uris { .. })) {
        match fields.get(field.name).map(uri_kind) {
            Some(UriKind::Reference(secret)) => references.push((field.name, secret)),
            Some(UriKind::Texts) | None => {}
            Some(UriKind::Other) => return Ok(false),
        }
    }
    for (name, secret) in references {
        fields.insert(name.to_owned(), secret.value());
    }
    for field in row.settings() {
        if let Some(value) = fields.remove(field.old_name) {
            fields.entry(field.name.to_owned()).or_insert(value);
        }
        if let FieldShape::Uris { .. } = field.shape
            && let Some(reason) = split(&mut fields, row.kind, field, desired.records.get(&id), secrets)?
        {
            read.not_compared.insert(id.clone(), reason);
        }
    }
    // The value of an unknown field may be a secret.
    let is_known = |name: &str| row.settings().iter().any(|field| field.name == name);
    fields.iter_mut().filter(|(name, _)| !is_known(name)).for_each(|(_, value)| *value = NOT_SHOWN.into());
    let record = Record::new(id.clone(), fields);
    let is_record = record.is_some();
    read.records.extend(record.map(|record| (id, record)));
    Ok(is_record)
}

/// The field that marks a shovel that the broker or a plugin created (`rabbit_shovel_parameters:is_internal`).
const INTERNAL: &str = "internal";

/// Returns true if a spec cannot contain the shovel, because the broker or a plugin created it, or because it deletes
/// itself.
fn is_excluded(fields: &Arguments) -> bool {
    let is_never = |field: &str| fields.get(field).is_none_or(|value| value.as_text() == Some(NEVER));
    fields.get(INTERNAL) == Some(&ArgumentValue::Boolean(true))
        || !DELETES_ITSELF.iter().all(|field| is_never(field))
        || fields.contains_key(DURATION)
}

/// The replacement for the value of a field that topo does not know.
const NOT_SHOWN: &str = "(not shown)";

fn is_secret(field: &RecordField) -> bool {
    matches!(field.shape, FieldShape::Secret { .. })
}

/// The value of a field with URIs.
enum UriKind {
    /// One URI, or a list of URIs.
    Texts,
    /// A reference to a complete URI, which occurs only in a file that was converted from another tool's format.
    Reference(SecretRef),
    /// A value that the broker does not accept.
    Other,
}

fn uri_kind(value: &ArgumentValue) -> UriKind {
    if let Some(Template::Secret(secret)) = Template::of(&json!(value)) {
        return UriKind::Reference(secret);
    }
    let is_text = |value: &ArgumentValue| value.as_text().is_some();
    let are_texts = matches!(value, ArgumentValue::List(items) if items.iter().all(is_text));
    if is_text(value) || are_texts { UriKind::Texts } else { UriKind::Other }
}

/// A URI from the broker; `None` if topo cannot parse the URI.
type Parsed = Option<AmqpUri>;

/// Compares the URIs in a field with those of the desired record, and replaces them with the desired URIs if they
/// match. Adds the field that represents the password, if any password is set. If the password matches or cannot be
/// compared, this field contains the desired record's reference. Otherwise, the field shows only whether one or several
/// passwords are set. Returns the reason if topo cannot compare the passwords.
fn split(
    fields: &mut Arguments,
    kind: RecordKind,
    field: &RecordField,
    desired: Option<&Record>,
    secrets: &Secrets,
) -> Result<Option<String>, BrokerError> {
    let texts: Vec<String> = match fields.get(field.name) {
        Some(ArgumentValue::List(items)) => items.iter().filter_map(|it| it.as_text().map(str::to_owned)).collect(),
        Some(value) => value.as_text().map(str::to_owned).into_iter().collect(),
        None => return Ok(None),
    };
    let current: Vec<Parsed> = texts.iter().map(|text| AmqpUri::parse(text).ok()).collect();
    let mut not_compared = None;
    // The URIs whose password does not come from a referenced URI.
    let mut with_own_password: Vec<&Parsed> = current.iter().collect();
    if let Some(desired) = desired {
        let items = desired.items(field.name);
        let mut are_equal = items.len() == current.len();
        let mut without_reference = Vec::new();
        for ((item, uri), text) in items.iter().zip(&current).zip(&texts) {
            let Some(secret) = SecretRef::of(item) else {
                are_equal &= uri.as_ref().is_some_and(|uri| field.shape.uri_text(uri) == item.as_text().unwrap_or(""));
                without_reference.push(uri);
                continue;
            };
            match secrets.value(&secret)? {
                Some(value) => match AmqpUri::parse(value.expose_secret()) {
                    Ok(secret_uri) => {
                        are_equal &= uri.as_ref().is_some_and(|uri| is_same_uri(&secret_uri, uri, field));
                    }
                    Err(_) if value.expose_secret() == text => {}
                    Err(problem) => {
                        not_compared = Some(format!("the value of {secret} is not a valid AMQP URI: {problem}"));
                    }
                },
                None => not_compared = Some(secret.missing()),
            }
        }
        if are_equal && let Some(uris) = desired.fields.get(field.name) {
            fields.insert(field.name.to_owned(), uris.clone());
            with_own_password = without_reference;
        }
    }
    let Some(password_field) = Record::password_field(field, kind) else { return Ok(not_compared) };
    let reference = desired.and_then(|desired| desired.fields.get(password_field.name)).and_then(SecretRef::of);
    let passwords: BTreeSet<Option<&str>> = with_own_password
        .into_iter()
        .flatten()
        .filter(|uri| uri.user().is_some() || uri.password().is_some())
        .map(AmqpUri::password)
        .collect();
    let has_password = passwords.iter().any(Option::is_some);
    let is_equal = match &reference {
        Some(reference) => match secrets.value(reference)? {
            Some(value) => passwords.len() == 1 && passwords.contains(&Some(value.expose_secret())),
            None if has_password => {
                not_compared = Some(reference.missing());
                true
            }
            None => false,
        },
        None => false,
    };
    let mark = match reference {
        Some(reference) if is_equal => Some(reference.value()),
        Some(_) | None if passwords.len() > 1 => Some(PASSWORDS_DIFFER.into()),
        Some(_) | None if has_password => Some(PASSWORD_IS_SET.into()),
        Some(_) | None => None,
    };
    fields.extend(mark.map(|mark| (password_field.name.to_owned(), mark)));
    Ok(not_compared)
}

/// Returns true if the URIs are equivalent and have the same password.
fn is_same_uri(desired: &AmqpUri, current: &AmqpUri, field: &RecordField) -> bool {
    field.shape.uri_text(current) == field.shape.uri_text(desired)
        && current.password() == desired.password()
        && current.has_same_query(desired)
}

impl Broker {
    /// Replaces the templates in a request that writes a shovel or an upstream, and sends the request.
    pub(super) async fn put_link(&self, link: &Record, request: &Request) -> Result<(), BrokerError> {
        let fields = link.id.kind.row().settings().iter();
        let uris: Vec<&str> =
            fields.filter(|field| matches!(field.shape, FieldShape::Uris { .. })).map(|field| field.name).collect();
        let filled = self.secrets().fill_uris(request, &uris)?;
        self.send(&filled).await.map(|_| ()).map_err(|error| self.secrets().redact_uris(error))
    }

    /// Returns the definitions of the shovels and upstreams in a topology, with the passwords in their URIs. Skips
    /// objects that no longer exist on the broker.
    pub async fn link_definitions(&self, topology: &Topology) -> Result<Vec<Value>, BrokerError> {
        let mut definitions = Vec::new();
        for id in topology.records.keys().filter(|id| id.kind.row().has_uris()) {
            match self.get::<Value>(record_path(&topology.vhost, id)).await {
                Ok(definition) => definitions.push(definition),
                Err(BrokerError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(definitions)
    }

    /// Returns the shovels and federation upstreams in all vhosts, by the user names in their URIs. Omits topo's own
    /// shovels. Returns `None` if the connected user cannot read shovels or upstreams.
    pub async fn links(&self) -> Result<Option<BTreeMap<String, BTreeSet<String>>>, BrokerError> {
        let mut links: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (kind, word) in KINDS {
            let parameters = match self.get::<Vec<Parameter>>(path(kind.row().path, &[])).await {
                Ok(parameters) => parameters,
                // The plugin is not enabled.
                Err(BrokerError::NotFound { .. }) => continue,
                Err(error) if is_hidden(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            for Parameter { vhost, name, value } in parameters.iter().filter(|parameter| !is_shovel(&parameter.name)) {
                for user in value.users() {
                    links.entry(user).or_default().insert(format!("{word} {name} in vhost {vhost}"));
                }
            }
        }
        Ok(Some(links))
    }
}

/// An entry in a list of parameters.
#[derive(Deserialize)]
struct Parameter {
    vhost: String,
    name: String,
    value: Uris,
}

/// The URIs of a shovel or an upstream.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Uris {
    uri: Option<Plain>,
    src_uri: Option<Plain>,
    dest_uri: Option<Plain>,
}

impl Uris {
    /// Returns the user names in the URIs.
    fn users(&self) -> BTreeSet<String> {
        let settings = [&self.uri, &self.src_uri, &self.dest_uri].into_iter().flatten();
        let uris = settings.flat_map(|setting| match setting {
            Plain::Text(uri) => vec![uri.as_str()],
            Plain::Texts(uris) => uris.iter().map(String::as_str).collect(),
            Plain::Boolean(_) | Plain::Integer(_) | Plain::Other => Vec::new(),
        });
        uris.filter_map(|uri| AmqpUri::parse(uri).ok()?.user().map(str::to_owned)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Records;
    use secrecy::SecretString;

    #[test]
    fn users_are_found_in_all_uris() {
        let uris = json!({"src-uri": ["amqp://a%2Fb:x@h", "amqp://"], "dest-uri": "amqps://c@h/v", "uri": "not a URI"});
        let uris: Uris = serde_json::from_value(uris).unwrap();
        assert_eq!(uris.users(), ["a/b".to_owned(), "c".to_owned()].into());
    }

    /// Returns the name of the secret as its value. The `UNSET` environment variable has no value.
    fn read_secret(secret: &SecretRef) -> Result<Option<SecretString>, String> {
        Ok(match secret {
            SecretRef::Env(name) if name == "UNSET" => None,
            SecretRef::Env(value) | SecretRef::File(value) => Some(SecretString::from(value.clone())),
        })
    }

    /// Compares an upstream on the broker with a desired upstream. Returns its URI fields, and the reason if the
    /// password could not be compared.
    fn compared(live: Value, desired: Value) -> (Arguments, Option<String>) {
        let id = RecordId::named(RecordKind::Upstream, "us");
        let desired = Record::new(id.clone(), serde_json::from_value(desired).unwrap());
        let desired: Records = desired.into_iter().map(|record| (id.clone(), record)).collect();
        let entry = serde_json::from_value(json!({"name": "us", "value": {"uri": live}})).unwrap();
        let (row, secrets) = (RecordKind::Upstream.row(), Secrets::new(read_secret));
        let mut read = records(row, vec![entry], &Topology::of_cluster(desired), &secrets).unwrap();
        let mut fields = read.records.remove(&id).unwrap().fields;
        fields.retain(|name, _| name.starts_with("uri"));
        (fields, read.not_compared.remove(&id))
    }

    #[test]
    fn passwords_are_compared_and_not_stored() {
        let desired = json!({"uri": "amqp://u@h/v", "uri-password": {"env": "tulip"}});
        let reference = || json!({"env": "tulip"});
        let uri = "amqp://u@h/v";
        for (live, expected) in [
            (json!("amqp://u:tulip@h/v"), json!({"uri": uri, "uri-password": reference()})),
            (json!(["amqp://u:%74ulip@H:5672/v"]), json!({"uri": uri, "uri-password": reference()})),
            (json!("amqp://u:rose@h/v"), json!({"uri": uri, "uri-password": "set"})),
            (json!("amqp://u@h/v"), json!({"uri": uri})),
            (json!("amqp://u:tulip@h/other"), json!({"uri": "amqp://u@h/other", "uri-password": reference()})),
            (json!("amqp://u:tu lip@h/v"), json!({"uri": "(invalid URI)"})),
            (
                json!(["amqp://u:rose@h/v", "amqp://u:lily@h/v"]),
                json!({"uri": [uri, uri], "uri-password": "set (several)"}),
            ),
        ] {
            let (found, not_compared) = compared(live.clone(), desired.clone());
            assert_eq!(json!(found), expected, "{live}");
            assert_eq!(not_compared, None);
        }
    }

    #[test]
    fn unset_secrets_are_not_compared() {
        let desired = json!({"uri": "amqp://u@h", "uri-password": {"env": "UNSET"}});
        let (found, not_compared) = compared(json!("amqp://u:rose@h"), desired.clone());
        assert_eq!(json!(found), desired);
        assert_eq!(not_compared.as_deref(), Some("environment variable UNSET is not set"));
        let desired = json!({"uri": {"env": "UNSET"}});
        assert_eq!(json!(compared(json!("amqp://u:rose@h"), desired.clone()).0), desired);
    }

    #[test]
    fn referenced_uris_are_compared() {
        let desired = json!({"uri": [{"env": "amqp://u:rose@h/v"}, "amqp://h"]});
        assert_eq!(json!(compared(json!(["amqp://u:%72ose@h/v", "amqp://h"]), desired.clone()).0), desired);
        let found = compared(json!(["amqp://u:lily@h/v", "amqp://h"]), desired).0;
        assert_eq!(json!(found), json!({"uri": ["amqp://u@h/v", "amqp://h"], "uri-password": "set"}));
    }

    #[test]
    fn self_deleting_and_internal_shovels_are_omitted() {
        let of = |name: &str, more: Value| {
            let mut value = json!({"src-uri": "amqp://", "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"});
            value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let entry = serde_json::from_value(json!({"name": name, "value": value})).unwrap();
            let nothing = Topology::of_cluster(Records::new());
            let read = records(RecordKind::Shovel.row(), vec![entry], &nothing, &Secrets::new(read_secret)).unwrap();
            read.records.into_values().next().map(|record| json!(record.fields))
        };
        assert_eq!(of("s", json!({"src-delete-after": "queue-length"})), None);
        assert_eq!(of("s", json!({"delete-after": 5})), None);
        assert_eq!(of("s", json!({"internal": true})), None);
        assert_eq!(of("s", json!({"src-delete-after-duration": 5})), None);
        let plain = of("s", json!({"src-delete-after": "never", "prefetch-count": 5, "add-forward-headers": true}));
        let named = json!({"src-prefetch-count": 5, "dest-add-forward-headers": true, "internal": false});
        assert_eq!(plain, of("s", named));
        assert!(plain.is_some());
    }
}
