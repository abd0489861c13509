//! Everything that ends a run early, printed in one place: `error:`, `caused by:`, and hints that can be pasted.

use super::exit::Exit;
use crate::broker::{BrokerError, ConnectProblem};
use crate::render::style::{Painted, RED, YELLOW, clean};
use std::io::Write;

/// Why a run ended, and what to do about it.
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

    /// Failed before anything was changed.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Wrong arguments.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A spec, or a file that stands for one, that cannot be used.
    pub(super) fn spec(message: impl Into<String>) -> Self {
        Self::new(Exit::Spec, message)
    }

    /// Another exit code.
    pub(super) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// A cause.
    pub(super) fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// A hint.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Prints it to standard error and says how to end.
    pub(super) fn report(self) -> Exit {
        let mut stream = anstream::stderr().lock();
        // Nobody is left to be told when standard error is closed.
        if !self.message.is_empty() {
            let _ = writeln!(stream, "{} {}", Painted(RED, "error:"), lines(&self.message));
        }
        for cause in &self.causes {
            let _ = writeln!(stream, "  {} {}", Painted(RED, "caused by:"), lines(cause));
        }
        for hint in &self.hints {
            let _ = writeln!(stream, "  {} {}", Painted(YELLOW, "hint:"), lines(hint));
        }
        self.exit
    }
}

fn lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

impl From<BrokerError> for Failure {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all but a few of many end in the same way")]
    fn from(error: BrokerError) -> Self {
        let exit = match &error {
            BrokerError::LockHeld { .. } => Exit::Locked,
            BrokerError::Inequivalent { .. } => Exit::Blocked,
            guard if guard.is_guard() => Exit::Blocked,
            _ => Exit::Failed,
        };
        let failure = Self::new(exit, error.to_string());
        match hint(&error) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// What one can do about it.
#[expect(clippy::wildcard_enum_match_arm, reason = "only some have a hint")]
fn hint(error: &BrokerError) -> Option<&'static str> {
    match error {
        BrokerError::Connect { problem, .. } => connect_hint(problem),
        BrokerError::Unauthorized { .. } => {
            Some("give the user with --username and the password with TOPO_PASSWORD or --password-file")
        }
        BrokerError::AccessRefused { .. } => Some(
            "the user needs configure, write and read permissions in the vhost: rabbitmqctl set_permissions -p VHOST USER '.*' '.*' '.*'",
        ),
        BrokerError::WrongTag { .. } => Some(
            "topo needs the tag `management`, policies need `policymaker`, creating a vhost `administrator`: rabbitmqctl set_user_tags USER management",
        ),
        BrokerError::NotManagementApi { .. } => Some(
            "--url is the management API's address, http://HOST:15672 as a rule, with the path prefix that a proxy gives it",
        ),
        BrokerError::LockHeld { .. } => {
            Some("wait for it with --lock-timeout 5m; a lock whose holder crashed is free again after a minute")
        }
        _ => None,
    }
}

fn connect_hint(problem: &ConnectProblem) -> Option<&'static str> {
    let text = problem.to_string();
    if text.contains("refused") {
        Some("is the broker up, and is its management plugin enabled? rabbitmq-plugins enable rabbitmq_management")
    } else if text.contains("certificate") {
        Some(
            "give the authority that signed it with --ca-cert FILE, and a client certificate with --client-cert and --client-key",
        )
    } else {
        Some("check --url (or TOPO_URL)")
    }
}
