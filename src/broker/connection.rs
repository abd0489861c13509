//! A connection to a broker: sends requests, retries transient failures, and reads responses.
//!
//! Paths are sent unchanged, so `%2F` remains encoded. Redirects are not followed, and no cookies are kept.

use super::answer::{RawResponse, RequestContext, check};
use super::base_url::BaseUrl;
use super::connect_problem::ConnectProblem;
use super::emptiness::Emptiness;
use super::error::BrokerError;
use super::options::{ConnectionOptions, Retries};
use super::redact::foreign;
use crate::model::Intervals;
use crate::model::memory::bounded;
use crate::plan::request::{Method, Request};
use backon::{ExponentialBuilder, Retryable};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Certificate, Client, ClientBuilder, Identity, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The limit for endless responses. No list of a vhost is larger: 100,000 queues with bindings are about 30 MB.
const LARGEST_RESPONSE: usize = 512 << 20;
/// The maximum duration of a handshake on a working network.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// RabbitMQ 4.3 closes a connection that was idle for 5 s; older versions close it after 60 s (measured). A proxy in
/// between may keep its connection to topo open, and the next request would not reach the broker.
const LONGEST_IDLE: Duration = Duration::from_secs(3);

/// A broker that can be read and changed. Cheap to clone: clones share their connections.
#[derive(Clone)]
pub struct Broker(Arc<Inner>);

