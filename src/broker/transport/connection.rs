//! Implements an AMQP connection that reconnects when the connection is lost. Converts the broker's error
//! replies to the errors that the corresponding HTTP responses are converted to.

use super::address::AmqpOptions;
use super::socket;
use super::socket::Greeting;
use crate::broker::connect_problem::ConnectProblem;
use crate::broker::error::BrokerError;
use crate::broker::redact::sanitize;
use backon::{ExponentialBuilder, Retryable};
use lapin::protocol::{AMQPError, AMQPErrorKind};
use lapin::tcp::AsyncTcpStream;
use lapin::types::ShortString;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{Channel, ConnectionProperties, ErrorKind};
use rustls::ClientConfig;
use secrecy::ExposeSecret;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The maximum duration of a connection attempt, including the TLS and AMQP handshakes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of consecutive checks that must find the connection blocked before a request fails. During an alarm, the
/// broker stops reading from connections that publish, so it does not answer requests on a blocked connection.
const ALARM_CHECKS: u32 = 10;
/// The pause between two checks for an alarm.
const PAUSE: Duration = Duration::from_millis(200);
/// The reply codes for a frame that is too large or malformed.
const FRAME_ERROR: u16 = 501;
const SYNTAX_ERROR: u16 = 502;
/// The maximum number of retries after an error that may belong to a previous channel.
const CHANNEL_RETRIES: u32 = 3;

/// An AMQP connection to one vhost. The connection is restored after the loss of its socket.
pub(super) struct Connection {
    pub(super) options: AmqpOptions,
    tls: Option<Arc<ClientConfig>>,
    /// The broker's greeting.
    greeting: Greeting,
    /// The current connection; `None` before the first connection and after a close. The mutex ensures that concurrent
    /// callers replace a lost connection only once.
    live: Mutex<Option<Arc<lapin::Connection>>>,
}

impl Connection {
    /// Connects and logs in. Errors concern the certificates, the port, the login or the vhost.
    pub(super) async fn open(options: AmqpOptions) -> Result<Self, BrokerError> {
        let tls = if options.address.tls { Some(Arc::new(socket::tls_config(&options)?)) } else { None };
        let connection = Self { options, tls, greeting: Greeting::default(), live: Mutex::new(None) };
        connection.live().await?;
        Ok(connection)
    }

    /// Returns the connection. Restores a lost connection first.
    pub(super) async fn live(&self) -> Result<Arc<lapin::Connection>, BrokerError> {
        let mut live = self.live.lock().await;
        if let Some(connection) = live.as_ref().filter(|connection| connection.status().connected()) {
            return Ok(connection.clone());
        }
        let pauses = ExponentialBuilder::default()
            .with_min_delay(self.options.retries.first_pause)
            .with_max_delay(self.options.retries.longest_pause)
            .with_max_times(self.options.retries.attempts.saturating_sub(1))
            .with_jitter();
        let connection = (|| self.connect_once()).retry(pauses).when(BrokerError::is_transient).await?;
        Ok(live.insert(Arc::new(connection)).clone())
    }

    /// Returns the cluster name in the broker's greeting; `None` if the greeting does not contain the name, for example
    /// because of a proxy.
    pub(super) fn cluster(&self) -> Option<String> {
        self.greeting.cluster()
    }

    /// Returns true if the broker currently blocks this connection because of an alarm.
    pub(super) fn is_blocked(&self) -> bool {
        let live = self.live.try_lock();
        live.is_ok_and(|live| live.as_ref().is_some_and(|connection| connection.status().blocked()))
    }

    /// Opens a channel.
    pub(super) async fn channel(&self) -> Result<Channel, BrokerError> {
        let mut tries = 0;
        loop {
            let connection = self.live().await?;
            match self.answer("channel.open", connection.create_channel()).await {
                // Brokers do not answer `channel.open` with these errors. The error closed an earlier channel that
                // had the same number, and lapin 4 can report the error for the new channel.
                Err(BrokerError::Refused { .. } | BrokerError::Inequivalent { .. } | BrokerError::NotFound { .. })
                    if tries < CHANNEL_RETRIES =>
                {
                    tries += 1;
                    tokio::time::sleep(PAUSE / 10).await;
                }
                opened => return opened,
            }
        }
    }

    /// Closes the connection. Unacknowledged messages return to their queue.
    pub(super) async fn close(&self) {
        if let Some(connection) = self.live.lock().await.take() {
            // Ignores errors and a missing response.
            let _ = tokio::time::timeout(CONNECT_TIMEOUT, connection.close(200, "done".into())).await;
        }
    }

