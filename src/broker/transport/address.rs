//! Determines the AMQP address: the address that the user set, or the address of a broker listener on the host in the
//! management URL.

use crate::broker::base_url::BaseUrl;
use crate::broker::connection::Broker;
use crate::broker::error::BrokerError;
use crate::broker::options::{ClientCertificate, ConnectionOptions, Retries};
use crate::broker::read::{MAX_RETRIES, RETRY_INTERVAL};
use crate::broker::redact::is_unambiguous;
use crate::broker::wire::Listener;
use crate::model::VhostName;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use secrecy::SecretString;
use std::fmt;
use std::time::Duration;

/// The address of an AMQP listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmqpAddress {
    /// The host name or the IP address, without brackets.
    pub host: String,
    /// The port: by default 5672, or 5671 with TLS.
    pub port: u16,
    /// True if the port uses TLS.
    pub tls: bool,
}

/// An AMQP URL that the user set: an address with optional credentials.
#[derive(Clone, Debug)]
pub struct AmqpUrl {
    /// The address.
    pub address: AmqpAddress,
    /// The user name before the `@`, decoded.
    pub username: Option<String>,
    /// The password before the `@`, decoded.
    pub password: Option<SecretString>,
}

/// The reason why a string is not a valid AMQP URL. The message never contains the string, because the string may
/// contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnAmqpUrl {
    /// The string is not a URL, the URL has no host, or the URL contains an `@` after the host.
    #[error(
        "the URL is malformed; expected amqp://host:5672 or amqps://host:5671; percent-encode special characters in \
         the user name and password"
    )]
    Malformed,
    /// The scheme is neither `amqp` nor `amqps`, for example `http://`.
    #[error("the URL must start with amqp:// or amqps://")]
    Scheme,
    /// The URL has a path, which would be a vhost.
    #[error("the URL must not contain a path; topo uses the vhost of the plan")]
    Vhost,
    /// The URL contains `?` or `#`.
    #[error("the URL must not contain `?` or `#`")]
    Query,
}

/// The options for an AMQP connection. The `Debug` output contains neither the password nor the private key.
#[derive(Clone, Debug)]
pub struct AmqpOptions {
    /// The address.
    pub address: AmqpAddress,
    /// The vhost of the connection.
    pub vhost: VhostName,
    /// The user name.
    pub username: String,
    /// The user's password.
    pub password: SecretString,
    /// The CA certificates to trust instead of the system's authorities and Mozilla's list, in PEM format.
    pub ca_cert: Option<Vec<u8>>,
    /// The client certificate, for a broker that verifies its clients.
    pub client_cert: Option<ClientCertificate>,
    /// True to accept any broker certificate.
    pub insecure: bool,
    /// The timeout for connecting, and for each response from the broker.
    pub timeout: Duration,
    /// The settings for retries after a lost connection.
    pub retries: Retries,
}

impl AmqpUrl {
    /// Parses `amqp[s]://[user[:password]@]host[:port][/]`. The default port is 5672, or 5671 with TLS.
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
    /// Creates options with the user, the certificates, the timeout and the retries of the management API connection.
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

    /// Creates options as [`Self::new`] does, but with the address and the credentials of a URL that the user set.
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
    /// Returns the AMQP address of this broker: the host in the management URL, and the port of a listener. The
    /// listener uses TLS if and only if the management URL does. If topo sends the password over HTTPS, it therefore
    /// never sends the password over unencrypted AMQP, unless the user sets an AMQP URL.
    ///
    /// The broker shows its listeners only to users with the `monitoring` or `administrator` tag, and a proxy may map
    /// ports. Without a matching listener, the address has the default port.
    ///
    /// A broker that is starting accepts connections before `rabbit:is_running/0` returns true. Until then, its list of
    /// listeners is empty (for up to 0.2 s, measured on 4.0.5). If the list is empty, this function retries up to three
    /// times.
    pub async fn amqp_address(&self) -> Result<AmqpAddress, BrokerError> {
        let mut overview: Listeners = self.get("/api/overview").await?;
        for _ in 0..MAX_RETRIES {
            if overview.listeners.as_ref().is_none_or(|listed| !listed.is_empty()) {
                break;
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
            overview = self.get("/api/overview").await?;
        }
        Ok(address(self.base_url(), &overview))
    }

    /// Returns the cluster name that the management API reports; `None` if the API reports no name.
    pub async fn cluster_name(&self) -> Result<Option<String>, BrokerError> {
        Ok(self.get::<ClusterName>("/api/overview?columns=cluster_name").await?.cluster_name)
    }
}

#[derive(serde::Deserialize)]
struct ClusterName {
    cluster_name: Option<String>,
}

/// The fields in the response to `GET /api/overview` that concern listeners.
#[derive(serde::Deserialize)]
struct Listeners {
    /// The node that responded.
    node: Option<String>,
    /// `None` if the broker does not show its listeners to the connected user.
    listeners: Option<Vec<Listener>>,
}

fn address(url: &BaseUrl, overview: &Listeners) -> AmqpAddress {
    let tls = url.is_https();
    let protocol = if tls { "amqp/ssl" } else { "amqp" };
    let matching = || overview.listeners.iter().flatten().filter(|listener| listener.protocol == protocol);
    let local = matching().find(|listener| Some(&listener.node) == overview.node.as_ref());
    let port = local.or_else(|| matching().next()).map_or(default_port(tls), |listener| listener.port);
    AmqpAddress { host: url.host(), port, tls }
}

fn default_port(tls: bool) -> u16 {
    if tls { 5671 } else { 5672 }
}

/// Formats the address as a URL, such as `amqp://host:5672`.
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
    fn urls_are_parsed_or_refused_with_a_reason() {
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
    fn listener_of_the_local_node_is_preferred() {
        let overview = r#"{"node": "b", "listeners": [
            {"node": "a", "protocol": "amqp", "port": 1}, {"node": "b", "protocol": "amqp", "port": 2},
            {"node": "a", "protocol": "amqp/ssl", "port": 3}, {"node": "b", "protocol": "http", "port": 4}]}"#;
        let overview: Listeners = serde_json::from_str(overview).unwrap();
        let hidden: Listeners = serde_json::from_str("{}").unwrap();
        for (url, shown, default) in [
            ("http://h:15672/rabbit", "amqp://h:2", "amqp://h:5672"),
            ("https://h", "amqps://h:3", "amqps://h:5671"),
            ("http://[::1]:1", "amqp://[::1]:2", "amqp://[::1]:5672"),
        ] {
            let url = BaseUrl::parse(url).unwrap().url;
            assert_eq!(address(&url, &overview).to_string(), shown);
            assert_eq!(address(&url, &hidden).to_string(), default);
        }
        let unencrypted: Listeners =
            serde_json::from_str(r#"{"listeners": [{"node": "a", "protocol": "amqp", "port": 1}]}"#).unwrap();
        let url = BaseUrl::parse("https://h").unwrap().url;
        assert_eq!(
            address(&url, &unencrypted).to_string(),
            "amqps://h:5671",
            "an unencrypted port does not replace a missing TLS port"
        );
    }
}
