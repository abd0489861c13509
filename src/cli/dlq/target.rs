//! Defines the arguments, failures, confirmation, signal handling and progress display that the `topo dlq` commands
//! share.

use super::super::arguments::Global;
use super::super::connection::{self, ConnectionArguments};
use super::super::failure::{Exit, Failure, no_such_vhost};
use super::super::interaction;
use super::super::value_parsers::positive_duration;
use crate::apply::Interrupt;
use crate::broker::{Access, BrokerError};
use crate::cli::progress::{Operation, Progress};
use crate::model::names::{DEFAULT_VHOST, LOCK_QUEUE};
use crate::model::printable::clean;
use crate::model::{Intervals, QueueName, VhostName};
use crate::operate::dlq::{DlqError, Hazard, HoldLimits, Inspection, InspectionEnd, VhostState};
use crate::render::shell::quote;
use crate::spec::closest;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::time::Duration;

/// The maximum number of dead-letter queues that the hint for a missing queue lists.
const MAX_QUEUES: usize = 8;

/// The default for `--hold`. On RabbitMQ 4.x, a classic queue uses up to 4 KB of memory for each held message.
const DEFAULT_HOLD: u32 = 65_535;
/// The maximum value for `--hold`.
const MAX_HOLD: i64 = 1_000_000;

/// The vhost and the broker.
#[derive(Debug, Args)]
pub(in crate::cli) struct TargetArguments {
    /// Vhost of the queue
    #[arg(long, value_name = "NAME", default_value = DEFAULT_VHOST, value_parser = NonEmptyStringValueParser::new(), env = "TOPO_VHOST")]
    pub(super) vhost: String,
    /// Name of the lock queue, as in apply --lock-name
    #[arg(long, value_name = "NAME", default_value = LOCK_QUEUE, value_parser = NonEmptyStringValueParser::new(), env = "TOPO_LOCK_NAME")]
    pub(super) lock_name: String,
    #[command(flatten)]
    pub(super) connection: ConnectionArguments,
}

/// The limits and allowances for a command that reads messages.
#[derive(Debug, Args)]
pub(super) struct ReadingArguments {
    /// Maximum number of unacknowledged messages that topo holds at a time (1 to 1000000)
    #[arg(long, value_name = "N", default_value_t = DEFAULT_HOLD, value_parser = clap::value_parser!(u32).range(1..=MAX_HOLD), env = "TOPO_HOLD")]
    hold: u32,
    /// Time after which topo requeues the messages that it holds; must be shorter than the broker's consumer_timeout
    #[arg(long, value_name = "DURATION", default_value = "14m", value_parser = positive_duration, env = "TOPO_HOLD_TIME")]
    hold_time: Duration,
    /// Allow a hazard: other-consumers, inspection-cost, no-consumers or message-drop; may be repeated
    #[arg(long, value_name = "HAZARD", value_parser = hazard, hide_possible_values = true)]
    pub(super) allow: Vec<Hazard>,
    /// Accept any queue, even if no queue dead-letters messages to it
    #[arg(long)]
    pub(super) any_queue: bool,
}

impl ReadingArguments {
    pub(super) fn hold(&self) -> HoldLimits {
        HoldLimits { messages: self.hold, time: self.hold_time }
    }
}

