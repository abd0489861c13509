//! `topo explain`: a queue's life, from the specs alone; or the page of a lint rule.

use super::arguments::FindingsFormat;
use super::exit::Exit;
use super::failure::Failure;
use super::input::{self, Loaded};
use super::offline_arguments::{ExplainArguments, ExplainFormat};
use super::output;
use crate::behaviour::Dialect;
use crate::life::{Story, story};
use crate::lint::{RULES, Rule};
use crate::model::{BrokerVersion, QueueName};
use crate::render::life_text::{self, View};
use crate::render::style::for_version;
use crate::spec::closest;
use serde_json::json;

/// The version of the document's shape.
const FORMAT_VERSION: u32 = 1;

pub(super) fn run(arguments: &ExplainArguments) -> Result<Exit, Failure> {
    let what = arguments.what.as_str();
    let rule = RULES.iter().find(|rule| rule.name == what);
    let is_spec_named = !arguments.spec.paths.is_empty() || !arguments.spec.file.is_empty();
    // Rules are the same everywhere: no spec is read for them, unless one is named that may have a queue of that name.
    if let Some(rule) = rule.filter(|_| !is_spec_named) {
        return page(rule, arguments.format);
    }
    let version = arguments.broker_version.unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let loaded = input::load_for(&arguments.spec, FindingsFormat::Text, version)?;
    let dialect = Dialect::of(version);
    let name = QueueName::new(what);
    let told = |(spec, expansion): &(_, _)| story(&name, spec, expansion, &dialect);
    let stories: Vec<Story> = loaded.expanded.iter().filter_map(told).collect();
    match (&stories[..], rule) {
        ([], Some(rule)) => page(rule, arguments.format),
        ([], None) => Err(unknown(&loaded, what)),
        ([_, ..], _) => {
            output::print(&match arguments.format {
                ExplainFormat::Text => {
                    let (typed, version) = (typed(arguments, &loaded), for_version(arguments.broker_version));
                    let view = View { width: output::width(), typed: &typed, version: &version };
                    let texts: Vec<String> = stories.iter().map(|story| life_text::story(story, &view)).collect();
                    texts.join("\n")
                }
                ExplainFormat::Json => {
                    format!("{:#}\n", json!({ "formatVersion": FORMAT_VERSION, "stories": stories }))
                }
            })?;
            Ok(Exit::Done)
        }
    }
}

/// What was typed behind the queue, for the lines that tell what to type next.
fn typed(arguments: &ExplainArguments, loaded: &Loaded) -> String {
    let is_spec_named = !arguments.spec.paths.is_empty() || !arguments.spec.file.is_empty();
    let spec = input::flags(&arguments.spec, if is_spec_named { &loaded.specs } else { "" });
    let version = arguments.broker_version.map(|version| format!(" --broker-version {version}"));
    spec + &version.unwrap_or_default()
}

fn page(rule: &Rule, format: ExplainFormat) -> Result<Exit, Failure> {
    output::print(&match format {
        ExplainFormat::Text => rule.page.to_owned(),
        ExplainFormat::Json => {
            let told = json!({ "kind": "rule", "rule": rule.name, "summary": rule.summary, "page": rule.page });
            format!("{:#}\n", json!({ "formatVersion": FORMAT_VERSION, "stories": [told] }))
        }
    })?;
    Ok(Exit::Done)
}

/// Neither a queue of the specs nor a rule.
fn unknown(loaded: &Loaded, what: &str) -> Failure {
    let queues = || {
        let specs = loaded.expanded.iter().map(|(spec, _)| spec);
        specs.flat_map(|spec| {
            let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
            spec.queues.iter().chain(dead_letter_queues)
        })
    };
    if queues().any(|(name, queue)| name.as_str() == what && queue.is_external) {
        return Failure::usage(format!(
            "queue `{what}` is external: the spec says nothing of what becomes of its messages"
        ));
    }
    let failure = Failure::usage(format!("the spec declares no queue `{what}`, and no lint rule has that name"));
    let own = queues().filter(|(_, queue)| !queue.is_external).map(|(name, _)| name.as_str());
    match closest(what, own.chain(RULES.iter().map(|rule| rule.name))) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure,
    }
}
