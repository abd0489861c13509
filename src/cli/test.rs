//! `topo test`: runs the cases of test files against their specs, offline.

use super::arguments::{Global, SpecArguments};
use super::failure::{Exit, Failure};
use super::files::{path_argument, read_failure, stem_of_test_file};
use super::value_parsers::{broker_version, variable};
use super::{arguments::FindingsFormat, input, output};
use crate::cases::{FileReport, Subject, TestFile, check, parse, run as run_cases};
use crate::model::BrokerVersion;
use crate::model::printable::clean;
use crate::rabbitmq::BrokerProfile;
use crate::render::cases::{github, json, junit, summary, text};
use crate::render::diagnostics::diagnostics;
use crate::render::findings::github as annotations;
use crate::spec::{Diagnostics, SourceFile};
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct TestArguments {
    /// Test files, or directories to search for *.test.yaml files [default: the current directory]
    #[arg(value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Run only cases whose name contains TEXT
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    run: String,
    /// RabbitMQ version to simulate, instead of the versions in the test file; may be repeated [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    broker_version: Vec<BrokerVersion>,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    format: TestFormat,
    /// Also write the results to a file: junit=FILE, or another format; may be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = also)]
    also: Vec<(AlsoFormat, PathBuf)>,
    /// Value of ${NAME} in the specs, like TOPO_VAR_NAME; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable, env = "TOPO_VAR")]
    variables: Vec<(String, String)>,
    /// File of NAME=VALUE lines; may be repeated
    #[arg(long, value_name = "FILE", env = "TOPO_VAR_FILE")]
    var_file: Vec<PathBuf>,
}

/// Output format of test results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum TestFormat {
    /// Human-readable text
    #[default]
    Text,
    /// Machine-readable JSON
    Json,
    /// GitHub workflow annotations
    Github,
}

/// Format of an additional file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AlsoFormat {
    Junit,
    Of(TestFormat),
}

/// Parses the value of `--also`.
fn also(value: &str) -> Result<(AlsoFormat, PathBuf), String> {
    let expected = || "expected FORMAT=FILE with one of the formats junit, text, json and github".to_owned();
    let (word, path) = value.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or_else(expected)?;
    let format = match word {
        "junit" => AlsoFormat::Junit,
        word => AlsoFormat::Of(TestFormat::from_str(word, false).map_err(|_| expected())?),
    };
    Ok((format, path.into()))
}

pub(super) fn run(arguments: &TestArguments, global: &Global) -> Result<Exit, Failure> {
    let mut reports = Vec::new();
    let mut broken = None;
    for path in test_files(&arguments.paths)? {
        match run_file(&path, arguments) {
            Ok(of_file) => reports.extend(of_file),
            // The other files are tested as well.
            Err(failure) => broken = Some(failure.report()),
        }
    }
    if let Some(exit) = broken.as_ref().filter(|_| reports.is_empty()) {
        return Ok(*exit);
    }
    if reports.iter().all(|report| report.results.is_empty()) {
        return Err(Failure::usage("no test cases found")
            .hint("write cases to a file beside the spec, such as topology.test.yaml")
            .hint("or specify test files: topo test FILE"));
    }
    for (format, path) in &arguments.also {
        let rendered = match format {
            AlsoFormat::Junit => junit(&reports),
            AlsoFormat::Of(format) => render(&reports, *format, global),
        };
        output::write_file(path, &anstream::adapter::strip_str(&rendered).to_string())?;
    }
    output::print(&render(&reports, arguments.format, global))?;
    let failed = if reports.iter().any(FileReport::has_failures) { Exit::Failed } else { Exit::Done };
    Ok(broken.unwrap_or(failed))
}

fn render(reports: &[FileReport], format: TestFormat, global: &Global) -> String {
    match format {
        TestFormat::Text => {
            let shown = reports.iter().filter(|report| !global.quiet || report.has_failures());
            let texts: Vec<String> = shown.map(|report| text(report, output::width())).collect();
            texts.join("\n") + &summary(reports)
        }
        TestFormat::Json => json(reports),
        TestFormat::Github => github(reports),
    }
}

