//! Describes the process that holds a lock, and recognizes locks of processes that have ended.

use super::HOLDER;
use crate::broker::redact::foreign;
use crate::model::Topology;
use std::path::Path;
use std::time::SystemTime;

/// A process of topo on some machine, for those who wait for its lock.
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

    /// The words of its lock: `me@host, pid 4711, since 2026-11-20T12:00:00Z`.
    pub fn words(&self) -> String {
        let now = humantime::format_rfc3339_seconds(SystemTime::now());
        format!("{}@{}, pid {}, since {now}", self.user, self.host, self.id)
    }

    /// Returns the holder of a lock in a vhost, if it is another apply. Neither this process nor an ended one of this machine
    /// counts, even if its lock has not expired yet.
    pub fn other_holder(&self, topology: &Topology) -> Option<String> {
        let words = topology.queues.values().find_map(|queue| queue.arguments.get(HOLDER)?.as_text())?;
        let own = self.words();
        let (Some((host, id)), Some((here, own_id))) = (host_and_id(words), host_and_id(&own)) else {
            return Some(foreign(words));
        };
        let has_ended = || Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{id}")).exists();
        let is_over = host == here && (id == own_id || has_ended());
        (!is_over).then(|| foreign(words))
    }
}

/// Parses the words of a lock.
fn host_and_id(words: &str) -> Option<(&str, u32)> {
    let (machine, rest) = words.split_once(", pid ")?;
    let (_, host) = machine.split_once('@')?;
    Some((host, rest.split(',').next()?.parse().ok()?))
}
