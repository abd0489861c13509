//! `topo explain`: prints the lifecycle of messages in a queue of the specs, or the page of a lint rule, hazard, spec
//! key, error or term. `topo rules`: lists the lint rules with their severities. Neither command needs a broker.

use super::arguments::{ExplainFormat, FindingsFormat, SpecArguments};
use super::failure::{Exit, Failure};
use super::input::{self, Loaded};
use super::output;
use super::sources::{self, Sources};
use super::value_parsers::broker_version;
use crate::contract::lifecycle::{Explanation, explanation};
use crate::lint::{RULES, Rule};
use crate::model::printable::{clean, clean_json};
use crate::model::{BrokerVersion, QueueName};
use crate::plan::HazardKind;
use crate::rabbitmq::BrokerProfile;
use crate::render::glossary::{Term, term_of, terms};
use crate::render::lifecycle_text::{self, View};
use crate::render::shell::quote;
use crate::render::style::{self, Painted, YELLOW, for_version, wrap};
use crate::spec::{closest, code_names, code_page, key_names, key_of, key_page, parse_all};
use clap::Args;
use serde_json::{Value, json};

/// The format version of the JSON document of `topo explain`.
const FORMAT_VERSION: u32 = 1;

#[derive(Debug, Args)]
pub(super) struct RulesArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    /// Queue of the specs, lint rule, hazard, spec key, error code, or term of plans and reports
    #[arg(value_name = "QUEUE|RULE|HAZARD|KEY|WORD")]
    pub(super) what: String,
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// RabbitMQ version to assume [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
}

pub(super) fn run(arguments: &ExplainArguments) -> Result<Exit, Failure> {
    let what = arguments.what.as_str();
    let page = page(what);
    let has_spec_argument = !arguments.spec.paths.is_empty() || !arguments.spec.file.is_empty();
    // Pages need no spec. A spec on the command line may declare a queue with this name, which then takes precedence.
    if let Some(page) = page.as_ref().filter(|_| !has_spec_argument) {
        print(page, arguments.format)?;
        if let Some(spec) = hidden_queue(&arguments.spec, what) {
            let command = format!("topo explain {} {spec}", quote(what));
            output::eprint(&format!(
                "{} there is also a queue `{}`: {command}\n",
                Painted(YELLOW, "info:"),
                clean(what)
            ));
        }
        return Ok(Exit::Done);
    }
    let version = arguments.broker_version.unwrap_or(BrokerVersion::NEWEST_KNOWN);
    if !has_spec_argument && !sources::has_spec(&arguments.spec) {
        return match key_of(what).and_then(self::page) {
            Some(page) => print(&page, arguments.format),
            None => Err(unknown_name_without_spec(what)),
        };
    }
    let command = format!("topo explain {}", quote(what));
    let loaded = input::load_for(&arguments.spec, &command, FindingsFormat::Text, version)?;
    let profile = BrokerProfile::of(version);
    let name = QueueName::new(what);
    let explain = |(spec, expansion): &(_, _)| explanation(&name, spec, expansion, &profile);
    let stories: Vec<Explanation> = loaded.expanded.iter().filter_map(explain).collect();
    match (&stories[..], page.or_else(|| key_of(what).and_then(self::page))) {
        ([], Some(page)) => print(&page, arguments.format),
        ([], None) => Err(unknown_name(&loaded, what)),
        ([_, ..], _) => {
            output::print(&match arguments.format {
                ExplainFormat::Text => {
                    let (flags, version) = (flags(arguments, &loaded), for_version(arguments.broker_version));
                    let view = View { width: output::width(), flags: &flags, version: &version };
                    let texts: Vec<String> =
                        stories.iter().map(|explanation| lifecycle_text::explanation(explanation, &view)).collect();
                    texts.join("\n")
                }
                ExplainFormat::Json => {
                    clean_json(format!("{:#}\n", json!({ "formatVersion": FORMAT_VERSION, "stories": stories })))
                }
            })?;
            Ok(Exit::Done)
        }
    }
}

/// Returns the arguments that follow the queue in suggested commands.
fn flags(arguments: &ExplainArguments, loaded: &Loaded) -> String {
    let has_spec_argument = !arguments.spec.paths.is_empty() || !arguments.spec.file.is_empty();
    let spec = input::flags(&arguments.spec, if has_spec_argument { &loaded.specs } else { "" });
    let version = arguments.broker_version.map(|version| format!(" --broker-version {version}"));
    spec + &version.unwrap_or_default()
}

/// A page that needs no spec.
struct Page {
    kind: &'static str,
    name: String,
    summary: &'static str,
    text: String,
}

/// Returns the path argument of the default spec if that spec declares a queue with the name of the printed page,
/// otherwise `None`.
fn hidden_queue(arguments: &SpecArguments, name: &str) -> Option<String> {
    if !sources::has_spec(arguments) {
        return None;
    }
    let Sources { files, variables, specs, .. } = Sources::read(arguments, "topo explain").ok()?;
    let name = QueueName::new(name);
    let (parsed, _) = parse_all(&files, &variables);
    parsed
        .vhosts
        .iter()
        .any(|spec| spec.queues.contains_key(&name) || spec.dead_letter_queues.contains_key(&name))
        .then_some(specs)
}

