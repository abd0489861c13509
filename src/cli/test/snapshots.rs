//! Writes snapshots: `--init` creates a snapshot, and `--update` rewrites existing snapshots.

use super::arguments::TestArguments;
use super::files::{ReadFile, spec_arguments};
use crate::cases::{CaseOutcome, SnapshotSource, Subject, TestFile, parse, run, snapshot};
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
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The number of unchanged lines around a difference.
const CONTEXT: usize = 3;

/// Writes a snapshot of the specs.
pub(super) fn init(arguments: &TestArguments, global: &Global) -> Result<Exit, Failure> {
    let specs = spec_arguments(arguments.paths.clone(), arguments.vhost.clone(), arguments);
    let paths = sources::paths(&specs, "topo test --init")?;
    let (path, names) = snapshot_path(&paths, arguments.vhost.as_deref())?;
    if path.exists() {
        return Err(Failure::usage(format!("{} already exists", path_argument(&path)))
            .hint("to rewrite a snapshot, run `topo test --update`"));
    }
    let recorded = record(&specs, &arguments.broker_version, &names)?;
    output::write_public_file(&path, &recorded.text)?;
    if !global.quiet {
        let written = format!("Wrote {}: {}.", clean(&path.display().to_string()), count(recorded.cases, "case"));
        output::print(&format!("{written} Review the file, and commit it with the spec.\n"))?;
    }
    Ok(Exit::Done)
}

/// Rewrites the snapshots among the test files, and prints the differences.
pub(super) fn update(read: &[ReadFile], arguments: &TestArguments, global: &Global) -> Result<Exit, Failure> {
    let snapshots: Vec<&ReadFile> = read.iter().filter(|file| file.file.is_snapshot).collect();
    if snapshots.is_empty() {
        return Err(Failure::usage("no snapshot found").hint("to write one, run `topo test --init`"));
    }
    for file in snapshots {
        let names = if file.file.specs.is_empty() { file_names(&file.specs) } else { file.file.specs.clone() };
        let recorded = record(&file.spec_arguments(arguments), &file.file.brokers, &names)?;
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

fn file_names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect()
}

/// A recorded snapshot.
struct Recorded {
    text: String,
    cases: u64,
}

/// Records the routing of the specs for the newest version in `brokers`. Checks that all cases in the snapshot pass for
/// this version. Restricts the cases that fail for an older version to the newest version and later versions.
fn record(specs: &SpecArguments, brokers: &[BrokerVersion], names: &[String]) -> Result<Recorded, Failure> {
    let newest = brokers.iter().copied().max().unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let text = |restricted: &BTreeSet<String>| {
        let recorded = with_subject(specs, newest, |subject| {
            let vhost = specs.vhost.as_deref();
            snapshot(subject, &SnapshotSource { specs: names, vhost, brokers, restricted })
        })?;
        recorded.ok_or_else(|| Failure::usage("the specs contain no routing to record"))
    };
    let file = |text: &str| {
        let source = SourceFile { name: "the snapshot".to_owned(), text: text.to_owned() };
        parse(0, &source).map_err(|errors| {
            let first = errors.iter().next().map(|error| error.message.clone()).unwrap_or_default();
            Failure::failed("the new snapshot is invalid").because(first).hint(BUG)
        })
    };
    let first = text(&BTreeSet::new())?;
    let tests = file(&first)?;
    if let Some(name) = failing(specs, newest, &tests)?.first() {
        return Err(Failure::failed(format!("case `{}` of the new snapshot fails", clean(name))).hint(BUG));
    }
    let mut restricted = BTreeSet::new();
    for version in brokers.iter().filter(|version| **version != newest) {
        restricted.extend(failing(specs, *version, &tests)?);
    }
    let text = if restricted.is_empty() { first } else { text(&restricted)? };
    let cases = file(&text)?.cases.len() as u64;
    Ok(Recorded { text, cases })
}

/// The hint for a new snapshot that is invalid or fails.
const BUG: &str = "this is a bug in topo; please report it and attach the spec";

/// Returns the names of the tests that fail for a version.
fn failing(specs: &SpecArguments, version: BrokerVersion, tests: &TestFile) -> Result<Vec<String>, Failure> {
    let results = with_subject(specs, version, |subject| run(tests, subject, ""))?;
    let failed = results.into_iter().filter(|result| matches!(result.outcome, CaseOutcome::Failed { .. }));
    Ok(failed.map(|result| result.test).collect())
}

/// Calls `then` with the only vhost that the specs declare. Returns a failure unless the specs declare exactly one
/// vhost.
fn with_subject<T>(
    specs: &SpecArguments,
    version: BrokerVersion,
    then: impl FnOnce(&Subject<'_>) -> T,
) -> Result<T, Failure> {
    let loaded = input::load_for(specs, "topo test --init", FindingsFormat::Text, version)?;
    let [(spec, expansion)] = loaded.expanded.as_slice() else {
        let vhosts: Vec<String> = loaded.vhosts().iter().map(ToString::to_string).collect();
        if vhosts.is_empty() {
            return Err(Failure::usage("the specs declare no vhost, so there is no routing to record"));
        }
        return Err(Failure::usage(format!("the specs declare {} vhosts", vhosts.len()))
            .hint(format!("select one with --vhost: {}", vhosts.join(", "))));
    };
    let profile = BrokerProfile::of(version);
    let operator_policies = expansion.topology.operator_policies();
    Ok(then(&Subject::new((spec, expansion), &operator_policies, &profile)))
}

/// Returns the path of the snapshot for the specs, and the paths of the specs relative to the folder of the snapshot.
/// The snapshot is in the folder of the first spec. If `vhost` is set, the file name contains the vhost.
fn snapshot_path(specs: &[PathBuf], vhost: Option<&str>) -> Result<(PathBuf, Vec<String>), Failure> {
    let from_stdin = || {
        Failure::usage("cannot write a snapshot for a spec from standard input")
            .hint("pass the path of a spec: topo test --init topology.yaml")
    };
    let first = specs.first().filter(|path| path.as_os_str() != "-").ok_or_else(from_stdin)?;
    // The path `.` has no file name.
    let named = if first.file_name().is_some() { first.clone() } else { first.canonicalize().unwrap_or_default() };
    let folder = if first.file_name().is_some() { first.parent().unwrap_or(Path::new("")) } else { first.as_path() };
    let stem = if first.is_dir() { named.file_name() } else { named.file_stem() };
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned()).ok_or_else(from_stdin)?;
    let relative = |spec: &PathBuf| {
        let inside = spec.strip_prefix(folder).ok().and_then(Path::to_str);
        let inside = inside.map(|inside| if inside.is_empty() { "." } else { inside }.to_owned());
        inside.ok_or_else(|| {
            Failure::usage(format!("{} is not in the folder of {}", path_argument(spec), path_argument(first)))
                .hint("all specs of a snapshot must be in the folder of the first spec, or below it")
        })
    };
    let names: Result<Vec<String>, Failure> = specs.iter().map(relative).collect();
    let of_vhost = vhost.map_or_else(String::new, |vhost| {
        let safe = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        format!(".{}", vhost.chars().map(safe).collect::<String>())
    });
    Ok((folder.join(format!("{stem}{of_vhost}.routes.test.yaml")), names?))
}

/// Renders the differences between two texts in the unified diff format.
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
