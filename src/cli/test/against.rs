//! `topo test --against`: runs the cases against another topology. This topology is the current or planned topology of
//! a broker, or the topology in a file.

use super::arguments::TestArguments;
use super::files::{ReadFile, spec_arguments};
use super::live::applies_to;
use super::offline::{checked_spec, offline_report};
use crate::apply::plan_snapshots;
use crate::broker::{Access, Snapshot, definitions};
use crate::cases::{Against, CaseOutcome, FileReport, OtherTopology};
use crate::cli::arguments::{FindingsFormat, Global};
use crate::cli::failure::Failure;
use crate::cli::files::{definitions_failure, definitions_text, is_spec_path};
use crate::cli::progress::Progress;
use crate::cli::sources::Sources;
use crate::cli::{connection, input, output};
use crate::model::printable::clean;
use crate::model::{BrokerVersion, Intervals, VhostName};
use crate::plan::{Options, before_migrations, topology_after};
use crate::rabbitmq::BrokerProfile;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The source of the topologies in which the cases run.
pub(super) struct Target<'a> {
    arguments: &'a TestArguments,
    global: &'a Global,
    source: Source,
}

enum Source {
    /// A broker. If `is_planned` is true, the cases run in its topology after the plan, otherwise in its current
    /// topology.
    Broker {
        access: Box<Access>,
        is_planned: bool,
    },
    Definitions(PathBuf, String),
    Spec(PathBuf),
}

impl<'a> Target<'a> {
    /// Determines the source of the topologies. Reads a definitions file, and creates a client for a broker without
    /// sending a request.
    pub(super) async fn connect(
        against: &str,
        arguments: &'a TestArguments,
        global: &'a Global,
    ) -> Result<Self, Failure> {
        let source = match against {
            "live" | "planned" => {
                if !arguments.broker_version.is_empty() {
                    let message = format!("--against {against} uses the version of the broker");
                    return Err(Failure::usage(message).hint("omit --broker-version"));
                }
                let access = Box::new(connection::connect(&arguments.connection, Intervals::default())?);
                Source::Broker { access, is_planned: against == "planned" }
            }
            path if is_spec_path(path.as_ref()) => Source::Spec(path.into()),
            path => {
                let text = definitions_text(path.as_ref())?;
                if is_saved_plan(&text) {
                    return Err(Failure::usage(format!("{} is a saved plan", clean(path)))
                        .hint("a plan does not contain all objects of the vhost; use --against planned"));
                }
                Source::Definitions(path.into(), text)
            }
        };
        Ok(Self { arguments, global, source })
    }

    /// Runs the cases in a file: once if the topology comes from a broker, otherwise once for each version.
    pub(super) async fn run_file(&self, read: &ReadFile) -> Result<Vec<FileReport>, Failure> {
        match &self.source {
            Source::Broker { access, is_planned } => {
                let snapshot = self.snapshot(access, *is_planned, read).await?;
                let url = access.broker.shown_url();
                let against = if *is_planned { Against::Planned(url) } else { Against::Live(url) };
                Ok(vec![self.run_on(read, (snapshot, against), false)?])
            }
            Source::Definitions(path, text) => {
                let against = || Against::File(clean(&path.display().to_string()));
                let snapshot = |version: Option<BrokerVersion>| {
                    let vhost = self.vhost(read, version.unwrap_or(BrokerVersion::NEWEST_KNOWN))?;
                    let found = definitions::read(text, &vhost, version);
                    let snapshot = found.map_err(|error| definitions_failure(path, text, &error))?;
                    expect_vhost(snapshot, &clean(&path.display().to_string()))
                };
                let written = snapshot(None)?;
                let lacks_internal = definitions::lack_internal_exchanges(written.profile.version);
                match self.arguments.broker_version.as_slice() {
                    [] => Ok(vec![self.run_on(read, (written, against()), lacks_internal)?]),
                    versions => versions
                        .iter()
                        .map(|version| self.run_on(read, (snapshot(Some(*version))?, against()), lacks_internal))
                        .collect(),
                }
            }
            Source::Spec(path) => {
                let versions = read.versions(self.arguments);
                versions.into_iter().map(|version| self.run_in_spec(read, path, version)).collect()
            }
        }
    }

    /// Returns the vhost of a test file.
    fn vhost(&self, read: &ReadFile, version: BrokerVersion) -> Result<VhostName, Failure> {
        let loaded = read.load(self.arguments, version)?;
        let (spec, _) = checked_spec(read, &loaded)?;
        Ok(spec.vhost.value.clone())
    }

