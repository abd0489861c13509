//! Renders the tables of known arguments as `docs/arguments.md`. A test compares the result with the committed page,
//! and `TOPO_UPDATE=1` updates the page.

use super::argument::{KnownArgument, Support, ValueKind, Versions};
use super::{EXCHANGE_ARGUMENTS, KNOWN_ARGUMENTS};
use crate::model::queue::QueueType;
use crate::model::units::{duration, size};
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Queue and exchange arguments

On this page, you can look up each argument: its key in a spec, its values, and the versions of RabbitMQ that accept and compare it. This
page is generated from the table that topo itself uses, and a test compares the table with RabbitMQ 3.8.9, 3.10.8, 4.0.5 and 4.3.6.

The columns of the tables:

- **key**: the key in a spec. Under `arguments:`, the name of the argument works too.
- **value**: the values that a spec accepts, then the values that certain versions accept. `not checked` means that the broker accepts
  any value.
- **accepted**: the versions that accept the argument on a new queue and support it. RabbitMQ 3.9 and later refuse an argument that
  they support only on other queue types. An unknown argument is stored and has no effect.
- **compared**: the versions that refuse to redeclare an existing queue with a different value (`inequivalent arg`). Other versions report
  success and change nothing, which topo calls drift.
- **policy**: the policy key that has the same effect on an existing queue.

How the broker compares values:

- A missing argument differs from an argument with the default value. The only exception is `x-queue-type`. If it is missing,
  RabbitMQ 3.10.8 and later use the default queue type of the vhost, provided that this type supports the queue's `durable`, `exclusive` and
  `autoDelete`. In all other cases, the broker uses `classic`.
- Integers of any width are compared by value. 60000, 60000.0 and \"60000\" are three different values.
- On 3.11.16 and later, `quorum_queue.property_equivalence.relaxed_checks_on_redeclaration = true` lets applications redeclare a quorum queue as a
  classic queue. The broker does not report this setting over HTTP, so topo predicts a refusal on such a node as well.

## Queue arguments

| argument | key | description |
|---|---|---|
";

const EXCHANGES: &str = "\
## Exchanges

When an exchange is redeclared, the broker compares `alternate-exchange` for every exchange type, including plugin types. If any other
argument differs, the broker reports success and changes nothing. For the internal exchanges of federation, the broker compares one
more argument.

`direct`, `fanout`, `topic`, `headers`, `x-random`, `x-local-random`, `x-modulus-hash`, `x-jms-topic` and `x-event` have no arguments of
their own.

| argument | key | types | value | compared | policy |
|---|---|---|---|---|---|
";

/// Returns the page in Markdown.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for known in KNOWN_ARGUMENTS {
        let _ = writeln!(page, "| `{}` | {} | {} |", known.name, key(known), known.doc);
    }
    for queue_type in QueueType::ALL {
        let title = match queue_type {
            QueueType::Classic => "Classic queues",
            QueueType::Quorum => "Quorum queues",
            QueueType::Stream => "Streams",
        };
        let _ = write!(
            page,
            "\n## {title}\n\n| argument | value | accepted | compared | policy |\n|---|---|---|---|---|\n"
        );
        for known in KNOWN_ARGUMENTS {
            if let Some(support) = known.support_for(queue_type) {
                page.push_str(&row(known, support));
            }
        }
        let idle: Vec<String> = KNOWN_ARGUMENTS
            .iter()
            .flat_map(|known| known.idle.iter().filter(|support| support.queue_type == queue_type).map(|_| known.name))
            .map(|name| format!("`{name}`"))
            .collect();
        if !idle.is_empty() {
            let _ = write!(
                page,
                "\nOnly RabbitMQ 3.9 accepts and compares these arguments, which have no effect: {}.\n",
                idle.join(", ")
            );
        }
    }
    page.push('\n');
    page.push_str(EXCHANGES);
    for known in EXCHANGE_ARGUMENTS {
        let types = if known.exchange_types.is_empty() { "all".to_owned() } else { code(known.exchange_types) };
        let _ = writeln!(
            page,
            "| `{}` | {} | {types} | {}{} | {} | {} |",
            known.name,
            known.key.map_or_else(|| "under `arguments`".to_owned(), |key| format!("`{key}`")),
            value(known.value),
            if known.is_checked { "" } else { "; not checked" },
            if known.is_compared { "yes" } else { "no" },
            policy(known.policy_key)
        );
    }
    page.push_str("\n| argument | description |\n|---|---|\n");
    for known in EXCHANGE_ARGUMENTS {
        let _ = writeln!(page, "| `{}` | {} |", known.name, known.doc);
    }
    page
}

