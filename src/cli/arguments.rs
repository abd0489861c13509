//! The command line, and its help.

use super::export_arguments::ExportArguments;
use super::graph_arguments::GraphArguments;
use super::interval_arguments::IntervalArguments;
use super::lock_arguments::LockArguments;
use super::offline_arguments::{
    CompletionsArguments, ContractArguments, ExplainArguments, LintArguments, ManArguments, RulesArguments,
    SchemaArguments, VersionArguments,
};
use super::printing_arguments::{PrintingArguments, Show, ShowArguments};
use super::typed::{PruneKinds, Recreate, duration, glob, positive, variable};
use super::typed_version::{TypedVersion, broker_version, typed_version};
use crate::broker::mover::AmqpUrl;
use crate::model::{Address, BrokerVersion, Glob};
use crate::plan::Allowances;
use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

// Lines of 80 columns at most: what is wider is wrapped where it hurts.
const AFTER_HELP: &str = "\
A first run, on a broker at http://localhost:15672:
  topo validate topology.yaml   is it well formed? no broker needed
  topo plan topology.yaml       what would change, be refused, be lost
  topo apply topology.yaml      make it so

Exit codes:
    0  done, or nothing to do
    1  failed, nothing was changed; findings as bad as --fail-on says
    2  plan --detailed-exitcode: there are changes
    3  blocked: a hazard is not allowed, or a conflict is open
    4  partly done: the report says what is left; run it again
    5  stale: the broker no longer matches the saved plan
    6  another apply holds the lock; for topo lock: a lock is held
   64  usage: these flags make no sense
   65  the spec does not parse, or refers to what is not there
  130  interrupted, nothing was changed

Environment:
  TOPO_VAR_NAME is a value for ${NAME} in the specs. No other variable is.
  Every flag is also a variable: TOPO_URL, TOPO_USERNAME and so on; but not
  --allow, --allow-other-broker, --prune, --abort, --break, --no-backup,
  --ignore-missing-rights, --yes, and --broker-version of plan.
  What is typed goes first; an empty one is none.
  RABBITMQADMIN_BASE_URI, _TARGET_HOST, _TARGET_PORT, _USERNAME, _PASSWORD,
  _NODE_ALIAS and _CONFIG_FILE_PATH are read, too, after those.
  The password comes from --password-file, TOPO_PASSWORD or
  ~/.rabbitmqadmin.conf. No flag is for it, because others would see it: a
  URL that has it belongs into TOPO_URL.";

/// Topology as code for RabbitMQ.
///
/// A YAML spec says which exchanges, queues, bindings and policies exist. `topo plan` compares it with a live broker and
/// says what would change, what the broker would refuse and what would be lost; `topo apply` makes it so.
#[derive(Debug, Parser)]
#[command(name = "topo", version = super::version::short(), after_help = AFTER_HELP, max_term_width = 110, disable_version_flag = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
    /// Print the version
    // No `-V`: to people who know rabbitmqadmin, that is the vhost.
    #[arg(long, action = ArgAction::Version)]
    version: Option<bool>,
}

/// Flags that every command takes.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Global {
    /// Colour: auto, always or never (NO_COLOR and CLICOLOR_FORCE are respected)
    #[arg(long, global = true, value_name = "WHEN", env = "TOPO_COLOR")]
    pub(super) color: Option<Color>,
    /// Say nothing but results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose", env = "TOPO_QUIET", value_parser = BoolishValueParser::new())]
    pub(super) quiet: bool,
    /// Show every request of a plan, too
    #[arg(short, long, global = true, env = "TOPO_VERBOSE", value_parser = BoolishValueParser::new())]
    pub(super) verbose: bool,
}

/// When to write colours.
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
    /// Show what apply would do; change nothing
    #[command(visible_alias = "diff")]
    Plan(Box<PlanArguments>),
    /// Make the broker match the spec
    Apply(Box<ApplyArguments>),
    /// Print a saved plan in any format, without a broker
    Show(ShowArguments),
    /// Show who holds the lock of a vhost, or delete it with --break
    Lock(Box<LockArguments>),
    /// Check specs offline
    Validate(ValidateArguments),
    /// Write the spec of what is live, or of a definitions file
    Export(Box<ExportArguments>),
    /// Print what workers must know: retries, verbs, exchanges, dead letters
    Contract(ContractArguments),
    /// Draw the life of a message in a queue, or explain a lint rule, a hazard, a key of specs or a word of the output
    Explain(ExplainArguments),
    /// Draw the topology, or what a saved plan does to it
    Graph(GraphArguments),
    /// List the lint rules
    Rules(RulesArguments),
    /// Print the JSON Schema of specs, of plans or of contracts
    Schema(SchemaArguments),
    /// Print the completions for a shell
    Completions(CompletionsArguments),
    /// Print the man page; or write those of all commands into a folder
    Man(ManArguments),
    /// Print the version, and how this topo was built
    Version(VersionArguments),
    /// Says what to use instead
    #[command(hide = true)]
    Destroy,
}

