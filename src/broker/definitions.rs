//! Reads a definitions file (`rabbitmqctl export_definitions`, `GET /api/definitions`), or nothing, as if it were a live
//! vhost. It says less than a live broker: no counts, no keys of bindings, and from 4.2.9 and 4.3.3 no internal exchanges.

use super::snapshot::{Cluster, Lists, Snapshot};
use super::wire;
use crate::behaviour::Dialect;
use crate::model::{BrokerVersion, VhostName};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

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
}

/// A broker without anything in it but, from a spec's point of view, a place for the vhost.
pub fn empty(vhost: VhostName, version: BrokerVersion) -> Snapshot {
    Snapshot::missing(vhost, &cluster(version))
}

/// The vhosts of a file, by name; none where it is an export of one vhost, which does not name it.
pub fn vhosts(text: &str) -> Result<Vec<VhostName>, DefinitionsError> {
    let file: File = serde_json::from_str(text)?;
    let lists = [file.queues, file.exchanges, file.bindings, file.policies];
    let of_entry = |entry: Value| entry.get("vhost").and_then(Value::as_str).map(VhostName::from);
    let named = lists.into_iter().flatten().flatten().filter_map(of_entry);
    let listed = file.vhosts.into_iter().flatten().map(|vhost| VhostName::new(vhost.name));
    Ok(listed.chain(named).collect::<BTreeSet<_>>().into_iter().collect())
}

/// One vhost of a file. The version is the given one, else the file's, else the newest that is known. An export of one
/// vhost does not name it: then everything in it is taken for that vhost's.
pub fn read(text: &str, vhost: &VhostName, version: Option<BrokerVersion>) -> Result<Snapshot, DefinitionsError> {
    let file: File = serde_json::from_str(text)?;
    let said = file.rabbit_version.or(file.rabbitmq_version).and_then(|version| version.parse().ok());
    let version = version.or(said).unwrap_or(BrokerVersion::NEWEST_KNOWN);
    if !version.is_supported() {
        return Err(DefinitionsError::TooOld { version });
    }
    let cluster = cluster(version);
    if file.vhosts.is_none() && file.queues.is_none() && file.exchanges.is_none() && file.bindings.is_none() {
        return Err(DefinitionsError::Nothing);
    }
    let settings = match file.vhosts {
        Some(vhosts) => match vhosts.into_iter().find(|known| known.name == vhost.as_str()) {
            Some(settings) => Some(settings),
            None => return Ok(Snapshot::missing(vhost.clone(), &cluster)),
        },
        None => None,
    };
    let lists = Lists {
        settings,
        queues: of_vhost(file.queues, vhost)?,
        exchanges: of_vhost(file.exchanges, vhost)?,
        bindings: of_vhost(file.bindings, vhost)?,
        policies: of_vhost(file.policies, vhost)?,
        operator_policies: Vec::new(),
    };
    Ok(Snapshot::of(vhost.clone(), &cluster, lists))
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
        assert!(matches!(read("{}", &"shop".into(), None), Err(DefinitionsError::Nothing)));
    }

    #[test]
    fn a_file_of_a_broker_that_is_too_old_is_refused() {
        let old = FILE.replace("3.10.8", "3.7.28");
        assert!(matches!(read(&old, &"shop".into(), None), Err(DefinitionsError::TooOld { .. })));
        assert!(read(&old, &"shop".into(), Some(BrokerVersion::NEWEST_KNOWN)).is_ok());
    }
}
