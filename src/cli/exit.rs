//! Defines the exit codes, which are stable because pipelines depend on them. Also defines the result of an apply: its
//! exit code, and its message on standard error. The report contains the details.

use std::process::ExitCode;

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done, or nothing to do.
    Done,
    /// Failed before anything was changed.
    Failed,
    /// `plan --detailed-exitcode`: there are changes.
    Changes,
    /// Blocked by a hazard or a conflict; nothing was changed.
    Blocked,
    /// Some steps were done, others were not.
    Partial,
    /// The broker no longer matches the saved plan; nothing was changed.
    Stale,
    /// Another apply holds the lock; nothing was changed.
    Locked,
    /// Wrong arguments. clap's default code, 2, would mean "changes".
    Usage,
    /// The spec is invalid.
    Spec,
    /// Interrupted before anything was changed.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Changes => 2,
            Exit::Blocked => 3,
            Exit::Partial => 4,
            Exit::Stale => 5,
            Exit::Locked => 6,
            Exit::Usage => 64,
            Exit::Spec => 65,
            Exit::Interrupted => 130,
        })
    }
}