pub(super) fn hazard(word: &str) -> Result<Hazard, String> {
    let names = Hazard::ALL.map(Hazard::as_str);
    Hazard::ALL
        .into_iter()
        .find(|it| it.as_str() == word)
        .ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

/// The vhost for a command, with the connection to the broker.
pub(super) struct Target {
    pub(super) access: Access,
    pub(super) vhost: VhostName,
    pub(super) state: VhostState,
}

impl TargetArguments {
    /// Connects to the broker, and reads the vhost.
    pub(super) async fn read(&self, global: &Global) -> Result<Target, Failure> {
        connection::refuse_password(&self.connection)?;
        let access = connection::connect(&self.connection, Intervals::default())?;
        let vhost = VhostName::new(self.vhost.as_str());
        let reading = Progress::new(global).start_spinner(format!("reading {}", access.broker.shown_url()));
        let state = VhostState::read(&access, &vhost, QueueName::new(self.lock_name.as_str()))
            .await
            .map_err(|error| self.failure(error))?;
        drop(reading);
        Ok(Target { access, vhost, state })
    }

    /// Returns the flags for a suggested command.
    pub(super) fn flags(&self) -> String {
        let preset = connection::environment("TOPO_VHOST").unwrap_or_else(|| DEFAULT_VHOST.to_owned());
        let vhost = if self.vhost == preset { String::new() } else { format!(" --vhost {}", quote(&self.vhost)) };
        format!("{vhost}{}{}", connection::lock_flag(&self.lock_name), connection::flags(&self.connection))
    }

    /// Converts an error to a failure with hints.
    pub(super) fn failure(&self, error: DlqError) -> Failure {
        let message = error.to_string();
        match error {
            DlqError::NoVhost { vhost, known } => no_such_vhost(&vhost, &known),
            DlqError::NoQueue { queue, dead_letter_queues } => {
                let mut failure = Failure::usage(clean(&message));
                if let Some(near) = closest(queue.as_str(), dead_letter_queues.iter().map(QueueName::as_str)) {
                    failure = failure.hint(format!("did you mean `{}`?", clean(near)));
                }
                if dead_letter_queues.is_empty() {
                    return failure.hint("the vhost contains no dead-letter queues");
                }
                let shown = dead_letter_queues.iter().take(MAX_QUEUES);
                let names: Vec<String> = shown.map(|it| format!("`{}`", clean(it.as_str()))).collect();
                let more = dead_letter_queues.len().saturating_sub(MAX_QUEUES);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                failure.hint(format!("dead-letter queues in the vhost: {}{more}", names.join(", ")))
            }
            DlqError::NotDeadLetterQueue { .. } => Failure::failed(clean(&message))
                .exit(Exit::Blocked)
                .hint("list the dead-letter queues in the vhost: topo dlq list")
                .hint("or use the queue anyway: --any-queue"),
            DlqError::Stream { .. } => Failure::failed(clean(&message))
                .exit(Exit::Blocked)
                .hint("read the messages with `topo dlq peek`, or write them to a file with `topo dlq export`"),
            DlqError::OtherUsers { .. } => Failure::failed(clean(&message))
                .exit(Exit::Blocked)
                .hint("to publish them, add the `impersonator` tag to your user"),
            DlqError::LowLimit { .. } => Failure::failed(clean(&message))
                .exit(Exit::Blocked)
                .hint("set a policy with `delivery-limit: -1` for the queue"),
            DlqError::Inspection { .. } => Failure::failed(clean(&message)),
            DlqError::Locked { .. } => Failure::failed(clean(&message))
                .exit(Exit::Locked)
                .hint("wait until the other run ends; the broker releases its lock when its connection closes"),
            DlqError::Hazards(hazards) => {
                let mut failure =
                    Failure::failed("the command is blocked by hazards; no messages were moved").exit(Exit::Blocked);
                let mut flags = String::new();
                for (hazard, text) in hazards {
                    failure = failure.because(format!("{}: {}", hazard.as_str(), clean(&text)));
                    let flag = format!(" --allow {}", hazard.as_str());
                    if !flags.contains(&flag) {
                        flags.push_str(&flag);
                    }
                }
                failure.hint(format!("to continue anyway:{flags}"))
            }
            DlqError::Target { .. } => Failure::failed(clean(&message))
                .exit(Exit::Blocked)
                .hint("select different messages with --source, or use a different target: --to QUEUE"),
            DlqError::Amqp { .. } => {
                Failure::failed(clean(&message)).hint("topo reads messages over AMQP; set the address with --amqp-url")
            }
            DlqError::Broker(BrokerError::LockHeld { vhost, .. }) => {
                let lock = connection::lock_flag(&self.lock_name);
                let shown =
                    format!("topo lock --vhost {}{lock}{}", quote(vhost.as_str()), connection::flags(&self.connection));
                Failure::failed(clean(&message))
                    .exit(Exit::Locked)
                    .hint("wait until the apply ends; the lock held by a killed apply expires within a minute")
                    .hint(format!("show the lock: {shown}"))
            }
            DlqError::Broker(error) => Failure::from(error),
        }
    }
}

impl Target {
    /// Checks that the queue exists and, without `--any-queue`, that it is a dead-letter queue.
    pub(super) fn expect(&self, queue: &QueueName, reading: &ReadingArguments) -> Result<(), DlqError> {
        self.state.expect_queue(queue)?;
        if reading.any_queue || self.state.dead_letter_queues.contains_key(queue) {
            return Ok(());
        }
        Err(DlqError::NotDeadLetterQueue { queue: queue.clone() })
    }
}

/// Returns the exit code of an inspection.
pub(super) fn inspection_exit(inspection: &Inspection, interrupt: &Interrupt) -> Exit {
    match inspection.end {
        InspectionEnd::Incomplete(_) | InspectionEnd::HoldFull => Exit::Failed,
        _ if interrupt.is_requested() => Exit::Interrupted,
        InspectionEnd::Complete | InspectionEnd::Limit => Exit::Done,
    }
}

/// Asks the user for confirmation. Also returns false after a signal. [`until_second_signal`] handles signals, so a
/// signal does not end the process.
pub(super) async fn confirm(question: String, interrupt: &Interrupt) -> Result<bool, Failure> {
    let mut answer = tokio::task::spawn_blocking(move || interaction::confirm(&question));
    while !interrupt.is_requested() {
        match tokio::time::timeout(Duration::from_millis(100), &mut answer).await {
            Ok(Ok(answer)) => return answer,
            Ok(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }
    Ok(false)
}

/// Runs a command that only inspects messages. Returns when the command ends, or at the second signal.
pub(super) async fn inspect_until_second_signal<T>(
    interrupt: &Interrupt,
    run: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let hint = "a message near the delivery limit of a quorum queue may be duplicated";
    run_until_second_signal(interrupt, run, || Ok(()), (Exit::Interrupted, hint)).await
}

/// Runs a command that changes a queue. Returns when the command ends, or at the second signal. After the second
/// signal, `stopped` writes the audit record.
pub(super) async fn until_second_signal<T>(
    interrupt: &Interrupt,
    run: impl Future<Output = Result<T, Failure>>,
    stopped: impl FnOnce() -> Result<(), Failure>,
) -> Result<T, Failure> {
    let hint = "messages that have already been published may be duplicated";
    run_until_second_signal(interrupt, run, stopped, (Exit::Partial, hint)).await
}

/// Runs a command. At the second signal, calls `stopped` and returns a failure with the exit code `exit` and the hint
/// `hint`.
async fn run_until_second_signal<T>(
    interrupt: &Interrupt,
    run: impl Future<Output = Result<T, Failure>>,
    stopped: impl FnOnce() -> Result<(), Failure>,
    (exit, hint): (Exit, &str),
) -> Result<T, Failure> {
    tokio::select! {
        ended = run => ended,
        () = interaction::second_signal(interrupt.clone()) => {
            if let Err(failure) = stopped() {
                failure.report();
            }
            Err(Failure::failed("stopped immediately: the broker requeues the unacknowledged messages").exit(exit).hint(hint))
        }
    }
}

/// The progress display of an operation. It is updated at most twice per second, and only on a terminal.
pub(super) struct ProgressDisplay {
    operation: Operation,
    last: std::cell::Cell<Option<std::time::Instant>>,
    started: std::time::Instant,
    is_terminal: bool,
}

impl ProgressDisplay {
    pub(super) fn start(global: &Global, message: String) -> Self {
        let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr()) && !global.quiet;
        Self {
            operation: Progress::new(global).start_spinner(message),
            last: std::cell::Cell::new(None),
            started: std::time::Instant::now(),
            is_terminal,
        }
    }

    /// Shows the number of processed messages and their rate.
    pub(super) fn update(&self, done: u64, total: u64, what: &str) {
        let now = std::time::Instant::now();
        let is_due = self.last.get().is_none_or(|last| now.duration_since(last).as_millis() >= 500);
        if !self.is_terminal || !is_due {
            return;
        }
        self.last.set(Some(now));
        let seconds = now.duration_since(self.started).as_secs_f64();
        let rate = if seconds > 0.5 { format!(", {:.0} per second", done as f64 / seconds) } else { String::new() };
        let percent = (done * 100).checked_div(total).map_or_else(String::new, |it| format!(" ({it}%)"));
        self.operation.update(&format!("{} {what}{percent}{rate}", crate::model::count::number(done)));
    }
}
