//! The command line and its help.

use super::connection::IntervalArguments;
use super::export::ExportArguments;
use super::graph::GraphArguments;
use super::lock::LockArguments;
use super::offline_arguments::{
    CompletionsArguments, ContractArguments, ExplainArguments, LintArguments, ManArguments, RulesArguments,
    SchemaArguments, VersionArguments,
};
use super::offline_arguments::{PrintingArguments, Show, ShowArguments};
use super::value_parsers::{PruneKinds, Recreate, duration, glob, positive, variable};
use super::version::{TypedVersion, broker_version, typed_version};
use crate::broker::TransportKind;
use crate::broker::transport::AmqpUrl;
use crate::model::{Address, BrokerVersion, Glob};
use crate::plan::Allowances;
use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

// Lines of at most 80 columns: clap wraps longer ones and breaks the alignment.
const AFTER_HELP: &str = "\
A first run, on a broker at http://localhost:15672:
  topo validate topology.yaml   check the spec; no broker needed
  topo plan topology.yaml       show changes, conflicts and hazards
  topo apply topology.yaml      apply the changes

Exit codes:
    0  success, or nothing to do
    1  failed, nothing was changed; or findings at or above --fail-on
    2  plan --detailed-exitcode: there are changes
    3  blocked: a hazard is not allowed, or a conflict is not resolved
    4  partially applied: the report lists what is left; run it again
    5  stale: the broker no longer matches the saved plan
    6  another apply holds the lock; for topo lock: a lock is held
   64  usage error: unknown or conflicting flags
   65  invalid spec: syntax error or unresolved reference
  130  interrupted, nothing was changed

Environment:
  TOPO_VAR_NAME sets ${NAME} in the specs. Specs read no other variables.
  Every flag has a variable, such as TOPO_URL and TOPO_USERNAME, except
  --allow, --allow-other-broker, --prune, --abort, --break, --no-backup,
  --ignore-missing-rights, --yes, and --broker-version of plan.
  Flags take precedence over the environment; an empty value counts as
  unset. RABBITMQADMIN_BASE_URI, _TARGET_HOST, _TARGET_PORT, _USERNAME,
  _PASSWORD, _NODE_ALIAS and _CONFIG_FILE_PATH come after TOPO_*.
  The password comes from --password-file, TOPO_PASSWORD or
  ~/.rabbitmqadmin.conf. It has no flag, because other users of the machine
  could see it. Put a URL that contains a password into TOPO_URL.";

/// Topology as code for RabbitMQ.
///
/// A YAML spec declares the exchanges, queues, bindings and policies of a vhost. `topo plan` compares it with a live
/// broker and shows changes, changes that the broker would refuse, and data at risk. `topo apply` applies the changes.
#[derive(Debug, Parser)]
#[command(name = "topo", version = super::version::short(), after_help = AFTER_HELP, max_term_width = 110, disable_version_flag = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
    /// Print the version
    // No `-V`, which is the vhost in rabbitmqadmin.
    #[arg(long, action = ArgAction::Version)]
    version: Option<bool>,
}

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
    /// Print a saved plan in any format, without a broker
    #[command(after_long_help = "Examples:\n  topo show plan.json\n  topo show plan.json --format markdown")]
    Show(ShowArguments),
    /// Show who holds the lock of a vhost, or delete it with --break
    #[command(after_long_help = "Examples:\n  topo lock topology.yaml\n  topo lock --vhost shop --break")]
    Lock(Box<LockArguments>),
    /// Check specs offline
    #[command(
        after_long_help = "Examples:\n  topo validate topology.yaml\n  topo validate topology/ --broker-version 3.13 --fail-on warning"
    )]
    Validate(ValidateArguments),
    /// Write the spec of a broker or a definitions file
    #[command(
        after_long_help = "Examples:\n  topo export --vhost shop --out topology.yaml\n  topo export --definitions definitions.json --match 'orders*'"
    )]
    Export(Box<ExportArguments>),
    /// Print what workers must do: retries, acknowledgements, exchanges, dead-lettering
    #[command(
        after_long_help = "Examples:\n  topo contract topology.yaml\n  topo contract topology.yaml --queue orders.work --format env"
    )]
    Contract(ContractArguments),
    /// Draw the lifecycle of a message in a queue, or explain a lint rule, hazard, spec key or term
    #[command(after_long_help = "Examples:\n  topo explain orders.work topology.yaml\n  topo explain message-loss")]
    Explain(ExplainArguments),
    /// Draw the topology, or the changes of a saved plan
    #[command(
        after_long_help = "Examples:\n  topo graph topology.yaml --out topology.svg\n  topo graph topology.yaml --focus orders.work --depth 2"
    )]
    Graph(GraphArguments),
    /// List the lint rules
    Rules(RulesArguments),
    /// Print the JSON Schema of specs, of plans or of contracts
    Schema(SchemaArguments),
    /// Print shell completions
    Completions(CompletionsArguments),
    /// Print a man page, or write all of them to a directory
    Man(ManArguments),
    /// Print the version and build details
    Version(VersionArguments),
    /// Explain what to use instead
    #[command(hide = true)]
    Destroy,
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

