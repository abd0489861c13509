//! `topo test --live`: runs the cases on a broker as well, in scratch vhosts, which are deleted afterwards.

use super::arguments::TestArguments;
use super::files::ReadFile;
use super::offline::{checked_spec, offline_report};
use super::scratch::{creation_failure, delete_or_clear, is_refused};
use crate::apply::Interrupt;
use crate::broker::Access;
use crate::cases::{CaseOutcome, CaseResult, FileReport, LiveResult, LiveTarget};
use crate::cli::arguments::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::progress::Progress;
use crate::cli::{connection, interaction, output};
use crate::live::{self, LiveError, Preparation, Scale, prepare};
use crate::model::count::{count, number};
use crate::model::printable::clean;
use crate::model::{BrokerVersion, Intervals, VhostName};
use crate::rabbitmq::BrokerProfile;
use crate::render::shell::quote;
use std::cell::Cell;
use std::time::Duration;

/// The number of cases for each scratch vhost.
const CASES_PER_VHOST: usize = 3;
/// The maximum number of scratch vhosts of a file.
const MAX_VHOSTS: usize = 4;
/// The age from which a scratch vhost is reported as left behind.
const OLD: Duration = Duration::from_secs(3600);

/// The pause between two checks for a signal.
const PAUSE: Duration = Duration::from_millis(50);

/// A broker on which cases run.
pub(super) struct LiveBroker<'a> {
    access: Access,
    version: BrokerVersion,
    arguments: &'a TestArguments,
    global: &'a Global,
    /// Requested by a signal.
    interrupt: Interrupt,
    /// True if a scratch vhost could not be deleted or emptied.
    has_left: Cell<bool>,
}

impl<'a> LiveBroker<'a> {
    /// Connects to the broker.
    pub(super) async fn connect(arguments: &'a TestArguments, global: &'a Global) -> Result<Self, Failure> {
        let access = connection::connect(&arguments.connection, Intervals::default())?;
        let reading = Progress::new(global).start_spinner(format!("reading {}", access.broker.shown_url()));
        let survey = access.broker.survey().await?;
        let version = survey.profile(&VhostName::new("/")).version;
        if let Ok(old) = live::leftovers(&access, OLD).await
            && !old.is_empty()
            && !global.quiet
        {
            let number = count(old.len() as u64, "temporary vhost");
            let flags = connection::flags(&arguments.connection);
            output::eprint(&format!(
                "note: killed runs left {number} behind; to delete them: topo test --clean{flags}\n"
            ));
        }
        drop(reading);
        let interrupt = Interrupt::default();
        let requested = interrupt.clone();
        // From now on, a signal does not end the process.
        tokio::spawn(async move {
            interaction::interrupted().await;
            requested.request();
        });
        Ok(Self { access, version, arguments, global, interrupt, has_left: Cell::new(false) })
    }

    /// Returns true if a scratch vhost could not be deleted or emptied.
    pub(super) fn has_left_vhosts(&self) -> bool {
        self.has_left.get()
    }

    /// Runs the cases of a file offline and on the broker.
    pub(super) async fn run_file(&self, read: &ReadFile) -> Result<FileReport, Failure> {
        if self.interrupt.is_requested() {
            return Err(Stopped::Interrupted.into_failure());
        }
        let loaded = read.load(self.arguments, self.version)?;
        let (spec, expansion) = checked_spec(read, &loaded)?;
        let profile = BrokerProfile::of(self.version);
        let mut report = offline_report(read, &loaded, self.version, (self.arguments, true))?;
        let url = self.access.broker.shown_url();
        if !is_for(&read.file.brokers, self.version) {
            report.live = Some(LiveTarget { url, time_scale: 1 });
            let versions: Vec<String> = read.file.brokers.iter().map(ToString::to_string).collect();
            let reason = format!("the test file is for RabbitMQ {}", versions.join(", "));
            for result in &mut report.results {
                (result.outcome, result.live) = (CaseOutcome::Skipped, Some(LiveResult::NotRun(reason.clone())));
            }
            return Ok(report);
        }
        let live = &self.arguments.live;
        let limits = (live.time_scale.map(Scale::new), live.time_limit);
        let preparation = prepare(&read.file, &self.arguments.run, (spec, expansion), &profile, limits);
        report.live = Some(LiveTarget { url, time_scale: preparation.scale.divisor() });
        for (index, reason) in &preparation.not_run {
            if let Some(result) = report.results.get_mut(*index) {
                result.live = Some(LiveResult::NotRun(reason.clone()));
            }
        }
        if !preparation.cases.is_empty() {
            self.run_cases(&preparation, &mut report.results).await?;
        }
        Ok(report)
    }

