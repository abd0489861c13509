//! `topo export`: what is live as a spec, to standard output or into files.

use super::access::Access;
use super::arguments::Global;
use super::exit::Exit;
use super::export_arguments::ExportArguments;
use super::failure::Failure;
use super::progress::Progress;
use super::{connection, output};
use crate::broker::{Snapshot, definitions};
use crate::export::{Export, Live, export};
use crate::model::address::encode;
use crate::model::count::{count, number};
use crate::model::{Glob, VhostName};
use crate::render::style::{Painted, YELLOW, clean};
use std::io::Read;
use std::path::{Path, PathBuf};

pub(super) async fn run(arguments: &ExportArguments, global: &Global) -> Result<Exit, Failure> {
    connection::no_password(&arguments.connection)?;
    let snapshots = match &arguments.definitions {
        Some(path) => of_file(path, arguments)?,
        None => live(arguments, global).await?,
    };
    let globs: Vec<Glob> = arguments.patterns.iter().map(Glob::new).collect();
    let mut exported: Vec<(VhostName, Export)> = Vec::new();
    for snapshot in &snapshots {
        let vhost = snapshot.topology.vhost.clone();
        if snapshot.topology.settings.is_none() {
            return Err(Failure::failed(format!("there is no vhost `{}`", clean(vhost.as_str()))));
        }
        let one = export(&of(snapshot), &globs).map_err(|error| {
            Failure::failed(format!("vhost `{}` could not be written as a spec", clean(vhost.as_str())))
                .because(error.to_string())
                .hint("this is a mistake of topo's: please report it, with the definitions of the vhost")
        })?;
        exported.push((vhost, one));
    }
    if !arguments.patterns.is_empty() && exported.iter().all(|(_, one)| is_nothing(one)) {
        return Err(Failure::failed("nothing has a name that --match would match"));
    }
    write(arguments, &exported)?;
    if !global.quiet {
        exported.iter().for_each(|(vhost, one)| output::tell(&summary(vhost, one)));
    }
    Ok(Exit::Done)
}

fn of(snapshot: &Snapshot) -> Live<'_> {
    Live {
        topology: &snapshot.topology,
        untouchable: &snapshot.untouchable,
        operator_policies: &snapshot.operator_policies,
        properties_keys: &snapshot.properties_keys,
        dialect: &snapshot.dialect,
    }
}

fn is_nothing(export: &Export) -> bool {
    let topology = &export.topology;
    let is_bare = topology.exchanges.is_empty() && topology.queues.is_empty() && topology.policies.is_empty();
    is_bare && topology.bindings.is_empty()
}

async fn live(arguments: &ExportArguments, global: &Global) -> Result<Vec<Snapshot>, Failure> {
    let access = Access::new(&arguments.connection)?;
    let broker = &access.broker;
    let progress = Progress::new(global);
    let reading = progress.spin(format!("reading {}", broker.shown_url()));
    let vhosts = match &arguments.vhost[..] {
        [] => broker.vhosts().await?,
        named => named.iter().map(VhostName::new).collect(),
    };
    let snapshots = broker.read(&vhosts).await?;
    drop(reading);
    Ok(snapshots)
}

fn of_file(path: &Path, arguments: &ExportArguments) -> Result<Vec<Snapshot>, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::usage(format!("cannot read {}", path.display())).because(error.to_string());
    let text = if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map_err(unreadable)?;
        text
    } else {
        std::fs::read_to_string(path).map_err(unreadable)?
    };
    let unusable = |error: definitions::DefinitionsError| {
        Failure::spec(format!("{} is not a definitions file that can be used", path.display()))
            .because(error.to_string())
    };
    let vhosts = match &arguments.vhost[..] {
        [] => definitions::vhosts(&text).map_err(unusable)?,
        named => named.iter().map(VhostName::new).collect(),
    };
    if vhosts.is_empty() {
        return Err(Failure::usage(format!("{} does not say of which vhost it is", path.display()))
            .hint("say it: --vhost NAME"));
    }
    let read = |vhost: &VhostName| definitions::read(&text, vhost, arguments.broker_version).map_err(unusable);
    vhosts.iter().map(read).collect()
}

/// Nothing is written where one of the files is there already.
fn write(arguments: &ExportArguments, exported: &[(VhostName, Export)]) -> Result<(), Failure> {
    let all = || exported.iter().map(|(_, one)| one.text.as_str()).collect::<Vec<_>>().join("---\n");
    let Some(out) = &arguments.out else { return output::print(&all()) };
    let is_file = out.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") && !out.is_dir();
    let files: Vec<(PathBuf, String)> = if is_file {
        vec![(out.clone(), all())]
    } else {
        let file = |(vhost, one): &(VhostName, Export)| {
            (out.join(format!("{}.yaml", encode(vhost.as_str()))), one.text.clone())
        };
        exported.iter().map(file).collect()
    };
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists() && !arguments.force) {
        return Err(Failure::usage(format!("{} is there already, and nothing was written", path.display()))
            .hint("choose another place, or replace it: --force"));
    }
    let folder = if is_file { out.parent() } else { Some(out.as_path()) };
    let unwritable = |path: &Path, error: std::io::Error| {
        Failure::failed(format!("cannot write {}", path.display())).because(error.to_string())
    };
    if let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    }
    for (path, text) in &files {
        output::write_new(path, text, arguments.force).map_err(|error| unwritable(path, error))?;
    }
    Ok(())
}

/// How much there is, and what is not in it.
fn summary(vhost: &VhostName, export: &Export) -> String {
    let topology = &export.topology;
    let policies = match topology.policies.len() {
        1 => "1 policy".to_owned(),
        many => format!("{} policies", number(many as u64)),
    };
    let mut text = format!(
        "vhost {}: {}, {}, {}, {policies}\n",
        clean(vhost.as_str()),
        count(topology.exchanges.len() as u64, "exchange"),
        count(topology.queues.len() as u64, "queue"),
        count(topology.bindings.len() as u64, "binding"),
    );
    for line in export.left_out.lines() {
        text.push_str(&format!("  not in the spec: {}\n", clean(&line)));
    }
    for note in &export.unfinished {
        text.push_str(&format!("{} a plan would go on with a migration: {}\n", Painted(YELLOW, "note:"), clean(note)));
    }
    text
}
