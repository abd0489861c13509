//! Reads the snapshot of a vhost or a cluster from a definitions file (`rabbitmqctl export_definitions`,
//! `GET /api/definitions`), or builds an empty snapshot.
//!
//! Unlike a broker's responses, a definitions file contains neither message counts nor the properties keys of bindings.
//! As of RabbitMQ 4.2.9 and 4.3.3, definitions files do not contain internal exchanges either.

use super::cluster::ClusterSnapshot;
use super::definitions_entries::{
    self as entries, BINDINGS, EXCHANGES, EntryError, Fields, List, PARAMETERS, PERMISSIONS, POLICIES, Part, QUEUES,
    TOPIC_PERMISSIONS, USERS, VHOSTS,
};
use super::error::BrokerError;
use super::permissions::is_user_parameter;
use super::records::{ReadRecords, from_list, from_owner, from_parameter};
use super::secrets::Secrets;
use super::snapshot::{Cluster, Lists, Snapshot, Survey};
use super::{links, users, wire};
use crate::model::memory::decode;
use crate::model::record_kinds::{Layout, RECORD_KINDS, RecordRow, RecordScope};
use crate::model::{ArgumentValue, Arguments, BrokerVersion, RecordKind, Topology, VhostName};
use crate::plan::RecordFacts;
use crate::rabbitmq::BrokerProfile;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// The reason why a definitions file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    /// The file is not a JSON object.
    #[error("{0}")]
    Shape(#[from] serde_json::Error),
    /// The file contains none of the lists `vhosts`, `queues`, `exchanges` and `bindings`.
    #[error("it contains no queues, exchanges, bindings or vhosts")]
    Nothing,
    /// The file contains an entry that a broker of the assumed version does not import.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The value of a secret cannot be used.
    #[error(transparent)]
    Secret(#[from] Box<BrokerError>),
    /// The version of the file, or the version that the user specified, is not supported.
    #[error(
        "it is for RabbitMQ {version}; topo supports {} and later (use --broker-version to assume a different version)",
        BrokerVersion::OLDEST_SUPPORTED.series()
    )]
    TooOld {
        /// The unsupported version.
        version: BrokerVersion,
    },
}

/// A definitions file, split into its fields.
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
    /// Parses a definitions file. Ignores a byte order mark, which some editors and shells write.
    ///
    /// # Errors
    /// The text is not a JSON object, or contains none of the lists `vhosts`, `queues`, `exchanges` and `bindings`.
    fn parse(text: &'a str) -> Result<Self, DefinitionsError> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let file = Self { text, fields: entries::fields(text)? };
        if ["vhosts", "queues", "exchanges", "bindings"].iter().all(|key| file.list(key).is_none()) {
            return Err(DefinitionsError::Nothing);
        }
        Ok(file)
    }

    /// Returns the list with this key; `None` if the file does not contain the list.
    fn list(&self, key: &str) -> Option<Part<'a>> {
        self.fields.get(key).copied().filter(|part| part.text.starts_with('['))
    }

    fn entries(&self, key: &str) -> impl Iterator<Item = Part<'a>> {
        self.list(key).into_iter().flat_map(Part::elements)
    }

    /// Returns the version of the broker that wrote the file; `None` if the file contains no valid version. On 3.8 and
    /// later, an export of the whole broker contains the fields `rabbit_version` and `rabbitmq_version`. An export of
    /// one vhost contains only `rabbit_version`.
    fn version(&self) -> Option<BrokerVersion> {
        let named = ["rabbit_version", "rabbitmq_version"].into_iter().find_map(|key| self.fields.get(key));
        serde_json::from_str::<String>(named?.text).ok()?.parse().ok()
    }

    /// Returns the listed vhosts with their settings; `None` for an export of one vhost.
    fn listed_vhosts(&self, version: BrokerVersion) -> Result<Option<Vec<wire::Vhost>>, EntryError> {
        let Some(list) = self.list(VHOSTS.key) else { return Ok(None) };
        list.elements().map(|entry| VHOSTS.read(self.text, entry, version)).collect::<Result<_, _>>().map(Some)
    }

    /// Returns the vhosts of the entries in all other lists. A vhost may occur several times.
    fn named_vhosts(&self) -> impl Iterator<Item = String> {
        let lists = [QUEUES, EXCHANGES, BINDINGS, POLICIES, PARAMETERS].map(|list| list.key);
        lists
            .into_iter()
            .chain([PERMISSIONS.key, TOPIC_PERMISSIONS.key])
            .flat_map(|key| self.entries(key))
            .filter_map(Part::vhost)
    }

    /// Parses the entries for a vhost. Includes entries without a vhost, which come from an export of one vhost.
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