/// The broker to connect to, and the user.
#[derive(Debug, Args)]
#[command(next_help_heading = "Broker")]
pub(super) struct ConnectionArguments {
    /// URL of the management API [default: http://localhost:15672]
    #[arg(long, value_name = "URL", env = "TOPO_URL")]
    pub(super) url: Option<String>,
    /// User name [default: guest]
    #[arg(long, value_name = "NAME", env = "TOPO_USERNAME")]
    pub(super) username: Option<String>,
    /// File that contains the password; alternative to TOPO_PASSWORD
    #[arg(long, value_name = "FILE", env = "TOPO_PASSWORD_FILE")]
    pub(super) password_file: Option<PathBuf>,
    /// Rejected: other users of the machine can see command lines
    // Parsed nevertheless, so that the error can explain where to put the password without repeating it. `-p` comes
    // from rabbitmqadmin.
    #[arg(short, long, num_args = 0..=1, hide = true)]
    pub(super) password: Option<Option<String>>,
    /// Node of rabbitmqadmin.conf (INI of version 1 or TOML of version 2)
    #[arg(short = 'N', long, value_name = "NAME", env = "TOPO_NODE")]
    pub(super) node: Option<String>,
    /// Path of rabbitmqadmin.conf [default: ~/.rabbitmqadmin.conf]
    #[arg(long, value_name = "FILE", env = "TOPO_CONFIG")]
    pub(super) config: Option<PathBuf>,
    /// CA certificate that signed the broker's certificate (PEM); no other CA is trusted
    #[arg(long, value_name = "FILE", env = "TOPO_CA_CERT")]
    pub(super) ca_cert: Option<PathBuf>,
    /// Client certificate (PEM, with its chain)
    #[arg(long, value_name = "FILE", env = "TOPO_CLIENT_CERT")]
    pub(super) client_cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM, not encrypted)
    #[arg(long, value_name = "FILE", env = "TOPO_CLIENT_KEY")]
    pub(super) client_key: Option<PathBuf>,
    /// Skip certificate verification: anyone in between can read the password
    #[arg(long, env = "TOPO_INSECURE", value_parser = BoolishValueParser::new())]
    pub(super) insecure: bool,
    /// AMQP URL for moving messages [default: the host of --url, the port that the broker reports]
    #[arg(long, value_name = "URL", env = "TOPO_AMQP_URL", hide_env_values = true, value_parser = AmqpUrl::parse)]
    pub(super) amqp_url: Option<AmqpUrl>,
    /// Transport for the messages of a migration: topo over AMQP, or a shovel on the broker
    #[arg(long, alias = "mover", value_enum, default_value_t, env = "TOPO_TRANSPORT")]
    pub(super) transport: TransportKind,
    /// Timeout of a request; transient failures are tried five times
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = positive, env = "TOPO_TIMEOUT")]
    pub(super) timeout: Duration,
}

