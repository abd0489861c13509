//! The arguments of commands that read specs and ask no broker.

use super::arguments::SpecArguments;
use super::typed::{level, severity};
use super::typed_version::broker_version;
use crate::model::BrokerVersion;
use crate::spec::{Level, Severity};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How much findings matter.
#[derive(Debug, Args)]
#[command(next_help_heading = "Findings")]
pub(super) struct LintArguments {
    /// Another level for a lint rule, or for `all`: RULE=off|info|warning|error; may be repeated, or several with commas
    #[arg(long = "lint", value_name = "RULE=LEVEL", value_delimiter = ',', value_parser = level, env = "TOPO_LINT")]
    pub(super) levels: Vec<(String, Level)>,
    /// Exit with 1 when a finding is as bad as that, or worse: error, warning or info [default: error for validate,
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
    /// The RabbitMQ that the specs are for [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// How to print it
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ContractFormat,
}

/// How a contract is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ContractFormat {
    /// For a screen
    #[default]
    Table,
    /// For a machine; its shape is `topo schema --kind contract`
    Json,
    /// The same as YAML
    Yaml,
    /// For a shell: ORDERS_WORK_MAX_RETRIES=3
    Env,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    /// The document that it describes
    #[arg(long, value_enum, default_value_t, env = "TOPO_KIND")]
    pub(super) kind: SchemaKind,
}

/// Whose schema.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum SchemaKind {
    /// Of a spec, for editors
    #[default]
    Topology,
    /// Of a plan, as --format json writes it
    Plan,
    /// Of contracts, as --format json writes them
    Contract,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// A command, whose page is printed; or a folder for topo.1, topo-plan.1 and so on, which is created
    #[arg(value_name = "COMMAND|DIR")]
    pub(super) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct RulesArguments {
    /// How to print them
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    /// A queue of the specs, a lint rule, a hazard, a key of specs, or a word of plans and reports
    #[arg(value_name = "QUEUE|RULE|HAZARD|KEY|WORD")]
    pub(super) what: String,
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// The RabbitMQ that the specs are for [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// How to print it
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
}

#[derive(Debug, Args)]
pub(super) struct VersionArguments {
    /// How to print it
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
}

/// How an explanation is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ExplainFormat {
    /// For a screen
    #[default]
    Text,
    /// For a machine
    Json,
}
