//! `topo lock`: shows the holder of a vhost's lock. With `--break`, deletes the lock.

use super::arguments::{Global, ReportFormat, SpecArguments};
use super::connection::ConnectionArguments;
use super::failure::{Exit, Failure, no_such_vhost};
use super::progress::Progress;
use super::sources::Sources;
use super::{connection, input, interaction, output};
use crate::broker::{Broker, HeldLock, Holder, Survey};
use crate::expand::Expansion;
use crate::model::printable::clean_json;
use crate::model::{Intervals, QueueName, VhostName};
use crate::render::shell::quote;
use crate::render::style::{GREEN, Painted, RED, YELLOW};
use crate::spec::{Environment, Spec};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use std::fmt::Write;

/// The format version of the JSON document.
const FORMAT_VERSION: u32 = 1;

/// The lock of one vhost.
struct VhostLock {
    vhost: VhostName,
    exists: bool,
    held: Option<HeldLock>,
    /// True if this run deleted the lock.
    is_deleted: bool,
}

pub(super) async fn run(arguments: &LockArguments, global: &Global) -> Result<Exit, Failure> {
    connection::refuse_password(&arguments.connection)?;
    if arguments.break_lock && !arguments.yes && !interaction::can_confirm() {
        return Err(Failure::usage("no terminal is available to ask for confirmation; no lock was deleted")
            .hint("delete the lock without confirmation: topo lock --break --yes"));
    }
    let vhosts = vhosts(arguments)?;
    let environment = vhosts.environment.as_ref();
    let broker = connection::connect_to(&arguments.connection, environment, Intervals::default())?.broker;
    let progress = Progress::new(global);
    let reading = progress.start_spinner(format!("reading {}", broker.shown_url()));
    let survey = broker.survey().await?;
    let queue = QueueName::new(arguments.lock_name.as_str());
    let mut locks: Vec<VhostLock> = Vec::new();
    for vhost in vhosts.names {
        let exists = survey.has_vhost(&vhost);
        if !exists && vhosts.is_typed {
            return Err(no_such_vhost(&vhost, &broker.vhosts().await?));
        }
        let held = if exists { broker.held_lock(&vhost, &queue).await? } else { None };
        locks.push(VhostLock { vhost, exists, held, is_deleted: false });
    }
    drop(reading);
    let mut failure = None;
    if arguments.break_lock {
        if arguments.format == ReportFormat::Text {
            output::eprint(&text(&locks, arguments));
        }
        for found in &mut locks {
            failure = break_one(found, &queue, (&broker, &survey), arguments).await.err();
            if failure.is_some() {
                break;
            }
        }
    }
    let is_partial = locks.iter().any(|found| found.is_deleted);
    if let Some(failure) = failure.take_if(|_| !is_partial) {
        return Err(failure);
    }
    output::print(&match arguments.format {
        ReportFormat::Text if arguments.break_lock => deletions(&locks),
        ReportFormat::Text => text(&locks, arguments),
        ReportFormat::Json => document(&locks, &queue),
    })
    .map_err(|failure| if is_partial { failure.exit(Exit::Partial) } else { failure })?;
    if let Some(failure) = failure {
        return Err(failure.exit(Exit::Partial));
    }
    let is_held = locks.iter().any(|found| found.held.is_some() && !found.is_deleted);
    Ok(if is_held { Exit::Locked } else { Exit::Done })
}

struct Vhosts {
    names: Vec<VhostName>,
    /// True if the name comes from `--vhost` rather than from a spec. In this case, the vhost must exist.
    is_typed: bool,
    /// The selected environment of the specs.
    environment: Option<Environment>,
}

/// Returns the vhosts whose locks are shown. If `--vhost` is set, and neither a spec nor an environment is specified,
/// returns that vhost. Otherwise, returns the vhosts in the specs. If a spec declares or removes cluster objects, also
/// returns the vhost whose lock protects the cluster.
fn vhosts(arguments: &LockArguments) -> Result<Vhosts, Failure> {
    let spec = &arguments.spec;
    match &spec.vhost {
        Some(name) if spec.paths.is_empty() && spec.file.is_empty() && spec.env.is_none() => {
            Ok(Vhosts { names: vec![VhostName::new(name)], is_typed: true, environment: None })
        }
        Some(_) | None => {
            let loaded = input::load(Sources::read(spec, "topo lock")?)?;
            let mut names = loaded.vhosts();
            let environment = loaded.environment;
            let has_objects = |(spec, _): &(Spec, Expansion)| !spec.sections.is_empty() || !spec.removed.is_empty();
            let of_cluster = loaded.cluster.filter(has_objects).map(|_| VhostName::new(arguments.lock_vhost.as_str()));
            names.extend(of_cluster.filter(|vhost| !names.contains(vhost)));
            names.sort();
            Ok(Vhosts { names, is_typed: false, environment })
        }
    }
}

