//! The terms of the glossary from `m` to `z`.

use super::{Term, term};

pub(super) const TERMS: &[Term] = &[
    term(
        "managed",
        &[],
        "An object that a spec declares, or that its `owns` matches. topo creates and changes only declared objects.",
        &["unmanaged", "owns", "prune"],
    ),
    term(
        "migrate",
        &["migrated", "migrating", "migration", "swap"],
        "A way to recreate a queue without losing its messages, while publishers and consumers work. topo holds new
messages, drains the old queue, swaps it for the new one, and returns all messages, oldest first. The next apply
finishes an interrupted migration.",
        &["holding", "interrupted", "tap", "recreate", "duplicates", "reorder"],
    ),
    term(
        "node",
        &["down"],
        "A label of `topo lock`: the broker node that hosts the lock. A lock whose node is down does not expire. topo
deletes it when the node has been down for a minute.",
        &["lock", "free"],
    ),
    term(
        "not-attempted",
        &[],
        "A step that did not start, because another step failed or the run was interrupted. Run the same command
again to continue there.",
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
        "on-failure",
        &[],
        "A label of a contract: what a worker does with a message that it failed to process. For example, the worker
calls basic.nack with requeue=false, or publishes a copy and acknowledges the message.",
        &["contract", "attempt", "give-up"],
    ),
    term(
        "origin",
        &[],
        "Where a setting comes from: a line of the spec, a default of the spec, a policy, or a default of the broker.
`topo explain QUEUE` lists the settings of a queue with their origins.",
        &["effective", "lifecycle"],
    ),
    term(
        "original",
        &[],
        "A label of a contract: the headers in which a worker finds the exchange and the routing key with which the
message was first published. A retry or a dead-lettered message has different ones.",
        &["contract", "x-death"],
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
        "published",
        &[],
        "The first line of a lifecycle in `topo explain QUEUE`: the exchanges and routing keys over which messages
reach the queue.",
        &["lifecycle", "bindings"],
    ),
    term(
        "queue-deleted",
        &[],
        "In `topo explain QUEUE`: the broker deletes the queue because of `expires` or auto-delete. Its messages are
lost; the broker does not dead-letter them.",
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
        "A strategy of retries. `ladder`: the broker delays a rejected message in tier queues. `redeliver`: a quorum
queue redelivers it, up to its delivery limit. `republish`: the worker publishes it to a tier queue. `delayed`: a
quorum queue of RabbitMQ 4.3 delays and redelivers it. `topo contract` prints the duties of the worker.",
        &["ladder", "contract-change", "retry"],
    ),
    term(
        "rename",
        &[],
        "A way to resolve a conflict: declare the object under a different name, and delete the old one later.",
        &["conflict", "recreate"],
    ),
    term(
        "requeued",
        &[],
        "In `topo explain QUEUE`: the worker rejects the message with requeue=true, and the message returns to the
queue. A quorum queue counts the delivery towards its delivery limit.",
        &["lifecycle", "crashed", "deliveryLimit"],
    ),
    term(
        "resolution",
        &[],
        "A way to resolve a conflict: keep the current value, set the value by a policy, use a different name, or
recreate the object. The plan lists the resolutions below the conflict.",
        &["conflict", "keep", "policy", "rename", "recreate"],
    ),
    term(
        "retired",
        &[],
        "Tier queues and exchanges of retries that the spec no longer declares. New messages use the new retries
immediately. Messages that are still waiting in an old tier return to the queue automatically; topo deletes the tier
when it is empty.",
        &["ladder", "deferred"],
    ),
    term(
        "rolled-back",
        &["roll-back", "rollback"],
        "A step that was done and then reverted, because a recreation or a migration could not be completed. The
object is unchanged.",
        &["migrate", "not-attempted"],
    ),
    term(
        "severity",
        &["error", "warning"],
        "The level of a lint finding. An error makes `topo validate` fail, a warning indicates a probable mistake,
and an info is advisory. `--fail-on` sets the level that ends a run with exit code 1; `--lint RULE=LEVEL` changes the
level of a rule.",
        &["info", "lint"],
    ),
    term(
        "spec",
        &[],
        "The YAML files that declare the topology of a vhost. Each document declares objects of one vhost; topo
merges the documents of the same vhost.",
        &["topology", "managed", "vhost"],
    ),
    term(
        "stale",
        &[],
        "The broker no longer matches the saved plan: apply would now make changes that are not in the plan. Apply
changes nothing (exit code 5) and lists the differences. Steps that are already done do not make a plan stale.",
        &["fingerprint"],
    ),
    term(
        "stays",
        &["kept"],
        "The end of a lifecycle in `topo explain QUEUE`: the message remains in the queue until the worker succeeds
or the message is removed in another way.",
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
        "A type of queue that keeps messages after they are read. Consumers read from an offset, so a stream has no
retries and does not dead-letter messages.",
        &["type", "read"],
    ),
    term(
        "taken",
        &["inspected"],
        "The ways in which a message leaves a dead-letter queue, in `topo explain QUEUE`. `taken`: a person or a
program acknowledges the message after a replay. `inspected`: an inspection reads the message and requeues it.",
        &["dead-letter", "lifecycle"],
    ),
    term(
        "tap",
        &[],
        "The exchange in front of a queue during a migration. Every binding of the queue is moved to the tap, and the
tap routes to the queue that currently receives the messages.",
        &["migrate", "holding"],
    ),
    term(
        "tier",
        &["delayed-retry-queue"],
        "A delayed retry queue. A message waits in it until its TTL expires, and the broker then returns the message
to the main queue. The name of a tier contains its delay: `orders.retry.2.30s`.",
        &["ladder", "retired"],
    ),
    term(
        "topology",
        &[],
        "The objects of a vhost as data: exchanges, queues, bindings and policies. The spec declares the desired
topology, and the broker holds the current one.",
        &["spec", "current", "object"],
    ),
    term(
        "transport",
        &["amqp", "shovel"],
        "The way in which a migration moves messages. With `amqp`, topo consumes and publishes them itself. With
`shovel`, a dynamic shovel on the broker moves them. `--transport` selects the transport; the default is AMQP, if the
port is reachable.",
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
        &["undeclared"],
        "An object that exists and that no spec declares. If it matches `owns`, the plan lists it, and `--prune`
deletes it. topo does not change other unmanaged objects.",
        &["owns", "prune", "ignore"],
    ),
    term(
        "unrouted-window",
        &[],
        "The time during which messages that are published to a queue reach no queue, for example while the queue is
recreated. The broker drops such messages, or returns them if they are mandatory.",
        &["routing-gap", "recreate", "migrate"],
    ),
    term(
        "unset",
        &[],
        "A setting that exists on the broker but is missing from a spec that declares other settings of the same
object. For example, `limits` of the vhost does not list a limit that is set. Apply deletes it.",
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
        "A label of contracts and lifecycles: the delays before the retries of a message, in order. A message waits
in a delayed retry queue (tier), or in the queue itself.",
        &["tier", "ladder", "delays"],
    ),
    term(
        "warnings",
        &[],
        "A label of contracts and of `topo explain QUEUE`: the consequences of deviating from the contract, or of a
replay. For example, a replay to the original exchange reaches other queues again.",
        &["contract", "lifecycle", "x-death"],
    ),
    term(
        "x-death",
        &["has"],
        "The header with which the broker records each dead-lettering: queue, reason and count. In `topo explain
QUEUE`, `has` is the exchange and the routing key of a dead-lettered message, and `x-death` is its header.",
        &["dead-letter", "lifecycle"],
    ),
];
