//! Renders the report of an apply for a terminal: the results of the migrations and steps, and the command that resumes
//! the apply.

use super::style::{BOLD, DIM, GREEN, Painted, RED, YELLOW, clean, one_line, words_and_code, wrap};
use crate::apply::{Consumers, Migrated, Missing, Report, WaitingStep};
use crate::model::count::{count, number};
use crate::model::{Address, ObjectId};
use crate::plan::Action;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Describes an action, such as `declare queue orders.work` or `bind orders ─ # → orders.work`.
pub fn action(action: &Action) -> String {
    let object = action.object();
    clean(&match action {
        Action::PutVhost { .. } => "write vhost settings".to_owned(),
        Action::PutPolicy { name, .. } => format!("put policy {name}"),
        Action::DeclareExchange { bindings, .. } if !bindings.is_empty() => {
            format!("declare {object} with {}", count(bindings.len() as u64, "binding"))
        }
        Action::PutTopicPermission { permission } => format!("put {permission}"),
        Action::DeclareExchange { .. } | Action::DeclareQueue { .. } => format!("declare {object}"),
        Action::Bind { binding } => format!("bind {binding}"),
        Action::Unbind { binding, .. } => format!("unbind {binding}"),
        Action::DeleteQueue { .. } | Action::DeleteExchange { .. } | Action::DeletePolicy { .. } => {
            format!("delete {object}")
        }
        Action::PutRecord { .. } => format!("put {object}"),
        Action::DeleteRecord { .. } => format!("delete {object}"),
        Action::MoveMessages { from, to, .. } => format!("move messages {from} → {to}"),
    })
}

/// Returns the number of completed steps and the total number of steps in the plan. Does not count repeated steps of a
/// migration or steps outside the plan.
fn step_counts(reports: &[Report]) -> (u64, u64) {
    let mut all = (0, 0);
    for report in reports {
        let done: BTreeSet<_> =
            report.done.iter().map(|it| &it.step).filter(|it| it.id > 0).map(|it| (it.id, &it.address)).collect();
        let open = report.failed.len() + report.not_attempted.len() + report.waiting.len();
        all = (all.0 + done.len() as u64, all.1 + (done.len() + open) as u64);
    }
    all
}

/// Formats the step counts, such as `7 of 7 steps done`.
pub fn steps_done(reports: &[Report]) -> String {
    let (done, all) = step_counts(reports);
    format!("{} of {} done", number(done), count(all, "step"))
}