fn key(known: &KnownArgument) -> String {
    match known.name {
        "x-dead-letter-exchange" => "`deadLetter`, or `deadLetter: {exchange: …}`".to_owned(),
        "x-dead-letter-routing-key" => "`deadLetter: {exchange: …, routingKey: …}`".to_owned(),
        _ => format!("`{}`", known.key),
    }
}

fn row(known: &KnownArgument, support: &Support) -> String {
    let mut compared: Vec<String> = Vec::new();
    if known.is_known_to_3_8 && support.queue_type != QueueType::Stream {
        compared.push(Versions::ALL.to_string());
        // Before 3.9, the type does not matter. On 3.9 and later, the type must list the argument.
        if support.listed.first() != Some(&Versions::since(3, 9)) {
            compared = vec!["3.8".to_owned()];
            compared.extend(support.listed.iter().map(Versions::to_string));
        }
    } else {
        compared.extend(support.listed.iter().map(Versions::to_string));
    }
    if compared.is_empty() {
        compared.push("never".to_owned());
    }
    let mut accepted = support.accepted.to_string();
    if let Some(since) = support.no_effect_since {
        let _ = write!(accepted, "; no effect since {}.{}", since.major, since.minor);
    }
    format!(
        "| `{}` | {} | {accepted} | {} | {} |\n",
        known.name,
        describe_values(known, support.queue_type),
        compared.join("; "),
        policy(known.policy_key)
    )
}

/// Describes the values that a spec accepts, and then the values that certain versions accept.
fn describe_values(known: &KnownArgument, queue_type: QueueType) -> String {
    let mut text = value(known.value);
    // The checks that are made by versions that accept the argument on this queue type.
    let accepted = known.support_for(queue_type).map(|support| support.accepted);
    let of_type = known.checks.iter().filter(|check| {
        accepted.is_some_and(|accepted| {
            let ends_before = |one: Versions, other: Versions| one.until.is_some_and(|until| until <= other.since);
            !ends_before(check.versions, accepted) && !ends_before(accepted, check.versions)
        })
    });
    for check in of_type.filter(|check| !is_within(known.value, check.value)) {
        let _ = write!(text, "; {}: {}", check.versions, value(check.value));
    }
    if known.checks.is_empty() {
        text.push_str("; not checked");
    }
    text
}

/// Returns true if every value that a spec accepts (`declared`) is also accepted by the broker (`accepted`).
fn is_within(declared: ValueKind, accepted: ValueKind) -> bool {
    match (declared, accepted) {
        (ValueKind::Count(min, max), ValueKind::Count(first, last))
        | (ValueKind::Duration(min, max), ValueKind::Duration(first, last)) => first <= min && max <= last,
        (ValueKind::Size(max), ValueKind::Size(last)) => max <= last,
        (declared, accepted) => declared == accepted,
    }
}

fn value(kind: ValueKind) -> String {
    let bounds = |min: i64, max: i64, show: &dyn Fn(i64) -> String| match (min, max) {
        (min, i64::MAX) => format!("at least {}", show(min)),
        (min, max) if min == max => format!("only {}", show(min)),
        (min, max) => format!("{} to {}", show(min), show(max)),
    };
    match kind {
        ValueKind::Duration(min, max) => {
            let show = |number: i64| duration(number).unwrap_or_else(|| format!("{number}ms"));
            format!("duration, {}", bounds(min, max, &show))
        }
        ValueKind::Size(i64::MAX) => "size".to_owned(),
        ValueKind::Size(max) => format!("size, at most {}", size(max).unwrap_or_else(|| max.to_string())),
        ValueKind::Count(min, max) => format!("count, {}", bounds(min, max, &|number| number.to_string())),
        ValueKind::Boolean => "`true`, `false`".to_owned(),
        ValueKind::Text => "string".to_owned(),
        ValueKind::OneOf(words) => code(words),
        ValueKind::MaxAge => "digits followed by `Y`, `M`, `D`, `h`, `m` or `s`, such as `7D`".to_owned(),
    }
}

fn code(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn policy(key: Option<&str>) -> String {
    key.map_or_else(|| "–".to_owned(), |key| format!("`{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/arguments.md");

    #[test]
    fn committed_page_is_current() {
        let printed = reference();
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(COMMITTED, &printed).unwrap();
        }
        let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
        assert!(committed == printed, "docs/arguments.md is outdated: run the tests with TOPO_UPDATE=1");
    }
}
