//! `--backup`: what is live of all that a plan takes away, in a file, before anything is taken away.

use super::arguments::ApplyArguments;
use super::connection::environment;
use super::failure::Failure;
use super::{output, shell};
use crate::broker::Broker;
use crate::model::{Topology, VhostName};
use crate::plan::{Plan, VhostPlan};
use crate::render::definitions;
use std::path::PathBuf;
use std::time::SystemTime;

/// Writes the backup, if there is anything to write; nothing may be changed when that fails.
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
    let not_written = |error: &dyn std::fmt::Display| {
        Failure::failed(format!("the backup could not be written to {}; nothing was changed", path.display()))
            .because(error.to_string())
            .hint("write it elsewhere: --backup FILE")
            .hint("or go without: --no-backup")
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| not_written(&error))?;
    }
    let text = definitions::definitions(&touched, &plan.target.version);
    // Never over an older one: after a run that was killed, that is the one from before.
    output::write_new_file(&path, &text).map_err(|error| not_written(&error))?;
    if !is_quiet {
        let path = shell::path(&path);
        output::tell(&format!(
            "backup of what is deleted, changed or recreated (not of messages): {path}\n\
             to make it again where it is gone: rabbitmqadmin definitions import --file {path}\n"
        ));
    }
    Ok(())
}

/// Where programs keep what they remember (the XDG base directories), or else here.
fn folder() -> PathBuf {
    let state = environment("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || environment("HOME").map(|home| PathBuf::from(home).join(".local").join("state"));
    state.or_else(home).map_or_else(PathBuf::new, |state| state.join("topo").join("backups"))
}

/// `shop-2026-11-21T20-15-00.123Z`: which vhost, and when. No colon, which some file systems do not take.
fn name(vhosts: &[VhostName]) -> String {
    let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string().replace(':', "-");
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let first: String = vhosts.first().map_or("", |vhost| vhost.as_str()).chars().take(60).map(plain).collect();
    format!("{first}-{now}")
}
