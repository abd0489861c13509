//! Defines the command-line commands and their help.

use super::alerts::AlertsArguments;
use super::arguments::{CompletionsArguments, Global, ManArguments};
use super::contract::ContractArguments;
use super::dlq::DlqArguments;
use super::explain::ExplainArguments;
use super::export_arguments::ExportArguments;
use super::graph::GraphArguments;
use super::import::ImportArguments;
use super::lock::LockArguments;
use super::plan_arguments::{ApplyArguments, PlanArguments, ValidateArguments};
use super::rules::RulesArguments;
use super::show::ShowArguments;
use super::status::StatusArguments;
use super::test::TestArguments;
use super::version::{SchemaArguments, VersionArguments};
use clap::{ArgAction, Parser, Subcommand};

// The lines are at most 80 columns wide, because clap wraps longer lines and breaks the alignment.
const AFTER_HELP: &str = "\
A first run, with a broker at http://localhost:15672:
  topo validate topology.yaml   check the spec; no broker needed
  topo plan topology.yaml       show changes, conflicts and hazards
  topo apply topology.yaml      apply the changes

Exit codes:
    0  success, or nothing to do
    1  failed, nothing was changed; or findings at or above --fail-on
    2  topo plan --detailed-exitcode: changes are pending;
       topo status: warning
    3  blocked: a hazard is not allowed, or a conflict is not resolved;
       topo status: critical
    4  incomplete or not verified: the report states what remains;
       run topo apply again
    5  stale: the broker no longer matches the saved plan
    6  another apply holds the lock, or another topo dlq is using the queue;
       for topo lock: a lock is held
   64  usage error: unknown or conflicting flags
   65  invalid spec: syntax error or unresolved reference
  130  interrupted, nothing was changed

Environment:
  TOPO_VAR_NAME sets ${NAME} in the specs; the variable NAME does not.
  Most flags have an environment variable, such as TOPO_URL;
  topo COMMAND --help shows it. Flags take precedence over the environment.
  An empty value counts as unset. For a setting without a TOPO_ variable, topo
  reads RABBITMQADMIN_BASE_URI, _TARGET_HOST, _TARGET_PORT, _USERNAME,
  _PASSWORD, _NODE_ALIAS and _CONFIG_FILE_PATH.
  The password comes from --password-file, TOPO_PASSWORD or
  ~/.rabbitmqadmin.conf. No flag accepts the password itself, because other
  users on the machine can see command lines. If a URL contains a password,
  set TOPO_URL instead of --url.";

const STATUS_HELP: &str = "\
Exit codes:
   0  no threshold is crossed
   1  failed: the broker could not be read
   2  warning: a threshold is crossed, a queue in the spec does not exist, or
      a migration is interrupted
   3  critical: a critical threshold is crossed, or a queue is down
  64  usage error
  65  invalid spec
Pending changes and a held lock do not change the exit code. A threshold that
topo cannot check does not change it either, and is listed as unknown.

Examples:
  topo status topology.yaml
  topo status --vhost shop --all
  topo status topology.yaml --watch=10s
  topo status topology.yaml --format json";

/// Topology as code for RabbitMQ.
///
/// A YAML spec declares the exchanges, queues, bindings and policies of a vhost. `topo plan` compares the spec with a
/// live broker and shows the changes, any conflicts, and the data at risk. `topo apply` applies the changes.
#[derive(Debug, Parser)]
#[command(name = "topo", version = super::version::short_version(), after_help = AFTER_HELP, max_term_width = 110, disable_version_flag = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
    /// Print the version
    // Without `-V`, which sets the vhost in rabbitmqadmin.
    #[arg(long, action = ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show what apply would change
    #[command(
        visible_alias = "diff",
        after_long_help = "Examples:\n  topo plan topology.yaml\n  topo plan topology.yaml --out plan.json --detailed-exitcode\n  topo plan topology.yaml --against empty"
    )]
    Plan(Box<PlanArguments>),
    /// Apply the spec to the broker
    #[command(
        after_long_help = "Examples:\n  topo apply topology.yaml\n  topo apply --plan plan.json\n  topo apply topology.yaml --recreate queues/shop/orders=migrate"
    )]
    Apply(Box<ApplyArguments>),
    /// Print a saved plan, in any output format of topo plan
    #[command(after_long_help = "Examples:\n  topo show plan.json\n  topo show plan.json --format markdown")]
    Show(ShowArguments),
    /// Compare queue depths, message ages and consumers with thresholds
    #[command(after_long_help = STATUS_HELP)]
    Status(Box<StatusArguments>),
    /// Inspect dead-letter queues; replay, drop, export and restore their messages
    Dlq(Box<DlqArguments>),
    /// Show the holder of a vhost's lock; with --break, delete the lock
    #[command(after_long_help = "Examples:\n  topo lock topology.yaml\n  topo lock --vhost shop --break")]
    Lock(Box<LockArguments>),
    /// Run topology tests offline and, with --live, on a broker
    #[command(
        after_long_help = "Examples:\n  topo test\n  topo test topology.test.yaml --broker-version 3.13 --also junit=results.xml\n  topo test --coverage --fail-under 80\n  topo test --init topology.yaml\n  topo test --live --url http://localhost:15672"
    )]
    Test(Box<TestArguments>),
    /// Check specs offline
    #[command(
        after_long_help = "Examples:\n  topo validate topology.yaml\n  topo validate topology/ --broker-version 3.13 --fail-on warning"
    )]
    Validate(ValidateArguments),
    /// Write a spec from a broker or from a definitions file
    #[command(
        after_long_help = "Examples:\n  topo export --vhost shop --out topology.yaml\n  topo export --definitions definitions.json --match 'orders*'"
    )]
    Export(Box<ExportArguments>),
    /// Write a spec from a Terraform state, or from the resources of the Topology Operator
    Import(ImportArguments),
    /// Print what workers must do: declarations, retries, acknowledgements, dead-lettering
    #[command(
        after_long_help = "Examples:\n  topo contract topology.yaml\n  topo contract topology.yaml --queue orders.work --format env\n  topo contract topology.yaml --for celery"
    )]
    Contract(ContractArguments),
    /// Draw the lifecycle of a message in a queue, or explain a lint rule, hazard, spec key or term
    #[command(
        after_long_help = "Examples:\n  topo explain orders.work topology.yaml\n  topo explain orders.work topology.yaml --live\n  topo explain message-loss"
    )]
    Explain(Box<ExplainArguments>),
    /// Draw the topology, or the changes in a saved plan
    #[command(
        after_long_help = "Examples:\n  topo graph topology.yaml --out topology.svg\n  topo graph topology.yaml --focus orders.work --depth 2"
    )]
    Graph(GraphArguments),
    /// Write alert rules for Prometheus from the thresholds in the specs
    #[command(
        after_long_help = "Examples:\n  topo alerts topology.yaml --out rules.yaml --tests rules.test.yaml\n  topo alerts topology.yaml --match 'job=\"rabbitmq\"' --dashboard dashboard.json"
    )]
    Alerts(AlertsArguments),
    /// List the lint rules
    Rules(RulesArguments),
    /// Print the JSON Schema of specs, test files, plans or other documents
    Schema(SchemaArguments),
    /// Print shell completions
    Completions(CompletionsArguments),
    /// Print a man page, or write all man pages to a directory
    Man(ManArguments),
    /// Print the version and build details
    Version(VersionArguments),
    /// Explain what to use instead of a destroy command
    #[command(hide = true)]
    Destroy,
}
