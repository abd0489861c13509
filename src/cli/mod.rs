//! Runs a command with its arguments and returns an exit code. Only this layer accesses files, the environment and the
//! terminal.

mod alerts;
mod apply;
mod arguments;
mod backup;
mod commands;
mod connection;
mod contract;
mod dlq;
mod environment;
mod environments;
mod explain;
mod export;
mod export_arguments;
mod export_files;
mod export_source;
mod failure;
mod files;
mod findings;
mod generate;
mod graph;
mod hints;
mod import;
mod input;
mod interaction;
mod lock;
mod offline_plan;
mod outcome;
mod output;
mod plan;
mod plan_arguments;
mod planning;
mod progress;
mod rights;
mod rules;
mod run_display;
mod secrets;
mod show;
mod sources;
mod status;
mod test;
mod validate;
mod value_parsers;
mod variables;
mod version;

use crate::broker::redacted_urls_in;
use crate::model::printable::clean;
use clap::error::ErrorKind;
use commands::Command;
use failure::{Exit, Failure};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs topo with the arguments of the process, and returns the exit code.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os()
        .map(|argument| {
            // Terraform's name for `--yes`.
            if argument == "-auto-approve" || argument == "--auto-approve" { "--yes".into() } else { argument }
        })
        .collect();
    let arguments = value_parsers::join_optional_values(arguments);
    let cli = match environment::parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let is_requested = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            if is_requested {
                // A closed pipe is not an error.
                let _ = error.print();
                return Exit::Done.into();
            }
            output::eprint(&redacted_urls_in(&cleaned_error(&error, &arguments)));
            return Exit::Usage.into();
        }
    };
    cli.global.color.unwrap_or_default().write_global();
    let result =
        if interaction::is_first_process() { interaction::run_as_first_process(move || run(cli)) } else { run(cli) };
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report().into(),
    }
}

fn run(cli: commands::Cli) -> Result<Exit, Failure> {
    match cli.command {
        Command::Plan(arguments) => in_runtime(plan::run(&arguments, &cli.global)),
        Command::Apply(arguments) => in_runtime(apply::run(&arguments, &cli.global)),
        Command::Status(arguments) => in_runtime(status::run(&arguments, &cli.global)),
        Command::Dlq(arguments) => in_runtime(dlq::run(&arguments, &cli.global)),
        Command::Lock(arguments) => in_runtime(lock::run(&arguments, &cli.global)),
        Command::Show(arguments) => show::run(&arguments, &cli.global),
        Command::Test(arguments) => in_runtime(test::run(&arguments, &cli.global)),
        Command::Validate(arguments) => validate::run(&arguments, &cli.global),
        Command::Export(arguments) => in_runtime(export::run(&arguments, &cli.global)),
        Command::Import(arguments) => import::run(&arguments, &cli.global),
        Command::Contract(arguments) => contract::run(&arguments),
        Command::Explain(arguments) => in_runtime(explain::run(&arguments, &cli.global)),
        Command::Graph(arguments) => graph::run(&arguments),
        Command::Alerts(arguments) => alerts::run(&arguments),
        Command::Rules(arguments) => rules::run(&arguments),
        Command::Schema(arguments) => version::schema(&arguments),
        Command::Completions(arguments) => generate::completions(&arguments),
        Command::Man(arguments) => generate::man(&arguments),
        Command::Version(arguments) => version::run(&arguments),
        Command::Destroy => Err(Failure::usage("topo has no command that deletes all objects in a spec")
            .hint("list the objects to delete under `removed:` in the spec, and apply the spec")
            .hint("or remove the objects from the spec, match their names with `owns:`, and run: topo apply --prune")),
    }
}

/// Returns the text of clap's error without control characters. The error quotes arguments, and a file name can contain
/// control characters.
fn cleaned_error(error: &clap::Error, arguments: &[OsString]) -> String {
    let cleaned: Vec<OsString> = arguments.iter().map(|argument| clean(&argument.to_string_lossy()).into()).collect();
    match environment::parse(&cleaned) {
        Err(cleaned_error) if cleaned != arguments => cleaned_error.render().ansi().to_string(),
        Err(_) | Ok(_) => error.render().ansi().to_string(),
    }
}

/// Runs a command's future on a single thread. More threads are not needed, because commands mostly wait for responses.
fn in_runtime(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed("cannot start the runtime").because(error.to_string()))?;
    let result = runtime.block_on(command);
    // Dropping the runtime would wait for a pending name resolution.
    runtime.shutdown_background();
    result
}
