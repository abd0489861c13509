//! `topo completions`: what a shell needs to complete topo's commands, flags and their values.

use super::environment;
use super::exit::Exit;
use super::failure::Failure;
use super::offline_arguments::CompletionsArguments;
use super::output;

pub(super) fn run(arguments: &CompletionsArguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut environment::described(), "topo", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
