//! Records: objects that consist of a key and fields, such as operator policies and limits. A record changes in place:
//! one request writes it, and one DELETE deletes it. [`record_kinds`](super::record_kinds) contains the table of kinds.

use super::amqp_uri::AmqpUri;
use super::arguments::{ArgumentValue, Arguments};
use super::names::{ExchangeName, PolicyName, UserName};
use super::policy::{ApplyTo, Policy, Priority};
use super::queue::TopicPermission;
use super::record_kinds::{FieldShape, Layout, MEMBER_NAME, RecordField, RecordKind};
use super::secret::SecretRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The identity of a record within its vhost or the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct RecordId {
    /// The kind.
    pub kind: RecordKind,
    /// The segments of the key: the name, if records of the kind have names, and the setting, if each setting is a
    /// record.
    pub key: Vec<String>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The kind and the key.
    #[serde(flatten)]
    pub id: RecordId,
    /// The values of the fields, by RabbitMQ's field names.
    pub fields: Arguments,
}

/// The pattern that matches every name and every routing key.
const EVERYTHING: &str = ".*";

/// The records of a vhost or a cluster.
pub type Records = BTreeMap<RecordId, Record>;

impl RecordId {
    /// Creates the identity of a record whose key is only a name.
    pub fn named(kind: RecordKind, name: impl Into<String>) -> Self {
        Self { kind, key: vec![name.into()] }
    }

    /// Returns the name that the globs in `owns`, `protect` and `ignore` must match; `None` for kinds without names,
    /// such as vhost limits.
    pub fn name(&self) -> Option<&str> {
        self.key.first().filter(|_| !self.kind.row().key.is_empty()).map(String::as_str)
    }

    /// Returns the setting in the key, if each setting of the kind is a record.
    pub fn setting(&self) -> Option<&str> {
        match self.kind.row().layout {
            Layout::Fields(_) | Layout::Value(_) => None,
            Layout::Settings(_) => self.key.last().map(String::as_str),
        }
    }

    /// Returns the descriptions of the record's fields, from the table of record kinds.
    pub fn fields(&self) -> Vec<RecordField> {
        match self.kind.row().layout {
            Layout::Fields(fields) => fields.to_vec(),
            Layout::Value(field) => field.to_vec(),
            Layout::Settings(settings) => {
                let matching = settings.iter().filter(|setting| self.setting() == Some(setting.name));
                matching.map(|setting| RecordField { name: "value", ..*setting }).collect()
            }
        }
    }
}

/// Writes the kind and the key: `operator policy ceiling`, `vhost limit max-queues`.
impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.row().word)?;
        self.key.iter().try_for_each(|segment| write!(f, " {segment}"))
    }
}

impl Record {
    /// Creates a record from JSON fields and the defaults of its kind. Keeps unknown fields of shovels and upstreams,
    /// because a later version of RabbitMQ may support these fields. Ignores all other unknown fields. Returns `None`
    /// if a required field is missing, or if the record has no effect. For example, a negative limit and a flag that is
    /// false have no effect.
    pub fn new(id: RecordId, mut fields: Arguments) -> Option<Self> {
        let mut normalized = Arguments::new();
        for field in id.fields() {
            match fields.remove(field.name).or_else(|| field.default_value()) {
                Some(value) if field.shape.is_unset(&value) => {}
                Some(value) => drop(normalized.insert(field.name.to_owned(), field.shape.normalize(value)?)),
                None if field.is_required() => return None,
                None => {}
            }
        }
        if id.kind.row().is_wrapped {
            normalized.extend(fields);
        }
        Some(Self { id, fields: normalized })
    }

