//! Finds and reads spec files. Parses only the documents that declare environments.

use super::arguments::SpecArguments;
use super::environments::Environments;
use super::failure::Failure;
use super::files::{read_failure, refuse_link_out_of, refuse_unsafe_links};
use super::{files, variables};
use crate::model::VhostName;
use crate::model::printable::clean;
use crate::spec::{Diagnostic, Diagnostics, Environment, Location, SourceFile, Variables, guess_vhosts};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name of standard input in messages.
const STDIN: &str = "<stdin>";

/// The text of the specs, and the variables and flags that apply to the specs.
pub(super) struct Sources {
    pub(super) files: Vec<SourceFile>,
    /// The errors for files that are not UTF-8.
    pub(super) encoding_errors: Diagnostics,
    pub(super) variables: Variables,
    /// The vhost that `--vhost` specifies.
    pub(super) only: Option<String>,
    /// The paths of the specs, as command-line arguments.
    pub(super) specs: String,
    /// The paths of the specs, as messages show them.
    pub(super) names: String,
    /// The selected environment.
    pub(super) environment: Option<Environment>,
}

impl Sources {
    /// Reads the spec files and the variables. `command` precedes the specs in suggested commands.
    pub(super) fn read(arguments: &SpecArguments, command: &str) -> Result<Self, Failure> {
        let paths = paths(arguments, command)?;
        let mut pipes = Pipes::new();
        let (mut files, mut encoding_errors) = read_files(&paths, &BTreeSet::new(), &mut pipes)?;
        let environments = Environments::of(&files);
        let mut environment = environments.select(arguments.env.as_deref())?.cloned();
        if environments.have_specs() {
            let others = environments.other_specs(environment.as_ref());
            refuse_specs_of_other_environments(&paths, &others)?;
            let additional = environments.additional_specs(environment.as_ref());
            let all: Vec<PathBuf> = paths.iter().cloned().chain(additional).collect();
            (files, encoding_errors) = read_files(&all, &others, &mut pipes)?;
            // Selects the environment again, so that its positions refer to the files from the second read.
            environment = Environments::of(&files).select(arguments.env.as_deref())?.cloned();
        }
        let variables = variables::variables(arguments, environment.as_ref())?;
        variables::check_used(arguments, &files)?;
        let specs: Vec<String> = paths.iter().map(|path| files::path_argument(path)).collect();
        let shown = |path: &PathBuf| {
            if path.as_os_str() == "-" { STDIN.to_owned() } else { clean(&path.display().to_string()) }
        };
        let names: Vec<String> = paths.iter().map(shown).collect();
        let (only, specs, names) = (arguments.vhost.clone(), specs.join(" "), names.join(" "));
        Ok(Self { files, encoding_errors, variables, only, specs, names, environment })
    }

    /// Reads another spec with the same variables. The other spec need not use all of them.
    pub(super) fn read_other(
        arguments: &SpecArguments,
        path: &Path,
        environment: Option<&Environment>,
    ) -> Result<Self, Failure> {
        let (files, encoding_errors) = read_files(&[path.to_owned()], &BTreeSet::new(), &mut Pipes::new())?;
        let variables = variables::variables(arguments, environment)?;
        let names = clean(&path.display().to_string());
        let specs = files::path_argument(path);
        Ok(Self { files, encoding_errors, variables, only: None, specs, names, environment: None })
    }

    /// Guesses the vhosts of the specs from their text.
    pub(super) fn guess_vhosts(&self) -> Vec<VhostName> {
        let mut vhosts = guess_vhosts(&self.files);
        vhosts.retain(|vhost| self.only.as_ref().is_none_or(|only| vhost.as_str() == only));
        vhosts
    }
}

/// Refuses a spec on the command line that belongs to another environment, because topo would not read it.
fn refuse_specs_of_other_environments(paths: &[PathBuf], others: &BTreeSet<PathBuf>) -> Result<(), Failure> {
    let is_other = |path: &&PathBuf| path.canonicalize().is_ok_and(|path| others.contains(&path));
    match paths.iter().find(is_other) {
        Some(path) => {
            Err(Failure::usage(format!("{} belongs to another environment", clean(&path.display().to_string())))
                .hint("omit it: topo reads the additional specs of the selected environment"))
        }
        None => Ok(()),
    }
}

/// The contents of standard input and pipes, by path.
type Pipes = BTreeMap<PathBuf, Vec<u8>>;

/// Returns true if the arguments specify a spec, or if a default spec exists.
pub(super) fn has_spec(arguments: &SpecArguments) -> bool {
    paths(arguments, "").is_ok()
}

/// Returns the specified paths or, if there are none, the first default path that exists. Fails if no default path
/// exists either.
pub(super) fn paths(arguments: &SpecArguments, command: &str) -> Result<Vec<PathBuf>, Failure> {
    let specified: Vec<PathBuf> = arguments.paths.iter().chain(&arguments.file).cloned().collect();
    if !specified.is_empty() {
        return Ok(specified);
    }
    for default in ["topology.yaml", "topology"] {
        if Path::new(default).exists() {
            return Ok(vec![PathBuf::from(default)]);
        }
    }
    Err(Failure::usage(
        "no spec found: no file was specified, and the current directory contains neither topology.yaml nor topology/",
    )
    .hint(format!("specify one: {command} FILE"))
    .hint("or write one; the README contains an example"))
}

