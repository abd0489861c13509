//! Renders the routing changes of a plan. For each change to a binding, an exchange or dead-lettering, the text lists
//! the queues that lose and gain messages, and gives an example.

use super::change_details::{full_binding, place};
use super::markdown::{inline, with_code};
use super::style::{BOLD, DIM, GREEN, Painted, RED, YELLOW, clean, columns, fold};
use crate::model::count::{count, number};
use crate::model::{ExchangeName, Object, QueueName, Source};
use crate::plan::{CauseKind, ChangeKind, DeadLetterChange, NotCompared, RoutingCause, RoutingChange, VhostPlan};
use anstyle::Style;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The maximum number of changes in a list.
const MAX_LISTED: usize = 20;

/// The listed routing changes of one vhost.
struct Listed<'a> {
    changes: Vec<Group<'a>>,
    /// The number of changes that only route messages to new queues. The plan shows the bindings of new queues anyway.
    to_new_queues: usize,
    /// The changes to the routing of dead-lettered messages.
    dead_letters: &'a [DeadLetterChange],
    /// The changes with an unknown effect.
    not_compared: &'a [NotCompared],
    /// The number of other changes that are not listed.
    omitted: usize,
}

impl<'a> Listed<'a> {
    fn of(part: &'a VhostPlan, all: bool) -> Self {
        let new: BTreeSet<&QueueName> = part
            .changes
            .iter()
            .filter(|change| change.kind == ChangeKind::Create)
            .filter_map(|change| match &change.after {
                Some(Object::Queue(name, _)) => Some(name),
                _ => None,
            })
            .collect();
        let only_new = |it: &RoutingChange| it.lost.is_empty() && it.gained.iter().all(|queue| new.contains(queue));
        let (hidden, shown): (Vec<_>, Vec<_>) =
            part.routing.changes.iter().partition(|change| !all && only_new(change));
        let mut changes = grouped(shown);
        let to_new_queues = grouped(hidden).len();
        let max = if all { usize::MAX } else { MAX_LISTED };
        let number = changes.len() + part.routing.dead_letters.len() + part.routing.not_compared.len();
        changes.truncate(max);
        let dead_letters = &part.routing.dead_letters;
        let dead_letters = dead_letters.get(..max).unwrap_or(dead_letters);
        let not_compared = &part.routing.not_compared;
        let not_compared = not_compared.get(..max).unwrap_or(not_compared);
        let omitted = number - changes.len() - dead_letters.len() - not_compared.len();
        Self { changes, to_new_queues, dead_letters, not_compared, omitted }
    }

    /// Returns a sentence about the changes that are not listed. If `changes` is empty, does not mention changes that
    /// affect only new queues. Returns `None` if there is nothing to mention.
    fn rest(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.omitted > 0 {
            parts.push(count(self.omitted as u64, "more change"));
        }
        if self.to_new_queues > 0 && !self.changes.is_empty() {
            let (changes, verb) = (
                count(self.to_new_queues as u64, "change"),
                if self.to_new_queues == 1 { "affects" } else { "affect" },
            );
            parts.push(format!("{changes} that only {verb} new queues"));
        }
        (!parts.is_empty()).then(|| format!("not shown: {} (use --show all)", parts.join(" and ")))
    }
}

/// Changes with the same cause and the same effect.
struct Group<'a> {
    /// The change for messages that are published to the binding's source exchange. If there is no such change, the
    /// first change in the group.
    change: &'a RoutingChange,
    /// The exchanges to which the messages are published.
    exchanges: BTreeSet<&'a ExchangeName>,
}

/// Groups changes by cause and effect. Changes with the same cause are adjacent.
fn grouped(changes: Vec<&RoutingChange>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut numbers = BTreeMap::new();
    for change in changes {
        let is_source = change.cause.binding.as_ref().is_some_and(|binding| binding.source == change.exchange);
        let key = (&change.cause.address, change.cause.kind, &change.lost, &change.gained, change.all);
        let number = *numbers.entry(key).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => {
                group.exchanges.insert(&change.exchange);
                if is_source {
                    group.change = change;
                }
            }
            None => groups.push(Group { change, exchanges: [&change.exchange].into() }),
        }
    }
    groups.sort_by_key(|group| &group.change.cause.address);
    groups
}

