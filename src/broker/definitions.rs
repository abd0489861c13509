//! Reads a definitions file (`rabbitmqctl export_definitions`, `GET /api/definitions`), or nothing, as if it were a live
//! vhost. It says less than a live broker: no counts, no keys of bindings, and from 4.2.9 and 4.3.3 no internal exchanges.

use super::definitions_entries::{
    self as entries, BINDINGS, EXCHANGES, EntryError, Fields, List, PARAMETERS, POLICIES, Part, QUEUES, VHOSTS,
};
use super::records::of_parameter;
use super::rights::is_of_users;
use super::snapshot::{Lists, Snapshot};
use super::survey::Cluster;
use super::wire;
use crate::model::memory::bounded;
use crate::model::record_kinds::RECORD_KINDS;
use crate::model::{Arguments, BrokerVersion, RecordKind, Records, VhostName};
use crate::rabbitmq::BrokerProfile;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// The lists of permissions of users in vhosts, and what an entry is called.
const PERMISSIONS: [(&str, &str); 2] = [("permissions", "permission"), ("topic_permissions", "topic permission")];

/// Why a file is not one.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    /// Not JSON, or not of that shape.
    #[error("{0}")]
    Shape(#[from] serde_json::Error),
    /// It is of the whole cluster, or of a vhost, and has no lists at all.
    #[error("it contains no queues, exchanges, bindings or vhosts")]
    Nothing,
    /// An object that the broker of that version would not import.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// It is of a broker that is too old.
    #[error(
        "it was written by RabbitMQ {version}; topo supports {} and later (set the version to assume with --broker-version)",
        BrokerVersion::OLDEST_SUPPORTED.series()
    )]
    TooOld {
        /// Its version.
        version: BrokerVersion,
    },
}

/// The lists and versions of a file.
struct File<'a> {
    text: &'a str,
    fields: Fields<'a>,
}

#[derive(Deserialize)]
struct Parameter {
    component: String,
    name: String,
}

impl<'a> File<'a> {
    /// Of any JSON: one without any of the lists is something else. Editors and shells begin a file with a mark.
    fn parse(text: &'a str) -> Result<Self, DefinitionsError> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let file = Self { text, fields: entries::fields(text)? };
        if ["vhosts", "queues", "exchanges", "bindings"].iter().all(|key| file.list(key).is_none()) {
            return Err(DefinitionsError::Nothing);
        }
        Ok(file)
    }

    /// A list, if the file has it.
    fn list(&self, key: &str) -> Option<Part<'a>> {
        self.fields.get(key).copied().filter(|part| part.text.starts_with('['))
    }

    fn entries(&self, key: &str) -> impl Iterator<Item = Part<'a>> {
        self.list(key).into_iter().flat_map(Part::elements)
    }

    /// An export of the whole broker has both from 3.8 on, that of one vhost the first alone.
    fn version(&self) -> Option<BrokerVersion> {
        let named = ["rabbit_version", "rabbitmq_version"].into_iter().find_map(|key| self.fields.get(key));
        serde_json::from_str::<String>(named?.text).ok()?.parse().ok()
    }

    /// The vhosts that it lists with their settings; `None` where it is an export of one vhost.
    fn listed_vhosts(&self, version: BrokerVersion) -> Result<Option<Vec<wire::Vhost>>, EntryError> {
        let Some(list) = self.list(VHOSTS.key) else { return Ok(None) };
        list.elements().map(|entry| VHOSTS.read(self.text, entry, version)).collect::<Result<_, _>>().map(Some)
    }

    /// The vhosts that entries of the lists name.
    fn named_vhosts(&self) -> impl Iterator<Item = String> {
        let lists = [QUEUES, EXCHANGES, BINDINGS, POLICIES, PARAMETERS].map(|list| list.key);
        lists
            .into_iter()
            .chain(PERMISSIONS.map(|(key, _)| key))
            .flat_map(|key| self.entries(key))
            .filter_map(Part::vhost)
    }

    /// The entries of one vhost; an entry that names none is of an export of that vhost.
    fn of_vhost<T: DeserializeOwned>(
        &self,
        list: &List,
        vhost: &VhostName,
        version: BrokerVersion,
    ) -> Result<Vec<T>, EntryError> {
        self.entries_of_vhost(list.key, vhost).map(|entry| list.read(self.text, entry, version)).collect()
    }

    fn entries_of_vhost(&self, key: &str, vhost: &VhostName) -> impl Iterator<Item = Part<'a>> {
        self.entries(key).filter(|entry| entry.vhost().is_none_or(|name| name == vhost.as_str()))
    }
}

/// A broker without anything in it but, from a spec's point of view, a place for the vhost.
pub fn empty(vhost: VhostName, version: BrokerVersion) -> Snapshot {
    Snapshot::missing(vhost, &cluster(version))
}

