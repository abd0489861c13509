//! The arguments of commands that read specs without a broker.
//!
//! Arguments that control how `topo plan` and `topo show` print a plan.

use super::arguments::Show;
use super::arguments::SpecArguments;
use super::value_parsers::broker_version;
use super::value_parsers::{level, severity};
use crate::model::BrokerVersion;
use crate::plan::Allowances;
use crate::spec::{Level, Severity};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Levels of findings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Findings")]
pub(super) struct LintArguments {
    /// Level of a lint rule, or of `all` rules: RULE=off|info|warning|error; may be repeated or separated by commas
    #[arg(long = "lint", value_name = "RULE=LEVEL", value_delimiter = ',', value_parser = level, env = "TOPO_LINT")]
    pub(super) levels: Vec<(String, Level)>,
    /// Exit with 1 if a finding is at or above this severity: error, warning or info [default: error for validate,
    /// none for plan and apply]
    #[arg(long, value_name = "LEVEL", value_parser = severity, hide_possible_values = true, env = "TOPO_FAIL_ON")]
    pub(super) fail_on: Option<Severity>,
}

#[derive(Debug, Args)]
pub(super) struct ContractArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// Only this queue; may be repeated
    #[arg(long, value_name = "NAME", env = "TOPO_QUEUE")]
    pub(super) queue: Vec<String>,
    /// RabbitMQ version to check the specs against [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ContractFormat,
}

/// Output format of a contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ContractFormat {
    /// Human-readable table
    #[default]
    Table,
    /// Machine-readable JSON; `topo schema --kind contract` prints its schema
    Json,
    /// The same document as YAML
    Yaml,
    /// Shell variables: ORDERS_WORK_MAX_RETRIES=3
    Env,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    /// Kind of document that the schema describes
    #[arg(long, value_enum, default_value_t, env = "TOPO_KIND")]
    pub(super) kind: SchemaKind,
}

/// The document that a schema describes.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum SchemaKind {
    /// Specs, for editors
    #[default]
    Topology,
    /// Plans, as --format json writes them
    Plan,
    /// Contracts, as --format json writes them
    Contract,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// Shell to print completions for
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// Command whose page is printed, or a directory to create for topo.1, topo-plan.1 and so on
    #[arg(value_name = "COMMAND|DIR")]
    pub(super) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct RulesArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    /// Queue of the specs, lint rule, hazard, spec key, or term of plans and reports
    #[arg(value_name = "QUEUE|RULE|HAZARD|KEY|WORD")]
    pub(super) what: String,
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// RabbitMQ version to check the specs against [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
}

#[derive(Debug, Args)]
pub(super) struct VersionArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
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
    /// Print the plan with this hazard allowed: HAZARD[,HAZARD…][@ADDRESS][:MAX-MESSAGES]; may be repeated
    #[arg(long, value_name = "HAZARD", help_heading = "Printing")]
    pub(super) allow: Vec<Allowances>,
}

/// Output format of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum PlanFormat {
    /// Human-readable text
    #[default]
    Text,
    /// The whole plan, as --out writes it
    Json,
    /// Markdown for a pull-request comment
    Markdown,
    /// GitHub workflow annotations
    Github,
}

/// Parses the value of `--also`: `markdown=plan.md`.
pub(super) fn format_and_file(text: &str) -> Result<(PlanFormat, PathBuf), String> {
    let formats = || PlanFormat::value_variants().iter().filter_map(PlanFormat::to_possible_value);
    let names = || formats().map(|format| format.get_name().to_owned()).collect::<Vec<_>>().join(", ");
    match text.split_once('=') {
        Some((word, file)) if !file.is_empty() => {
            let format =
                PlanFormat::from_str(word, false).map_err(|_| format!("`{word}` is not one of {}", names()))?;
            Ok((format, file.into()))
        }
        Some(_) | None => Err(format!("write FORMAT=FILE, with a format of {}", names())),
    }
}
