//! A small client of the management API. It is independent of topo's own client, so that an error in one of them is
//! visible.

use std::error::Error;
use std::time::Duration;

use serde_json::Value;

use super::Tls;
use super::wait::{try_block_on, until};

/// The number of attempts after a 500, and the pause between attempts.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(300);

/// The management API at a URL, used as one user.
pub(crate) struct Http {
    client: reqwest::Client,
    base: String,
    user: String,
    password: String,
}

/// A response. A body that is not JSON is a string; a missing body is null.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// Returns the body if the status matches. Panics with the broker's response otherwise.
    pub(crate) fn expect_status(self, status: u16) -> Value {
        assert_eq!(self.status, status, "the broker answered: {}", self.body);
        self.body
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the body of a 200, and null for a 404. Panics otherwise.
    pub(crate) fn found(self) -> Value {
        if self.status == 404 { Value::Null } else { self.expect_status(200) }
    }
}

fn builder() -> reqwest::ClientBuilder {
    // The first caller sets the provider; a second call is not an error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // RabbitMQ 4.3 closes a connection that was idle for 5 s; older versions close it after 60 s.
    let builder = reqwest::Client::builder().no_proxy().pool_idle_timeout(Duration::from_secs(3));
    // Without this setting, a machine without a CA bundle could not create a client for HTTP.
    builder.tls_certs_only([])
}

impl Http {
    /// Returns a client without TLS: `Http::to("http://127.0.0.1:1234", "guest", "guest")`.
    pub(crate) fn to(base: &str, user: &str, password: &str) -> Self {
        Self::with(builder(), base, user, password)
    }

    /// Returns a client with TLS, which trusts only this CA, and optionally sends the client certificate.
    pub(crate) fn to_tls(base: &str, user: &str, password: &str, tls: &Tls, show_certificate: bool) -> Self {
        let ca = reqwest::Certificate::from_pem(tls.ca().as_bytes()).expect("rcgen writes PEM");
        let mut builder = builder().tls_certs_only([ca]);
        if show_certificate {
            builder = builder.identity(reqwest::Identity::from_pem(tls.client().as_bytes()).expect("rcgen writes PEM"));
        }
        Self::with(builder, base, user, password)
    }

    fn with(builder: reqwest::ClientBuilder, base: &str, user: &str, password: &str) -> Self {
        let client = builder.build().expect("the settings fit together");
        Self { client, base: base.to_owned(), user: user.to_owned(), password: password.to_owned() }
    }

    /// Sends a request. Returns an error with its causes (`a: b: c`) only if no response arrives.
    pub(crate) fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer, String> {
        let method = method.parse().expect("an HTTP method");
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        request = request.basic_auth(&self.user, Some(&self.password));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answered = try_block_on(async {
            let response = request.send().await?;
            let status = response.status().as_u16();
            let text = response.text().await?;
            let body = match text.as_str() {
                "" => Value::Null,
                text => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
            };
            Ok(Answer { status, body })
        });
        answered.ok_or("no answer in time")?.map_err(|error: reqwest::Error| {
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            text
        })
    }

    /// Sends a request with a raw body, such as JSON that `Value` cannot represent.
    pub(crate) fn send_text(&self, method: &str, path: &str, body: &str) -> Answer {
        let method = method.parse().expect("an HTTP method");
        let request = self.client.request(method, format!("{}{path}", self.base)).body(body.to_owned());
        let request = request.header("content-type", "application/json").basic_auth(&self.user, Some(&self.password));
        let answered = try_block_on(async {
            let response = request.send().await?;
            let status = response.status().as_u16();
            response.text().await.map(|text| Answer { status, body: Value::String(text) })
        });
        answered.expect("an answer in time").expect("a connection")
    }

    fn answer(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.send(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.answer("GET", path, None)
    }

    /// Reads a list or a definitions file. Retries after a 500, with which 3.10 responds in two cases:
    /// - It declares a stream in any of the vhosts (`facts::reads::lists_fail_while_a_stream_is_declared`).
    /// - Two clients read the same list for the first time (`rabbit_mgmt_db_cache:fetch/4`, `already_started`).
    pub(crate) fn list(&self, path: &str) -> Value {
        until(path, || Some(self.get(path)).filter(|answer| answer.status != 500)).expect_status(200)
    }

    /// Sends a PUT. Retries after a 500, which a quorum queue causes during slow elections. A request that crashes the
    /// broker causes a 500 each time.
    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        let mut answer = self.answer("PUT", path, Some(body));
        for _ in 1..TRIES {
            if answer.status < 500 || !path.starts_with("/api/queues/") {
                break;
            }
            std::thread::sleep(PAUSE);
            answer = self.answer("PUT", path, Some(body));
        }
        answer
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.answer("POST", path, Some(body))
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.answer("DELETE", path, None)
    }
}
