//! Reads the topology that `topo export` and `topo import` write as specs, from a broker or from a definitions file.

use super::arguments::Global;
use super::export_arguments::ExportArguments;
use super::failure::{Failure, no_such_vhost};
use super::progress::Progress;
use super::{connection, files, output};
use crate::broker::definitions::DefinitionsError;
use crate::broker::{ClusterSnapshot, NamesByKind, Secrets, Snapshot, definitions};
use crate::model::record_kinds::{RecordRow, RecordScope};
use crate::model::{BrokerVersion, Intervals, RecordKind, Records, Topology, VhostName};
use crate::render::shell::quote;
use crate::render::style::{Painted, YELLOW, clean};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::BTreeSet;
use std::path::Path;
use tokio::join;

/// The maximum number of vhosts whose permissions are read concurrently.
const CONCURRENT_VHOSTS: usize = 4;

/// The vhosts and the cluster to export, and the names of further objects, which the summary lists if they are not
/// exported.
pub(super) struct Source {
    pub(super) snapshots: Vec<Snapshot>,
    /// The records of the cluster, if they are exported.
    pub(super) cluster: Option<ClusterSnapshot>,
    /// The names of the cluster-wide objects.
    pub(super) cluster_wide: NamesByKind,
    /// The names of the permissions in each vhost, in the order of the snapshots. Empty if permissions are not counted.
    /// Also empty for a definitions file, whose snapshots contain the permissions.
    pub(super) permissions: Vec<NamesByKind>,
    /// True if users and permissions are not counted, because the user is not allowed to read them.
    pub(super) is_uncounted: bool,
}

/// Reads the vhosts and the cluster from the broker.
pub(super) async fn read_broker(
    arguments: &ExportArguments,
    with: &BTreeSet<RecordKind>,
    global: &Global,
) -> Result<Source, Failure> {
    let access = connection::connect(&arguments.connection, Intervals::default())?;
    let broker = &access.broker;
    let progress = Progress::new(global);
    let reading = progress.start_spinner(format!("reading {}", broker.shown_url()));
    let vhosts = match &arguments.vhost[..] {
        [] => {
            let visible = broker.vhosts().await?;
            if visible.is_empty() {
                return Err(no_vhosts(broker.username()));
            }
            let (vhosts, others): (Vec<_>, Vec<_>) = visible.into_iter().partition(can_be_read);
            for vhost in others.iter().filter(|_| !global.quiet) {
                output::eprint(&format!(
                    "{} vhost `{vhost}` cannot be exported: the management API cannot address it\n",
                    Painted(YELLOW, "info:")
                ));
            }
            vhosts
        }
        named => named.iter().map(VhostName::new).collect(),
    };
    let kinds = cluster_kinds(arguments);
    let (survey, listed) = join!(broker.survey(), broker.lists(&vhosts));
    let survey = survey?;
    let cluster = if kinds.is_empty() { None } else { Some(broker.read_cluster(&survey, &kinds).await?) };
    let mut snapshots = listed.snapshots(survey)?;
    for snapshot in &mut snapshots {
        broker.read_records(snapshot, with).await?;
    }
    if snapshots.iter().any(is_missing) {
        check_vhosts_exist(&snapshots, &broker.vhosts().await?)?;
    }
    let mut source =
        Source { snapshots, cluster, cluster_wide: NamesByKind::new(), permissions: Vec::new(), is_uncounted: false };
    let is_administrator = broker.user().await.is_some_and(|user| user.is_administrator());
    // With `--match` or `--quiet`, topo does not count users, global parameters or permissions.
    let should_count = arguments.patterns.is_empty() && !global.quiet;
    source.is_uncounted = should_count && !is_administrator;
    if should_count && is_administrator {
        if arguments.vhost.is_empty() {
            source.cluster_wide = broker.cluster_wide().await?;
        }
        let permissions = stream::iter(&vhosts).map(|vhost| broker.permissions_in(vhost));
        source.permissions = permissions.buffered(CONCURRENT_VHOSTS).try_collect().await?;
    }
    drop(reading);
    Ok(source)
}

