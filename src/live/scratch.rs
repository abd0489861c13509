//! Creates and deletes the scratch vhosts of test runs, and finds the scratch vhosts of other runs by name, tag and
//! description.

use crate::broker::{Access, BrokerError, ListedVhost};
use crate::model::run_id;
use crate::model::{Vhost, VhostName};
use crate::plan::Action;
use std::time::{Duration, SystemTime};

/// The prefix of the vhost names. Eight hexadecimal digits follow the prefix.
const SCRATCH_PREFIX: &str = "topo-test-";
/// The tag of scratch vhosts.
const TAG: &str = "topo-test";
/// The text before the holder and the time in the description.
const DESCRIPTION: &str = "topo test by ";
/// The text before the time in the description.
const SINCE: &str = ", since ";
/// The text after the time in the description.
const NOTICE: &str = "; safe to delete after the run";

/// A scratch vhost of an earlier run, or of a run in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The vhost.
    pub vhost: VhostName,
    /// The time since its creation.
    pub age: Duration,
}

/// Returns a new name for a scratch vhost.
pub fn new_name() -> VhostName {
    VhostName::new(format!("{SCRATCH_PREFIX}{}", run_id()))
}

/// Creates a scratch vhost. The broker grants the creating user full permissions.
///
/// # Errors
/// The user is not an administrator, or the broker could not be reached.
pub async fn create(access: &Access, vhost: &VhostName, default_queue_type: Option<String>) -> Result<(), BrokerError> {
    // The description of the process ends with the current time.
    let description = format!("{DESCRIPTION}{}{NOTICE}", access.process.description());
    let settings = Vhost { description: Some(description), tags: Some([TAG.to_owned()].into()), default_queue_type };
    access.broker.perform(vhost, &Action::PutVhost { vhost: settings }).await.map(|_| ())
}

/// Deletes a scratch vhost with all its contents. Succeeds if the vhost does not exist.
///
/// # Errors
/// The broker refused the request or could not be reached.
pub async fn delete(access: &Access, vhost: &VhostName) -> Result<(), BrokerError> {
    access.broker.delete_vhost(vhost).await.map(|_| ())
}

/// Returns the scratch vhosts that are at least `min_age` old.
///
/// # Errors
/// The vhosts could not be read from the broker.
pub async fn leftovers(access: &Access, min_age: Duration) -> Result<Vec<Leftover>, BrokerError> {
    let now = SystemTime::now();
    let listed = access.broker.listed_vhosts().await?;
    let mut found: Vec<Leftover> = listed.iter().filter_map(|vhost| leftover(vhost, now)).collect();
    found.retain(|leftover| leftover.age >= min_age);
    found.sort_by(|a, b| a.vhost.cmp(&b.vhost));
    Ok(found)
}

/// Recognizes a scratch vhost by its name, tag and description. Returns `None` for other vhosts.
fn leftover(vhost: &ListedVhost, now: SystemTime) -> Option<Leftover> {
    let digits = vhost.name.as_str().strip_prefix(SCRATCH_PREFIX)?;
    let is_id = digits.len() == 8 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_id || !vhost.tags.iter().any(|tag| tag == TAG) {
        return None;
    }
    let by = vhost.description.strip_prefix(DESCRIPTION)?.strip_suffix(NOTICE)?;
    let (_, since) = by.rsplit_once(SINCE)?;
    let since = humantime::parse_rfc3339(since).ok()?;
    // If the clocks differ, the creation time can be in the future.
    let age = now.duration_since(since).unwrap_or_default();
    Some(Leftover { vhost: vhost.name.clone(), age })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scratch_vhosts_are_recognized() {
        let now = humantime::parse_rfc3339("2026-01-31T11:00:00Z").unwrap();
        let description =
            "topo test by me, since x@host, pid 7, since 2026-01-31T10:00:00Z; safe to delete after the run";
        let vhost = |name: &str, tag: &str, description: &str| ListedVhost {
            name: VhostName::new(name),
            description: description.to_owned(),
            tags: vec![tag.to_owned()],
        };
        let found = leftover(&vhost("topo-test-0123abcd", TAG, description), now).unwrap();
        assert_eq!(found.age, Duration::from_secs(3600));
        for other in [
            vhost("topo-test-0123abcd", "production", description),
            vhost("topo-test-0123abcd", TAG, "orders"),
            vhost("topo-test-0123abcd", TAG, "topo test by me; safe to delete after the run"),
            vhost("topo-test-0123ABCD", TAG, description),
            vhost("topo-test-0123abcd9", TAG, description),
            vhost("topo-test-orders", TAG, description),
            vhost("orders", TAG, description),
        ] {
            assert_eq!(leftover(&other, now), None, "{other:?}");
        }
    }
}
