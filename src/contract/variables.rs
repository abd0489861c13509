//! Contracts as variables of an environment: `ORDERS_WORK_MAX_RETRIES`. Names that would meet are an error: a suffix would
//! give a worker another queue's limits as soon as a queue is added.

use super::document::{Answer, Contract, Contracts};
use crate::model::QueueName;
use std::collections::BTreeMap;

/// Two queues whose variables have the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} would be set by two queues: `{first}` and `{second}`")]
pub struct Clash {
    /// The variable.
    pub variable: String,
    /// A queue.
    pub first: QueueName,
    /// The other one.
    pub second: QueueName,
}

/// The variables with their values, unquoted, a group a queue, in the order in which they are printed.
///
/// # Errors
/// Two queues that would say one variable: of names that differ in signs only, of one name in two vhosts, or of `a` and
/// `a.retry`.
pub fn variables(contracts: &Contracts) -> Result<Vec<Vec<(String, String)>>, Clash> {
    let mut said: BTreeMap<String, &QueueName> = BTreeMap::new();
    let mut groups = Vec::new();
    for (name, contract) in contracts.vhosts.values().flat_map(|vhost| &vhost.queues) {
        let group = of_queue(name, contract);
        for (variable, _) in &group {
            if let Some(first) = said.insert(variable.clone(), name) {
                return Err(Clash { variable: variable.clone(), first: first.clone(), second: name.clone() });
            }
        }
        groups.push(group);
    }
    Ok(groups)
}

/// `orders.work` as `ORDERS_WORK`: letters and digits of ASCII stay, all else is an underscore.
fn prefix(queue: &QueueName) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = queue.as_str().chars().map(plain).collect();
    // A variable cannot begin with a digit.
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn of_queue(queue: &QueueName, contract: &Contract) -> Vec<(String, String)> {
    let mut said: Vec<(&str, String)> = vec![
        ("QUEUE", queue.as_str().to_owned()),
        ("STRATEGY", contract.strategy.map_or("none", crate::model::Strategy::as_str).to_owned()),
        ("MAX_RETRIES", contract.max_retries.to_string()),
        ("DELIVERIES", contract.deliveries.to_string()),
    ];
    if !contract.delays.is_empty() {
        let delays: Vec<String> = contract.delays.iter().map(|delay| delay.milliseconds.to_string()).collect();
        said.push(("DELAYS_MS", delays.join(",")));
    }
    if let Some(jitter) = &contract.jitter {
        said.push(("JITTER_MS", jitter.milliseconds.to_string()));
    }
    if let Some(header) = contract.counter.as_ref().and_then(|counter| counter.header.as_ref()) {
        said.push(("COUNT_HEADER", header.clone()));
    }
    let names = ["ON_FAILURE", "ON_FAILURE_REQUEUE", "ON_FAILURE_EXCHANGE", "ON_FAILURE_THEN"];
    answer(&mut said, names, &contract.on_failure);
    if let Some(publish) = &contract.on_failure.publish {
        // Of tiers they are numbers, so that the comma parts them; else it is one queue's name, which may have one.
        let name = if contract.delays.is_empty() { "ON_FAILURE_ROUTING_KEY" } else { "ON_FAILURE_ROUTING_KEYS" };
        said.push((name, publish.routing_keys.join(",")));
    }
    let names = ["GIVE_UP", "GIVE_UP_REQUEUE", "GIVE_UP_EXCHANGE", "GIVE_UP_THEN"];
    answer(&mut said, names, &contract.on_give_up);
    if let Some(publish) = &contract.on_give_up.publish {
        said.extend(publish.routing_keys.last().map(|key| ("GIVE_UP_ROUTING_KEY", key.clone())));
    }
    if let Some(dead_letters) = &contract.dead_letters {
        said.push(("DEAD_LETTER_EXCHANGE", dead_letters.exchange.as_str().to_owned()));
        said.extend(dead_letters.routing_key.clone().map(|key| ("DEAD_LETTER_ROUTING_KEY", key)));
        said.extend(dead_letters.queue.as_ref().map(|queue| ("DEAD_LETTER_QUEUE", queue.as_str().to_owned())));
    }
    let prefix = prefix(queue);
    said.into_iter().map(|(name, value)| (format!("{prefix}_{name}"), value)).collect()
}

/// What comes first is said first: where a copy is published, `basic.ack` without it would lose the message.
fn answer(said: &mut Vec<(&str, String)>, names: [&'static str; 4], answer: &Answer) {
    let [first, requeue, exchange, then] = names;
    let method = answer.method.as_str().to_owned();
    match &answer.publish {
        Some(publish) => said.extend([
            (first, "publish".to_owned()),
            (exchange, publish.exchange.as_str().to_owned()),
            (then, method),
        ]),
        None => said.push((first, method)),
    }
    said.extend(answer.requeue.map(|flag| (requeue, flag.to_string())));
}
