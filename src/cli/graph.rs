//! `topo graph`: the picture of what the specs stand for, or of what a saved plan does.

use super::arguments::FindingsFormat;
use super::exit::Exit;
use super::failure::Failure;
use super::graph_arguments::{GraphArguments, GraphFormat};
use super::{input, near, output};
use crate::behaviour::Dialect;
use crate::model::count::number;
use crate::model::{BrokerVersion, ObjectId};
use crate::picture::{Focus, Options, Picture, of_plan, of_spec};
use crate::plan::{Plan, PlannedChange, Wanted};
use crate::render::graph::{dot, json, mermaid, svg};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

pub(super) fn run(arguments: &GraphArguments) -> Result<Exit, Failure> {
    if let Some(path) = arguments.out.as_deref().filter(|path| !arguments.force && !is_replaceable(path)) {
        return Err(Failure::usage(format!(
            "{} is there already, and is no picture of topo's; nothing was written",
            path.display()
        ))
        .hint("choose another place, or replace it: --force"));
    }
    let format = format(arguments)?;
    let options = Options {
        all: arguments.show.is_some(),
        focus: arguments.focus.as_ref().map(|name| Focus { name: name.clone(), depth: arguments.depth }),
    };
    let picture = match &arguments.plan {
        Some(path) => of_saved(&plan_of(path, arguments)?, &options)?,
        None => of_specs(arguments, &options)?,
    };
    let text = match format {
        GraphFormat::Mermaid => in_mermaid(&picture, arguments.out.as_deref()),
        GraphFormat::Dot => dot::dot(&picture),
        GraphFormat::Svg => svg::svg(&picture),
        GraphFormat::Json => json::json(&picture),
    };
    match &arguments.out {
        Some(path) => output::write_public_file(path, &text)?,
        None => output::print(&text)?,
    }
    Ok(Exit::Done)
}

/// How every picture begins.
const BEGINNINGS: [&str; 5] = [
    "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topo\"",
    "digraph topology {",
    "flowchart LR\n  accTitle: RabbitMQ topology\n",
    "{\n  \"formatVersion\": 1,\n  \"isPlan\": ",
    "```mermaid\nflowchart LR\n  accTitle: RabbitMQ topology\n",
];

/// A picture is drawn again with every change, so an older one may go; a spec, or somebody's page, may not.
fn is_replaceable(path: &Path) -> bool {
    if !path.is_file() {
        // Nothing there, or nothing that is replaced by writing to it.
        return true;
    }
    let longest = BEGINNINGS.iter().map(|beginning| beginning.len()).max().unwrap_or_default();
    let mut beginning = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(longest as u64).read_to_end(&mut beginning));
    read.is_ok() && (beginning.is_empty() || BEGINNINGS.iter().any(|known| beginning.starts_with(known.as_bytes())))
}

/// As it was said; else as the file is named.
fn format(arguments: &GraphArguments) -> Result<GraphFormat, Failure> {
    if let Some(format) = arguments.format {
        return Ok(format);
    }
    let extension = arguments.out.as_deref().and_then(Path::extension).map(|it| it.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("svg") => Ok(GraphFormat::Svg),
        Some("dot" | "gv") => Ok(GraphFormat::Dot),
        Some("json") => Ok(GraphFormat::Json),
        Some("mmd" | "mermaid" | "md" | "markdown") | None => Ok(GraphFormat::Mermaid),
        // The name of a pipe or a device says nothing of what goes through it.
        Some(_) if arguments.out.as_deref().is_some_and(|path| path.exists() && !path.is_file()) => {
            Ok(GraphFormat::Mermaid)
        }
        Some(other) => {
            let failure = Failure::usage(format!("`topo graph` does not draw .{other} files"));
            Err(match other {
                "png" | "pdf" | "ps" | "eps" => failure.hint(format!(
                    "draw an SVG, and let another program make it one: topo graph --format svg | rsvg-convert -f {other} -o FILE"
                )),
                _ => failure.hint("name it .svg, .dot, .mmd, .md or .json, or use --format svg, dot, mermaid or json"),
            })
        }
    }
}

/// Mermaid draws inside Markdown; a Markdown file wants it fenced.
fn in_mermaid(picture: &Picture, out: Option<&Path>) -> String {
    let (text, arrows) = mermaid::mermaid(picture);
    if arrows > mermaid::MOST_ARROWS || text.len() > mermaid::MOST_CHARACTERS {
        output::tell(&format!(
            "{arrows} arrows in {} characters: GitHub draws no more than {} in {}. What is near one queue: --focus NAME; all \
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
    let mut loaded = input::load_for(&arguments.spec, "topo graph", FindingsFormat::Text, version)?;
    let dialect = Dialect::of(version);
    let wanted = loaded.take_wanted();
    let vhosts = wanted.iter().filter_map(|wanted| of_spec(wanted, &dialect, options)).collect();
    let picture = Picture { vhosts, is_plan: false };
    found(picture, options, "the spec declares", wanted.iter().flat_map(nameable))
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
    let changed = plan.vhosts.iter().flat_map(|part| &part.changes).filter(|change| change.retires.is_none());
    let known = plan.vhosts.iter().flat_map(|part| nameable(&part.wanted)).chain(changed.filter_map(PlannedChange::id));
    let picture = found(picture, options, "the plan knows", known)?;
    match plan.vhosts.iter().flat_map(|part| &part.changes).filter(is_of_policy).count() {
        0 => {}
        1 => output::tell("1 policy changes; it is not drawn; what it sets anew is marked\n"),
        many => output::tell(&format!(
            "{} policies change; they are not drawn; what they set anew is marked\n",
            number(many as u64)
        )),
    }
    Ok(picture)
}

fn is_of_policy(change: &&PlannedChange) -> bool {
    matches!(change.id(), Some(ObjectId::Policy(_)))
}

/// What a focus may be suggested for. What is made for retries is found by their queue.
fn nameable(wanted: &Wanted) -> Vec<ObjectId> {
    let Wanted { topology, scope, .. } = wanted;
    let made: BTreeSet<&ObjectId> = scope.families.iter().flat_map(|family| &family.members).collect();
    let queues = topology.queues.keys().cloned().map(ObjectId::Queue);
    let exchanges = topology.exchanges.keys().cloned().map(ObjectId::Exchange);
    queues.chain(exchanges).chain(scope.external.iter().cloned()).filter(|id| !made.contains(id)).collect()
}

/// The picture, unless nothing is in it because nothing has that name.
fn found(
    picture: Picture,
    options: &Options,
    who: &str,
    known: impl IntoIterator<Item = ObjectId>,
) -> Result<Picture, Failure> {
    match &options.focus {
        Some(focus) if picture.vhosts.is_empty() => {
            let asked = focus.name.as_str();
            let known: BTreeSet<String> = known
                .into_iter()
                .filter(|id| matches!(id, ObjectId::Queue(_) | ObjectId::Exchange(_)))
                .filter_map(|id| id.name().map(str::to_owned))
                .collect();
            let failure = Failure::usage(format!("{who} no queue and no exchange `{asked}`"));
            Err(match near::hint(asked, &known) {
                Some(hint) => failure.hint(hint),
                None => failure,
            })
        }
        Some(_) | None => Ok(picture),
    }
}
