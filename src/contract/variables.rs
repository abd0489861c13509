//! Converts contracts to environment variables such as `ORDERS_WORK_MAX_RETRIES`.
//!
//! It is an error if two queues have a variable with the same name. If topo added a suffix to one of the variables
//! instead, adding a queue could rename variables that a worker already reads.

use super::document::{Answer, Contract, Contracts};
use crate::model::QueueName;
use crate::model::printable::clean_json;
use std::collections::BTreeMap;

/// The error for two queues that have a variable with the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} would be set by two queues: `{first}` and `{second}`")]
pub struct NameConflict {
    /// The name of the variable.
    pub variable: String,
    /// The queue that comes first in the output.
    pub first: QueueName,
    /// The queue that comes second in the output.
    pub second: QueueName,
}

/// Returns the variables with their unquoted values in output order, one group for each queue.
///
/// # Errors
/// Returns a [`NameConflict`] if two queues would set the same variable. This happens if their names differ only in
/// case or special characters, if two vhosts have a queue with the same name, or if the names are, for
/// example, `a` and `a.dead-letter`.
pub fn variables(contracts: &Contracts) -> Result<Vec<Vec<(String, String)>>, NameConflict> {
    let mut variables: BTreeMap<String, &QueueName> = BTreeMap::new();
    let mut groups = Vec::new();
    for (name, contract) in contracts.vhosts.values().flat_map(|vhost| &vhost.queues) {
        let group = of_queue(name, contract);
        for (variable, _) in &group {
            if let Some(first) = variables.insert(variable.clone(), name) {
                return Err(NameConflict { variable: variable.clone(), first: first.clone(), second: name.clone() });
            }
        }
        groups.push(group);
    }
    Ok(groups)
}

/// Converts a queue name such as `orders.work` to `ORDERS_WORK`: in upper case, with an underscore for each character
/// that is not ASCII alphanumeric.
fn prefix(queue: &QueueName) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = queue.as_str().chars().map(plain).collect();
    // The name of a variable cannot begin with a digit.
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn of_queue(queue: &QueueName, contract: &Contract) -> Vec<(String, String)> {
    let mut variables: Vec<(&str, String)> = vec![
        ("QUEUE", queue.as_str().to_owned()),
        ("STRATEGY", contract.strategy.map_or("none", crate::model::Strategy::as_str).to_owned()),
        ("MAX_RETRIES", contract.max_retries.to_string()),
        ("DELIVERIES", contract.deliveries.to_string()),
    ];
    if !contract.delays.is_empty() {
        let delays: Vec<String> = contract.delays.iter().map(|delay| delay.milliseconds.to_string()).collect();
        variables.push(("DELAYS_MS", delays.join(",")));
    }
    if let Some(jitter) = &contract.jitter {
        variables.push(("JITTER_MS", jitter.milliseconds.to_string()));
    }
    if let Some(header) = contract.counter.as_ref().and_then(|counter| counter.header.as_ref()) {
        variables.push(("COUNT_HEADER", header.clone()));
    }
    let names = ["ON_FAILURE", "ON_FAILURE_REQUEUE", "ON_FAILURE_EXCHANGE", "ON_FAILURE_THEN"];
    answer(&mut variables, names, &contract.on_failure);
    if let Some(publish) = &contract.on_failure.publish {
        // The routing keys of tiers are numbers, so a comma can separate them. Without tiers, the only routing key is a
        // queue name, which can contain a comma.
        let name = if contract.delays.is_empty() { "ON_FAILURE_ROUTING_KEY" } else { "ON_FAILURE_ROUTING_KEYS" };
        variables.push((name, publish.routing_keys.join(",")));
    }
    let names = ["GIVE_UP", "GIVE_UP_REQUEUE", "GIVE_UP_EXCHANGE", "GIVE_UP_THEN"];
    answer(&mut variables, names, &contract.on_give_up);
    if let Some(publish) = &contract.on_give_up.publish {
        variables.extend(publish.routing_keys.last().map(|key| ("GIVE_UP_ROUTING_KEY", key.clone())));
    }
    if let Some(dead_letters) = &contract.dead_letters {
        variables.push(("DEAD_LETTER_EXCHANGE", dead_letters.exchange.as_str().to_owned()));
        variables.extend(dead_letters.routing_key.clone().map(|key| ("DEAD_LETTER_ROUTING_KEY", key)));
        variables.extend(dead_letters.queue.as_ref().map(|queue| ("DEAD_LETTER_QUEUE", queue.as_str().to_owned())));
    }
    let declaration = &contract.declaration;
    let arguments = serde_json::to_string(&declaration.arguments);
    variables.extend([
        ("DURABLE", declaration.durable.to_string()),
        ("AUTO_DELETE", declaration.auto_delete.to_string()),
        ("DECLARE_ARGUMENTS", clean_json(arguments.expect("JSON can represent every argument: all keys are strings"))),
    ]);
    let prefix = prefix(queue);
    variables.into_iter().map(|(name, value)| (format!("{prefix}_{name}"), value)).collect()
}

/// Adds the variables of a reaction. If the worker must publish a copy, the value of the first variable is `publish`
/// instead of the method. Otherwise, a worker that reads only this variable would call `basic.ack` without publishing,
/// and the message would be lost.
fn answer(variables: &mut Vec<(&str, String)>, names: [&'static str; 4], answer: &Answer) {
    let [first, requeue, exchange, then] = names;
    let method = answer.method.as_str().to_owned();
    match &answer.publish {
        Some(publish) => variables.extend([
            (first, "publish".to_owned()),
            (exchange, publish.exchange.as_str().to_owned()),
            (then, method),
        ]),
        None => variables.push((first, method)),
    }
    variables.extend(answer.requeue.map(|flag| (requeue, flag.to_string())));
}
