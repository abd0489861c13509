//! Reads the records of a vhost or the cluster, and the names of the objects that own records, such as users.

use super::connection::Broker;
use super::error::BrokerError;
use super::links;
use super::permissions::{Named, is_hidden};
use super::records::{self, ReadRecords};
use super::snapshot::Snapshot;
use crate::model::record_kinds::{ListPath, RecordScope};
use crate::model::{ArgumentValue, Arguments, RecordId, RecordKind, Records, Scope, Topology, VhostName};
use crate::plan::needs_plugins;
use crate::plan::request::path;
use std::collections::{BTreeMap, BTreeSet};

impl Broker {
    /// Adds the records of the given kinds to a snapshot of a vhost or the cluster, with one request per kind. Skips
    /// kinds in the other scope, kinds that the broker's version does not support, and operator policies, which every
    /// snapshot of a vhost already contains. Kinds that the user cannot read are added to
    /// [`RecordFacts::unreadable`](crate::plan::RecordFacts::unreadable).
    pub async fn read_records(&self, snapshot: &mut Snapshot, kinds: &BTreeSet<RecordKind>) -> Result<(), BrokerError> {
        let nothing = Topology::of_cluster(Records::new());
        self.read_records_of(snapshot, kinds, &nothing).await
    }

    /// Adds records as [`read_records`](Self::read_records) does. Also compares passwords, including passwords in URIs,
    /// with those of the desired records.
    async fn read_records_of(
        &self,
        snapshot: &mut Snapshot,
        kinds: &BTreeSet<RecordKind>,
        desired: &Topology,
    ) -> Result<(), BrokerError> {
        let vhost = snapshot.topology.vhost.clone();
        let scope = if vhost.is_cluster() { RecordScope::Cluster } else { RecordScope::Vhost };
        let version = snapshot.profile.version;
        for kind in kinds.iter().filter(|kind| **kind != RecordKind::OperatorPolicy) {
            let row = kind.row();
            if row.scope != scope || row.since.is_some_and(|since| version < since) {
                continue;
            }
            if *kind == RecordKind::User {
                self.read_users(snapshot, desired).await?;
                continue;
            }
            match self.records_with_secrets(*kind, &vhost, desired).await {
                Ok(read) => {
                    snapshot.topology.records.extend(read.records);
                    snapshot.record_facts.not_compared.extend(read.not_compared);
                    snapshot.record_facts.excluded.extend(read.excluded);
                }
                // The vhost does not exist yet.
                Err(BrokerError::NotFound { .. }) if scope == RecordScope::Vhost => {}
                Err(error) if is_hidden(&error) => drop(snapshot.record_facts.unreadable.insert(*kind)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adds to a snapshot the records that a plan compares. Also adds other facts that the plan requires: the enabled
    /// plugins, the name of the connected user, and the names of the objects that can own new records.
    pub async fn read_records_for_plan(
        &self,
        snapshot: &mut Snapshot,
        desired: &Topology,
        scope: &Scope,
    ) -> Result<(), BrokerError> {
        let kinds = scope.record_kinds();
        self.read_records_of(snapshot, &kinds, desired).await?;
        let version = snapshot.profile.version;
        if kinds.iter().any(|kind| needs_plugins(kind.row(), desired, &snapshot.topology)) {
            snapshot.record_facts.plugins = self.enabled_plugins().await?;
        }
        if kinds.iter().any(|kind| *kind == RecordKind::User || kind.row().is_named_after_users()) {
            // The broker's own permissions do not apply to a user from another backend, such as LDAP.
            let user = self.read_user().await?.filter(|user| user.is_internal != Some(false));
            snapshot.record_facts.user = user.map(|user| user.name);
        }
        // Several kinds can have the same owners.
        let mut read: BTreeMap<&str, Option<BTreeSet<String>>> = BTreeMap::new();
        for kind in kinds {
            let row = kind.row();
            let existing: BTreeSet<&str> = of_kind(snapshot.topology.records.keys(), kind).collect();
            let is_declared = |name: &str| {
                let user = RecordId::named(RecordKind::User, name);
                scope.users.declared.contains(name) || desired.records.contains_key(&user)
            };
            let has_new =
                of_kind(desired.records.keys(), kind).any(|name| !existing.contains(name) && !is_declared(name));
            let is_readable = !snapshot.record_facts.unreadable.contains(&kind);
            let Some(owners) = row.owners.filter(|_| has_new && is_readable) else { continue };
            if row.since.is_some_and(|since| version < since) {
                continue;
            }
            let names = match read.get(owners.path) {
                Some(names) => Option::clone(names),
                None => self.names(owners.path).await?,
            };
            read.insert(owners.path, names.clone());
            snapshot.record_facts.owners.insert(kind, names);
        }
        Ok(())
    }

    /// Returns the names of the objects in a list; `None` if the connected user cannot read the list.
    async fn names(&self, list: &str) -> Result<Option<BTreeSet<String>>, BrokerError> {
        match self.get::<Vec<Named>>(path(list, &[]) + "?columns=name").await {
            Ok(named) => Ok(Some(named.into_iter().map(|it| it.name).collect())),
            Err(error) if is_hidden(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the records of a kind in a vhost or the cluster. Sends one request.
    pub async fn records(&self, kind: RecordKind, vhost: &VhostName) -> Result<Records, BrokerError> {
        let nothing = Topology::of_cluster(Records::new());
        Ok(self.records_with_secrets(kind, vhost, &nothing).await?.records)
    }

    /// Returns the records of a kind, and compares the passwords in their URIs with those of the desired records.
    async fn records_with_secrets(
        &self,
        kind: RecordKind,
        vhost: &VhostName,
        desired: &Topology,
    ) -> Result<ReadRecords, BrokerError> {
        let row = kind.row();
        let list = match (row.list, row.scope) {
            (ListPath::OfKind, RecordScope::Cluster) | (ListPath::OfAllVhosts, _) => path(row.path, &[]),
            (ListPath::OfKind, RecordScope::Vhost) => path(row.path, &[vhost.as_str()]),
            (ListPath::OfVhost, _) => path("vhosts", &[vhost.as_str(), row.path]),
            (ListPath::Vhost, _) => path("vhosts", &[vhost.as_str()]) + "?columns=" + VHOST_COLUMNS,
        };
        let mut entries: Vec<Arguments> = match row.list {
            ListPath::Vhost => vec![self.get(list).await?],
            ListPath::OfKind | ListPath::OfVhost | ListPath::OfAllVhosts => self.get(list).await?,
        };
        if row.list == ListPath::OfAllVhosts {
            let is_in_vhost =
                |entry: &Arguments| entry.get("vhost").and_then(ArgumentValue::as_text) == Some(vhost.as_str());
            entries.retain(is_in_vhost);
        }
        match row.has_uris() {
            true => links::records(row, entries, desired, self.secrets()),
            false => Ok(ReadRecords { records: records::from_list(kind, entries), ..ReadRecords::default() }),
        }
    }

    /// Returns the operator policies; an empty map if the broker does not list them for the connected user. RabbitMQ
    /// lets every management user read them. A plan without operator policies is valid, but less precise.
    pub(super) async fn list_operator_policies(&self, vhost: &VhostName) -> Result<Records, BrokerError> {
        match self.records(RecordKind::OperatorPolicy, vhost).await {
            Err(BrokerError::WrongTag { .. } | BrokerError::AccessRefused { .. } | BrokerError::NotFound { .. }) => {
                Ok(Records::new())
            }
            other => other,
        }
    }
}

/// The columns of a vhost that contain records.
const VHOST_COLUMNS: &str = "name,protected_from_deletion";

/// Returns the names of the records of a kind.
fn of_kind<'a>(ids: impl Iterator<Item = &'a RecordId>, kind: RecordKind) -> impl Iterator<Item = &'a str> {
    ids.filter(move |id| id.kind == kind).filter_map(RecordId::name)
}
