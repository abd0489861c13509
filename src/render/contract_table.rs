//! Renders contracts as text: a table if a vhost has several queues, then what the workers of each queue must do.

use super::style::{BOLD, DIM, Painted, YELLOW, clean, columns, deliveries, heading, retries, wrap};
use crate::contract::{Answer, Contract, Contracts, DeadLetters, Declaration, Publish, VhostContracts, Wait};
use crate::model::count::count;
use crate::model::{ArgumentValue, ExchangeName, QueueName, Reach, Strategy};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The column at which the text after a label starts.
const INDENT: usize = 14;

/// The maximum number of delays or queues that are listed.
const MAX_LISTED: usize = 12;

/// Renders all contracts. `specs` contains the paths of the specs, and `version` is a description of the RabbitMQ
/// version.
pub fn contracts(contracts: &Contracts, specs: &str, version: &str, width: usize) -> String {
    let mut text = String::new();
    for (vhost, of_vhost) in &contracts.vhosts {
        let parts = [format!("vhost {}", clean(vhost.as_str())), version.to_owned(), format!("spec {}", clean(specs))];
        for line in heading(&parts, width) {
            let _ = writeln!(text, "{}", Painted(BOLD, line));
        }
        text.push('\n');
        if of_vhost.queues.is_empty() {
            text.push_str("No queue retries or dead-letters messages.\n");
            text.push_str("To print how an application must declare a queue, add --queue NAME.\n\n");
        }
        if of_vhost.queues.len() > 1 {
            overview(&mut text, of_vhost, width);
        }
        for (name, contract) in &of_vhost.queues {
            write_contract(&mut text, name, contract, width);
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Writes a table of all queues. If the table is wider than `width`, puts the last column on a separate line below each
/// row.
fn overview(text: &mut String, of_vhost: &VhostContracts, width: usize) {
    let rows: Vec<[String; 5]> = of_vhost.queues.iter().map(|(name, contract)| row(name, contract)).collect();
    let heads = ["queue", "deliveries", "strategy", "on failure", "dead-lettered to"].map(str::to_owned);
    let widest = |column: usize| rows.iter().chain([&heads]).map(|row| columns(&row[column])).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(widest);
    let is_narrow = widths.iter().sum::<usize>() + 2 * (widths.len() - 1) > width;
    for (index, row) in [&heads].into_iter().chain(&rows).enumerate() {
        let [first @ .., last] = row;
        let mut line = String::new();
        for (cell, width) in first.iter().zip(widths) {
            let _ = write!(line, "{cell}{}  ", " ".repeat(width.saturating_sub(columns(cell))));
        }
        let line = if is_narrow {
            let below = if index == 0 { String::new() } else { format!("\n    ▶ {last}") };
            format!("{}{below}", line.trim_end())
        } else {
            format!("{line}{last}")
        };
        let _ = match index {
            0 => writeln!(text, "{}", Painted(DIM, line)),
            _ => writeln!(text, "{line}"),
        };
    }
    text.push('\n');
}

fn row(name: &QueueName, contract: &Contract) -> [String; 5] {
    [
        clean(name.as_str()),
        contract.deliveries.to_string(),
        contract.strategy.map_or("-", Strategy::as_str).to_owned(),
        match &contract.on_failure.publish {
            Some(_) => "publish, basic.ack".to_owned(),
            None => method(&contract.on_failure),
        },
        match &contract.dead_letters {
            Some(dead_letters) => dead_letter_summary(dead_letters),
            None if contract.is_drop_intended => "none: dropped, as intended".to_owned(),
            None => "none: dropped".to_owned(),
        },
    ]
}

fn dead_letter_summary(dead_letters: &DeadLetters) -> String {
    match (&dead_letters.queue, dead_letters.reach) {
        (Some(queue), _) => clean(queue.as_str()),
        (None, Reach::Never) => format!("none: {} routes to no queue", exchange(&dead_letters.exchange)),
        (None, Reach::Always | Reach::Maybe) => exchange(&dead_letters.exchange),
    }
}

/// A writer for labeled lines.
struct Lines<'a> {
    text: &'a mut String,
    width: usize,
}

impl Lines<'_> {
    fn line(&mut self, label: &str, sentence: &str) {
        let words: Vec<String> = sentence.split(' ').map(|word| word.replace('\u{a0}', " ")).collect();
        let lines = wrap(&words, " ", self.width.saturating_sub(INDENT));
        for (index, line) in lines.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let _ = writeln!(self.text, "  {} {line}", Painted(BOLD, format!("{label:<11}")));
        }
    }
}