/// Planning options beyond the spec.
#[derive(Debug, Args)]
#[command(next_help_heading = "Planning")]
pub(super) struct PlanningArguments {
    /// Allow a hazard of the plan: HAZARD[,HAZARD…][@ADDRESS][:MOST-MESSAGES]; may be repeated
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

#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    #[command(flatten)]
    pub(super) connection: ConnectionArguments,
    #[command(flatten)]
    pub(super) planning: PlanningArguments,
    #[command(flatten)]
    pub(super) printing: PrintingArguments,
    /// Save the plan to a file, for apply --plan
    #[arg(long, value_name = "FILE", env = "TOPO_OUT", help_heading = "Planning")]
    pub(super) out: Option<PathBuf>,
    /// Plan without a broker: against a definitions file, or `empty`
    #[arg(long, value_name = "FILE|empty", env = "TOPO_AGAINST", help_heading = "Planning")]
    pub(super) against: Option<String>,
    /// RabbitMQ version to assume for --against
    #[arg(long, value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION", requires = "against", help_heading = "Planning")]
    pub(super) broker_version: Option<BrokerVersion>,
    #[command(flatten)]
    pub(super) lint: LintArguments,
}

#[derive(Debug, Args)]
pub(super) struct ApplyArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    #[command(flatten)]
    pub(super) connection: ConnectionArguments,
    #[command(flatten)]
    pub(super) planning: PlanningArguments,
    #[command(flatten)]
    pub(super) lint: LintArguments,
    /// Apply exactly this saved plan; stop if the broker no longer matches it
    #[arg(long, value_name = "FILE", env = "TOPO_PLAN", conflicts_with_all = ["paths", "file", "prune", "recreate", "target", "levels", "fail_on"], help_heading = "Applying")]
    pub(super) plan: Option<PathBuf>,
    /// Apply a saved plan that was made for another --url, such as that of a tunnel to the same broker
    #[arg(long, requires = "plan", help_heading = "Applying")]
    pub(super) allow_other_broker: bool,
    /// Stop unless the plan has this fingerprint
    #[arg(long, value_name = "FINGERPRINT", env = "TOPO_EXPECT", help_heading = "Applying")]
    pub(super) expect: Option<String>,
    /// Apply without confirmation
    #[arg(short, long, help_heading = "Applying")]
    pub(super) yes: bool,
    /// Maximum time to wait for the lock while another apply holds it
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration, env = "TOPO_LOCK_TIMEOUT", help_heading = "Applying")]
    pub(super) lock_timeout: Duration,
    /// Name of the queue that is the lock, for users without permission to configure the default
    #[arg(long, value_name = "NAME", default_value = crate::model::names::LOCK_QUEUE, value_parser = NonEmptyStringValueParser::new(), env = "TOPO_LOCK_NAME", help_heading = "Applying")]
    pub(super) lock_name: String,
    /// Roll back the interrupted migration of this queue and do nothing else: all messages return to the old queue
    #[arg(long, value_name = "ADDRESS", value_parser = Address::parse, conflicts_with_all = ["paths", "file", "prune", "recreate", "target", "plan", "levels", "fail_on"], help_heading = "Applying")]
    pub(super) abort: Vec<Address>,
    /// Maximum time to wait while messages do not drain. After that, retired tiers are left for the next apply, and a
    /// migration is rolled back
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration, env = "TOPO_DRAIN_TIMEOUT", help_heading = "Applying")]
    pub(super) drain_timeout: Duration,
    /// Output format of the report
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT", help_heading = "Applying")]
    pub(super) format: ReportFormat,
    /// File for the backup of all objects that are deleted, changed or recreated, for rabbitmqadmin definitions import
    /// [default: a new file in ~/.local/state/topo/backups]
    #[arg(long, value_name = "FILE", env = "TOPO_BACKUP", help_heading = "Applying")]
    pub(super) backup: Option<PathBuf>,
    /// Do not write a backup
    #[arg(long, conflicts_with = "backup", help_heading = "Applying")]
    pub(super) no_backup: bool,
    /// Apply even if the broker lists fewer rights for the user than the plan needs: for users that another backend
    /// (LDAP, OAuth 2) authorizes
    #[arg(long, help_heading = "Applying")]
    pub(super) ignore_missing_rights: bool,
    /// Plan only
    #[arg(long, hide = true)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// RabbitMQ version to check the specs against [default: the newest known]
    // A separate id: for `topo plan`, the environment variable applies only together with `--against`.
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = typed_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<TypedVersion>,
    #[command(flatten)]
    pub(super) lint: LintArguments,
    /// Output format of the findings
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: FindingsFormat,
}

/// Output format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// Output format of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum FindingsFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// GitHub workflow annotations
    Github,
}