/// Where the specs are.
#[derive(Debug, Args)]
pub(super) struct SpecArguments {
    /// Specs: files or folders; `-` is standard input [default: topology.yaml, else topology/]
    #[arg(value_name = "FILE|DIR")]
    pub(super) paths: Vec<PathBuf>,
    /// The same as FILE|DIR, as a flag; may be repeated
    #[arg(short, long = "file", value_name = "FILE|DIR", env = "TOPO_FILE")]
    pub(super) file: Vec<PathBuf>,
    /// Only this vhost of the specs
    #[arg(long, value_name = "NAME", env = "TOPO_VHOST")]
    pub(super) vhost: Option<String>,
    /// A value for ${NAME} in the specs, as TOPO_VAR_NAME; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable, env = "TOPO_VAR")]
    pub(super) variables: Vec<(String, String)>,
    /// A file of NAME=VALUE lines; may be repeated
    #[arg(long, value_name = "FILE", env = "TOPO_VAR_FILE")]
    pub(super) var_file: Vec<PathBuf>,
}

/// Which broker, and as whom.
#[derive(Debug, Args)]
#[command(next_help_heading = "Broker")]
pub(super) struct ConnectionArguments {
    /// The management API [default: http://localhost:15672]
    #[arg(long, value_name = "URL", env = "TOPO_URL")]
    pub(super) url: Option<String>,
    /// The user [default: guest]
    #[arg(long, value_name = "NAME", env = "TOPO_USERNAME")]
    pub(super) username: Option<String>,
    /// A file with the password; TOPO_PASSWORD is the other way
    #[arg(long, value_name = "FILE", env = "TOPO_PASSWORD_FILE")]
    pub(super) password_file: Option<PathBuf>,
    /// No such thing: what is typed is seen by others
    // Known all the same, so that it can say where the password goes and its value is not repeated in a complaint.
    // `-p` is rabbitmqadmin's.
    #[arg(short, long, num_args = 0..=1, hide = true)]
    pub(super) password: Option<Option<String>>,
    /// A node of rabbitmqadmin.conf (INI of version 1 or TOML of version 2)
    #[arg(short = 'N', long, value_name = "NAME", env = "TOPO_NODE")]
    pub(super) node: Option<String>,
    /// The path of that file [default: ~/.rabbitmqadmin.conf]
    #[arg(long, value_name = "FILE", env = "TOPO_CONFIG")]
    pub(super) config: Option<PathBuf>,
    /// The authority that signed the broker's certificate (PEM); no other is trusted then
    #[arg(long, value_name = "FILE", env = "TOPO_CA_CERT")]
    pub(super) ca_cert: Option<PathBuf>,
    /// A client certificate (PEM, with its chain)
    #[arg(long, value_name = "FILE", env = "TOPO_CLIENT_CERT")]
    pub(super) client_cert: Option<PathBuf>,
    /// The key of the client certificate (PEM, not encrypted)
    #[arg(long, value_name = "FILE", env = "TOPO_CLIENT_KEY")]
    pub(super) client_key: Option<PathBuf>,
    /// Take any certificate of the broker: whoever is in between reads the password, too
    #[arg(long, env = "TOPO_INSECURE", value_parser = BoolishValueParser::new())]
    pub(super) insecure: bool,
    /// Where the broker speaks AMQP, for moving messages [default: the host of --url, the port that the broker says]
    #[arg(long, value_name = "URL", env = "TOPO_AMQP_URL", hide_env_values = true, value_parser = AmqpUrl::parse)]
    pub(super) amqp_url: Option<AmqpUrl>,
    /// What moves the messages of a queue that is migrated: topo over AMQP, or else a shovel on the broker
    #[arg(long, value_enum, default_value_t, env = "TOPO_MOVER")]
    pub(super) mover: MoverKind,
    /// How long one request may take; what may go away is tried five times
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = positive, env = "TOPO_TIMEOUT")]
    pub(super) timeout: Duration,
}

