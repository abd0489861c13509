//! The HTTP client for a broker: sends requests, retries transient failures, and reads responses.
//!
//! The client sends paths unchanged, so `%2F` remains encoded. It does not follow redirects, and does not store
//! cookies.

use super::answer::{RawResponse, RequestContext, check};
use super::base_url::BaseUrl;
use super::connect_problem::ConnectProblem;
use super::emptiness::Emptiness;
use super::error::BrokerError;
use super::options::{ClientCertificate, ConnectionOptions, Retries};
use super::redact::sanitize;
use super::secrets::Secrets;
use crate::model::Intervals;
use crate::model::memory::decode;
use crate::plan::request::{Method, Request};
use backon::{ExponentialBuilder, Retryable};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Certificate, Client, ClientBuilder, Identity, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum size of a response, in bytes. Lists are much smaller. For example, 100,000 queues with bindings take
/// about 30 MB.
const MAX_RESPONSE_BYTES: usize = 512 << 20;
/// The maximum duration of a connection attempt, including the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection can be idle and still be reused. RabbitMQ 4.3 closes idle connections after 5 s, and older
/// versions after 60 s (measured). A proxy may keep its connection to topo open after the broker has closed the
/// connection to the proxy. In that case, a request on an idle connection might not reach the broker.
const MAX_IDLE_TIME: Duration = Duration::from_secs(3);

/// A client that reads and changes a broker. Cloning is cheap, because clones share their connections.
#[derive(Clone)]
pub struct Broker(Arc<Inner>);

struct Inner {
    client: Client,
    base_url: BaseUrl,
    username: String,
    passwords: Mutex<Passwords>,
    timeout: Duration,
    retries: Retries,
    emptiness: Mutex<Emptiness>,
    intervals: Intervals,
    /// True if the user specified the tick interval, or if topo has observed ticks at the assumed interval.
    is_tick_known: AtomicBool,
    secrets: Secrets,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Broker({})", self.0.base_url)
    }
}

/// The passwords of the connected user.
#[derive(Clone)]
struct Passwords {
    current: SecretString,
    /// The password that the connected user has or will have after a change.
    next: Option<SecretString>,
}

/// A successful response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Response {
    /// Parses the body as JSON.
    pub(super) fn json<T: DeserializeOwned>(&self, request: &Request) -> Result<T, BrokerError> {
        decode(self.body.len(), || serde_json::from_slice(&self.body)).map_err(|error| BrokerError::Malformed {
            request: request.to_string(),
            detail: sanitize(&error.to_string()),
        })
    }
}

impl Broker {
    /// Creates the client, without sending a request.
    ///
    /// # Errors
    /// [`BrokerError::Certificate`] if a certificate or key cannot be used.
    pub fn connect(options: ConnectionOptions) -> Result<Self, BrokerError> {
        let ConnectionOptions {
            base_url,
            username,
            password,
            ca_cert,
            client_cert,
            insecure,
            timeout,
            retries,
            intervals,
            read_secret,
        } = options;
        // An error means that a provider is already installed, which is not a problem.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let what = if ca_cert.is_some() { "CA certificate" } else { "TLS configuration" };
        let mut client = Client::builder()
            .redirect(redirect::Policy::none())
            .timeout(timeout)
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            .pool_idle_timeout(MAX_IDLE_TIME)
            .user_agent(concat!("topo/", env!("CARGO_PKG_VERSION")));
        if base_url.is_loopback() {
            // On loopback, compression costs the broker more time than it saves: 150 ms for a list of 10,000 objects.
            client = client.no_proxy().gzip(false);
        }
        client = set_trusted_authorities(client, &base_url, ca_cert.as_deref())?;
        if insecure {
            client = client.tls_danger_accept_invalid_certs(true);
        }
        if let Some(ClientCertificate { cert, key }) = client_cert {
            let pem = [cert.as_slice(), b"\n", key.as_slice()].concat();
            let unusable = |error: reqwest::Error| BrokerError::Certificate {
                what: "client certificate or its key",
                reason: innermost(&error),
            };
            let identity = Identity::from_pem(&pem).map_err(unusable)?;
            // Building a client detects further errors, but the errors do not name the file. This client has only the
            // identity, so every error concerns the identity.
            Client::builder().tls_certs_only([]).identity(identity.clone()).build().map_err(unusable)?;
            client = client.identity(identity);
        }
        let client = client.build().map_err(|error| BrokerError::Certificate { what, reason: innermost(&error) })?;
        let emptiness = Mutex::new(Emptiness::new(intervals.longest_pause()));
        let is_tick_known = AtomicBool::new(intervals.is_tick_specified());
        Ok(Self(Arc::new(Inner {
            client,
            base_url,
            username,
            passwords: Mutex::new(Passwords { current: password, next: None }),
            timeout,
            retries,
            emptiness,
            intervals,
            is_tick_known,
            secrets: Secrets::new(read_secret),
        })))
    }

