//! Finds and reads test files.

use super::arguments::{TestArguments, TestFormat};
use crate::cases::{TestFile, parse};
use crate::cli::arguments::{FindingsFormat, SpecArguments};
use crate::cli::failure::Failure;
use crate::cli::files::{path_argument, read_failure, stem_of_test_file};
use crate::cli::input::{self, Loaded};
use crate::cli::output;
use crate::model::BrokerVersion;
use crate::model::printable::clean;
use crate::rabbitmq::BrokerProfile;
use crate::render::diagnostics::diagnostics;
use crate::render::findings::github as annotations;
use crate::spec::{Diagnostics, SourceFile};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A test file that topo has read.
pub(super) struct ReadFile {
    /// The path.
    pub(super) path: PathBuf,
    /// The text, with the name that messages show.
    pub(super) source: SourceFile,
    /// The cases.
    pub(super) file: TestFile,
    /// The paths of the specs.
    pub(super) specs: Vec<PathBuf>,
}

impl ReadFile {
    /// Reads and parses a test file. Prints its errors.
    pub(super) fn read(path: PathBuf, format: TestFormat) -> Result<Self, Failure> {
        let bytes = std::fs::read(&path).map_err(|error| read_failure(&path, &error))?;
        let name = clean(&path.display().to_string());
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(Failure::spec(format!("{name} is not UTF-8")));
        };
        let source = SourceFile { name, text };
        let file = parse(0, &source).map_err(|errors| report_errors(&errors, &source, format))?;
        let specs = specs_of(&path, &file)?;
        Ok(Self { path, source, file, specs })
    }

    /// Returns the versions to simulate.
    pub(super) fn versions(&self, arguments: &TestArguments) -> Vec<BrokerVersion> {
        let requested =
            if arguments.broker_version.is_empty() { &self.file.brokers } else { &arguments.broker_version };
        if requested.is_empty() { vec![BrokerVersion::NEWEST_KNOWN] } else { requested.clone() }
    }

    /// Loads the specs of the file for a version.
    pub(super) fn load(&self, arguments: &TestArguments, version: BrokerVersion) -> Result<Loaded, Failure> {
        let mut loaded = input::load_for(&self.spec_arguments(arguments), "topo test", FindingsFormat::Text, version)?;
        self.apply_stand_ins(&mut loaded, version, arguments.format)?;
        Ok(loaded)
    }

    /// Replaces the external objects of loaded specs with the stand-ins of the file.
    fn apply_stand_ins(&self, loaded: &mut Loaded, version: BrokerVersion, format: TestFormat) -> Result<(), Failure> {
        if self.file.stand_ins.is_empty() {
            return Ok(());
        }
        let mut found = Diagnostics::new();
        loaded.change_specs(&BrokerProfile::of(version), self.source.clone(), |spec| {
            found.extend(self.file.stand_ins.apply(spec, &self.source.name));
        })?;
        if found.is_empty() { Ok(()) } else { Err(report_errors(&found, &self.source, format)) }
    }

    /// Returns the arguments that load the specs of the file.
    pub(super) fn spec_arguments(&self, arguments: &TestArguments) -> SpecArguments {
        let vhost = self.file.vhost.as_ref().map(|vhost| vhost.value.clone());
        spec_arguments(self.specs.clone(), vhost, arguments)
    }
}

/// Returns the arguments that load specs.
pub(super) fn spec_arguments(paths: Vec<PathBuf>, vhost: Option<String>, arguments: &TestArguments) -> SpecArguments {
    SpecArguments {
        paths,
        file: Vec::new(),
        vhost,
        variables: arguments.variables.clone(),
        var_file: arguments.var_file.clone(),
        env: arguments.env.clone(),
    }
}

/// Prints the errors in a test file. Returns a failure without a message. If printing fails, returns the printing
/// error.
pub(super) fn report_errors(errors: &Diagnostics, source: &SourceFile, format: TestFormat) -> Failure {
    print_diagnostics(errors, source, format).err().unwrap_or_else(|| Failure::spec(""))
}

/// Prints the errors or warnings for a test file.
pub(super) fn print_diagnostics(found: &Diagnostics, source: &SourceFile, format: TestFormat) -> Result<(), Failure> {
    if format == TestFormat::Github {
        output::print(&annotations(found, std::slice::from_ref(source)))?;
    }
    output::eprint(&diagnostics(found, std::slice::from_ref(source), true, output::width()));
    Ok(())
}

/// Returns the paths of a test file's specs.
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
            .hint("or name the test file after its spec: NAME.test.yaml tests NAME.yaml")),
    }
}

/// Returns the test files at the paths: the files themselves, and the test files below the folders. Without paths,
/// searches the current folder.
pub(super) fn test_files(paths: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Failure> {
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
