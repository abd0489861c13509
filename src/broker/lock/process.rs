//! Describes the process that holds a lock, and recognizes locks of processes that have ended.

use super::HOLDER;
use crate::broker::redact::foreign;
use crate::model::Topology;
use std::path::Path;
use std::time::SystemTime;

/// A process of topo on a machine, as the holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    user: String,
    host: String,
    id: u32,
}

impl Process {
    /// This process, run by a user on a machine.
    pub fn new(user: impl Into<String>, host: impl Into<String>) -> Self {
        Self { user: user.into(), host: host.into(), id: std::process::id() }
    }

    /// The description of the holder, such as `me@host, pid 4711, since 2026-11-20T12:00:00Z`.
    pub fn words(&self) -> String {
        let now = humantime::format_rfc3339_seconds(SystemTime::now());
        format!("{}@{}, pid {}, since {now}", self.user, self.host, self.id)
    }

    /// Returns the holder of a lock in a vhost if it is another apply. This process and ended processes of this machine
    /// do not count, even if their lock has not expired yet.
    pub fn other_holder(&self, topology: &Topology) -> Option<String> {
        let description = topology.queues.values().find_map(|queue| queue.arguments.get(HOLDER)?.as_text())?;
        let own = self.words();
        let (Some((host, id)), Some((here, own_id))) = (host_and_id(description), host_and_id(&own)) else {
            return Some(foreign(description));
        };
        let has_ended = || Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{id}")).exists();
        let is_free = host == here && (id == own_id || has_ended());
        (!is_free).then(|| foreign(description))
    }
}

/// Parses the description of a holder.
fn host_and_id(description: &str) -> Option<(&str, u32)> {
    let (machine, rest) = description.split_once(", pid ")?;
    let (_, host) = machine.split_once('@')?;
    Some((host, rest.split(',').next()?.parse().ok()?))
}
