//! `topo man`: generates man pages from the help texts.

use super::environment;
use super::exit::Exit;
use super::failure::Failure;
use super::offline_arguments::ManArguments;
use super::output;
use clap::Command;
use std::path::Path;

pub(super) fn run(arguments: &ManArguments) -> Result<Exit, Failure> {
    let command = environment::for_man_pages();
    let Some(folder) = &arguments.folder else {
        output::print(&page(&command)?)?;
        return Ok(Exit::Done);
    };
    let is_shown = |it: &&Command| !it.is_hide_set() && it.get_name() != "help";
    // The name of a command selects its page; `./plan` is a folder.
    if let Some(subcommand) = command.get_subcommands().filter(is_shown).find(|it| folder == Path::new(it.get_name())) {
        output::print(&page(&of_subcommand(subcommand))?)?;
        return Ok(Exit::Done);
    }
    std::fs::create_dir_all(folder).map_err(|error| output::unwritable(folder, &error))?;
    write(folder, "topo", &command)?;
    for subcommand in command.get_subcommands().filter(is_shown) {
        write(folder, &format!("topo-{}", subcommand.get_name()), &of_subcommand(subcommand))?;
    }
    Ok(Exit::Done)
}

fn of_subcommand(subcommand: &Command) -> Command {
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
