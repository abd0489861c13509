//! `topo show`: prints a saved plan in the same way as `topo plan`, or prints the expansion of specs. Needs no broker.

use super::arguments::{FindingsFormat, Global, PrintingArguments, Show, SpecArguments};
use super::failure::{Exit, Failure};
use super::plan::{self, Layout};
use super::value_parsers::{broker_version, variable};
use super::{connection, files, input, output, planning};
use crate::export::{expanded_text, export_cluster};
use crate::model::BrokerVersion;
use crate::plan::Allowances;
use crate::rabbitmq::BrokerProfile;
use clap::Args;
use clap::builder::BoolishValueParser;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Plan file written by topo plan --out; with --expanded, spec files or directories
    #[arg(value_name = "FILE", required_unless_present = "expanded")]
    pub(super) paths: Vec<PathBuf>,
    /// Print the specs with all generated objects, without short forms, forEach or retries
    #[arg(long, env = "TOPO_EXPANDED", value_parser = BoolishValueParser::new(), help_heading = "Expansion")]
    pub(super) expanded: bool,
    /// Expand for this RabbitMQ version [default: the newest known version]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", env = "TOPO_BROKER_VERSION", value_parser = broker_version, help_heading = "Expansion")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// Process only this vhost in the specs
    #[arg(long, value_name = "NAME", env = "TOPO_VHOST", help_heading = "Expansion")]
    pub(super) vhost: Option<String>,
    /// Use the variables and additional specs of this environment
    #[arg(long, value_name = "NAME", env = "TOPO_ENV", help_heading = "Expansion")]
    pub(super) env: Option<String>,
    /// Value of ${NAME} in the specs (same as TOPO_VAR_NAME); may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable, env = "TOPO_VAR", help_heading = "Expansion")]
    pub(super) variables: Vec<(String, String)>,
    /// File of NAME=VALUE lines; may be repeated
    #[arg(long, value_name = "FILE", env = "TOPO_VAR_FILE", help_heading = "Expansion")]
    pub(super) var_file: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) printing: PrintingArguments,
    /// List every object, including objects generated for retries, which otherwise share one line
    #[arg(long, value_enum, value_name = "WHAT", env = "TOPO_SHOW", help_heading = "Printing")]
    pub(super) show: Option<Show>,
    /// Print the plan with this hazard allowed: HAZARD[,HAZARD…][@ADDRESS][:MAX-MESSAGES]; may be repeated
    #[arg(long, value_name = "HAZARD", help_heading = "Printing")]
    pub(super) allow: Vec<Allowances>,
}

pub(super) fn run(arguments: &ShowArguments, global: &Global) -> Result<Exit, Failure> {
    if arguments.expanded {
        return show_expanded(arguments);
    }
    let [saved] = &arguments.paths[..] else {
        return Err(Failure::usage("a saved plan is one file").hint("to show the expansion of specs: --expanded"));
    };
    plan::check_printing(&arguments.printing)?;
    let plan = input::any_saved_plan(saved)?;
    let allowed = planning::allowances(&arguments.allow);
    let specs = saved.display().to_string();
    // A plan that was created without a broker cannot be applied.
    let apply = (!plan.target.cluster.is_empty()).then(|| {
        let url = connection::url_flag(&plan.target.url);
        format!("topo apply --plan {}{url}", files::path_argument(saved))
    });
    let layout =
        Layout { apply: apply.as_deref(), all: arguments.show.is_some(), ..Layout::of(&specs, &allowed, global) };
    plan::print(&plan, &arguments.printing, &layout, |text, _| text, |text, _| text)?;
    planning::report_allowances(&plan, &allowed);
    Ok(plan::exit(&plan, &arguments.printing, &allowed))
}

/// Prints the expansion of the specs as YAML documents.
fn show_expanded(arguments: &ShowArguments) -> Result<Exit, Failure> {
    let specs = SpecArguments {
        paths: arguments.paths.clone(),
        file: Vec::new(),
        vhost: arguments.vhost.clone(),
        variables: arguments.variables.clone(),
        var_file: arguments.var_file.clone(),
        env: arguments.env.clone(),
    };
    let version = arguments.broker_version.unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let loaded = input::load_for(&specs, "topo show --expanded", FindingsFormat::Text, version)?;
    let cluster = loaded.cluster.iter().map(|(_, expansion)| export_cluster(&expansion.topology.records, &[]).text);
    let profile = BrokerProfile::of(version);
    let vhosts = loaded.expanded.iter().map(|(_, expansion)| expanded_text(&expansion.topology, &profile));
    let documents: Vec<String> = cluster.chain(vhosts).collect();
    output::print(&documents.join("---\n"))?;
    Ok(Exit::Done)
}
