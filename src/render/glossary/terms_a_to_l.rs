//! The terms of the glossary from `406` to `l`.

use super::{Term, term};

pub(super) const TERMS: &[Term] = &[
    term(
        "406",
        &["precondition_failed", "inequivalent"],
        "The AMQP error PRECONDITION_FAILED: an application declares a queue or an exchange with arguments that
differ from those of the existing object. The broker closes the channel of the application. In a plan, the label
`broker` shows the error message of the broker, and `after` shows the one that applications get after recreation.",
        &["conflict", "after"],
    ),
    term(
        "acked",
        &[],
        "In `topo explain QUEUE`: the worker calls basic.ack, and the broker deletes the message. A message that
leaves the queue in any other way was not processed.",
        &["lifecycle", "contract"],
    ),
    term(
        "after",
        &[],
        "A label of a conflict: the error that applications get after recreation if they still declare the old
arguments. Deploy them with the new arguments at the same time.",
        &["406", "recreate"],
    ),
    term(
        "alternate",
        &["alternate-exchange"],
        "In a graph, the arrow from an exchange to its alternate exchange. The alternate exchange receives the
messages that match no binding of the exchange.",
        &["alternateExchange", "graph"],
    ),
    term(
        "attempt",
        &["attempts", "a-retry"],
        "One delivery of a message to a worker. In a contract, the label `attempt` is the header with the number of
the attempt. The label `a retry` is the exchange and the routing key of a retry.",
        &["contract", "deliveries", "ladder"],
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
        &["binding"],
        "The bindings of an object that is recreated: those that the spec declares, and those that it does not. topo
restores all of them.",
        &["bind", "recreate", "unmanaged"],
    ),
    term(
        "blocked",
        &["blocker"],
        "Apply refuses a blocked plan (exit code 3) before the first change. A plan is blocked by a conflict without
a resolution (resolve it by an edit or `--recreate`), by a hazard (allow it by `--allow`), or by another blocker,
such as a missing external object. The last line of the plan is the command with all missing flags.",
        &["conflict", "hazard"],
    ),
    term(
        "broker",
        &[],
        "A label of a conflict: the error that the broker returns to an application that declares the object as in
the spec, while the existing object has different arguments.",
        &["406", "conflict"],
    ),
    term(
        "change",
        &["change-in-place", "changed"],
        "`~`: the object exists, and apply updates it in place, without deleting it. Policies and the settings of a
vhost change in place. Arguments of queues and exchanges never do.",
        &["conflict", "recreate"],
    ),
    term(
        "conflict",
        &[],
        "`!`: the current object differs from the spec in a setting that RabbitMQ never changes on an existing
object, and the spec does not define a resolution. Below it, the plan lists the ways to resolve it: keep the current
value in the spec, set the value by a policy, or recreate the object.",
        &["406", "drift", "keep", "policy", "recreate", "onConflict"],
    ),
    term(
        "contract",
        &[],
        "The duties of a worker: the methods to call on success and on failure, the number of retries, the way to
count attempts, and the headers to write. `topo contract` prints it for each queue with retries or dead-lettering.",
        &["lifecycle", "ladder", "contract-change"],
    ),
    term(
        "crashed",
        &[],
        "In `topo explain QUEUE`: the channel or the connection of the worker closes before the worker acknowledges
the message. The broker requeues the message; a quorum queue counts the delivery towards its delivery limit.",
        &["lifecycle", "requeued", "deliveryLimit"],
    ),
    term(
        "create",
        &["created"],
        "`+`: the object does not exist, and apply creates it.",
        &["change", "recreate", "delete"],
    ),
    term(
        "current",
        &["desired"],
        "The current topology is what exists on the broker. The desired topology is what the spec declares. A plan
lists the changes that turn the current topology into the desired one.",
        &["topology", "change", "conflict"],
    ),
    term(
        "dead-letter",
        &["dead-lettered", "dead-letter-queue", "dead-letter-exchange", "dead-letters", "dead-lettered-to"],
        "The broker dead-letters a message that is rejected without a requeue, expires, exceeds the delivery limit or
overflows the queue: it publishes the message to the dead-letter exchange of the queue. A dead-letter queue stores
these messages until a person or a program handles them.",
        &["deadLetter", "deadLetterQueues", "ladder", "no-dead-letter"],
    ),
    term(
        "default",
        &[],
        "A label of a conflict: the result of a declaration without `x-queue-type`. The broker uses the default queue
type of the vhost, and compares it with the type of the existing queue.",
        &["406", "defaultQueueType"],
    ),
    term(
        "deferred",
        &[],
        "A step that was planned but not done, because retired tiers still hold messages. The messages return to
their queue automatically, and the next apply completes the step. This is not a failure.",
        &["retired", "ladder"],
    ),
    term(
        "delete",
        &["deleted"],
        "`-`: apply deletes the object, because it is listed under `removed`, because of `--prune`, or because its
retries are retired. If a queue was empty in the plan, apply deletes it only if it is still empty.",
        &["prune", "retired", "removed", "message-loss"],
    ),
    term(
        "deliveries",
        &[],
        "The number of times that a message is delivered to a worker before the worker gives it up: the first attempt
and all retries.",
        &["attempt", "contract", "maxRetries"],
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
        &["not-attempted", "deferred", "verified"],
    ),
    term(
        "drift",
        &[],
        "A setting differs, but the broker neither compares nor changes it: redeclaring succeeds, and the old value
remains. Drift counts as a conflict, because only recreation changes the setting.",
        &["conflict", "recreate"],
    ),
    term(
        "dropped",
        &[],
        "The broker deletes a message that was not processed and that it cannot dead-letter: the queue has no
dead-letter exchange, or that exchange routes the message to no queue.",
        &["dead-letter", "no-dead-letter", "lifecycle"],
    ),
    term(
        "effective",
        &["effective-setting"],
        "An effective setting is the value that the broker uses after it has combined arguments, policies and
operator policies. It can differ from the value in the spec.",
        &["origin", "policy", "no-effect-setting"],
    ),
    term(
        "exit-code",
        &["exit"],
        "0 success, 1 failed before any change, 2 changes (`--detailed-exitcode`), 3 blocked, 4 partially applied, 5
stale, 6 locked, 64 usage error, 65 invalid spec, 130 interrupted before any change. `topo --help` lists them.",
        &["blocked", "stale", "lock"],
    ),
    term(
        "expired",
        &["too-old"],
        "In `topo explain QUEUE`: the message is older than the TTL of the queue or its own `expiration`, and leaves
the queue. A stream deletes messages that are too old with their segment.",
        &["lifecycle", "messageTtl", "maxAge"],
    ),
    term(
        "finding",
        &[],
        "A result of a lint rule. A finding is about the spec and needs no broker, whereas a hazard is a risk of
applying a step to this broker now.",
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
        "free",
        &["locked"],
        "The states of a lock in the output of `topo lock`. An apply can start on a vhost whose lock is free; if the
lock is held, the apply waits, or exits with code 6.",
        &["lock"],
    ),
    term(
        "give-up",
        &["given-up"],
        "The worker stops retrying a message after its last attempt. In a contract, the label `give up` is the AMQP
method that the worker then calls. The message is dead-lettered, or dropped.",
        &["contract", "dead-letter", "dropped"],
    ),
    term(
        "graph",
        &[],
        "A drawing of the topology as Mermaid, DOT or SVG: `topo graph`. It highlights dead-lettering and retries.
With `--plan FILE`, it shows the changes of a saved plan.",
        &["topology", "lifecycle"],
    ),
    term(
        "hazard",
        &["allowed", "not-blocking"],
        "A risk of applying a step to this broker now, such as a loss of messages, with live numbers. Apply refuses a
plan with a hazard that is not allowed. `--allow HAZARD@ADDRESS:N` allows the hazard for one object, up to N
messages. `(allowed)` marks a hazard that is allowed, and `(not blocking)` marks one that does not block the plan.",
        &["blocked", "message-loss", "routing-gap"],
    ),
    term(
        "headers",
        &[],
        "A label of a contract: the headers of a dead-lettered message. They contain the queue that dead-lettered the
message and the reason. A replay removes them.",
        &["contract", "x-death"],
    ),
    term(
        "holding",
        &["hold", "drained", "shield", "probe"],
        "The two holding queues of a migration: `Q.topo.drained` receives the messages of the old queue, and
`Q.topo.hold` receives the messages that are published meanwhile. topo moves both into the new queue, oldest first,
and deletes them. The policy `Q.topo.shield` keeps other policies off them; `Q.topo.probe` tests whether the new
queue can be declared.",
        &["migrate", "tap"],
    ),
    term(
        "ifEmpty",
        &["refuse"],
        "A way to recreate a queue: only if it holds no messages. The broker checks this again when the queue is
deleted. A queue with messages stays, and the plan is blocked. The default is `refuse`: every conflict blocks the
plan.",
        &["discard", "migrate", "recreate"],
    ),
    term(
        "info",
        &["note"],
        "A useful fact about an object. It does not block the plan. It needs no flag and does not affect the exit
code. The lowest level of lint findings has the same name.",
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
        "All tiers of a queue, one for each retry. A message that fails waits in the next tier until its TTL expires,
and returns to the queue. After the last retry, it is dead-lettered. A plan shows the generated objects on one line;
`--show all` lists them.",
        &["tier", "redeliver", "retired", "retry"],
    ),
    term(
        "left-out",
        &["not-in-the-spec", "not-in-any-spec"],
        "Objects of a vhost that an exported spec does not contain: exclusive and server-named queues, users,
permissions, and objects that a spec cannot represent. `topo export` counts them in lines that begin with `not in the
spec`.",
        &["spec", "unmanaged"],
    ),
    term(
        "lifecycle",
        &[],
        "The path of a message from the publish to its end: attempts, delays, dead-lettering. `topo explain QUEUE`
draws it for a message that always fails, and lists all ways to leave the queue.",
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
        "While apply runs, it holds the queue `topo.lock` in the vhost as a lock, so only one apply runs per vhost.
The holder renews its lease of 60 s, so the lock of a killed run expires automatically. `topo lock` shows the holder,
`topo lock --break` deletes the lock, and `--lock-timeout` waits for it.",
        &["stale"],
    ),
];
