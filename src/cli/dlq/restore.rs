//! `topo dlq restore`: republishes the messages in a file to their dead-letter queue.

use super::super::arguments::{Global, ReportFormat};
use super::super::failure::{Exit, Failure};
use super::super::{files, interaction, output};
use super::audit::{self, Started};
use super::target::{ProgressDisplay, TargetArguments, hazard, until_second_signal};
use crate::apply::Interrupt;
use crate::model::count::count;
use crate::model::naming::digest;
use crate::model::{QueueName, VhostName};
use crate::operate::dlq::{ArchivedMessage, Hazard, RestoreOptions, check_restore, restore};
use crate::render::dlq::{StoppedRun, restore_audit_line, restore_json, restore_text};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};

pub(super) async fn run(arguments: &RestoreArguments, global: &Global) -> Result<Exit, Failure> {
    if !arguments.yes && !interaction::can_confirm() {
        return Err(Failure::usage("no terminal is available to ask for confirmation")
            .hint("restore without confirmation: --yes"));
    }
    audit::check(arguments.audit.as_deref())?;
    let Archive { messages, bytes, users, queue } = check(arguments)?;
    let state_path = state_path(&arguments.archive);
    let target = arguments.target.read(global).await?;
    let identity = identity(&target.access.broker.shown_url(), &target.vhost, &queue, &arguments.archive)?;
    let skip = restored_before(&state_path, &identity, &arguments.archive)?.min(messages);
    let allowed = arguments.allow.clone();
    let window = arguments.window;
    let options = RestoreOptions { queue: queue.clone(), messages, bytes, users, skip, window, allowed };
    if skip == messages {
        output::eprint(&format!(
            "all messages in {} have already been restored; to restore them again: rm {}\n",
            arguments.archive.display(),
            files::path_argument(&state_path)
        ));
    } else if !arguments.yes {
        // The restore repeats these checks. They also run here, so that topo can refuse the restore before it asks for
        // confirmation.
        let checked = check_restore(&target.access, &target.state, &options).await;
        checked.map_err(|error| arguments.target.failure(error))?;
        let question = format!("Restore {} to {queue}? [y/N] ", count(messages - skip, "message"));
        if !interaction::confirm(&question)? {
            return Err(Failure::failed("not confirmed; no message was published"));
        }
    }
    let file = File::open(&arguments.archive).map_err(|error| read_failure(&arguments.archive, &error.to_string()))?;
    let mut progress = File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .open(&state_path)
        .map_err(|error| output::write_failure(&state_path, &error))?;
    let interrupt = Interrupt::default();
    let shown = ProgressDisplay::start(global, format!("restoring to {queue}"));
    let mut write = |text: String| {
        let written = progress.rewind().and_then(|()| progress.write_all(text.as_bytes()));
        // Removes the digest of an earlier complete restore.
        let written = written.and_then(|()| progress.set_len(text.len() as u64));
        written.map_err(|error| format!("cannot write {}: {error}", state_path.display()))
    };
    let started = Started::default();
    started.record(0);
    let mut confirmed = |count: u64| {
        started.record(count.saturating_sub(skip));
        shown.update(count, messages, "restored");
        write(format!("{count:020}\n{identity}\n"))
    };
    let restored = async {
        let archive = BufReader::new(file);
        let restored = restore(&target.access, &target.state, archive, &options, &interrupt, &mut confirmed).await;
        restored.map_err(|error| arguments.target.failure(error))
    };
    let stopped_run = |done| StoppedRun { command: "restore", run: None, vhost: &target.vhost, queue: &queue, done };
    let stopped = started.record_stopped(arguments.audit.as_deref(), stopped_run, &target.access, global.quiet);
    let report = until_second_signal(&interrupt, restored, stopped).await;
    drop(shown);
    let report = report?;
    let is_complete = report.stopped.is_none() && !report.is_interrupted;
    if is_complete {
        let digest = digest_of_first(&arguments.archive, messages)?;
        write(format!("{messages:020}\n{identity}\n{digest}\n")).map_err(Failure::failed)?;
    }
    let has_published = report.restored + report.in_doubt > 0;
    let line = |time: &str, user: &str| restore_audit_line(&report, time, user);
    audit::write(arguments.audit.as_deref(), line, &target.access, global.quiet)?;
    output::print(&match arguments.format {
        ReportFormat::Text => restore_text(&report),
        ReportFormat::Json => restore_json(&report),
    })?;
    Ok(match (is_complete, has_published) {
        (true, _) => Exit::Done,
        (false, true) => Exit::Partial,
        (false, false) if report.is_interrupted => Exit::Interrupted,
        (false, false) => Exit::Failed,
    })
}

/// The contents of an archive.
struct Archive {
    messages: u64,
    /// The total size of the bodies in bytes.
    bytes: u64,
    /// The user names in the `user_id` properties of the messages.
    users: BTreeSet<String>,
    /// The queue that receives the messages.
    queue: QueueName,
}

