//! Checks the AMQP URIs of shovels and federation upstreams.

use super::problem::{Problem, SECRET_AS_TEXT, bad, wrong_type};
use crate::model::AmqpUri;
use crate::model::amqp_uri::UriProblem;

/// Checks a URI. If the URI contains a password, messages never contain any part of the URI.
pub(super) fn check(text: &str, subject: &str) -> Result<(), Problem> {
    let secret = |what: &str, hint: &str| {
        let message = format!("expected a URI without a password for {subject}, found {what}");
        let hint = format!("{hint}; if this spec was committed or shared, change the password");
        Err(bad(SECRET_AS_TEXT, message, "a literal secret", Some(hint)))
    };
    match AmqpUri::parse(text) {
        Ok(uri) if uri.password().is_some() => {
            secret("a password", "remove the password from the URI, and add `password: {env: NAME}`")
        }
        Ok(uri) if uri.has_key_password() => {
            secret("the `password` parameter", "use `uri: {env: NAME}` for the complete URI")
        }
        Ok(_) => Ok(()),
        Err(problem) if can_contain_password(text, problem) => {
            let message = format!("{subject} is not a valid AMQP URI: {problem}");
            let hint = "remove the password from the URI, and add `password: {env: NAME}`".to_owned();
            Err(bad(SECRET_AS_TEXT, message, "this string may contain a password", Some(hint)))
        }
        Err(problem) => {
            let message = format!("{subject} is not a valid AMQP URI: {problem}");
            Err(bad("wrong-value", message, "expected a URI such as `amqps://user@host/vhost`", None))
        }
    }
}

/// Returns the error for a URI that is not a string.
pub(super) fn not_a_uri() -> Problem {
    wrong_type("a URI", None)
}

/// Returns true if a string that is not a valid URI may contain a password.
fn can_contain_password(text: &str, problem: UriProblem) -> bool {
    let is_readable = matches!(problem, UriProblem::Scheme | UriProblem::Vhost);
    text.contains('@') || text.to_lowercase().contains("password") || !is_readable
}
