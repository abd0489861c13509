//! A connection to a broker: sends requests, retries transient failures, and reads responses.
//!
//! Paths are sent as they are made: a `%2F` stays one. Nothing is followed, nothing is kept between requests.

use super::answer::{Asked, Raw, check};
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

/// No list of a vhost is larger (100,000 queues with their bindings are some 30 MB); an endless answer is.
const LARGEST_ANSWER: usize = 512 << 20;
/// A handshake takes no longer on a network that works.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// RabbitMQ 4.3 closes a connection that was idle for 5 s (older ones after 60 s; measured). What stands between may keep
/// the nearer half open, and then a request is sent to nobody.
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
    /// Whether two ticks of a quorum queue were observed within the intervals that are assumed.
    has_observed_ticks: AtomicBool,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Broker({})", self.0.base_url)
    }
}

/// A good answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// Its JSON.
    pub(super) fn json<T: DeserializeOwned>(&self, request: &Request) -> Result<T, BrokerError> {
        bounded(self.body.len(), || serde_json::from_slice(&self.body)).map_err(|error| BrokerError::Malformed {
            request: request.to_string(),
            detail: foreign(&error.to_string()),
        })
    }
}

impl Broker {
    /// Makes the client. Nothing is sent yet; what can fail are certificates and keys.
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
        // Fails when one is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let given = if ca_cert.is_some() { "CA certificate" } else { "TLS configuration" };
        let mut client = Client::builder()
            .redirect(redirect::Policy::none())
            .timeout(timeout)
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            .pool_idle_timeout(LONGEST_IDLE)
            .user_agent(concat!("topo/", env!("CARGO_PKG_VERSION")));
        if base_url.is_loopback() {
            // Packing takes the broker longer than the way saves: 150 ms for a list of ten thousand.
            client = client.no_proxy().gzip(false);
        }
        client = trust(client, &base_url, ca_cert.as_deref())?;
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
            // Some mistakes are found only when a client is made, and then nobody says in which of the files.
            Client::builder().tls_certs_only([]).identity(identity.clone()).build().map_err(unusable)?;
            client = client.identity(identity);
        }
        let client =
            client.build().map_err(|error| BrokerError::Certificate { what: given, reason: innermost(&error) })?;
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

    /// Where the broker is, without user info.
    pub fn shown_url(&self) -> String {
        self.0.base_url.to_string()
    }

    pub(super) fn base_url(&self) -> &BaseUrl {
        &self.0.base_url
    }

    /// As whom it is spoken to.
    pub fn username(&self) -> &str {
        &self.0.username
    }

    /// How often the broker updates its counts.
    pub fn intervals(&self) -> Intervals {
        self.0.intervals
    }

    /// Whether the tick of quorum queues is known: specified, or observed.
    pub(super) fn is_tick_known(&self) -> bool {
        self.0.has_observed_ticks.load(Ordering::Relaxed)
    }

    /// Records that the tick was observed to be as short as assumed.
    pub(super) fn tick_observed(&self) {
        self.0.has_observed_ticks.store(true, Ordering::Relaxed);
    }

    /// What the looks at totals so far have shown. Never held over an await.
    pub(super) fn emptiness(&self) -> MutexGuard<'_, Emptiness> {
        // Each change of it is whole, so a panic elsewhere leaves nothing half done.
        self.0.emptiness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads JSON, trying again what may go away.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: impl Into<String>) -> Result<T, BrokerError> {
        let request = Request::get(path);
        self.send(&request).await?.json(&request)
    }

    /// Sends a request, and sends it again when that may help. Not for deletes: what is there by then may be somebody's
    /// new object of the same name ([`Self::delete_once`]).
    pub(super) async fn send(&self, request: &Request) -> Result<Answer, BrokerError> {
        self.retrying(|| self.send_once(request)).await
    }

    /// Repeats what fails for a reason that may go away. An attempt that may have been carried out is not forgotten over
    /// a last one that never reached the broker, because the broker is gone by then.
    pub(super) async fn retrying<T, F>(&self, operation: impl FnMut() -> F) -> Result<T, BrokerError>
    where
        F: Future<Output = Result<T, BrokerError>>,
    {
        self.retrying_when(BrokerError::is_transient, operation).await
    }

    /// [`Self::retrying`], but only after such errors.
    pub(super) async fn retrying_when<T, F>(
        &self,
        again: fn(&BrokerError) -> bool,
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
        let mut doubtful = None;
        let result = operation
            .retry(pauses)
            .when(again)
            .notify(|error: &BrokerError, _| {
                if error.leaves_doubt() {
                    doubtful = Some(error.clone());
                }
            })
            .await;
        result.map_err(|last| match doubtful {
            Some(doubtful) if last.is_transient() && !last.leaves_doubt() => doubtful,
            Some(_) | None => last,
        })
    }

    /// Sends a request and reads the answer to its end.
    pub(super) async fn send_once(&self, request: &Request) -> Result<Answer, BrokerError> {
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
        // A body that grows is there twice for a moment.
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
        let mut body = Vec::with_capacity(announced.unwrap_or_default().min(LARGEST_ANSWER));
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                let detail = format!("it is larger than {} MiB", LARGEST_ANSWER >> 20);
                return Err(BrokerError::Malformed { request: request.to_string(), detail });
            }
            body.extend_from_slice(&chunk);
        }
        let raw = Raw { status, content_type: content_type.as_deref(), location: location.as_deref(), body: &body };
        check(raw, Asked { url: &self.shown_url(), username: &inner.username, request })?;
        Ok(Answer { status, body })
    }

    fn failure(&self, request: &Request, error: &reqwest::Error) -> BrokerError {
        if error.is_timeout() {
            let after = if error.is_connect() { CONNECT_TIMEOUT.min(self.0.timeout) } else { self.0.timeout };
            return BrokerError::Timeout { url: self.shown_url(), request: request.to_string(), after };
        }
        BrokerError::Connect { url: self.shown_url(), problem: ConnectProblem::of(error) }
    }
}

/// Whom to trust. Given authorities stand alone, so that a broker with a certificate of any public one is not believed.
/// Without TLS no authority is loaded at all: in an image without a CA bundle, reqwest builds no client otherwise. With
/// TLS, Mozilla's list is added to the system's for the same reason.
fn trust(client: ClientBuilder, url: &BaseUrl, ca_cert: Option<&[u8]>) -> Result<ClientBuilder, BrokerError> {
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

/// The last of the causes: the one that says something.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    foreign(&cause.to_string())
}
