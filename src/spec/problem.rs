//! The problems of single values.

/// The code of the error for a secret that is written in a spec. The renderer masks the values at these positions.
pub(super) const SECRET_AS_TEXT: &str = "secret-as-text";

/// A problem of a scalar. Without a `message`, the type is wrong, and `label` describes the expected type.
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
