//! `--against`: a plan with no broker, against an empty one or a definitions file.

use super::failure::Failure;
use super::planning::{self, Planned};
use crate::broker::definitions;
use crate::model::BrokerVersion;
use crate::plan::{Activity, Options, Target, Wanted, seal};
use std::path::Path;

/// The plan against what stands for a broker.
pub(super) fn plan(
    source: &str,
    version: Option<BrokerVersion>,
    wanted: &[Wanted],
    options: &Options,
) -> Result<Planned, Failure> {
    let text = match source {
        "empty" => None,
        path => Some(
            std::fs::read_to_string(Path::new(path))
                .map_err(|error| Failure::usage(format!("cannot read {path}")).because(error.to_string()))?,
        ),
    };
    let mut parts = Vec::new();
    let mut dialects = Vec::new();
    let mut known = version;
    for wanted in wanted {
        let vhost = &wanted.topology.vhost;
        let snapshot = match &text {
            None => definitions::empty(vhost.clone(), version.unwrap_or(BrokerVersion::NEWEST_KNOWN)),
            Some(text) => definitions::read(text, vhost, version).map_err(|error| {
                Failure::spec(format!("{source} is not a definitions file that can be used")).because(error.to_string())
            })?,
        };
        known = Some(snapshot.dialect.version);
        // Nobody knows how full the queues are: that is "some", not "none".
        parts.push(planning::one(&snapshot, wanted, &Activity::default(), options));
        dialects.push(snapshot.dialect);
    }
    let version = known.unwrap_or(BrokerVersion::NEWEST_KNOWN).to_string();
    let target = Target { url: source.to_owned(), cluster: String::new(), product: "RabbitMQ".to_owned(), version };
    Ok(Planned { plan: seal(target, options.clone(), parts), dialects })
}
