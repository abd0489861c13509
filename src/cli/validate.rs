//! `topo validate`: specs checked offline.

use super::arguments::{FindingsFormat, Global, ValidateArguments};
use super::exit::Exit;
use super::failure::Failure;
use super::{input, output};
use crate::behaviour::Dialect;
use crate::model::BrokerVersion;
use crate::render::style::count;

pub(super) fn run(arguments: &ValidateArguments, global: &Global) -> Result<Exit, Failure> {
    let loaded = input::load_for(&arguments.spec, arguments.format)?;
    if arguments.format == FindingsFormat::Json {
        output::print("{\"formatVersion\":1,\"diagnostics\":[]}\n")?;
    } else if !global.quiet && arguments.format == FindingsFormat::Text {
        // As the newest broker would hold it.
        let newest = Dialect::of(BrokerVersion::NEWEST_KNOWN);
        for wanted in loaded.wanted(|_| &newest)? {
            let topology = &wanted.topology;
            output::print(&format!(
                "{}: vhost {}: {}, {}, {}, {}\n",
                loaded.specs,
                crate::render::style::clean(topology.vhost.as_str()),
                count(topology.exchanges.len() as u64, "exchange"),
                count(topology.queues.len() as u64, "queue"),
                count(topology.bindings.len() as u64, "binding"),
                match topology.policies.len() {
                    1 => "1 policy".to_owned(),
                    many => format!("{many} policies"),
                },
            ))?;
        }
        output::print("Valid.\n")?;
    }
    Ok(Exit::Done)
}