    /// Returns the management API URL, without user info.
    pub fn shown_url(&self) -> String {
        self.0.base_url.to_string()
    }

    pub(super) fn base_url(&self) -> &BaseUrl {
        &self.0.base_url
    }

    /// Returns true if the connection is encrypted or uses the loopback interface.
    pub fn is_private(&self) -> bool {
        self.0.base_url.is_https() || self.0.base_url.is_loopback()
    }

    /// Returns the user name of the connection.
    pub fn username(&self) -> &str {
        &self.0.username
    }

    /// Sets the password that topo uses once the broker no longer accepts the current password. A plan can change this
    /// user's password, and the response to the change can be lost.
    pub(super) fn set_next_password(&self, password: Option<SecretString>) {
        self.passwords().next = password;
    }

    /// Returns the passwords of the connected user. Callers must not hold the mutex guard across an await.
    fn passwords(&self) -> MutexGuard<'_, Passwords> {
        // No update leaves an inconsistent state, so a poisoned mutex can be used.
        self.0.passwords.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the secrets in the spec.
    pub fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    /// Returns the intervals at which the broker updates its counts.
    pub fn intervals(&self) -> Intervals {
        self.0.intervals
    }

    /// Returns true if the tick interval of quorum queues is known, because the user specified it or topo observed it.
    pub(super) fn is_tick_known(&self) -> bool {
        self.0.is_tick_known.load(Ordering::Relaxed)
    }

    /// Records that topo has observed ticks at the assumed interval.
    pub(super) fn record_observed_tick(&self) {
        self.0.is_tick_known.store(true, Ordering::Relaxed);
    }

