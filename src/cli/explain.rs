//! `topo explain`: prints the lifecycle of messages in a queue that the specs declare, or the page for a lint rule,
//! hazard, spec key, error or term. `--live` adds the current counts of the queues, and is the only form that needs a
//! broker.

use super::arguments::{ExplainFormat, FindingsFormat, Global, SpecArguments};
use super::connection::{self, ConnectionArguments};
use super::failure::{Exit, Failure, no_such_vhost};
use super::input::{self, Loaded};
use super::output;
use super::progress::Progress;
use super::sources::{self, Sources};
use super::value_parsers::broker_version;
use crate::contract::lifecycle::{Explanation, explanation};
use crate::lint::RULES;
use crate::model::printable::{clean, clean_json};
use crate::model::{BrokerVersion, Intervals, QueueName};
use crate::operate::counts::current_counts;
use crate::plan::HazardKind;
use crate::rabbitmq::BrokerProfile;
use crate::render::glossary::{Term, term_of, terms};
use crate::render::lifecycle_counts::explanation_json;
use crate::render::lifecycle_text::{self, View};
use crate::render::shell::quote;
use crate::render::style::{self, Painted, YELLOW, for_version};
use crate::spec::{QueueSpec, closest, code_names, code_page, key_names, key_of, key_page, parse_all};
use clap::Args;
use clap::builder::BoolishValueParser;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The format version of the JSON document of `topo explain`.
const FORMAT_VERSION: u32 = 1;

#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    /// Name of a queue in the specs, a lint rule, a hazard, a spec key, an error code, or a term from plans and reports
    #[arg(value_name = "QUEUE|RULE|HAZARD|KEY|WORD")]
    pub(super) what: String,
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// RabbitMQ version to assume without --live [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
    /// Show the current messages and consumers of the queue, its tiers and its dead-letter queues
    #[arg(long, env = "TOPO_LIVE", value_parser = BoolishValueParser::new())]
    pub(super) live: bool,
    #[command(flatten)]
    pub(super) connection: ConnectionArguments,
}