/// Writes the routing changes of one vhost. Writes nothing if no changes are listed.
pub(super) fn write_text(text: &mut String, part: &VhostPlan, all: bool, width: usize) {
    let listed = Listed::of(part, all);
    if listed.changes.is_empty() && listed.dead_letters.is_empty() && listed.not_compared.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}", Painted(BOLD, "Routing changes"));
    let mut last = None;
    for group in &listed.changes {
        let change = group.change;
        if last.replace(&change.cause) != Some(&change.cause) {
            head(text, symbol(change.cause.kind), &cause_text(&change.cause), change.cause.source.as_ref(), width);
        }
        indented(text, &sentence(group, &clean), width);
        indented(text, &format!("example: {}", example(group, &clean)), width);
        let reasons: BTreeSet<&String> = change.before_unclear.iter().chain(&change.after_unclear).collect();
        for reason in reasons {
            indented(text, &format!("the example may reach additional queues: {}", clean(reason)), width);
        }
        if let Some(unaffected) = &change.unaffected {
            indented(text, &format!("not affected: for example, {}", clean(&unaffected.to_string())), width);
        }
    }
    let mut last = None;
    for it in listed.dead_letters {
        if last.replace(&it.queue) != Some(&it.queue) {
            let what = format!("dead letters from queue {}", clean(it.queue.as_str()));
            head(text, ("~", YELLOW), &what, it.source.as_ref(), width);
        }
        indented(text, &dead_letter_sentence(it, &clean), width);
        indented(text, &format!("example: {}", dead_letter_example(it, &clean)), width);
    }
    for it in listed.not_compared {
        head(text, symbol(it.cause.kind), &cause_text(&it.cause), it.cause.source.as_ref(), width);
        let exchange = clean(it.exchange.as_str());
        let reason = clean(&it.reason);
        indented(text, &format!("unknown effect on messages to exchange {exchange}: {reason}"), width);
    }
    if let Some(rest) = listed.rest() {
        let _ = writeln!(text, "  {}", fold(&rest, width.saturating_sub(2)).replace('\n', "\n  "));
    }
    text.push('\n');
}

/// Wraps a sentence, and writes it indented below a cause.
fn indented(text: &mut String, sentence: &str, width: usize) {
    for line in fold(sentence, width.saturating_sub(6)).lines() {
        let _ = writeln!(text, "      {line}");
    }
}

/// Writes a cause, and its position in the spec at the right margin if there is room.
fn head(text: &mut String, (symbol, style): (&str, Style), what: &str, source: Option<&Source>, width: usize) {
    let end = 4 + columns(what);
    let source = source.map(place).unwrap_or_default();
    let room = width.checked_sub(end + columns(&source)).filter(|room| *room >= 2 && !source.is_empty());
    let source = room.map_or_else(String::new, |room| format!("{}{}", " ".repeat(room), Painted(DIM, source)));
    let _ = writeln!(text, "  {} {what}{source}", Painted(style, symbol));
}

fn symbol(kind: CauseKind) -> (&'static str, Style) {
    match kind {
        CauseKind::BindingCreated => ("+", GREEN),
        CauseKind::BindingDeleted => ("-", RED),
        CauseKind::AlternateExchange | CauseKind::ExchangeType => ("~", YELLOW),
    }
}

fn cause_text(cause: &RoutingCause) -> String {
    match (&cause.binding, cause.kind) {
        (Some(binding), _) => format!("binding {}", full_binding(binding)),
        (None, CauseKind::ExchangeType) => format!("type of {}", cause.address),
        (None, _) => format!("alternate exchange of {}", cause.address),
    }
}

/// Describes the queues that lose and gain messages. `escaped` escapes names.
fn sentence(Group { change, exchanges }: &Group<'_>, escaped: &dyn Fn(&str) -> String) -> String {
    let all = if change.all == Some(true) { "all" } else { "some" };
    let which = match change.cause.kind {
        CauseKind::BindingCreated | CauseKind::BindingDeleted => "matching messages",
        CauseKind::AlternateExchange => "unmatched messages",
        CauseKind::ExchangeType => "messages",
    };
    let names: Vec<String> = exchanges.iter().map(|name| escaped(name.as_str())).collect();
    let to = if names.len() == 1 { "published to exchange" } else { "published to exchanges" };
    let lost = (!change.lost.is_empty()).then(|| format!("will no longer reach {}", queues(&change.lost, escaped)));
    let gained = (!change.gained.is_empty()).then(|| format!("will reach {}", queues(&change.gained, escaped)));
    let effects: Vec<String> = lost.into_iter().chain(gained).collect();
    format!("{all} {which} {to} {} {}", names.join(" and "), effects.join(&format!(", and {all} ")))
}

/// Describes the queues that lose and gain the messages that a queue dead-letters.
fn dead_letter_sentence(change: &DeadLetterChange, escaped: &dyn Fn(&str) -> String) -> String {
    let which = format!("messages that are dead-lettered ({})", change.reasons.join(", "));
    if let Some(reason) = &change.unknown {
        return format!("unknown effect on {which}: {}", escaped(reason));
    }
    let lost = (!change.lost.is_empty()).then(|| format!("will no longer reach {}", queues(&change.lost, escaped)));
    let gained = (!change.gained.is_empty()).then(|| format!("will reach {}", queues(&change.gained, escaped)));
    let effects: Vec<String> = lost.into_iter().chain(gained).collect();
    format!("some {which} {}", effects.join(", and some "))
}

/// Describes an example of a dead-lettered message.
fn dead_letter_example(change: &DeadLetterChange, escaped: &dyn Fn(&str) -> String) -> String {
    let (before, after) = (queues(&change.before, escaped), queues(&change.after, escaped));
    format!("{} (before: {before}; after: {after})", clean(&change.example.to_string()))
}