/// Returns the snapshot of a missing vhost on an empty broker.
pub fn empty(vhost: VhostName, version: BrokerVersion) -> Snapshot {
    Snapshot::missing(vhost, &cluster(version))
}

/// Returns the vhosts in a file, sorted by name. The result is empty for an export of one vhost, which does not contain
/// the vhost's name.
pub fn vhosts(text: &str) -> Result<Vec<VhostName>, DefinitionsError> {
    let file = File::parse(text)?;
    let version = file.version().unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let listed = file.listed_vhosts(version)?.into_iter().flatten().map(|vhost| vhost.name);
    let names: BTreeSet<String> = listed.chain(file.named_vhosts()).collect();
    Ok(names.into_iter().map(VhostName::new).collect())
}

/// Returns the names of the users and global parameters in a file, by kind, such as `user`. Omits global parameters
/// that the broker itself sets.
pub fn cluster_wide(text: &str) -> Result<BTreeMap<String, Vec<String>>, DefinitionsError> {
    let file = File::parse(text)?;
    let kinds = [("users", "user"), ("global_parameters", "global parameter")];
    let named = kinds.map(|(key, kind)| {
        let names = file.entries(key).map(|entry| entry.name("name"));
        (kind.to_owned(), names.filter(|name| key == "users" || is_user_parameter(name)).collect::<Vec<String>>())
    });
    Ok(named.into_iter().filter(|(_, names)| !names.is_empty()).collect())
}

/// Reads a vhost from a file. If `version` is `None`, assumes the version that the file contains, or the newest known
/// version.
///
/// An export of one vhost does not contain the name of the vhost, so topo reads all objects in the file as objects of
/// `vhost`. A file can also contain objects of a vhost that the file does not list. The broker imports these objects if
/// the vhost exists. The snapshot of an unlisted vhost has default settings.
pub fn read(text: &str, vhost: &VhostName, version: Option<BrokerVersion>) -> Result<Snapshot, DefinitionsError> {
    read_for_plan(text, vhost, version, &Topology::missing(vhost.clone()), &Secrets::new(|_| Ok(None)))
}

/// Reads a vhost like [`read`], and compares the passwords in URIs with those of the desired records.
pub fn read_for_plan(
    text: &str,
    vhost: &VhostName,
    version: Option<BrokerVersion>,
    desired: &Topology,
    secrets: &Secrets,
) -> Result<Snapshot, DefinitionsError> {
    decode(text.len(), || read_unbounded(text, vhost, version, (desired, secrets)))
}