pub(super) async fn run(arguments: &ExplainArguments, global: &Global) -> Result<Exit, Failure> {
    let what = arguments.what.as_str();
    if arguments.live {
        return live(arguments, global).await;
    }
    let page = page(what);
    let has_spec_argument = !arguments.spec.paths.is_empty() || !arguments.spec.file.is_empty();
    // Pages need no spec. A spec on the command line may declare a queue with this name, which then takes precedence.
    if let Some(page) = page.as_ref().filter(|_| !has_spec_argument) {
        print(page, arguments.format)?;
        if let Some(spec) = hidden_queue(&arguments.spec, what) {
            let command = format!("topo explain {} {spec}", quote(what));
            output::eprint(&format!(
                "{} the spec also declares a queue `{}`; to explain it: {command}\n",
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
    let explanations: Vec<Explanation> = loaded.expanded.iter().filter_map(explain).collect();
    match (&explanations[..], page.or_else(|| key_of(what).and_then(self::page))) {
        ([], Some(page)) => print(&page, arguments.format),
        ([], None) => Err(unknown_name(&loaded, what)),
        ([_, ..], _) => {
            let version = arguments.broker_version.map(|version| format!(" --broker-version {version}"));
            let flags = flags(arguments, &loaded) + &version.unwrap_or_default();
            let version = for_version(arguments.broker_version);
            let view = View { width: output::width(), flags: &flags, connection: "", version: &version, live: None };
            print_explanations(&explanations, arguments.format, &view)
        }
    }
}

fn print_explanations(explanations: &[Explanation], format: ExplainFormat, view: &View<'_>) -> Result<Exit, Failure> {
    output::print(&match format {
        ExplainFormat::Text => {
            let texts: Vec<String> =
                explanations.iter().map(|explanation| lifecycle_text::explanation(explanation, view)).collect();
            texts.join("\n")
        }
        ExplainFormat::Json => {
            let documents: Vec<Value> =
                explanations.iter().map(|explanation| explanation_json(explanation, view.live)).collect();
            clean_json(format!("{:#}\n", json!({ "formatVersion": FORMAT_VERSION, "explanations": documents })))
        }
    })?;
    Ok(Exit::Done)
}

/// Explains a queue with its current counts, for the version of the broker.
async fn live(arguments: &ExplainArguments, global: &Global) -> Result<Exit, Failure> {
    connection::refuse_password(&arguments.connection)?;
    let mut loaded = input::load(Sources::read(&arguments.spec, "topo explain QUEUE --live")?)?;
    let access = connection::connect_to(&arguments.connection, loaded.environment.as_ref(), Intervals::default())?;
    let reading = Progress::new(global).start_spinner(format!("reading {}", access.broker.shown_url()));
    let survey = access.broker.survey().await?;
    let profiles: Vec<BrokerProfile> = loaded.vhosts().iter().map(|vhost| survey.profile(vhost)).collect();
    let newest = BrokerProfile::of(BrokerVersion::NEWEST_KNOWN);
    loaded.expand_for(|index| profiles.get(index).unwrap_or(&newest))?;
    let name = QueueName::new(arguments.what.as_str());
    let (mut explanations, mut counts) = (Vec::new(), BTreeMap::new());
    for ((spec, expansion), profile) in loaded.expanded.iter().zip(&profiles) {
        let Some(found) = explanation(&name, spec, expansion, profile) else { continue };
        let vhost = &spec.vhost.value;
        if !survey.has_vhost(vhost) {
            return Err(no_such_vhost(vhost, &access.broker.vhosts().await?));
        }
        counts.insert(vhost.clone(), current_counts(&access, &expansion.topology, found.queues()).await?);
        explanations.push(found);
    }
    drop(reading);
    if explanations.is_empty() {
        return Err(unknown_queue(&loaded, &arguments.what));
    }
    let connection = connection::flags(&arguments.connection);
    let flags = format!("{} --live{connection}", flags(arguments, &loaded));
    let target = survey.target(access.broker.shown_url());
    let version = clean(&format!("{} {} at {}", target.product, target.version, target.url));
    let view =
        View { width: output::width(), flags: &flags, connection: &connection, version: &version, live: Some(&counts) };
    print_explanations(&explanations, arguments.format, &view)
}

/// Returns the specs and their flags, which follow the queue in suggested commands.
fn flags(arguments: &ExplainArguments, loaded: &Loaded) -> String {
    let has_spec_argument = !arguments.spec.paths.is_empty() || !arguments.spec.file.is_empty();
    input::flags(&arguments.spec, if has_spec_argument { &loaded.specs } else { "" })
}

/// A page that needs no spec.
struct Page {
    kind: &'static str,
    name: String,
    summary: &'static str,
    text: String,
}

/// Returns the path argument of the default spec if that spec declares a queue with the name of the printed page.
/// Returns `None` otherwise.
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

/// Returns the page for a rule, hazard, key, error code or term, in this order of precedence. If a key or an error code
/// is also a term, its page includes the explanation of the term.
fn page(what: &str) -> Option<Page> {
    let new = |kind, summary, text| Some(Page { kind, name: what.to_owned(), summary, text });
    if let Some(rule) = RULES.iter().find(|rule| rule.name == what) {
        return new("rule", rule.summary, rule.page.to_owned());
    }
    if let Ok(hazard) = what.parse::<HazardKind>() {
        let allow = format!(
            "To allow this hazard, pass the `--allow {hazard}@ADDRESS` flag that the plan shows. Append `:N` to allow up to N \
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
            clean_json(format!("{:#}\n", json!({ "formatVersion": FORMAT_VERSION, "explanations": [document] })))
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

/// Returns the failure for a name that is neither a queue in the specs nor the name of a page.
fn unknown_name(loaded: &Loaded, what: &str) -> Failure {
    if let Some(failure) = external_queue(loaded, what) {
        return failure;
    }
    with_suggestion(
        Failure::usage(format!(
            "the spec declares no queue `{what}`, and no lint rule, hazard, key, error or term has that name"
        )),
        what,
        names().map(|name| -> &str { name }).chain(explainable(loaded)),
    )
}

/// Returns the failure for a name that is not a queue in the specs.
fn unknown_queue(loaded: &Loaded, what: &str) -> Failure {
    if let Some(failure) = external_queue(loaded, what) {
        return failure;
    }
    let failure = Failure::usage(format!("the spec declares no queue `{what}`, and `--live` shows only queues"));
    with_suggestion(failure, what, explainable(loaded))
}

/// Returns the failure for an external queue; `None` for other names.
fn external_queue(loaded: &Loaded, what: &str) -> Option<Failure> {
    let is_external = declared(loaded).any(|(name, queue)| name.as_str() == what && queue.is_external);
    is_external.then(|| {
        Failure::usage(format!("queue `{what}` is external: the spec does not define what happens to its messages"))
    })
}

/// Returns the names of the queues whose lifecycles the specs define.
fn explainable(loaded: &Loaded) -> impl Iterator<Item = &str> {
    declared(loaded).filter(|(_, queue)| !queue.is_external).map(|(name, _)| name.as_str())
}

/// Returns the queues and dead-letter queues in the specs.
fn declared(loaded: &Loaded) -> impl Iterator<Item = (&QueueName, &QueueSpec)> {
    loaded.expanded.iter().flat_map(|(spec, _)| {
        let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
        spec.queues.iter().chain(dead_letter_queues)
    })
}

fn with_suggestion<'a>(failure: Failure, what: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    match closest(what, known) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure,
    }
}