    /// Runs the cases in scratch vhosts, and deletes them, even after a failure or a signal.
    async fn run_cases(&self, preparation: &Preparation, results: &mut [CaseResult]) -> Result<(), Failure> {
        let provided = self.arguments.live.scratch_vhost.as_deref().map(VhostName::new);
        let is_provided = provided.is_some();
        let vhosts: Vec<VhostName> = match provided {
            Some(vhost) => vec![vhost],
            None => {
                let number = preparation.cases.len().div_ceil(CASES_PER_VHOST).min(MAX_VHOSTS);
                (0..number).map(|_| live::new_name()).collect()
            }
        };
        // The vhosts that may exist.
        let mut used = Vec::new();
        let ran = self.run_in((&vhosts, is_provided), &mut used, preparation, results).await;
        if matches!(ran, Err(Stopped::Unused(_))) {
            return ran.map_err(Stopped::into_failure);
        }
        let cleaned = match self.arguments.live.keep {
            true => {
                let names: Vec<String> = used.iter().map(|vhost| clean(vhost.as_str())).collect();
                output::eprint(&format!("kept: {}\n", names.join(", ")));
                Ok(())
            }
            false => delete_or_clear(&self.access, (&used, is_provided), &self.arguments.connection).await,
        };
        match (ran, cleaned) {
            (Ok(()), Ok(())) => Ok(()),
            // The results are complete.
            (Ok(()), Err(left)) => {
                left.added_to(Failure::failed("the results are complete, but vhosts are left")).report();
                self.has_left.set(true);
                Ok(())
            }
            (Err(Stopped::Interrupted), Ok(())) if !self.arguments.live.keep => {
                let what = if is_provided { "the vhost was emptied" } else { "the temporary vhosts were deleted" };
                Err(Failure::failed(format!("interrupted; {what}")).exit(Exit::Interrupted))
            }
            (Err(stopped), Ok(())) => Err(stopped.into_failure()),
            (Err(stopped), Err(left)) => Err(left.added_to(stopped.into_failure())),
        }
    }

    async fn run_in(
        &self,
        (vhosts, is_provided): (&[VhostName], bool),
        used: &mut Vec<VhostName>,
        preparation: &Preparation,
        results: &mut [CaseResult],
    ) -> Result<(), Stopped> {
        let default_type = preparation.default_queue_type();
        for vhost in vhosts {
            if is_provided {
                live::expect_empty(&self.access, vhost).await.map_err(|error| Stopped::Unused(self.failure(error)))?;
                used.push(vhost.clone());
                continue;
            }
            // Not interrupted: a request without a response can create the vhost after its deletion.
            let created = live::create(&self.access, vhost, default_type.clone()).await;
            if !created.as_ref().is_err_and(is_refused) {
                used.push(vhost.clone());
            }
            created.map_err(|error| Stopped::Failed(creation_failure(error)))?;
        }
        let total = preparation.cases.len() as u64;
        let running = Progress::new(self.global).start_spinner(format!(
            "running {} on {}",
            count(total, "case"),
            self.access.broker.shown_url()
        ));
        let done = Cell::new(0);
        let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr()) && !self.global.quiet;
        let observe = || {
            done.set(done.get() + 1);
            if is_terminal {
                running.update(&format!("{} of {} run", number(done.get()), count(total, "case")));
            }
        };
        let ran = tokio::select! {
            biased;
            () = self.interrupted() => return Err(Stopped::Interrupted),
            ran = live::run(&self.access, vhosts, preparation, &observe) => ran,
        };
        for (case, differences) in ran.map_err(|error| Stopped::Failed(self.failure(error)))? {
            if let Some(result) = results.get_mut(case.index) {
                result.record_live(differences, &case.outcome);
            }
        }
        Ok(())
    }

    /// Waits for a signal.
    async fn interrupted(&self) {
        while !self.interrupt.is_requested() {
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn failure(&self, error: LiveError) -> Failure {
        let message = clean(&error.to_string());
        match error {
            LiveError::Broker(error) => Failure::from(error),
            LiveError::Amqp(_) => Failure::failed(message).hint("set the address of the broker with --amqp-url"),
            LiveError::NotDeclared { reasons, .. } => {
                reasons.iter().fold(Failure::failed(message), |failure, reason| failure.because(clean(reason)))
            }
            LiveError::NoVhost(vhost) => {
                Failure::failed(message).hint(format!("create it: rabbitmqctl add_vhost {}", quote(vhost.as_str())))
            }
            LiveError::NotEmpty(_) => Failure::failed(message).hint("use another vhost, or delete its objects"),
        }
    }
}

/// The reason why the cases did not all run.
enum Stopped {
    /// The provided vhost cannot be used, and was not changed.
    Unused(Failure),
    Failed(Failure),
    Interrupted,
}

impl Stopped {
    fn into_failure(self) -> Failure {
        match self {
            Self::Unused(failure) | Self::Failed(failure) => failure,
            Self::Interrupted => Failure::failed("interrupted").exit(Exit::Interrupted),
        }
    }
}

/// Returns true if the cases of a file with these versions hold for the broker: for all patches of a series.
fn is_for(versions: &[BrokerVersion], broker: BrokerVersion) -> bool {
    let series = |version: &BrokerVersion| (version.major, version.minor);
    versions.is_empty() || versions.iter().any(|version| series(version) == series(&broker))
}
