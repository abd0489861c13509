//! Defines the grammar of documents that declare environments.

use super::shape::{Key, Keys, Object, Shape, key};

/// The key that marks an environments document.
pub(super) const ENVIRONMENTS: &str = "environments";

/// A document with the `environments` key.
pub(crate) static ENVIRONMENTS_DOCUMENT: Object = Object {
    what: "an environments document",
    name: "EnvironmentsDocument",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("version", Shape::Version, "The version of this format.").required().with_example("1"),
            key(
                ENVIRONMENTS,
                Shape::Map(&Shape::Object(&ENVIRONMENT)),
                "The environments, by name. `--env NAME` selects one. All environments must set the same variables.",
            )
            .required()
            .with_example("{staging: {variables: {VHOST: shop-staging}}, prod: {variables: {VHOST: shop}}}"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static ENVIRONMENT: Object = Object {
    what: "an environment",
    name: "Environment",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key(
                "url",
                Shape::Text,
                "The URL of the management API, without a user name or password. `--url` overrides it.",
            )
            .with_example("https://rabbit.example"),
            key(
                "cluster",
                Shape::Text,
                "The name that the cluster must have. On a cluster with a different name, the plan is blocked.",
            )
            .with_example("prod-eu"),
            key(
                "variables",
                Shape::FreeMap(&Shape::Any),
                "The values of variables in the specs. They override `TOPO_VAR_NAME`. `--var` and `--var-file` \
                 override them.",
            )
            .with_example("{VHOST: shop}"),
            key(
                "specs",
                Shape::List(&Shape::Text),
                "The paths of additional specs for this environment, relative to the file that contains the \
                 environment. Other environments ignore these files.",
            )
            .with_default("[]")
            .with_example("[only-prod/limits.yaml]"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};
