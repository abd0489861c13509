//! `topo export`: writes the current topology as a spec, to standard output or to files.

use super::arguments::Global;
use super::export_arguments::ExportArguments;
use super::export_files::ExportTarget;
use super::export_source::{Source, read_broker, read_file};
use super::failure::{Exit, Failure};
use super::validate::record_counts;
use super::{connection, hints, output};
use crate::broker::Snapshot;
use crate::export::{
    ClusterExport, CurrentVhost, Export, export, export_cluster, format_count_and_names, reference_passwords,
};
use crate::model::count::{count, number};
use crate::model::record_kinds::Layout;
use crate::model::{Glob, Record, RecordKind, VhostName};
use crate::render::shell::quote;
use crate::render::style::{Painted, YELLOW, clean};
use std::collections::BTreeSet;
use std::path::Path;

/// Options for writing a source as specs.
pub(super) struct WriteOptions<'a> {
    pub(super) target: ExportTarget,
    /// True if existing files may be replaced.
    pub(super) may_replace: bool,
    /// The `--match` globs; empty for all objects.
    pub(super) patterns: &'a [String],
    /// The optional kinds to write.
    pub(super) with: BTreeSet<RecordKind>,
}

pub(super) async fn run(arguments: &ExportArguments, global: &Global) -> Result<Exit, Failure> {
    connection::refuse_password(&arguments.connection)?;
    if let Some(stray) = &arguments.stray {
        return Err(stray_failure(stray));
    }
    let target = ExportTarget::of(arguments.out.as_deref())?;
    let with: BTreeSet<RecordKind> = arguments.with.iter().flat_map(|with| with.kinds.iter().copied()).collect();
    let source = match &arguments.definitions {
        Some(path) => read_file(path, arguments)?,
        None => read_broker(arguments, &with, global).await?,
    };
    let options = WriteOptions { target, may_replace: arguments.force, patterns: &arguments.patterns, with };
    write(source, &options, global)
}

/// Writes a source as specs, and prints a summary.
pub(super) fn write(source: Source, options: &WriteOptions<'_>, global: &Global) -> Result<Exit, Failure> {
    let Source { mut snapshots, cluster, cluster_wide, permissions, is_uncounted } = source;
    let WriteOptions { target, may_replace, patterns, with } = options;
    reference_all_passwords(&mut snapshots);
    let globs: Vec<Glob> = patterns.iter().map(Glob::new).collect();
    let mut exported: Vec<(VhostName, Export)> = Vec::new();
    for snapshot in &snapshots {
        let vhost = snapshot.topology.vhost.clone();
        let lock_holder = connection::process().other_holder(&snapshot.topology);
        let one = export(&current_vhost(snapshot, with, lock_holder.as_deref()), &globs).map_err(|error| {
            Failure::failed(format!("vhost `{}` cannot be represented as a spec", clean(vhost.as_str())))
                .because(error.to_string())
                .hint("this is a bug in topo: please report it, with the definitions of the vhost")
        })?;
        exported.push((vhost, one));
    }
    let of_cluster = cluster.as_ref().map(|cluster| export_cluster(&cluster.snapshot.topology.records, &globs));
    let of_cluster = of_cluster.filter(|one| !one.records.is_empty() || !one.left_out.is_empty());
    if !patterns.is_empty() && of_cluster.is_none() && exported.iter().all(|(_, one)| is_empty(one)) {
        return Err(no_match(patterns, &snapshots, &exported));
    }
    let cluster_name = VhostName::cluster();
    let mut texts: Vec<(&VhostName, &str)> = of_cluster.iter().map(|one| (&cluster_name, one.text.as_str())).collect();
    texts.extend(exported.iter().map(|(vhost, one)| (vhost, one.text.as_str())));
    target.write(&texts, *may_replace)?;
    if !global.quiet {
        if let Some(one) = &of_cluster {
            output::eprint(&cluster_summary(one));
        }
        let all_snapshots = cluster.iter().map(|cluster| &cluster.snapshot).chain(&snapshots);
        let unreadable: BTreeSet<_> = all_snapshots.flat_map(|snapshot| &snapshot.record_facts.unreadable).collect();
        for kind in unreadable {
            let (plural, tag) = (kind.row().plural, kind.row().writer.as_str());
            let note = Painted(YELLOW, "info:");
            output::eprint(&format!("{note} {plural} are not exported: reading them requires the {tag} tag\n"));
        }
        for (index, (vhost, one)) in exported.iter().enumerate() {
            output::eprint(&summary(vhost, one));
            let used = uri_secrets(one);
            if !used.is_empty() {
                let variables =
                    if used.len() == 1 { "this environment variable" } else { "these environment variables" };
                let line = format!("the passwords in URIs; an apply needs {variables} {}", used.join(", "));
                output::eprint(&format!("  not in the spec: {}\n", clean(&line)));
            }
            let is_exported = |word: &str| with.iter().any(|kind| kind.row().word == word);
            let others = permissions.get(index).into_iter().flatten().filter(|(word, _)| !is_exported(word));
            for (word, names) in others {
                output::eprint(&format!("  not in the spec: {}\n", clean(&format_count_and_names(word, names))));
            }
        }
        for (word, names) in &cluster_wide {
            let is_exported = |name: &str| {
                of_cluster
                    .iter()
                    .flat_map(|one| one.records.keys())
                    .any(|id| id.kind.row().word == *word && id.name() == Some(name))
            };
            let names: Vec<String> = names.iter().filter(|name| !is_exported(name)).cloned().collect();
            if !names.is_empty() {
                output::eprint(&format!("not in any spec: {}\n", clean(&format_count_and_names(word, &names))));
            }
        }
        if is_uncounted {
            output::eprint(&format!(
                "{} users and permissions are not counted: counting them requires the administrator tag\n",
                Painted(YELLOW, "info:")
            ));
        }
    }
    Ok(Exit::Done)
}

