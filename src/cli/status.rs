//! `topo status`: shows the depths, growth, ages and consumers of queues against their thresholds, and the drift, lock
//! and interrupted migrations of the vhosts. `--watch` repeats the output.

use super::arguments::{Global, ReportFormat, SpecArguments};
use super::connection::ConnectionArguments;
use super::failure::{Exit, Failure, no_such_vhost};
use super::input::{self, Loaded};
use super::progress::Progress;
use super::sources::{self, Sources};
use super::value_parsers::positive_duration;
use super::{connection, interaction, output};
use crate::broker::Access;
use crate::model::names::LOCK_QUEUE;
use crate::model::{BrokerVersion, Intervals, QueueName, VhostName};
use crate::operate::status::{State, Status, StatusRequest, Subject, Watched, status};
use crate::plan::Desired;
use crate::rabbitmq::BrokerProfile;
use crate::render::status::{View, json, text};
use crate::render::style::{DIM, Painted};
use clap::Args;
use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The vhosts to show.
struct Subjects {
    /// The desired topology of the cluster; `None` if no spec describes the cluster.
    cluster: Option<Arc<Desired>>,
    vhosts: Vec<Subject>,
    /// The paths of the specs, as messages show them.
    names: String,
    /// The paths and flags of the specs, as command-line arguments.
    specs: String,
}

pub(super) async fn run(arguments: &StatusArguments, global: &Global) -> Result<Exit, Failure> {
    connection::refuse_password(&arguments.connection)?;
    let loaded = load(arguments)?;
    let environment = loaded.as_ref().and_then(|loaded| loaded.environment.as_ref());
    let access = connection::connect_to(&arguments.connection, environment, Intervals::default())?;
    let progress = Progress::new(global);
    let reading = progress.start_spinner(format!("reading {}", access.broker.shown_url()));
    let subjects = subjects(arguments, loaded, &access).await?;
    let first = read(&subjects, arguments, &access).await?;
    drop(reading);
    let Some(interval) = arguments.watch else {
        output::print(&render(&first, &subjects, arguments))?;
        return Ok(exit(&first));
    };
    tokio::select! {
        result = watch(first, interval, &subjects, arguments, &access) => result,
        () = interaction::interrupted() => Ok(Exit::Done),
    }
}

/// Shows the status repeatedly, until standard output is closed. If a request fails, reports the error and continues,
/// because the broker may become available again.
async fn watch(
    first: Status,
    interval: Duration,
    subjects: &Subjects,
    arguments: &StatusArguments,
    access: &Access,
) -> Result<Exit, Failure> {
    let mut status = Ok(first);
    loop {
        match status {
            Ok(status) => {
                let shown = render(&status, subjects, arguments);
                let is_open = match arguments.format {
                    ReportFormat::Text if output::clear_screen() => output::print_unless_closed(&shown)?,
                    ReportFormat::Text => {
                        let now = humantime::format_rfc3339_seconds(SystemTime::now());
                        output::print_unless_closed(&format!("{}\n{shown}\n", Painted(DIM, now)))?
                    }
                    ReportFormat::Json => output::print_unless_closed(&shown)?,
                };
                if !is_open {
                    return Ok(Exit::Done);
                }
            }
            Err(failure) => {
                let _: Exit = Failure::report(failure);
            }
        }
        tokio::time::sleep(interval).await;
        status = read(subjects, arguments, access).await;
    }
}

/// Loads the specs. With `--all`, returns `None`.
fn load(arguments: &StatusArguments) -> Result<Option<Loaded>, Failure> {
    if arguments.all {
        return Ok(None);
    }
    let sources = Sources::read(&arguments.spec, "topo status").map_err(|failure| {
        if sources::has_spec(&arguments.spec) {
            return failure;
        }
        failure.hint("or show all queues of a vhost, without a spec: topo status --vhost NAME --all")
    })?;
    input::load(sources).map(Some)
}

/// Returns the vhosts to show. Expands the specs for the version of the broker.
async fn subjects(arguments: &StatusArguments, loaded: Option<Loaded>, access: &Access) -> Result<Subjects, Failure> {
    let survey = access.broker.survey().await?;
    let Some(mut loaded) = loaded else {
        let vhost = VhostName::new(arguments.spec.vhost.as_deref().unwrap_or_default());
        if !survey.has_vhost(&vhost) {
            return Err(no_such_vhost(&vhost, &access.broker.vhosts().await?));
        }
        let vhosts = vec![Subject::Vhost(vhost)];
        return Ok(Subjects { cluster: None, vhosts, names: String::new(), specs: String::new() });
    };
    let profiles: Vec<BrokerProfile> = loaded.vhosts().iter().map(|vhost| survey.profile(vhost)).collect();
    let newest = BrokerProfile::of(BrokerVersion::NEWEST_KNOWN);
    loaded.expand_for(|index| profiles.get(index).unwrap_or(&newest))?;
    let specs = input::flags(&arguments.spec, &loaded.specs);
    let names = loaded.names.clone();
    let watched: Vec<Watched> = loaded.expanded.iter().map(|(spec, _)| Watched::of_spec(spec)).collect();
    let cluster = loaded.take_cluster().map(Arc::new);
    let desired = loaded.take_desired().into_iter().map(Arc::new);
    let vhosts = watched.into_iter().zip(desired).map(|(watched, desired)| Subject::Spec { watched, desired });
    Ok(Subjects { cluster, vhosts: vhosts.collect(), names, specs })
}

async fn read(subjects: &Subjects, arguments: &StatusArguments, access: &Access) -> Result<Status, Failure> {
    let lock_queue = &QueueName::new(arguments.lock_name.as_str());
    let request = StatusRequest { access, cluster: subjects.cluster.clone(), subjects: &subjects.vhosts, lock_queue };
    Ok(status(&request).await?)
}

fn render(status: &Status, subjects: &Subjects, arguments: &StatusArguments) -> String {
    match arguments.format {
        ReportFormat::Text => {
            let Subjects { names, specs, .. } = subjects;
            let (names, specs) = (names.clone(), specs.clone());
            let view = View { names, specs, flags: connection::flags(&arguments.connection), width: output::width() };
            text(status, &view)
        }
        ReportFormat::Json => json(status, arguments.watch.is_some()),
    }
}

/// Returns the exit code of a status.
fn exit(status: &Status) -> Exit {
    match status.state {
        State::Fine => Exit::Done,
        State::Warning => Exit::Warning,
        State::Critical => Exit::Critical,
    }
}

#[derive(Debug, Args)]
pub(super) struct StatusArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// Show all queues of the vhost that --vhost specifies, without a spec; dead-letter queues have the default thresholds
    #[arg(long, requires = "vhost", conflicts_with_all = ["paths", "file", "env", "variables", "var_file"], env = "TOPO_ALL", value_parser = BoolishValueParser::new())]
    pub(super) all: bool,
    /// Repeat until interrupted; on a terminal, redraw the screen [default interval: 5s]
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, require_equals = true, default_missing_value = "5s", value_parser = positive_duration, env = "TOPO_WATCH")]
    pub(super) watch: Option<Duration>,
    /// Name of the lock queue, as in apply --lock-name
    #[arg(long, value_name = "NAME", default_value = LOCK_QUEUE, value_parser = NonEmptyStringValueParser::new(), env = "TOPO_LOCK_NAME")]
    pub(super) lock_name: String,
    /// Output format; with --watch, JSON is printed as one document per line
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ReportFormat,
    #[command(flatten)]
    pub(super) connection: ConnectionArguments,
}
