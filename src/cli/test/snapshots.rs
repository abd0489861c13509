//! Writes snapshots: `--init` creates one, and `--update` rewrites those that exist.

use super::arguments::TestArguments;
use super::files::{ReadFile, spec_arguments};
use crate::cases::{CaseOutcome, SnapshotSource, Subject, parse, run, snapshot};
use crate::cli::arguments::{FindingsFormat, Global, SpecArguments};
use crate::cli::failure::{Exit, Failure};
use crate::cli::files::path_argument;
use crate::cli::{input, output, sources};
use crate::model::BrokerVersion;
use crate::model::count::count;
use crate::model::printable::clean;
use crate::rabbitmq::BrokerProfile;
use crate::render::style::{GREEN, Painted, RED};
use crate::spec::SourceFile;
use similar::{ChangeTag, TextDiff};
use std::path::{Path, PathBuf};

/// The number of unchanged lines around a difference.
const CONTEXT: usize = 3;

/// Writes the snapshot of specs.
pub(super) fn init(arguments: &TestArguments, global: &Global) -> Result<Exit, Failure> {
    let specs = spec_arguments(arguments.paths.clone(), arguments.vhost.clone(), arguments);
    let version = arguments.broker_version.iter().copied().max().unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let paths = sources::paths(&specs, "topo test --init")?;
    let Some(first) = paths.first() else { return Err(Failure::usage("no spec found")) };
    let (path, names) = snapshot_path(first, &paths)?;
    if path.exists() {
        return Err(Failure::usage(format!("{} exists", path_argument(&path)))
            .hint("to rewrite a snapshot, run `topo test --update`"));
    }
    let recorded = record(&specs, version, &names, arguments.vhost.as_deref())?;
    output::write_public_file(&path, &recorded.text)?;
    if !global.quiet {
        let written = format!("Wrote {}: {}.", clean(&path.display().to_string()), count(recorded.cases, "case"));
        output::print(&format!("{written} Review the file, and commit it with the spec.\n"))?;
    }
    Ok(Exit::Done)
}

/// Rewrites the snapshots among test files, and prints the differences.
pub(super) fn update(read: &[ReadFile], arguments: &TestArguments, global: &Global) -> Result<Exit, Failure> {
    let snapshots: Vec<&ReadFile> = read.iter().filter(|file| file.file.is_snapshot).collect();
    if snapshots.is_empty() {
        return Err(Failure::usage("no snapshot found").hint("to write one, run `topo test --init`"));
    }
    for file in snapshots {
        let vhost = file.file.vhost.as_ref().map(|vhost| vhost.value.as_str());
        let version = file.versions(arguments).into_iter().max().unwrap_or(BrokerVersion::NEWEST_KNOWN);
        let recorded = record(&file.spec_arguments(arguments), version, &file.file.specs, vhost)?;
        let name = &file.source.name;
        if recorded.text == file.source.text {
            if !global.quiet {
                output::print(&format!("{name} is up to date.\n"))?;
            }
            continue;
        }
        output::print(&difference(name, &file.source.text, &recorded.text))?;
        output::write_public_file(&file.path, &recorded.text)?;
        if !global.quiet {
            output::print(&format!("Updated {name}: {}.\n", count(recorded.cases, "case")))?;
        }
    }
    Ok(Exit::Done)
}

/// A recorded snapshot.
struct Recorded {
    text: String,
    cases: u64,
}

/// Records the routing of specs, and checks that all cases of the snapshot pass.
fn record(
    specs: &SpecArguments,
    version: BrokerVersion,
    names: &[String],
    vhost: Option<&str>,
) -> Result<Recorded, Failure> {
    let loaded = input::load_for(specs, "topo test --init", FindingsFormat::Text, version)?;
    let [(spec, expansion)] = loaded.expanded.as_slice() else {
        let vhosts: Vec<String> = loaded.vhosts().iter().map(ToString::to_string).collect();
        return Err(Failure::usage(format!("the specs declare {} vhosts", vhosts.len()))
            .hint(format!("select one with --vhost: {}", vhosts.join(", "))));
    };
    let profile = BrokerProfile::of(version);
    let operator_policies = expansion.topology.operator_policies();
    let subject = Subject::new((spec, expansion), &operator_policies, &profile);
    let text = snapshot(&subject, &SnapshotSource { specs: names, vhost });
    let source = SourceFile { name: "the snapshot".to_owned(), text };
    let parsed = parse(0, &source).map_err(|errors| Failure::failed(format!("the snapshot is invalid: {errors}")))?;
    if parsed.cases.is_empty() {
        return Err(Failure::usage("the specs route no message that a snapshot can record"));
    }
    let results = run(&parsed, &subject, "");
    match results.iter().find(|result| matches!(result.outcome, CaseOutcome::Failed { .. })) {
        Some(failed) => Err(Failure::failed(format!("case `{}` of the new snapshot fails", clean(&failed.name)))
            .hint("this is an error of topo; please report it with the spec")),
        None => Ok(Recorded { text: source.text, cases: results.len() as u64 }),
    }
}

/// Returns the path of the snapshot of specs, and the paths of the specs relative to it.
fn snapshot_path(first: &Path, specs: &[PathBuf]) -> Result<(PathBuf, Vec<String>), Failure> {
    let folder = first.parent().unwrap_or(Path::new(""));
    let stem = if first.is_dir() { first.file_name() } else { first.file_stem() };
    let Some(stem) = stem.map(|stem| stem.to_string_lossy().into_owned()).filter(|_| first.as_os_str() != "-") else {
        return Err(
            Failure::usage("a snapshot needs the path of a spec").hint("for example: topo test --init topology.yaml")
        );
    };
    let relative = |spec: &PathBuf| {
        let inside = spec.strip_prefix(folder).ok().and_then(Path::to_str).map(str::to_owned);
        inside.ok_or_else(|| {
            Failure::usage(format!("{} is not in the folder of {}", path_argument(spec), path_argument(first)))
                .hint("a snapshot and its specs must be in the same folder")
        })
    };
    let names: Result<Vec<String>, Failure> = specs.iter().map(relative).collect();
    Ok((folder.join(format!("{stem}.routes.test.yaml")), names?))
}

/// Renders the differences of two texts in the unified format.
fn difference(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut text = format!("--- {name}\n+++ {name}\n");
    for group in diff.grouped_ops(CONTEXT) {
        if let [first, .., last] | [first @ last] = group.as_slice() {
            let (old, new) =
                (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
            text.push_str(&format!("@@ -{},{} +{},{} @@\n", old.start + 1, old.len(), new.start + 1, new.len()));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = clean(change.value().trim_end_matches('\n'));
            let line = match change.tag() {
                ChangeTag::Delete => Painted(RED, format!("-{line}")).to_string(),
                ChangeTag::Insert => Painted(GREEN, format!("+{line}")).to_string(),
                ChangeTag::Equal => format!(" {line}"),
            };
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}
