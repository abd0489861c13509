//! Determines the AMQP address: the one that the user set, or the broker's own listener at the host of its management API.

use crate::broker::base_url::BaseUrl;
use crate::broker::connection::Broker;
use crate::broker::error::BrokerError;
use crate::broker::options::{ClientCertificate, ConnectionOptions, Retries};
use crate::broker::redact::is_unambiguous;
use crate::broker::wire::Listener;
use crate::model::VhostName;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use secrecy::SecretString;
use std::fmt;
use std::time::Duration;

/// An AMQP listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmqpAddress {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// Mostly 5672, or 5671 with TLS.
    pub port: u16,
    /// Whether the port uses TLS.
    pub tls: bool,
}

/// `amqp[s]://…` as people write it: where, and perhaps as whom.
#[derive(Clone, Debug)]
pub struct AmqpUrl {
    /// Where.
    pub address: AmqpAddress,
    /// The user in front of the `@`, decoded.
    pub username: Option<String>,
    /// The password in front of the `@`, decoded.
    pub password: Option<SecretString>,
}

/// Why a text is not an AMQP URL. It never repeats the text, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnAmqpUrl {
    /// Not a URL, or one without a host.
    #[error(
        "the URL cannot be read; it should look like amqp://host:5672 or amqps://host:5671, and what is special in a \
         user name or password must be percent-encoded"
    )]
    Malformed,
    /// `http://`, say.
    #[error("the URL must start with amqp:// or amqps://")]
    Scheme,
    /// A path, which would be a vhost.
    #[error("the URL must have no path: topo uses the vhost of the plan")]
    Vhost,
    /// A `?` or `#`.
    #[error("the URL must have no `?` and no `#`")]
    Query,
}

/// How to reach a broker over AMQP, and as whom. Its `Debug` shows neither the password nor the key.
#[derive(Clone, Debug)]
pub struct AmqpOptions {
    /// Where.
    pub address: AmqpAddress,
    /// The vhost of the connection.
    pub vhost: VhostName,
    /// The user.
    pub username: String,
    /// The user's password.
    pub password: SecretString,
    /// PEM; when given, the only authorities that are trusted.
    pub ca_cert: Option<Vec<u8>>,
    /// The client certificate for a broker that verifies its peers.
    pub client_cert: Option<ClientCertificate>,
    /// Accepts any certificate of the broker.
    pub insecure: bool,
    /// For connecting, and for each answer of the broker.
    pub timeout: Duration,
    /// How often and how patiently a lost connection is made again.
    pub retries: Retries,
}

impl AmqpUrl {
    /// Reads `amqp[s]://[user[:password]@]host[:port][/]`. Without a port it is 5672 or 5671.
    pub fn parse(text: &str) -> Result<Self, NotAnAmqpUrl> {
        let url = Url::parse(text.trim()).map_err(|_| NotAnAmqpUrl::Malformed)?;
        let tls = match url.scheme() {
            "amqp" => false,
            "amqps" => true,
            _ => return Err(NotAnAmqpUrl::Scheme),
        };
        if url.query().is_some() || url.fragment().is_some() {
            return Err(NotAnAmqpUrl::Query);
        }
        if !url.has_host() || !is_unambiguous(&url) {
            return Err(NotAnAmqpUrl::Malformed);
        }
        if !matches!(url.path(), "" | "/") {
            return Err(NotAnAmqpUrl::Vhost);
        }
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(NotAnAmqpUrl::Malformed)?;
        let host = decoded(host.trim_start_matches('[').trim_end_matches(']'));
        Ok(Self {
            address: AmqpAddress { host, port: url.port().unwrap_or(default_port(tls)), tls },
            username: Some(decoded(url.username())).filter(|name| !name.is_empty()),
            password: url.password().map(|password| SecretString::from(decoded(password))),
        })
    }
}

impl AmqpOptions {
    /// With the user, the certificates and the patience of the management API.
    pub fn new(address: AmqpAddress, vhost: &VhostName, http: &ConnectionOptions) -> Self {
        Self {
            address,
            vhost: vhost.clone(),
            username: http.username.clone(),
            password: http.password.clone(),
            ca_cert: http.ca_cert.clone(),
            client_cert: http.client_cert.clone(),
            insecure: http.insecure,
            timeout: http.timeout,
            retries: http.retries,
        }
    }

    /// The same at a URL that a person gave, as the user that may stand in it.
    pub fn at(url: AmqpUrl, vhost: &VhostName, http: &ConnectionOptions) -> Self {
        let mut options = Self::new(url.address, vhost, http);
        if let Some(username) = url.username {
            options.username = username;
        }
        if let Some(password) = url.password {
            options.password = password;
        }
        options
    }
}