/// Runs the cases of a file, once for each version.
fn run_file(path: &Path, arguments: &TestArguments) -> Result<Vec<FileReport>, Failure> {
    let source = std::fs::read(path).map_err(|error| read_failure(path, &error))?;
    let name = clean(&path.display().to_string());
    let Ok(source) = String::from_utf8(source) else {
        return Err(Failure::spec(format!("{name} is not UTF-8")));
    };
    let source = SourceFile { name: name.clone(), text: source };
    let file = parse(0, &source).map_err(|errors| refused(&errors, &source, arguments.format))?;
    let specs = SpecArguments {
        paths: specs_of(path, &file)?,
        file: Vec::new(),
        vhost: file.vhost.as_ref().map(|vhost| vhost.value.clone()),
        variables: arguments.variables.clone(),
        var_file: arguments.var_file.clone(),
    };
    let asked = if arguments.broker_version.is_empty() { &file.brokers } else { &arguments.broker_version };
    let newest = [BrokerVersion::NEWEST_KNOWN];
    let versions = if asked.is_empty() { &newest[..] } else { asked };
    let mut reports = Vec::new();
    for version in versions {
        let loaded = input::load_for(&specs, "topo test", FindingsFormat::Text, *version)?;
        let [(spec, expansion)] = loaded.expanded.as_slice() else {
            let vhosts: Vec<String> = loaded.vhosts().iter().map(ToString::to_string).collect();
            return Err(Failure::spec(format!("the specs of {name} declare {} vhosts", vhosts.len()))
                .hint(format!("add `vhost:` to the test file: {}", vhosts.join(", "))));
        };
        let profile = BrokerProfile::of(*version);
        let subject = Subject::new(spec, expansion, &profile);
        let errors = check(&file, &subject);
        if errors.has_errors() {
            return Err(refused(&errors, &source, arguments.format));
        }
        reports.push(FileReport {
            file: name.clone(),
            specs: loaded.names.clone(),
            spec_files: spec.files.clone(),
            vhost: spec.vhost.value.clone(),
            version: *version,
            results: run_cases(&file, &subject, &arguments.run),
        });
    }
    Ok(reports)
}

/// Prints the errors of a test file, and returns a failure without a message.
fn refused(errors: &Diagnostics, source: &SourceFile, format: TestFormat) -> Failure {
    if format == TestFormat::Github
        && let Err(failure) = output::print(&annotations(errors, std::slice::from_ref(source)))
    {
        return failure;
    }
    output::eprint(&diagnostics(errors, std::slice::from_ref(source), true, output::width()));
    Failure::spec("")
}

/// Returns the specs of a test file.
fn specs_of(path: &Path, file: &TestFile) -> Result<Vec<PathBuf>, Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    if !file.specs.is_empty() {
        return Ok(file.specs.iter().map(|spec| folder.join(spec)).collect());
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let specs =
        stem_of_test_file(&name).map(|stem| ["yaml", "yml"].map(|ending| folder.join(format!("{stem}.{ending}"))));
    match specs.into_iter().flatten().find(|spec| spec.is_file()) {
        Some(spec) => Ok(vec![spec]),
        None => Err(Failure::spec(format!("no spec found for {}", path_argument(path)))
            .hint("add `spec: topology.yaml`, with the path relative to the test file")
            .hint(format!("or name the test file after its spec: NAME.test.yaml tests NAME.yaml"))),
    }
}

/// Returns the test files at the paths: files, and the test files below folders.
fn test_files(paths: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Failure> {
    let current = [PathBuf::from(".")];
    let paths = if paths.is_empty() { &current[..] } else { paths };
    let mut found = BTreeSet::new();
    for path in paths {
        if path.is_dir() {
            search(path, &mut found)?;
        } else {
            found.insert(path.clone());
        }
    }
    Ok(found)
}

/// Adds the test files below a folder. Skips hidden folders, and does not follow links to folders.
fn search(folder: &Path, found: &mut BTreeSet<PathBuf>) -> Result<(), Failure> {
    let failure = |error: std::io::Error| read_failure(folder, &error);
    for entry in std::fs::read_dir(folder).map_err(failure)? {
        let path = entry.map_err(failure)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            search(&path, found)?;
        } else if stem_of_test_file(&name).is_some() {
            found.insert(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path));
        }
    }
    Ok(())
}
