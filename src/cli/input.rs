//! Reads specs and saved plans; what a spec stands for depends on the broker that it is for.

use super::arguments::{FindingsFormat, SpecArguments};
use super::failure::Failure;
use super::output;
use super::shell;
use super::variables;
use crate::behaviour::Dialect;
use crate::expand::{Because, Expansion, Origin, expand};
use crate::model::{BrokerVersion, ObjectId, QueueName, VhostName};
use crate::plan::document::FORMAT_VERSION;
use crate::plan::{Plan, Source, Wanted};
use crate::render::diagnostics::diagnostics;
use crate::render::findings;
use crate::spec::{Diagnostic, Diagnostics, Location, SourceFile, Spec, parse};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name of what has none.
const STDIN: &str = "<stdin>";

/// The specs, a vhost each.
pub(super) struct Loaded {
    /// What was written, and what it stands for.
    pub(super) expanded: Vec<(Spec, Expansion)>,
    pub(super) files: Vec<SourceFile>,
    /// The specs as they would be typed.
    pub(super) specs: String,
    /// The specs as people are shown them.
    pub(super) names: String,
    format: FindingsFormat,
}

/// Reads, parses and expands the specs; findings go to standard error. They are expanded for the newest broker first: what
/// is wrong there is wrong on every one, so it is said before any is asked.
///
/// `command` is what is typed in front of the specs.
pub(super) fn load(arguments: &SpecArguments, command: &str) -> Result<Loaded, Failure> {
    load_for(arguments, command, FindingsFormat::Text, BrokerVersion::NEWEST_KNOWN)
}

/// The same for that version, with the findings in a format: other than text, they are the result and go to standard
/// output.
pub(super) fn load_for(
    arguments: &SpecArguments,
    command: &str,
    format: FindingsFormat,
    version: BrokerVersion,
) -> Result<Loaded, Failure> {
    let paths = paths(arguments, command)?;
    let (files, unreadable) = files(&paths)?;
    let variables = variables::variables(arguments)?;
    variables::are_used(arguments, &files)?;
    let parsed = match parse(&files, &variables) {
        Ok(parsed) if unreadable.is_empty() => parsed,
        Ok(_) => return Err(refused(&unreadable, &files, format)),
        Err(found) => return Err(refused(&unreadable.and(found), &files, format)),
    };
    let dialect = Dialect::of(version);
    let mut expanded = expanded_for(parsed.into_iter().map(|spec| (spec, &dialect)))
        .map_err(|found| refused(&found, &files, format))?;
    if let Some(only) = &arguments.vhost {
        let known: Vec<String> = expanded.iter().map(|(spec, _)| spec.vhost.value.to_string()).collect();
        expanded.retain(|(spec, _)| spec.vhost.value.as_str() == only);
        if expanded.is_empty() {
            return Err(Failure::usage(format!("no spec is for vhost `{only}`"))
                .hint(format!("they are for {}", known.join(", "))));
        }
    }
    let specs: Vec<String> = paths.iter().map(|path| shell::quoted(&path.to_string_lossy())).collect();
    let shown = |path: &PathBuf| if path.as_os_str() == "-" { STDIN.to_owned() } else { path.display().to_string() };
    let names: Vec<String> = paths.iter().map(shown).collect();
    Ok(Loaded { expanded, files, specs: specs.join(" "), names: names.join(" "), format })
}

fn expanded_for<'a>(specs: impl Iterator<Item = (Spec, &'a Dialect)>) -> Result<Vec<(Spec, Expansion)>, Diagnostics> {
    let mut expanded = Vec::new();
    let mut findings = Diagnostics::new();
    for (spec, dialect) in specs {
        match expand(&spec, dialect) {
            Ok(expansion) => expanded.push((spec, expansion)),
            Err(more) => findings.extend(more),
        }
    }
    if findings.is_empty() { Ok(expanded) } else { Err(findings) }
}

impl Loaded {
    /// The vhosts, in order.
    pub(super) fn vhosts(&self) -> Vec<VhostName> {
        self.expanded.iter().map(|(spec, _)| spec.vhost.value.clone()).collect()
    }

    /// Expands the specs again, for the brokers that were found, each by the spec's place.
    pub(super) fn expand_for<'a>(&mut self, dialect: impl Fn(usize) -> &'a Dialect) -> Result<(), Failure> {
        let specs = std::mem::take(&mut self.expanded).into_iter().enumerate();
        let expanded = expanded_for(specs.map(|(index, (spec, _))| (spec, dialect(index))));
        self.expanded = expanded.map_err(|found| refused(&found, &self.files, self.format))?;
        Ok(())
    }

    /// What the specs want, in the same order.
    pub(super) fn wanted(&self) -> Vec<Wanted> {
        self.expanded.iter().map(|(_, expansion)| wanted_by(expansion.clone())).collect()
    }
}

fn refused(found: &Diagnostics, files: &[SourceFile], format: FindingsFormat) -> Failure {
    let silent = Failure::spec("");
    let printed = match format {
        FindingsFormat::Text => {
            output::tell(&diagnostics(found, files, true, output::width()));
            Ok(())
        }
        FindingsFormat::Json => output::print(&findings::json(found, files, None)),
        FindingsFormat::Github => output::print(&findings::github(found, files)),
    };
    printed.err().unwrap_or(silent)
}

/// Whether there is any spec to read, named or not.
pub(super) fn is_any(arguments: &SpecArguments) -> bool {
    paths(arguments, "").is_ok()
}

/// The paths that were given, or the ones that everybody uses.
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
    Err(Failure::usage("there is no spec: no file was named, and there is no topology.yaml and no topology/ here")
        .hint(format!("name one: {command} FILE"))
        .hint("or write one; the README begins with an example"))
}

