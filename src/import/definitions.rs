//! Builds a definitions file from the settings of other tools.

use super::{Imported, LeftOut};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The vhost for objects that do not specify one.
pub(super) const DEFAULT_VHOST: &str = "/";

/// A JSON object.
pub(super) type Fields = Map<String, Value>;

/// An entry in one of the lists in a definitions file, with the key of the list.
pub(super) type Entry = (&'static str, Value);

/// The result of a conversion, or the reason why an object is not converted.
pub(super) type Converted = Result<Vec<Entry>, String>;

/// The lists in a definitions file.
#[derive(Default)]
pub(super) struct Builder {
    lists: BTreeMap<&'static str, Vec<Value>>,
    left_out: Vec<LeftOut>,
}

/// Returns the entry for a runtime parameter.
pub(super) fn parameter(component: &str, vhost: &str, name: &str, value: &Value) -> Entry {
    ("parameters", json!({"component": component, "vhost": vhost, "name": name, "value": value}))
}

/// Returns the entry for a policy or an operator policy.
pub(super) fn policy(is_operator: bool, vhost: &str, name: &str, policy: &Value) -> Entry {
    if is_operator {
        return parameter("operator_policy", vhost, name, policy);
    }
    let mut entry = policy.clone();
    entry["vhost"] = json!(vhost);
    entry["name"] = json!(name);
    ("policies", entry)
}

/// Returns the entry for a vhost's limits; `None` if no limit is set.
pub(super) fn vhost_limits(vhost: &str, limits: [(&str, Option<i64>); 2]) -> Option<Entry> {
    let set = limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), json!(limit?))));
    let set: Fields = set.collect();
    (!set.is_empty()).then(|| parameter("vhost-limits", vhost, "limits", &Value::Object(set)))
}

/// Returns the entry for a permission. A missing pattern becomes an empty pattern.
pub(super) fn permission(user: &str, vhost: &str, patterns: &Value) -> Entry {
    let pattern = |key: &str| patterns.get(key).and_then(Value::as_str).unwrap_or_default();
    let (configure, write, read) = (pattern("configure"), pattern("write"), pattern("read"));
    let permission = json!({"user": user, "vhost": vhost, "configure": configure, "write": write, "read": read});
    ("permissions", permission)
}

/// Returns the entry for a topic permission. A missing pattern becomes an empty pattern.
///
/// # Errors
/// Returns an error if the exchange is missing.
pub(super) fn topic_permission(user: &str, vhost: &str, patterns: &Value) -> Result<Entry, String> {
    let pattern = |key: &str| patterns.get(key).and_then(Value::as_str).unwrap_or_default();
    let exchange = text(patterns, "exchange").ok_or("the topic permission has no exchange")?;
    let (write, read) = (pattern("write"), pattern("read"));
    let permission = json!({"user": user, "vhost": vhost, "exchange": exchange, "write": write, "read": read});
    Ok(("topic_permissions", permission))
}

impl Builder {
    /// Adds the entries for an object. If the object is not converted, adds it to the left-out objects with the reason.
    pub(super) fn add(&mut self, what: &str, converted: Converted) {
        match converted {
            Ok(entries) => {
                entries.into_iter().for_each(|(list, entry)| self.lists.entry(list).or_default().push(entry))
            }
            Err(why) => self.leave_out(what, why),
        }
    }

    /// Adds an object or a setting that is not converted, with the reason.
    pub(super) fn leave_out(&mut self, what: &str, why: impl Into<String>) {
        self.left_out.push(LeftOut { what: what.to_owned(), why: why.into() });
    }

    /// Returns true if no object was added or left out.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.left_out.is_empty()
    }

    /// Returns the definitions file. A queue without a type gets the default queue type of its vhost, if the vhost has
    /// one.
    pub(super) fn finish(mut self) -> Imported {
        let default_types: BTreeMap<String, Value> = self
            .lists
            .get("vhosts")
            .into_iter()
            .flatten()
            .filter_map(|vhost| Some((text(vhost, "name")?.to_owned(), vhost.get("default_queue_type")?.clone())))
            .collect();
        for queue in self.lists.get_mut("queues").into_iter().flatten() {
            let default = text(queue, "vhost").and_then(|vhost| default_types.get(vhost)).cloned();
            if let Some(default) = default.filter(|_| queue["arguments"].get("x-queue-type").is_none()) {
                queue["arguments"]["x-queue-type"] = default;
            }
        }
        let is_empty = self.lists.is_empty();
        let mut definitions = json!({"vhosts": [], "queues": [], "exchanges": [], "bindings": []});
        for (key, entries) in self.lists {
            definitions[key] = entries.into();
        }
        Imported { definitions, is_empty, left_out: self.left_out }
    }
}

/// Returns the string value of a field; `None` if the field is missing, empty or not a string.
pub(super) fn text<'a>(fields: &'a Value, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns the value of a Boolean field, or `default` if the field is missing or null.
///
/// # Errors
/// Returns an error if the field has a different type.
pub(super) fn flag(fields: &Value, name: &str, default: bool) -> Result<bool, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("`{name}` is neither true nor false")),
    }
}

/// Returns the value of a number field, or 0 if the field is missing or null.
///
/// # Errors
/// Returns an error if the field has a different type.
pub(super) fn number(fields: &Value, name: &str) -> Result<Value, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(json!(0)),
        Some(number @ Value::Number(_)) => Ok(number.clone()),
        Some(_) => Err(format!("`{name}` is not a number")),
    }
}

/// Returns the value of a mapping field, or an empty mapping if the field is missing or null.
///
/// # Errors
/// Returns an error if the field has a different type.
pub(super) fn mapping(fields: &Value, name: &str) -> Result<Value, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(json!({})),
        Some(mapping @ Value::Object(_)) => Ok(mapping.clone()),
        Some(_) => Err(format!("`{name}` is not a mapping")),
    }
}

/// Returns the fields in `names`, each under the name that requests use. Omits unset fields: null, false, 0, and empty
/// strings, lists and mappings. The tools do not send such values.
pub(super) fn rename_fields(fields: &Value, names: &[(&str, &str)]) -> Fields {
    let is_set = |value: &&Value| match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
    };
    let set = names.iter().filter_map(|(from, to)| Some(((*to).to_owned(), fields.get(*from).filter(is_set)?.clone())));
    set.collect()
}
