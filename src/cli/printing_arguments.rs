//! Arguments that control how `topo plan` and `topo show` print a plan.

use super::value_parsers::format_and_file;
use crate::plan::Allowances;
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Output options of a plan, and whether its content sets the exit code.
#[derive(Debug, Args)]
#[command(next_help_heading = "Printing")]
pub(super) struct PrintingArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: PlanFormat,
    /// Print one line per object and the summary; only with --format text
    #[arg(long, env = "TOPO_SHORT", value_parser = BoolishValueParser::new())]
    pub(super) short: bool,
    /// Also write the plan to a file in another format: FORMAT=FILE; may be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = format_and_file, env = "TOPO_ALSO")]
    pub(super) also: Vec<(PlanFormat, PathBuf)>,
    /// Exit with 2 if there are changes, and with 3 if they are blocked
    #[arg(long, env = "TOPO_DETAILED_EXITCODE", value_parser = BoolishValueParser::new())]
    pub(super) detailed_exitcode: bool,
}

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Plan file written by topo plan --out
    #[arg(value_name = "FILE")]
    pub(super) saved: PathBuf,
    #[command(flatten)]
    pub(super) printing: PrintingArguments,
    /// List every object, including those generated for retries, which otherwise share one line
    #[arg(long, value_enum, value_name = "WHAT", env = "TOPO_SHOW", help_heading = "Printing")]
    pub(super) show: Option<Show>,
    /// Print the plan with this hazard allowed: HAZARD[,HAZARD…][@ADDRESS][:MOST-MESSAGES]; may be repeated
    #[arg(long, value_name = "HAZARD", help_heading = "Printing")]
    pub(super) allow: Vec<Allowances>,
}

/// The objects of a plan that are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Show {
    /// Every object
    All,
}

/// Output format of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum PlanFormat {
    /// For people
    #[default]
    Text,
    /// The whole plan, as --out writes it
    Json,
    /// For a pull-request comment
    Markdown,
    /// GitHub workflow annotations
    Github,
}
