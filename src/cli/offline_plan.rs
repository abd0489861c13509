//! `--against`: plans without a broker, against an empty one or a definitions file.

use super::failure::Failure;
use super::input::Loaded;
use super::offline_arguments::LintArguments;
use super::planning::Planned;
use super::{definitions_file, findings};
use crate::broker::{Snapshot, definitions};
use crate::model::BrokerVersion;
use crate::plan::{Activity, Desired, Options, Target, plan_vhost, seal};
use crate::rabbitmq::BrokerProfile;
use std::path::Path;
use std::sync::Arc;

/// Plans against an empty broker or a definitions file.
pub(super) fn plan(
    source: &str,
    version: Option<BrokerVersion>,
    mut loaded: Loaded,
    options: &Options,
    lint: &LintArguments,
) -> Result<Planned, Failure> {
    let text = match source {
        "empty" => None,
        path => Some(definitions_file::text(Path::new(path))?),
    };
    let newest = BrokerProfile::of(version.unwrap_or(BrokerVersion::NEWEST_KNOWN));
    let mut snapshots: Vec<Snapshot> = Vec::new();
    for vhost in loaded.vhosts() {
        snapshots.push(match &text {
            None => definitions::empty(vhost, newest.version),
            Some(text) => definitions::read(text, &vhost, version)
                .map_err(|error| definitions_file::failure(Path::new(source), text, &error))?,
        });
    }
    loaded.expand_for(|index| snapshots.get(index).map_or(&newest, |snapshot| &snapshot.profile))?;
    // The message counts are unknown, which means "some", not "none".
    let unknown_activity = Activity::default();
    let levels = findings::levels(lint);
    let found = findings::of(&loaded, snapshots.iter().map(|snapshot| &snapshot.profile), &levels);
    let found = found.with_live_objects(&loaded, &snapshots, (&levels, &options.prune));
    let desired: Vec<Arc<Desired>> = loaded.take_desired().into_iter().map(Arc::new).collect();
    let parts = snapshots.iter().zip(&desired);
    let parts =
        parts.map(|(snapshot, desired)| plan_vhost(&snapshot.context(desired, &unknown_activity), options)).collect();
    let version = snapshots.last().map_or(newest.version, |snapshot| snapshot.profile.version).to_string();
    let target = Target { url: source.to_owned(), cluster: String::new(), product: "RabbitMQ".to_owned(), version };
    Ok(Planned { loaded, plan: seal(target, options.clone(), parts), desired, found })
}
