//! `topo contract`: what workers must know, from the specs alone.

use super::exit::Exit;
use super::failure::Failure;
use super::input::{self, Loaded};
use super::offline_arguments::{ContractArguments, ContractFormat};
use super::shell::quoted;
use super::{arguments::FindingsFormat, output};
use crate::behaviour::Dialect;
use crate::contract::{Contracts, FORMAT_VERSION, VhostContracts, contract, contracts, variables};
use crate::model::printable::clean_json;
use crate::model::{BrokerVersion, QueueName};
use crate::render::style::for_version;
use crate::render::{contract_env, contract_table, yaml};
use crate::spec::closest;
use std::collections::BTreeMap;

pub(super) fn run(arguments: &ContractArguments) -> Result<Exit, Failure> {
    let version = arguments.broker_version.unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let loaded = input::load_for(&arguments.spec, "topo contract", FindingsFormat::Text, version)?;
    let found = read(&loaded, version, &arguments.queue)?;
    let text = match arguments.format {
        ContractFormat::Table => {
            let version = for_version(arguments.broker_version);
            contract_table::contracts(&found, &loaded.specs, &version, output::width())
        }
        ContractFormat::Json => clean_json(format!("{:#}\n", document(&found))),
        ContractFormat::Yaml => yaml::yaml(&document(&found)),
        ContractFormat::Env => {
            let groups = variables(&found).map_err(|clash| {
                let apart = match clash.first == clash.second {
                    true => "--vhost NAME".to_owned(),
                    false => {
                        [&clash.first, &clash.second].map(|it| format!("--queue {}", quoted(it.as_str()))).join(" or ")
                    }
                };
                Failure::failed(clash.to_string())
                    .hint("no variable is printed, so that no worker reads the limits of another queue")
                    .hint(format!("print them one by one: {apart}"))
            })?;
            contract_env::lines(&groups)
        }
    };
    output::print(&text)?;
    Ok(Exit::Done)
}

fn document(contracts: &Contracts) -> serde_json::Value {
    serde_json::to_value(contracts).expect("contracts hold nothing that JSON cannot: all keys are text")
}

/// The contracts of all queues that have one worth saying, or of those that are named.
fn read(loaded: &Loaded, version: BrokerVersion, only: &[String]) -> Result<Contracts, Failure> {
    let dialect = Dialect::of(version);
    let mut vhosts = BTreeMap::new();
    for (spec, expansion) in &loaded.expanded {
        let of_vhost = if only.is_empty() {
            contracts(spec, expansion, &dialect)
        } else {
            let names = only.iter().map(QueueName::new);
            let of_name = |name: QueueName| contract(&name, spec, expansion, &dialect).map(|it| (name, it));
            VhostContracts { queues: names.filter_map(of_name).collect() }
        };
        if only.is_empty() || !of_vhost.queues.is_empty() {
            vhosts.insert(spec.vhost.value.clone(), of_vhost);
        }
    }
    let is_found = |name: &String| vhosts.values().any(|vhost| vhost.queues.contains_key(&QueueName::new(name)));
    match only.iter().find(|name| !is_found(name)) {
        Some(name) => Err(no_contract(loaded, name)),
        None => Ok(Contracts { format_version: FORMAT_VERSION, broker_version: version, vhosts }),
    }
}

/// Why a queue that is named has no contract.
fn no_contract(loaded: &Loaded, name: &str) -> Failure {
    let known = || loaded.expanded.iter().flat_map(|(spec, _)| spec.queues.iter());
    match known().find(|(known, _)| known.as_str() == name) {
        Some((_, queue)) if queue.is_external => {
            Failure::usage(format!("queue `{name}` is external: the spec does not say what its workers must know"))
        }
        Some(_) => {
            Failure::usage(format!("queue `{name}` is a stream, which retries nothing: reading does not remove"))
        }
        None => {
            let failure = Failure::usage(format!("the spec declares no queue `{name}` that workers fail at"));
            match closest(name, known().map(|(known, _)| known.as_str())) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure,
            }
        }
    }
}
