//! Defines the exit codes, and the failures that end a command early. Exit codes are stable, because pipelines depend
//! on them. A failure is printed as lines that start with `error:`, `caused by:` and `hint:`.

use super::hints::hints;
use crate::broker::{BrokerError, redacted_urls_in};
use crate::model::VhostName;
use crate::model::count::number;
use crate::render::style::{Painted, RED, YELLOW, clean};
use crate::spec::closest;
use std::io::Write;
use std::process::ExitCode;

/// The result of a command, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// The command succeeded, or there was nothing to do.
    Done,
    /// The command failed before it changed anything, or there are findings at or above `--fail-on`.
    Failed,
    /// `plan --detailed-exitcode`: there are changes.
    Changes,
    /// `status`: a warning.
    Warning,
    /// `status`: a critical state.
    Critical,
    /// A hazard or a conflict blocks the plan; nothing was changed.
    Blocked,
    /// The command may have changed the broker, but did not complete all steps or could not verify the result.
    Partial,
    /// The broker no longer matches the saved plan; nothing was changed.
    Stale,
    /// Another apply holds the lock, or another `topo dlq` command is using the queue; nothing was changed. For
    /// `topo lock`, a lock is held.
    Locked,
    /// The arguments are invalid. clap's default exit code is 2, which means "changes" here.
    Usage,
    /// The spec is invalid.
    Spec,
    /// The command was interrupted before it changed anything.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Changes | Exit::Warning => 2,
            Exit::Blocked | Exit::Critical => 3,
            Exit::Partial => 4,
            Exit::Stale => 5,
            Exit::Locked => 6,
            Exit::Usage => 64,
            Exit::Spec => 65,
            Exit::Interrupted => 130,
        })
    }
}

/// The error that ended a command, with its causes and hints.
#[derive(Debug)]
pub(super) struct Failure {
    exit: Exit,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }

    /// Creates a failure with exit code [`Exit::Failed`].
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Creates the failure for invalid arguments, with exit code [`Exit::Usage`].
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Creates the failure for an unusable spec or input file, with exit code [`Exit::Spec`].
    pub(super) fn spec(message: impl Into<String>) -> Self {
        Self::new(Exit::Spec, message)
    }

    /// Replaces the exit code.
    pub(super) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Adds a cause.
    pub(super) fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds a broker error as the cause, with its hints.
    pub(super) fn because_of(self, error: &BrokerError) -> Self {
        let failure = self.because(error.to_string());
        hints(error).into_iter().fold(failure, Self::hint)
    }

    /// Adds a hint.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Prints the failure to standard error and returns the exit code.
    pub(super) fn report(self) -> Exit {
        let mut stream = anstream::stderr().lock();
        // Write errors are ignored: standard error may be closed.
        if !self.message.is_empty() {
            let _ = writeln!(stream, "{} {}", Painted(RED, "error:"), clean(&redacted_urls_in(&self.message)));
        }
        for cause in &self.causes {
            let _ = writeln!(stream, "  {} {}", Painted(RED, "caused by:"), clean(&redacted_urls_in(cause)));
        }
        for hint in &self.hints {
            let _ = writeln!(stream, "  {} {}", Painted(YELLOW, "hint:"), clean(&redacted_urls_in(hint)));
        }
        self.exit
    }
}

impl From<BrokerError> for Failure {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other errors have the same exit code")]
    fn from(error: BrokerError) -> Self {
        let exit = match &error {
            BrokerError::LockHeld { .. } => Exit::Locked,
            BrokerError::Inequivalent { .. } => Exit::Blocked,
            guard if guard.is_guard_failure() => Exit::Blocked,
            _ => Exit::Failed,
        };
        let failure = Self::new(exit, error.to_string());
        hints(&error).into_iter().fold(failure, Self::hint)
    }
}

/// The maximum number of existing vhosts that are listed for a missing vhost.
const MAX_VHOSTS: usize = 8;

/// Returns the failure for a missing vhost. `known` contains the existing vhosts. The hint suggests a vhost with a
/// similar name, or lists the existing vhosts.
pub(super) fn no_such_vhost(vhost: &VhostName, known: &[VhostName]) -> Failure {
    let vhost = vhost.as_str();
    let failure = Failure::failed(format!("vhost `{}` does not exist", clean(vhost)));
    if let Some(near) = closest(vhost, known.iter().map(VhostName::as_str)) {
        return failure.hint(format!("did you mean `{}`?", clean(near)));
    }
    let shown: Vec<String> = known.iter().take(MAX_VHOSTS).map(|it| format!("`{}`", clean(it.as_str()))).collect();
    let more = match known.len().checked_sub(MAX_VHOSTS) {
        Some(more) if more > 0 => format!(" and {} more", number(more as u64)),
        Some(_) | None => String::new(),
    };
    if shown.is_empty() { failure } else { failure.hint(format!("existing vhosts: {}{more}", shown.join(", "))) }
}
