//! `topo validate`: checks specs offline, for one RabbitMQ version.

use super::arguments::{FindingsFormat, Global, SpecArguments};
use super::failure::{Exit, Failure};
use super::input::Loaded;
use super::plan_arguments::ValidateArguments;
use super::value_parsers::TypedVersion;
use super::{findings, input, output};
use crate::model::count::count;
use crate::model::record_kinds::RECORD_KINDS;
use crate::model::{BrokerVersion, Records};
use crate::render::diagnostics::diagnostics;
use crate::render::findings::{github, json};
use crate::render::style::{self, clean};
use crate::spec::{Diagnostics, Severity};

pub(super) fn run(arguments: &ValidateArguments, global: &Global) -> Result<Exit, Failure> {
    let environments = match &arguments.spec.env {
        Some(_) => Vec::new(),
        None => input::environment_names(&arguments.spec, "topo validate", arguments.format)?,
    };
    if environments.is_empty() {
        return validate(&arguments.spec, arguments, global);
    }
    if arguments.format == FindingsFormat::Json {
        return Err(Failure::usage("--format json requires --env, because JSON output is a single document")
            .hint(format!("select an environment with --env NAME: {}", clean(&environments.join(", ")))));
    }
    let mut first_failed = Exit::Done;
    for name in environments {
        let spec = SpecArguments { env: Some(name.clone()), ..arguments.spec.clone() };
        if arguments.format == FindingsFormat::Text && !global.quiet {
            output::eprint(&format!("environment {}\n", clean(&name)));
        }
        let exit = validate(&spec, arguments, global).unwrap_or_else(Failure::report);
        if first_failed == Exit::Done {
            first_failed = exit;
        }
    }
    Ok(first_failed)
}

/// Validates the specs, with the selected environment.
fn validate(spec: &SpecArguments, arguments: &ValidateArguments, global: &Global) -> Result<Exit, Failure> {
    let typed = arguments.broker_version.as_ref();
    let version = typed.map_or(BrokerVersion::NEWEST_KNOWN, |typed| typed.version);
    let loaded = input::load_for(spec, "topo validate", arguments.format, version)?;
    let found = findings::for_version(&loaded, version, &arguments.lint);
    match arguments.format {
        FindingsFormat::Json => output::print(&json(&found, &loaded.files, Some(version)))?,
        FindingsFormat::Github => output::print(&github(&found, &loaded.files))?,
        FindingsFormat::Text => {
            output::eprint(&diagnostics(&found, &loaded.files, true, output::width()));
            if !global.quiet {
                if !found.is_empty() {
                    output::eprint("\n");
                }
                if let Some(note) = findings::newer_version_note(version) {
                    output::eprint(&note);
                }
                output::print(&summary(&loaded, &found, typed))?;
            }
        }
    }
    if found.has_errors() {
        return Ok(Exit::Failed);
    }
    let limit = arguments.lint.fail_on.unwrap_or(Severity::Error);
    findings::lint_failure(found.iter().map(|it| it.severity), limit).map_or(Ok(Exit::Done), Err)
}

/// Summarizes the specs and the findings. `typed` is the value of `--broker-version`; `None` if no version is
/// specified.
fn summary(loaded: &Loaded, found: &Diagnostics, typed: Option<&TypedVersion>) -> String {
    let names = match &loaded.environment {
        Some(environment) => format!("{}, environment {}", clean(&loaded.names), clean(&environment.name)),
        None => clean(&loaded.names),
    };
    let mut text = String::new();
    if let Some((_, expansion)) = &loaded.cluster {
        let counts = record_counts(&expansion.topology.records);
        let counts = if counts.is_empty() { "no objects".to_owned() } else { counts.join(", ") };
        text.push_str(&wrap_sentence(&format!("{names}: cluster: {counts}")));
    }
    for (_, expansion) in &loaded.expanded {
        let topology = &expansion.topology;
        let records = record_counts(&topology.records).into_iter().map(|count| format!(", {count}"));
        let line = format!(
            "{names}: vhost {}: {}, {}, {}, {}{}",
            clean(topology.vhost.as_str()),
            count(topology.exchanges.len() as u64, "exchange"),
            count(topology.queues.len() as u64, "queue"),
            count(topology.bindings.len() as u64, "binding"),
            match topology.policies.len() {
                1 => "1 policy".to_owned(),
                many => format!("{many} policies"),
            },
            records.collect::<String>(),
        );
        text.push_str(&wrap_sentence(&line));
    }
    let number = |severity| found.iter().filter(|it| it.severity == severity).count() as u64;
    let counted = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Info, "info")]
        .map(|(severity, word)| (number(severity), word));
    let counts: Vec<String> =
        counted.iter().filter(|(number, _)| *number > 0).map(|(number, word)| count(*number, word)).collect();
    let verdict = match (found.has_errors(), counts.is_empty()) {
        (true, _) => format!("Not valid: {}.", counts.join(", ")),
        (false, false) => format!("Valid, with {}.", counts.join(", ")),
        (false, true) => "Valid.".to_owned(),
    };
    let checked = match typed {
        Some(typed) => typed.description(),
        None => format!("{}, the newest known; override with --broker-version", BrokerVersion::NEWEST_KNOWN),
    };
    text + &wrap_sentence(&format!("{verdict} Checked against RabbitMQ {checked}."))
}

/// Formats the number of records of each kind, without zero counts.
pub(super) fn record_counts(records: &Records) -> Vec<String> {
    let counts = RECORD_KINDS.iter().map(|row| (row, records.keys().filter(|id| id.kind == row.kind).count()));
    counts.filter(|(_, many)| *many > 0).map(|(row, many)| row.format_count(many)).collect()
}

/// Wraps a sentence at the output width.
fn wrap_sentence(sentence: &str) -> String {
    let words: Vec<String> = sentence.split(' ').map(str::to_owned).collect();
    style::wrap(&words, " ", output::width()).join("\n") + "\n"
}
