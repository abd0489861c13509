//! `topo show`: prints a saved plan like `topo plan`, without a broker.

use super::arguments::Global;
use super::failure::Exit;
use super::failure::Failure;
use super::offline_arguments::ShowArguments;
use super::plan::{self, Layout};
use super::{connection, input, planning, shell};

pub(super) fn run(arguments: &ShowArguments, global: &Global) -> Result<Exit, Failure> {
    plan::check_printing(&arguments.printing)?;
    let plan = input::any_saved_plan(&arguments.saved)?;
    let allowed = planning::allowances(&arguments.allow);
    let specs = arguments.saved.display().to_string();
    // A plan that was made without a broker cannot be applied.
    let apply = (!plan.target.cluster.is_empty()).then(|| {
        let url = connection::url_flag(&plan.target.url);
        format!("topo apply --plan {}{url}", shell::path(&arguments.saved))
    });
    let layout =
        Layout { apply: apply.as_deref(), all: arguments.show.is_some(), ..Layout::of(&specs, &allowed, global) };
    plan::print(&plan, &arguments.printing, &layout, |text, _| text, |text, _| text)?;
    planning::report_allowances(&plan, &allowed);
    Ok(plan::exit(&plan, &arguments.printing, &allowed))
}