/// Returns the page of a rule, hazard, key, error code or term, in this order of precedence. If a key or an error code
/// is also a term, its page includes the explanation of the term.
fn page(what: &str) -> Option<Page> {
    let new = |kind, summary, text| Some(Page { kind, name: what.to_owned(), summary, text });
    if let Some(rule) = RULES.iter().find(|rule| rule.name == what) {
        return new("rule", rule.summary, rule.page.to_owned());
    }
    if let Ok(hazard) = what.parse::<HazardKind>() {
        let allow = format!(
            "To allow this hazard, pass `--allow {hazard}@ADDRESS` as the plan prints it. Append `:N` to allow up to N \
             messages."
        );
        return new("hazard", hazard.meaning(), format!("# {hazard}\n\n{}\n\n{allow}\n", hazard.meaning()));
    }
    let term = term_of(what);
    let both = |text: String| match term {
        Some(term) => format!("{text}\nIn plans and reports: {}", term.body()),
        None => text,
    };
    if let Some(text) = key_page(what) {
        return new("key", "", both(text));
    }
    match code_page(what) {
        Some(text) => new("error", "", both(text)),
        None => new("word", "", term?.page()),
    }
}

fn print(page: &Page, format: ExplainFormat) -> Result<Exit, Failure> {
    output::print(&match format {
        ExplainFormat::Text => style::fold_page(&page.text, output::width()),
        ExplainFormat::Json => {
            let mut document = json!({ "kind": page.kind, "page": page.text });
            document[page.kind] = page.name.as_str().into();
            if !page.summary.is_empty() {
                document["summary"] = page.summary.into();
            }
            clean_json(format!("{:#}\n", json!({ "formatVersion": FORMAT_VERSION, "stories": [document] })))
        }
    })?;
    Ok(Exit::Done)
}

/// Returns the names of all pages.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let rules = RULES.iter().map(|rule| rule.name);
    let words = terms().flat_map(Term::words);
    rules.chain(HazardKind::ALL.map(HazardKind::as_str)).chain(key_names()).chain(code_names()).chain(words)
}

/// Returns the failure for an unknown name if no spec was read.
fn unknown_name_without_spec(what: &str) -> Failure {
    let failure = Failure::usage(format!("no lint rule, hazard, key, error or term is named `{what}`"));
    let failure = match closest(what, names()) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure,
    };
    failure.hint(format!("if it is a queue, specify the spec: topo explain {} FILE", quote(what)))
}

/// Returns the failure for a name that is neither a queue of the specs nor the name of a page.
fn unknown_name(loaded: &Loaded, what: &str) -> Failure {
    let queues = || {
        let specs = loaded.expanded.iter().map(|(spec, _)| spec);
        specs.flat_map(|spec| {
            let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
            spec.queues.iter().chain(dead_letter_queues)
        })
    };
    if queues().any(|(name, queue)| name.as_str() == what && queue.is_external) {
        return Failure::usage(format!(
            "queue `{what}` is external: the spec does not define what happens to its messages"
        ));
    }
    let failure = Failure::usage(format!(
        "the spec declares no queue `{what}`, and no lint rule, hazard, key, error or term has that name"
    ));
    let explainable = queues().filter(|(_, queue)| !queue.is_external).map(|(name, _)| name.as_str());
    let mut known: Vec<&str> = names().collect();
    known.extend(explainable);
    match closest(what, known) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure,
    }
}

/// The format version of the JSON document of `topo rules`.
const RULES_FORMAT_VERSION: u32 = 1;
/// The indentation of a rule's summary.
const RULE_INDENT: &str = "    ";

pub(super) fn rules(arguments: &RulesArguments) -> Result<Exit, Failure> {
    output::print(&match arguments.format {
        ExplainFormat::Text => rules_text(output::width()),
        ExplainFormat::Json => {
            let rules: Vec<Value> = RULES.iter().map(|rule| rule_document(rule)).collect();
            format!("{:#}\n", json!({ "formatVersion": RULES_FORMAT_VERSION, "rules": rules }))
        }
    })?;
    Ok(Exit::Done)
}

fn rule_document(rule: &Rule) -> Value {
    json!({
        "name": rule.name,
        "severity": rule.severity.as_str(),
        "otherSeverities": rule.other_severities.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
        "isOptional": rule.is_optional,
        "summary": rule.summary,
    })
}

fn rules_text(width: usize) -> String {
    let longest = RULES.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for rule in RULES {
        let level = rule.level();
        let words: Vec<String> = rule.summary.split(' ').map(str::to_owned).collect();
        let summary = wrap(&words, " ", width.saturating_sub(RULE_INDENT.len())).join(&format!("\n{RULE_INDENT}"));
        text.push_str(&format!("{:longest$}  {level}\n{RULE_INDENT}{summary}\n", rule.name));
    }
    text + "\nTo explain a rule: topo explain RULE\nTo change its level: --lint RULE=LEVEL, or `lint:` in a spec\n"
}