struct Inner {
    client: Client,
    base_url: BaseUrl,
    username: String,
    password: SecretString,
    timeout: Duration,
    retries: Retries,
    emptiness: Mutex<Emptiness>,
    intervals: Intervals,
    /// True if a user specified the tick, or if two ticks of a quorum queue were observed within the assumed interval.
    has_observed_ticks: AtomicBool,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Broker({})", self.0.base_url)
    }
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
        bounded(self.body.len(), || serde_json::from_slice(&self.body)).map_err(|error| BrokerError::Malformed {
            request: request.to_string(),
            detail: foreign(&error.to_string()),
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
        } = options;
        // Fails if a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let what = if ca_cert.is_some() { "CA certificate" } else { "TLS configuration" };
        let mut client = Client::builder()
            .redirect(redirect::Policy::none())
            .timeout(timeout)
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            .pool_idle_timeout(LONGEST_IDLE)
            .user_agent(concat!("topo/", env!("CARGO_PKG_VERSION")));
        if base_url.is_loopback() {
            // On loopback, compression costs the broker more time than it saves: 150 ms for a list of ten thousand.
            client = client.no_proxy().gzip(false);
        }
        client = set_trusted_authorities(client, &base_url, ca_cert.as_deref())?;
        if insecure {
            client = client.tls_danger_accept_invalid_certs(true);
        }
        if let Some(own) = client_cert {
            let pem = [own.cert.as_slice(), b"\n", own.key.as_slice()].concat();
            let unusable = |error: reqwest::Error| BrokerError::Certificate {
                what: "client certificate with its key",
                reason: innermost(&error),
            };
            let identity = Identity::from_pem(&pem).map_err(unusable)?;
            // Building a client detects further errors but does not name the file. This client has only the identity.
            Client::builder().tls_certs_only([]).identity(identity.clone()).build().map_err(unusable)?;
            client = client.identity(identity);
        }
        let client = client.build().map_err(|error| BrokerError::Certificate { what, reason: innermost(&error) })?;
        let emptiness = Mutex::new(Emptiness::new(intervals.longest_pause()));
        let has_observed_ticks = AtomicBool::new(intervals.is_tick_specified());
        Ok(Self(Arc::new(Inner {
            client,
            base_url,
            username,
            password,
            timeout,
            retries,
            emptiness,
            intervals,
            has_observed_ticks,
        })))
    }

    /// The URL of the broker, without user info.
    pub fn shown_url(&self) -> String {
        self.0.base_url.to_string()
    }

    pub(super) fn base_url(&self) -> &BaseUrl {
        &self.0.base_url
    }

    /// The user of the connection.
    pub fn username(&self) -> &str {
        &self.0.username
    }

    /// The intervals in which the broker updates its counts.
    pub fn intervals(&self) -> Intervals {
        self.0.intervals
    }

    /// Returns true if the tick of quorum queues is known: specified, or observed.
    pub(super) fn is_tick_known(&self) -> bool {
        self.0.has_observed_ticks.load(Ordering::Relaxed)
    }

    /// Records the observation that the tick is as short as assumed.
    pub(super) fn record_observed_tick(&self) {
        self.0.has_observed_ticks.store(true, Ordering::Relaxed);
    }

    /// The queues that were empty in the reads of totals so far. Callers must not hold the guard across an await.
    pub(super) fn emptiness(&self) -> MutexGuard<'_, Emptiness> {
        // Each update is complete in itself, so a panic of another thread leaves a consistent state.
        self.0.emptiness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads JSON, with retries after transient errors.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: impl Into<String>) -> Result<T, BrokerError> {
        let request = Request::get(path);
        self.send(&request).await?.json(&request)
    }

    /// Sends a request, with retries after transient errors. Not for deletes: between two attempts, another client may
    /// create an object of the same name ([`Self::delete_once`]).
    pub(super) async fn send(&self, request: &Request) -> Result<Response, BrokerError> {
        self.retrying(|| self.send_once(request)).await
    }

    /// Retries an operation after transient errors.
    ///
    /// # Errors
    /// The last error. If the last attempt did not reach the broker, the error of an earlier attempt that the broker
    /// may have processed.
    pub(super) async fn retrying<T, F>(&self, operation: impl FnMut() -> F) -> Result<T, BrokerError>
    where
        F: Future<Output = Result<T, BrokerError>>,
    {
        self.retrying_when(BrokerError::is_transient, operation).await
    }

    /// [`Self::retrying`] that retries only after the errors that `is_retryable` accepts.
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

    /// Sends a request once, and reads the whole response.
    pub(super) async fn send_once(&self, request: &Request) -> Result<Response, BrokerError> {
        let inner = &*self.0;
        let unaddressable =
            |segment: &str| BrokerError::Unaddressable { request: request.to_string(), segment: segment.to_owned() };
        if let Some(segment) = request.unaddressable() {
            return Err(unaddressable(segment));
        }
        let url = inner.base_url.join(&request.path).ok_or_else(|| unaddressable(&request.path))?;
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Put => reqwest::Method::PUT,
            Method::Post => reqwest::Method::POST,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut sent =
            inner.client.request(method, url).basic_auth(&inner.username, Some(inner.password.expose_secret()));
        if let Some(body) = &request.body {
            sent = sent.json(body);
        }
        let failed = |error: reqwest::Error| self.failure(request, &error);
        let mut response = sent.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (content_type, location) = (header(CONTENT_TYPE), header(LOCATION));
        // The capacity avoids reallocations, which hold the body in memory twice.
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
        let mut body = Vec::with_capacity(announced.unwrap_or_default().min(LARGEST_RESPONSE));
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > LARGEST_RESPONSE {
                let detail = format!("it is larger than {} MiB", LARGEST_RESPONSE >> 20);
                return Err(BrokerError::Malformed { request: request.to_string(), detail });
            }
            body.extend_from_slice(&chunk);
        }
        let raw =
            RawResponse { status, content_type: content_type.as_deref(), location: location.as_deref(), body: &body };
        check(raw, RequestContext { url: &self.shown_url(), username: &inner.username, request })?;
        Ok(Response { status, body })
    }

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
/// A given CA certificate replaces all public authorities. Otherwise, the client trusts those of the system and
/// Mozilla's list. Mozilla's list is necessary in an image without a CA bundle, where reqwest otherwise builds no
/// client. Without TLS, the client loads no authorities, for the same reason.
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

/// Returns the message of the root cause, which is the most specific one.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    foreign(&cause.to_string())
}
