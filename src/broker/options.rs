//! The connection options of a broker. The command line reads files and the environment.

use super::base_url::BaseUrl;
use crate::model::Intervals;
use secrecy::SecretString;
use std::time::Duration;

/// How to reach a broker, and as whom. Its `Debug` shows neither the password nor the key.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// Where its management API is.
    pub base_url: BaseUrl,
    /// The user.
    pub username: String,
    /// The user's password.
    pub password: SecretString,
    /// PEM; when given, the only authorities that are trusted. Otherwise those of the system and of Mozilla's list.
    pub ca_cert: Option<Vec<u8>>,
    /// PEM: the client certificate (with its chain) and its key.
    pub client_cert: Option<ClientCertificate>,
    /// Accepts any certificate of the broker.
    pub insecure: bool,
    /// For one request, from connecting to the last byte.
    pub timeout: Duration,
    /// How often and how patiently a request is tried.
    pub retries: Retries,
    /// How often the broker updates its counts.
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

/// Exponential back-off with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How often a request is sent at most; 1 is "once".
    pub attempts: usize,
    /// The first pause; each following is twice as long.
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
    /// Each request is sent once.
    pub const NONE: Self = Self { attempts: 1, first_pause: Duration::ZERO, longest_pause: Duration::ZERO };
}

impl ConnectionOptions {
    /// With a user and password, and the default for all else: a timeout of 30 s, and five attempts.
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
