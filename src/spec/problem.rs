//! Defines problems with single values.

/// The error code for a literal secret in a spec. The renderer masks the value at the position of such an error.
pub(super) const SECRET_AS_TEXT: &str = "secret-as-text";

/// A problem with a scalar. If `message` is `None`, the value has the wrong type, and `label` describes the expected
/// type.
pub(super) struct Problem {
    pub(super) code: &'static str,
    pub(super) message: Option<String>,
    pub(super) label: String,
    pub(super) hint: Option<String>,
}

pub(super) fn wrong_type(expected: &str, hint: Option<String>) -> Problem {
    Problem { code: "wrong-type", message: None, label: expected.to_owned(), hint }
}

pub(super) fn bad(code: &'static str, message: String, label: &str, hint: Option<String>) -> Problem {
    Problem { code, message: Some(message), label: label.to_owned(), hint }
}
