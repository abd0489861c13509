//! `topo alerts`: writes alert rules for Prometheus, tests for these rules, and a dashboard, without a broker.

use super::arguments::{FindingsFormat, SpecArguments};
use super::failure::{Exit, Failure};
use super::files::redacted_path;
use super::value_parsers::broker_version;
use super::{input, output};
use crate::model::BrokerVersion;
use crate::model::printable::clean;
use crate::operate::alerts::{AlertOptions, Matcher, Metrics, VhostAlerts, alerts, unusable_name};
use crate::rabbitmq::BrokerProfile;
use crate::render::alerts::{BEGINNINGS, dashboard, promtool_tests, rules};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// The first series in which all releases have the `/metrics/detailed` endpoint. 3.9.7 introduced the endpoint.
const FIRST_WITH_DETAILED: (u16, u16) = (3, 10);

pub(super) fn run(arguments: &AlertsArguments) -> Result<Exit, Failure> {
    let paths = [&arguments.out, &arguments.tests, &arguments.dashboard];
    let mut written = paths.into_iter().flatten();
    if let Some(path) = written.find(|path| !arguments.force && !is_replaceable(path)) {
        return Err(Failure::usage(format!(
            "{} already exists and was not created by topo alerts; nothing was written",
            redacted_path(path)
        ))
        .hint("choose another path, or replace it: --force"));
    }
    let metrics = metrics(arguments)?;
    let version = arguments.broker_version.unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let options = AlertOptions { metrics, matchers: arguments.matchers.clone() };
    let profile = BrokerProfile::of(version);
    let loaded = input::load_for(&arguments.spec, "topo alerts", FindingsFormat::Text, version)?;
    for (_, expansion) in &loaded.expanded {
        if let Some(found) = unusable_name(&expansion.topology, metrics, version) {
            return Err(refused_name(found.kind, &found.name, metrics, version, found.is_usable_elsewhere));
        }
    }
    let found: Vec<VhostAlerts> =
        loaded.expanded.iter().map(|(spec, expansion)| alerts(spec, expansion, &profile, &options)).collect();
    let text = rules(&found, metrics, arguments.broker_version);
    let mut files = Vec::new();
    if let (Some(path), Some(rules)) = (&arguments.tests, &arguments.out) {
        let tests = promtool_tests(&found, &relative_path(rules, path)).map_err(|_| {
            Failure::usage("--tests supports only matchers with =, because the tests contain series with these labels")
                .hint("for example, use --match 'job=\"rabbitmq\"', or omit --tests")
        })?;
        files.push((path.clone(), tests));
    }
    files.extend(arguments.dashboard.clone().map(|path| (path, dashboard(&found))));
    match &arguments.out {
        Some(path) => files.push((path.clone(), text)),
        None => output::print(&text)?,
    }
    output::write_public_files(&files)?;
    if found.iter().all(|vhost| vhost.alerts.is_empty()) {
        output::eprint(
            "the specs set no thresholds and declare no dead-letter queues or retries, so there are no alert rules\n",
        );
    }
    Ok(Exit::Done)
}

/// Returns the endpoint that `--metrics` specifies. By default, returns the detailed endpoint if the broker version has
/// this endpoint, and the per-object endpoint otherwise.
fn metrics(arguments: &AlertsArguments) -> Result<Metrics, Failure> {
    let (major, minor) = FIRST_WITH_DETAILED;
    let old = arguments.broker_version.filter(|version| !version.is_at_least(major, minor));
    match (arguments.metrics, old) {
        (Some(MetricsName::Detailed), Some(version)) => {
            Err(Failure::usage(format!("--metrics detailed requires RabbitMQ 3.10 or later, not {version}"))
                .hint("use --metrics per-object for RabbitMQ 3.9 and earlier"))
        }
        (Some(MetricsName::PerObject), _) | (None, Some(_)) => Ok(Metrics::PerObject),
        (Some(MetricsName::Detailed) | None, None) => Ok(Metrics::Detailed),
    }
}

/// Returns the failure for a name that breaks the metrics endpoint.
fn refused_name(
    kind: &str,
    name: &str,
    metrics: Metrics,
    version: BrokerVersion,
    is_usable_elsewhere: bool,
) -> Failure {
    let endpoint = match metrics {
        Metrics::Detailed => "/metrics/detailed",
        Metrics::PerObject => "/metrics/per-object",
    };
    let failure = Failure::failed(format!("the name of {kind} `{}` breaks {endpoint}", clean(name))).because(format!(
        "RabbitMQ {version} does not escape double quotes or backslashes in names at this endpoint, so Prometheus refuses the \
             metrics of all queues"
    ));
    match (is_usable_elsewhere, metrics) {
        (true, Metrics::PerObject) => failure.hint("use --metrics detailed, or choose a name without these characters"),
        (true, Metrics::Detailed) => {
            failure.hint("use --metrics per-object, or choose a name without these characters")
        }
        (false, _) => failure.hint("choose a name without these characters"),
    }
}

/// Returns true if topo may write to a path without `--force`: the path is not an existing regular file, or the file is
/// empty or was written by topo alerts.
fn is_replaceable(path: &Path) -> bool {
    if !path.is_file() {
        return true;
    }
    let longest = BEGINNINGS.iter().map(|beginning| beginning.len()).max().unwrap_or_default();
    let mut beginning = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(longest as u64).read_to_end(&mut beginning));
    read.is_ok() && (beginning.is_empty() || BEGINNINGS.iter().any(|known| beginning.starts_with(known.as_bytes())))
}

/// Returns the path of the rules relative to the folder of the tests. promtool resolves the path against this folder.
fn relative_path(rules: &Path, tests: &Path) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (rules, tests) = (absolute(rules), absolute(tests));
    let folder = tests.parent().unwrap_or(Path::new("/"));
    let common = rules.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let ups = folder.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = ups.chain(rules.components().skip(common)).collect();
    path.to_string_lossy().into_owned()
}

#[derive(Debug, Args)]
pub(super) struct AlertsArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// Metrics endpoint that Prometheus scrapes [default: detailed; per-object before RabbitMQ 3.10]
    #[arg(long, value_name = "ENDPOINT", value_enum, env = "TOPO_METRICS")]
    pub(super) metrics: Option<MetricsName>,
    /// Additional label matcher for all metrics, such as job="rabbitmq"; may be repeated
    #[arg(long = "match", value_name = "MATCHER", value_parser = Matcher::parse, env = "TOPO_LABEL_MATCH")]
    pub(super) matchers: Vec<Matcher>,
    /// RabbitMQ version to assume [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// Write the rules to a file
    #[arg(long, value_name = "FILE", env = "TOPO_OUT")]
    pub(super) out: Option<PathBuf>,
    /// Write tests for the rules to a file; run them with promtool test rules
    #[arg(long, value_name = "FILE", requires = "out", env = "TOPO_TESTS")]
    pub(super) tests: Option<PathBuf>,
    /// Write a Grafana dashboard to a file
    #[arg(long, value_name = "FILE", env = "TOPO_DASHBOARD")]
    pub(super) dashboard: Option<PathBuf>,
    /// Replace existing files that topo alerts did not write
    #[arg(long, env = "TOPO_FORCE", value_parser = BoolishValueParser::new())]
    pub(super) force: bool,
}

/// Metrics endpoint of RabbitMQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MetricsName {
    /// /metrics/detailed: only the requested metrics; RabbitMQ 3.10 and later
    Detailed,
    /// /metrics/per-object; before RabbitMQ 3.10, /metrics with prometheus.return_per_object_metrics = true
    PerObject,
}
