//! The words of plans and reports that are not a lint rule, a hazard, a key of specs or an error: one table for
//! `topo explain WORD` and for `docs/words.md`.

use std::fmt::Write as _;

/// A word of the output.
#[derive(Debug)]
pub struct Concept {
    /// The word as topo prints it, with hyphens for blanks.
    pub word: &'static str,
    /// Synonyms, and words that the same entry explains.
    also: &'static [&'static str],
    /// The meaning, in lines of plain text.
    text: &'static str,
    /// Related words that have entries of their own.
    see: &'static [&'static str],
}

const fn concept(
    word: &'static str,
    also: &'static [&'static str],
    text: &'static str,
    see: &'static [&'static str],
) -> Concept {
    Concept { word, also, text, see }
}

/// All concepts, sorted by name.
pub const CONCEPTS: &[Concept] = &[
    concept(
        "406",
        &["precondition_failed", "inequivalent"],
        "The AMQP error PRECONDITION_FAILED: an application declares a queue or an exchange with other arguments than
the existing object has. The broker closes the channel of the application. In a plan, the label `broker` shows the
error message of the broker, and `after` shows the one that applications get once the object has been recreated.",
        &["conflict", "after"],
    ),
    concept(
        "after",
        &[],
        "The response to applications after a recreate: those that still declare the object with its old arguments are
refused with 406. Deploy them with the new arguments at the same time.",
        &["406", "recreate"],
    ),
    concept(
        "backup",
        &[],
        "Before apply deletes, changes or recreates objects, it writes them to a file that `rabbitmqadmin definitions
import` reads. The file contains no messages. `--backup FILE` sets the file, `--no-backup` disables the backup.",
        &["recreate", "delete"],
    ),
    concept(
        "bind",
        &["unbind"],
        "`+ bind SOURCE ─ KEY →` adds a binding to the object above it, and `- unbind` removes one. When a binding
changes, topo adds the new one before it removes the old one, so that no message is lost. The summary counts bindings
separately from objects.",
        &["bindings", "routing-gap"],
    ),
    concept(
        "bindings",
        &[],
        "The bindings of an object that is recreated: those that the spec declares, and those that it does not. topo
restores all of them.",
        &["bind", "recreate", "unmanaged"],
    ),
    concept(
        "blocked",
        &["blocker"],
        "Apply refuses a blocked plan (exit code 3) before the first change. A plan is blocked by a conflict without a
resolution, which an edit or `--recreate` resolves, or by a hazard, which `--allow` allows. The last line of the plan
is the command with all missing flags.",
        &["conflict", "hazard"],
    ),
    concept(
        "broker",
        &[],
        "The response of the broker to an application that declares the object as the spec does, while the existing
object has other arguments.",
        &["406", "conflict"],
    ),
    concept(
        "change",
        &["change-in-place"],
        "`~`: the object exists, and apply updates it in place, without deleting it: a policy, or the settings of a
vhost. Arguments of queues and exchanges never change in place.",
        &["conflict", "recreate"],
    ),
    concept(
        "conflict",
        &[],
        "`!`: the current object differs from the spec in a setting that RabbitMQ never changes on an existing object,
and the spec does not define a resolution. Below it, the plan lists the ways to resolve it: keep the current value in
the spec, set the value by a policy, or recreate the object.",
        &["406", "drift", "keep", "policy", "recreate", "onConflict"],
    ),
    concept(
        "create",
        &[],
        "`+`: the object does not exist, and apply creates it.",
        &["change", "recreate", "delete"],
    ),
    concept(
        "default",
        &[],
        "The result of a declare without `x-queue-type`: the broker uses the default queue type of the vhost, and
compares it with the type of the existing queue.",
        &["406", "defaultQueueType"],
    ),
    concept(
        "delete",
        &[],
        "`-`: apply deletes the object, because it is listed under `removed`, because of `--prune`, or because its
retries are retired. If a queue was empty in the plan, apply deletes it only if it is still empty.",
        &["prune", "retired", "removed", "message-loss"],
    ),
    concept(
        "discard",
        &[],
        "A way to recreate a queue: delete it with its messages and declare it again. This is a `message-loss` hazard
unless the queue is empty.",
        &["ifEmpty", "migrate", "recreate", "message-loss"],
    ),
    concept(
        "done",
        &["failed"],
        "The result of a step in a report: `done` if the broker accepted the request, `failed` if it did not. After a
complete run, topo reads the broker again to verify the result.",
        &["not-attempted", "left", "verified"],
    ),
    concept(
        "drift",
        &[],
        "A setting differs, but the broker neither compares nor changes it: a declare succeeds, and the old value
remains. Drift counts as a conflict, because only a recreate changes the setting.",
        &["conflict", "recreate"],
    ),
    concept(
        "exit-code",
        &["exit"],
        "0 done, 1 failed before any change, 2 changes (`--detailed-exitcode`), 3 blocked, 4 partly done, 5 stale, 6
locked, 64 wrong usage, 65 invalid spec, 130 interrupted before any change. `topo --help` lists them.",
        &["blocked", "stale", "lock"],
    ),
    concept(
        "fingerprint",
        &[],
        "A hash of the changes and steps of a plan, and of the cluster that it was made for. Message counts are not
part of it. `topo apply --expect FINGERPRINT` applies only a plan with that fingerprint. It detects edits and
accidents, but it is not a signature.",
        &["stale"],
    ),
    concept(
        "hazard",
        &["allowed", "only-shown"],
        "A risk of applying a step to this broker now, such as a loss of messages, with live numbers. Apply refuses a
plan with a hazard that is not allowed. `--allow HAZARD@ADDRESS:N` allows the hazard for one object, up to N messages.
`(allowed)` marks a hazard that is allowed, and `(only shown)` marks one that blocks nothing.",
        &["blocked", "message-loss", "routing-gap"],
    ),
    concept(
        "holding",
        &["hold", "drained", "shield", "probe"],
        "The two holding queues of a migration: `Q.topo.drained` receives the messages of the old queue, and
`Q.topo.hold` receives the messages that are published meanwhile. topo moves both into the new queue, oldest first, and
deletes them. The policy `Q.topo.shield` keeps other policies off them; `Q.topo.probe` tests whether the new queue can
be declared.",
        &["migrate", "tap"],
    ),
    concept(
        "ifEmpty",
        &["refuse"],
        "A way to recreate a queue: only if it holds no messages. The broker checks this again when the queue is
deleted. A queue with messages stays, and the plan is blocked. The default is `refuse`: every conflict blocks the plan.",
        &["discard", "migrate", "recreate"],
    ),
    concept(
        "info",
        &["note"],
        "A fact about an object that is useful to know and blocks nothing. It needs no flag and does not affect the
exit code. The lowest level of lint findings has the same name.",
        &["hazard", "severity"],
    ),
    concept(
        "interrupted",
        &["cut-short", "unfinished"],
        "A migration that an earlier run started and did not complete, because it was killed, interrupted or lost its
connection to the broker. The messages are in the queue or in its holding queues, which still receive what is
published. The next apply resumes the migration; `--abort ADDRESS` rolls it back while the old queue exists. While
another apply holds the lock, wait for that apply.",
        &["migrate", "holding", "lock"],
    ),
    concept(
        "keep",
        &[],
        "A way to resolve a conflict: write the value of the current object into the spec. Nothing changes on the
broker. The plan prints the YAML to write.",
        &["conflict", "policy", "recreate"],
    ),
    concept(
        "ladder",
        &["tier", "retry-ladder"],
        "The delayed retries of a queue: a series of tier queues, one for each delay. A message that fails waits in the
next tier until its TTL expires, and returns to the queue. After the last retry it goes to the dead-letter queue. A
plan shows the generated objects on one line; `--show all` lists them.",
        &["redeliver", "republish", "retired", "retry"],
    ),
    concept(
        "left",
        &[],
        "A step that was planned but not done, because retired tiers still hold messages. The messages return to their
queue by themselves, and the next apply finishes the step. This is not a failure.",
        &["retired", "ladder"],
    ),
    concept(
        "live",
        &[],
        "The messages and consumers of the current queue when the plan was made, with the addresses of the consumers.
If the broker does not report a number, it counts as \"some\".",
        &["message-loss", "consumer-disruption"],
    ),
    concept(
        "lock",
        &["lease"],
        "While apply runs, it holds the queue `topo.lock` in the vhost as a lock, so only one apply runs per vhost. The
holder renews its lease of 60 s, so the lock of a killed run expires. `topo lock` shows the holder, `topo lock --break`
deletes the lock, and `--lock-timeout` waits for it.",
        &["stale"],
    ),
    concept(
        "migrate",
        &["migrated", "migrating", "migration", "swap"],
        "A way to recreate a queue without losing its messages, while publishers and consumers work: hold what is
published, drain the old queue, declare the new one, and return all messages, oldest first. The next apply finishes an
interrupted migration.",
        &["holding", "interrupted", "tap", "recreate", "duplicates", "reorder"],
    ),
    concept(
        "not-attempted",
        &[],
        "A step that did not start, because another step failed or the run was interrupted. Run the same command again
to continue there.",
        &["done", "rolled-back"],
    ),
    concept(
        "policy",
        &[],
        "A way to resolve a conflict: set the value by a policy, which applies to the existing queue. This works if
RabbitMQ has a policy key for the setting and no argument of the queue overrides it. The plan lists the settings that
it resolves.",
        &["conflict", "keep", "policy-shift"],
    ),
    concept(
        "prune",
        &[],
        "`--prune` deletes objects that exist, match `owns` and are not declared by any spec. Without the flag, topo
keeps and lists them.",
        &["owns", "unmanaged", "delete", "protect"],
    ),
    concept(
        "recreate",
        &[],
        "`-/+`: the object is deleted and declared again, with all its bindings, because a setting cannot change on an
existing object. `onConflict` or `--recreate` selects the method: `ifEmpty`, `migrate` or `discard`.",
        &["ifEmpty", "migrate", "discard", "bindings", "routing-gap", "consumer-disruption"],
    ),
    concept(
        "redeliver",
        &["republish"],
        "The strategy of a queue's retries. `ladder`: the broker delays a rejected message in tier queues. `redeliver`: a
quorum queue delivers it again itself, up to its delivery limit. `republish`: the worker publishes it to a tier queue.
`topo contract` prints what the worker must do.",
        &["ladder", "contract-change", "retry"],
    ),
    concept(
        "rename",
        &[],
        "A way to resolve a conflict: declare the object under another name, and delete the old one later.",
        &["conflict", "recreate"],
    ),
    concept(
        "retired",
        &[],
        "Tier queues and exchanges of retries that the spec no longer declares. New messages use the new retries at
once. Messages that still wait in an old tier return to the queue by themselves; topo deletes the tier when it is
empty.",
        &["ladder", "left"],
    ),
    concept(
        "rolled-back",
        &["taken-back"],
        "A step that was done and then reverted, because a recreate or a migration could not be finished. The object is
as it was before.",
        &["migrate", "not-attempted"],
    ),
    concept(
        "severity",
        &["error", "warning"],
        "The level of a lint finding. An error stops `topo validate`, a warning points to a probable mistake, and an
info is good to know. `--fail-on` sets the level that ends a run with exit code 1; `--lint RULE=LEVEL` changes the
level of a rule.",
        &["info", "lint"],
    ),
    concept(
        "stale",
        &[],
        "The broker no longer matches the saved plan: apply would now do something that is not in the plan. Apply
changes nothing (exit code 5) and lists the differences. Steps that are already done do not make a plan stale.",
        &["fingerprint"],
    ),
    concept(
        "tap",
        &[],
        "The exchange in front of a queue during a migration. Every binding of the queue leads to the tap, and the tap
leads to the queue that receives the messages at that moment.",
        &["migrate", "holding"],
    ),
    concept(
        "unchanged",
        &[],
        "The object itself does not change; only the bindings or retries below it do.",
        &["bind", "ladder"],
    ),
    concept(
        "unmanaged",
        &["undeclared"],
        "An object that exists and that no spec declares. If it matches `owns`, the plan lists it, and `--prune`
deletes it. topo leaves all others alone.",
        &["owns", "prune", "ignore"],
    ),
    concept(
        "verified",
        &["read-back", "applied"],
        "After a complete run, topo reads the broker again and compares it with the spec. The report confirms that the
broker matches the spec only after this check.",
        &["done"],
    ),
];

/// Returns the concept of a word. Case does not matter, and blanks match hyphens.
pub fn concept_of(word: &str) -> Option<&'static Concept> {
    let word = word.to_lowercase().replace(' ', "-");
    CONCEPTS.iter().find(|concept| concept.words().any(|known| known.to_lowercase() == word))
}

impl Concept {
    /// All words that find this concept.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.word).chain(self.also.iter().copied())
    }

    /// The page, in Markdown.
    pub fn page(&self) -> String {
        format!("# {}\n\n{}", self.word, self.body())
    }

    /// The page without its heading.
    pub fn body(&self) -> String {
        let text = self.text.replace('\n', " ");
        let also: Vec<String> = self.also.iter().map(|word| format!("`{word}`")).collect();
        let also = if also.is_empty() { String::new() } else { format!("\n\nAlso: {}.", also.join(", ")) };
        let see: Vec<String> = self.see.iter().map(|word| format!("`topo explain {word}`")).collect();
        format!("{text}{also}\n\nSee also: {}.\n", see.join(", "))
    }
}

/// Returns all concepts as one Markdown page.
pub fn reference() -> String {
    let mut page = "\
# Words of plans and reports

The words that topo prints in plans and reports. `topo explain WORD` prints the same; it also explains each lint rule, each hazard,
each key of a spec and each error. This page is generated from the same table.
"
    .to_owned();
    for concept in CONCEPTS {
        let _ = write!(page, "\n## {}\n\n{}", concept.word, concept.body());
    }
    page
}

#[cfg(test)]
mod tests;