/// The vhosts of a file, by name; none where it is an export of one vhost, which does not name it.
pub fn vhosts(text: &str) -> Result<Vec<VhostName>, DefinitionsError> {
    let file = File::parse(text)?;
    let version = file.version().unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let listed = file.listed_vhosts(version)?.into_iter().flatten().map(|vhost| vhost.name);
    let names: BTreeSet<String> = listed.chain(file.named_vhosts()).collect();
    Ok(names.into_iter().map(VhostName::new).collect())
}

/// Objects of the whole cluster that no spec declares, by what they are (`user`), with their names.
pub fn cluster_wide(text: &str) -> Result<BTreeMap<String, Vec<String>>, DefinitionsError> {
    let file = File::parse(text)?;
    let kinds = [("users", "user"), ("global_parameters", "global parameter")];
    let named = kinds.map(|(key, thing)| {
        let names = file.entries(key).map(|entry| entry.name("name"));
        (thing.to_owned(), names.filter(|name| key == "users" || is_of_users(name)).collect::<Vec<String>>())
    });
    Ok(named.into_iter().filter(|(_, names)| !names.is_empty()).collect())
}

/// One vhost of a file. The version is the given one, else the file's, else the newest that is known. An export of one
/// vhost does not name it: then everything in it is taken for that vhost's.
///
/// The broker imports objects of a vhost that the file does not list where that vhost exists: here, it has no settings.
pub fn read(text: &str, vhost: &VhostName, version: Option<BrokerVersion>) -> Result<Snapshot, DefinitionsError> {
    bounded(text.len(), || read_unbounded(text, vhost, version))
}

fn read_unbounded(text: &str, vhost: &VhostName, version: Option<BrokerVersion>) -> Result<Snapshot, DefinitionsError> {
    let file = File::parse(text)?;
    let version = version.or(file.version()).unwrap_or(BrokerVersion::NEWEST_KNOWN);
    if !version.is_supported() {
        return Err(DefinitionsError::TooOld { version });
    }
    let cluster = cluster(version);
    let settings = match file.listed_vhosts(version)? {
        Some(vhosts) => match vhosts.into_iter().find(|known| known.name == vhost.as_str()) {
            None if file.named_vhosts().all(|name| name != vhost.as_str()) => {
                return Ok(Snapshot::missing(vhost.clone(), &cluster));
            }
            settings => settings,
        },
        None => None,
    };
    let mut beside = BTreeMap::new();
    let mut queues: Vec<wire::Queue> = file.of_vhost(&QUEUES, vhost, version)?;
    only_first(&mut queues, "repeated queue", |it| &it.name, &mut beside);
    let mut exchanges: Vec<wire::Exchange> = file.of_vhost(&EXCHANGES, vhost, version)?;
    only_first(&mut exchanges, "repeated exchange", |it| &it.name, &mut beside);
    for (key, thing) in PERMISSIONS {
        let users: Vec<String> = file.entries_of_vhost(key, vhost).map(|entry| entry.name("user")).collect();
        if !users.is_empty() {
            beside.insert(thing.to_owned(), users);
        }
    }
    let lists = Lists {
        settings,
        queues,
        exchanges,
        bindings: file.of_vhost(&BINDINGS, vhost, version)?,
        policies: file.of_vhost(&POLICIES, vhost, version)?,
        records: records(&file, vhost, version, &mut beside)?,
    };
    Ok(Snapshot { beside, has_passing: false, ..Snapshot::of(vhost.clone(), &cluster, lists) })
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

/// Splits parameters into records and the names of all others.
fn records(
    file: &File<'_>,
    vhost: &VhostName,
    version: BrokerVersion,
    beside: &mut BTreeMap<String, Vec<String>>,
) -> Result<Records, EntryError> {
    let mut records = Records::new();
    for entry in file.entries_of_vhost(PARAMETERS.key, vhost) {
        let Parameter { component, name } = PARAMETERS.read(file.text, entry, version)?;
        if let Some(row) = RECORD_KINDS.iter().find(|row| row.component == component) {
            if row.kind == RecordKind::OperatorPolicy {
                // Checks its types, with its line.
                let _: wire::Policy = PARAMETERS.read_value(file.text, entry, &name)?;
            }
            let mut value: Arguments = PARAMETERS.read_value(file.text, entry, &name)?;
            value.remove("name");
            records.extend(of_parameter(row, &name, value).into_iter().map(|record| (record.id.clone(), record)));
            continue;
        }
        let (thing, names) = match component.as_str() {
            "shovel" | "federation-upstream" | "federation-upstream-set" => (component.replace('-', " "), vec![name]),
            other => ("parameter".to_owned(), vec![format!("{name} of {other}")]),
        };
        let known: &mut Vec<String> = beside.entry(thing).or_default();
        known.extend(names);
    }
    Ok(records)
}

fn cluster(version: BrokerVersion) -> Cluster {
    Cluster { name: String::new(), product: "RabbitMQ".to_owned(), profile: BrokerProfile::of(version) }
}

#[cfg(test)]
mod tests;