/// Renders the results of all vhosts for an output width of `width` columns. `remaining` contains the addresses that
/// still differ after a complete run, or is `None` if topo could not read from the broker. `resume_command` is the
/// command that resumes the run.
pub fn report(reports: &[Report], remaining: Option<&[Address]>, resume_command: &str, width: usize) -> String {
    let mut text = String::new();
    let total = |of: fn(&Report) -> usize| reports.iter().map(of).sum::<usize>() as u64;
    let done = total(|report| report.done.len());
    let failed = total(|report| report.failed.len());
    let not_attempted = total(|report| report.not_attempted.len());
    let interrupted = reports.iter().any(|report| report.is_interrupted);
    write_migrations(&mut text, reports, width);
    write_consumers(&mut text, reports, width);
    if failed == 0 && not_attempted == 0 {
        if interrupted {
            let line = match reports.iter().all(|report| report.waiting.is_empty()) {
                true => "The interruption came too late: all steps were already done.",
                false => "Interrupted: topo deferred the deletion of retired objects.",
            };
            let _ = writeln!(text, "{}", Painted(YELLOW, line));
        }
        let Some(remaining) = remaining else {
            let _ = writeln!(
                text,
                "Applied: {}. The result could not be verified: topo could not read from the broker.",
                steps_done(reports)
            );
            let _ = writeln!(text, "To see the remaining changes and resume:\n  {resume_command}");
            return text;
        };
        let waiting: Vec<&WaitingStep> = reports.iter().flat_map(|report| &report.waiting).collect();
        let mut migrated = reports.iter().flat_map(|report| &report.migrated).peekable();
        if remaining.is_empty() && migrated.peek().is_some() && migrated.all(|it| it.is_rolled_back) {
            let rollbacks = reports.iter().map(|report| report.migrated.len()).sum::<usize>();
            let queues = if rollbacks == 1 { "the queue is" } else { "the queues are" };
            let line = format!("Done: {}. Verified: {queues} unchanged.", count(done, "step"));
            let _ = writeln!(text, "{}", Painted(GREEN, line));
        } else if remaining.is_empty() && !waiting.is_empty() {
            write_retired_objects(&mut text, reports, &waiting, resume_command);
        } else if remaining.is_empty() {
            let line = format!("Applied: {}. Verified: the broker matches the spec.", steps_done(reports));
            let _ = writeln!(text, "{}", Painted(GREEN, line));
        } else {
            let line = format!("Applied: {}, but the broker does not match the spec:", steps_done(reports));
            let _ = writeln!(text, "{}", Painted(RED, line));
            for address in remaining {
                let _ = writeln!(text, "  {address}");
            }
            let _ = writeln!(
                text,
                "Another client changed these objects at the same time, or the broker did not apply the change."
            );
            let _ = writeln!(text, "To see the remaining changes and resume:\n  {resume_command}");
        }
        return text;
    }
    for report in reports {
        if reports.len() > 1 {
            let _ = writeln!(text, "{}", Painted(BOLD, report.vhost.in_words()));
        }
        for step in &report.done {
            let _ = writeln!(text, "  {} {}", Painted(GREEN, "done         "), action(&step.step.action));
        }
        write_rollbacks(&mut text, report);
        for step in &report.failed {
            let _ = writeln!(text, "  {} {}", Painted(RED, "failed       "), action(&step.step.action));
            let lines =
                wrap(&words_and_code(&clean(&one_line(&step.error.to_string()))), " ", width.saturating_sub(16));
            for line in lines {
                let _ = writeln!(text, "                {line}");
            }
            if step.error.may_have_been_processed() {
                let _ = writeln!(text, "                the broker may have executed this step");
            }
        }
        for step in &report.waiting {
            let _ = writeln!(text, "  {} {}", Painted(DIM, "deferred     "), action(&step.step.action));
        }
        for step in report.not_attempted.iter().filter(|step| !is_rolled_back(report, step.recreate.as_ref())) {
            let _ = writeln!(text, "  {} {}", Painted(DIM, "not attempted"), action(&step.action));
        }
    }
    let rollbacks = reports.iter().flat_map(|report| &report.migrated).filter(|it| it.is_rolled_back).count() as u64;
    if rollbacks > 0 && done == 0 {
        let why = if failed == 0 { "because the run was interrupted" } else { "because of the errors above" };
        let has_deleted_queue = reports.iter().flat_map(|it| &it.migrated).any(Migrated::has_deleted_queue);
        let state = match has_deleted_queue {
            true => {
                "The objects are back in their original state, but a queue was temporarily deleted, which canceled its consumers."
            }
            false => "The objects on the broker are unchanged.",
        };
        let line = format!("Rolled back: {}, {why}. {state}", count(rollbacks, "migration"));
        let lines = wrap(&words_and_code(&line), " ", width);
        let _ = writeln!(text, "\n{}", Painted(RED, lines.join("\n")));
        let _ = writeln!(text, "To try again:\n  {resume_command}");
        return text;
    }
    let why = if interrupted { "Interrupted" } else { "Stopped" };
    let line = format!("{why}: {}, {failed} failed, {not_attempted} not attempted.", steps_done(reports));
    let _ = writeln!(text, "\n{}", Painted(RED, line));
    let _ = writeln!(text, "To see the remaining changes and resume:\n  {resume_command}");
    text
}

/// Returns true if a step belongs to a migration that was rolled back. `recreates` is the object that the step helps to
/// recreate.
fn is_rolled_back(report: &Report, recreates: Option<&ObjectId>) -> bool {
    recreates.is_some_and(|object| {
        report.migrated.iter().any(|it| it.is_rolled_back && *object == ObjectId::Queue(it.queue.clone()))
    })
}

/// Writes the steps that were rolled back. All steps of a migration share a line, because a migration executes more
/// steps than the plan contains.
fn write_rollbacks(text: &mut String, report: &Report) {
    let mut migrations: BTreeMap<&ObjectId, u64> = BTreeMap::new();
    for done in &report.rolled_back {
        match &done.step.recreate {
            Some(object) if is_rolled_back(report, Some(object)) => *migrations.entry(object).or_default() += 1,
            Some(_) | None => {
                let _ = writeln!(text, "  {} {}", Painted(DIM, "rolled back  "), action(&done.step.action));
            }
        }
    }
    for (object, steps) in migrations {
        let what = clean(&format!("the migration of {object}: {}", count(steps, "step")));
        let _ = writeln!(text, "  {} {what}", Painted(DIM, "rolled back  "));
    }
}