    /// Returns the name and the policy if the record is an operator policy.
    pub fn operator_policy(&self) -> Option<(PolicyName, Policy)> {
        let name = self.id.key.first().filter(|_| self.id.kind == RecordKind::OperatorPolicy)?;
        let text = |field: &str| self.fields.get(field).and_then(ArgumentValue::as_text);
        let priority = self.fields.get("priority").and_then(ArgumentValue::as_number).unwrap_or_default();
        let policy = Policy {
            pattern: text("pattern").unwrap_or_default().to_owned(),
            apply_to: text("apply-to").and_then(ApplyTo::named).unwrap_or(ApplyTo::All),
            priority: Priority(priority),
            definition: self.table("definition").cloned().unwrap_or_default(),
        };
        Some((PolicyName::new(name.as_str()), policy))
    }

    /// Returns the word that a spec accepts instead of the fields. Returns `None` if the kind has no such word, or if
    /// the value of any field differs from the value that the word sets.
    pub fn shorthand(&self) -> Option<&'static str> {
        let shorthand = self.id.kind.row().shorthand?;
        let has_value = |value: &ArgumentValue| value.as_text() == Some(shorthand.value);
        self.fields.values().all(has_value).then_some(shorthand.words[0])
    }

    /// Returns the topic permission; `None` for a record of a different kind.
    pub fn topic_permission(&self) -> Option<TopicPermission> {
        let (RecordKind::TopicPermission, [user, exchange]) = (self.id.kind, &self.id.key[..]) else { return None };
        let pattern = |field: &str| self.fields.get(field).and_then(ArgumentValue::as_text).unwrap_or_default();
        Some(TopicPermission {
            user: UserName::new(user.as_str()),
            exchange: ExchangeName::new(exchange.as_str()),
            write: pattern("write").to_owned(),
            read: pattern("read").to_owned(),
        })
    }

    /// Returns true if the record is equivalent to a missing record, because it is a topic permission that permits
    /// every routing key.
    pub fn is_without_effect(&self) -> bool {
        self.id.kind == RecordKind::TopicPermission
            && self.fields.values().all(|pattern| pattern.as_text() == Some(EVERYTHING))
    }

    /// Returns true if a user has this tag. A user whose tags are not set has no tags.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags().any(|known| known == tag)
    }

    /// Returns the tags of a user.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        let list = self.fields.get("tags").and_then(ArgumentValue::as_list).unwrap_or_default();
        list.iter().filter_map(ArgumentValue::as_text)
    }

    /// Returns the references to secrets, each with the name of its field. References to complete URIs are included.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, SecretRef)> {
        let fields = self.id.kind.row().settings().iter();
        let is_secret =
            |field: &&RecordField| matches!(field.shape, FieldShape::Secret { .. } | FieldShape::Uris { .. });
        fields.filter(is_secret).flat_map(|field| {
            let references = self.items(field.name).iter().filter_map(SecretRef::of);
            references.map(|secret| (field.name, secret))
        })
    }

    /// Returns the items of a list field. If the field is not a list, returns its value as the only item. Returns no
    /// items if the field is missing.
    pub fn items(&self, field: &str) -> &[ArgumentValue] {
        match self.fields.get(field) {
            Some(ArgumentValue::List(items)) => items,
            Some(value) => std::slice::from_ref(value),
            None => &[],
        }
    }

    /// Returns the names of the upstreams in an upstream set; empty for a record of a different kind.
    pub fn upstreams(&self) -> impl Iterator<Item = &str> {
        fn name(member: &ArgumentValue) -> Option<&str> {
            if let ArgumentValue::Table(fields) = member { fields.get(MEMBER_NAME)?.as_text() } else { None }
        }
        let is_set = self.id.kind == RecordKind::UpstreamSet;
        self.items("value").iter().filter(move |_| is_set).filter_map(name)
    }

    /// Returns the field that contains the password for the URIs in the `uris` field. Both fields belong to the same
    /// mapping in a spec.
    pub fn password_field(uris: &RecordField, kind: RecordKind) -> Option<&'static RecordField> {
        let fields = kind.row().settings().iter();
        fields.into_iter().find(|field| matches!(field.shape, FieldShape::Secret { .. }) && field.group == uris.group)
    }

    /// Returns the `value` field if it is a non-negative integer, such as the value of a limit.
    pub fn limit(&self) -> Option<u64> {
        self.fields.get("value").and_then(ArgumentValue::as_integer).and_then(|number| u64::try_from(number).ok())
    }

    /// Returns the value of a field if it is a mapping.
    pub fn table(&self, field: &str) -> Option<&Arguments> {
        match self.fields.get(field)? {
            ArgumentValue::Table(table) => Some(table),
            ArgumentValue::Null
            | ArgumentValue::Boolean(_)
            | ArgumentValue::Integer(_)
            | ArgumentValue::Float(_)
            | ArgumentValue::Text(_)
            | ArgumentValue::List(_) => None,
        }
    }
}

