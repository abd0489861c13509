//! `topo graph`: the picture of what the specs stand for, or of what a saved plan does.

use super::arguments::FindingsFormat;
use super::exit::Exit;
use super::failure::Failure;
use super::graph_arguments::{GraphArguments, GraphFormat};
use super::{input, output};
use crate::behaviour::Dialect;
use crate::model::{BrokerVersion, ObjectId, QueueName};
use crate::picture::{Focus, Options, Picture, of_plan, of_spec};
use crate::plan::Plan;
use crate::render::graph::{dot, mermaid, svg};
use crate::spec::closest;
use std::path::Path;

/// So many queues are suggested for a part of a name.
const MOST_HINTS: usize = 5;

pub(super) fn run(arguments: &GraphArguments) -> Result<Exit, Failure> {
    let options = Options {
        all: arguments.show.is_some(),
        focus: arguments.focus.as_ref().map(|queue| Focus { queue: QueueName::new(queue), depth: arguments.depth }),
    };
    let picture = match &arguments.plan {
        Some(path) => of_saved(&plan_of(path, arguments)?, &options)?,
        None => of_specs(arguments, &options)?,
    };
    let text = match format(arguments) {
        GraphFormat::Mermaid => in_mermaid(&picture, arguments.out.as_deref()),
        GraphFormat::Dot => dot::dot(&picture),
        GraphFormat::Svg => svg::svg(&picture),
    };
    match &arguments.out {
        Some(path) => output::write_public_file(path, &text)?,
        None => output::print(&text)?,
    }
    Ok(Exit::Done)
}

/// As it was said; else as the file is named.
fn format(arguments: &GraphArguments) -> GraphFormat {
    let extension = arguments.out.as_deref().and_then(Path::extension).map(|it| it.to_string_lossy().to_lowercase());
    arguments.format.unwrap_or(match extension.as_deref() {
        Some("svg") => GraphFormat::Svg,
        Some("dot" | "gv") => GraphFormat::Dot,
        Some(_) | None => GraphFormat::Mermaid,
    })
}

/// Mermaid draws inside Markdown; a Markdown file wants it fenced.
fn in_mermaid(picture: &Picture, out: Option<&Path>) -> String {
    let (text, arrows) = mermaid::mermaid(picture);
    if arrows > mermaid::MOST_ARROWS || text.len() > mermaid::MOST_CHARACTERS {
        output::tell(&format!(
            "{arrows} arrows in {} characters: GitHub draws no more than {} in {}. What is near one queue: --focus QUEUE; all \
             of it: --format svg\n",
            text.len(),
            mermaid::MOST_ARROWS,
            mermaid::MOST_CHARACTERS
        ));
    }
    let is_markdown = out.and_then(Path::extension).is_some_and(|it| it == "md" || it == "markdown");
    if is_markdown { format!("```mermaid\n{text}```\n") } else { text }
}

fn of_specs(arguments: &GraphArguments, options: &Options) -> Result<Picture, Failure> {
    let version = arguments.broker_version.unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let loaded = input::load_for(&arguments.spec, "topo graph", FindingsFormat::Text, version)?;
    let dialect = Dialect::of(version);
    let wanted = loaded.wanted();
    let vhosts = wanted.iter().filter_map(|wanted| of_spec(wanted, &dialect, options)).collect();
    let picture = Picture { vhosts, is_plan: false };
    let known = wanted.iter().flat_map(|wanted| {
        let external = wanted.scope.external.iter().filter_map(queue_of);
        wanted.topology.queues.keys().chain(external).map(QueueName::as_str)
    });
    found(picture, options, "the spec declares", known)
}

fn plan_of(path: &Path, arguments: &GraphArguments) -> Result<Plan, Failure> {
    let mut plan = input::any_saved_plan(path)?;
    if let Some(only) = &arguments.spec.vhost {
        let known: Vec<String> = plan.vhosts.iter().map(|part| part.vhost.to_string()).collect();
        plan.vhosts.retain(|part| part.vhost.as_str() == only);
        if plan.vhosts.is_empty() {
            return Err(Failure::usage(format!("the plan is not for vhost `{only}`"))
                .hint(format!("it is for {}", known.join(", "))));
        }
    }
    Ok(plan)
}

fn of_saved(plan: &Plan, options: &Options) -> Result<Picture, Failure> {
    let version = plan.target.version.parse().unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let dialect = Dialect::of(version);
    let vhosts = plan.vhosts.iter().filter_map(|part| of_plan(part, &dialect, options)).collect();
    let picture = Picture { vhosts, is_plan: true };
    let known: Vec<ObjectId> = plan
        .vhosts
        .iter()
        .flat_map(|part| {
            let wanted = part.wanted.topology.queues.keys().cloned().map(ObjectId::Queue);
            wanted.chain(part.changes.iter().filter_map(|change| change.id()))
        })
        .collect();
    found(picture, options, "the plan knows", known.iter().filter_map(queue_of).map(QueueName::as_str))
}

fn queue_of(id: &ObjectId) -> Option<&QueueName> {
    match id {
        ObjectId::Queue(name) => Some(name),
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) => None,
    }
}

/// The picture, unless nothing is in it because there is no such queue.
fn found<'a>(
    picture: Picture,
    options: &Options,
    who: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Result<Picture, Failure> {
    match &options.focus {
        Some(focus) if picture.vhosts.is_empty() => {
            let (asked, known): (&str, Vec<&str>) = (focus.queue.as_str(), known.into_iter().collect());
            let failure = Failure::usage(format!("{who} no queue `{asked}`"));
            let with_it: Vec<&str> =
                known.iter().filter(|name| name.contains(asked)).take(MOST_HINTS).copied().collect();
            Err(match (closest(asked, known.iter().copied()), with_it.is_empty()) {
                (Some(near), _) => failure.hint(format!("did you mean `{near}`?")),
                (None, false) => failure.hint(format!("did you mean one of `{}`?", with_it.join("`, `"))),
                (None, true) => failure,
            })
        }
        Some(_) | None => Ok(picture),
    }
}
