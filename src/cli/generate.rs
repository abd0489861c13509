//! `topo completions` and `topo man`: generate shell completions for commands, flags and values, and man pages from the
//! help texts.

use super::arguments::{CompletionsArguments, ManArguments};
use super::failure::{Exit, Failure};
use super::{environment, explain, output};
use crate::lint::RULES;
use crate::plan::HazardKind;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use std::path::Path;

pub(super) fn completions(arguments: &CompletionsArguments) -> Result<Exit, Failure> {
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

/// Adds the possible values to an argument. Disables file completion for arguments that have no possible values and are
/// not paths.
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

pub(super) fn man(arguments: &ManArguments) -> Result<Exit, Failure> {
    let command = environment::for_man_pages();
    let Some(folder) = &arguments.command_or_directory else {
        output::print(&page(&command)?)?;
        return Ok(Exit::Done);
    };
    let is_shown = |it: &&Command| !it.is_hide_set() && it.get_name() != "help";
    // The argument `plan` selects the man page for that command, whereas `./plan` is a folder.
    if let Some(subcommand) = command.get_subcommands().filter(is_shown).find(|it| folder == Path::new(it.get_name())) {
        output::print(&page(&page_command(subcommand))?)?;
        return Ok(Exit::Done);
    }
    std::fs::create_dir_all(folder).map_err(|error| output::write_failure(folder, &error))?;
    write(folder, "topo", &command)?;
    for subcommand in command.get_subcommands().filter(is_shown) {
        write(folder, &format!("topo-{}", subcommand.get_name()), &page_command(subcommand))?;
    }
    Ok(Exit::Done)
}

fn page_command(subcommand: &Command) -> Command {
    subcommand.clone().display_name(format!("topo-{}", subcommand.get_name()))
}

fn page(command: &Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    let written = clap_mangen::Man::new(command.clone()).render(&mut page);
    written.map_err(|error| Failure::failed("cannot render the man page").because(error.to_string()))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write(folder: &Path, name: &str, command: &Command) -> Result<(), Failure> {
    output::write_public_file(&folder.join(format!("{name}.1")), &page(command)?)
}