fn read_unbounded(
    text: &str,
    vhost: &VhostName,
    version: Option<BrokerVersion>,
    compared: (&Topology, &Secrets),
) -> Result<Snapshot, DefinitionsError> {
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
    let mut others = BTreeMap::new();
    let ReadRecords { records, not_compared, excluded } = records(&file, vhost, version, compared, &mut others)?;
    let mut queues: Vec<wire::Queue> = file.of_vhost(&QUEUES, vhost, version)?;
    keep_first(&mut queues, "repeated queue", |it| &it.name, &mut others);
    let mut exchanges: Vec<wire::Exchange> = file.of_vhost(&EXCHANGES, vhost, version)?;
    keep_first(&mut exchanges, "repeated exchange", |it| &it.name, &mut others);
    let lists = Lists {
        settings,
        queues,
        exchanges,
        bindings: file.of_vhost(&BINDINGS, vhost, version)?,
        policies: file.of_vhost(&POLICIES, vhost, version)?,
        records,
    };
    let mut record_facts = RecordFacts { not_compared, excluded, ..RecordFacts::default() };
    for row in RecordRow::of_scope(RecordScope::Vhost) {
        let users = row.owners.and_then(|owners| file.list(owners.path));
        let names = users.map(|users| users.elements().map(|entry| entry.name("name")).collect());
        record_facts.owners.extend(names.map(|names| (row.kind, Some(names))));
    }
    Ok(Snapshot {
        record_facts,
        unsupported_objects: others,
        includes_transient_queues: false,
        ..Snapshot::of(vhost.clone(), &cluster, lists)
    })
}

/// Returns true if definitions files from this version do not contain internal exchanges.
pub fn lack_internal_exchanges(version: BrokerVersion) -> bool {
    version >= if version.is_at_least(4, 3) { BrokerVersion::new(4, 3, 3) } else { BrokerVersion::new(4, 2, 9) }
}

/// Returns the cluster snapshot of an empty broker, without the owners of cluster records.
pub fn empty_cluster(version: BrokerVersion) -> ClusterSnapshot {
    let survey = Survey { cluster: cluster(version), settings: BTreeMap::new() };
    survey.cluster()
}

/// Reads the cluster records from a file, and compares passwords with those of the desired users. An export of one
/// vhost contains no cluster records.
pub fn read_cluster(
    text: &str,
    version: Option<BrokerVersion>,
    desired: &Topology,
    secrets: &Secrets,
) -> Result<ClusterSnapshot, DefinitionsError> {
    let file = File::parse(text)?;
    let version = version.or(file.version()).unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let mut cluster = empty_cluster(version);
    let listed = file.entries(USERS.key).map(|entry| USERS.read(text, entry, version));
    let users = users::records(listed.collect::<Result<_, _>>()?, desired, secrets).map_err(Box::new)?;
    cluster.snapshot.topology.records.extend(users.records);
    cluster.snapshot.record_facts.not_compared = users.not_compared;
    for row in RecordRow::of_scope(RecordScope::Cluster) {
        for entry in file.entries(row.definitions_key) {
            let value = entry.field("value").and_then(|text| serde_json::from_str::<ArgumentValue>(text).ok());
            let name = ArgumentValue::Text(entry.name("name"));
            let fields = [("name", Some(name)), ("value", value)].into_iter();
            let fields = fields.filter_map(|(field, value)| Some((field.to_owned(), value?))).collect();
            cluster.snapshot.topology.records.extend(from_list(row.kind, vec![fields]));
        }
        let Some((owners, list)) = row.owners.and_then(|owners| Some((owners, file.list(owners.path)?))) else {
            continue;
        };
        let mut names = BTreeSet::new();
        for entry in list.elements() {
            let name = entry.name("name");
            let settings = entry.field(owners.field).and_then(|text| serde_json::from_str::<ArgumentValue>(text).ok());
            let records = settings.into_iter().flat_map(|settings| from_owner(row, &name, settings));
            cluster.snapshot.topology.records.extend(records.map(|record| (record.id.clone(), record)));
            names.insert(name);
        }
        cluster.snapshot.record_facts.owners.insert(row.kind, Some(names));
    }
    Ok(cluster)
}

