//! Builds a definitions file from the settings of other tools.

use super::{Imported, LeftOut};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The vhost of an object that does not name one.
pub(super) const DEFAULT_VHOST: &str = "/";

/// A JSON object.
pub(super) type Fields = Map<String, Value>;

/// The lists of a definitions file.
#[derive(Default)]
pub(super) struct Builder {
    lists: BTreeMap<&'static str, Vec<Value>>,
    left_out: Vec<LeftOut>,
}

/// An entry of a list in a definitions file, with the key of the list.
pub(super) type Entry = (&'static str, Value);

/// Returns the entry of a runtime parameter.
pub(super) fn parameter(component: &str, vhost: &str, name: &str, value: &Value) -> Entry {
    ("parameters", json!({"component": component, "vhost": vhost, "name": name, "value": value}))
}

/// Returns the entry of a policy or an operator policy.
pub(super) fn policy(is_operator: bool, vhost: &str, name: &str, policy: &Value) -> Entry {
    if is_operator {
        return parameter("operator_policy", vhost, name, policy);
    }
    let mut entry = policy.clone();
    entry["vhost"] = json!(vhost);
    entry["name"] = json!(name);
    ("policies", entry)
}

/// Returns the entry of the limits of a vhost, if there are any.
pub(super) fn vhost_limits(vhost: &str, limits: [(&str, Option<i64>); 2]) -> Option<Entry> {
    let set = limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), json!(limit?))));
    let set: Fields = set.collect();
    (!set.is_empty()).then(|| parameter("vhost-limits", vhost, "limits", &Value::Object(set)))
}

impl Builder {
    /// Adds an entry to a list.
    pub(super) fn add(&mut self, list: &'static str, entry: Value) {
        self.lists.entry(list).or_default().push(entry);
    }

    /// Adds entries to their lists.
    pub(super) fn extend(&mut self, entries: impl IntoIterator<Item = Entry>) {
        entries.into_iter().for_each(|(list, entry)| self.add(list, entry));
    }

    /// Adds an object or a setting that is not converted.
    pub(super) fn leave_out(&mut self, what: &str, why: impl Into<String>) {
        self.left_out.push(LeftOut { what: what.to_owned(), why: why.into() });
    }

    /// Returns true if no object was added or left out.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.left_out.is_empty()
    }

    /// Returns the definitions file.
    pub(super) fn finish(self) -> Imported {
        let mut definitions = json!({"vhosts": [], "queues": [], "exchanges": [], "bindings": []});
        for (key, entries) in self.lists {
            definitions[key] = entries.into();
        }
        Imported { definitions, left_out: self.left_out }
    }
}

/// Returns the string value of a field; `None` if the field is missing, empty or of another type.
pub(super) fn text<'a>(fields: &'a Value, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns the fields with their names in requests. Omits fields that are not set: null, false, 0, and empty strings,
/// lists and mappings. The tools do not send such values.
pub(super) fn renamed(fields: &Value, names: &[(&str, &str)]) -> Fields {
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
