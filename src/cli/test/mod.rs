//! `topo test`: runs the cases in test files against their specs, offline and, with `--live`, on a broker. Also writes
//! snapshots.
//!
//! | file | topic |
//! |---|---|
//! | [`arguments`] | the arguments |
//! | [`files`] | the test files and their specs |
//! | [`offline`] | the cases in the simulation |
//! | [`against`] | `--against`: the cases against another topology |
//! | [`coverage`] | the routing coverage |
//! | [`snapshots`] | `--init` and `--update` |
//! | [`live`] | `--live` |
//! | [`scratch`] | the deletion of scratch vhosts, and `--clean` |

mod against;
mod arguments;
mod coverage;
mod files;
mod live;
mod offline;
mod scratch;
mod snapshots;

pub(super) use arguments::TestArguments;

use super::arguments::Global;
use super::failure::{Exit, Failure};
use super::{connection, output};
use crate::cases::{CoverageReport, FileReport};
use crate::model::printable::clean;
use crate::render::cases::{coverage as coverage_text, github, json, junit, markdown, summary, text};
use against::Target;
use arguments::{AlsoFormat, TestFormat};
use files::{ReadFile, test_files};
use live::LiveBroker;
use offline::run_file;

pub(super) async fn run(arguments: &TestArguments, global: &Global) -> Result<Exit, Failure> {
    connection::refuse_password(&arguments.connection)?;
    if arguments.live.clean {
        return scratch::clean_leftovers(arguments, global).await;
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
    let target = match &arguments.against {
        Some(against) => Some(Target::connect(against, arguments, global).await?),
        None => None,
    };
    for path in test_files(&arguments.paths)? {
        let found = ReadFile::read(path, arguments.format);
        let ran = match (found, &broker, &target) {
            (Err(failure), ..) => Err(failure),
            (Ok(file), ..) if arguments.update => Ok((file, Vec::new())),
            (Ok(file), Some(broker), _) => broker.run_file(&file).await.map(|of_file| (file, vec![of_file])),
            (Ok(file), None, Some(target)) => target.run_file(&file).await.map(|of_file| (file, of_file)),
            (Ok(file), None, None) => run_file(&file, arguments).map(|of_file| (file, of_file)),
        };
        match ran {
            Ok((file, of_file)) => {
                reports.extend(of_file);
                read.push(file);
            }
            // A failure in one file does not stop the tests in the other files.
            Err(failure) => broken = Some(failure.report()),
        }
        if broker.as_ref().is_some_and(LiveBroker::is_interrupted) {
            broken = Some(Exit::Interrupted);
            break;
        }
    }
    // A failed cleanup of a vhost takes precedence over other failures.
    if broker.is_some_and(|broker| broker.cleanup_failed()) {
        broken = Some(Exit::Partial);
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
            return Err(Failure::usage(format!("no case name contains `{}`", clean(&arguments.run))));
        }
        return Err(Failure::usage("no test cases found")
            .hint("write cases to a file next to the spec, such as topology.test.yaml")
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
    match coverage::coverage_failure(&coverages, arguments.fail_under) {
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
