//! `topo test --live`: also runs the cases on a broker, in scratch vhosts that topo deletes afterward.

use super::arguments::TestArguments;
use super::files::ReadFile;
use super::offline::{checked_spec, offline_report};
use super::scratch::{NotCleaned, creation_failure, delete_or_clear, is_refused};
use crate::apply::Interrupt;
use crate::broker::Access;
use crate::cases::{CaseOutcome, CaseResult, FileReport, LiveResult, LiveTarget};
use crate::cli::arguments::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::progress::Progress;
use crate::cli::{connection, interaction, output};
use crate::live::{self, LiveError, Preparation, Scale, Verdict, prepare};
use crate::model::count::{count, number};
use crate::model::printable::clean;
use crate::model::{BrokerVersion, Intervals, VhostName};
use crate::rabbitmq::BrokerProfile;
use crate::render::shell::quote;
use std::cell::Cell;
use std::time::Duration;

/// The number of cases per scratch vhost, unless this would require more than [`MAX_VHOSTS`] vhosts.
const CASES_PER_VHOST: usize = 3;
/// The maximum number of scratch vhosts for a test file.
const MAX_VHOSTS: usize = 4;
/// The minimum age of the scratch vhosts that topo reports as vhosts from earlier runs.
const OLD: Duration = Duration::from_secs(3600);

/// A broker on which cases run.
pub(super) struct LiveBroker<'a> {
    access: Access,
    version: BrokerVersion,
    arguments: &'a TestArguments,
    global: &'a Global,
    /// Requested by the first signal: topo stops, and deletes the scratch vhosts.
    interrupt: Interrupt,
    /// Requested by the second signal: topo does not wait for the deletion.
    abort: Interrupt,
    /// True if a scratch vhost could not be deleted or emptied.
    cleanup_failed: Cell<bool>,
}

/// The reason why some cases did not run.
enum Stopped {
    /// The provided vhost cannot be used, and topo did not change it.
    VhostUnusable(Failure),
    Failed(Failure),
}

impl<'a> LiveBroker<'a> {
    /// Connects to the broker.
    pub(super) async fn connect(arguments: &'a TestArguments, global: &'a Global) -> Result<Self, Failure> {
        let access = connection::connect(&arguments.connection, Intervals::default())?;
        let reading = Progress::new(global).start_spinner(format!("reading {}", access.broker.shown_url()));
        let survey = access.broker.survey().await?;
        let version = survey.profile(&VhostName::new("/")).version;
        let old = live::leftovers(&access, OLD).await.unwrap_or_default();
        drop(reading);
        if !old.is_empty() && !global.quiet {
            let vhosts = count(old.len() as u64, "scratch vhost");
            let flags = connection::flags(&arguments.connection);
            output::eprint(&format!(
                "note: the broker has {vhosts} from earlier runs; to delete them: topo test --clean{flags}\n"
            ));
        }
        let (interrupt, abort) = (Interrupt::default(), Interrupt::default());
        let (first, second) = (interrupt.clone(), abort.clone());
        // From this point on, a signal no longer ends the process.
        let waiting = interaction::second_signal(first);
        tokio::spawn(async move {
            waiting.await;
            second.request();
        });
        Ok(Self { access, version, arguments, global, interrupt, abort, cleanup_failed: Cell::new(false) })
    }

