//! The data read from a broker before it is combined: settings of the cluster, and the lists of each vhost. Pure.

use super::error::BrokerError;
use super::snapshot::{Lists, Snapshot};
use super::wire;
use crate::model::VhostName;
use crate::rabbitmq::BrokerProfile;
use std::collections::BTreeMap;

/// The properties shared by all vhosts.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) product: String,
    /// The profile with the default queue type of the node.
    pub(super) profile: BrokerProfile,
}

/// The settings of the cluster and of each vhost.
#[derive(Clone, Debug)]
pub struct Survey {
    pub(super) cluster: Cluster,
    pub(super) settings: BTreeMap<String, wire::Vhost>,
}

impl Survey {
    /// Returns true if the vhost exists and this user may see it.
    pub fn has(&self, vhost: &VhostName) -> bool {
        self.settings.contains_key(vhost.as_str())
    }

    /// The profile of the broker for a vhost. A missing vhost has the profile of a vhost without settings.
    pub fn profile(&self, vhost: &VhostName) -> BrokerProfile {
        let settings = self.settings.get(vhost.as_str());
        self.cluster.profile_of(settings.and_then(wire::Vhost::default_queue_type))
    }
}

impl Cluster {
    /// The profile with the default queue type of a vhost, if the vhost has one.
    pub(super) fn profile_of(&self, default_queue_type: Option<&str>) -> BrokerProfile {
        let mut profile = self.profile.clone();
        if let Some(own) = default_queue_type {
            profile.default_queue_type = Some(own.to_owned());
        }
        profile
    }
}

/// The lists of each vhost, or the error for that vhost.
#[derive(Debug)]
pub struct VhostLists(pub(super) Vec<(VhostName, Result<Lists, BrokerError>)>);

impl VhostLists {
    /// Returns a snapshot of each vhost, in the order of the lists.
    ///
    /// # Errors
    /// The error of the first list that could not be read.
    pub fn snapshots(self, survey: Survey) -> Result<Vec<Snapshot>, BrokerError> {
        let Survey { cluster, mut settings } = survey;
        let snapshots = self.0.into_iter().map(|(vhost, lists)| {
            match (lists, settings.remove(vhost.as_str())) {
                // Only the combination proves that the vhost is missing. A 404 of one list alone can come from a proxy,
                // or from a vhost that is created or deleted at this moment. topo would create all objects of a missing
                // vhost.
                (Err(BrokerError::NotFound { .. }), None) => Ok(Snapshot::missing(vhost, &cluster)),
                (lists, settings) => Ok(Snapshot::of(vhost, &cluster, Lists { settings, ..lists? })),
            }
        });
        snapshots.collect()
    }
}