/// Writes a sentence for each migration: the result, and the effects on messages and applications.
fn write_migrations(text: &mut String, reports: &[Report], width: usize) {
    for migrated in reports.iter().flat_map(|it| &it.migrated) {
        let Migrated { queue, is_rolled_back, is_interrupted, rollback_error, returned, possible_duplicates, .. } =
            migrated;
        let Migrated { reordered, gap, redeclared, keeps, .. } = migrated;
        let verb = match (is_rolled_back, is_interrupted) {
            (true, _) => "Rolled back: the migration of queue",
            (false, true) => "Interrupted: the migration of queue",
            (false, false) => "Migrated: queue",
        };
        let mut parts = vec![match returned {
            Some(0) | None if *is_interrupted => {
                "the next run will resume the migration and return the messages".to_owned()
            }
            Some(some) if *is_interrupted => {
                format!("{} returned, and the next run will resume the migration", count(*some, "message"))
            }
            Some(returned) => format!("{} returned", count(*returned, "message")),
            None => "its messages were returned".to_owned(),
        }];
        if let Some((keeps, _)) = keeps.zip(*returned).filter(|(keeps, returned)| keeps < returned) {
            let rest = "messages over this limit were dropped or dead-lettered";
            parts.push(format!("the queue keeps at most {} (max-length), and {rest}", count(keeps, "message")));
        }
        if let Some(why) = rollback_error {
            parts.push(format!("the rollback failed: {why}"));
        }
        if let Some(gap) = gap {
            parts.push(format!(
                "the queue did not exist for {} ms",
                number(u64::try_from(gap.as_millis()).unwrap_or(u64::MAX))
            ));
        }
        if *redeclared > 0 {
            let times = match redeclared {
                1 => "once".to_owned(),
                2 => "twice".to_owned(),
                more => format!("{more} times"),
            };
            parts.push(format!("{} redeclared the old queue {times}", migrated.redeclaring_application()));
        }
        if let Some(reason) = &migrated.fallback {
            parts.push(format!("a shovel moved the messages, because topo could not use AMQP ({})", clean(reason)));
        }
        if let Some(reordered) = reordered {
            parts.push(format!(
                "{} {} now behind newer messages, because messages arrived as fast as topo moved the old messages",
                count(*reordered, "message"),
                if *reordered == 1 { "is" } else { "are" },
            ));
        }
        if let Some(behind) = migrated.behind {
            let verb = if behind == 1 { "is" } else { "are" };
            parts.push(format!("{} {verb} now behind newer messages", count(behind, "message")));
        }
        if let Some(lost) = missing_messages(migrated) {
            parts.push(lost);
        }
        if *possible_duplicates > 0 {
            parts.push(format!("{} may be delivered twice", count(*possible_duplicates, "message")));
        }
        let sentence = format!("{verb} {}: {}.", clean(queue.as_str()), parts.join("; "));
        let lines = wrap(&words_and_code(&sentence), " ", width.saturating_sub(2));
        let _ = writeln!(text, "{}", lines.join("\n  "));
    }
}

/// Writes a sentence for each recreated queue that had consumers: the consumer counts, and the missing clients.
fn write_consumers(text: &mut String, reports: &[Report], width: usize) {
    for consumers in reports.iter().flat_map(|it| &it.consumers) {
        let sentence = clean(&consumers_sentence(consumers));
        let _ = writeln!(text, "{}", wrap(&words_and_code(&sentence), " ", width.saturating_sub(2)).join("\n  "));
    }
}

/// Describes the consumers of a recreated queue.
fn consumers_sentence(consumers: &Consumers) -> String {
    let Consumers { queue, before, after, missing } = consumers;
    let after = after.map_or_else(|| "an unknown number".to_owned(), |after| number(after as u64));
    let mut sentence = format!("Queue {queue}: {} before, {after} now", count(*before as u64, "consumer"));
    if !missing.is_empty() {
        let _ = write!(sentence, "; did not subscribe again: {} (restart these applications)", missing.join(", "));
    } else if consumers.missing_count() > 0 {
        sentence.push_str(" (restart applications that do not subscribe again)");
    }
    sentence.push('.');
    sentence
}

/// Describes the messages that did not return, or might not have returned, with the reason.
fn missing_messages(Migrated { missing, conflicting_policy, .. }: &Migrated) -> Option<String> {
    let missing = missing.map(|Missing { messages, total }| {
        format!("{} of {} that topo moved out of the queue did not return", number(messages), count(total, "message"))
    });
    match (missing, conflicting_policy) {
        (Some(missing), Some(conflicting_policy)) => Some(format!("{missing}, because {conflicting_policy}")),
        (Some(missing), None) => Some(format!("{missing}: the messages expired, or a policy removed them")),
        (None, Some(conflicting_policy)) => Some(format!("messages may be missing, because {conflicting_policy}")),
        (None, None) => None,
    }
}

/// Writes the result of a run that deferred the deletion of retired objects, because some of these objects still
/// contain messages. Such a run has not failed.
fn write_retired_objects(text: &mut String, reports: &[Report], waiting: &[&WaitingStep], resume_command: &str) {
    let line =
        format!("Applied: {}. Verified: the broker matches the spec, except for retired objects", steps_done(reports));
    let _ = writeln!(text, "{}", Painted(GREEN, line));
    let _ = writeln!(
        text,
        "that still contain messages. These messages will return to their queue automatically. Deferred:"
    );
    for step in waiting {
        if let Some(why) = &step.why {
            let _ = writeln!(
                text,
                "  {} {}: {}",
                Painted(DIM, "deferred"),
                step.step.action.object(),
                clean(&why.to_string())
            );
        }
    }
    let others = waiting.iter().filter(|step| step.why.is_none()).count() as u64;
    if others > 0 {
        let _ = writeln!(
            text,
            "  {} {} that must remain until the messages have returned",
            Painted(DIM, "deferred"),
            count(others, "object")
        );
    }
    let _ = writeln!(text, "To finish later:\n  {resume_command}");
}