/// Checks all messages in the archive before the first message is published.
fn check(arguments: &RestoreArguments) -> Result<Archive, Failure> {
    let path = &arguments.archive;
    let file = File::open(path).map_err(|error| read_failure(path, &error.to_string()))?;
    let requested = arguments.queue.as_ref().map(|queue| QueueName::new(queue.as_str()));
    let (mut messages, mut bytes, mut found) = (0, 0, requested.clone());
    let mut users = BTreeSet::new();
    for message in ArchivedMessage::read_all(BufReader::new(file)) {
        let message = message.map_err(|error| read_failure(path, &error.to_string()))?;
        messages += 1;
        bytes += message.body.len() as u64;
        users.extend(message.user_id());
        let other_vhost = message.vhost.as_str() != arguments.target.vhost && !arguments.other_vhost;
        if other_vhost {
            return Err(Failure::usage(format!(
                "the messages are from vhost `{}`, not from `{}`",
                message.vhost, arguments.target.vhost
            ))
            .hint(format!("restore them there: --vhost {}", crate::render::shell::quote(message.vhost.as_str())))
            .hint("or restore them to this vhost: --other-vhost"));
        }
        match &found {
            Some(queue) if requested.is_none() && *queue != message.queue => {
                return Err(Failure::usage(format!(
                    "the file contains messages from `{queue}` and from `{}`",
                    message.queue
                ))
                .hint("restore all of them to one queue: --queue QUEUE"));
            }
            Some(_) => {}
            None => found = Some(message.queue),
        }
    }
    let archive = found.map(|queue| Archive { messages, bytes, users, queue });
    archive.ok_or_else(|| Failure::spec(format!("{} contains no messages", path.display())))
}

/// Returns the path of the state file, which contains the number of restored messages. After a complete restore, the
/// state file remains, and also contains a digest of these messages. A later restore of the same archive then publishes
/// only messages that have been appended since the complete restore.
fn state_path(archive: &Path) -> PathBuf {
    let mut name = archive.as_os_str().to_owned();
    name.push(".restored");
    name.into()
}

/// Returns a digest of a restore's target and of the first message in the archive.
fn identity(url: &str, vhost: &VhostName, queue: &QueueName, archive: &Path) -> Result<String, Failure> {
    let file = File::open(archive).map_err(|error| read_failure(archive, &error.to_string()))?;
    let mut first = String::new();
    BufReader::new(file).read_line(&mut first).map_err(|error| read_failure(archive, &error.to_string()))?;
    Ok(digest(&format!("{url}\n{vhost}\n{queue}\n{first}")))
}

/// Returns the number of messages that earlier restores with the same identity have restored. Returns a failure if the
/// state file belongs to a restore with a different identity, or of a different archive.
fn restored_before(path: &Path, identity: &str, archive: &Path) -> Result<u64, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Ok(0),
        Ok(text) => {
            let mut lines = text.lines();
            let (count, stored_identity, complete) = (lines.next().unwrap_or_default(), lines.next(), lines.next());
            let count = count.parse().map_err(|_| read_failure(path, "it does not contain a number"))?;
            // A different archive can begin with the same message.
            let is_same = match complete {
                Some(digest) => digest_of_first(archive, count)? == digest,
                None => true,
            };
            if stored_identity == Some(identity) && is_same {
                return Ok(count);
            }
            Err(Failure::usage(format!(
                "{} contains the progress of a different restore (different broker, vhost, queue or file)",
                path.display()
            ))
            .hint(format!("to restore the file from the beginning: rm {}", files::path_argument(path))))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(read_failure(path, &error.to_string())),
    }
}

/// Returns a digest of the first `messages` messages of an archive.
fn digest_of_first(archive: &Path, messages: u64) -> Result<String, Failure> {
    let failure = |error: std::io::Error| read_failure(archive, &error.to_string());
    let mut file = BufReader::new(File::open(archive).map_err(failure)?);
    let (mut hash, mut left, mut line) = (Sha256::new(), messages, Vec::new());
    while left > 0 && file.read_until(b'\n', &mut line).map_err(failure)? > 0 {
        if !line.trim_ascii().is_empty() {
            hash.update(&line);
            left -= 1;
        }
        line.clear();
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read_failure(path: &Path, reason: &str) -> Failure {
    Failure::spec(format!("cannot read {}", path.display())).because(reason)
}

#[derive(Debug, Args)]
pub(super) struct RestoreArguments {
    /// File that topo dlq drop or topo dlq export wrote
    #[arg(value_name = "FILE")]
    archive: PathBuf,
    /// Restore the messages to this queue [default: the queue in the file]
    #[arg(long, value_name = "QUEUE", value_parser = NonEmptyStringValueParser::new())]
    queue: Option<String>,
    /// Accept messages from another vhost
    #[arg(long)]
    other_vhost: bool,
    /// Maximum number of messages that may be duplicated if topo crashes (1 to 10000)
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    window: u16,
    /// Allow the message-drop hazard
    #[arg(long, value_name = "HAZARD", value_parser = hazard, hide_possible_values = true)]
    allow: Vec<Hazard>,
    /// Restore without confirmation
    #[arg(short, long)]
    yes: bool,
    /// File to which the audit record of the run is appended [default: standard error, unless --quiet]
    #[arg(long, value_name = "FILE", env = "TOPO_AUDIT")]
    audit: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    format: ReportFormat,
    #[command(flatten)]
    target: TargetArguments,
}
