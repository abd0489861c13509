//! The statistics and tick intervals of the broker, which the management API does not report.

use super::value_parsers::positive;
use crate::model::Intervals;
use crate::model::units::duration;
use clap::Args;
use std::time::Duration;

/// The intervals in which the broker updates its counts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Broker")]
pub(super) struct IntervalArguments {
    /// The broker's collect_statistics_interval: maximum age of its list of consumers [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = positive, env = "TOPO_STATISTICS_INTERVAL")]
    pub(super) statistics_interval: Option<Duration>,
    /// The broker's quorum_tick_interval: maximum age of the counts of quorum queues [default: 5s, if it is observed]
    #[arg(long, value_name = "DURATION", value_parser = positive, env = "TOPO_TICK_INTERVAL")]
    pub(super) tick_interval: Option<Duration>,
}

impl IntervalArguments {
    pub(super) fn intervals(&self) -> Intervals {
        Intervals::new(self.statistics_interval, self.tick_interval)
    }

    /// Returns the flags as typed on the command line, without values that the environment already sets.
    pub(super) fn flags(&self) -> String {
        let flags = [("statistics-interval", self.statistics_interval), ("tick-interval", self.tick_interval)];
        let mut line = String::new();
        for (name, value) in flags {
            let variable = format!("TOPO_{}", name.to_uppercase().replace('-', "_"));
            let typed = value.filter(|value| {
                let set = super::connection::environment(&variable).and_then(|text| positive(&text).ok());
                set != Some(*value)
            });
            let typed = typed.and_then(|value| i64::try_from(value.as_millis()).ok()).and_then(duration);
            if let Some(value) = typed {
                line.push_str(&format!(" --{name} {value}"));
            }
        }
        line
    }
}
