//! The options for connecting to a broker. The command line reads them from flags, files and the environment.

use super::base_url::BaseUrl;
use super::secrets::ReadSecret;
use crate::model::Intervals;
use secrecy::SecretString;
use std::time::Duration;

/// The address, the credentials and the limits of a connection. The `Debug` output contains neither the password nor
/// the private key.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// The URL of the management API.
    pub base_url: BaseUrl,
    /// The user name.
    pub username: String,
    /// The user's password.
    pub password: SecretString,
    /// The CA certificates, in PEM format, to trust instead of the system's authorities and Mozilla's list.
    pub ca_cert: Option<Vec<u8>>,
    /// The client certificate with its chain and its key; `None` if topo sends no client certificate.
    pub client_cert: Option<ClientCertificate>,
    /// True to accept any broker certificate.
    pub insecure: bool,
    /// The timeout for a request, from connecting to the last byte.
    pub timeout: Duration,
    /// The settings for retrying requests.
    pub retries: Retries,
    /// The intervals at which the broker updates its counts.
    pub intervals: Intervals,
    /// The function that reads the secrets of a spec. By default, no secret is set.
    pub read_secret: ReadSecret,
}

/// The client certificate for a broker that verifies its clients.
#[derive(Clone)]
pub struct ClientCertificate {
    /// The certificate chain in PEM format, with the client certificate first.
    pub cert: Vec<u8>,
    /// The unencrypted private key in PEM format.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientCertificate([REDACTED])")
    }
}

/// The settings for retries with exponential backoff and jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// The maximum number of attempts, including the first.
    pub attempts: usize,
    /// The pause before the first retry. Each subsequent pause is twice as long.
    pub first_pause: Duration,
    /// The maximum pause.
    pub longest_pause: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { attempts: 5, first_pause: Duration::from_millis(200), longest_pause: Duration::from_secs(5) }
    }
}

impl Retries {
    /// No retries: each request is sent once.
    pub const NONE: Self = Self { attempts: 1, first_pause: Duration::ZERO, longest_pause: Duration::ZERO };
}

impl ConnectionOptions {
    /// Creates options with defaults: a timeout of 30 s, up to five attempts, and no certificates.
    pub fn new(base_url: BaseUrl, username: impl Into<String>, password: SecretString) -> Self {
        Self {
            base_url,
            username: username.into(),
            password,
            ca_cert: None,
            client_cert: None,
            insecure: false,
            timeout: Duration::from_secs(30),
            retries: Retries::default(),
            intervals: Intervals::default(),
            read_secret: |_| Ok(None),
        }
    }
}