/// What is planned beyond the spec.
#[derive(Debug, Args)]
#[command(next_help_heading = "Planning")]
pub(super) struct PlanningArguments {
    /// Allow a hazard, in the words of the plan: HAZARD[,HAZARD…][@ADDRESS][:MOST-MESSAGES]; may be repeated
    #[arg(long, value_name = "HAZARD")]
    pub(super) allow: Vec<Allowances>,
    /// Delete what is live, inside `owns` and not declared: all of it, or only these kinds
    /// (exchanges, queues, bindings, policies)
    #[arg(long, value_name = "KINDS", num_args = 0..=1, require_equals = true, default_missing_value = "exchanges,queues,bindings,policies")]
    pub(super) prune: Vec<PruneKinds>,
    /// What to do with one conflict, once: ADDRESS=ifEmpty|migrate|discard; may be repeated
    #[arg(long, value_name = "ADDRESS=HOW", env = "TOPO_RECREATE")]
    pub(super) recreate: Vec<Recreate>,
    /// Only what this address matches (`*` is any run of characters), and what that needs; may be repeated
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
    /// Save the plan, for apply --plan
    #[arg(long, value_name = "FILE", env = "TOPO_OUT", help_heading = "Planning")]
    pub(super) out: Option<PathBuf>,
    /// Plan without a broker: against a definitions file, or `empty`
    #[arg(long, value_name = "FILE|empty", env = "TOPO_AGAINST", help_heading = "Planning")]
    pub(super) against: Option<String>,
    /// The version that --against stands for
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
    /// Apply exactly this saved plan; stop when the broker no longer matches it
    #[arg(long, value_name = "FILE", env = "TOPO_PLAN", conflicts_with_all = ["paths", "file", "prune", "recreate", "target", "levels", "fail_on"], help_heading = "Applying")]
    pub(super) plan: Option<PathBuf>,
    /// Apply a saved plan that was made for another --url, such as that of a tunnel to the same broker
    #[arg(long, requires = "plan", help_heading = "Applying")]
    pub(super) allow_other_broker: bool,
    /// Stop unless the plan has this fingerprint
    #[arg(long, value_name = "FINGERPRINT", env = "TOPO_EXPECT", help_heading = "Applying")]
    pub(super) expect: Option<String>,
    /// Do not ask before the broker is changed
    #[arg(short, long, help_heading = "Applying")]
    pub(super) yes: bool,
    /// How long to wait for another apply to end
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration, env = "TOPO_LOCK_TIMEOUT", help_heading = "Applying")]
    pub(super) lock_timeout: Duration,
    /// The queue that is the lock; for those who may not configure the default
    #[arg(long, value_name = "NAME", default_value = crate::model::names::LOCK_QUEUE, value_parser = NonEmptyStringValueParser::new(), env = "TOPO_LOCK_NAME", help_heading = "Applying")]
    pub(super) lock_name: String,
    /// Undo the unfinished migration of this queue, and do nothing else: all goes back into the old queue
    #[arg(long, value_name = "ADDRESS", value_parser = Address::parse, conflicts_with_all = ["paths", "file", "prune", "recreate", "target", "plan", "levels", "fail_on"], help_heading = "Applying")]
    pub(super) abort: Vec<Address>,
    /// How long to wait for messages that nobody takes: in retired tiers, which are left for the next apply then, and in
    /// a queue that is migrated, which is undone then
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration, env = "TOPO_DRAIN_TIMEOUT", help_heading = "Applying")]
    pub(super) drain_timeout: Duration,
    /// How to print the report
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT", help_heading = "Applying")]
    pub(super) format: ReportFormat,
    /// Where to write what is live of all that is deleted, changed or recreated, for rabbitmqadmin definitions import
    /// [default: a new file below ~/.local/state/topo/backups]
    #[arg(long, value_name = "FILE", env = "TOPO_BACKUP", help_heading = "Applying")]
    pub(super) backup: Option<PathBuf>,
    /// Write no such file
    #[arg(long, conflicts_with = "backup", help_heading = "Applying")]
    pub(super) no_backup: bool,
    /// Apply even if the broker lists fewer rights for the user than the plan needs: for users that another backend
    /// (LDAP, OAuth 2) authorizes
    #[arg(long, help_heading = "Applying")]
    pub(super) ignore_missing_rights: bool,
    /// Only plan
    #[arg(long, hide = true)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// The RabbitMQ that the specs are for [default: the newest known]
    // An id of its own: for a plan, the environment says it only beside `--against`.
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = typed_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<TypedVersion>,
    #[command(flatten)]
    pub(super) lint: LintArguments,
    /// How to print findings
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: FindingsFormat,
}

/// What moves messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum MoverKind {
    /// Over AMQP, and by shovel where AMQP is not available or cannot carry a message
    #[default]
    Auto,
    /// Topo, over AMQP
    Amqp,
    /// A shovel, over HTTP; needs rabbitmq_shovel and rabbitmq_shovel_management
    Shovel,
}

impl MoverKind {
    /// As it is typed.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Amqp => "amqp",
            Self::Shovel => "shovel",
        }
    }
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// For a screen
    #[default]
    Text,
    /// For a machine
    Json,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum FindingsFormat {
    /// For a screen
    #[default]
    Text,
    /// For a machine
    Json,
    /// Workflow annotations
    Github,
}
