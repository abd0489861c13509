//! `topo graph`: draws the topology in the specs, or the changes in a saved plan.

use super::arguments::{FindingsFormat, Show, SpecArguments};
use super::failure::{Exit, Failure};
use super::value_parsers::{broker_version, whole_number};
use super::{hints, input, output};
use crate::graph::{Focus, Graph, Options, of_plan, of_spec};
use crate::model::count::number;
use crate::model::{BrokerVersion, ObjectId};
use crate::plan::{Desired, Plan, PlannedChange};
use crate::rabbitmq::BrokerProfile;
use crate::render::graph::{self as drawing, dot, mermaid, svg};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: &GraphArguments) -> Result<Exit, Failure> {
    if let Some(path) = arguments.out.as_deref().filter(|path| !arguments.force && !is_replaceable(path)) {
        return Err(Failure::usage(format!(
            "{} already exists and was not written by topo graph; nothing was written",
            path.display()
        ))
        .hint("choose another path, or replace it: --force"));
    }
    let format = format(arguments)?;
    let options = Options {
        all: arguments.show.is_some(),
        focus: arguments.focus.as_ref().map(|name| Focus { name: name.clone(), depth: arguments.depth }),
    };
    let graph = match &arguments.plan {
        Some(path) => graph_of_plan(&saved_plan(path, arguments)?, &options)?,
        None => graph_of_specs(arguments, &options)?,
    };
    let text = match format {
        GraphFormat::Mermaid => render_mermaid(&graph, arguments.out.as_deref()),
        GraphFormat::Dot => dot::dot(&graph),
        GraphFormat::Svg => svg::svg(&graph),
        GraphFormat::Json => drawing::json(&graph),
    };
    match &arguments.out {
        Some(path) => output::write_public_file(path, &text)?,
        None => output::print(&text)?,
    }
    Ok(Exit::Done)
}

/// The text at the beginning of a file that topo graph writes, for each format.
const BEGINNINGS: [&str; 5] = [
    "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topo\"",
    "digraph topology {",
    "flowchart LR\n  accTitle: RabbitMQ topology\n",
    "{\n  \"formatVersion\": 1,\n  \"isPlan\": ",
    "```mermaid\nflowchart LR\n  accTitle: RabbitMQ topology\n",
];

/// Returns true if topo may write to a path without `--force`: the path is not an existing regular file, or the file is
/// empty or contains an older graph. topo can draw a graph again, but cannot restore any other file.
fn is_replaceable(path: &Path) -> bool {
    if !path.is_file() {
        // The path does not exist, or is a device or a pipe, which topo writes to without replacing it.
        return true;
    }
    let longest = BEGINNINGS.iter().map(|beginning| beginning.len()).max().unwrap_or_default();
    let mut beginning = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(longest as u64).read_to_end(&mut beginning));
    read.is_ok() && (beginning.is_empty() || BEGINNINGS.iter().any(|known| beginning.starts_with(known.as_bytes())))
}

/// Returns the format that `--format` specifies. By default, derives the format from the extension of the output file.
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
        // The name of a pipe or device does not determine the format.
        Some(_) if arguments.out.as_deref().is_some_and(|path| path.exists() && !path.is_file()) => {
            Ok(GraphFormat::Mermaid)
        }
        Some(other) => {
            let failure = Failure::usage(format!("topo graph cannot write .{other} files"));
            Err(match other {
                "png" | "pdf" | "ps" | "eps" => failure.hint(format!(
                    "draw an SVG and convert it: topo graph --format svg | rsvg-convert -f {other} -o FILE"
                )),
                _ => failure
                    .hint("use the extension .svg, .dot, .mmd, .md or .json, or --format svg, dot, mermaid or json"),
            })
        }
    }
}

/// Renders the graph as Mermaid. For a Markdown file, encloses the diagram in a fenced code block.
fn render_mermaid(graph: &Graph, out: Option<&Path>) -> String {
    let (text, arrows) = mermaid::mermaid(graph);
    if arrows > mermaid::MAX_ARROWS || text.len() > mermaid::MAX_CHARACTERS {
        output::eprint(&format!(
            "the graph has {arrows} arrows and {} characters, but GitHub renders at most {} arrows and {} characters. \
             To draw the neighborhood of one queue: --focus NAME; to draw everything: --format svg\n",
            text.len(),
            mermaid::MAX_ARROWS,
            mermaid::MAX_CHARACTERS
        ));
    }
    let is_markdown = out.and_then(Path::extension).is_some_and(|it| it == "md" || it == "markdown");
    if is_markdown { format!("```mermaid\n{text}```\n") } else { text }
}

fn graph_of_specs(arguments: &GraphArguments, options: &Options) -> Result<Graph, Failure> {
    let version = arguments.broker_version.unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let mut loaded = input::load_for(&arguments.spec, "topo graph", FindingsFormat::Text, version)?;
    let profile = BrokerProfile::of(version);
    let desired = loaded.take_desired();
    let vhosts = desired.iter().filter_map(|desired| of_spec(desired, &profile, options)).collect();
    let graph = Graph { vhosts, is_plan: false };
    check_focus(graph, options, "the spec declares", desired.iter().flat_map(focus_candidates))
}

