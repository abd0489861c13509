//! Lists the glossary terms from `406` to `l`.

use super::{Term, term};

pub(super) const TERMS: &[Term] = &[
    term(
        "406",
        &["precondition_failed", "inequivalent"],
        "The AMQP error PRECONDITION_FAILED: an application declares a queue or an exchange with arguments that
differ from the arguments of the existing object. The broker closes the application's channel. In a plan, the `broker`
label shows the broker's error message, and the `after` label shows the error that applications receive after the
recreation.",
        &["conflict", "after"],
    ),
    term(
        "acked",
        &[],
        "In `topo explain QUEUE`: the worker calls basic.ack, and the broker deletes the message. A message that
leaves the queue in any other way was not processed successfully.",
        &["lifecycle", "contract"],
    ),
    term(
        "after",
        &[],
        "A label in a conflict: the error that applications receive after the recreation if they still declare the old
arguments. Deploy the applications with the new arguments when you apply the plan.",
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
        "One delivery of a message to a worker. In a contract, the `attempt` label shows the header that contains the
attempt number. The `a retry` label shows the exchange and the routing key of a retried message.",
        &["contract", "deliveries", "ladder"],
    ),
    term(
        "backup",
        &[],
        "Before an apply deletes, changes or recreates objects, topo writes their definitions to a file that
`rabbitmqadmin definitions import` can import. The file contains no messages. `--backup FILE` sets the file, and
`--no-backup` disables the backup.",
        &["recreate", "delete"],
    ),
    term(
        "bind",
        &["unbind"],
        "`+ bind SOURCE ─ KEY →` adds a binding to the object above this line, and `- unbind` removes a binding. If a
plan does both, topo adds the new bindings first, so that no message is lost. topo removes an old binding only because
of `removed` or `--prune`. The summary counts bindings separately from objects.",
        &["bindings", "routing-gap"],
    ),
    term(
        "bindings",
        &["binding"],
        "A label in a conflict: the declared and unmanaged bindings of an object that is recreated. topo restores all
of these bindings.",
        &["bind", "recreate", "unmanaged"],
    ),
    term(
        "blocked",
        &["blocker"],
        "`topo apply` does not apply a blocked plan: it changes nothing and exits with code 3. Blockers are conflicts
(edit the spec or use `--recreate`), hazards (use `--allow`), and other problems, such as a missing external object. If
flags can resolve all blockers, the last line of the plan is a command with these flags.",
        &["conflict", "hazard"],
    ),
    term(
        "broker",
        &[],
        "A label in a conflict: the error that an application receives if it declares the object as specified while
the existing object has different arguments.",
        &["406", "conflict"],
    ),
    term(
        "change",
        &["change-in-place", "changed"],
        "`~`: the object exists, and `topo apply` updates it in place, without deleting it. Policies and vhost settings
change in place. The arguments of queues and exchanges never change in place.",
        &["conflict", "recreate"],
    ),
    term(
        "conflict",
        &[],
        "`!`: the current object differs from the spec in a setting that cannot change on an existing object, and
neither `onConflict` nor `--recreate` resolves the difference. Below the conflict, the plan lists the resolutions: keep
the current value in the spec, set the value with a policy, use a different name, or recreate the object.",
        &["406", "drift", "keep", "policy", "recreate", "onConflict"],
    ),
    term(
        "contract",
        &[],
        "What a worker must do: the AMQP methods to call on success and on failure, the number of retries, how to count
attempts, and the headers to write. `topo contract` prints the contract of each queue with retries or
dead-lettering.",
        &["lifecycle", "ladder", "contract-change"],
    ),
    term(
        "crashed",
        &[],
        "In `topo explain QUEUE`: the channel or the connection of the worker closes before the worker acknowledges
the message. The broker requeues the message. A quorum queue counts the delivery toward its delivery limit.",
        &["lifecycle", "requeued", "deliveryLimit"],
    ),
    term(
        "create",
        &["created"],
        "`+`: the object does not exist, and `topo apply` creates it.",
        &["change", "recreate", "delete"],
    ),
    term(
        "current",
        &["desired"],
        "The current topology consists of the objects on the broker. The desired topology consists of the objects that
the spec declares. A plan lists the changes from the current topology to the desired topology.",
        &["topology", "change", "conflict"],
    ),
    term(
        "dead-letter",
        &["dead-lettered", "dead-lettering", "dead-letter-queue", "dead-letter-exchange", "dead-letters", "dead-lettered-to"],
        "The broker dead-letters a message that is rejected without being requeued, expires, exceeds the delivery limit
or overflows the queue. It publishes the message to the queue's dead-letter exchange. Without a dead-letter routing key,
the broker also routes the message by the keys in its `CC` and `BCC` headers. A dead-letter queue stores dead-lettered
messages until a person or a program handles them.",
        &["deadLetter", "deadLetterQueues", "ladder", "no-dead-letter"],
    ),
    term(
        "declare",
        &["declaration"],
        "A label in a contract: the properties with which a worker must declare its queue. If the properties differ, the
broker refuses the declaration with a 406 error. A passive declaration requires only the name of the queue.",
        &["contract", "406"],
    ),
    term(
        "default",
        &[],
        "A label in a conflict: the result of a declaration without `x-queue-type`. For such a declaration, the broker
compares the vhost's default queue type with the type of the existing queue.",
        &["406", "defaultQueueType"],
    ),
    term(
        "deferred",
        &[],
        "A step that was planned but not executed, because retired tiers still contain messages. The messages return to
their queue automatically, and the next apply executes the step. A deferred step is not a failure.",
        &["retired", "ladder"],
    ),
    term(
        "delete",
        &["deleted"],
        "`-`: `topo apply` deletes the object, for one of these reasons: the spec lists the object under `removed`,
`--prune` is set, the object belongs to retired retries, or the setting is unset. If a queue was empty when topo created
the plan, `topo apply` deletes the queue only if it is still empty.",
        &["prune", "retired", "unset", "removed", "message-loss"],
    ),
    term(
        "deliveries",
        &[],
        "The number of times that a message is delivered to a worker before the worker gives up: the first attempt
and all retries.",
        &["attempt", "contract", "maxRetries"],
    ),
    term(
        "discard",
        &[],
        "A way to recreate a queue: delete it with its messages and declare it again. Unless the queue is empty, this
causes a `message-loss` hazard.",
        &["ifEmpty", "migrate", "recreate", "message-loss"],
    ),
    term(
        "done",
        &["failed"],
        "The result of a step in a report: `done` if the step succeeded, otherwise `failed`. After a complete run,
topo reads the broker again to verify the result.",
        &["not-attempted", "deferred", "verified"],
    ),
    term(
        "drift",
        &[],
        "A difference in a setting that the broker neither compares nor changes: a declaration with the new value
succeeds, and the old value remains. topo treats drift as a conflict, because only recreation changes the setting.",
        &["conflict", "recreate"],
    ),
    term(
        "dropped",
        &[],
        "The broker deletes a message that was not processed, because the queue has no dead-letter exchange, or because
the dead-letter exchange routes the message to no queue.",
        &["dead-letter", "no-dead-letter", "lifecycle"],
    ),
    term(
        "effective",
        &["effective-setting"],
        "An effective setting is the value that the broker uses after it combines arguments, policies and operator
policies. An effective setting can differ from the value in the spec.",
        &["origin", "policy", "no-effect-setting"],
    ),
    term(
        "exit-code",
        &["exit"],
        "0 success, 1 failed before any change (or findings at or above `--fail-on`), 2 changes
(`--detailed-exitcode`), 3 blocked, 4 incomplete or not verified, 5 stale, 6 locked, 64 usage error, 65 invalid spec,
130 interrupted before any change. `topo status` exits with 2 for a warning, and with 3 for a critical state.
`topo --help` also lists these codes.",
        &["blocked", "stale", "lock"],
    ),
    term(
        "expired",
        &["too-old"],
        "In `topo explain QUEUE`: the message exceeds the TTL of the queue or its own `expiration`, and leaves the
queue. A stream deletes whole segments of messages that are too old.",
        &["lifecycle", "messageTtl", "maxAge"],
    ),
    term(
        "finding",
        &[],
        "A result of a lint rule. A finding concerns the spec, and `topo validate` reports findings without a broker.
A hazard, in contrast, is a risk of applying a step to a broker now.",
        &["severity", "hazard", "lint"],
    ),
    term(
        "fingerprint",
        &[],
        "A hash of a plan's changes, steps, options and cluster. The fingerprint does not include message counts.
`topo apply --expect FINGERPRINT` applies only a plan with this fingerprint. A fingerprint detects edits and accidents,
but is not a signature.",
        &["stale"],
    ),
    term(
        "free",
        &["locked"],
        "The states that `topo lock` prints. `free`: no apply holds the lock of the vhost, so an apply can start.
`locked`: an apply holds the lock. Another apply waits for up to `--lock-timeout`, and then exits with code 6.",
        &["lock"],
    ),
    term(
        "give-up",
        &["given-up"],
        "The worker stops retrying a message after its last attempt. In a contract, the `give up` label shows the
AMQP method that the worker calls in this case. The message is dead-lettered or dropped.",
        &["contract", "dead-letter", "dropped"],
    ),
    term(
        "graph",
        &[],
        "A drawing of the topology. `topo graph` writes graphs as Mermaid, DOT, SVG or JSON, and highlights retries and
dead-lettering. With `--plan FILE`, a graph shows the changes in a saved plan.",
        &["topology", "lifecycle"],
    ),
    term(
        "hazard",
        &["allowed", "not-blocking"],
        "A risk of applying a step to this broker now, such as message loss, with current counts. `topo apply` refuses
a plan with a blocking hazard. `--allow HAZARD@ADDRESS:N` allows the hazard for one object, up to N messages.
`(allowed)` marks an allowed hazard, and `(not blocking)` marks a hazard that does not block the plan.",
        &["blocked", "message-loss", "routing-gap"],
    ),
    term(
        "headers",
        &[],
        "A label in a contract: the headers of a dead-lettered message. The headers contain the reason for the
dead-lettering, and the queue that dead-lettered the message. A replay removes them.",
        &["contract", "x-death"],
    ),
    term(
        "holding",
        &["hold", "drained", "shield", "probe"],
        "The two queues that store messages while topo migrates queue `Q`. `Q.topo.drained` receives the messages
of the old queue, and `Q.topo.hold` receives new messages. topo returns all messages to the new queue, oldest first,
and deletes the holding queues. The `Q.topo.shield` policy prevents other policies from applying to the holding
queues. topo declares the `Q.topo.probe` queue to test whether the broker accepts the new declaration.",
        &["migrate", "tap"],
    ),
    term(
        "ifEmpty",
        &["refuse"],
        "A way to recreate a queue: topo recreates the queue only if it contains no messages. The broker checks this
condition again when it deletes the queue. If the queue contains messages, the plan is blocked. The default is
`refuse`: every conflict blocks the plan.",
        &["discard", "migrate", "recreate"],
    ),
    term(
        "info",
        &["note"],
        "A note about an object. A note does not block the plan, requires no flag, and does not affect the exit code.
The lowest severity of lint findings is also called `info`.",
        &["hazard", "severity"],
    ),
    term(
        "interrupted",
        &["resume"],
        "A migration that an earlier run did not complete, because the run was killed, was interrupted or lost its
connection to the broker. The messages are in the queue or in its holding queues, and new messages still arrive there.
The next apply resumes the migration. While the old queue exists, `--abort ADDRESS` rolls back the migration. If
another apply holds the lock, wait until that apply ends.",
        &["migrate", "holding", "lock"],
    ),
    term(
        "keep",
        &[],
        "A way to resolve a conflict: write the current value into the spec. Nothing changes on the
broker. The plan prints the YAML to write.",
        &["conflict", "policy", "recreate"],
    ),
    term(
        "ladder",
        &["retry-ladder"],
        "All tiers of a queue, one for each retry. A message that fails waits in the next tier until its TTL expires,
then returns to the queue. After the last retry, the message is dead-lettered. A plan shows the generated objects on
one line; `--show all` lists them.",
        &["tier", "redeliver", "retired", "retry"],
    ),
    term(
        "left-out",
        &["not-in-the-spec", "not-in-any-spec"],
        "Objects that an exported spec does not contain: exclusive and server-named queues, objects that topo cannot
represent, and the kinds of objects that `--with` does not list, such as users and permissions. `topo export` counts
these objects in lines that start with `not in the spec` or `not in any spec`.",
        &["spec", "unmanaged"],
    ),
    term(
        "lifecycle",
        &[],
        "The path of a message after it is published: attempts, delays and dead-lettering. `topo explain QUEUE` draws
the lifecycle of a message that always fails, and lists every way in which a message can leave the queue.",
        &["contract", "ladder", "dead-letter"],
    ),
    term(
        "live",
        &[],
        "A label in a conflict: the queue's message and consumer counts at the time topo created the plan, with the
addresses of the consumers. If the broker does not report a count, topo assumes that the count is not zero.",
        &["message-loss", "consumer-disruption"],
    ),
    term(
        "lock",
        &["lease"],
        "While an apply runs, it holds the `topo.lock` queue in the vhost as a lock, so only one apply runs per vhost.
The holder renews its 60-second lease, so the lock of a killed run expires automatically. `topo lock` shows the holder,
and `topo lock --break` deletes the lock. `--lock-timeout` sets the maximum time to wait for the lock.",
        &["stale"],
    ),
];