    /// Reads the vhost of a test file. If `is_planned` is true, plans the spec without stand-ins, and returns the
    /// topology after the plan.
    async fn snapshot(&self, access: &Access, is_planned: bool, read: &ReadFile) -> Result<Snapshot, Failure> {
        let broker = &access.broker;
        let reading = Progress::new(self.global).start_spinner(format!("reading {}", broker.shown_url()));
        let survey = broker.survey().await?;
        let specs = read.spec_arguments(self.arguments);
        let newest = BrokerVersion::NEWEST_KNOWN;
        let mut loaded = input::load_for(&specs, "topo test", FindingsFormat::Text, newest)?;
        let (spec, expansion) = checked_spec(read, &loaded)?;
        let (vhost, kinds) = (spec.vhost.value.clone(), expansion.scope.record_kinds());
        let profile = survey.profile(&vhost);
        let mut snapshots = broker.lists(std::slice::from_ref(&vhost)).await.snapshots(survey)?;
        for snapshot in &mut snapshots {
            broker.read_records(snapshot, &kinds).await?;
        }
        if is_planned {
            loaded.expand_for(|_| &profile)?;
            let desired: Vec<_> = loaded.take_desired().into_iter().map(Arc::new).collect();
            let plan = plan_snapshots(access, None, &snapshots, &desired, &Options::default()).await?;
            for (snapshot, part) in snapshots.iter_mut().zip(&plan.vhosts) {
                if !part.blocks.is_empty() {
                    let failure = Failure::failed("the plan is blocked, so topo cannot determine the planned topology");
                    let reasons = part.blocks.iter().map(|block| clean(&format!("{}: {}", block.address, block.text)));
                    let failure = reasons.fold(failure, Failure::because);
                    return Err(failure.hint("resolve the blockers that `topo plan` reports"));
                }
                snapshot.topology = topology_after(&snapshot.topology, part).map_err(Failure::failed)?;
            }
        }
        drop(reading);
        let snapshot = snapshots.pop().ok_or_else(|| Failure::failed(format!("could not read vhost {vhost}")))?;
        let hint = "if the first apply has not created the vhost yet, use --against planned";
        expect_vhost(snapshot, &broker.shown_url()).map_err(|failure| failure.hint(hint))
    }

    /// Runs the cases in a topology that contains all objects of the vhost, or all objects except internal exchanges.
    fn run_on(
        &self,
        read: &ReadFile,
        (snapshot, against): (Snapshot, Against),
        lacks_internal: bool,
    ) -> Result<FileReport, Failure> {
        let version = snapshot.profile.version;
        let is_replaced = !self.arguments.broker_version.is_empty();
        let excluding = Some(&read.file.brokers).filter(|brokers| !is_replaced && !applies_to(brokers, version));
        let declared = excluding.and_then(|brokers| brokers.first());
        let loaded = read.load(self.arguments, declared.copied().unwrap_or(version))?;
        // During an interrupted migration, the broker routes messages to holding queues, and topo later moves them
        // back. Therefore, the cases run in the topology before the migration.
        let topology = before_migrations(&snapshot.topology).unwrap_or(snapshot.topology);
        let other = OtherTopology::complete(topology, lacks_internal);
        let mut report =
            offline_report(read, &loaded, (&snapshot.profile, Some((&other, against))), (self.arguments, true))?;
        if declared.is_some() {
            if !self.global.quiet {
                let versions: Vec<String> = read.file.brokers.iter().map(ToString::to_string).collect();
                let versions = versions.join(", ");
                let note = format!(
                    "skipped the cases of {}: `brokers` ({versions}) does not include RabbitMQ {version}",
                    report.file
                );
                output::eprint(&format!("note: {note}\n"));
            }
            report.results.iter_mut().for_each(|result| result.outcome = CaseOutcome::Skipped);
        }
        Ok(report)
    }

    /// Runs the cases in the topology of another spec, with the same variables and stand-ins.
    fn run_in_spec(&self, read: &ReadFile, path: &Path, version: BrokerVersion) -> Result<FileReport, Failure> {
        let profile = BrokerProfile::of(version);
        let loaded = read.load(self.arguments, version)?;
        let (spec, _) = checked_spec(read, &loaded)?;
        let vhost = &spec.vhost.value;
        let arguments = spec_arguments(vec![path.to_owned()], None, self.arguments);
        let sources = Sources::read_other(&arguments, path, loaded.environment.as_ref())?;
        let mut other = input::load_for_known(sources, |_| Some(profile.clone()))?;
        other.change_specs(&profile, read.source.clone(), |spec| {
            if spec.vhost.value == *vhost {
                // A stand-in applies only to an object that is also external in the other spec.
                read.file.stand_ins.apply(spec, &read.source.name);
            }
        })?;
        let name = other.names.clone();
        let Some(desired) = other.take_desired().into_iter().find(|it| it.topology.vhost == *vhost) else {
            return Err(Failure::failed(format!("{name} does not declare vhost {}", clean(vhost.as_str()))));
        };
        let other = OtherTopology::of_spec(desired.topology, desired.scope);
        offline_report(read, &loaded, (&profile, Some((&other, Against::File(name)))), (self.arguments, true))
    }
}

/// Returns true if the text is a plan rather than a definitions file.
fn is_saved_plan(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Plan {
        #[serde(rename = "fingerprint")]
        _fingerprint: String,
    }
    serde_json::from_str::<Plan>(text).is_ok()
}

/// Returns a failure if the vhost does not exist.
fn expect_vhost(snapshot: Snapshot, source: &str) -> Result<Snapshot, Failure> {
    match snapshot.topology.settings {
        Some(_) => Ok(snapshot),
        None => Err(Failure::failed(format!("{source} has no vhost {}", clean(snapshot.topology.vhost.as_str())))),
    }
}