/// Writes the contract of one queue.
fn write_contract(text: &mut String, name: &QueueName, contract: &Contract, width: usize) {
    let how = contract.strategy.map_or("no retry", Strategy::as_str);
    let tries = match contract.strategy {
        Some(_) => format!("{}, {}", retries(contract.max_retries.into()), deliveries(contract.deliveries.into())),
        None => deliveries(1),
    };
    let _ = writeln!(text, "{} · {} · {how} · {tries}", Painted(BOLD, clean(name.as_str())), contract.queue_type);
    terms(text, contract, width);
}

/// Writes the terms of a contract, each with a label. `topo explain` also prints these lines.
pub(super) fn terms(text: &mut String, contract: &Contract, width: usize) {
    let mut lines = Lines { text, width };
    lines.line("declare", &format!("{}; or passively", declaration(&contract.declaration)));
    lines.line("on failure", &answer(&contract.on_failure, contract.delays.is_empty()));
    lines.line("give up", &answer(&contract.on_give_up, true));
    let with_headers = contract.dead_lettered_message.as_ref().and_then(|message| message.publish.as_ref());
    if let Some(publish) = with_headers.filter(|it| Some(*it) != contract.on_give_up.publish.as_ref()) {
        let call = format!("or, to add the headers below, publish a copy to {}, then basic.ack", target(publish, true));
        lines.line("", &call);
    }
    if !contract.delays.is_empty() {
        lines.line("waits", &delays(&contract.delays));
    }
    if let Some(jitter) = &contract.jitter {
        let jitter = format_wait(jitter);
        lines.line("jitter", &format!("optional: set the `expiration` of the copy to the delay minus up to {jitter}"));
    }
    if let Some(counter) = &contract.counter {
        lines.line("attempt", &clean(&counter.text));
    }
    if let Some(arrival) = &contract.retry_arrives {
        let (exchange, keys) = (exchange(&arrival.exchange), keys(&arrival.routing_keys, true));
        lines.line("a retry", &format!("arrives from {exchange} with {keys}"));
    } else if contract.max_retries > 0 {
        lines.line("a retry", "keeps its exchange and routing key, and has the `redelivered` flag");
    }
    if let Some(original) = &contract.original {
        let unbroken = |field: &str| clean(field).replace(' ', "\u{a0}");
        let by = match original.written_by {
            crate::contract::Participant::Broker => "",
            crate::contract::Participant::Worker => "headers that the worker writes: ",
        };
        lines.line("original", &format!("{by}{}, {}", unbroken(&original.exchange), unbroken(&original.routing_key)));
    }
    match &contract.dead_letters {
        Some(dead_letters) => lines.line("dead-letter", &dead_lettering(dead_letters)),
        None if contract.is_drop_intended => {
            lines.line("dead-letter", "none (`deadLetter: none`): failed messages are dropped")
        }
        None => lines.line("dead-letter", "none: messages are dropped when the worker gives up"),
    }
    if let Some(dead_lettered_message) = &contract.dead_lettered_message {
        let names: Vec<&str> = dead_lettered_message.headers.iter().map(|header| header.name.as_str()).collect();
        lines.line("headers", &names.join(", "));
    }
    for (number, sentence) in contract.warnings.iter().enumerate() {
        let label = if number == 0 { "warnings" } else { "" };
        for (index, line) in wrap_sentence(sentence, lines.width.saturating_sub(2)).iter().enumerate() {
            let (label, mark) = if index == 0 { (label, "-") } else { ("", " ") };
            let _ = writeln!(lines.text, "  {} {mark} {line}", Painted(YELLOW, format!("{label:<11}")));
        }
    }
}