    async fn connect_once(&self) -> Result<lapin::Connection, BrokerError> {
        let options = &self.options;
        let uri = AMQPUri {
            // The stream below handles TLS. The scheme affects only the library's own TLS support.
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username: options.username.clone(),
                    password: options.password.expose_secret().to_owned(),
                },
                host: options.address.host.clone(),
                port: options.address.port,
            },
            vhost: options.vhost.as_str().to_owned(),
            query: AMQPQueryString::default(),
        };
        let properties = ConnectionProperties::default()
            .with_client_property("product".into(), "topo".into())
            .with_client_property("version".into(), env!("CARGO_PKG_VERSION").into())
            .with_connection_name("topo".into());
        let (tls, greeting) = (self.tls.clone(), self.greeting.clone());
        greeting.clear();
        let stream = async move |uri: AMQPUri, _| {
            let AMQPAuthority { host, port, .. } = uri.authority;
            Ok(AsyncTcpStream::Plain(socket::connect(&host, port, tls.clone(), greeting.clone()).await?))
        };
        let limit = CONNECT_TIMEOUT.min(options.timeout);
        let connecting = lapin::Connection::connector(uri, socket::runtime(), stream, properties);
        match tokio::time::timeout(limit, connecting).await {
            Ok(connected) => connected.map_err(|error| self.connect_error(&error)),
            Err(_) => Err(self.timeout("connection.open", limit)),
        }
    }

    /// Waits for the broker's reply. Fails after the timeout, or if an alarm blocks the connection for 2 s.
    pub(super) async fn answer<T>(
        &self,
        request: &str,
        answer: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T, BrokerError> {
        let alarm = async {
            let mut blocked = 0;
            while blocked < ALARM_CHECKS {
                tokio::time::sleep(PAUSE).await;
                blocked = if self.is_blocked() { blocked + 1 } else { 0 };
            }
        };
        tokio::select! {
            biased;
            answered = tokio::time::timeout(self.options.timeout, answer) => match answered {
                Ok(answered) => answered.map_err(|error| self.request_error(request, &error)),
                Err(_) => Err(self.timeout(request, self.options.timeout)),
            },
            () = alarm => {
                Err(BrokerError::Alarm { url: self.options.address.to_string(), request: request.to_owned() })
            }
        }
    }

    fn timeout(&self, request: &str, after: Duration) -> BrokerError {
        BrokerError::Timeout { url: self.options.address.to_string(), request: request.to_owned(), after }
    }

    /// Converts the error from a failed connection attempt.
    fn connect_error(&self, error: &lapin::Error) -> BrokerError {
        let url = self.options.address.to_string();
        let username = self.options.username.clone();
        if let Some(reply) = protocol_error(error) {
            let reason = sanitize(reply.get_message().as_str());
            return match reply.get_id() {
                403 => BrokerError::Unauthorized { username, reason },
                _ => {
                    let request = format!("connection.open to vhost {}", self.options.vhost);
                    BrokerError::AccessRefused { username, request, reason }
                }
            };
        }
        // The library's enum is non-exhaustive. Errors that do not concern the network keep the library's text.
        #[allow(clippy::wildcard_enum_match_arm)]
        let problem = match error.kind() {
            ErrorKind::IOError(error) => ConnectProblem::of_io(error),
            _ => ConnectProblem::Other(error_text(error)),
        };
        BrokerError::Connect { url, problem }
    }

    /// Converts the error from a request, which is an error reply or a lost connection.
    pub(super) fn request_error(&self, request: &str, error: &lapin::Error) -> BrokerError {
        let request = request.to_owned();
        let Some(reply) = protocol_error(error).filter(|reply| is_channel_error(reply)) else {
            let problem = ConnectProblem::Broken(error_text(error));
            return BrokerError::Connect { url: self.options.address.to_string(), problem };
        };
        let reason = sanitize(reply.get_message().as_str());
        match reply.get_id() {
            403 => BrokerError::AccessRefused { username: self.options.username.clone(), request, reason },
            404 if reason.contains("home node") => BrokerError::HomeNodeDown { request, reason },
            404 => BrokerError::NotFound { request, reason },
            406 if reason.contains("inequivalent arg") || reason.contains("declared with other arguments") => {
                BrokerError::Inequivalent { request, reason }
            }
            status => BrokerError::Refused { request, status, reason },
        }
    }
}

/// Returns the broker's error reply; `None` for other errors.
pub(super) fn protocol_error(error: &lapin::Error) -> Option<&AMQPError> {
    // The library's enum is non-exhaustive.
    #[allow(clippy::wildcard_enum_match_arm)]
    match error.kind() {
        ErrorKind::ProtocolError(error) => Some(error),
        _ => None,
    }
}

/// Returns true if the error closed only a channel, not the connection.
pub(super) fn is_channel_error(error: &AMQPError) -> bool {
    matches!(error.kind(), AMQPErrorKind::Soft(_))
}

/// Returns the reason if an error means that AMQP cannot carry a message. A retry would fail again.
pub(super) fn not_carried_reason(error: &lapin::Error) -> Option<String> {
    // The library's enum is non-exhaustive.
    #[allow(clippy::wildcard_enum_match_arm)]
    match error.kind() {
        // The library's text is not used, because it contains the message.
        ErrorKind::ParsingError(_) => Some("the AMQP library cannot parse it".to_owned()),
        ErrorKind::SerialisationError(_) => Some("the AMQP library cannot encode it".to_owned()),
        ErrorKind::ProtocolError(error) if matches!(error.get_id(), FRAME_ERROR | SYNTAX_ERROR) => {
            Some(sanitize(error.get_message().as_str()))
        }
        _ => None,
    }
}

/// Returns the message of an error. For an error reply from the broker, omits the library's prefix.
pub(super) fn error_text(error: &lapin::Error) -> String {
    sanitize(&protocol_error(error).map_or_else(|| error.to_string(), |error| error.get_message().to_string()))
}

/// Converts a name to an AMQP short string.
pub(super) fn short(name: &str) -> ShortString {
    name.into()
}
