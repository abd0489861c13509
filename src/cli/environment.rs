//! Reads flags from the environment. topo treats an empty variable as unset. Flags on the command line take precedence,
//! even over the variables for conflicting flags.

use super::commands::Cli;
use crate::broker::{redacted_argument, redacted_url};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// Each entry is the id of an argument, with the ids of other arguments. If the command line contains the first
/// argument, topo ignores the environment variables of the others.
const OVERRIDES: [(&str, &[&str]); 20] = [
    ("quiet", &["verbose"]),
    ("verbose", &["quiet"]),
    ("short", &["format"]),
    ("format", &["short", "framework"]),
    ("framework", &["format"]),
    ("paths", &["file", "plan", "all"]),
    ("file", &["plan", "all"]),
    ("env", &["plan"]),
    ("variables", &["plan"]),
    ("var_file", &["plan"]),
    ("for_version", &["plan"]),
    ("levels", &["plan"]),
    ("fail_on", &["plan"]),
    ("plan", &["file", "recreate", "target", "env", "variables", "var_file", "for_version", "levels", "fail_on"]),
    ("recreate", &["plan"]),
    ("target", &["plan"]),
    ("abort", &["paths", "file", "plan", "recreate", "target", "levels", "fail_on"]),
    ("all", &["file", "env", "variables", "var_file"]),
    ("no_backup", &["backup"]),
    // `--node` on the command line replaces the broker that the environment specifies.
    ("node", &["url", "username"]),
];

/// Parses the arguments. The environment sets flags that the command line does not contain.
pub(super) fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let typed = typed_ids(arguments);
    let overridden: BTreeSet<&str> = OVERRIDES
        .iter()
        .filter(|(flag, _)| typed.contains(*flag))
        .flat_map(|(_, others)| others.iter().copied())
        .collect();
    let is_against =
        typed.contains("against") || std::env::var_os("TOPO_AGAINST").is_some_and(|value| !value.is_empty());
    let uses_broker = typed.contains("live") || is_against_broker(arguments);
    let mut command = map_arguments(Cli::command(), &|argument: Arg| {
        let is_empty =
            argument.get_env().is_some_and(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()));
        // A live broker reports its own version. Therefore, the variable for `--broker-version` applies to `plan` only
        // with `--against`. It does not apply to `explain --live`, `test --live` or `test --against live|planned`.
        let has_no_effect =
            argument.get_id() == "broker_version" && !is_against || argument.get_id() == "for_version" && uses_broker;
        let is_ignored = is_empty || has_no_effect || overridden.contains(argument.get_id().as_str());
        // A value can be a secret, such as the value of a spec variable, and users paste help output into tickets.
        let argument = argument.hide_env_values(true);
        if is_ignored { argument.env(None::<&'static str>) } else { argument }
    });
    let matches = command
        .try_get_matches_from_mut(arguments)
        .map_err(|error| with_usage(without_credentials(error), &mut command, arguments))?;
    Cli::from_arg_matches(&matches).map_err(|error| without_credentials(error.format(&mut command)))
}

/// Returns true if the command line contains `--against live` or `--against planned`.
fn is_against_broker(arguments: &[OsString]) -> bool {
    let is_broker = |value: &str| matches!(value, "live" | "planned");
    let words: Vec<&str> = arguments.iter().map(|argument| argument.to_str().unwrap_or_default()).collect();
    words.iter().any(|word| word.strip_prefix("--against=").is_some_and(is_broker))
        || words.windows(2).any(|pair| matches!(pair, ["--against", value] if is_broker(value)))
}

/// Redacts URLs in an error. clap's message quotes rejected values, including values from the environment.
fn without_credentials(mut error: clap::Error) -> clap::Error {
    let text = |value: Option<&ContextValue>| match value {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(_) | None => None,
    };
    let is_url_flag = text(error.get(ContextKind::InvalidArg)).is_some_and(|argument| argument.ends_with("<URL>"));
    if is_url_flag && let Some(value) = text(error.get(ContextKind::InvalidValue)) {
        error.insert(ContextKind::InvalidValue, ContextValue::String(redacted_url(&value)));
    }
    // A user might type a URL in place of any argument.
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand] {
        if let Some(value) = text(error.get(kind)) {
            error.insert(kind, ContextValue::String(redacted_argument(&value)));
        }
    }
    error
}

/// Adds the command's usage line to an error. clap's own usage line contains the typed flags, even if they conflict,
/// and is missing for an invalid value.
fn with_usage(mut error: clap::Error, command: &mut Command, arguments: &[OsString]) -> clap::Error {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return error;
    }
    let name = arguments.iter().skip(1).find(|it| command.find_subcommand(it).is_some());
    let usage = match name.and_then(|name| command.find_subcommand_mut(name)) {
        Some(subcommand) => subcommand.render_usage(),
        None => command.render_usage(),
    };
    error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    error
}

/// Returns clap's command for man pages, without values from the environment.
pub(super) fn for_man_pages() -> Command {
    let mut command = map_arguments(Cli::command(), &|argument: Arg| argument.hide_env_values(true));
    command.build();
    command
}

/// Returns clap's command for completions, without hidden subcommands. Applies `change` to each argument.
pub(super) fn for_completions(change: &dyn Fn(Arg) -> Arg) -> Command {
    let command = map_arguments(Cli::command(), &|argument: Arg| change(argument.hide_env_values(true)));
    // clap cannot remove a subcommand, and the completions for `help` would include a hidden subcommand.
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let about = command.get_about().cloned().unwrap_or_default();
    let version = command.get_version().unwrap_or_default().to_owned();
    let new = Command::new("topo").about(about).version(version).disable_version_flag(true);
    new.args(command.get_arguments().cloned()).subcommands(shown)
}

/// Returns the ids of the arguments that the command line contains. Returns no ids if the command line is invalid, in
/// which case [`parse`] reports the error.
fn typed_ids(arguments: &[OsString]) -> BTreeSet<String> {
    let command = map_arguments(Cli::command(), &|argument: Arg| argument.env(None::<&'static str>));
    let mut typed = BTreeSet::new();
    if let Ok(matches) = command.ignore_errors(true).try_get_matches_from(arguments) {
        collect(&matches, &mut typed);
    }
    typed
}

fn collect(matches: &ArgMatches, typed: &mut BTreeSet<String>) {
    for id in matches.ids().filter(|id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)) {
        typed.insert(id.to_string());
    }
    if let Some((_, matches)) = matches.subcommand() {
        collect(matches, typed);
    }
}

fn map_arguments(command: Command, change: &dyn Fn(Arg) -> Arg) -> Command {
    command.mut_args(change).mut_subcommands(|command| map_arguments(command, change))
}
