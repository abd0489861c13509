//! Splits a definitions file into the entries of its lists, and completes an entry with the broker's defaults.
//!
//! Handwritten definitions files may omit fields. The default of a missing field depends on the list, the field and the
//! broker's version (`rabbit_definitions`). The defaults were observed in imports into 3.8.9, 3.10.8, 4.0.5 and 4.3.6.

use crate::model::BrokerVersion;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The unparsed fields of a JSON object, by key.
pub(super) type Fields<'a> = BTreeMap<String, Part<'a>>;

/// A part of a definitions file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// The JSON text.
    pub(super) text: &'a str,
    /// The offset of the text in the file, in bytes.
    at: usize,
}

/// An entry that a broker cannot import, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("{object} (line {line}): {problem}")]
pub struct EntryError {
    object: String,
    line: usize,
    problem: String,
}

/// A list in a definitions file, with the required fields and the defaults of its entries.
pub(super) struct List {
    /// The key of the list in the file.
    pub(super) key: &'static str,
    /// The noun for an entry in messages.
    noun: &'static str,
    /// The fields that identify an entry in messages.
    names: &'static [&'static str],
    /// The fields that have no default in any version.
    required: &'static [&'static str],
    /// The fields with a default, each with the default as JSON and the first version that has the default.
    defaults: &'static [(&'static str, &'static str, BrokerVersion)],
}

/// The first version for defaults that exist in every supported version.
const ALWAYS: BrokerVersion = BrokerVersion::OLDEST_SUPPORTED;
const V3_10: BrokerVersion = BrokerVersion::new(3, 10, 0);
const V4_0: BrokerVersion = BrokerVersion::new(4, 0, 0);
const V4_3: BrokerVersion = BrokerVersion::new(4, 3, 0);

pub(super) const QUEUES: List = List {
    key: "queues",
    noun: "queue",
    names: &["name"],
    required: &["name"],
    defaults: &[("arguments", "{}", V3_10), ("durable", "true", V4_0), ("auto_delete", "false", V4_0)],
};

/// If `auto_delete` is missing, RabbitMQ before 4.2.2 stores `undefined`, and keeps the exchange after its last binding
/// is removed.
pub(super) const EXCHANGES: List = List {
    key: "exchanges",
    noun: "exchange",
    names: &["name"],
    required: &["name", "type"],
    defaults: &[
        ("internal", "false", ALWAYS),
        ("auto_delete", "false", ALWAYS),
        ("arguments", "{}", V3_10),
        ("durable", "true", V4_3),
    ],
};

pub(super) const PERMISSIONS: List = List {
    key: "permissions",
    noun: "permission",
    names: &["user"],
    required: &["user", "configure", "write", "read"],
    defaults: &[],
};

pub(super) const USERS: List =
    List { key: "users", noun: "user", names: &["name"], required: &["name"], defaults: &[] };

pub(super) const TOPIC_PERMISSIONS: List = List {
    key: "topic_permissions",
    noun: "topic permission",
    names: &["user", "exchange"],
    required: &["user", "exchange", "write", "read"],
    defaults: &[],
};

/// `properties_key`, which identifies a binding in requests, is not part of a definitions file. Its default is a
/// placeholder.
pub(super) const BINDINGS: List = List {
    key: "bindings",
    noun: "binding",
    names: &["source", "destination"],
    required: &["source", "destination", "destination_type", "routing_key"],
    defaults: &[("arguments", "{}", V3_10), ("properties_key", "\"~\"", ALWAYS)],
};

pub(super) const POLICIES: List = List {
    key: "policies",
    noun: "policy",
    names: &["name"],
    required: &["name", "pattern", "definition"],
    defaults: &[],
};

pub(super) const VHOSTS: List =
    List { key: "vhosts", noun: "vhost", names: &["name"], required: &["name"], defaults: &[] };

pub(super) const PARAMETERS: List = List {
    key: "parameters",
    noun: "parameter",
    names: &["component", "name"],
    required: &["component", "name", "value"],
    defaults: &[],
};

/// Splits a JSON object of any nesting depth into its fields.
///
/// # Errors
/// The text is not a JSON object.
pub(super) fn fields(text: &str) -> Result<Fields<'_>, serde_json::Error> {
    serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text)?;
    let mut fields = Fields::new();
    let mut key: Option<String> = None;
    for part in parts(Part { text, at: 0 }) {
        match key.take() {
            Some(name) => drop(fields.insert(name, part)),
            None => key = Some(serde_json::from_str(part.text)?),
        }
    }
    Ok(fields)
}