/// Returns the cluster kinds to export. With `--vhost`, `--with all` does not include cluster kinds.
fn cluster_kinds(arguments: &ExportArguments) -> BTreeSet<RecordKind> {
    let with = arguments.with.iter().filter(|with| arguments.vhost.is_empty() || !with.is_all);
    let kinds = with.flat_map(|with| with.kinds.iter().copied());
    kinds.filter(|kind| kind.row().scope == RecordScope::Cluster).collect()
}

fn no_vhosts(username: &str) -> Failure {
    Failure::failed(format!("user `{}` has no access to any vhost", clean(username))).hint(format!(
        "grant the user permissions in a vhost (permissions that match nothing are sufficient): rabbitmqctl \
         set_permissions -p VHOST {} '^$' '^$' '^$'",
        quote(username)
    ))
}

/// Returns true if the management API can address the vhost: its name must be usable as a segment of a request path.
fn can_be_read(vhost: &VhostName) -> bool {
    !matches!(vhost.as_str(), "." | "..")
}

fn is_missing(snapshot: &Snapshot) -> bool {
    snapshot.topology.settings.is_none()
}

/// Refuses a vhost that does not exist. `known` contains the existing vhosts.
fn check_vhosts_exist(snapshots: &[Snapshot], known: &[VhostName]) -> Result<(), Failure> {
    let Some(missing) = snapshots.iter().find(|it| is_missing(it)) else { return Ok(()) };
    Err(no_such_vhost(&missing.topology.vhost, known))
}

/// Reads the vhosts in a definitions file, and its cluster-wide objects.
pub(super) fn read_file(path: &Path, arguments: &ExportArguments) -> Result<Source, Failure> {
    let text = files::definitions_text(path)?;
    let unusable = |error| files::definitions_failure(path, &text, &error);
    let known = definitions::vhosts(&text).map_err(unusable)?;
    let vhosts = match &arguments.vhost[..] {
        [] => known.clone(),
        named => named.iter().map(VhostName::new).collect(),
    };
    if vhosts.is_empty() {
        return Err(
            Failure::usage(format!("{} does not specify a vhost", path.display())).hint("specify it: --vhost NAME")
        );
    }
    let snapshots = read_vhosts(&text, &vhosts, arguments.broker_version).map_err(unusable)?;
    check_vhosts_exist(&snapshots, &known)?;
    let kinds = cluster_kinds(arguments);
    Source::of_file(&text, snapshots, &kinds, arguments.broker_version).map_err(unusable)
}

fn read_vhosts(
    text: &str,
    vhosts: &[VhostName],
    version: Option<BrokerVersion>,
) -> Result<Vec<Snapshot>, DefinitionsError> {
    vhosts.iter().map(|vhost| definitions::read(text, vhost, version)).collect()
}

impl Source {
    /// Reads all vhosts and the cluster from the text of a definitions file.
    pub(super) fn of_definitions(text: &str, version: Option<BrokerVersion>) -> Result<Self, DefinitionsError> {
        let snapshots = read_vhosts(text, &definitions::vhosts(text)?, version)?;
        let kinds = RecordRow::of_scope(RecordScope::Cluster).map(|row| row.kind).collect();
        Self::of_file(text, snapshots, &kinds, version)
    }

    /// Builds a source from `snapshots` and the cluster in a definitions file. Keeps only cluster records of the kinds
    /// in `kinds`.
    fn of_file(
        text: &str,
        snapshots: Vec<Snapshot>,
        kinds: &BTreeSet<RecordKind>,
        version: Option<BrokerVersion>,
    ) -> Result<Self, DefinitionsError> {
        let cluster_wide = definitions::cluster_wide(text)?;
        let cluster = if kinds.is_empty() {
            None
        } else {
            let desired = Topology::of_cluster(Records::new());
            let secrets = Secrets::new(|_| Ok(None));
            let mut read = definitions::read_cluster(text, version, &desired, &secrets)?;
            read.snapshot.topology.records.retain(|id, _| kinds.contains(&id.kind));
            Some(read)
        };
        Ok(Self { snapshots, cluster, cluster_wide, permissions: Vec::new(), is_uncounted: false })
    }
}
