//! Defines the groups of arguments that several commands share, and the arguments of `topo completions` and `topo man`.

use super::connection::IntervalArguments;
use super::value_parsers::{PruneKinds, Recreate, glob, level, severity, variable};
use crate::model::Glob;
use crate::plan::Allowances;
use crate::spec::{Level, Severity};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Flags that every command accepts.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Global {
    /// When to use color: auto, always or never (NO_COLOR and CLICOLOR_FORCE are respected)
    #[arg(long, global = true, value_name = "WHEN", env = "TOPO_COLOR")]
    pub(super) color: Option<Color>,
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose", env = "TOPO_QUIET", value_parser = BoolishValueParser::new())]
    pub(super) quiet: bool,
    /// Also show the HTTP requests of a plan (plan, apply, show)
    #[arg(short, long, global = true, env = "TOPO_VERBOSE", value_parser = BoolishValueParser::new())]
    pub(super) verbose: bool,
}

/// When to color output.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Color {
    /// If the output stream is a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Sets the color choice for all output streams of the process.
    pub(super) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::AlwaysAnsi,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// The specs to read.
#[derive(Clone, Debug, Args)]
pub(super) struct SpecArguments {
    /// Spec files or directories; `-` for standard input [default: topology.yaml, else topology/]
    #[arg(value_name = "FILE|DIR")]
    pub(super) paths: Vec<PathBuf>,
    /// Same as the FILE|DIR argument; may be repeated
    #[arg(short, long = "file", value_name = "FILE|DIR", env = "TOPO_FILE")]
    pub(super) file: Vec<PathBuf>,
    /// Process only this vhost in the specs
    #[arg(long, value_name = "NAME", env = "TOPO_VHOST")]
    pub(super) vhost: Option<String>,
    /// Use the broker, variables and additional specs of this environment
    #[arg(long, value_name = "NAME", env = "TOPO_ENV")]
    pub(super) env: Option<String>,
    /// Value of ${NAME} in the specs (same as TOPO_VAR_NAME); may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable, env = "TOPO_VAR")]
    pub(super) variables: Vec<(String, String)>,
    /// File of NAME=VALUE lines; may be repeated
    #[arg(long, value_name = "FILE", env = "TOPO_VAR_FILE")]
    pub(super) var_file: Vec<PathBuf>,
}

/// Options that control planning.
#[derive(Debug, Args)]
#[command(next_help_heading = "Planning")]
pub(super) struct PlanningArguments {
    /// Allow a hazard of the plan: HAZARD[,HAZARD…][@ADDRESS][:MAX-MESSAGES]; may be repeated
    #[arg(long, value_name = "HAZARD")]
    pub(super) allow: Vec<Allowances>,
    /// Delete unmanaged objects of these kinds that match `owns`; without a value: exchanges, queues, bindings and
    /// policies; name other kinds, such as operatorPolicies, explicitly
    #[arg(long, value_name = "KINDS", num_args = 0..=1, require_equals = true, default_missing_value = "exchanges,queues,bindings,policies")]
    pub(super) prune: Vec<PruneKinds>,
    /// Resolve a conflict in this run by recreating the object: ADDRESS=ifEmpty|migrate|discard; may be repeated
    #[arg(long, value_name = "ADDRESS=METHOD", env = "TOPO_RECREATE")]
    pub(super) recreate: Vec<Recreate>,
    /// Plan only objects with this address (`*` matches any characters) and their dependencies; may be repeated
    #[arg(long, value_name = "ADDRESS", env = "TOPO_TARGET", value_parser = glob)]
    pub(super) target: Vec<Glob>,
    /// List every object, including objects generated for retries, which otherwise share one line
    #[arg(long, value_enum, value_name = "WHAT", env = "TOPO_SHOW")]
    pub(super) show: Option<Show>,
    #[command(flatten)]
    pub(super) intervals: IntervalArguments,
}

/// Output format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// Human-readable text
    #[default]
    Text,
    /// Machine-readable JSON
    Json,
}

/// Output format of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum FindingsFormat {
    /// Human-readable text
    #[default]
    Text,
    /// Machine-readable JSON
    Json,
    /// GitHub workflow annotations
    Github,
}

/// Which of a plan's objects to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Show {
    /// Every object
    All,
}

/// Options for findings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Findings")]
pub(super) struct LintArguments {
    /// Level of a lint rule, or of `all` rules: RULE=off|info|warning|error; may be repeated or separated by commas
    #[arg(long = "lint", value_name = "RULE=LEVEL", value_delimiter = ',', value_parser = level, env = "TOPO_LINT")]
    pub(super) levels: Vec<(String, Level)>,
    /// Exit with code 1 if a finding is at or above this severity: error, warning or info [default: error for validate,
    /// none for plan and apply]
    #[arg(long, value_name = "LEVEL", value_parser = severity, hide_possible_values = true, env = "TOPO_FAIL_ON")]
    pub(super) fail_on: Option<Severity>,
}

/// Options for a plan's output and exit code.
#[derive(Debug, Args)]
#[command(next_help_heading = "Printing")]
pub(super) struct PrintingArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: PlanFormat,
    /// Print one line per object and the summary; only with --format text
    #[arg(long, env = "TOPO_SHORT", value_parser = BoolishValueParser::new())]
    pub(super) short: bool,
    /// Also write the plan to a file in this format: FORMAT=FILE; may be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = format_and_file, env = "TOPO_ALSO")]
    pub(super) also: Vec<(PlanFormat, PathBuf)>,
    /// Exit with code 2 if there are changes, and with code 3 if the changes are blocked
    #[arg(long, env = "TOPO_DETAILED_EXITCODE", value_parser = BoolishValueParser::new())]
    pub(super) detailed_exitcode: bool,
}

/// Output format of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum PlanFormat {
    /// Human-readable text
    #[default]
    Text,
    /// The complete plan, as --out writes it
    Json,
    /// Markdown for a pull-request comment
    Markdown,
    /// GitHub workflow annotations
    Github,
}

/// Parses the value of `--also`, such as `markdown=plan.md`.
pub(super) fn format_and_file(text: &str) -> Result<(PlanFormat, PathBuf), String> {
    let formats = || PlanFormat::value_variants().iter().filter_map(PlanFormat::to_possible_value);
    let names = || formats().map(|format| format.get_name().to_owned()).collect::<Vec<_>>().join(", ");
    match text.split_once('=') {
        Some((word, file)) if !file.is_empty() => {
            let format =
                PlanFormat::from_str(word, false).map_err(|_| format!("`{word}` is not one of {}", names()))?;
            Ok((format, file.into()))
        }
        Some(_) | None => Err(format!("expected FORMAT=FILE, where FORMAT is one of {}", names())),
    }
}

/// Output format of an explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ExplainFormat {
    /// Human-readable text
    #[default]
    Text,
    /// Machine-readable JSON
    Json,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// Shell to print completions for
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// Command to print the man page of, or directory to create with all man pages (topo.1, topo-plan.1 and so on)
    #[arg(value_name = "COMMAND|DIR")]
    pub(super) command_or_directory: Option<PathBuf>,
}
