//! The words of plans and reports that are neither a lint rule, a hazard, a key of specs nor an error: one table, for
//! `topo explain WORD` and for `docs/words.md`.

use std::fmt::Write as _;

/// A word of the output.
#[derive(Debug)]
pub struct Concept {
    /// As it is printed; blanks are hyphens.
    pub word: &'static str,
    /// Other words for it.
    also: &'static [&'static str],
    /// Its meaning, in lines of plain text.
    text: &'static str,
    /// Words with entries of their own.
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

/// All of them, by name.
pub const CONCEPTS: &[Concept] = &[
    concept(
        "406",
        &["precondition_failed", "inequivalent"],
        "The AMQP error PRECONDITION_FAILED: an application declares a queue or an exchange with other arguments than the
existing object has. The broker closes the channel of the application. A plan prints the sentence of the broker behind
the label `broker`, and `after` prints the one that applies once the object has been recreated.",
        &["conflict", "after"],
    ),
    concept(
        "after",
        &[],
        "The answer to applications after a recreate: those that still declare the object with its old arguments are refused
with 406. Deploy them with the new arguments at the same time.",
        &["406", "recreate"],
    ),
    concept(
        "backup",
        &[],
        "Before apply deletes, changes or recreates an object, it writes the current object to a file that
`rabbitmqadmin definitions import` reads. Messages are not part of it. `--backup FILE` names the file, `--no-backup`
disables it.",
        &["recreate", "delete"],
    ),
    concept(
        "bind",
        &["unbind"],
        "`+ bind SOURCE ─ KEY →` adds a binding to the object above it, and `- unbind` removes one. A changed binding is
added before the old one is removed, so that no message is lost in between. The summary counts both beside the objects.",
        &["bindings", "routing-gap"],
    ),
    concept(
        "bindings",
        &[],
        "The bindings of an object that is recreated: those that the spec declares, and those that others made. All of them
are restored.",
        &["bind", "recreate", "unmanaged"],
    ),
    concept(
        "blocked",
        &["blocker"],
        "A plan that apply refuses (exit code 3) before its first change: by a conflict without a resolution, which an edit
or `--recreate` resolves, or by a hazard, which `--allow` allows. The last line of the plan is the command with all
flags that are missing.",
        &["conflict", "hazard"],
    ),
    concept(
        "broker",
        &[],
        "The answer of the broker to an application that declares the object as the spec does, while the current object has
other arguments.",
        &["406", "conflict"],
    ),
    concept(
        "change",
        &["change-in-place"],
        "`~`: the object exists, and a request changes it while it is used: a policy, the settings of a vhost. Arguments of
queues and exchanges never change in place.",
        &["conflict", "recreate"],
    ),
    concept(
        "conflict",
        &[],
        "`!`: the current object differs from the spec in a setting that RabbitMQ never changes on an existing object, and
nothing says what to do about it. Below it, the plan lists the ways to resolve it: keep the current value in the spec,
set it by a policy, or recreate the object.",
        &["406", "drift", "keep", "policy", "recreate", "onConflict"],
    ),
    concept(
        "create",
        &[],
        "`+`: the object does not exist, and apply creates it.",
        &["change", "recreate", "delete"],
    ),
    concept(
        "cut-short",
        &[],
        "A migration that ended before it was finished, because the run was killed, interrupted or lost the broker. The
messages are in the queue or in its holding queues, and publishes keep arriving there. The next apply finishes the
migration; `--abort` undoes it while the old queue exists.",
        &["unfinished", "migrate", "holding"],
    ),
    concept(
        "default",
        &[],
        "The result of a declare without `x-queue-type`: the broker fills in the default queue type of the vhost, which
is then compared with the type of the existing queue.",
        &["406", "defaultQueueType"],
    ),
    concept(
        "delete",
        &[],
        "`-`: apply deletes the object, because it is listed under `removed`, because of `--prune`, or because its retries
are retired. A queue that was empty in the plan is deleted only if it is still empty.",
        &["prune", "retired", "removed", "message-loss"],
    ),
    concept(
        "discard",
        &[],
        "A way to recreate a queue: delete it with its messages and declare it again. It is a `message-loss` hazard unless
the queue is empty.",
        &["ifEmpty", "migrate", "recreate", "message-loss"],
    ),
    concept(
        "done",
        &["failed"],
        "Behind a step of a report: the broker answered that it is done, or refused it. After a complete run topo reads the
broker again, because an answer alone proves nothing.",
        &["not-attempted", "left", "read-back"],
    ),
    concept(
        "drift",
        &[],
        "A setting differs that the broker neither compares nor changes: it answers a declare with success and keeps the old
value. It counts as a conflict, because only a recreate changes it.",
        &["conflict", "recreate"],
    ),
    concept(
        "exit-code",
        &["exit"],
        "0 done, 1 failed before any change, 2 changes (`--detailed-exitcode`), 3 blocked, 4 partly done, 5 stale, 6 locked,
64 wrong usage, 65 wrong spec, 130 interrupted before any change. `topo --help` lists them.",
        &["blocked", "stale", "lock"],
    ),
    concept(
        "fingerprint",
        &[],
        "A hash of all changes and steps of a plan and of the cluster that it was made for; not of message counts.
`topo apply --expect FINGERPRINT` applies only a plan with that fingerprint. It detects edits and accidents, but it is
no signature.",
        &["stale"],
    ),
    concept(
        "hazard",
        &["allowed", "only-shown"],
        "A loss or a disturbance that a step can cause on this broker now, with the numbers of the broker. Apply refuses an
open hazard;
`--allow HAZARD@ADDRESS:N` allows it for one object, up to N messages. `(allowed)` is behind one that is allowed, and
`(only shown)` behind one that blocks nothing.",
        &["blocked", "message-loss", "routing-gap"],
    ),
    concept(
        "holding",
        &["hold", "drained", "shield", "probe"],
        "The two queues of a migration. `Q.topo.drained` takes the messages that the old queue holds; `Q.topo.hold` takes
what is published meanwhile. Both are emptied into the new queue, oldest first, and deleted. The policy `Q.topo.shield`
keeps other policies off them, and `Q.topo.probe` tests whether the new queue can be declared.",
        &["migrate", "tap"],
    ),
    concept(
        "ifEmpty",
        &["refuse"],
        "A way to recreate a queue: only if it holds no message, checked again by the broker when it is deleted. A queue with
messages stays, and the plan is blocked. Without any way (`refuse`, the default), a conflict blocks the plan.",
        &["discard", "migrate", "recreate"],
    ),
    concept(
        "info",
        &["note"],
        "A fact about an object that is worth knowing and blocks nothing: it needs no flag, and no exit code tells of it.
A finding of a lint rule with that meaning has the same name.",
        &["hazard", "severity"],
    ),
    concept(
        "keep",
        &[],
        "A way to resolve a conflict: write the value of the current object into the spec. Nothing changes on the broker. The
YAML below it is what to write.",
        &["conflict", "policy", "recreate"],
    ),
    concept(
        "ladder",
        &["tier", "retry-ladder"],
        "Delayed retries of a queue as a row of tier queues, one for each delay: a message that fails waits in the next tier
until its TTL ends, and comes back to the queue. After the last retry it goes to the dead-letter queue. A plan shows the
generated objects as one line; `--show all` lists them.",
        &["redeliver", "republish", "retired", "retry"],
    ),
    concept(
        "left",
        &[],
        "A step that was planned and not done, because tiers that are retired still hold messages. They come back by
themselves, and the next apply finishes the step. Not a failure.",
        &["retired", "ladder"],
    ),
    concept(
        "live",
        &[],
        "The messages and consumers of the current queue when the plan was made, with the addresses of the consumers. A
number that the broker does not give counts as \"some\".",
        &["message-loss", "consumer-disruption"],
    ),
    concept(
        "lock",
        &["lease"],
        "While apply runs, the queue `topo.lock` in the vhost is its lock: one apply a vhost. The holder renews its lease of
60 s, so the lock of a run that was killed ends by itself. `topo lock` shows the holder, `topo lock --break` deletes
the lock, and `--lock-timeout` waits for it.",
        &["stale"],
    ),
    concept(
        "migrate",
        &["migrated", "migration", "swap"],
        "A way to recreate a queue without losing its messages, while publishers and consumers work: hold what is published,
drain the old queue, declare the new one, and return all messages, oldest first. An interrupted migration is finished
by the next apply.",
        &["holding", "tap", "unfinished", "recreate", "duplicates", "reorder"],
    ),
    concept(
        "not-attempted",
        &[],
        "A step that was not begun, because another one failed or the run was interrupted. Running the same command again
continues there.",
        &["done", "taken-back"],
    ),
    concept(
        "policy",
        &[],
        "A way to resolve a conflict: set the value by a policy, which applies to the existing queue, where RabbitMQ has a
policy key for it and the argument of the queue does not override it. The plan says which settings it helps.",
        &["conflict", "keep", "policy-shift"],
    ),
    concept(
        "prune",
        &[],
        "`--prune` deletes objects that exist, match `owns` and are declared by no spec. Without the flag they stay, and the
plan lists them.",
        &["owns", "unmanaged", "delete", "protect"],
    ),
    concept(
        "read-back",
        &["applied"],
        "After a complete run topo reads the broker again and compares it with the spec. Only then does the report say that
the broker is as the spec says.",
        &["done"],
    ),
    concept(
        "recreate",
        &[],
        "`-/+`: the object is deleted and declared again, with all its bindings, because a setting cannot change on an
existing object. `onConflict` or `--recreate` says how: `ifEmpty`, `migrate` or `discard`.",
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
        "Tier queues and exchanges of retries that the spec no longer wants. New messages take the new way at once.
Messages that still wait in an old tier come back to the queue by themselves, and the tier is deleted when it is empty.",
        &["ladder", "left"],
    ),
    concept(
        "severity",
        &["error", "warning"],
        "How much a finding of a lint rule matters. An error stops `topo validate`; a warning is probably a mistake; an info
is good to know. `--fail-on` sets what ends a run with exit code 1, and `--lint RULE=LEVEL` gives a rule another level.",
        &["info", "lint"],
    ),
    concept(
        "stale",
        &[],
        "The broker no longer matches the saved plan: something would be done now that is not in it. Apply changes nothing
(exit code 5) and lists the differences. Steps that are done already do not make a plan stale.",
        &["fingerprint"],
    ),
    concept(
        "taken-back",
        &["undone"],
        "A step that was done and then reverted, because a recreate or a migration could not be finished. The object is as
it was before.",
        &["migrate", "not-attempted"],
    ),
    concept(
        "tap",
        &[],
        "The exchange that stands in front of a queue while it is migrated: every binding of the queue leads to it, and it
leads to the queue that takes the messages at that moment.",
        &["migrate", "holding"],
    ),
    concept(
        "unchanged",
        &[],
        "The object itself does not change; only the bindings or retries below it do.",
        &["bind", "ladder"],
    ),
    concept(
        "undeclared",
        &["unmanaged"],
        "An object that exists and that no spec declares. One that matches `owns` is listed in a plan, and `--prune` deletes
it; any other is left alone.",
        &["owns", "prune", "ignore"],
    ),
    concept(
        "unfinished",
        &[],
        "A migration that an earlier run began and did not finish. The next apply finishes it, or undoes it where it cannot
be finished; `--abort ADDRESS` undoes it. While another apply holds the lock, wait for that one.",
        &["cut-short", "migrate", "lock"],
    ),
];

/// The concept of a word, with blanks or hyphens, in any case.
pub fn concept_of(word: &str) -> Option<&'static Concept> {
    let word = word.to_lowercase().replace(' ', "-");
    CONCEPTS.iter().find(|concept| concept.words().any(|known| known.to_lowercase() == word))
}

impl Concept {
    /// All words that lead to it.
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

/// All of them as a page for people.
pub fn reference() -> String {
    let mut page = "\
# Words of plans and reports

The words that topo prints in plans and reports. `topo explain WORD` prints the same; it also explains each lint rule, each hazard,
each key of a spec and each error. This page is written from the table that the command reads.
"
    .to_owned();
    for concept in CONCEPTS {
        let _ = write!(page, "\n## {}\n\n{}", concept.word, concept.body());
    }
    page
}

#[cfg(test)]
mod tests;
