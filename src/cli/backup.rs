//! `--backup`: writes the objects that a plan deletes, changes or recreates to a file, before any change.

use super::arguments::ApplyArguments;
use super::connection::environment;
use super::failure::Failure;
use super::{output, shell};
use crate::broker::{Broker, Snapshot};
use crate::model::{BrokerVersion, TopicPermission, Topology, VhostName};
use crate::plan::{Plan, TopicPermissions, VhostPlan, deletes_exchanges};
use crate::render::definitions;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// From this version on, one file restores exchanges together with their topic permissions.
const ONE_FILE_FOR_ALL: BrokerVersion = BrokerVersion::new(4, 3, 0);

/// Writes the backup, if there is anything to write. If that fails, nothing may be changed.
pub(super) async fn write(
    arguments: &ApplyArguments,
    is_quiet: bool,
    broker: &Broker,
    plan: &Plan,
) -> Result<(), Failure> {
    let parts: Vec<&VhostPlan> = plan.vhosts.iter().filter(|part| part.is_destructive()).collect();
    if arguments.no_backup || parts.is_empty() {
        return Ok(());
    }
    let vhosts: Vec<VhostName> = parts.iter().map(|part| part.vhost.clone()).collect();
    let snapshots = broker.read(&vhosts).await?;
    let touched: Vec<Topology> =
        parts.iter().zip(&snapshots).map(|(part, snapshot)| part.touched(&snapshot.topology)).collect();
    let path = match &arguments.backup {
        Some(path) => path.clone(),
        None => folder().join(format!("{}.json", name(&vhosts))),
    };
    let not_written = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::failed(format!("the backup could not be written to {}; nothing was changed", path.display()))
            .because(error.to_string())
            .hint("write it elsewhere: --backup FILE")
            .hint("or apply without a backup: --no-backup")
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| not_written(&path, &error))?;
    }
    let restrictions = restrictions(broker, &parts, &snapshots).await?;
    let version = &plan.target.version;
    // Exchanges must be imported first, so they get a separate file.
    let is_split = !restrictions.is_empty() && snapshots.iter().any(|it| it.profile.version < ONE_FILE_FOR_ALL);
    let mut files = match is_split {
        false => vec![(path, definitions::definitions(&touched, &restrictions, version))],
        true => {
            let second = path.with_extension("topic-permissions.json");
            let text = definitions::definitions(&touched, &[], version);
            vec![(path, text), (second, definitions::restrictions(&restrictions, version))]
        }
    };
    // An older backup is never replaced: after a killed run, it contains the original state.
    for (at, (path, text)) in files.iter().enumerate() {
        output::write_new_file(path, text).map_err(|error| {
            for (written, _) in &files[..at] {
                let _ = std::fs::remove_file(written);
            }
            not_written(path, &error)
        })?;
    }
    if !is_quiet {
        let paths: Vec<_> = files.drain(..).map(|(path, _)| shell::path(&path)).collect();
        let imports: Vec<_> =
            paths.iter().map(|path| format!("rabbitmqadmin definitions import --file {path}")).collect();
        output::tell(&format!(
            "backup of all objects that are deleted, changed or recreated (without messages): {}\n\
             to restore missing objects: {}\n",
            paths.join(" and "),
            imports.join(", then ")
        ));
    }
    Ok(())
}

/// The topic permissions on deleted exchanges, if the broker deletes them and this user may read them.
async fn restrictions(
    broker: &Broker,
    parts: &[&VhostPlan],
    snapshots: &[Snapshot],
) -> Result<Vec<(VhostName, TopicPermission)>, Failure> {
    let mut restrictions = Vec::new();
    for (part, Snapshot { topology, profile, .. }) in parts.iter().zip(snapshots) {
        if !deletes_exchanges(part, topology) {
            continue;
        }
        if let TopicPermissions::Known(all) = broker.topic_permissions(&part.vhost, profile.version).await? {
            let touched = part.touched(topology).exchanges;
            let goes = all.into_iter().filter(|permission| touched.contains_key(&permission.exchange));
            restrictions.extend(goes.map(|permission| (part.vhost.clone(), permission)));
        }
    }
    Ok(restrictions)
}

/// The folder of backups, by the XDG base directory specification, or else the working directory.
fn folder() -> PathBuf {
    let state = environment("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || environment("HOME").map(|home| PathBuf::from(home).join(".local").join("state"));
    state.or_else(home).map_or_else(PathBuf::new, |state| state.join("topo").join("backups"))
}

/// `shop-2026-11-21T20-15-00.123Z`: vhost and time, without colons, which some file systems do not accept.
fn name(vhosts: &[VhostName]) -> String {
    let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string().replace(':', "-");
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let first: String = vhosts.first().map_or("", |vhost| vhost.as_str()).chars().take(60).map(plain).collect();
    format!("{first}-{now}")
}