fn saved_plan(path: &Path, arguments: &GraphArguments) -> Result<Plan, Failure> {
    let mut plan = input::any_saved_plan(path)?;
    if let Some(only) = &arguments.spec.vhost {
        let known: Vec<String> = plan.vhosts.iter().map(|part| part.vhost.to_string()).collect();
        plan.vhosts.retain(|part| part.vhost.as_str() == only);
        if plan.vhosts.is_empty() {
            return Err(Failure::usage(format!("the plan does not contain vhost `{only}`"))
                .hint(format!("the plan contains {}", known.join(", "))));
        }
    }
    Ok(plan)
}

fn graph_of_plan(plan: &Plan, options: &Options) -> Result<Graph, Failure> {
    let version = plan.target.version.parse().unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let profile = BrokerProfile::of(version);
    let vhosts = plan.vhosts.iter().filter_map(|part| of_plan(part, &profile, options)).collect();
    let graph = Graph { vhosts, is_plan: true };
    let changed = plan.vhosts.iter().flat_map(|part| &part.changes).filter(|change| change.retires.is_none());
    let known = plan
        .vhosts
        .iter()
        .flat_map(|part| focus_candidates(&part.desired))
        .chain(changed.filter_map(PlannedChange::id));
    let graph = check_focus(graph, options, "the plan contains", known)?;
    match plan.vhosts.iter().flat_map(|part| &part.changes).filter(is_policy_change).count() {
        0 => {}
        1 => output::eprint("1 policy changes; policies are not drawn, but the settings that it changes are marked\n"),
        many => output::eprint(&format!(
            "{} policies change; policies are not drawn, but the settings that they change are marked\n",
            number(many as u64)
        )),
    }
    Ok(graph)
}

fn is_policy_change(change: &&PlannedChange) -> bool {
    matches!(change.id(), Some(ObjectId::Policy(_)))
}

/// Returns the objects to suggest for `--focus`. Omits objects generated for retries, which are part of their queue.
fn focus_candidates(desired: &Desired) -> Vec<ObjectId> {
    let Desired { topology, scope, .. } = desired;
    let generated: BTreeSet<&ObjectId> = scope.families.iter().flat_map(|family| &family.members).collect();
    let queues = topology.queues.keys().cloned().map(ObjectId::Queue);
    let exchanges = topology.exchanges.keys().cloned().map(ObjectId::Exchange);
    queues.chain(exchanges).chain(scope.external.iter().cloned()).filter(|id| !generated.contains(id)).collect()
}

/// Returns the graph. Returns a failure if the graph is empty because the name that `--focus` specifies is unknown.
/// `subject` is the start of the error message.
fn check_focus(
    graph: Graph,
    options: &Options,
    subject: &str,
    known: impl IntoIterator<Item = ObjectId>,
) -> Result<Graph, Failure> {
    match &options.focus {
        Some(focus) if graph.vhosts.is_empty() => {
            let name = focus.name.as_str();
            let known: BTreeSet<String> = known
                .into_iter()
                .filter(|id| matches!(id, ObjectId::Queue(_) | ObjectId::Exchange(_)))
                .filter_map(|id| id.name().map(str::to_owned))
                .collect();
            let failure = Failure::usage(format!("{subject} no queue or exchange `{name}`"));
            Err(match hints::suggestion(name, &known) {
                Some(hint) => failure.hint(hint),
                None => failure,
            })
        }
        Some(_) | None => Ok(graph),
    }
}

#[derive(Debug, Args)]
pub(super) struct GraphArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// Output format [default: derived from the extension of --out, else mermaid]
    #[arg(id = "graph_format", long = "format", value_name = "FORMAT", value_enum, env = "TOPO_FORMAT")]
    pub(super) format: Option<GraphFormat>,
    /// Draw only the neighborhood of this queue or exchange
    #[arg(long, value_name = "NAME", env = "TOPO_FOCUS")]
    pub(super) focus: Option<String>,
    /// Maximum distance from --focus, in arrows; a queue and its retries count as one node
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole_number, requires = "focus", env = "TOPO_DEPTH")]
    pub(super) depth: usize,
    /// Draw the objects that this saved plan creates, changes, recreates and deletes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "file", "env", "variables", "var_file", "for_version"], env = "TOPO_PLAN")]
    pub(super) plan: Option<PathBuf>,
    /// Draw every object separately, including objects generated for retries and dead-lettering
    #[arg(long, value_enum, value_name = "WHAT", env = "TOPO_SHOW")]
    pub(super) show: Option<Show>,
    /// RabbitMQ version to assume [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// Write the graph to a file; a .md file contains a fenced Mermaid block
    #[arg(long, value_name = "FILE", env = "TOPO_OUT")]
    pub(super) out: Option<PathBuf>,
    /// Replace an existing file that topo graph did not write
    #[arg(long, env = "TOPO_FORCE", value_parser = BoolishValueParser::new())]
    pub(super) force: bool,
}

/// Output format of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum GraphFormat {
    /// For Markdown: GitHub and GitLab render it
    Mermaid,
    /// For Graphviz
    Dot,
    /// An image; no other program is needed
    Svg,
    /// Machine-readable JSON: nodes, edges, and where dead-lettered messages arrive
    Json,
}
