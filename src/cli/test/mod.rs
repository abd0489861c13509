//! `topo test`: runs the cases of test files against their specs, offline, and writes snapshots.
//!
//! | file | topic |
//! |---|---|
//! | [`arguments`] | the arguments |
//! | [`files`] | the test files and their specs |
//! | [`coverage`] | the coverage of the routing |
//! | [`snapshots`] | `--init` and `--update` |
//! | [`live`] | `--live` and `--clean` |

mod arguments;
mod coverage;
mod files;
mod live;
mod snapshots;

pub(super) use arguments::TestArguments;

use super::arguments::Global;
use super::failure::{Exit, Failure};
use super::input::Loaded;
use super::{connection, output};
use crate::cases::{CoverageReport, FileReport, Subject, check, run as run_cases};
use crate::expand::Expansion;
use crate::model::BrokerVersion;
use crate::model::printable::clean;
use crate::rabbitmq::BrokerProfile;
use crate::render::cases::{coverage as coverage_text, github, json, junit, markdown, summary, text};
use crate::spec::Spec;
use arguments::{AlsoFormat, TestFormat};
use files::{ReadFile, refused, test_files, warn};
use live::LiveBroker;

pub(super) async fn run(arguments: &TestArguments, global: &Global) -> Result<Exit, Failure> {
    connection::refuse_password(&arguments.connection)?;
    if arguments.live.clean {
        return live::clean_leftovers(arguments, global).await;
    }
    if arguments.init {
        return snapshots::init(arguments, global);
    }
    let (mut read, mut reports) = (Vec::new(), Vec::new());
    let mut broken = None;
    let broker = match arguments.live.live {
        true => Some(LiveBroker::connect(arguments, global).await?),
        false => None,
    };
    for path in test_files(&arguments.paths)? {
        let found = ReadFile::read(path, arguments.format);
        let ran = match (found, &broker) {
            (Err(failure), _) => Err(failure),
            (Ok(file), _) if arguments.update => Ok((file, Vec::new())),
            (Ok(file), Some(broker)) => broker.run_file(&file).await.map(|of_file| (file, vec![of_file])),
            (Ok(file), None) => run_file(&file, arguments).map(|of_file| (file, of_file)),
        };
        match ran {
            Ok((file, of_file)) => {
                reports.extend(of_file);
                read.push(file);
            }
            Err(failure) if failure.is_interruption() => return Err(failure),
            // The other files are tested as well.
            Err(failure) => broken = Some(failure.report()),
        }
    }
    if let Some(exit) = broken.as_ref().filter(|_| read.is_empty()) {
        return Ok(*exit);
    }
    if arguments.update {
        let updated = snapshots::update(&read, arguments, global)?;
        return Ok(broken.unwrap_or(updated));
    }
    if reports.iter().all(|report| report.results.is_empty()) {
        if !arguments.run.is_empty() && !reports.is_empty() {
            return Err(Failure::usage(format!("no case has a name that contains `{}`", clean(&arguments.run))));
        }
        return Err(Failure::usage("no test cases found")
            .hint("write cases to a file beside the spec, such as topology.test.yaml")
            .hint("or specify test files: topo test FILE"));
    }
    let coverages = match arguments.coverage || arguments.fail_under.is_some() {
        true => coverage::compute(&read, arguments)?,
        false => Vec::new(),
    };
    for (format, path) in &arguments.also {
        let rendered = match format {
            AlsoFormat::Junit => junit(&reports, &coverages),
            AlsoFormat::Of(format) => render(&reports, &coverages, *format, global),
        };
        output::write_public_file(path, &anstream::adapter::strip_str(&rendered).to_string())?;
    }
    output::print(&render(&reports, &coverages, arguments.format, global))?;
    let failed = if reports.iter().any(FileReport::has_failures) { Exit::Failed } else { Exit::Done };
    let exit = broken.unwrap_or(failed);
    match coverage::below(&coverages, arguments.fail_under) {
        Some(failure) if exit == Exit::Done => Err(failure),
        _ => Ok(exit),
    }
}

fn render(reports: &[FileReport], coverages: &[CoverageReport], format: TestFormat, global: &Global) -> String {
    match format {
        TestFormat::Text => {
            let shown = reports.iter().filter(|report| !global.quiet || report.has_failures());
            let texts: Vec<String> = shown.map(|report| text(report, output::width())).collect();
            let coverages: Vec<String> =
                coverages.iter().map(|it| format!("\n{}", coverage_text(it, output::width()))).collect();
            texts.join("\n") + &summary(reports) + &coverages.concat()
        }
        TestFormat::Json => json(reports, coverages),
        TestFormat::Github => github(reports, coverages),
        TestFormat::Markdown => markdown(reports, coverages),
    }
}

/// Runs the cases of a file, once for each version.
fn run_file(read: &ReadFile, arguments: &TestArguments) -> Result<Vec<FileReport>, Failure> {
    let mut reports: Vec<FileReport> = Vec::new();
    for version in read.versions(arguments) {
        let loaded = read.load(arguments, version)?;
        reports.push(offline_report(read, &loaded, version, (arguments, reports.is_empty()))?);
    }
    Ok(reports)
}

/// Runs the cases of a file for a version. If `warns` is true, prints warnings.
fn offline_report(
    read: &ReadFile,
    loaded: &Loaded,
    version: BrokerVersion,
    (arguments, warns): (&TestArguments, bool),
) -> Result<FileReport, Failure> {
    let (spec, expansion) = checked_spec(read, loaded)?;
    let profile = BrokerProfile::of(version);
    let operator_policies = expansion.topology.operator_policies();
    let subject = Subject::new((spec, expansion), &operator_policies, &profile);
    let found = check(&read.file, &subject);
    if found.has_errors() {
        return Err(refused(&found, &read.source, arguments.format));
    }
    if !found.is_empty() && warns {
        warn(&found, &read.source, arguments.format)?;
    }
    Ok(FileReport {
        file: read.source.name.clone(),
        specs: loaded.names.clone(),
        spec_files: spec.files.clone(),
        vhost: spec.vhost.value.clone(),
        version,
        live: None,
        results: run_cases(&read.file, &subject, &arguments.run),
    })
}

/// Returns the spec of a test file, which has one vhost.
fn checked_spec<'l>(read: &ReadFile, loaded: &'l Loaded) -> Result<(&'l Spec, &'l Expansion), Failure> {
    let [(spec, expansion)] = loaded.expanded.as_slice() else {
        let vhosts: Vec<String> = loaded.vhosts().iter().map(ToString::to_string).collect();
        return Err(Failure::spec(format!("the specs of {} declare {} vhosts", read.source.name, vhosts.len()))
            .hint(format!("add `vhost:` to the test file: {}", vhosts.join(", "))));
    };
    Ok((spec, expansion))
}
