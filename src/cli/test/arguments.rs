//! Defines the arguments of `topo test`.

use crate::cli::connection::ConnectionArguments;
use crate::cli::value_parsers::{broker_version, duration, positive_duration, variable};
use crate::model::BrokerVersion;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(in crate::cli) struct TestArguments {
    /// Test files, or directories to search for *.test.yaml files, or, with --init, the specs to record [default: the current directory]
    #[arg(value_name = "FILE|DIR")]
    pub(super) paths: Vec<PathBuf>,
    /// Run only cases whose name contains TEXT
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(super) run: String,
    /// RabbitMQ version to simulate; overrides `brokers` in test files; may be repeated [default: the newest known version]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Vec<BrokerVersion>,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: TestFormat,
    /// Also write the results to a file: junit=FILE, or another format; may be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = also)]
    pub(super) also: Vec<(AlsoFormat, PathBuf)>,
    /// Use the variables and additional specs of this environment
    #[arg(long, value_name = "NAME", env = "TOPO_ENV")]
    pub(super) env: Option<String>,
    /// Value of ${NAME} in the specs, like TOPO_VAR_NAME; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable, env = "TOPO_VAR")]
    pub(super) variables: Vec<(String, String)>,
    /// File of NAME=VALUE lines; may be repeated
    #[arg(long, value_name = "FILE", env = "TOPO_VAR_FILE")]
    pub(super) var_file: Vec<PathBuf>,
    /// Report the coverage, and list the bindings, alternate exchanges and dead-letter reasons that no case covers
    #[arg(long, help_heading = "Coverage")]
    pub(super) coverage: bool,
    /// Exit with code 1 if the coverage is below PERCENT; implies --coverage
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = "Coverage")]
    pub(super) fail_under: Option<f64>,
    /// Record the routing of the specs in a new snapshot, NAME.routes.test.yaml
    #[arg(long, help_heading = "Snapshots", conflicts_with_all = ["update", "coverage", "fail_under", "also", "run"])]
    pub(super) init: bool,
    /// Vhost to record in NAME.VHOST.routes.test.yaml, if the specs declare several
    #[arg(long, value_name = "NAME", requires = "init", help_heading = "Snapshots")]
    pub(super) vhost: Option<String>,
    /// Rewrite the snapshots (test files with `snapshot: true`) and print the differences
    #[arg(long, help_heading = "Snapshots", conflicts_with_all = ["coverage", "fail_under", "also", "run"])]
    pub(super) update: bool,
    /// Run the cases against another topology: the broker's current topology (`live`), its topology after the plan
    /// (`planned`), a definitions file, or another spec
    #[arg(long, value_name = "live|planned|FILE", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["init", "update", "coverage", "fail_under", "live", "clean"], help_heading = "Test against another topology")]
    pub(super) against: Option<String>,
    #[command(flatten)]
    pub(super) live: LiveArguments,
    #[command(flatten)]
    pub(super) connection: ConnectionArguments,
}

/// The arguments of a run on a broker.
#[derive(Debug, Args)]
#[command(next_help_heading = "Test on a broker")]
pub(super) struct LiveArguments {
    /// Also run the cases on the broker, in scratch vhosts, and compare the results with a simulation of its version
    #[arg(long, conflicts_with_all = ["init", "update"])]
    pub(super) live: bool,
    /// Existing, empty vhost to use instead of new vhosts; after the run, topo deletes the objects that it declared
    /// there [default: new vhosts]
    #[arg(long, value_name = "NAME", requires = "live", value_parser = NonEmptyStringValueParser::new())]
    pub(super) scratch_vhost: Option<String>,
    /// Divide all delays and TTLs on the broker by N [default: the largest reliable value]
    #[arg(long, value_name = "N", requires = "live", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) time_scale: Option<u64>,
    /// Maximum duration of a case on the broker, after --time-scale; topo runs longer cases only offline
    #[arg(long, value_name = "DURATION", requires = "live", default_value = "2m", value_parser = positive_duration)]
    pub(super) time_limit: Duration,
    /// Keep the scratch vhosts and the declared topology after the run; the messages are not kept
    #[arg(long, requires = "live")]
    pub(super) keep: bool,
    /// Delete the scratch vhosts of earlier runs, including vhosts kept with --keep
    #[arg(long, conflicts_with_all = ["live", "init", "update", "coverage", "fail_under", "also", "run", "paths"])]
    pub(super) clean: bool,
    /// Minimum age of the vhosts that --clean deletes; a value that is too short deletes the vhosts of runs in progress
    #[arg(long, value_name = "DURATION", requires = "clean", default_value = "1h", value_parser = duration)]
    pub(super) older_than: Duration,
}

/// Output format of test results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum TestFormat {
    /// Human-readable text
    #[default]
    Text,
    /// Machine-readable JSON
    Json,
    /// GitHub workflow annotations
    Github,
    /// Markdown for a pull-request comment
    Markdown,
}

/// Format of an additional file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlsoFormat {
    Junit,
    Of(TestFormat),
}

/// Parses the value of `--also`.
fn also(value: &str) -> Result<(AlsoFormat, PathBuf), String> {
    let expected = || "expected FORMAT=FILE with one of the formats junit, text, json, github and markdown".to_owned();
    let (word, path) = value.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or_else(expected)?;
    let format = match word {
        "junit" => AlsoFormat::Junit,
        word => AlsoFormat::Of(TestFormat::from_str(word, false).map_err(|_| expected())?),
    };
    Ok((format, path.into()))
}

/// Parses a percentage, with or without a percent sign.
fn percent(value: &str) -> Result<f64, String> {
    let number = value.strip_suffix('%').unwrap_or(value).parse().ok();
    number.filter(|number| (0.0..=100.0).contains(number)).ok_or_else(|| "expected a number from 0 to 100".to_owned())
}