/// Deletes the lock of one vhost after confirmation.
async fn break_one(
    found: &mut VhostLock,
    queue: &QueueName,
    (broker, survey): (&Broker, &Survey),
    arguments: &LockArguments,
) -> Result<(), Failure> {
    let Some(held) = &found.held else { return Ok(()) };
    if !held.is_created_by_topo() {
        return Err(Failure::failed(format!(
            "vhost {}: {} is not a lock; it was not deleted",
            found.vhost, held.holder
        ))
        .exit(Exit::Locked)
        .hint("use a different name for the lock: --lock-name NAME"));
    }
    let question = format!(
        "Delete the lock of {} on vhost {}? If that apply is still running, it will stop within a minute, possibly \
         halfway. [y/N] ",
        held.holder, found.vhost
    );
    if !arguments.yes && !interaction::confirm(&question)? {
        return Err(Failure::failed("not confirmed; the lock was not deleted"));
    }
    interaction::mark_changed();
    let version = survey.profile(&found.vhost).version;
    let holder = Holder::new(connection::process().description());
    let next = broker.break_lock(&found.vhost, queue, (holder, version), held).await;
    if let Some(next) = next? {
        output::eprint(&format!("vhost {} is locked again, by {}\n", found.vhost, next.holder));
    }
    found.is_deleted = true;
    Ok(())
}

fn text(locks: &[VhostLock], arguments: &LockArguments) -> String {
    let mut text = String::new();
    for VhostLock { vhost, exists, held, .. } in locks {
        let Some(held) = held else {
            let missing = if *exists { "" } else { " (the vhost does not exist)" };
            let _ = writeln!(text, "vhost {vhost}: {}{missing}", Painted(GREEN, "free"));
            continue;
        };
        let _ = writeln!(text, "vhost {vhost}: {} by {}", Painted(YELLOW, "locked"), held.holder);
        let node = match (&held.node, held.node_is_up) {
            (Some(node), Some(true)) => format!("{node}, which is up"),
            (Some(node), Some(false)) => format!("{node}, which is {}", Painted(RED, "down")),
            (Some(node), None) => format!("{node}; only a user with the monitoring tag can see whether the node is up"),
            (None, _) => "unknown".to_owned(),
        };
        let _ = writeln!(text, "  queue   {}", arguments.lock_name);
        let _ = writeln!(text, "  node    {node}");
        let lease = match held.lease {
            Some(lease) if held.node_is_up == Some(false) => {
                format!("{} s; does not expire while the node is down", lease.as_secs())
            }
            Some(lease) => {
                format!("{0} s; renewed by its holder; expires {0} s after the holder exits", lease.as_secs())
            }
            None => "none; it does not expire".to_owned(),
        };
        let _ = writeln!(text, "  lease   {lease}");
        if held.is_created_by_topo() && !arguments.break_lock {
            let _ = writeln!(text, "  delete  topo lock --break{}", flags(vhost, arguments));
        }
    }
    text
}

fn flags(vhost: &VhostName, arguments: &LockArguments) -> String {
    let vhost = quote(vhost.as_str());
    format!(
        " --vhost {vhost}{}{}",
        connection::flags(&arguments.connection),
        connection::lock_flag(&arguments.lock_name)
    )
}

fn deletions(locks: &[VhostLock]) -> String {
    let mut text = String::new();
    for found in locks {
        let _ = match &found.held {
            Some(held) if found.is_deleted => {
                writeln!(text, "vhost {}: deleted the lock of {}", found.vhost, held.holder)
            }
            Some(held) => writeln!(text, "vhost {}: still locked by {}", found.vhost, held.holder),
            None => writeln!(text, "vhost {}: not locked; nothing was deleted", found.vhost),
        };
    }
    text
}

fn document(locks: &[VhostLock], queue: &QueueName) -> String {
    let lock = |VhostLock { vhost, exists, held, is_deleted }: &VhostLock| -> Value {
        let holder = held.as_ref().map(|held| {
            json!({
                "holder": held.holder,
                "isLock": held.is_created_by_topo(),
                "node": held.node,
                "nodeIsUp": held.node_is_up,
                "leaseSeconds": held.lease.map(|lease| lease.as_secs()),
            })
        });
        json!({ "vhost": vhost, "exists": exists, "queue": queue, "held": holder, "deleted": is_deleted })
    };
    let locks: Vec<Value> = locks.iter().map(lock).collect();
    clean_json(format!("{:#}\n", json!({ "formatVersion": FORMAT_VERSION, "locks": locks })))
}

#[derive(Debug, Args)]
pub(super) struct LockArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// Delete the lock after confirmation; an apply that holds it stops
    #[arg(id = "break_lock", long = "break")]
    pub(super) break_lock: bool,
    /// Delete the lock without confirmation
    #[arg(short, long, requires = "break_lock")]
    pub(super) yes: bool,
    /// Name of the lock queue, as in apply --lock-name
    #[arg(long, value_name = "NAME", default_value = crate::model::names::LOCK_QUEUE, value_parser = NonEmptyStringValueParser::new(), env = "TOPO_LOCK_NAME")]
    pub(super) lock_name: String,
    /// Vhost whose lock also protects cluster objects, as in apply --lock-vhost
    #[arg(long, value_name = "VHOST", default_value = crate::model::names::DEFAULT_VHOST, value_parser = NonEmptyStringValueParser::new(), env = "TOPO_LOCK_VHOST")]
    pub(super) lock_vhost: String,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ReportFormat,
    #[command(flatten)]
    pub(super) connection: ConnectionArguments,
}
