//! `topo show`: prints a saved plan like `topo plan`, without a broker.

use super::arguments::{Global, PrintingArguments, Show};
use super::failure::{Exit, Failure};
use super::plan::{self, Layout};
use super::{connection, files, input, planning};
use crate::plan::Allowances;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Plan file written by topo plan --out
    #[arg(value_name = "FILE")]
    pub(super) saved: PathBuf,
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
    plan::check_printing(&arguments.printing)?;
    let plan = input::any_saved_plan(&arguments.saved)?;
    let allowed = planning::allowances(&arguments.allow);
    let specs = arguments.saved.display().to_string();
    // A plan that was created without a broker cannot be applied.
    let apply = (!plan.target.cluster.is_empty()).then(|| {
        let url = connection::url_flag(&plan.target.url);
        format!("topo apply --plan {}{url}", files::path_argument(&arguments.saved))
    });
    let layout =
        Layout { apply: apply.as_deref(), all: arguments.show.is_some(), ..Layout::of(&specs, &allowed, global) };
    plan::print(&plan, &arguments.printing, &layout, |text, _| text, |text, _| text)?;
    planning::report_allowances(&plan, &allowed);
    Ok(plan::exit(&plan, &arguments.printing, &allowed))
}
