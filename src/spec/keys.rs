//! Defines the grammar of specs: every key, with its shape and its documentation. `queue_keys` defines the keys of
//! queues.

use super::for_each::FOR_EACH;
use super::lint_keys::LINT;
use super::queue_keys::{DEAD_LETTER_QUEUE, DEFAULTS, QUEUE};
use super::records;
use super::shape::{Key, Keys, Object, Shape, key};
use super::shared_keys::{
    AUTO_DELETE, BINDING_ARGUMENTS, BINDINGS, CONFLICT, DURABLE, EXTERNAL, QUEUE_TYPES, RETRY_POLICY, ROUTING_KEY,
};
use super::super_streams;
use crate::model::known_arguments::KNOWN_ARGUMENTS;
use crate::model::record_kinds::{APPLY_TO, RecordScope};
use crate::rabbitmq::policy_keys;
use std::sync::LazyLock;

pub(super) const GLOBS: Shape = Shape::List(&Shape::Text);
const NAMES: Shape = Shape::List(&Shape::Name);

const DESTINATION_TYPE: Shape = Shape::OneOf(&["queue", "exchange"]);

/// The key that marks an external exchange that is allowed to be missing.
pub(super) const OPTIONAL: &str = "optional";

/// A vhost document.
pub(crate) static DOCUMENT: Object = Object {
    what: "a spec",
    name: "Document",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            static FIXED: &[Key] = &[
            key("version", Shape::Version, "The version of this format.").required().with_example("1"),
            key("vhost", Shape::Either(&Shape::Name, &[&VHOST]), "The vhost that this document describes.")
                .required()
                .with_example("shop"),
            key(
                "owns",
                GLOBS,
                "Globs that match the whole names of the objects that this spec manages. topo reports matching objects \
                 that no spec declares, and deletes them with `--prune`.",
            )
            .with_default("[]")
            .with_example("[\"orders.*\"]"),
            key(
                "protect",
                GLOBS,
                "Globs for the names of objects that topo never deletes or recreates, regardless of flags.",
            )
            .with_default("[]")
            .with_example("[\"orders.audit\"]"),
            key(
                "ignore",
                GLOBS,
                "Globs for the names of objects that this spec does not manage and topo does not report. Declaring a \
                 matching object is an error.",
            )
            .with_default("[]")
            .with_example("[\"orders.tmp.*\"]"),
            key("removed", Shape::Object(&REMOVED), "The objects to delete, with the same safeguards as `--prune`."),
            key("defaults", Shape::Object(&DEFAULTS), "Defaults for the queues of this document."),
            key(
                "retryPolicies",
                Shape::Map(&Shape::Object(&RETRY_POLICY)),
                "Retry policies by name, for use in several queues with `retry: NAME`.",
            )
            .with_example("{payments: {maxRetries: 5, backoff: {initial: 2s, factor: 2, max: 60s}}}"),
            key("exchanges", Shape::Map(&Shape::Object(&EXCHANGE)), "The exchanges, by name."),
            key("queues", Shape::Map(&Shape::Object(&QUEUE)), "The queues and streams, by name."),
            key(
                "deadLetterQueues",
                Shape::Map(&Shape::Object(&DEAD_LETTER_QUEUE)),
                "The dead-letter queues, by name. Each is a queue with its own exchange.",
            ),
            super_streams::KEY,
            key(
                "bindings",
                Shape::List(&Shape::Object(&BINDING)),
                "Bindings that are not listed under their queue or exchange.",
            ),
            key("policies", Shape::Map(&Shape::Object(&POLICY)), "The policies, by name."),
            ];
            let lint = key(
                "lint",
                Shape::Object(&LINT),
                "The levels of lint rules, by rule: `off`, `info`, `warning` or `error`. To allow a single finding, add a \
                 comment: `# topo: allow RULE reason`.",
            )
            .with_example("{unbounded-queue: warning}");
            FIXED.iter().copied().chain(records::sections(RecordScope::Vhost)).chain([lint]).collect()
        });
        &KEYS
    }),
    external: &[],
    is_queue: false,
};

static VHOST: Object = Object {
    what: "a vhost",
    name: "Vhost",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            static FIXED: &[Key] = &[
                key("name", Shape::Name, "The name of the vhost.").required().with_example("shop"),
                key("description", Shape::Text, "A human-readable description."),
                key(
                    "tags",
                    Shape::List(&Shape::Text),
                    "The tags of the vhost. Without this key, topo keeps the current tags.",
                )
                .with_example("[payments]"),
                key("defaultQueueType", QUEUE_TYPES, "The type of queues that are declared without a type."),
            ];
            FIXED.iter().copied().chain(records::vhost_keys()).collect()
        });
        &KEYS
    }),
    external: &[],
    is_queue: false,
};