/// All files of the paths, and what is wrong with them before they are read as YAML.
fn files(paths: &[PathBuf]) -> Result<(Vec<SourceFile>, Diagnostics), Failure> {
    let mut files = Vec::new();
    let mut diagnostics = Diagnostics::new();
    let mut read = BTreeSet::new();
    for path in paths {
        // What is named twice is read once: it would contradict itself.
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
            let before = files.len();
            folder(path, &mut read, &mut files, &mut diagnostics)?;
            if files.len() == before && !is_any_read_in(path, &read) {
                return Err(Failure::spec(format!("there is no .yaml or .yml file in {}", path.display())));
            }
        } else {
            let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
            let source = source(path.display().to_string(), bytes, files.len(), &mut diagnostics);
            files.push(source);
        }
    }
    Ok((files, diagnostics))
}

/// Whether a file below the folder was named before it.
fn is_any_read_in(folder: &Path, read: &BTreeSet<PathBuf>) -> bool {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    read.iter().any(|file| *file != folder && file.starts_with(&folder))
}

/// All YAML files of a folder and its folders, by name; hidden ones are not read.
fn folder(
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
        // A link to a folder is not followed: it may lead back here.
        if entry.is_dir() && !entry.is_symlink() {
            folder(&entry, read, files, diagnostics)?;
        } else if yaml && entry.is_file() && read.insert(entry.canonicalize().unwrap_or_else(|_| entry.clone())) {
            let bytes = std::fs::read(&entry).map_err(|error| unreadable(&entry, &error))?;
            let source = source(entry.display().to_string(), bytes, files.len(), diagnostics);
            files.push(source);
        }
    }
    Ok(())
}

/// A file as text. What is not UTF-8 is reported, and read as far as it goes, for the other errors in it.
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
    // What a byte that is none becomes; nothing is left of UTF-16.
    let length = if is_utf_16 { 0 } else { char::REPLACEMENT_CHARACTER.len_utf8() };
    let at = Location { file: index, start, end: start + length, line, column };
    diagnostics.push(Diagnostic::error("encoding", format!("`{name}` is not UTF-8"), at).hint(hint));
    let text = String::from_utf8_lossy(if is_utf_16 { &bytes[..start] } else { &bytes }).into_owned();
    SourceFile { name, text }
}

/// The specs and their flags again, as they would be typed: for the lines that tell what to type next.
pub(super) fn flags(arguments: &SpecArguments, specs: &str) -> String {
    let mut line = if specs.is_empty() { String::new() } else { format!(" {specs}") };
    let mut flag = |name: &str, value: &str| line.push_str(&format!(" --{name} {}", shell::quoted(value)));
    if let Some(vhost) = &arguments.vhost {
        flag("vhost", vhost);
    }
    for file in &arguments.var_file {
        flag("var-file", &file.display().to_string());
    }
    // What the environment said it says again, and nobody sees it.
    let silent = std::env::var("TOPO_VAR").ok();
    for (name, value) in &arguments.variables {
        let typed = format!("{name}={value}");
        if silent.as_ref() != Some(&typed) {
            flag("var", &typed);
        }
    }
    line
}

/// A plan that `topo plan --out` wrote, and that can be applied.
pub(super) fn saved_plan(path: &Path) -> Result<Plan, Failure> {
    let plan = any_saved_plan(path)?;
    if plan.target.cluster.is_empty() {
        return Err(Failure::usage("that plan was made without a broker (--against), so it cannot be applied")
            .hint("plan against the broker: topo plan --out plan.json"));
    }
    Ok(plan)
}

/// A plan that `topo plan --out` wrote.
pub(super) fn any_saved_plan(path: &Path) -> Result<Plan, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let wrong = |error: serde_json::Error| {
        Failure::spec(format!("{} is not a plan", path.display()))
            .because(error.to_string())
            .hint("write one: topo plan --out plan.json")
    };
    let version: serde_json::Value = serde_json::from_str(&text).map_err(wrong)?;
    match version.get("formatVersion").and_then(serde_json::Value::as_u64) {
        Some(version) if version != u64::from(FORMAT_VERSION) => {
            return Err(Failure::spec(format!(
                "{} has format version {version}, this topo reads {FORMAT_VERSION}",
                path.display()
            ))
            .hint("plan again with this topo: topo plan --out plan.json"));
        }
        Some(_) | None => {}
    }
    serde_json::from_str(&text).map_err(wrong)
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::spec(format!("cannot read {}", path.display())).because(error.to_string())
}

/// What a plan keeps of an expanded spec.
fn wanted_by(expansion: Expansion) -> Wanted {
    let has_exchange: BTreeSet<QueueName> = expansion
        .origins
        .values()
        .filter_map(|origin| match &origin.because {
            Because::DeadLetterExchange(queue) | Because::DeadLetterBinding(queue) => Some(queue.clone()),
            Because::Declared | Because::DeadLetterPolicy(_) | Because::Retry(_) => None,
        })
        .collect();
    let part_of = |id: &ObjectId, because: Because| match (id, because) {
        (ObjectId::Queue(name), _) => has_exchange.get(name).cloned(),
        (_, Because::DeadLetterExchange(queue)) => Some(queue),
        (_, Because::Declared | Because::DeadLetterBinding(_) | Because::DeadLetterPolicy(_) | Because::Retry(_)) => {
            None
        }
    };
    let source = |id: &ObjectId, origin: Origin| Source {
        file: origin.file,
        line: origin.line,
        column: origin.column,
        places: origin.places,
        part_of: part_of(id, origin.because),
    };
    let sources = expansion.origins.into_iter().map(|(id, origin)| {
        let source = source(&id, origin);
        (id, source)
    });
    Wanted { topology: expansion.topology, scope: expansion.scope, sources: sources.collect() }
}
