//! Lists the glossary terms from `406` to `l`.

use super::{Term, term};

pub(super) const TERMS: &[Term] = &[
    term(
        "406",
        &["precondition_failed", "inequivalent"],
        "The AMQP error PRECONDITION_FAILED: an application declares a queue or an exchange with arguments that
differ from the arguments of the existing object. The broker closes the application's channel. In a plan, the label
`broker` shows the broker's error message, and `after` shows the error that applications receive after recreation.",
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
        "A label of a conflict: the error that applications receive after recreation if they still declare the old
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
        "One delivery of a message to a worker. In a contract, the label `attempt` shows the header that contains the
attempt number. The label `a retry` shows the exchange and the routing key of a retried message.",
        &["contract", "deliveries", "ladder"],
    ),
    term(
        "backup",
        &[],
        "Before an apply deletes, changes or recreates objects, topo writes these objects to a file for `rabbitmqadmin
definitions import`. The file contains no messages. `--backup FILE` sets the file, and `--no-backup` disables the
backup.",
        &["recreate", "delete"],
    ),
    term(
        "bind",
        &["unbind"],
        "`+ bind SOURCE ─ KEY →` adds a binding to the object above this line, and `- unbind` removes a binding. When
a binding changes, topo adds the new binding before it removes the old binding, so that no message is lost. The summary
counts bindings separately from objects.",
        &["bindings", "routing-gap"],
    ),
    term(
        "bindings",
        &["binding"],
        "A label of a conflict: the declared and unmanaged bindings of an object that is recreated. topo restores all
these bindings.",
        &["bind", "recreate", "unmanaged"],
    ),
    term(
        "blocked",
        &["blocker"],
        "`topo apply` refuses a blocked plan before the first change, with exit code 3. Blockers are conflicts (edit
the spec or use `--recreate`), hazards (use `--allow`), and other problems, such as a missing external object. If
flags can resolve all blockers, the last line of the plan is a command with these flags.",
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
        "`~`: the object exists, and apply updates the object in place, without deleting it. Policies and vhost
settings change in place. Arguments of queues and exchanges never change in place.",
        &["conflict", "recreate"],
    ),
    term(
        "conflict",
        &[],
        "`!`: the current object differs from the spec in a setting that cannot change on an existing object, and
`onConflict` and `--recreate` do not resolve the difference. Below the conflict, the plan lists the resolutions: keep
the current value in the spec, set the value by a policy, use a different name, or recreate the object.",
        &["406", "drift", "keep", "policy", "recreate", "onConflict"],
    ),
    term(
        "contract",
        &[],
        "What a worker must do: the AMQP methods to call on success and on failure, the number of retries, the way to
count attempts, and the headers to write. `topo contract` prints the contract of each queue with retries or
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
        "`+`: the object does not exist, and apply creates it.",
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
        &["dead-lettered", "dead-letter-queue", "dead-letter-exchange", "dead-letters", "dead-lettered-to"],
        "The broker dead-letters a message that is rejected without a requeue, expires, exceeds the delivery limit or
overflows the queue: it publishes the message to the queue's dead-letter exchange. Without a dead-letter routing key, the
broker also routes the message by the keys in its headers `CC` and `BCC`. A dead-letter queue stores dead-lettered messages
until a person or a program handles them.",
        &["deadLetter", "deadLetterQueues", "ladder", "no-dead-letter"],
    ),
    term(
        "declare",
        &["declaration"],
        "A label of a contract: the properties with which a worker must declare its queue. With other properties, the
broker refuses the declaration with the error 406. A passive declaration needs only the name of the queue.",
        &["contract", "406"],
    ),
    term(
        "default",
        &[],
        "A label of a conflict: the result of a declaration without `x-queue-type`. The broker then compares the
vhost's default queue type with the type of the existing queue.",
        &["406", "defaultQueueType"],
    ),
    term(
        "deferred",
        &[],
        "A step that was planned but not done, because retired tiers still contain messages. The messages return to
their queue automatically, and the next apply completes the step. This is not a failure.",
        &["retired", "ladder"],
    ),
    term(
        "delete",
        &["deleted"],
        "`-`: apply deletes the object because the spec lists it under `removed`, because of `--prune`, because the
object belongs to retired retries, or because the setting is unset. If a queue was empty when topo created the plan,
apply deletes the queue only if it is still empty.",
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
        "A way to recreate a queue: delete it with its messages and declare it again. This is a `message-loss` hazard
unless the queue is empty.",
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
        "The broker deletes an unprocessed message without dead-lettering it: the queue has no dead-letter exchange,
or the dead-letter exchange routes the message to no queue.",
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
        "0 success, 1 failed before any change, 2 changes (`--detailed-exitcode`), 3 blocked, 4 incomplete or not verified, 5
stale, 6 locked, 64 usage error, 65 invalid spec, 130 interrupted before any change. `topo --help` also lists these
codes.",
        &["blocked", "stale", "lock"],
    ),
    term(
        "expired",
        &["too-old"],
        "In `topo explain QUEUE`: the message is older than the TTL of the queue or its own `expiration`, and leaves
the queue. A stream deletes whole segments of messages that are too old.",
        &["lifecycle", "messageTtl", "maxAge"],
    ),
    term(
        "finding",
        &[],
        "A result of a lint rule. A finding concerns the spec, and `topo validate` reports findings without a broker. A
hazard is a risk of applying a step to this broker now.",
        &["severity", "hazard", "lint"],
    ),
    term(
        "fingerprint",
        &[],
        "A hash of a plan's changes, steps and cluster. The fingerprint does not include message counts. `topo apply
--expect FINGERPRINT` applies only a plan with this fingerprint. A fingerprint detects edits and accidents, but is
not a signature.",
        &["stale"],
    ),
    term(
        "free",
        &["locked"],
        "The states of a lock in the output of `topo lock`. An apply can start if the lock of the vhost is free. If
the vhost is locked, the apply waits up to `--lock-timeout`, then exits with code 6.",
        &["lock"],
    ),
    term(
        "give-up",
        &["given-up"],
        "The worker stops retrying a message after its last attempt. In a contract, the label `give up` shows the AMQP
method that the worker then calls. The message is dead-lettered or dropped.",
        &["contract", "dead-letter", "dropped"],
    ),
    term(
        "graph",
        &[],
        "A drawing of the topology. `topo graph` writes graphs as Mermaid, DOT, SVG or JSON, and highlights retries and
dead-lettering. With `--plan FILE`, a graph shows the changes of a saved plan.",
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
        "A label of a contract: the headers of a dead-lettered message. These headers contain the reason and the queue
that dead-lettered the message. A replay removes the headers.",
        &["contract", "x-death"],
    ),
    term(
        "holding",
        &["hold", "drained", "shield", "probe"],
        "The two queues that store messages during the migration of a queue `Q`. `Q.topo.drained` receives the messages
of the old queue, and `Q.topo.hold` receives new messages. topo returns all messages to the new queue, oldest first,
and deletes the holding queues. The policy `Q.topo.shield` prevents other policies from applying to the holding
queues. The queue `Q.topo.probe` tests whether the new queue can be declared.",
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
        "A useful fact about an object. An info does not block the plan, requires no flag, and does not affect the
exit code. The lowest severity of lint findings has the same name.",
        &["hazard", "severity"],
    ),
    term(
        "interrupted",
        &["resume"],
        "A migration that an earlier run did not complete, because the run was killed, was interrupted or lost its
connection to the broker. The messages are in the queue or in its holding queues, and new messages still arrive there.
The next apply resumes the migration. While the old queue exists, `--abort ADDRESS` rolls back the migration. If
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
the lifecycle of a message that always fails, and lists all ways in which a message leaves the queue.",
        &["contract", "ladder", "dead-letter"],
    ),
    term(
        "live",
        &[],
        "A label of a conflict: the messages and consumers of the queue when topo created the plan, with the addresses
of the consumers. If the broker does not report a count, topo assumes that the count is not zero.",
        &["message-loss", "consumer-disruption"],
    ),
    term(
        "lock",
        &["lease"],
        "While an apply runs, it holds the queue `topo.lock` in the vhost as a lock, so only one apply runs per vhost.
The holder renews its lease of 60 s, so the lock of a killed run expires automatically. `topo lock` shows the holder,
and `topo lock --break` deletes the lock. `--lock-timeout` sets the maximum time to wait for the lock.",
        &["stale"],
    ),
];
