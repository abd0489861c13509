//! The connection options of a broker. The command line reads files and the environment.

use super::base_url::BaseUrl;
use crate::model::Intervals;
use secrecy::SecretString;
use std::time::Duration;

/// The address, the credentials and the limits of a connection. `Debug` shows neither the password nor the key.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// The URL of the management API.
    pub base_url: BaseUrl,
    /// The user.
    pub username: String,
    /// The user's password.
    pub password: SecretString,
    /// The only trusted authorities, as PEM; `None` for those of the system and Mozilla's list.
    pub ca_cert: Option<Vec<u8>>,
    /// The client certificate with its chain and its key, as PEM.
    pub client_cert: Option<ClientCertificate>,
    /// True to accept any certificate of the broker.
    pub insecure: bool,
    /// The timeout of a request, from connecting to the last byte.
    pub timeout: Duration,
    /// The retries of a request.
    pub retries: Retries,
    /// The intervals in which the broker updates its counts.
    pub intervals: Intervals,
}

/// The client certificate for a broker that verifies its peers.
#[derive(Clone)]
pub struct ClientCertificate {
    /// PEM, leaf first.
    pub cert: Vec<u8>,
    /// PEM, not encrypted.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientCertificate([REDACTED])")
    }
}

/// Retries with exponential backoff and jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// The maximum number of attempts, including the first.
    pub attempts: usize,
    /// The first pause; each following pause is twice as long.
    pub first_pause: Duration,
    /// The longest pause.
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
    /// Options with a user, a password and defaults: a timeout of 30 s, and five attempts.
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
        }
    }
}
