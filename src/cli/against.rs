//! `--against`: a plan with no broker, against an empty one or a definitions file.

use super::failure::Failure;
use super::input::Loaded;
use super::planning::{self, Planned};
use crate::behaviour::Dialect;
use crate::broker::{Snapshot, definitions};
use crate::model::BrokerVersion;
use crate::plan::{Activity, Options, Target, seal};
use std::path::Path;

/// The plan against what stands for a broker.
pub(super) fn plan(
    source: &str,
    version: Option<BrokerVersion>,
    loaded: &mut Loaded,
    options: &Options,
) -> Result<Planned, Failure> {
    let text = match source {
        "empty" => None,
        path => Some(
            std::fs::read_to_string(Path::new(path))
                .map_err(|error| Failure::usage(format!("cannot read {path}")).because(error.to_string()))?,
        ),
    };
    let newest = Dialect::of(version.unwrap_or(BrokerVersion::NEWEST_KNOWN));
    let mut snapshots: Vec<Snapshot> = Vec::new();
    for vhost in loaded.vhosts() {
        snapshots.push(match &text {
            None => definitions::empty(vhost, newest.version),
            Some(text) => definitions::read(text, &vhost, version).map_err(|error| {
                Failure::spec(format!("{source} is not a definitions file that can be used")).because(error.to_string())
            })?,
        });
    }
    loaded.expand_for(|index| snapshots.get(index).map_or(&newest, |snapshot| &snapshot.dialect))?;
    // Nobody knows how full the queues are: that is "some", not "none".
    let nobody_knows = Activity::default();
    let parts = snapshots.iter().zip(loaded.wanted());
    let parts = parts.map(|(snapshot, wanted)| planning::one(snapshot, &wanted, &nobody_knows, options)).collect();
    let version = snapshots.last().map_or(newest.version, |snapshot| snapshot.dialect.version).to_string();
    let target = Target { url: source.to_owned(), cluster: String::new(), product: "RabbitMQ".to_owned(), version };
    let dialects = snapshots.into_iter().map(|snapshot| snapshot.dialect).collect();
    Ok(Planned { plan: seal(target, options.clone(), parts), dialects })
}