    /// Returns the observations of empty queues. Callers must not hold the mutex guard across an await.
    pub(super) fn emptiness(&self) -> MutexGuard<'_, Emptiness> {
        // No update leaves an inconsistent state, so a poisoned mutex can be used.
        self.0.emptiness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a GET request and parses the JSON response, with retries after transient errors.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: impl Into<String>) -> Result<T, BrokerError> {
        let request = Request::get(path);
        self.send(&request).await?.json(&request)
    }

    /// Sends a request, with retries after transient errors. For deletes, use [`Self::delete_once`], because another
    /// client may create an object with the same name between two attempts.
    pub(super) async fn send(&self, request: &Request) -> Result<Response, BrokerError> {
        self.retrying(|| self.send_once(request)).await
    }

    /// Retries an operation after transient errors.
    ///
    /// # Errors
    /// The error from the last attempt. If the last attempt did not reach the broker because of a transient error, but
    /// an earlier attempt may have been processed, the error from the earlier attempt.
    pub(super) async fn retrying<T, F>(&self, operation: impl FnMut() -> F) -> Result<T, BrokerError>
    where
        F: Future<Output = Result<T, BrokerError>>,
    {
        self.retrying_when(BrokerError::is_transient, operation).await
    }

    /// Retries an operation like [`Self::retrying`], but only after errors for which `is_retryable` returns true.
    pub(super) async fn retrying_when<T, F>(
        &self,
        is_retryable: fn(&BrokerError) -> bool,
        operation: impl FnMut() -> F,
    ) -> Result<T, BrokerError>
    where
        F: Future<Output = Result<T, BrokerError>>,
    {
        let Retries { attempts, first_pause, longest_pause } = self.0.retries;
        let pauses = ExponentialBuilder::default()
            .with_min_delay(first_pause)
            .with_max_delay(longest_pause)
            .with_max_times(attempts.saturating_sub(1))
            .with_jitter();
        let mut uncertain_error = None;
        let result = operation
            .retry(pauses)
            .when(is_retryable)
            .notify(|error: &BrokerError, _| {
                if error.may_have_been_processed() {
                    uncertain_error = Some(error.clone());
                }
            })
            .await;
        result.map_err(|last| match uncertain_error {
            Some(uncertain_error) if last.is_transient() && !last.may_have_been_processed() => uncertain_error,
            Some(_) | None => last,
        })
    }

    /// Sends a request once, and reads the whole response. If the broker does not accept the password, and the password
    /// of the connected user may have changed, sends the request again with the new password.
    pub(super) async fn send_once(&self, request: &Request) -> Result<Response, BrokerError> {
        let Passwords { current, next } = self.passwords().clone();
        match (self.send_as(request, &current).await, next) {
            (Err(BrokerError::Unauthorized { .. }), Some(next)) => {
                let result = self.send_as(request, &next).await;
                if !matches!(result, Err(BrokerError::Unauthorized { .. })) {
                    *self.passwords() = Passwords { current: next, next: None };
                }
                result
            }
            (result, _) => result,
        }
    }

    async fn send_as(&self, request: &Request, password: &SecretString) -> Result<Response, BrokerError> {
        let inner = &*self.0;
        let unaddressable =
            |segment: &str| BrokerError::Unaddressable { request: request.to_string(), segment: segment.to_owned() };
        if let Some(segment) = request.unaddressable_segment() {
            return Err(unaddressable(segment));
        }
        let url = inner.base_url.join(&request.path).ok_or_else(|| unaddressable(&request.path))?;
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Put => reqwest::Method::PUT,
            Method::Post => reqwest::Method::POST,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut sent = inner.client.request(method, url).basic_auth(&inner.username, Some(password.expose_secret()));
        if let Some(body) = &request.body {
            sent = sent.json(body);
        }
        let failed = |error: reqwest::Error| self.failure(request, &error);
        let mut response = sent.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (content_type, location) = (header(CONTENT_TYPE), header(LOCATION));
        // The reserved capacity avoids reallocations, during which the body would be in memory twice.
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
        let mut body = Vec::with_capacity(announced.unwrap_or_default().min(MAX_RESPONSE_BYTES));
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                let detail = format!("it is larger than {} MiB", MAX_RESPONSE_BYTES >> 20);
                return Err(BrokerError::Malformed { request: request.to_string(), detail });
            }
            body.extend_from_slice(&chunk);
        }
        let raw =
            RawResponse { status, content_type: content_type.as_deref(), location: location.as_deref(), body: &body };
        check(raw, RequestContext { url: &self.shown_url(), username: &inner.username, request })?;
        Ok(Response { status, body })
    }

    /// Converts an error from the HTTP client.
    fn failure(&self, request: &Request, error: &reqwest::Error) -> BrokerError {
        if error.is_timeout() {
            let after = if error.is_connect() { CONNECT_TIMEOUT.min(self.0.timeout) } else { self.0.timeout };
            return BrokerError::Timeout { url: self.shown_url(), request: request.to_string(), after };
        }
        BrokerError::Connect { url: self.shown_url(), problem: ConnectProblem::of(error) }
    }
}

/// Sets the certificate authorities that the client trusts.
///
/// If `ca_cert` is set, the client trusts only its certificates. Otherwise, the client trusts the system's authorities
/// and Mozilla's list. In a container image that has no CA bundle, reqwest cannot build a client without Mozilla's
/// list. For an `http` URL, the client loads no authorities, so that it can also be built without a CA bundle.
fn set_trusted_authorities(
    client: ClientBuilder,
    url: &BaseUrl,
    ca_cert: Option<&[u8]>,
) -> Result<ClientBuilder, BrokerError> {
    let unusable = |reason: String| BrokerError::Certificate { what: "CA certificate", reason };
    if let Some(pem) = ca_cert {
        let authorities = Certificate::from_pem_bundle(pem).map_err(|error| unusable(innermost(&error)))?;
        if authorities.is_empty() {
            return Err(unusable("it contains no certificate (expected PEM)".to_owned()));
        }
        return Ok(client.tls_certs_only(authorities));
    }
    if !url.is_https() {
        return Ok(client.tls_certs_only([]));
    }
    let mozilla = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|der| Certificate::from_der(der));
    Ok(client.tls_certs_merge(mozilla.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(innermost(&error)))?))
}

/// Returns the message of the root cause, which is the most specific message.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    sanitize(&cause.to_string())
}
