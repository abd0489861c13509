//! `topo contract`: prints the worker contracts that the specs define, without a broker.

use super::arguments::SpecArguments;
use super::failure::{Exit, Failure};
use super::input::{self, Loaded};
use super::value_parsers::broker_version;
use super::{arguments::FindingsFormat, output};
use crate::contract::{
    ClientVhost, Contract, Contracts, FORMAT_VERSION, VhostContracts, client_vhost, contract, contracts, thresholds,
    variables,
};
use crate::model::known_clients::Framework;
use crate::model::printable::clean_json;
use crate::model::yaml::Tree;
use crate::model::{BrokerVersion, QueueName};
use crate::rabbitmq::BrokerProfile;
use crate::render::client_config::client_config;
use crate::render::shell::quote;
use crate::render::style::for_version;
use crate::render::{contract_table, shell};
use crate::spec::{Spec, closest};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Args)]
pub(super) struct ContractArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// Print only the contract of this queue; may be repeated
    #[arg(long, value_name = "NAME", env = "TOPO_QUEUE")]
    pub(super) queue: Vec<String>,
    /// RabbitMQ version to assume [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ContractFormat,
    /// Print the configuration of the queues for this framework
    #[arg(
        id = "framework",
        long = "for",
        value_name = "FRAMEWORK",
        value_enum,
        conflicts_with = "format",
        env = "TOPO_FOR"
    )]
    pub(super) framework: Option<Framework>,
}

impl ValueEnum for Framework {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.as_str()).help(self.description()))
    }
}

/// Output format of a contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ContractFormat {
    /// Human-readable table
    #[default]
    Table,
    /// Machine-readable JSON; `topo schema --kind contract` prints its schema
    Json,
    /// The JSON document as YAML
    Yaml,
    /// Shell variables, such as ORDERS_WORK_MAX_RETRIES=3
    Env,
}

pub(super) fn run(arguments: &ContractArguments) -> Result<Exit, Failure> {
    let version = arguments.broker_version.unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let loaded = input::load_for(&arguments.spec, "topo contract", FindingsFormat::Text, version)?;
    if let Some(framework) = arguments.framework {
        let vhosts = find_queues(&loaded, version, &arguments.queue)?;
        if vhosts.len() > 1 && framework != Framework::Rascal {
            let names: Vec<String> = vhosts.iter().map(|vhost| vhost.vhost.to_string()).collect();
            return Err(Failure::usage(format!(
                "a {} configuration contains one vhost, but the queues are in {}",
                framework.as_str(),
                names.join(", ")
            ))
            .hint("select the queues of one vhost with --vhost or --queue"));
        }
        let config = client_config(framework, &vhosts, &loaded.specs);
        for note in &config.notes {
            output::eprint(&format!("note: {note}\n"));
        }
        output::print(&config.text)?;
        return Ok(Exit::Done);
    }
    let found = find_contracts(&loaded, version, &arguments.queue)?;
    let text = match arguments.format {
        ContractFormat::Table => {
            let version = for_version(arguments.broker_version);
            contract_table::contracts(&found, &loaded.specs, &version, output::width())
        }
        ContractFormat::Json => clean_json(format!("{:#}\n", document(&found))),
        ContractFormat::Yaml => Tree::from_json(&document(&found)).document(),
        ContractFormat::Env => {
            let groups = variables(&found).map_err(|clash| {
                let apart = match clash.first == clash.second {
                    true => "--vhost NAME".to_owned(),
                    false => {
                        [&clash.first, &clash.second].map(|it| format!("--queue {}", quote(it.as_str()))).join(" or ")
                    }
                };
                Failure::failed(clash.to_string())
                    .hint("no variables were printed, so that no worker reads the limits of another queue")
                    .hint(format!("print them separately: {apart}"))
            })?;
            shell::environment_lines(&groups)
        }
    };
    output::print(&text)?;
    Ok(Exit::Done)
}

fn document(contracts: &Contracts) -> serde_json::Value {
    serde_json::to_value(contracts).expect("JSON can represent every contract: all keys are strings")
}

/// Returns the contracts of the queues in `only`. If `only` is empty, returns the contracts of all queues that have
/// one.
fn find_contracts(loaded: &Loaded, version: BrokerVersion, only: &[String]) -> Result<Contracts, Failure> {
    let profile = BrokerProfile::of(version);
    let mut vhosts = BTreeMap::new();
    for (spec, expansion) in &loaded.expanded {
        let of_vhost = if only.is_empty() {
            contracts(spec, expansion, &profile)
        } else {
            let names = only.iter().map(QueueName::new);
            let of_name = |name: QueueName| contract(&name, spec, expansion, &profile).map(|it| (name, it));
            let queues: BTreeMap<QueueName, Contract> = names.filter_map(of_name).collect();
            let thresholds = thresholds(spec).filter(|(name, _)| queues.contains_key(name)).collect();
            VhostContracts { queues, thresholds }
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

/// Returns the queues in `only`, by vhost. If `only` is empty, returns all classic and quorum queues. Omits vhosts
/// without such queues.
fn find_queues(loaded: &Loaded, version: BrokerVersion, only: &[String]) -> Result<Vec<ClientVhost>, Failure> {
    let profile = BrokerProfile::of(version);
    let names: BTreeSet<QueueName> = only.iter().map(QueueName::new).collect();
    let all = loaded.expanded.iter().map(|(spec, expansion)| client_vhost(spec, expansion, &profile, &names));
    let vhosts: Vec<ClientVhost> = all.filter(|vhost| !vhost.queues.is_empty()).collect();
    let is_found = |name: &str| vhosts.iter().flat_map(|it| &it.queues).any(|it| it.declaration.queue.as_str() == name);
    match only.iter().find(|name| !is_found(name)) {
        Some(name) => Err(no_contract(loaded, name)),
        None if vhosts.is_empty() => Err(Failure::failed("the spec declares no classic or quorum queue")),
        None => Ok(vhosts),
    }
}

/// Returns the failure for a `--queue` value without a contract.
fn no_contract(loaded: &Loaded, name: &str) -> Failure {
    let of_spec = |spec: &'_ Spec| {
        let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name.clone(), it.queue.is_external));
        let queues = spec.queues.iter().map(|(name, it)| (name.clone(), it.is_external));
        queues.chain(dead_letter_queues).collect::<Vec<_>>()
    };
    let known: Vec<(QueueName, bool)> = loaded.expanded.iter().flat_map(|(spec, _)| of_spec(spec)).collect();
    match known.iter().find(|(known, _)| known.as_str() == name) {
        Some((_, true)) => Failure::usage(format!(
            "queue `{name}` is external: the spec does not define its retries and dead-lettering"
        )),
        Some((_, false)) => Failure::usage(format!(
            "queue `{name}` is a stream: streams have no retries, because reading does not remove messages"
        )),
        None => {
            let failure = Failure::usage(format!("the spec declares no queue `{name}` with a contract"));
            match closest(name, known.iter().map(|(known, _)| known.as_str())) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure,
            }
        }
    }
}