impl FieldShape {
    /// Returns the canonical text of a URI without its passwords.
    pub fn uri_text(self, uri: &AmqpUri) -> String {
        let has_default_vhost = self == Self::Uris { has_default_vhost: true };
        if has_default_vhost { uri.clone().without_vhost(DEFAULT_VHOST).to_string() } else { uri.to_string() }
    }

    /// Normalizes a value, so that equivalent values are equal. Returns `None` for a negative limit and for a flag that
    /// is false, which are equivalent to a missing record.
    fn normalize(self, value: ArgumentValue) -> Option<ArgumentValue> {
        match (self, value) {
            // 1 and 1.0 are the same priority.
            (Self::Number, ArgumentValue::Float(number)) => Some(Priority(number.0).into()),
            (Self::Limit, ArgumentValue::Integer(number)) if number < 0 => None,
            (Self::Flag, ArgumentValue::Boolean(false)) => None,
            (Self::Pattern, ArgumentValue::Text(pattern)) if pattern.is_empty() => Some("^$".into()),
            // The broker lists an empty object as an empty list.
            (Self::Any, ArgumentValue::Table(table)) if table.is_empty() => Some(ArgumentValue::List(Vec::new())),
            // RabbitMQ 3.10 and earlier list an empty definition as an empty list.
            (Self::Definition, ArgumentValue::List(items)) if items.is_empty() => {
                Some(ArgumentValue::Table(Arguments::new()))
            }
            (Self::Tags, value) => Some(normalize_tags(value)),
            (Self::Uris { .. }, value) => Some(self.normalize_uris(value)),
            (Self::Seconds | Self::Milliseconds | Self::Count(..), ArgumentValue::Float(number)) => {
                Some(Priority(number.0).into())
            }
            (Self::Members, ArgumentValue::List(members)) => {
                Some(ArgumentValue::List(members.into_iter().map(normalize_member).collect()))
            }
            (_, value) => Some(value),
        }
    }

    /// Returns true if a missing field is equivalent to this value: an empty mapping, which the broker may list as an
    /// empty list, or an empty binding key.
    fn is_unset(self, value: &ArgumentValue) -> bool {
        match (self, value) {
            (Self::Table | Self::Arguments, ArgumentValue::Table(entries)) => entries.is_empty(),
            (Self::Table | Self::Arguments, ArgumentValue::List(items)) => items.is_empty(),
            (Self::BindingKey, value) => value.as_text() == Some(""),
            (_, _) => false,
        }
    }

    /// Returns URIs without passwords and in canonical form. A list with one URI becomes that URI.
    fn normalize_uris(self, uris: ArgumentValue) -> ArgumentValue {
        match uris {
            ArgumentValue::List(mut items) if items.len() == 1 => self.normalize_uris(items.remove(0)),
            ArgumentValue::List(items) => {
                ArgumentValue::List(items.into_iter().map(|item| self.normalize_uris(item)).collect())
            }
            ArgumentValue::Text(text) => {
                AmqpUri::parse(&text).map_or(INVALID_URI.to_owned(), |uri| self.uri_text(&uri)).into()
            }
            other @ (ArgumentValue::Null
            | ArgumentValue::Boolean(_)
            | ArgumentValue::Integer(_)
            | ArgumentValue::Float(_)
            | ArgumentValue::Table(_)) => other,
        }
    }
}