    /// Returns true after a signal.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.is_requested()
    }

    /// Returns true if a scratch vhost could not be deleted or emptied.
    pub(super) fn cleanup_failed(&self) -> bool {
        self.cleanup_failed.get()
    }

    /// Runs the cases in a file offline and on the broker.
    pub(super) async fn run_file(&self, read: &ReadFile) -> Result<FileReport, Failure> {
        if let Some(version) = read.file.brokers.first().filter(|_| !applies_to(&read.file.brokers, self.version)) {
            return self.skipped(read, *version);
        }
        let loaded = read.load(self.arguments, self.version)?;
        let (spec, expansion) = checked_spec(read, &loaded)?;
        let profile = BrokerProfile::of(self.version);
        let mut report = offline_report(read, &loaded, (&profile, None), (self.arguments, true))?;
        let live = &self.arguments.live;
        let limits = (live.time_scale.map(Scale::new), live.time_limit);
        let preparation = prepare(&read.file, &self.arguments.run, (spec, expansion), &profile, limits);
        let url = self.access.broker.shown_url();
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

    /// Returns the report for a file whose `brokers` list does not include the broker's version. All cases are skipped.
    fn skipped(&self, read: &ReadFile, version: BrokerVersion) -> Result<FileReport, Failure> {
        let loaded = read.load(self.arguments, version)?;
        let mut report = offline_report(read, &loaded, (&BrokerProfile::of(version), None), (self.arguments, true))?;
        report.version = self.version;
        report.live = Some(LiveTarget { url: self.access.broker.shown_url(), time_scale: 1 });
        let versions: Vec<String> = read.file.brokers.iter().map(ToString::to_string).collect();
        let reason = format!("`brokers` ({}) does not include RabbitMQ {}", versions.join(", "), self.version);
        for result in &mut report.results {
            (result.outcome, result.live) = (CaseOutcome::Skipped, Some(LiveResult::NotRun(reason.clone())));
        }
        Ok(report)
    }

    /// Runs the cases in scratch vhosts. Then deletes these vhosts, or empties the vhost from `--scratch-vhost`, even
    /// after a failure or a signal. With `--keep`, keeps the vhosts.
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
        // The vhosts that the run may have created, or the provided vhost.
        let mut used = Vec::new();
        let ran = self.run_in((&vhosts, is_provided), &mut used, preparation, results).await;
        let ran = match ran {
            Err(Stopped::VhostUnusable(failure)) => return Err(failure),
            Err(Stopped::Failed(failure)) => Err(failure),
            Ok(()) => Ok(()),
        };
        if self.arguments.live.keep {
            if !used.is_empty() {
                let names: Vec<String> = used.iter().map(|vhost| clean(vhost.as_str())).collect();
                output::eprint(&format!("kept scratch vhosts: {}\n", names.join(", ")));
            }
            return ran;
        }
        if used.is_empty() {
            return ran;
        }
        let cleaned = tokio::select! {
            biased;
            () = requested(&self.abort) => Err(NotCleaned::aborted(&used, is_provided, &self.arguments.connection)),
            cleaned = delete_or_clear(&self.access, (&used, is_provided), preparation, &self.arguments.connection) => cleaned,
        };
        let Err(left) = cleaned else { return ran };
        self.cleanup_failed.set(true);
        match ran {
            Ok(()) => left.added_to(Failure::failed("the cases ran, but topo could not clean up")).report(),
            Err(failure) => return Err(left.added_to(failure)),
        };
        Ok(())
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
            if self.is_interrupted() {
                return Err(Stopped::Failed(interruption()));
            }
            if is_provided {
                let found = live::expect_empty(&self.access, vhost).await;
                found.map_err(|error| Stopped::VhostUnusable(self.failure(error)))?;
                used.push(vhost.clone());
                continue;
            }
            // A signal must not cancel this request. Otherwise, the broker could create the vhost after the cleanup.
            let created = live::create(&self.access, vhost, default_type.clone()).await;
            if !created.as_ref().is_err_and(is_refused) {
                used.push(vhost.clone());
            }
            created.map_err(|error| Stopped::Failed(creation_failure(error)))?;
        }
        let total = count(preparation.cases.len() as u64, "case");
        let progress = Progress::new(self.global);
        let running = progress.start_spinner(format!("running {total} on {}", self.access.broker.shown_url()));
        let done = Cell::new(0);
        let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr()) && !self.global.quiet;
        let observe = || {
            done.set(done.get() + 1);
            if is_terminal {
                running.update(&format!("ran {} of {total}", number(done.get())));
            }
        };
        let has_declared = Cell::new(false);
        let stop = (&self.interrupt, &has_declared);
        let ran = live::run(&self.access, vhosts, preparation, stop, &observe).await;
        let ran = ran.map_err(|error| {
            let failure = self.failure(error);
            // Objects that this run did not declare must not be deleted.
            match is_provided && !has_declared.get() {
                true => Stopped::VhostUnusable(failure),
                false => Stopped::Failed(failure),
            }
        });
        for (case, verdict) in ran? {
            let Some(result) = results.get_mut(case.index) else { continue };
            match verdict {
                Verdict::Compared(differences) => result.record_live(differences, &case.outcome),
                Verdict::NotComparable(reason) => result.live = Some(LiveResult::NotRun(reason)),
                Verdict::NotEnded => {
                    result.live = Some(LiveResult::NotRun("the case did not finish in time".to_owned()));
                }
                Verdict::NotStarted => {
                    let reason = "an earlier case did not finish in time".to_owned();
                    result.live = Some(LiveResult::NotRun(reason));
                }
            }
        }
        Ok(())
    }

    fn failure(&self, error: LiveError) -> Failure {
        let message = clean(&error.to_string());
        match error {
            LiveError::Broker(error) => Failure::from(error),
            LiveError::Interrupted => interruption(),
            LiveError::Amqp(_) => Failure::failed(message).hint("set the address of the broker with --amqp-url"),
            LiveError::NotDeclared { reasons, .. } => {
                reasons.iter().fold(Failure::failed(message), |failure, reason| failure.because(clean(reason)))
            }
            LiveError::NoVhost(vhost) => Failure::failed(message).hint(format!(
                "create it with rabbitmqctl add_vhost {}, or grant permissions with rabbitmqctl set_permissions",
                quote(vhost.as_str())
            )),
            LiveError::NotEmpty(_) => Failure::failed(message).hint("specify an empty vhost with --scratch-vhost"),
            LiveError::InUse(_) => Failure::failed(message).hint("wait until the other run ends, or use another vhost"),
        }
    }
}

/// Returns the failure for a run that a signal stopped.
pub(super) fn interruption() -> Failure {
    Failure::failed("interrupted").exit(Exit::Interrupted)
}

async fn requested(interrupt: &Interrupt) {
    while !interrupt.is_requested() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns true if the file applies to the broker's version. Patch versions are ignored.
pub(super) fn applies_to(versions: &[BrokerVersion], broker: BrokerVersion) -> bool {
    let series = |version: &BrokerVersion| (version.major, version.minor);
    versions.is_empty() || versions.iter().any(|version| series(version) == series(&broker))
}