/// Describes an example, such as ``routing key `order.x` (before: billing; after: no queue)``.
fn example(group: &Group<'_>, escaped: &dyn Fn(&str) -> String) -> String {
    let change = group.change;
    let before = reached_before(change, escaped);
    let after = reached_after(change, escaped);
    format!("{} (before: {before}; after: {after})", clean(&example_message(group)))
}

/// Describes the message of an example, and its exchange if the group has several exchanges.
fn example_message(Group { change, exchanges }: &Group<'_>) -> String {
    match exchanges.len() {
        1 => change.example.to_string(),
        _ => format!("{}, published to exchange {}", change.example, change.exchange),
    }
}

fn queues(names: &BTreeSet<QueueName>, escaped: &dyn Fn(&str) -> String) -> String {
    let names: Vec<String> = names.iter().map(|name| escaped(name.as_str())).collect();
    match names.len() {
        0 => "no queue".to_owned(),
        1..=MAX_LISTED => names.join(", "),
        more => format!(
            "{} and {} more",
            names.get(..MAX_LISTED).unwrap_or_default().join(", "),
            number((more - MAX_LISTED) as u64)
        ),
    }
}

fn reached_before(change: &RoutingChange, escaped: &dyn Fn(&str) -> String) -> String {
    reached(&change.before, (change.before_total, change.before_unclear.is_some()), escaped)
}

fn reached_after(change: &RoutingChange, escaped: &dyn Fn(&str) -> String) -> String {
    reached(&change.after, (change.after_total, change.after_unclear.is_some()), escaped)
}

/// Lists the queues that an example reaches.
fn reached(
    listed: &BTreeSet<QueueName>,
    (total, is_unclear): (usize, bool),
    escaped: &dyn Fn(&str) -> String,
) -> String {
    if is_unclear && total == 0 {
        return "unknown".to_owned();
    }
    let more = total - listed.len().min(total);
    let rest = if more == 0 { String::new() } else { format!(" and {} more", number(more as u64)) };
    format!("{}{rest}{}", queues(listed, escaped), if is_unclear { ", and possibly others" } else { "" })
}

/// Writes the routing changes of one vhost as a Markdown table, up to a comment length of `limit` bytes. Writes nothing
/// if no changes are listed.
pub(super) fn write_markdown(out: &mut String, part: &VhostPlan, all: bool, limit: usize) {
    let listed = Listed::of(part, all);
    let rows = listed.changes.iter().map(|group| {
        let change = group.change;
        let (sign, _) = symbol(change.cause.kind);
        let cells = [
            format!("{} {}", inline(sign), inline(&cause_text(&change.cause))),
            sentence(group, &inline),
            with_code(&example_message(group)),
            reached_before(change, &inline),
            reached_after(change, &inline),
        ];
        format!("| {} |", cells.join(" | "))
    });
    let unknown = listed.not_compared.iter().map(|it| {
        let (sign, _) = symbol(it.cause.kind);
        let exchange = inline(it.exchange.as_str());
        let cause = inline(&cause_text(&it.cause));
        let reason = with_code(&it.reason);
        format!("| {} {cause} | unknown effect on messages to exchange {exchange}: {reason} | | | |", inline(sign))
    });
    let dead_letters = listed.dead_letters.iter().map(|it| {
        let cells = [
            format!("{} dead letters from queue {}", inline("~"), inline(it.queue.as_str())),
            dead_letter_sentence(it, &inline),
            with_code(&it.example.to_string()),
            queues(&it.before, &inline),
            queues(&it.after, &inline),
        ];
        format!("| {} |", cells.join(" | "))
    });
    let rows: Vec<String> = rows.chain(dead_letters).chain(unknown).collect();
    if rows.is_empty() {
        return;
    }
    out.push_str("| routing change | effect | example | before | after |\n|---|---|---|---|---|\n");
    for (index, row) in rows.iter().enumerate() {
        if out.len() + row.len() > limit {
            let _ = writeln!(out, "| … | {} more | | | |", rows.len() - index);
            break;
        }
        let _ = writeln!(out, "{row}");
    }
    if let Some(rest) = listed.rest() {
        let _ = writeln!(out, "\n{rest}");
    }
    out.push('\n');
}

/// Returns the listed changes whose position in the spec is known, each with a message for an annotation. Excludes
/// changes that were not compared.
pub(super) fn annotations(part: &VhostPlan) -> Vec<(&Source, String)> {
    let listed = Listed::of(part, false);
    let message = |group: &Group<'_>| format!("{}\nexample: {}", sentence(group, &clean), example(group, &clean));
    let changes = listed.changes.iter();
    let changes = changes.filter_map(|group| Some((group.change.cause.source.as_ref()?, message(group))));
    let dead_letters = listed.dead_letters.iter().filter_map(|it| {
        let sentence =
            format!("dead letters from queue {}: {}", clean(it.queue.as_str()), dead_letter_sentence(it, &clean));
        Some((it.source.as_ref()?, format!("{sentence}\nexample: {}", dead_letter_example(it, &clean))))
    });
    changes.chain(dead_letters).collect()
}