static REMOVED: Object = Object {
    what: "`removed`",
    name: "Removed",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            static FIXED: &[Key] = &[
                key("queues", NAMES, "The names of queues to delete.").with_example("[orders.old]"),
                key("exchanges", NAMES, "The names of exchanges to delete."),
                key("policies", NAMES, "The names of policies to delete."),
                key("bindings", Shape::List(&Shape::Object(&BINDING)), "The bindings to delete."),
            ];
            FIXED.iter().copied().chain(records::removed_sections(RecordScope::Vhost)).collect()
        });
        &KEYS
    }),
    external: &[],
    is_queue: false,
};

/// An exchange.
pub(crate) static EXCHANGE: Object = Object {
    what: "an exchange",
    name: "Exchange",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key(
                "type",
                Shape::ExchangeType,
                "The exchange type: `direct`, `fanout`, `topic`, `headers`, or the `x-…` type of a plugin.",
            )
            .required()
            .with_example("topic"),
            DURABLE,
            AUTO_DELETE,
            key(
                "internal",
                Shape::Boolean,
                "If true, clients cannot publish to the exchange. Other exchanges can route to it, and queues can dead-letter to it.",
            )
            .with_default("false"),
            key(
                "alternateExchange",
                Shape::Name,
                "The exchange that receives messages that this exchange cannot route.",
            )
            .with_example("unrouted"),
            key("bindings", BINDINGS, "Bindings from other exchanges to this exchange."),
            key("arguments", Shape::Arguments(false), "Other arguments, which topo sends unchanged.")
                .with_example("{hash-header: user}"),
            CONFLICT,
            EXTERNAL,
            FOR_EACH,
            key(
                OPTIONAL,
                Shape::Boolean,
                "If true, the external exchange may be missing. If it is missing, the broker drops messages that are \
                 dead-lettered or rerouted to it.",
            )
            .with_default("false"),
        ];
        KEYS
    }),
    external: &["bindings", OPTIONAL, "forEach"],
    is_queue: false,
};

static BINDING: Object = Object {
    what: "a binding",
    name: "Binding",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("source", Shape::Name, "The exchange that messages come from.").required().with_example("orders"),
            key("destination", Shape::Name, "The queue or exchange that messages go to.")
                .required()
                .with_example("orders.work"),
            key("destinationType", DESTINATION_TYPE, "The kind of the destination.").with_default("queue"),
            ROUTING_KEY,
            BINDING_ARGUMENTS,
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static POLICY: Object = Object {
    what: "a policy",
    name: "Policy",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key(
                "pattern",
                Shape::Text,
                "A regular expression (PCRE) that object names must match. It is not anchored unless it contains `^` or `$`.",
            )
            .required()
            .with_example("'^orders\\.'"),
            key(
                "applyTo",
                Shape::OneOf(APPLY_TO),
                "The kinds of objects that the policy applies to. `classic_queues`, `quorum_queues` and `streams` require \
                 RabbitMQ 3.12.",
            )
            .with_default("all"),
            key(
                "priority",
                Shape::Number,
                "The priority. If several policies match an object, only the one with the highest priority applies.",
            )
            .with_default("0"),
            key("definition", Shape::Definition, "The settings, in camelCase or in RabbitMQ's spelling.")
                .required()
                .with_example("{maxLengthBytes: 1GiB}"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

/// A key of a policy definition, in both the spec's spelling and RabbitMQ's spelling.
pub(crate) struct PolicyKey {
    /// The key in a spec, in camelCase.
    pub(crate) key: &'static str,
    /// The key in RabbitMQ's spelling.
    pub(crate) name: &'static str,
    /// The values that the key accepts.
    pub(crate) shape: Shape,
    /// The documentation.
    pub(crate) doc: &'static str,
}

/// The known policy keys. topo sends other keys unchanged.
pub(crate) static POLICY_KEYS: LazyLock<Vec<PolicyKey>> = LazyLock::new(|| {
    let known = KNOWN_ARGUMENTS.iter().filter_map(|known| {
        let (name, key) = (known.policy_key?, policy_keys::PolicyKey::spelling(known.policy_key?)?);
        Some(PolicyKey { key, name, shape: known.value.into(), doc: known.doc })
    });
    let others = [
        ("alternate-exchange", "The exchange that receives messages that an exchange cannot route."),
        (
            "federation-upstream",
            "The upstream that the exchanges or queues are federated with; requires the `rabbitmq_federation` plugin.",
        ),
        (
            "federation-upstream-set",
            "The upstream set that the exchanges or queues are federated with; the `all` set contains every upstream.",
        ),
        (
            "federation-upstream-pattern",
            "A regular expression for the names of the upstreams that the exchanges or queues are federated with.",
        ),
    ];
    let others = others.into_iter().filter_map(|(name, doc)| {
        Some(PolicyKey { key: policy_keys::PolicyKey::spelling(name)?, name, shape: Shape::Text, doc })
    });
    known.chain(others).collect()
});