impl Broker {
    /// Where this broker speaks AMQP: the host of the management URL, and the port of the listener that speaks TLS exactly
    /// if the management API does. A password that goes through TLS here never goes in the open there; who wants that
    /// says so by an AMQP URL.
    ///
    /// Listeners are shown to `monitoring` and `administrator` only, and a proxy in front may map ports: without one it is
    /// the port that is usual.
    pub async fn amqp_address(&self) -> Result<AmqpAddress, BrokerError> {
        let overview: Listeners = self.get("/api/overview").await?;
        Ok(address(self.base_url(), &overview))
    }

    /// The name of the cluster that the management API is of.
    pub async fn cluster_name(&self) -> Result<Option<String>, BrokerError> {
        Ok(self.get::<Named>("/api/overview?columns=cluster_name").await?.cluster_name)
    }
}

#[derive(serde::Deserialize)]
struct Named {
    cluster_name: Option<String>,
}

/// The part of `GET /api/overview` that topo reads.
#[derive(serde::Deserialize)]
struct Listeners {
    /// The node that answered.
    node: Option<String>,
    #[serde(default)]
    listeners: Vec<Listener>,
}

fn address(url: &BaseUrl, overview: &Listeners) -> AmqpAddress {
    let tls = url.is_https();
    let protocol = if tls { "amqp/ssl" } else { "amqp" };
    let spoken = || overview.listeners.iter().filter(|listener| listener.protocol == protocol);
    let here = spoken().find(|listener| Some(&listener.node) == overview.node.as_ref());
    let port = here.or_else(|| spoken().next()).map_or(default_port(tls), |listener| listener.port);
    AmqpAddress { host: url.host(), port, tls }
}

fn default_port(tls: bool) -> u16 {
    if tls { 5671 } else { 5672 }
}

/// `amqp://host:5672`.
impl fmt::Display for AmqpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, tls } = self;
        let scheme = if *tls { "amqps" } else { "amqp" };
        if host.contains(':') { write!(f, "{scheme}://[{host}]:{port}") } else { write!(f, "{scheme}://{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    #[test]
    fn urls() {
        let read = AmqpUrl::parse("amqps://me%40x:p%2Fw@host/").unwrap();
        assert_eq!(read.address, AmqpAddress { host: "host".to_owned(), port: 5671, tls: true });
        assert_eq!(read.username.as_deref(), Some("me@x"));
        assert_eq!(read.password.unwrap().expose_secret(), "p/w");
        let read = AmqpUrl::parse("amqp://[::1]:5000").unwrap();
        assert_eq!(read.address.host, "::1");
        assert_eq!(read.address.to_string(), "amqp://[::1]:5000");
        assert!(read.username.is_none() && read.password.is_none());
        for (text, expected) in [
            ("http://guest:secret@host", NotAnAmqpUrl::Scheme),
            ("host:5672", NotAnAmqpUrl::Scheme),
            ("amqp://host/shop", NotAnAmqpUrl::Vhost),
            ("amqp://host?heartbeat=1", NotAnAmqpUrl::Query),
            ("amqp://guest:secret@host:x", NotAnAmqpUrl::Malformed),
            ("amqp://", NotAnAmqpUrl::Malformed),
            ("amqp://guest:12/secret@host", NotAnAmqpUrl::Malformed),
            ("amqp://guest%3Asecret%40host", NotAnAmqpUrl::Malformed),
        ] {
            assert_eq!(AmqpUrl::parse(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn listeners_of_the_broker() {
        let overview = r#"{"node": "b", "listeners": [
            {"node": "a", "protocol": "amqp", "port": 1}, {"node": "b", "protocol": "amqp", "port": 2},
            {"node": "a", "protocol": "amqp/ssl", "port": 3}, {"node": "b", "protocol": "http", "port": 4}]}"#;
        let overview: Listeners = serde_json::from_str(overview).unwrap();
        let hidden: Listeners = serde_json::from_str("{}").unwrap();
        for (url, shown, usual) in [
            ("http://h:15672/rabbit", "amqp://h:2", "amqp://h:5672"),
            ("https://h", "amqps://h:3", "amqps://h:5671"),
            ("http://[::1]:1", "amqp://[::1]:2", "amqp://[::1]:5672"),
        ] {
            let url = BaseUrl::parse(url).unwrap().url;
            assert_eq!(address(&url, &overview).to_string(), shown);
            assert_eq!(address(&url, &hidden).to_string(), usual);
        }
        let open: Listeners =
            serde_json::from_str(r#"{"listeners": [{"node": "a", "protocol": "amqp", "port": 1}]}"#).unwrap();
        let url = BaseUrl::parse("https://h").unwrap().url;
        assert_eq!(address(&url, &open).to_string(), "amqps://h:5671", "never in the open because TLS is not there");
    }
}
