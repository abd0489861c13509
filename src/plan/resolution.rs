//! A resolution of a conflict, as a plan contains it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of resolutions, least disruptive first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ResolutionKind {
    /// The spec is changed to the current settings.
    Keep,
    /// A policy sets the value, and the object itself stays unchanged.
    Policy,
    /// The desired object gets a different name.
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
    /// The resolution resolves some of the differences, or needs another action first.
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
    /// The extent to which it applies.
    pub applicability: Applicability,
    /// A description in one line.
    pub text: String,
    /// The effect on each field, if it differs between fields.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldAdvice>,
    /// The YAML to merge into the spec: a document with the same keys. A comment and `removeKeys` list the keys to
    /// remove.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub yaml: Option<String>,
    /// The keys to remove from the spec, as paths: of the object (`arguments.x-message-ttl`), or of its document
    /// (`defaults.queue.messageTtl`).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remove_keys: Vec<String>,
    /// The flag of `topo plan` and `topo apply` that selects the resolution.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub flag: Option<String>,
    /// Warnings to consider first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
    /// The effect on applications that declare the object afterwards.
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
    pub applicability: bool,
    /// The reason.
    pub why: String,
}

impl Resolution {
    /// Builds a resolution with only a text.
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
    /// Returns the name in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Policy => "policy",
            Self::Rename => "rename",
            Self::Recreate => "recreate",
        }
    }
}
