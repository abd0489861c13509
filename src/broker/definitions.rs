//! Reads a definitions file (`rabbitmqctl export_definitions`, `GET /api/definitions`), or nothing, as if it were a live
//! vhost. It says less than a live broker: no counts, no keys of bindings, and from 4.2.9 and 4.3.3 no internal exchanges.

use super::snapshot::{Lists, Snapshot};
use super::survey::Cluster;
use super::wire;
use crate::behaviour::Dialect;
use crate::model::{BrokerVersion, VhostName};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Why a file is not one.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    /// Not JSON, or not of that shape.
    #[error("{0}")]
    Shape(#[from] serde_json::Error),
    /// It is of the whole cluster, or of a vhost, and has no lists at all.
    #[error("it has neither queues nor exchanges nor bindings nor vhosts")]
    Nothing,
    /// It is of a broker that is too old.
    #[error(
        "it is of RabbitMQ {version}; topo supports {} and later (--broker-version says what it shall stand for)",
        BrokerVersion::OLDEST_SUPPORTED.series()
    )]
    TooOld {
        /// Its version.
        version: BrokerVersion,
    },
}

#[derive(Deserialize)]
struct File {
    /// An export of the whole broker has both from 3.8 on, that of one vhost the first alone.
    rabbit_version: Option<String>,
    rabbitmq_version: Option<String>,
    vhosts: Option<Vec<wire::Vhost>>,
    queues: Option<Vec<Value>>,
    exchanges: Option<Vec<Value>>,
    bindings: Option<Vec<Value>>,
    policies: Option<Vec<Value>>,
    /// Operator policies, shovels, limits and whatever plugins keep.
    parameters: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct Parameter {
    component: String,
    name: String,
    value: Value,
}

impl File {
    /// Of any JSON: one without any of the lists is something else. Editors and shells begin a file with a mark.
    fn parse(text: &str) -> Result<Self, DefinitionsError> {
        let file: Self = serde_json::from_str(text.trim_start_matches('\u{feff}'))?;
        let lists = [&file.queues, &file.exchanges, &file.bindings];
        if file.vhosts.is_none() && lists.iter().all(|list| list.is_none()) {
            return Err(DefinitionsError::Nothing);
        }
        Ok(file)
    }
}

/// A broker without anything in it but, from a spec's point of view, a place for the vhost.
pub fn empty(vhost: VhostName, version: BrokerVersion) -> Snapshot {
    Snapshot::missing(vhost, &cluster(version))
}

/// The vhosts of a file, by name; none where it is an export of one vhost, which does not name it.
pub fn vhosts(text: &str) -> Result<Vec<VhostName>, DefinitionsError> {
    let file = File::parse(text)?;
    let lists = [file.queues, file.exchanges, file.bindings, file.policies];
    let of_entry = |entry: Value| entry.get("vhost").and_then(Value::as_str).map(VhostName::from);
    let named = lists.into_iter().flatten().flatten().filter_map(of_entry);
    let listed = file.vhosts.into_iter().flatten().map(|vhost| VhostName::new(vhost.name));
    Ok(listed.chain(named).collect::<BTreeSet<_>>().into_iter().collect())
}

/// One vhost of a file. The version is the given one, else the file's, else the newest that is known. An export of one
/// vhost does not name it: then everything in it is taken for that vhost's.
pub fn read(text: &str, vhost: &VhostName, version: Option<BrokerVersion>) -> Result<Snapshot, DefinitionsError> {
    let file = File::parse(text)?;
    let said = file.rabbit_version.or(file.rabbitmq_version).and_then(|version| version.parse().ok());
    let version = version.or(said).unwrap_or(BrokerVersion::NEWEST_KNOWN);
    if !version.is_supported() {
        return Err(DefinitionsError::TooOld { version });
    }
    let cluster = cluster(version);
    let settings = match file.vhosts {
        Some(vhosts) => match vhosts.into_iter().find(|known| known.name == vhost.as_str()) {
            Some(settings) => Some(settings),
            None => return Ok(Snapshot::missing(vhost.clone(), &cluster)),
        },
        None => None,
    };
    let mut beside = BTreeMap::new();
    let mut queues: Vec<wire::Queue> = of_vhost(file.queues, vhost)?;
    only_first(&mut queues, "repeated queue", |it| &it.name, &mut beside);
    let mut exchanges: Vec<wire::Exchange> = of_vhost(file.exchanges, vhost)?;
    only_first(&mut exchanges, "repeated exchange", |it| &it.name, &mut beside);
    let lists = Lists {
        settings,
        queues,
        exchanges,
        bindings: of_vhost(file.bindings, vhost)?,
        policies: of_vhost(file.policies, vhost)?,
        operator_policies: operator_policies(of_vhost(file.parameters, vhost)?, &mut beside)?,
    };
    Ok(Snapshot { beside, ..Snapshot::of(vhost.clone(), &cluster, lists) })
}

/// Of two by one name, a broker that imports them keeps the first (`rabbit_definitions:add_queue_int`).
fn only_first<T>(
    listed: &mut Vec<T>,
    thing: &str,
    name: impl Fn(&T) -> &String,
    beside: &mut BTreeMap<String, Vec<String>>,
) {
    let mut seen = BTreeSet::new();
    listed.retain(|it| {
        let is_first = seen.insert(name(it).clone());
        if !is_first {
            beside.entry(thing.to_owned()).or_default().push(name(it).clone());
        }
        is_first
    });
}

/// Those among the parameters; of the others only the names are kept.
fn operator_policies(
    parameters: Vec<Parameter>,
    beside: &mut BTreeMap<String, Vec<String>>,
) -> Result<Vec<wire::Policy>, serde_json::Error> {
    let mut policies = Vec::new();
    for Parameter { component, name, mut value } in parameters {
        let (thing, names) = match component.as_str() {
            "operator_policy" => {
                if let Value::Object(fields) = &mut value {
                    fields.insert("name".to_owned(), Value::from(name));
                }
                policies.push(serde_json::from_value(value)?);
                continue;
            }
            "vhost-limits" => {
                let limits = value.as_object().into_iter().flatten();
                ("vhost limit".to_owned(), limits.map(|(limit, number)| format!("{limit} {number}")).collect())
            }
            "shovel" | "federation-upstream" | "federation-upstream-set" => (component.replace('-', " "), vec![name]),
            other => ("parameter".to_owned(), vec![format!("{name} of {other}")]),
        };
        let known: &mut Vec<String> = beside.entry(thing).or_default();
        known.extend(names);
    }
    Ok(policies)
}

fn cluster(version: BrokerVersion) -> Cluster {
    Cluster { name: String::new(), product: "RabbitMQ".to_owned(), dialect: Dialect::of(version) }
}

/// The entries of one vhost; an entry that names none is of an export of that vhost.
fn of_vhost<T: serde::de::DeserializeOwned>(
    entries: Option<Vec<Value>>,
    vhost: &VhostName,
) -> Result<Vec<T>, serde_json::Error> {
    let of_it = |entry: &Value| entry.get("vhost").and_then(Value::as_str).is_none_or(|name| name == vhost.as_str());
    entries
        .unwrap_or_default()
        .into_iter()
        .filter(of_it)
        .map(|mut entry| {
            // Exports leave out what every live list has.
            if let Value::Object(fields) = &mut entry {
                fields.entry("properties_key").or_insert_with(|| Value::from("~"));
                fields.entry("internal").or_insert_with(|| Value::from(false));
            }
            serde_json::from_value(entry)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"rabbit_version":"3.10.8","vhosts":[{"name":"shop"}],
        "queues":[{"name":"q","vhost":"shop","durable":true,"auto_delete":false,"arguments":{}},
                  {"name":"other","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}],
        "exchanges":[{"name":"e","vhost":"shop","type":"topic","durable":true,"auto_delete":false,"internal":false,"arguments":{}}],
        "bindings":[{"source":"e","vhost":"shop","destination":"q","destination_type":"queue","routing_key":"a","arguments":{}}],
        "policies":[]}"#;

    #[test]
    fn one_vhost_is_read() {
        let snapshot = read(FILE, &"shop".into(), None).unwrap();
        assert_eq!(snapshot.dialect.version.to_string(), "3.10.8");
        assert_eq!(snapshot.topology.queues.len(), 1);
        assert_eq!(snapshot.topology.bindings.len(), 1);
        assert!(snapshot.topology.settings.is_some());
    }

    #[test]
    fn a_vhost_that_is_not_in_it_is_missing() {
        assert!(read(FILE, &"elsewhere".into(), None).unwrap().topology.settings.is_none());
        for other in ["{}", r#"{"name":"shop","version":"1.0.0"}"#, r#"{"users":[],"permissions":[]}"#] {
            assert!(matches!(read(other, &"shop".into(), None), Err(DefinitionsError::Nothing)));
            assert!(matches!(vhosts(other), Err(DefinitionsError::Nothing)));
        }
    }

    #[test]
    fn what_stands_among_the_parameters_is_read_or_counted() {
        let parameters = r#""parameters":[
            {"component":"operator_policy","vhost":"shop","name":"cap",
             "value":{"pattern":"^q","apply-to":"queues","priority":1,"definition":{"max-length":5}}},
            {"component":"operator_policy","vhost":"/","name":"other","value":{"pattern":"","definition":{}}},
            {"component":"shovel","vhost":"shop","name":"s","value":{}},
            {"component":"federation-upstream","vhost":"shop","name":"u","value":{}},
            {"component":"vhost-limits","vhost":"shop","name":"limits","value":{"max-queues":5}},
            {"component":"odd","vhost":"shop","name":"o","value":1}],"policies""#;
        let twice = r#""queues":[{"name":"q","vhost":"shop","durable":true,"auto_delete":false,"arguments":{"x-max-length":1}},"#;
        let file = FILE.replace("\"policies\"", parameters).replace("\"queues\":[", twice);
        let snapshot = read(&format!("\u{feff}{file}"), &"shop".into(), None).unwrap();
        let cap = &snapshot.operator_policies[&"cap".into()];
        assert_eq!((cap.pattern.as_str(), snapshot.operator_policies.len()), ("^q", 1));
        assert_eq!(cap.definition["max-length"], 5.into());
        let beside: Vec<_> = snapshot.beside.iter().map(|(thing, names)| format!("{thing}: {names:?}")).collect();
        assert_eq!(
            beside,
            [
                r#"federation upstream: ["u"]"#,
                r#"parameter: ["o of odd"]"#,
                r#"repeated queue: ["q"]"#,
                r#"shovel: ["s"]"#,
                r#"vhost limit: ["max-queues 5"]"#,
            ]
        );
        assert!(snapshot.topology.queues[&"q".into()].arguments.contains_key("x-max-length"));
    }

    #[test]
    fn a_file_of_a_broker_that_is_too_old_is_refused() {
        let old = FILE.replace("3.10.8", "3.7.28");
        assert!(matches!(read(&old, &"shop".into(), None), Err(DefinitionsError::TooOld { .. })));
        assert!(read(&old, &"shop".into(), Some(BrokerVersion::NEWEST_KNOWN)).is_ok());
    }
}
