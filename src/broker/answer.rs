//! Converts the status, content type and body of a response into a result or an error.
//!
//! Sources: `rabbit_mgmt_util:bad_request_exception`, `rabbit_web_dispatch_access_control`, and responses from live
//! brokers, 3.8 to 4.3. For a missing permission, RabbitMQ returns 401, and LavinMQ returns 403.

use super::error::BrokerError;
use super::redact::{redacted_url, sanitize};
use crate::model::printable::clean;
use crate::plan::request::Request;
use serde_json::Value;

/// The maximum length, in characters, of the excerpt that an error contains if the response gives no reason.
const EXCERPT_LENGTH: usize = 80;

/// A raw response.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawResponse<'a> {
    pub(super) status: u16,
    pub(super) content_type: Option<&'a str>,
    pub(super) location: Option<&'a str>,
    pub(super) body: &'a [u8],
}

/// The URL, the user and the request, for error messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestContext<'a> {
    pub(super) url: &'a str,
    pub(super) username: &'a str,
    pub(super) request: &'a Request,
}

/// Accepts a response with status 2xx and a body that is empty or has a JSON content type.
///
/// # Errors
/// The error that the response represents.
pub(super) fn check(raw: RawResponse<'_>, context: RequestContext<'_>) -> Result<(), BrokerError> {
    let RequestContext { url, username, request: sent } = context;
    let request = sent.to_string();
    let status = raw.status;
    let is_json = raw.content_type.is_some_and(|content_type| content_type.contains("json"));
    match status {
        200..=299 if raw.body.is_empty() || is_json => return Ok(()),
        300..=399 => {
            let to =
                raw.location.map_or_else(|| "an unspecified location".to_owned(), |to| clean(&without_secrets(to)));
            return Err(BrokerError::Redirected { url: url.to_owned(), to });
        }
        _ => {}
    }
    let Some(reason) = reason(raw.body) else {
        let excerpt = excerpt(raw.body);
        return Err(match status {
            408 | 429 | 500..=599 => {
                let reason = if excerpt.is_empty() { "no reason given".to_owned() } else { excerpt };
                BrokerError::Unavailable { request, status, reason }
            }
            _ => BrokerError::NotManagementApi {
                url: url.to_owned(),
                request,
                status,
                content_type: raw.content_type.map(sanitize),
                excerpt,
            },
        });
    };
    let username = username.to_owned();
    Err(match status {
        // The second reason concerns policies and parameters: usually, the user has neither the `policymaker` nor the
        // `administrator` tag (`rabbit_web_dispatch_access_control:is_authorized_policies`).
        401 if reason.starts_with("Not ") && reason.ends_with(" user")
            || reason == "User not authorised to access object" =>
        {
            BrokerError::WrongTag { username, request, reason }
        }
        // The last prefix comes from a channel error, for example after a `get` from a queue that the connected user
        // cannot read.
        401 if ["Access refused", "User not authorised", "ACCESS_REFUSED"]
            .iter()
            .any(|prefix| reason.starts_with(prefix)) =>
        {
            BrokerError::AccessRefused { username, request, reason }
        }
        401 => BrokerError::Unauthorized { username, reason },
        403 => BrokerError::AccessRefused { username, request, reason },
        // `rabbit_amqqueue:not_found_or_absent`: the queue exists, but its node is down.
        404 if reason.contains("home node") => BrokerError::HomeNodeDown { request, reason },
        404 => BrokerError::NotFound { request, reason },
        // LavinMQ sends the second reason, which does not name the argument.
        400 if reason.contains("inequivalent arg") || reason.contains("declared with other arguments") => {
            BrokerError::Inequivalent { request, reason }
        }
        // `failed to declare .. because the operation timed out`: the metadata store temporarily had no majority.
        // `cluster_not_formed`: the members of a quorum queue did not start in time, and the broker deleted them
        // (3.10.8, under load).
        400 if reason.contains("operation timed out") || reason.contains("cluster_not_formed") => {
            BrokerError::Unavailable { request, status, reason }
        }
        408 | 429 | 500..=599 => BrokerError::Unavailable { request, status, reason },
        _ => BrokerError::Refused { request, status, reason },
    })
}

/// Returns the broker's error message from the `reason` field, or from the `error` field if the `reason` field is
/// missing. Returns `None` if the body is not a JSON object with one of these fields.
fn reason(body: &[u8]) -> Option<String> {
    let Ok(Value::Object(answer)) = serde_json::from_slice(body) else { return None };
    let reason = answer.get("reason").or_else(|| answer.get("error"))?;
    // Some reasons are not strings, for example `["not_boolean",1]`.
    Some(sanitize(&unescape_html(&reason.as_str().map_or_else(|| reason.to_string(), str::to_owned))))
}

/// Unescapes the HTML entities that some reasons contain on 4.0 and earlier, for example `&lt;&lt;"x"&gt;&gt;`.
fn unescape_html(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}

