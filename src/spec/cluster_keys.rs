//! Defines the grammar of cluster documents, whose objects do not belong to a vhost.

use super::keys::GLOBS;
use super::records;
use super::shape::{Key, Keys, Object, Shape, key};
use crate::model::record_kinds::RecordScope;
use std::sync::LazyLock;

/// A cluster document, which has the `cluster` key and does not have the `vhost` key.
pub(crate) static CLUSTER_DOCUMENT: Object = Object {
    what: "a cluster document",
    name: "ClusterDocument",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            static FIXED: &[Key] = &[
                key("version", Shape::Version, "The version of this format.").required().with_example("1"),
                key(
                    "cluster",
                    Shape::Object(&CLUSTER),
                    "Marks a document that describes the cluster instead of a vhost. `{}` matches every cluster.",
                )
                .required()
                .with_example("{}"),
                key(
                    "requires",
                    Shape::Object(&REQUIRES),
                    "The version, plugins and feature flags that the cluster must have. If a requirement is not met, \
                     the plan is blocked. topo never changes the version, plugins or feature flags.",
                )
                .with_example("{version: \">= 3.12\"}"),
                key(
                    "owns",
                    GLOBS,
                    "Globs that match the whole names of the cluster objects that this spec manages. topo reports \
                     matching objects that no spec declares, and deletes them if `--prune` lists their kind.",
                )
                .with_default("[]")
                .with_example("[\"shop-*\"]"),
                key(
                    "protect",
                    GLOBS,
                    "Globs for the names of cluster objects that topo never deletes, regardless of flags.",
                )
                .with_default("[]")
                .with_example("[\"admin\"]"),
                key("ignore", GLOBS, "Globs for the names of cluster objects that topo does not report.")
                    .with_default("[]")
                    .with_example("[\"guest\"]"),
            ];
            let removed = key(
                "removed",
                Shape::Object(&REMOVED),
                "The cluster objects to delete, with the same safeguards as `--prune`.",
            );
            let has_removed = records::removed_sections(RecordScope::Cluster).next().is_some();
            let sections = records::sections(RecordScope::Cluster);
            FIXED.iter().copied().chain(has_removed.then_some(removed)).chain(sections).collect()
        });
        &KEYS
    }),
    external: &[],
    is_queue: false,
};

static CLUSTER: Object = Object {
    what: "the cluster",
    name: "Cluster",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[key(
            "name",
            Shape::Text,
            "The name of the cluster, as `rabbitmqctl cluster_status` prints it. On a cluster with a different name, the \
             plan is blocked.",
        )
        .with_example("prod-eu")];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static REQUIRES: Object = Object {
    what: "`requires`",
    name: "Requirements",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("version", Shape::Text, "The versions of RabbitMQ that the spec supports.")
                .with_example("\">= 3.12, < 5\""),
            key("plugins", TEXTS, "The plugins that must be enabled on every running node.")
                .with_default("[]")
                .with_example("[rabbitmq_shovel]"),
            key("featureFlags", TEXTS, "The feature flags that must be enabled.")
                .with_default("[]")
                .with_example("[khepri_db]"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

const TEXTS: Shape = Shape::List(&Shape::Text);

static REMOVED: Object = Object {
    what: "`removed`",
    name: "ClusterRemoved",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| records::removed_sections(RecordScope::Cluster).collect());
        &KEYS
    }),
    external: &[],
    is_queue: false,
};