/// Keeps only the first object with each name, as an import does (`rabbit_definitions:add_queue_int`). Adds the names
/// of removed objects to `others`.
fn keep_first<T>(
    listed: &mut Vec<T>,
    kind: &str,
    name: impl Fn(&T) -> &String,
    others: &mut BTreeMap<String, Vec<String>>,
) {
    let mut seen = BTreeSet::new();
    listed.retain(|it| {
        let is_first = seen.insert(name(it).clone());
        if !is_first {
            others.entry(kind.to_owned()).or_default().push(name(it).clone());
        }
        is_first
    });
}

/// Converts the permissions, the topic permissions, the runtime parameters and the deletion protection of a vhost. Adds
/// the names of parameters that are not records to `others`.
fn records(
    file: &File<'_>,
    vhost: &VhostName,
    version: BrokerVersion,
    compared: (&Topology, &Secrets),
    others: &mut BTreeMap<String, Vec<String>>,
) -> Result<ReadRecords, DefinitionsError> {
    let mut read = ReadRecords::default();
    for entry in file.entries_of_vhost(PARAMETERS.key, vhost) {
        let Parameter { component, name } = PARAMETERS.read(file.text, entry, version)?;
        let row = RECORD_KINDS.iter().find(|row| !row.component.is_empty() && row.component == component);
        let row = row.unwrap_or(RecordKind::Parameter.row());
        let value = || entry.field("value").and_then(|text| serde_json::from_str::<ArgumentValue>(text).ok());
        match row.layout {
            Layout::Value(_) => {
                let texts = [("component", component), ("name", name)].map(|(key, text)| (key, text.into()));
                let fields = texts.into_iter().chain(value().map(|value| ("value", value)));
                let fields = fields.map(|(key, value)| (key.to_owned(), value)).collect();
                read.records.extend(from_list(row.kind, vec![fields]));
            }
            Layout::Fields(_) if row.has_uris() => {
                let is_record = match value() {
                    Some(ArgumentValue::Table(fields)) => {
                        links::add(&mut read, row, &name, fields, compared).map_err(Box::new)?
                    }
                    Some(
                        ArgumentValue::Null
                        | ArgumentValue::Boolean(_)
                        | ArgumentValue::Integer(_)
                        | ArgumentValue::Float(_)
                        | ArgumentValue::Text(_)
                        | ArgumentValue::List(_),
                    )
                    | None => false,
                };
                if !is_record {
                    others.entry(row.word.to_owned()).or_default().push(name);
                }
            }
            // After the last limit is deleted, RabbitMQ 3.8 and 3.10 list the limits as `[]`.
            Layout::Settings(_) if matches!(value(), Some(ArgumentValue::List(limits)) if limits.is_empty()) => {}
            Layout::Fields(_) | Layout::Settings(_) => {
                if row.kind == RecordKind::OperatorPolicy {
                    // Checks the types of the values, so that an error contains the line.
                    let _: wire::Policy = PARAMETERS.read_value(file.text, entry, &name)?;
                }
                let mut value: Arguments = PARAMETERS.read_value(file.text, entry, &name)?;
                value.remove("name");
                let records = from_parameter(row, &name, value).into_iter();
                read.records.extend(records.map(|record| (record.id.clone(), record)));
            }
        }
    }
    for entry in file.entries(VHOSTS.key).filter(|entry| entry.name("name") == vhost.as_str()) {
        let metadata = entry.field("metadata").and_then(|text| serde_json::from_str::<Arguments>(text).ok());
        read.records.extend(from_list(RecordKind::DeletionProtection, metadata.into_iter().collect()));
    }
    for (kind, list) in [(RecordKind::Permission, &PERMISSIONS), (RecordKind::TopicPermission, &TOPIC_PERMISSIONS)] {
        read.records.extend(from_list(kind, file.of_vhost(list, vhost, version)?));
    }
    Ok(read)
}

fn cluster(version: BrokerVersion) -> Cluster {
    Cluster { name: String::new(), product: "RabbitMQ".to_owned(), profile: BrokerProfile::of(version) }
}

#[cfg(test)]
mod tests;