impl<'a> Part<'a> {
    /// Returns the elements of a JSON list; no elements if the part is not a list.
    pub(super) fn elements(self) -> impl Iterator<Item = Self> {
        let is_list = self.text.starts_with('[');
        parts(self).filter(move |_| is_list)
    }

    /// Returns the string value of a field; `?` if the field is missing or is not a string.
    pub(super) fn name(self, field: &str) -> String {
        let fields = fields(self.text).unwrap_or_default();
        let text = fields.get(field).and_then(|part| serde_json::from_str(part.text).ok());
        text.unwrap_or_else(|| "?".to_owned())
    }

    /// Returns the JSON text of a field; `None` if the field is missing, or if the part is not an object.
    pub(super) fn field(self, name: &str) -> Option<&'a str> {
        fields(self.text).ok()?.get(name).map(|part| part.text)
    }

    /// Returns the vhost of an entry; `None` if the entry does not contain a valid vhost.
    pub(super) fn vhost(self) -> Option<String> {
        #[derive(Deserialize)]
        struct Entry {
            vhost: Option<String>,
        }
        serde_json::from_str::<Entry>(self.text).ok()?.vhost
    }
}

/// Splits a JSON list into its elements, or an object into its keys and values. The text must be valid JSON.
fn parts(whole: Part<'_>) -> impl Iterator<Item = Part<'_>> {
    let mut at = 1;
    std::iter::from_fn(move || {
        let rest = whole.text.get(at..)?;
        let start = at + (rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', ',', ':']).len());
        let mut stream = serde_json::Deserializer::from_str(whole.text.get(start..)?).into_iter::<IgnoredAny>();
        stream.next()?.ok()?;
        at = start + stream.byte_offset();
        Some(Part { text: whole.text.get(start..at)?, at: whole.at + start })
    })
}

/// Returns an error's message without the position, which is relative to the entry.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem).to_owned()
}

impl List {
    /// Parses an entry, and adds the defaults that `version` has for missing fields.
    ///
    /// # Errors
    /// A field that has no default in `version` is missing, or a value has the wrong type.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        file: &str,
        entry: Part<'_>,
        version: BrokerVersion,
    ) -> Result<T, EntryError> {
        let fields = fields(entry.text).map_err(|error| self.error(file, entry, &error))?;
        let is_missing = |field: &&&str| !fields.contains_key(**field);
        if let Some(field) = self.required.iter().find(is_missing) {
            return Err(self.error(file, entry, &format_args!("missing field `{field}`")));
        }
        let mut completed = Cow::Borrowed(entry.text);
        for (field, value, since) in self.defaults.iter().filter(|(field, ..)| is_missing(&field)) {
            if version < *since {
                let problem = format_args!(
                    "missing field `{field}`, which has no default in RabbitMQ {version} (only in {} and later)",
                    since.series()
                );
                return Err(self.error(file, entry, &problem));
            }
            // Every list has required fields, so another field follows the comma.
            completed = Cow::Owned(format!("{{\"{field}\":{value},{}", completed.get(1..).unwrap_or_default()));
        }
        serde_json::from_str(&completed).map_err(|error| self.error(file, entry, &without_position(&error)))
    }

    /// Parses the value of a parameter, such as an operator policy. The parsed value contains the parameter's name in
    /// the `name` field.
    ///
    /// # Errors
    /// A field is missing, or a value has the wrong type.
    pub(super) fn read_value<T: DeserializeOwned>(
        &self,
        file: &str,
        entry: Part<'_>,
        name: &str,
    ) -> Result<T, EntryError> {
        let value = entry.field("value").unwrap_or_default();
        let Some(rest) = value.strip_prefix('{') else {
            return Err(self.error(file, entry, &"its value is not an object"));
        };
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        let named = format!("{{\"name\":{}{comma}{rest}", serde_json::Value::from(name));
        serde_json::from_str(&named).map_err(|error| self.error(file, entry, &without_position(&error)))
    }

    fn error(&self, file: &str, entry: Part<'_>, problem: &dyn std::fmt::Display) -> EntryError {
        let fields = fields(entry.text).unwrap_or_default();
        let name = |field: &&str| fields.get(*field).and_then(|part| serde_json::from_str::<String>(part.text).ok());
        let names: Option<Vec<String>> = self.names.iter().map(name).collect();
        let named = names.map_or_else(String::new, |names| format!(" `{}`", names.join(" → ")));
        let before = file.get(..entry.at).unwrap_or_default();
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        EntryError { object: format!("{}{named}", self.noun), line, problem: problem.to_string() }
    }
}
