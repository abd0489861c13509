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
    /// With the node's default queue type.
    pub(super) profile: BrokerProfile,
}

/// What is the same for every vhost, and what each says of itself.
#[derive(Clone, Debug)]
pub struct Survey {
    pub(super) cluster: Cluster,
    pub(super) settings: BTreeMap<String, wire::Vhost>,
}

impl Survey {
    /// Whether the vhost exists, and this user may see it.
    pub fn has(&self, vhost: &VhostName) -> bool {
        self.settings.contains_key(vhost.as_str())
    }

    /// How the broker behaves towards a vhost; towards one that is not there, as towards one without settings.
    pub fn profile(&self, vhost: &VhostName) -> BrokerProfile {
        let settings = self.settings.get(vhost.as_str());
        self.cluster.profile_of(settings.and_then(wire::Vhost::default_queue_type))
    }
}

impl Cluster {
    /// With the vhost's own default queue type, if it has one.
    pub(super) fn profile_of(&self, default_queue_type: Option<&str>) -> BrokerProfile {
        let mut profile = self.profile.clone();
        if let Some(own) = default_queue_type {
            profile.default_queue_type = Some(own.to_owned());
        }
        profile
    }
}

/// The lists of some vhosts, or why there are none.
#[derive(Debug)]
pub struct VhostLists(pub(super) Vec<(VhostName, Result<Lists, BrokerError>)>);

impl VhostLists {
    /// What the vhosts hold, in the order in which they were asked for.
    ///
    /// # Errors
    /// What was wrong with the first list that could not be read.
    pub fn snapshots(self, survey: Survey) -> Result<Vec<Snapshot>, BrokerError> {
        let Survey { cluster, mut settings } = survey;
        let snapshots = self.0.into_iter().map(|(vhost, lists)| {
            match (lists, settings.remove(vhost.as_str())) {
                // Only together: 404 of one list alone is a proxy's, or of a vhost that comes or goes at this moment, and
                // a vhost taken for missing is one whose objects are all to be created.
                (Err(BrokerError::NotFound { .. }), None) => Ok(Snapshot::missing(vhost, &cluster)),
                (lists, settings) => Ok(Snapshot::of(vhost, &cluster, Lists { settings, ..lists? })),
            }
        });
        snapshots.collect()
    }
}
