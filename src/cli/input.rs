//! From the text of specs and saved plans to what they say; what a spec stands for depends on the broker that it is for.

use super::arguments::{FindingsFormat, SpecArguments};
use super::failure::Failure;
use super::output;
use super::shell;
use super::sources::Sources;
use crate::behaviour::Dialect;
use crate::expand::{Because, Expansion, Origin, expand};
use crate::lint::Mistaken;
use crate::model::{BrokerVersion, ObjectId, QueueName, VhostName};
use crate::plan::document::FORMAT_VERSION;
use crate::plan::fingerprint::inconsistency;
use crate::plan::{Plan, Source, Wanted};
use crate::render::diagnostics::diagnostics;
use crate::render::findings;
use crate::spec::{Diagnostics, SourceFile, Spec, parse_all};
use std::collections::BTreeSet;
use std::path::Path;

/// The specs, a vhost each.
pub(super) struct Loaded {
    /// What was written, and what it stands for.
    pub(super) expanded: Vec<(Spec, Expansion)>,
    /// For which broker each of them is expanded.
    dialects: Vec<Dialect>,
    pub(super) files: Vec<SourceFile>,
    /// The specs as they would be typed.
    pub(super) specs: String,
    /// The specs as people are shown them.
    pub(super) names: String,
    format: FindingsFormat,
}

/// Parses and expands the specs; findings go to standard error.
pub(super) fn load(sources: Sources) -> Result<Loaded, Failure> {
    load_for_known(sources, |_| None)
}

/// The same for the brokers that are known by now. A spec whose broker is not is expanded for the newest: what is wrong
/// there is wrong on every one, so it is reported without waiting for a broker.
pub(super) fn load_for_known(
    sources: Sources,
    known: impl Fn(&VhostName) -> Option<Dialect>,
) -> Result<Loaded, Failure> {
    let newest = Dialect::of(BrokerVersion::NEWEST_KNOWN);
    loaded(sources, FindingsFormat::Text, |vhost| known(vhost).unwrap_or_else(|| newest.clone()))
}

/// The same for that version, with the findings in a format: other than text, they are the result and go to standard
/// output. `command` is what is typed in front of the specs.
pub(super) fn load_for(
    arguments: &SpecArguments,
    command: &str,
    format: FindingsFormat,
    version: BrokerVersion,
) -> Result<Loaded, Failure> {
    let dialect = Dialect::of(version);
    loaded(Sources::read(arguments, command)?, format, |_| dialect.clone())
}

fn loaded(
    sources: Sources,
    format: FindingsFormat,
    dialect_of: impl Fn(&VhostName) -> Dialect,
) -> Result<Loaded, Failure> {
    let Sources { files, unreadable, variables, only, specs, names } = sources;
    let (parsed, wrong) = parse_all(&files, &variables);
    let wrong = unreadable.and(wrong);
    let mut dialects: Vec<Dialect> = parsed.iter().map(|spec| dialect_of(&spec.vhost.value)).collect();
    let for_each = || parsed.iter().zip(&dialects);
    let expansions: Result<Vec<Expansion>, _> = for_each().map(|(spec, dialect)| expand(spec, dialect)).collect();
    let mut expanded: Vec<(Spec, Expansion)> = match expansions {
        Ok(expansions) if wrong.is_empty() => parsed.into_iter().zip(expansions).collect(),
        Ok(_) | Err(_) => {
            // What is sound is looked at as closely as ever: all that is wrong is said at once.
            let rest = for_each().map(|(spec, dialect)| Mistaken::new(spec, &wrong).errors(dialect));
            let all = rest.fold(wrong.clone(), Diagnostics::and);
            return Err(refused(&all, &files, format));
        }
    };
    if let Some(only) = &only {
        let known: Vec<String> = expanded.iter().map(|(spec, _)| spec.vhost.value.to_string()).collect();
        // Together: a second question could be answered in another way.
        let of_vhost = |((spec, _), _): &((Spec, Expansion), Dialect)| spec.vhost.value.as_str() == only;
        (expanded, dialects) = expanded.into_iter().zip(dialects).filter(of_vhost).unzip();
        if expanded.is_empty() {
            return Err(Failure::usage(format!("no spec is for vhost `{only}`"))
                .hint(format!("they are for {}", known.join(", "))));
        }
    }
    Ok(Loaded { expanded, dialects, files, specs, names, format })
}

impl Loaded {
    /// The vhosts, in order.
    pub(super) fn vhosts(&self) -> Vec<VhostName> {
        self.expanded.iter().map(|(spec, _)| spec.vhost.value.clone()).collect()
    }

    /// Expands those specs again that were expanded for another broker than the one that was found, by the spec's place.
    pub(super) fn expand_for<'a>(&mut self, dialect: impl Fn(usize) -> &'a Dialect) -> Result<(), Failure> {
        let mut findings = Diagnostics::new();
        for (index, ((spec, expansion), known)) in self.expanded.iter_mut().zip(&mut self.dialects).enumerate() {
            let found = dialect(index);
            if known == found {
                continue;
            }
            match expand(spec, found) {
                Ok(for_found) => (*expansion, *known) = (for_found, found.clone()),
                Err(more) => findings.extend(more),
            }
        }
        if findings.is_empty() { Ok(()) } else { Err(refused(&findings, &self.files, self.format)) }
    }

    /// What the specs want, in the same order. What was written is forgotten by it: of a large spec that is much, and a
    /// plan needs none of it.
    pub(super) fn take_wanted(&mut self) -> Vec<Wanted> {
        std::mem::take(&mut self.expanded).into_iter().map(|(_, expansion)| wanted_by(expansion)).collect()
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

/// The specs and their flags again, as they would be typed: for the lines that tell what to type next.
pub(super) fn flags(arguments: &SpecArguments, specs: &str) -> String {
    let mut line = if specs.is_empty() { String::new() } else { format!(" {specs}") };
    if let Some(vhost) = &arguments.vhost {
        line.push_str(&format!(" --vhost {}", shell::quoted(vhost)));
    }
    for file in &arguments.var_file {
        line.push_str(&format!(" --var-file {}", shell::path(file)));
    }
    // What the environment said it says again, and nobody sees it.
    let silent = std::env::var("TOPO_VAR").ok();
    for (name, value) in &arguments.variables {
        let typed = format!("{name}={value}");
        if silent.as_ref() != Some(&typed) {
            line.push_str(&format!(" --var {}", shell::quoted(&typed)));
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
    let document: serde_json::Value = serde_json::from_str(&text).map_err(wrong)?;
    let version = document.get("formatVersion").and_then(serde_json::Value::as_u64);
    if let Some(version) = version.filter(|version| *version != u64::from(FORMAT_VERSION)) {
        return Err(Failure::spec(format!(
            "{} was written by another version of topo: it has format version {version}, this topo reads {FORMAT_VERSION}",
            path.display()
        ))
        .hint("plan again with this topo: topo plan --out plan.json"));
    }
    let plan: Plan = serde_json::from_str(&text).map_err(|error| match version {
        // Between two releases the format changes without a version of its own.
        Some(_) => wrong(error).hint("if another version of topo wrote it, plan again with this one"),
        None => wrong(error),
    })?;
    match inconsistency(&plan) {
        Some(why) => Err(Failure::spec(format!("{} was edited after topo wrote it", path.display()))
            .because(why)
            .hint("plan again: topo plan --out plan.json")),
        None => Ok(plan),
    }
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
