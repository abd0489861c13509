//! Groups of arguments that several commands share.

use super::connection::IntervalArguments;
use super::value_parsers::{PruneKinds, Recreate, glob, variable};
use crate::model::Glob;
use crate::plan::Allowances;
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
    /// Also show each HTTP request of a plan
    #[arg(short, long, global = true, env = "TOPO_VERBOSE", value_parser = BoolishValueParser::new())]
    pub(super) verbose: bool,
}

/// When to write colors.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Color {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
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
#[derive(Debug, Args)]
pub(super) struct SpecArguments {
    /// Spec files or directories; `-` for standard input [default: topology.yaml, else topology/]
    #[arg(value_name = "FILE|DIR")]
    pub(super) paths: Vec<PathBuf>,
    /// Same as the FILE|DIR argument; may be repeated
    #[arg(short, long = "file", value_name = "FILE|DIR", env = "TOPO_FILE")]
    pub(super) file: Vec<PathBuf>,
    /// Only this vhost of the specs
    #[arg(long, value_name = "NAME", env = "TOPO_VHOST")]
    pub(super) vhost: Option<String>,
    /// Value of ${NAME} in the specs, like TOPO_VAR_NAME; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable, env = "TOPO_VAR")]
    pub(super) variables: Vec<(String, String)>,
    /// File of NAME=VALUE lines; may be repeated
    #[arg(long, value_name = "FILE", env = "TOPO_VAR_FILE")]
    pub(super) var_file: Vec<PathBuf>,
}

/// Planning options beyond the spec.
#[derive(Debug, Args)]
#[command(next_help_heading = "Planning")]
pub(super) struct PlanningArguments {
    /// Allow a hazard of the plan: HAZARD[,HAZARD…][@ADDRESS][:MAX-MESSAGES]; may be repeated
    #[arg(long, value_name = "HAZARD")]
    pub(super) allow: Vec<Allowances>,
    /// Delete unmanaged objects that match `owns`: exchanges, queues, bindings and policies, or only these kinds; other
    /// kinds, such as operatorPolicies, must be named
    #[arg(long, value_name = "KINDS", num_args = 0..=1, require_equals = true, default_missing_value = "exchanges,queues,bindings,policies")]
    pub(super) prune: Vec<PruneKinds>,
    /// Resolve one conflict by recreating the object, for this run: ADDRESS=ifEmpty|migrate|discard; may be repeated
    #[arg(long, value_name = "ADDRESS=METHOD", env = "TOPO_RECREATE")]
    pub(super) recreate: Vec<Recreate>,
    /// Plan only objects with this address (`*` matches any characters) and their dependencies; may be repeated
    #[arg(long, value_name = "ADDRESS", env = "TOPO_TARGET", value_parser = glob)]
    pub(super) target: Vec<Glob>,
    /// List every object, including those generated for retries, which otherwise share one line
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

/// The objects of a plan that are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Show {
    /// Every object
    All,
}
