//! Defines the arguments of `topo plan`, `topo apply` and `topo validate`.

use super::arguments::{
    FindingsFormat, LintArguments, PlanningArguments, PrintingArguments, ReportFormat, SpecArguments,
};
use super::connection::ConnectionArguments;
use super::value_parsers::{TypedVersion, broker_version, duration, typed_version};
use crate::model::{Address, BrokerVersion};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;
use std::time::Duration;

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
    /// Plan without a broker: against a definitions file, another spec (.yaml or a directory), or `empty`
    #[arg(long, value_name = "FILE|DIR|empty", env = "TOPO_AGAINST", help_heading = "Planning")]
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
    #[arg(long, value_name = "FILE", env = "TOPO_PLAN", conflicts_with_all = ["paths", "file", "env", "prune", "recreate", "target", "levels", "fail_on"], help_heading = "Applying")]
    pub(super) plan: Option<PathBuf>,
    /// Apply a saved plan that was created with a different --url, such as the URL of a tunnel to the same broker
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
    /// Name of the lock queue, for users without permission to configure the default queue
    #[arg(long, value_name = "NAME", default_value = crate::model::names::LOCK_QUEUE, value_parser = NonEmptyStringValueParser::new(), env = "TOPO_LOCK_NAME", help_heading = "Applying")]
    pub(super) lock_name: String,
    /// Vhost whose lock also protects cluster objects; all applies to the cluster must use the same vhost
    #[arg(long, value_name = "VHOST", default_value = crate::model::names::DEFAULT_VHOST, value_parser = NonEmptyStringValueParser::new(), env = "TOPO_LOCK_VHOST", help_heading = "Applying")]
    pub(super) lock_vhost: String,
    /// Roll back the interrupted migration of this queue and do nothing else: all messages return to the old queue
    #[arg(long, value_name = "ADDRESS", value_parser = Address::parse, conflicts_with_all = ["paths", "file", "prune", "recreate", "target", "plan", "levels", "fail_on"], help_heading = "Applying")]
    pub(super) abort: Vec<Address>,
    /// How long draining may make no progress before topo rolls back the migration and leaves retired tiers for the
    /// next apply
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration, env = "TOPO_DRAIN_TIMEOUT", help_heading = "Applying")]
    pub(super) drain_timeout: Duration,
    /// Maximum time to wait for the consumers of recreated queues to return [default: 12s, or about twice the
    /// statistics interval if that is longer]
    #[arg(long, value_name = "DURATION", value_parser = duration, env = "TOPO_WAIT_CONSUMERS", help_heading = "Applying")]
    pub(super) wait_consumers: Option<Duration>,
    /// Exit with code 4 unless all consumers of recreated queues return in time
    #[arg(long, env = "TOPO_REQUIRE_CONSUMERS", help_heading = "Applying")]
    pub(super) require_consumers: bool,
    /// Output format of the report
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT", help_heading = "Applying")]
    pub(super) format: ReportFormat,
    /// File for a backup of all objects that are deleted, changed or recreated; restore it with rabbitmqadmin
    /// definitions import [default: a new file in ~/.local/state/topo/backups]
    #[arg(long, value_name = "FILE", env = "TOPO_BACKUP", help_heading = "Applying")]
    pub(super) backup: Option<PathBuf>,
    /// Do not write a backup
    #[arg(long, conflicts_with = "backup", help_heading = "Applying")]
    pub(super) no_backup: bool,
    /// Apply even if the broker lists fewer permissions than the plan requires; for users that LDAP or OAuth 2
    /// authorizes
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
    // The id differs from that in `topo plan`, where the environment variable applies only together with `--against`.
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = typed_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<TypedVersion>,
    #[command(flatten)]
    pub(super) lint: LintArguments,
    /// Output format of the findings
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: FindingsFormat,
}