/// Sorts tags and removes duplicates, surrounding whitespace and empty tags. RabbitMQ 3.8 returns a comma-separated
/// string.
fn normalize_tags(tags: ArgumentValue) -> ArgumentValue {
    let texts: Vec<&str> = match &tags {
        ArgumentValue::Text(joined) => joined.split(',').collect(),
        ArgumentValue::List(items) => items.iter().filter_map(ArgumentValue::as_text).collect(),
        ArgumentValue::Null
        | ArgumentValue::Boolean(_)
        | ArgumentValue::Integer(_)
        | ArgumentValue::Float(_)
        | ArgumentValue::Table(_) => Vec::new(),
    };
    let distinct: BTreeSet<&str> = texts.into_iter().map(str::trim).filter(|tag| !tag.is_empty()).collect();
    ArgumentValue::List(distinct.into_iter().map(ArgumentValue::from).collect())
}

/// The vhost that a URI without a vhost refers to.
const DEFAULT_VHOST: &str = "/";

/// The replacement for a URI that topo cannot parse. Any part of such a URI may be a password.
const INVALID_URI: &str = "(invalid URI)";

/// Converts a member of an upstream set that is only a name to the equivalent mapping.
fn normalize_member(member: ArgumentValue) -> ArgumentValue {
    match member {
        ArgumentValue::Text(name) => {
            ArgumentValue::Table(Arguments::from([(MEMBER_NAME.to_owned(), ArgumentValue::Text(name))]))
        }
        other @ (ArgumentValue::Null
        | ArgumentValue::Boolean(_)
        | ArgumentValue::Integer(_)
        | ArgumentValue::Float(_)
        | ArgumentValue::List(_)
        | ArgumentValue::Table(_)) => other,
    }
}

/// Serializes records as a list, because the keys of a JSON object must be strings.
pub(crate) mod as_list {
    use super::{Record, Records};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(records: &Records, serializer: S) -> Result<S::Ok, S::Error> {
        records.values().collect::<Vec<_>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Records, D::Error> {
        let list = Vec::<Record>::deserialize(deserializer)?;
        Ok(list.into_iter().map(|record| (record.id.clone(), record)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Arguments {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn operator_policies_become_policies() {
        let id = RecordId::named(RecordKind::OperatorPolicy, "cap");
        let record = Record::new(id, fields(r#"{"pattern":"^q","definition":{"max-length":5},"name":"cap"}"#)).unwrap();
        let (name, policy) = record.operator_policy().unwrap();
        assert_eq!((name.as_str(), policy.pattern.as_str(), policy.apply_to), ("cap", "^q", ApplyTo::All));
        assert_eq!(policy.priority, Priority(0.0));
        assert_eq!(policy.definition["max-length"], 5.into());
        assert_eq!(record.fields.keys().collect::<Vec<_>>(), ["apply-to", "definition", "pattern", "priority"]);
    }

    #[test]
    fn upstream_set_members_name_upstreams() {
        let members = fields(r#"{"value": ["us", {"upstream": "eu", "exchange": "x"}]}"#);
        let set = Record::new(RecordId::named(RecordKind::UpstreamSet, "regions"), members).unwrap();
        assert_eq!(set.upstreams().collect::<Vec<_>>(), ["us", "eu"]);
    }

    #[test]
    fn equal_priorities_are_equal_records() {
        let of = |priority: &str| {
            let id = RecordId::named(RecordKind::OperatorPolicy, "cap");
            let json = format!(r#"{{"pattern":"q","definition":[],"apply-to":"all","priority":{priority}}}"#);
            Record::new(id, fields(&json))
        };
        assert_eq!(of("1"), of("1.0"));
        assert_ne!(of("1"), of("1.5"));
    }
}
