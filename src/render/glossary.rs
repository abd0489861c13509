//! The glossary: the terms of plans, reports and documentation that are not a lint rule, a hazard, a key of specs or an
//! error. One table for `topo explain WORD` and for `docs/glossary.md`.

use crate::lint::RULES;
use crate::plan::HazardKind;
use std::fmt::Write as _;

/// A term of the output or of the documentation.
#[derive(Debug)]
pub struct Term {
    /// The word as topo prints it, with hyphens for blanks.
    pub word: &'static str,
    /// Synonyms, and words that the same entry explains.
    also: &'static [&'static str],
    /// The meaning, in lines of plain text.
    text: &'static str,
    /// Related words that have entries of their own.
    see: &'static [&'static str],
}

const fn term(
    word: &'static str,
    also: &'static [&'static str],
    text: &'static str,
    see: &'static [&'static str],
) -> Term {
    Term { word, also, text, see }
}

/// All terms, sorted by word.
pub const TERMS: &[Term] = &[
    term(
        "406",
        &["precondition_failed", "inequivalent"],
        "The AMQP error PRECONDITION_FAILED: an application declares a queue or an exchange with other arguments than
the existing object has. The broker closes the channel of the application. In a plan, the label `broker` shows the
error message of the broker, and `after` shows the one that applications get once the object has been recreated.",
        &["conflict", "after"],
    ),
    term(
        "after",
        &[],
        "A label of a conflict: the error that applications get after a recreate if they still declare the old arguments.
Deploy them with the new arguments at the same time.",
        &["406", "recreate"],
    ),
    term(
        "backup",
        &[],
        "Before apply deletes, changes or recreates objects, it writes them to a file that `rabbitmqadmin definitions
import` reads. The file contains no messages. `--backup FILE` sets the file, `--no-backup` disables the backup.",
        &["recreate", "delete"],
    ),
    term(
        "bind",
        &["unbind"],
        "`+ bind SOURCE ─ KEY →` adds a binding to the object above it, and `- unbind` removes one. When a binding
changes, topo adds the new one before it removes the old one, so that no message is lost. The summary counts bindings
separately from objects.",
        &["bindings", "routing-gap"],
    ),
    term(
        "bindings",
        &[],
        "The bindings of an object that is recreated: those that the spec declares, and those that it does not. topo
restores all of them.",
        &["bind", "recreate", "unmanaged"],
    ),
    term(
        "blocked",
        &["blocker"],
        "Apply refuses a blocked plan (exit code 3) before the first change. A plan is blocked by a conflict without a
resolution, which an edit or `--recreate` resolves, or by a hazard, which `--allow` allows. The last line of the plan
is the command with all missing flags.",
        &["conflict", "hazard"],
    ),
    term(
        "broker",
        &[],
        "A label of a conflict: the error that the broker returns to an application that declares the object as in the spec,
while the existing object has other arguments.",
        &["406", "conflict"],
    ),
    term(
        "change",
        &["change-in-place"],
        "`~`: the object exists, and apply updates it in place, without deleting it: a policy, or the settings of a
vhost. Arguments of queues and exchanges never change in place.",
        &["conflict", "recreate"],
    ),
    term(
        "conflict",
        &[],
        "`!`: the current object differs from the spec in a setting that RabbitMQ never changes on an existing object,
and the spec does not define a resolution. Below it, the plan lists the ways to resolve it: keep the current value in
the spec, set the value by a policy, or recreate the object.",
        &["406", "drift", "keep", "policy", "recreate", "onConflict"],
    ),
    term(
        "contract",
        &[],
        "The duties of a worker: what to call on success and on failure, how often to retry, how to count attempts, and which
headers to write. `topo contract` prints it for each queue with retries or dead-lettering.",
        &["lifecycle", "ladder", "contract-change"],
    ),
    term(
        "create",
        &[],
        "`+`: the object does not exist, and apply creates it.",
        &["change", "recreate", "delete"],
    ),
    term(
        "current",
        &["desired"],
        "The current topology is what exists on the broker. The desired topology is what the spec declares. A plan lists the
changes that turn the current topology into the desired one.",
        &["topology", "change", "conflict"],
    ),
    term(
        "dead-letter",
        &["dead-lettered", "dead-letter-queue", "dead-letter-exchange"],
        "The broker dead-letters a message that is rejected without a requeue, expires, exceeds the delivery limit or overflows
the queue: it publishes the message to the dead-letter exchange of the queue. A dead-letter queue stores these
messages until a person or a program handles them.",
        &["deadLetter", "deadLetterQueues", "ladder", "no-dead-letter"],
    ),
    term(
        "default",
        &[],
        "A label of a conflict: the result of a declare without `x-queue-type`. The broker uses the default queue type of the
vhost, and compares it with the type of the existing queue.",
        &["406", "defaultQueueType"],
    ),
    term(
        "delete",
        &[],
        "`-`: apply deletes the object, because it is listed under `removed`, because of `--prune`, or because its
retries are retired. If a queue was empty in the plan, apply deletes it only if it is still empty.",
        &["prune", "retired", "removed", "message-loss"],
    ),
    term(
        "discard",
        &[],
        "A way to recreate a queue: delete it with its messages and declare it again. This is a `message-loss` hazard
unless the queue is empty.",
        &["ifEmpty", "migrate", "recreate", "message-loss"],
    ),
    term(
        "done",
        &["failed"],
        "The result of a step in a report: `done` if the broker accepted the request, `failed` if it did not. After a
complete run, topo reads the broker again to verify the result.",
        &["not-attempted", "left", "verified"],
    ),
    term(
        "drift",
        &[],
        "A setting differs, but the broker neither compares nor changes it: a declare succeeds, and the old value
remains. Drift counts as a conflict, because only a recreate changes the setting.",
        &["conflict", "recreate"],
    ),
    term(
        "effective",
        &["effective-setting"],
        "An effective setting is the value that the broker uses after it has combined arguments, policies and operator
policies. It can differ from the value in the spec.",
        &["origin", "policy", "no-effect-setting"],
    ),
    term(
        "exit-code",
        &["exit"],
        "0 done, 1 failed before any change, 2 changes (`--detailed-exitcode`), 3 blocked, 4 partly done, 5 stale, 6
locked, 64 wrong usage, 65 invalid spec, 130 interrupted before any change. `topo --help` lists them.",
        &["blocked", "stale", "lock"],
    ),
    term(
        "finding",
        &[],
        "A result of a lint rule. A finding is about the spec and needs no broker, whereas a hazard is a risk of applying a
step to this broker now.",
        &["severity", "hazard", "lint"],
    ),
    term(
        "fingerprint",
        &[],
        "A hash of the changes and steps of a plan, and of the cluster that it was made for. Message counts are not
part of it. `topo apply --expect FINGERPRINT` applies only a plan with that fingerprint. It detects edits and
accidents, but it is not a signature.",
        &["stale"],
    ),
    term(
        "graph",
        &[],
        "A drawing of the topology as Mermaid, DOT or SVG: `topo graph`. It highlights dead-lettering and retries. With `--plan
FILE`, it shows the changes of a saved plan.",
        &["topology", "lifecycle"],
    ),
    term(
        "hazard",
        &["allowed", "only-shown"],
        "A risk of applying a step to this broker now, such as a loss of messages, with live numbers. Apply refuses a
plan with a hazard that is not allowed. `--allow HAZARD@ADDRESS:N` allows the hazard for one object, up to N messages.
`(allowed)` marks a hazard that is allowed, and `(only shown)` marks one that blocks nothing.",
        &["blocked", "message-loss", "routing-gap"],
    ),
    term(
        "holding",
        &["hold", "drained", "shield", "probe"],
        "The two holding queues of a migration: `Q.topo.drained` receives the messages of the old queue, and
`Q.topo.hold` receives the messages that are published meanwhile. topo moves both into the new queue, oldest first, and
deletes them. The policy `Q.topo.shield` keeps other policies off them; `Q.topo.probe` tests whether the new queue can
be declared.",
        &["migrate", "tap"],
    ),
    term(
        "ifEmpty",
        &["refuse"],
        "A way to recreate a queue: only if it holds no messages. The broker checks this again when the queue is
deleted. A queue with messages stays, and the plan is blocked. The default is `refuse`: every conflict blocks the plan.",
        &["discard", "migrate", "recreate"],
    ),
    term(
        "info",
        &["note"],
        "A fact about an object that is useful to know and blocks nothing. It needs no flag and does not affect the
exit code. The lowest level of lint findings has the same name.",
        &["hazard", "severity"],
    ),
    term(
        "interrupted",
        &["resume"],
        "A migration that an earlier run started and did not complete, because it was killed, interrupted or lost its
connection to the broker. The messages are in the queue or in its holding queues, which still receive what is
published. The next apply resumes the migration; `--abort ADDRESS` rolls it back while the old queue exists. While
another apply holds the lock, wait for that apply.",
        &["migrate", "holding", "lock"],
    ),
    term(
        "keep",
        &[],
        "A way to resolve a conflict: write the value of the current object into the spec. Nothing changes on the
broker. The plan prints the YAML to write.",
        &["conflict", "policy", "recreate"],
    ),
    term(
        "ladder",
        &["retry-ladder"],
        "All tiers of a queue, one for each retry. A message that fails waits in the next tier until its TTL expires, and
returns to the queue. After the last retry, it is dead-lettered. A plan shows the generated objects on one line;
`--show all` lists them.",
        &["tier", "redeliver", "retired", "retry"],
    ),
    term(
        "left",
        &[],
        "A step that was planned but not done, because retired tiers still hold messages. The messages return to their
queue by themselves, and the next apply finishes the step. This is not a failure.",
        &["retired", "ladder"],
    ),
    term(
        "lifecycle",
        &[],
        "The path of a message from the publish to its end: attempts, delays, dead-lettering. `topo explain QUEUE` draws it for
a message that always fails, and lists all ways to leave the queue.",
        &["contract", "ladder", "dead-letter"],
    ),
    term(
        "live",
        &[],
        "The messages and consumers of the current queue when the plan was made, with the addresses of the consumers.
If the broker does not report a number, it counts as \"some\".",
        &["message-loss", "consumer-disruption"],
    ),
    term(
        "lock",
        &["lease"],
        "While apply runs, it holds the queue `topo.lock` in the vhost as a lock, so only one apply runs per vhost. The
holder renews its lease of 60 s, so the lock of a killed run expires. `topo lock` shows the holder, `topo lock --break`
deletes the lock, and `--lock-timeout` waits for it.",
        &["stale"],
    ),
    term(
        "managed",
        &[],
        "An object that a spec declares, or that its `owns` matches. topo creates and changes only declared objects.",
        &["unmanaged", "owns", "prune"],
    ),
    term(
        "migrate",
        &["migrated", "migrating", "migration", "swap"],
        "A way to recreate a queue without losing its messages, while publishers and consumers work. topo holds new messages,
drains the old queue, swaps it for the new one, and returns all messages, oldest first. The next apply finishes an
interrupted migration.",
        &["holding", "interrupted", "tap", "recreate", "duplicates", "reorder"],
    ),
    term(
        "not-attempted",
        &[],
        "A step that did not start, because another step failed or the run was interrupted. Run the same command again
to continue there.",
        &["done", "rolled-back"],
    ),
    term(
        "object",
        &["kind", "address"],
        "A queue, an exchange, a policy or a vhost; this is its kind. An address identifies an object, for example
`queues/shop/orders` for queue `orders` of vhost `shop`. Bindings are counted separately.",
        &["topology", "bind", "managed"],
    ),
    term(
        "origin",
        &[],
        "Where a setting comes from: a line of the spec, a default of the spec, a policy, or a default of the broker. `topo
explain QUEUE` lists the settings of a queue with their origins.",
        &["effective", "lifecycle"],
    ),
    term(
        "policy",
        &[],
        "A way to resolve a conflict: set the value by a policy, which applies to the existing queue. This works if
RabbitMQ has a policy key for the setting and no argument of the queue overrides it. The plan lists the settings that
it resolves.",
        &["conflict", "keep", "policy-shift"],
    ),
    term(
        "prune",
        &[],
        "`--prune` deletes objects that exist, match `owns` and are not declared by any spec. Without the flag, topo
keeps and lists them.",
        &["owns", "unmanaged", "delete", "protect"],
    ),
    term(
        "recreate",
        &[],
        "`-/+`: the object is deleted and declared again, with all its bindings, because a setting cannot change on an
existing object. `onConflict` or `--recreate` selects the method: `ifEmpty`, `migrate` or `discard`.",
        &["ifEmpty", "migrate", "discard", "bindings", "routing-gap", "consumer-disruption"],
    ),
    term(
        "redeliver",
        &["republish", "strategy"],
        "A strategy of retries. `ladder`: the broker delays a rejected message in tier queues. `redeliver`: a quorum queue
delivers it again itself, up to its delivery limit. `republish`: the worker publishes it to a tier queue. `delayed`: a
quorum queue of RabbitMQ 4.3 delays it itself. `topo contract` prints what the worker must do.",
        &["ladder", "contract-change", "retry"],
    ),
    term(
        "rename",
        &[],
        "A way to resolve a conflict: declare the object under another name, and delete the old one later.",
        &["conflict", "recreate"],
    ),
    term(
        "resolution",
        &[],
        "A way to resolve a conflict: keep the current value, set the value by a policy, use another name, or recreate the
object. The plan lists the resolutions below the conflict.",
        &["conflict", "keep", "policy", "rename", "recreate"],
    ),
    term(
        "retired",
        &[],
        "Tier queues and exchanges of retries that the spec no longer declares. New messages use the new retries at
once. Messages that still wait in an old tier return to the queue by themselves; topo deletes the tier when it is
empty.",
        &["ladder", "left"],
    ),
    term(
        "rolled-back",
        &["roll-back", "rollback"],
        "A step that was done and then reverted, because a recreate or a migration could not be finished. The object is
as it was before.",
        &["migrate", "not-attempted"],
    ),
    term(
        "severity",
        &["error", "warning"],
        "The level of a lint finding. An error stops `topo validate`, a warning points to a probable mistake, and an
info is good to know. `--fail-on` sets the level that ends a run with exit code 1; `--lint RULE=LEVEL` changes the
level of a rule.",
        &["info", "lint"],
    ),
    term(
        "spec",
        &[],
        "The YAML files that declare the topology of a vhost. Each document declares objects of one vhost; topo merges the
documents of the same vhost.",
        &["topology", "managed", "vhost"],
    ),
    term(
        "stale",
        &[],
        "The broker no longer matches the saved plan: apply would now do something that is not in the plan. Apply
changes nothing (exit code 5) and lists the differences. Steps that are already done do not make a plan stale.",
        &["fingerprint"],
    ),
    term(
        "step",
        &["action"],
        "One operation of a plan, such as one request to the broker or one transfer of messages. `topo apply` executes the
steps in order and reports each one.",
        &["change", "done", "not-attempted"],
    ),
    term(
        "tap",
        &[],
        "The exchange in front of a queue during a migration. Every binding of the queue leads to the tap, and the tap
leads to the queue that receives the messages at that moment.",
        &["migrate", "holding"],
    ),
    term(
        "tier",
        &["delayed-retry-queue"],
        "A delayed retry queue. A message waits in it until its TTL expires, and the broker then returns the message to the
main queue. The name of a tier contains its delay: `orders.retry.2.30s`.",
        &["ladder", "retired"],
    ),
    term(
        "topology",
        &[],
        "The objects of a vhost as data: exchanges, queues, bindings and policies. The spec declares the desired topology, and
the broker holds the current one.",
        &["spec", "current", "object"],
    ),
    term(
        "transport",
        &["amqp", "shovel"],
        "The way in which a migration moves messages. With `amqp`, topo consumes and publishes them itself. With `shovel`, a
dynamic shovel on the broker moves them. `--transport` selects the transport; the default is AMQP, if the port is
reachable.",
        &["migrate", "duplicates"],
    ),
    term(
        "unchanged",
        &[],
        "The object itself does not change; only the bindings or retries below it do.",
        &["bind", "ladder"],
    ),
    term(
        "unmanaged",
        &[],
        "An object that exists and that no spec declares. If it matches `owns`, the plan lists it, and `--prune`
deletes it. topo leaves all others alone.",
        &["owns", "prune", "ignore"],
    ),
    term(
        "unrouted-window",
        &[],
        "The time during which messages that are published to a queue reach no queue, for example while the queue is recreated.
The broker drops such messages, or returns them if they are mandatory.",
        &["routing-gap", "recreate", "migrate"],
    ),
    term(
        "verified",
        &["applied"],
        "After a complete run, topo reads the broker again and compares it with the spec. The report confirms that the
broker matches the spec only after this check.",
        &["done"],
    ),
];

/// Returns the entry of a word. Case does not matter, and blanks match hyphens.
pub fn term_of(word: &str) -> Option<&'static Term> {
    let word = word.to_lowercase().replace(' ', "-");
    TERMS.iter().find(|term| term.words().any(|known| known.to_lowercase() == word))
}

impl Term {
    /// All words that find this entry.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.word).chain(self.also.iter().copied())
    }

    /// The page, in Markdown.
    pub fn page(&self) -> String {
        format!("# {}\n\n{}", self.word, self.body())
    }

    /// The page without its heading.
    pub fn body(&self) -> String {
        let see: Vec<String> = self.see.iter().map(|word| format!("`topo explain {word}`")).collect();
        format!("{}\n\nSee also: {}.\n", self.paragraphs(), see.join(", "))
    }

    /// The meaning, then the other words of the entry.
    fn paragraphs(&self) -> String {
        let text = self.text.replace('\n', " ");
        let also: Vec<String> = self.also.iter().map(|word| format!("`{word}`")).collect();
        if also.is_empty() { text } else { format!("{text}\n\nAlso: {}.", also.join(", ")) }
    }
}

/// Returns the glossary as one Markdown page.
pub fn reference() -> String {
    let mut page = "\
# Glossary

On this page you can look up the terms of plans, reports and this documentation. `topo explain WORD` prints the same entries. It
also explains each lint rule, hazard, key of a spec and error. This page is generated.
"
    .to_owned();
    for term in TERMS {
        let see: Vec<String> = term.see.iter().map(|word| link(word)).collect();
        let _ = write!(page, "\n## {}\n\n{}\n\nSee also: {}.\n", term.word, term.paragraphs(), see.join(", "));
    }
    page
}

/// A reference of the Markdown page to another entry, or to the page of a rule, a hazard or a key.
fn link(word: &str) -> String {
    if TERMS.iter().any(|term| term.word == word) {
        return format!("[{word}](#{})", word.to_lowercase());
    }
    if let Some(rule) = RULES.iter().find(|rule| rule.name == word) {
        return format!("[{word}](../src/lint/rules/{}.md)", rule.name.replace('-', "_"));
    }
    let page = if word.parse::<HazardKind>().is_ok() { "reference.md#hazards" } else { "spec.md#keys" };
    format!("[{word}]({page})")
}

#[cfg(test)]
mod tests;
