//! Prints the reason why a run ended early: `error:`, `caused by:`, and hints to paste.

use super::exit::Exit;
use super::rights;
use super::shell::{quoted, shown};
use crate::broker::{BrokerError, ConnectProblem, redacted_urls_in};
use crate::render::style::{Painted, RED, YELLOW, clean};
use std::io::Write;
use std::path::Path;

/// The reason why a run ended, with hints.
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

    /// Creates the failure of a run that changed nothing.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Creates the failure for wrong arguments.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Creates the failure for a spec, or another input file, that cannot be used.
    pub(super) fn spec(message: impl Into<String>) -> Self {
        Self::new(Exit::Spec, message)
    }

    /// Sets a different exit code.
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
    #[expect(clippy::wildcard_enum_match_arm, reason = "all but a few of many end in the same way")]
    fn from(error: BrokerError) -> Self {
        let exit = match &error {
            BrokerError::LockHeld { .. } => Exit::Locked,
            BrokerError::Inequivalent { .. } => Exit::Blocked,
            guard if guard.is_guard() => Exit::Blocked,
            _ => Exit::Failed,
        };
        let failure = Self::new(exit, error.to_string());
        hints(&error).into_iter().fold(failure, Self::hint)
    }
}

/// Returns the hints for an error.
#[expect(clippy::wildcard_enum_match_arm, reason = "only some have a hint")]
fn hints(error: &BrokerError) -> Vec<String> {
    let text = match error {
        BrokerError::Connect { problem, .. } => return connect_hint(problem).into_iter().map(str::to_owned).collect(),
        BrokerError::Unauthorized { .. } => {
            "set the user with --username, and the password with TOPO_PASSWORD or --password-file"
        }
        BrokerError::AccessRefused { username, request, .. } => return rights::hints(username, request),
        BrokerError::WrongTag { username, request, .. } => return vec![tag(username, request)],
        BrokerError::NotManagementApi { .. } => {
            "set --url to the address of the management API, usually http://HOST:15672, with the path prefix of a proxy, if any"
        }
        BrokerError::Redirected { .. } => {
            "check --url (or TOPO_URL); topo does not follow redirects, because they would receive the password"
        }
        BrokerError::LockHeld { down: Some(_), .. } => {
            "the holder cannot renew the lock, so topo deletes it when the node has been down for a minute: wait with \
             --lock-timeout 2m"
        }
        BrokerError::LockHeld { down: None, .. } => {
            "wait for it with --lock-timeout 5m; the lock of a crashed holder expires within a minute; topo lock shows it"
        }
        BrokerError::AnotherBroker { .. } => {
            "set the AMQP address of the same broker with --amqp-url (a tunnel to the management port alone is not \
             enough), or let the broker move the messages: --transport shovel"
        }
        BrokerError::LockLost { .. } => "another apply may be running; wait until it ends, then run again",
        _ => return Vec::new(),
    };
    vec![text.to_owned()]
}

/// Returns the vhost of `PUT /api/queues/VHOST/…`, quoted for a shell.
fn vhost_of(request: &str) -> String {
    let segment = request.split('/').nth(3).unwrap_or("VHOST").split('?').next().unwrap_or_default();
    quoted(&percent_encoding::percent_decode_str(segment).decode_utf8_lossy())
}

/// Returns the hint that grants a tag. `set_user_tags` replaces all tags, so the command contains all tags that the
/// request needs.
fn tag(username: &str, request: &str) -> String {
    let user = quoted(username);
    if request.contains(" /api/vhosts/") {
        format!("an administrator can create the vhost: rabbitmqctl add_vhost {}", vhost_of(request))
    } else if request.contains(" /api/policies/") {
        format!("policies need the tag policymaker: rabbitmqctl set_user_tags {user} policymaker")
    } else {
        format!("topo needs the tag management: rabbitmqctl set_user_tags {user} management")
    }
}

fn connect_hint(problem: &ConnectProblem) -> Option<&'static str> {
    match problem {
        ConnectProblem::Refused => Some(
            "check that the broker is running and that its management plugin is enabled: rabbitmq-plugins enable rabbitmq_management",
        ),
        ConnectProblem::UnknownIssuer => Some("set the CA that signed it: --ca-cert FILE"),
        ConnectProblem::WrongHost => Some("use a host name that the certificate contains: --url https://NAME:15671"),
        ConnectProblem::CertificateRequired
        | ConnectProblem::HandshakeRefused
        | ConnectProblem::CertificateRefused(_) => {
            Some("use one that the broker trusts: --client-cert FILE --client-key FILE")
        }
        // The address is correct.
        ConnectProblem::Broken(_) | ConnectProblem::Expired | ConnectProblem::Tls(_) => None,
        ConnectProblem::NoSuchHost
        | ConnectProblem::HttpsToHttp
        | ConnectProblem::HttpToHttps(_)
        | ConnectProblem::Other(_) => Some("check --url (or TOPO_URL)"),
    }
}

/// Returns the failure for a file that cannot be read.
pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::spec(format!("cannot read {}", shown(path))).because(error.to_string())
}
