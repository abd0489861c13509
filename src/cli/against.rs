//! `--against`: a plan with no broker, against an empty one or a definitions file.

use super::failure::Failure;
use super::input::Loaded;
use super::offline_arguments::LintArguments;
use super::planning::{self, Planned};
use super::{definitions_file, findings};
use crate::behaviour::Dialect;
use crate::broker::{Snapshot, definitions};
use crate::model::BrokerVersion;
use crate::plan::{Activity, Options, Target, Wanted, seal};
use std::path::Path;
use std::sync::Arc;

/// The plan against what stands for a broker.
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
    let newest = Dialect::of(version.unwrap_or(BrokerVersion::NEWEST_KNOWN));
    let mut snapshots: Vec<Snapshot> = Vec::new();
    for vhost in loaded.vhosts() {
        snapshots.push(match &text {
            None => definitions::empty(vhost, newest.version),
            Some(text) => definitions::read(text, &vhost, version)
                .map_err(|error| definitions_file::failure(Path::new(source), text, &error))?,
        });
    }
    loaded.expand_for(|index| snapshots.get(index).map_or(&newest, |snapshot| &snapshot.dialect))?;
    // Nobody knows how full the queues are: that is "some", not "none".
    let nobody_knows = Activity::default();
    let levels = findings::levels(lint);
    let found = findings::of(&loaded, snapshots.iter().map(|snapshot| &snapshot.dialect), &levels);
    let found = found.amid(&loaded, &snapshots, (&levels, &options.prune));
    let wanted: Vec<Arc<Wanted>> = loaded.take_wanted().into_iter().map(Arc::new).collect();
    let parts = snapshots.iter().zip(&wanted);
    let parts = parts.map(|(snapshot, wanted)| planning::one(snapshot, wanted, &nobody_knows, options)).collect();
    let version = snapshots.last().map_or(newest.version, |snapshot| snapshot.dialect.version).to_string();
    let target = Target { url: source.to_owned(), cluster: String::new(), product: "RabbitMQ".to_owned(), version };
    Ok(Planned { loaded, plan: seal(target, options.clone(), parts), wanted, found })
}
