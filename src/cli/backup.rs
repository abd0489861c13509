//! `--backup`: backs up the objects that a plan deletes, changes or recreates, before anything is changed.

use super::connection::environment;
use super::plan_arguments::ApplyArguments;
use super::{files, output};
use crate::apply::{Backup, BackupError};
use crate::model::{ArgumentValue, VhostName};
use crate::render::definitions;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Writes the backup to one file, or to two files if the exchanges must be imported before the topic permissions.
/// Unless `is_quiet` is true, prints the commands that import the files.
pub(super) fn write(arguments: &ApplyArguments, is_quiet: bool, backup: &Backup) -> Result<(), BackupError> {
    let Backup { objects, secret, topic_permissions, version, is_split, left_out } = backup;
    let others = secret.lists();
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        output::eprint(&format!(
            "warning: the backup does not contain these objects, because one of their arguments has {}: {}\n",
            ArgumentValue::too_large(),
            names.join(", ")
        ));
    }
    let path = match &arguments.backup {
        Some(path) => path.clone(),
        None => folder().join(format!("{}.json", name(objects.first().map(|topology| &topology.vhost)))),
    };
    let not_written = |path: &Path, error: &dyn std::fmt::Display| BackupError {
        file: path.display().to_string(),
        reason: error.to_string(),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| not_written(&path, &error))?;
    }
    let mut files = match is_split {
        false => vec![(path, definitions::definitions(objects, topic_permissions, &others, version))],
        true => {
            let second = path.with_extension("topic-permissions.json");
            let text = definitions::definitions(objects, &[], &others, version);
            vec![(path, text), (second, definitions::topic_permissions_only(topic_permissions, version))]
        }
    };
    // An existing backup is never replaced, because after a killed run it contains the original state.
    for (at, (path, text)) in files.iter().enumerate() {
        output::write_new_file(path, text).map_err(|error| {
            for (written, _) in &files[..at] {
                let _ = std::fs::remove_file(written);
            }
            not_written(path, &error)
        })?;
    }
    if !is_quiet {
        let paths: Vec<_> = files.drain(..).map(|(path, _)| files::path_argument(&path)).collect();
        let imports: Vec<_> =
            paths.iter().map(|path| format!("rabbitmqadmin definitions import --file {path}")).collect();
        let secrets = match others.is_empty() {
            true => "",
            false => "the backup contains password hashes, or URIs with passwords: keep it secret\n",
        };
        output::eprint(&format!(
            "backup of all objects to be deleted, changed or recreated (without messages): {}\n\
             {secrets}to restore missing objects: {}\n",
            paths.join(" and "),
            imports.join(", then ")
        ));
    }
    Ok(())
}

/// Returns the backup folder according to the XDG Base Directory Specification. Returns the working directory if the
/// home directory is unknown.
fn folder() -> PathBuf {
    let state = environment("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || environment("HOME").map(|home| PathBuf::from(home).join(".local").join("state"));
    state.or_else(home).map_or_else(PathBuf::new, |state| state.join("topo").join("backups"))
}

/// Builds the file name of a backup, without its extension, from the vhost and the time, such as
/// `shop-2026-11-21T20-15-00.123Z`. The name contains no colons, which some file systems do not accept.
fn name(vhost: Option<&VhostName>) -> String {
    let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string().replace(':', "-");
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let first: String = vhost.map_or("cluster", |vhost| vhost.as_str()).chars().take(60).map(plain).collect();
    format!("{first}-{now}")
}