/// Formats the properties of a declaration, such as `durable, x-queue-type=quorum, x-delivery-limit=5`. The type is the
/// first argument.
pub(super) fn declaration(declaration: &Declaration) -> String {
    let mut parts = vec![if declaration.durable { "durable" } else { "not durable" }.to_owned()];
    parts.extend(declaration.auto_delete.then(|| "auto-delete".to_owned()));
    let mut arguments: Vec<(&String, &ArgumentValue)> = declaration.arguments.iter().collect();
    arguments.sort_by_key(|(name, _)| *name != "x-queue-type");
    parts.extend(arguments.into_iter().map(|(name, value)| {
        let value = if value.as_text() == Some("") { "\"\"".to_owned() } else { value.to_string() };
        format!("{}={value}", clean(name)).replace(' ', "\u{a0}")
    }));
    parts.join(", ")
}

fn wrap_sentence(sentence: &str, width: usize) -> Vec<String> {
    let words: Vec<String> = clean(sentence).split(' ').map(str::to_owned).collect();
    wrap(&words, " ", width.saturating_sub(INDENT))
}

/// Formats the AMQP method of an answer, such as `basic.nack requeue=false`.
pub(super) fn method(answer: &Answer) -> String {
    let flag = answer.requeue.map_or_else(String::new, |flag| format!(" requeue={flag}"));
    format!("{}{flag}", answer.method.as_str())
}

/// Formats the AMQP method of an answer, and the publish that precedes the method, if any.
fn answer(answer: &Answer, is_one_key: bool) -> String {
    let method = method(answer).replace(' ', "\u{a0}");
    match &answer.publish {
        None => method,
        Some(publish) => format!("publish a copy to {}, then {method}", target(publish, is_one_key)),
    }
}

/// Formats the target of a publish, such as `the default exchange with key orders.work`.
pub(super) fn publish_target(publish: &Publish) -> String {
    target(publish, true)
}

fn target(publish: &Publish, is_one_key: bool) -> String {
    format!("{} with {}", exchange(&publish.exchange), keys(&publish.routing_keys, !is_one_key))
}

pub(super) fn exchange(name: &ExchangeName) -> String {
    match name.as_str() {
        "" => "the default exchange".to_owned(),
        name => format!("exchange\u{a0}{}", clean(name)),
    }
}

fn keys(keys: &[String], is_one_per_retry: bool) -> String {
    let shown: Vec<String> = keys.iter().map(|key| clean(key)).collect();
    match &shown[..] {
        [] => "no key".to_owned(),
        [only] => format!("key\u{a0}{only}"),
        [.., last] if !is_one_per_retry => format!("key\u{a0}{last}"),
        [first, second] => format!("key {first}, then {second}"),
        [first, .., last] => format!("keys {first} to {last}, one for each retry"),
    }
}

fn delays(delays: &[Wait]) -> String {
    let listed = |of: fn(&Wait) -> String| {
        let mut shown: Vec<String> = delays.iter().take(MAX_LISTED).map(of).collect();
        if delays.len() > MAX_LISTED {
            shown.push(format!("… {} in total", count(delays.len() as u64, "delay")));
        }
        shown.join(", ")
    };
    format!("{} ({} ms)", listed(|it| it.text.clone()), listed(|it| it.milliseconds.to_string()))
}

fn format_wait(wait: &Wait) -> String {
    format!("{} ({} ms)", wait.text, wait.milliseconds)
}

fn dead_lettering(dead_letters: &DeadLetters) -> String {
    let by = exchange(&dead_letters.exchange);
    let key =
        dead_letters.routing_key.as_ref().map_or_else(String::new, |key| format!(" with key\u{a0}{}", clean(key)));
    let listed = |queues: &BTreeSet<QueueName>| {
        let mut shown: Vec<String> = queues.iter().take(MAX_LISTED).map(|queue| clean(queue.as_str())).collect();
        shown.extend((queues.len() > MAX_LISTED).then(|| "…".to_owned()));
        shown.join(", ")
    };
    let possible = match dead_letters.possible_queues.is_empty() {
        true => String::new(),
        false => format!("; possibly {}", listed(&dead_letters.possible_queues)),
    };
    match (&dead_letters.queue, dead_letters.reach) {
        (Some(queue), _) => format!("{}, through {by}{key}", clean(queue.as_str())),
        (None, Reach::Never) => format!("none: {by} routes messages{key} to no queue"),
        (None, Reach::Always | Reach::Maybe) if dead_letters.queues.is_empty() => format!("to {by}{key}{possible}"),
        (None, Reach::Always | Reach::Maybe) => {
            format!("{}, through {by}{key}{possible}", listed(&dead_letters.queues))
        }
    }
}
