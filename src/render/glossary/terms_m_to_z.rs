//! Lists the glossary terms from `m` to `z`.

use super::{Term, term};

pub(super) const TERMS: &[Term] = &[
    term(
        "managed",
        &[],
        "An object that a spec declares, or that topo generates for the declared retries and dead-lettering. Apart from
temporary objects, such as its lock, topo creates and changes only managed objects.",
        &["unmanaged", "owns", "prune"],
    ),
    term(
        "migrate",
        &["migrated", "migrating", "migration", "swap"],
        "A way to recreate a queue without losing its messages, while publishers and consumers keep working. topo
holds new messages, drains the old queue, replaces it with the new queue, and returns all messages, oldest first. The
next apply resumes an interrupted migration.",
        &["holding", "interrupted", "tap", "recreate", "duplicates", "reorder"],
    ),
    term(
        "node",
        &["down"],
        "A label in the output of `topo lock`: the broker node that hosts the lock. A lock does not expire while its
node is down. An apply that is waiting for the lock deletes it after the node has been down for a full minute.",
        &["lock", "free"],
    ),
    term(
        "not-attempted",
        &[],
        "A step that did not start, because a previous step failed or the run was interrupted. To execute the
remaining steps, run the same command again.",
        &["done", "rolled-back"],
    ),
    term(
        "object",
        &["kind", "address"],
        "An entity on the broker. Its kind is, for example, `queue`, `exchange`, `policy` or `vhost`. Its address
identifies the object, such as `queues/shop/orders` for queue `orders` in vhost `shop`. Summaries count bindings
separately from other objects.",
        &["topology", "bind", "managed"],
    ),
    term(
        "on-failure",
        &[],
        "A label in a contract: what a worker must do with a message that it failed to process. For example, the
worker calls basic.nack with requeue=false, or publishes a copy and acknowledges the message.",
        &["contract", "attempt", "give-up"],
    ),
    term(
        "origin",
        &[],
        "The source of a setting: a line in the spec, a default in the spec, a policy, or a default of the broker.
`topo explain QUEUE` lists the settings of a queue with their origins.",
        &["effective", "lifecycle"],
    ),
    term(
        "original",
        &[],
        "A label in a contract: the headers that contain the exchange and the routing key with which the message was
first published. A retried or dead-lettered message can have a different exchange and routing key.",
        &["contract", "x-death"],
    ),
    term(
        "policy",
        &[],
        "A way to resolve a conflict: set the value with a policy that applies to the existing queue or exchange.
RabbitMQ must have a policy key for the setting, and no argument of the object may override the key. The plan lists the
settings that the policy resolves.",
        &["conflict", "keep", "policy-shift"],
    ),
    term(
        "prune",
        &[],
        "`--prune` deletes unmanaged objects that match `owns`. Without the flag, topo keeps and lists these objects.",
        &["owns", "unmanaged", "delete", "protect"],
    ),
    term(
        "published",
        &[],
        "The first line of a lifecycle in `topo explain QUEUE`: the exchanges and routing keys through which messages
reach the queue.",
        &["lifecycle", "bindings"],
    ),
    term(
        "queue-deleted",
        &[],
        "In `topo explain QUEUE`: the broker deletes the queue because of `expires` or auto-delete. The broker does not
dead-letter the messages of the queue, so they are lost.",
        &["lifecycle", "expires"],
    ),
    term(
        "read",
        &[],
        "In `topo explain QUEUE`: consumers read the messages of a stream. Reading does not remove a message from a
stream.",
        &["lifecycle", "stream"],
    ),
    term(
        "recreate",
        &["recreated"],
        "`-/+`: the object is deleted and declared again, with all its bindings, because a setting cannot change on
an existing object. `onConflict` or `--recreate` selects the method: `ifEmpty`, `migrate` or `discard`.",
        &["ifEmpty", "migrate", "discard", "bindings", "routing-gap", "consumer-disruption"],
    ),
    term(
        "redeliver",
        &["republish", "strategy"],
        "Retry strategies. `ladder`: the broker delays a rejected message in tier queues. `redeliver`: a quorum queue
redelivers a rejected message, up to its delivery limit. `republish`: the worker publishes a failed message to a tier
queue. `delayed`: a quorum queue delays and redelivers a rejected message (RabbitMQ 4.3 and later). `topo contract`
prints what the worker must do.",
        &["ladder", "contract-change", "retry"],
    ),
    term(
        "rename",
        &[],
        "A way to resolve a conflict: declare the object with a different name, and delete the old object later.",
        &["conflict", "recreate"],
    ),
    term(
        "requeued",
        &[],
        "In `topo explain QUEUE`: the worker rejects the message with requeue=true, and the message returns to the
queue. A quorum queue counts the delivery toward its delivery limit. Exception: since RabbitMQ 4.3, a quorum queue does
not count basic.nack with requeue=true.",
        &["lifecycle", "crashed", "deliveryLimit"],
    ),
    term(
        "resolution",
        &[],
        "A way to resolve a conflict: keep the current value, set the value with a policy, use a different name, or
recreate the object. The plan lists the resolutions below the conflict.",
        &["conflict", "keep", "policy", "rename", "recreate"],
    ),
    term(
        "retired",
        &[],
        "Tier queues and exchanges of retries that the spec no longer declares. New messages use the new retries
immediately. Messages that still wait in a retired tier return to the queue automatically. topo deletes the tier when
it is empty.",
        &["ladder", "deferred"],
    ),
    term(
        "rolled-back",
        &["roll-back", "rollback"],
        "A step that was done and then reverted, because a recreation or a migration could not be completed, or
because `--abort` requested the rollback. The object is in its original state.",
        &["migrate", "not-attempted"],
    ),
    term(
        "scratch",
        &["scratch-vhost"],
        "A vhost in which `topo test --live` runs cases. By default, topo creates the vhost, and deletes it after the
run. `--scratch-vhost` selects an existing vhost instead.",
        &["spec"],
    ),
    term(
        "severity",
        &["error", "warning"],
        "The level of a lint finding. An error makes `topo validate` fail, a warning indicates a probable mistake, and
an info finding is advisory. `--fail-on` sets the lowest level that makes a run fail with exit code 1. `--lint
RULE=LEVEL` changes the level of a rule.",
        &["info", "lint"],
    ),
    term(
        "spec",
        &[],
        "The YAML files that declare the desired topology. Each YAML document declares objects of one vhost, objects of
the cluster, or environments. topo merges the documents of the same vhost.",
        &["topology", "managed", "vhost"],
    ),
    term(
        "stale",
        &[],
        "A saved plan is stale if the broker no longer matches the plan: an apply would make changes that are not in the
plan. `topo apply` then changes nothing, lists the differences and exits with code 5. Steps that are already done do
not make a plan stale.",
        &["fingerprint"],
    ),
    term(
        "stand-in",
        &["stand-ins", "standIns"],
        "In a test file: an exchange or a queue that replaces an external object from the spec during tests. Stand-ins
affect only `topo test`.",
        &["external", "scratch"],
    ),
    term(
        "stays",
        &["kept"],
        "The end of a lifecycle in `topo explain QUEUE`: the message remains in the queue until the worker processes it
successfully, or the broker removes it for a different reason.",
        &["lifecycle", "dropped"],
    ),
    term(
        "step",
        &["action"],
        "One operation of a plan, such as one request to the broker or one transfer of messages. `topo apply`
executes the steps in order and reports each one.",
        &["change", "done", "not-attempted"],
    ),
    term(
        "stream",
        &[],
        "A queue type that keeps messages after consumers read them. Consumers read from an offset, so a stream has no
retries and does not dead-letter messages.",
        &["type", "read"],
    ),
    term(
        "taken",
        &["inspected"],
        "In `topo explain QUEUE`: what can happen to a message in a dead-letter queue. `taken`: a person or a program
acknowledges the message after a replay or an inspection. `inspected`: an inspection reads the message and requeues
it.",
        &["dead-letter", "lifecycle"],
    ),
    term(
        "tap",
        &[],
        "The exchange in front of a queue during a migration. topo moves every binding of the queue to the tap. The tap
routes new messages either to the queue or to a holding queue.",
        &["migrate", "holding"],
    ),
    term(
        "tier",
        &["delayed-retry-queue"],
        "A delayed retry queue. A message waits in the tier until its TTL expires, and the broker then returns the
message to the main queue. The name of a tier contains its delay, for example `orders.retry.2.30s`.",
        &["ladder", "retired"],
    ),
    term(
        "topology",
        &[],
        "The objects of a vhost as data: exchanges, queues, bindings and policies. The spec declares the desired
topology, and the broker stores the current topology.",
        &["spec", "current", "object"],
    ),
    term(
        "transport",
        &["amqp", "shovel"],
        "The mechanism that moves messages during a migration. With `amqp`, topo consumes and publishes the messages.
With `shovel`, a dynamic shovel on the broker moves the messages. `--transport` selects the transport. By default, topo
uses AMQP, or a shovel if AMQP is not available or cannot carry a message.",
        &["migrate", "duplicates"],
    ),
    term(
        "unchanged",
        &[],
        "The object itself does not change. Only its bindings or retries, which are listed below it, change.",
        &["bind", "ladder"],
    ),
    term(
        "unmanaged",
        &["undeclared"],
        "An object on the broker that no spec declares. If the object matches `owns`, the plan lists it, and `--prune`
deletes it. topo does not change other unmanaged objects.",
        &["owns", "prune", "ignore"],
    ),
    term(
        "unrouted-window",
        &[],
        "The time during which messages for a queue are unroutable, for example while topo recreates the queue. The
broker drops unroutable messages, or returns them to the publisher if they are mandatory.",
        &["routing-gap", "recreate", "migrate"],
    ),
    term(
        "unset",
        &[],
        "A setting that exists on the broker but is missing from a spec that declares other settings of the same
object. For example, the spec sets `limits`, but omits a limit that exists on the vhost. `topo apply` deletes unset
settings.",
        &["delete", "removed"],
    ),
    term(
        "verified",
        &["applied"],
        "After a complete run, topo reads the broker again and compares it with the spec. The report confirms that
the broker matches the spec only after this check.",
        &["done"],
    ),
    term(
        "waits",
        &[],
        "A label in contracts and lifecycles: the delays before the retries of a message, in order. A message waits
in a delayed retry queue (tier), or in the queue itself.",
        &["tier", "ladder", "delays"],
    ),
    term(
        "warnings",
        &[],
        "A label in contracts and in `topo explain QUEUE`: the consequences of deviating from the contract, or of a
replay. For example, a replay to the original exchange reaches other queues again.",
        &["contract", "lifecycle", "x-death"],
    ),
    term(
        "x-death",
        &["has"],
        "The header in which the broker records each dead-lettering: queue, reason and count. In `topo explain
QUEUE`, the `has` label shows the exchange and the routing key of a dead-lettered message, and the `x-death` label
shows the entries of this header.",
        &["dead-letter", "lifecycle"],
    ),
];
