//! `topo completions`: generates shell completions for topo's commands, flags and values.

use super::environment;
use super::exit::Exit;
use super::explain;
use super::failure::Failure;
use super::offline_arguments::CompletionsArguments;
use super::output;
use crate::lint::RULES;
use crate::plan::HazardKind;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ValueHint};
use clap_complete::Shell;

pub(super) fn run(arguments: &CompletionsArguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    let mut command = environment::for_completions(&with_values);
    clap_complete::generate(arguments.shell, &mut command, "topo", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if matches!(arguments.shell, Shell::Fish) {
        // The generator for fish omits positional arguments.
        let names: Vec<&str> = explain::names().collect();
        let condition = "__fish_topo_using_subcommand explain";
        script.push_str(&format!("complete -c topo -n \"{condition}\" -a \"{}\"\n", names.join(" ")));
    }
    output::print(&script)?;
    Ok(Exit::Done)
}

/// Adds the possible values to an argument. Arguments without values and paths get no file completion.
fn with_values(argument: Arg) -> Arg {
    let offered: Vec<String> = match argument.get_id().as_str() {
        "levels" => RULES.iter().map(|rule| format!("{}=", rule.name)).collect(),
        "allow" => HazardKind::ALL.map(HazardKind::as_str).map(str::to_owned).to_vec(),
        "what" => explain::names().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if !offered.is_empty() {
        return argument.value_parser(PossibleValuesParser::new(offered)).value_hint(ValueHint::Other);
    }
    let names = argument.get_value_names().unwrap_or_default();
    let is_path = names.iter().any(|name| name.contains("FILE") || name.contains("DIR"));
    if is_path || !argument.get_possible_values().is_empty() {
        return argument;
    }
    argument.value_hint(ValueHint::Other)
}