/// Reads the spec files without selecting an environment, to list the environments that they declare. Returns no files
/// if a spec comes from standard input or a pipe.
pub(super) fn files_without_environment(arguments: &SpecArguments, command: &str) -> Result<Vec<SourceFile>, Failure> {
    let paths = paths(arguments, command)?;
    let is_readable_again = |path: &PathBuf| path.is_file() || path.is_dir();
    if !paths.iter().all(is_readable_again) {
        return Ok(Vec::new());
    }
    Ok(read_files(&paths, &BTreeSet::new(), &mut Pipes::new())?.0)
}

/// Reads all spec files at the paths, and collects the errors for files that are not UTF-8. Skips the files in
/// `skipped`. `pipes` keeps the contents of standard input and pipes, which can be read only once.
fn read_files(
    paths: &[PathBuf],
    skipped: &BTreeSet<PathBuf>,
    pipes: &mut Pipes,
) -> Result<(Vec<SourceFile>, Diagnostics), Failure> {
    let mut files = Vec::new();
    let mut diagnostics = Diagnostics::new();
    let mut read = skipped.clone();
    for path in paths {
        // A path is read only once, even if the user specifies the path twice. Otherwise, the declarations in the file
        // would be duplicates.
        if !read.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
            continue;
        }
        if path.as_os_str() == "-" {
            if !pipes.contains_key(path) {
                let mut bytes = Vec::new();
                let read = std::io::stdin().lock().read_to_end(&mut bytes);
                read.map_err(|error| read_failure(Path::new(STDIN), &error))?;
                pipes.insert(path.clone(), bytes);
            }
            let source = decode(STDIN.to_owned(), pipes[path].clone(), files.len(), &mut diagnostics);
            files.push(source);
        } else if path.is_dir() {
            refuse_unsafe_links(path)?;
            let before = files.len();
            read_folder(path, path, &mut read, &mut files, &mut diagnostics)?;
            if files.len() == before && !has_read_file_in(path, &read) {
                return Err(Failure::spec(format!("no .yaml or .yml file in {}", path.display())));
            }
        } else {
            refuse_unsafe_links(path)?;
            let bytes = match pipes.get(path) {
                Some(bytes) => bytes.clone(),
                None => std::fs::read(path).map_err(|error| read_failure(path, &error))?,
            };
            if !path.is_file() {
                pipes.insert(path.clone(), bytes.clone());
            }
            let source = decode(clean(&path.display().to_string()), bytes, files.len(), &mut diagnostics);
            files.push(source);
        }
    }
    Ok((files, diagnostics))
}

/// Returns true if a file below the folder has already been read.
fn has_read_file_in(folder: &Path, read: &BTreeSet<PathBuf>) -> bool {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    read.iter().any(|file| *file != folder && file.starts_with(&folder))
}

/// Reads all YAML files below a folder, in name order. Skips hidden files and folders, and test files.
fn read_folder(
    root: &Path,
    path: &Path,
    read: &mut BTreeSet<PathBuf>,
    files: &mut Vec<SourceFile>,
    diagnostics: &mut Diagnostics,
) -> Result<(), Failure> {
    let failure = |error: std::io::Error| read_failure(path, &error);
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
        .map_err(failure)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failure)?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with('.') || files::stem_of_test_file(&name).is_some() {
            continue;
        }
        let is_yaml = entry.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        // topo does not follow a link to a folder, because the link may point back to this folder.
        if entry.is_dir() && !entry.is_symlink() {
            // The folder may contain the specs of another environment.
            if read.contains(&entry.canonicalize().unwrap_or_else(|_| entry.clone())) {
                continue;
            }
            read_folder(root, &entry, read, files, diagnostics)?;
            continue;
        }
        if is_yaml {
            refuse_link_out_of(root, &entry)?;
        }
        if is_yaml && entry.is_file() && read.insert(entry.canonicalize().unwrap_or_else(|_| entry.clone())) {
            let bytes = std::fs::read(&entry).map_err(|error| read_failure(&entry, &error))?;
            let source = decode(clean(&entry.display().to_string()), bytes, files.len(), diagnostics);
            files.push(source);
        }
    }
    Ok(())
}

/// Decodes a file as UTF-8. If the file is not UTF-8, adds an error and replaces the invalid bytes, so that topo also
/// finds the other errors in the file. Drops UTF-16 text.
fn decode(name: String, bytes: Vec<u8>, index: usize, diagnostics: &mut Diagnostics) -> SourceFile {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return SourceFile { name, text },
        Err(error) => error,
    };
    let start = bytes.utf8_error().valid_up_to();
    let bytes = bytes.into_bytes();
    let is_utf_16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let before = String::from_utf8_lossy(&bytes[..start]);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let hint = if is_utf_16 { "it looks like UTF-16: save it as UTF-8" } else { "save it as UTF-8" };
    // The error marks the replacement character. For UTF-16, the error marks nothing, because the text is dropped.
    let length = if is_utf_16 { 0 } else { char::REPLACEMENT_CHARACTER.len_utf8() };
    let at = Location { file: index, start, end: start + length, line, column };
    diagnostics.push(Diagnostic::error("encoding", format!("`{name}` is not UTF-8"), at).hint(hint));
    let text = String::from_utf8_lossy(if is_utf_16 { &bytes[..start] } else { &bytes }).into_owned();
    SourceFile { name, text }
}
