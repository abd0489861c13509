//! Finds and reads the files of specs, before they are parsed as YAML.

use super::arguments::SpecArguments;
use super::failure::Failure;
use super::files::{link_stays_in, stays_inside, unreadable};
use super::{files, variables};
use crate::model::VhostName;
use crate::model::printable::clean;
use crate::spec::{Diagnostic, Diagnostics, Location, SourceFile, Variables, guess_vhosts};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name of standard input in messages.
const STDIN: &str = "<stdin>";

/// The text of specs, and the variables and flags that apply to them.
pub(super) struct Sources {
    pub(super) files: Vec<SourceFile>,
    /// Errors found before the files are parsed as YAML.
    pub(super) unreadable: Diagnostics,
    pub(super) variables: Variables,
    /// The vhost of `--vhost`.
    pub(super) only: Option<String>,
    /// The specs as command-line arguments.
    pub(super) specs: String,
    /// The specs as shown in messages.
    pub(super) names: String,
}

impl Sources {
    /// Reads the files; `command` precedes the specs in suggested commands.
    pub(super) fn read(arguments: &SpecArguments, command: &str) -> Result<Self, Failure> {
        let paths = paths(arguments, command)?;
        let (files, unreadable) = files(&paths)?;
        let variables = variables::variables(arguments)?;
        variables::check_used(arguments, &files)?;
        let specs: Vec<String> = paths.iter().map(|path| files::path_argument(path)).collect();
        let shown = |path: &PathBuf| {
            if path.as_os_str() == "-" { STDIN.to_owned() } else { clean(&path.display().to_string()) }
        };
        let names: Vec<String> = paths.iter().map(shown).collect();
        let only = arguments.vhost.clone();
        Ok(Self { files, unreadable, variables, only, specs: specs.join(" "), names: names.join(" ") })
    }

    /// Guesses the vhosts of the specs from their text.
    pub(super) fn guess_vhosts(&self) -> Vec<VhostName> {
        let mut vhosts = guess_vhosts(&self.files);
        vhosts.retain(|vhost| self.only.as_ref().is_none_or(|only| vhost.as_str() == only));
        vhosts
    }
}

/// Returns true if a spec is named, or a default one exists.
pub(super) fn has_spec(arguments: &SpecArguments) -> bool {
    paths(arguments, "").is_ok()
}

/// Returns the specified paths, or the default one.
fn paths(arguments: &SpecArguments, command: &str) -> Result<Vec<PathBuf>, Failure> {
    let given: Vec<PathBuf> = arguments.paths.iter().chain(&arguments.file).cloned().collect();
    if !given.is_empty() {
        return Ok(given);
    }
    for usual in ["topology.yaml", "topology"] {
        if Path::new(usual).exists() {
            return Ok(vec![PathBuf::from(usual)]);
        }
    }
    Err(Failure::usage(
        "no spec found: no file was specified, and the current directory has no topology.yaml and no topology/",
    )
    .hint(format!("specify one: {command} FILE"))
    .hint("or write one; the README starts with an example"))
}

/// Reads all files of the paths, and collects the errors found before they are parsed as YAML.
fn files(paths: &[PathBuf]) -> Result<(Vec<SourceFile>, Diagnostics), Failure> {
    let mut files = Vec::new();
    let mut diagnostics = Diagnostics::new();
    let mut read = BTreeSet::new();
    for path in paths {
        // A path that is specified twice is read once; otherwise, its declarations would be duplicates.
        if !read.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
            continue;
        }
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| unreadable(Path::new(STDIN), &error))?;
            let source = source(STDIN.to_owned(), bytes, files.len(), &mut diagnostics);
            files.push(source);
        } else if path.is_dir() {
            stays_inside(path)?;
            let before = files.len();
            folder(path, path, &mut read, &mut files, &mut diagnostics)?;
            if files.len() == before && !has_read_file_in(path, &read) {
                return Err(Failure::spec(format!("no .yaml or .yml file in {}", path.display())));
            }
        } else {
            stays_inside(path)?;
            let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
            let source = source(clean(&path.display().to_string()), bytes, files.len(), &mut diagnostics);
            files.push(source);
        }
    }
    Ok((files, diagnostics))
}

/// Returns true if a file below the folder was already read.
fn has_read_file_in(folder: &Path, read: &BTreeSet<PathBuf>) -> bool {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    read.iter().any(|file| *file != folder && file.starts_with(&folder))
}

/// Reads all YAML files below a folder, sorted by name, without hidden ones.
fn folder(
    root: &Path,
    path: &Path,
    read: &mut BTreeSet<PathBuf>,
    files: &mut Vec<SourceFile>,
    diagnostics: &mut Diagnostics,
) -> Result<(), Failure> {
    let failure = |error: std::io::Error| unreadable(path, &error);
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
        .map_err(failure)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failure)?;
    entries.sort();
    for entry in entries {
        if entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            continue;
        }
        let yaml = entry.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        // A link to a folder is not followed, because it may lead back to this folder.
        if entry.is_dir() && !entry.is_symlink() {
            folder(root, &entry, read, files, diagnostics)?;
            continue;
        }
        if yaml {
            link_stays_in(&entry, root)?;
        }
        if yaml && entry.is_file() && read.insert(entry.canonicalize().unwrap_or_else(|_| entry.clone())) {
            let bytes = std::fs::read(&entry).map_err(|error| unreadable(&entry, &error))?;
            let source = source(clean(&entry.display().to_string()), bytes, files.len(), diagnostics);
            files.push(source);
        }
    }
    Ok(())
}

/// Converts a file to text. A file that is not UTF-8 is reported, and converted as far as possible to find its other
/// errors.
fn source(name: String, bytes: Vec<u8>, index: usize, diagnostics: &mut Diagnostics) -> SourceFile {
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
    // The length of the replacement character; UTF-16 text is dropped.
    let length = if is_utf_16 { 0 } else { char::REPLACEMENT_CHARACTER.len_utf8() };
    let at = Location { file: index, start, end: start + length, line, column };
    diagnostics.push(Diagnostic::error("encoding", format!("`{name}` is not UTF-8"), at).hint(hint));
    let text = String::from_utf8_lossy(if is_utf_16 { &bytes[..start] } else { &bytes }).into_owned();
    SourceFile { name, text }
}