/// Returns the failure for an empty export: no object matches, or all matching objects are omitted.
fn no_match(patterns: &[String], snapshots: &[Snapshot], exported: &[(VhostName, Export)]) -> Failure {
    let is_one = exported.len() == 1;
    let lines = exported.iter().flat_map(|(vhost, one)| {
        let of_vhost = if is_one { String::new() } else { format!("vhost {vhost}: ") };
        one.left_out.lines().into_iter().map(move |line| format!("{of_vhost}{line}"))
    });
    let left_out: Vec<String> = lines.collect();
    if !left_out.is_empty() {
        return Failure::failed(format!("all objects that --match matches are omitted: {}", left_out.join("; ")));
    }
    let mut known = BTreeSet::new();
    for topology in snapshots.iter().map(|snapshot| &snapshot.topology) {
        known.extend(topology.queues.keys().map(ToString::to_string));
        known.extend(topology.exchanges.keys().map(ToString::to_string));
        known.extend(topology.policies.keys().map(ToString::to_string));
        known.extend(topology.records.keys().filter_map(|id| id.name()).map(str::to_owned));
    }
    let parts = patterns.iter().map(|pattern| pattern.replace(['*', '?'], "")).filter(|part| !part.is_empty());
    let hints: BTreeSet<String> = parts.filter_map(|part| hints::suggestion(&part, &known)).collect();
    hints.into_iter().fold(Failure::failed("no object matches --match"), Failure::hint)
}

/// Returns the failure for a positional argument. Its hints suggest the flags that the user may have omitted.
fn stray_failure(stray: &str) -> Failure {
    let failure = Failure::usage(format!("unexpected argument `{}`", clean(stray)));
    let extension = Path::new(stray).extension().map(|extension| extension.to_ascii_lowercase());
    match extension.as_ref().and_then(|extension| extension.to_str()) {
        Some("yaml" | "yml") => failure.hint(format!("to write a file: --out {}", quote(stray))),
        Some("json") => failure.hint(format!("to read a definitions file: --definitions {}", quote(stray))),
        _ => failure
            .hint(format!("to export a vhost: --vhost {}", quote(stray)))
            .hint(format!("to read a definitions file: --definitions {}", quote(stray))),
    }
}

fn current_vhost<'a>(
    snapshot: &'a Snapshot,
    record_kinds: &'a BTreeSet<RecordKind>,
    lock_holder: Option<&'a str>,
) -> CurrentVhost<'a> {
    CurrentVhost {
        topology: &snapshot.topology,
        untouchable: &snapshot.untouchable,
        properties_keys: &snapshot.properties_keys,
        unsupported_objects: &snapshot.unsupported_objects,
        record_kinds,
        lock_holder,
        includes_transient_queues: snapshot.includes_transient_queues,
        profile: &snapshot.profile,
    }
}

/// Replaces the passwords in the URIs of all vhosts with references to environment variables.
fn reference_all_passwords(snapshots: &mut [Snapshot]) {
    let mut variables = BTreeSet::new();
    for snapshot in snapshots {
        reference_passwords(&mut snapshot.topology, &mut variables);
    }
}

/// Returns the environment variables that contain the URIs of an exported vhost, or their passwords.
fn uri_secrets(export: &Export) -> Vec<String> {
    let secrets = export.topology.records.values().flat_map(Record::secrets).map(|(_, secret)| secret);
    let names: BTreeSet<String> = secrets.filter_map(|secret| secret.variable().map(str::to_owned)).collect();
    names.into_iter().collect()
}

fn is_empty(export: &Export) -> bool {
    let topology = &export.topology;
    let is_bare = topology.exchanges.is_empty() && topology.queues.is_empty() && topology.policies.is_empty();
    is_bare && topology.bindings.is_empty() && topology.records.is_empty()
}

/// Summarizes the export of the cluster.
fn cluster_summary(export: &ClusterExport) -> String {
    let counts = match record_counts(&export.records) {
        counts if counts.is_empty() => "no objects".to_owned(),
        counts => counts.join(", "),
    };
    let mut text = format!("cluster: {counts}\n");
    for (kind, names) in &export.left_out {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let row = kind.row();
        let line = match row.layout {
            Layout::Value(_) => format!("{}: {}", row.format_count(names.len()), names.join(", ")),
            Layout::Fields(_) | Layout::Settings(_) => format!("{} of {}", row.plural, names.join(", ")),
        };
        text.push_str(&format!("  not in the spec: {} (a spec cannot represent this)\n", clean(&line)));
    }
    text
}

/// Summarizes the export of a vhost: the number of exported objects, and the omitted objects.
fn summary(vhost: &VhostName, export: &Export) -> String {
    let topology = &export.topology;
    let policies = match topology.policies.len() {
        1 => "1 policy".to_owned(),
        many => format!("{} policies", number(many as u64)),
    };
    let records: String = record_counts(&topology.records).iter().map(|counted| format!(", {counted}")).collect();
    let mut text = format!(
        "vhost {}: {}, {}, {}, {policies}{records}\n",
        clean(vhost.as_str()),
        count(topology.exchanges.len() as u64, "exchange"),
        count(topology.queues.len() as u64, "queue"),
        count(topology.bindings.len() as u64, "binding"),
    );
    for line in export.left_out.lines() {
        text.push_str(&format!("  not in the spec: {}\n", clean(&line)));
    }
    for migration in &export.interrupted {
        let what = if migration.applying.is_some() { "" } else { "a plan would resume a migration: " };
        text.push_str(&format!("{} {what}{}\n", Painted(YELLOW, "info:"), clean(&migration.text)));
    }
    text
}