/// Returns the start of a response body, without HTML tags and with each run of whitespace replaced by one space.
fn excerpt(body: &[u8]) -> String {
    // This length suffices for the tags before the first words.
    let text = String::from_utf8_lossy(&body[..body.len().min(16 * 1024)]);
    let mut bare = String::new();
    let mut in_tag = false;
    for character in text.chars() {
        match character {
            '<' => {
                in_tag = true;
                bare.push(' ');
            }
            '>' => in_tag = false,
            other if !in_tag => bare.push(other),
            _ => {}
        }
    }
    let words: Vec<_> = bare.split_whitespace().collect();
    let line = words.join(" ");
    let short: String = line.chars().take(EXCERPT_LENGTH).collect();
    let is_cut = short.len() < line.len();
    sanitize(&if is_cut { format!("{short}…") } else { short })
}

/// Returns the target of a redirect without credentials. Removes the query and the fragment.
fn without_secrets(location: &str) -> String {
    if location.starts_with('/') && !location.starts_with("//") {
        return location.split(['?', '#']).next().unwrap_or_default().to_owned();
    }
    redacted_url(location)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, content_type: &str, body: &str) -> BrokerError {
        let request = Request::get("/api/queues/v");
        let raw = RawResponse {
            status,
            content_type: Some(content_type),
            location: Some("https://me:secret@sso/login?token=1"),
            body: body.as_bytes(),
        };
        check(raw, RequestContext { url: "http://h:15672", username: "me", request: &request }).unwrap_err()
    }

    fn json(status: u16, reason: &str) -> BrokerError {
        let body = serde_json::json!({"error": "x", "reason": reason}).to_string();
        error(status, "application/json", &body)
    }

    #[test]
    fn reasons_of_401_are_distinguished() {
        assert!(matches!(json(401, "Login failed"), BrokerError::Unauthorized { .. }));
        assert!(matches!(json(401, "Not_Authorized"), BrokerError::Unauthorized { .. }));
        assert!(matches!(json(401, "Access refused."), BrokerError::AccessRefused { .. }));
        assert!(matches!(json(401, "User not authorised to access virtual host"), BrokerError::AccessRefused { .. }));
        let channel = "ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'u'";
        assert!(matches!(json(401, channel), BrokerError::AccessRefused { .. }));
        assert!(matches!(json(401, "Not management user"), BrokerError::WrongTag { .. }));
        assert!(matches!(json(401, "User not authorised to access object"), BrokerError::WrongTag { .. }));
    }

    #[test]
    fn reasons_of_400_and_404_are_distinguished() {
        let inequivalent =
            "inequivalent arg 'x-message-ttl' for queue 'q' in vhost 'v': received '1' but current is '2'";
        assert!(matches!(json(400, inequivalent), BrokerError::Inequivalent { reason, .. } if reason == inequivalent));
        assert!(!json(400, inequivalent).is_transient());
        assert!(json(400, "failed to declare queue because the operation timed out").is_transient());
        assert!(json(400, "Cannot declare quorum queue 'q' in vhost 'v': cluster_not_formed").is_transient());
        assert!(matches!(json(400, "queue 'q' in vhost 'v' not empty"), BrokerError::Refused { status: 400, .. }));
        assert!(matches!(json(404, "Not Found"), BrokerError::NotFound { .. }));
        let down = "home node 'a@b' of durable queue 'q' in vhost 'v' is down or inaccessible";
        assert!(matches!(json(404, down), BrokerError::HomeNodeDown { .. }));
        let error = error(400, "application/json", r#"{"error":"bad_request","reason":["not_boolean",1]}"#);
        assert_eq!(error.to_string(), r#"the broker refused GET /api/queues/v: 400 ["not_boolean",1]"#);
        assert!(json(400, "&lt;&lt;\"a\"&gt;&gt; &amp;lt;").to_string().ends_with(r#"<<"a">> &lt;"#));
    }

    #[test]
    fn statuses_429_and_5xx_are_transient() {
        for status in [429, 500, 502, 503, 504] {
            assert!(json(status, "x").is_transient(), "{status}");
            assert!(error(status, "text/html", "<h1>Bad Gateway</h1>").is_transient(), "{status}");
        }
        assert!(error(500, "", "").is_transient());
    }

    #[test]
    fn html_is_not_a_management_api() {
        let page = "<!doctype html><html><head><title>Sign in</title></head>\n<body>  Welcome to the proxy";
        for status in [200, 401, 404] {
            let message = error(status, "text/html", page).to_string();
            assert_eq!(
                message,
                format!(
                    "http://h:15672 is not a RabbitMQ management API: it returned {status} with text/html for \
                     GET /api/queues/v: Sign in Welcome to the proxy"
                )
            );
        }
    }

    #[test]
    fn redirects_do_not_contain_secrets() {
        assert_eq!(
            error(302, "text/html", "").to_string(),
            "http://h:15672 redirects to https://sso/login; use that URL if it is the broker's"
        );
    }
}
