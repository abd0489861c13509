//! A resolution of a conflict, as a plan contains it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of ways out of a conflict, most gentle first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ResolutionKind {
    /// The spec is made to say what is live.
    Keep,
    /// A policy does it, and the object itself stays as it is.
    Policy,
    /// The desired object gets another name.
    Rename,
    /// The object is deleted and made again.
    Recreate,
}

/// How far a way out leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Applicability {
    /// All that differs is settled by it.
    Yes,
    /// Some of what differs is settled by it, or something else has to be done first.
    Partly,
    /// It is no way out here; the text says why.
    No,
}

/// One way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    /// What it is.
    pub kind: ResolutionKind,
    /// How far it leads.
    pub applicability: Applicability,
    /// All of it in one line, for people.
    pub text: String,
    /// Field by field, where it does not treat all alike.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldAdvice>,
    /// What to write into the spec: a document of the spec's own keys, to be put in where the same keys stand. What
    /// is to be taken out of it stands in a comment, and in `removeKeys`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub yaml: Option<String>,
    /// The keys that the spec must not say any more, as paths: of the object (`arguments.x-message-ttl`), or of its
    /// document (`defaults.queue.messageTtl`).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remove_keys: Vec<String>,
    /// The flag of `topo plan` and `topo apply` that does it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub flag: Option<String>,
    /// What to mind before doing it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
    /// What applications see that declare the object, once it is done.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub applications: Option<String>,
}

/// What a way out does for one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldAdvice {
    /// RabbitMQ's name for the field.
    pub field: String,
    /// Whether the field is settled by it.
    pub applicability: bool,
    /// Why, or why not.
    pub why: String,
}

impl Resolution {
    /// With nothing but its line.
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
    /// The word for it in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Policy => "policy",
            Self::Rename => "rename",
            Self::Recreate => "recreate",
        }
    }
}
