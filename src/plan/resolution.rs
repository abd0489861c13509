//! Defines the resolutions of a conflict in a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of resolutions, least disruptive first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ResolutionKind {
    /// The spec is changed to match the current settings.
    Keep,
    /// A policy sets the value, and the object itself stays unchanged.
    Policy,
    /// The desired object is declared under a different name.
    Rename,
    /// The object is deleted and created again.
    Recreate,
}

/// The extent to which a resolution applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Applicability {
    /// The resolution resolves all differences.
    Yes,
    /// The resolution resolves only some of the differences, or has a cost or a prerequisite.
    Partly,
    /// The resolution does not apply; the text contains the reason.
    No,
}

/// A resolution of a conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    /// The kind of the resolution.
    pub kind: ResolutionKind,
    /// The extent to which the resolution applies.
    pub applicability: Applicability,
    /// A one-line description.
    pub text: String,
    /// Advice for individual fields: whether the resolution applies to the field, and the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldAdvice>,
    /// The YAML to merge into the spec, with the same structure as the spec. A comment and `removeKeys` list the keys
    /// to remove.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub yaml: Option<String>,
    /// The keys to remove from the spec, as paths that start at the object (`arguments.x-message-ttl`) or at its
    /// document (`defaults.queue.messageTtl`).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remove_keys: Vec<String>,
    /// The `topo plan` and `topo apply` flag that selects the resolution.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub flag: Option<String>,
    /// Warnings to consider before using the resolution.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
    /// The effect on applications that declare the object after the resolution.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub applications: Option<String>,
}

/// The effect of a resolution on one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldAdvice {
    /// The name of the field in RabbitMQ.
    pub field: String,
    /// True if the resolution applies to the field.
    pub applies: bool,
    /// The reason why the resolution does or does not apply to the field.
    pub why: String,
}

impl Resolution {
    /// Returns a resolution with only a description.
    pub(super) fn new(kind: ResolutionKind, applicability: Applicability, text: String) -> Self {
        Self {
            kind,
            applicability,
            text,
            fields: Vec::new(),
            yaml: None,
            remove_keys: Vec::new(),
            flag: None,
            warnings: Vec::new(),
            applications: None,
        }
    }
}

impl ResolutionKind {
    /// Returns the name of the resolution in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Policy => "policy",
            Self::Rename => "rename",
            Self::Recreate => "recreate",
        }
    }
}
