//! Implements the socket of an AMQP connection: connects, performs the TLS handshake, and records the broker's
//! greeting.
//!
//! The AMQP library's own TLS support would add sixty crates for certificate formats such as PKCS #12. topo therefore
//! provides its own socket type to the library. TLS uses the same files and flags as HTTP, and can skip certificate
//! verification, which the library does not support.
//!
//! The greeting is the first frame, which the broker sends before the login. The greeting contains the cluster name,
//! which the library does not expose.

use super::address::AmqpOptions;
use super::field_table::{Entries, long};
use super::frames::{Bytes, Frames};
use crate::broker::error::BrokerError;
use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures_util::io::{AsyncRead as FuturesRead, AsyncWrite as FuturesWrite};
use futures_util::stream::Stream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

/// The timeout for opening the TCP connection. An open port responds immediately, but a port behind a firewall may
/// never respond.
const TCP_TIMEOUT: Duration = Duration::from_secs(5);

/// The socket type that the library expects.
pub(super) type Socket = Compat<Box<dyn Bytes>>;

/// The Tokio runtime with this socket type.
pub(super) type Sockets = RuntimeParts<Tokio, Reactors>;

/// Returns the caller's runtime, with this socket type.
pub(super) fn runtime() -> Runtime<Sockets> {
    Runtime::new(RuntimeParts::new(Tokio::current(), Reactors(Tokio::current())))
}

/// Connects, performs the TLS handshake if configured, and records the broker's greeting.
pub(super) async fn connect(
    host: &str,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    greeting: Greeting,
) -> io::Result<Socket> {
    let stream = tokio::time::timeout(TCP_TIMEOUT, TcpStream::connect((host, port))).await??;
    stream.set_nodelay(true)?;
    let bytes: Box<dyn Bytes> = match tls {
        None => Box::new(stream),
        Some(config) => {
            let name = ServerName::try_from(host.to_owned());
            let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            Box::new(TlsConnector::from(config).connect(name, stream).await?)
        }
    };
    let bytes: Box<dyn Bytes> = Box::new(Frames::new(Box::new(TeeStream { bytes, greeting })));
    Ok(bytes.compat())
}

/// Tokio's reactor, with this socket type.
#[derive(Clone, Debug)]
pub(super) struct Reactors(Tokio);

impl Reactor for Reactors {
    type TcpStream = Socket;
    type Sleep = <Tokio as Reactor>::Sleep;

    // Not supported, because the library never registers a socket that was opened elsewhere.
    fn register<H: Read + Write + Send + 'static>(
        &self,
        _: H,
    ) -> io::Result<impl FuturesRead + FuturesWrite + Send + Unpin + 'static> {
        Err::<Socket, _>(io::ErrorKind::Unsupported.into())
    }

    fn sleep(&self, time: Duration) -> Self::Sleep {
        self.0.sleep(time)
    }

    fn interval(&self, time: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(time)
    }

    #[allow(clippy::manual_async_fn, reason = "an async fn would borrow self, and this future must not")]
    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        async move { connect(&address.ip().to_string(), address.port(), None, Greeting::default()).await }
    }
}

/// The maximum number of recorded bytes. The first frame of a broker is much smaller.
const MAX_BYTES: usize = 8192;
/// The length of the fields before the server properties in the first frame: frame header, class and method, and
/// protocol version.
const HEADER: usize = 7 + 4 + 2;

/// The first bytes from the broker.
#[derive(Clone, Default)]
pub(super) struct Greeting(Arc<Mutex<Vec<u8>>>);

impl Greeting {
    /// Clears the bytes for a new connection.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn add(&self, bytes: &[u8]) {
        let mut greeting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_BYTES.saturating_sub(greeting.len());
        greeting.extend(bytes.iter().take(room));
    }

    /// Returns the `cluster_name` server property in `connection.start`; `None` if the greeting does not contain the
    /// property.
    pub(super) fn cluster(&self) -> Option<String> {
        let greeting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A method on channel 0: `connection.start`.
        let is_start = greeting.starts_with(&[1, 0, 0]) && greeting.get(7..11) == Some(&[0, 10, 0, 10]);
        let (table, _) = long(greeting.get(HEADER..).filter(|_| is_start)?)?;
        string(table, b"cluster_name")
    }
}

/// Returns the string value of the entry with the name `desired` in a table.
fn string(table: &[u8], desired: &[u8]) -> Option<String> {
    let entry = Entries(table).find(|entry| entry.name == desired && entry.kind == b'S')?;
    String::from_utf8(entry.value.to_vec()).ok()
}

/// A stream that records the first bytes that it reads.
pub(super) struct TeeStream {
    pub(super) bytes: Box<dyn Bytes>,
    pub(super) greeting: Greeting,
}

impl AsyncRead for TeeStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.bytes).poll_read(context, into);
        self.greeting.add(&into.filled()[before..]);
        read
    }
}

impl AsyncWrite for TeeStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(context)
    }
}

/// Builds the TLS configuration. With `insecure`, accepts any certificate. Otherwise, trusts only the specified CA
/// certificates. If none are specified, trusts the system's authorities and Mozilla's list.
pub(super) fn tls_config(options: &AmqpOptions) -> Result<ClientConfig, BrokerError> {
    let provider = Arc::new(ring::default_provider());
    let unusable = |what: &'static str| move |reason: String| BrokerError::Certificate { what, reason };
    let trust = if options.ca_cert.is_some() { "CA certificate" } else { "TLS configuration" };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(trust)(error.to_string()))?;
    let builder = if options.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else if let Some(pem) = &options.ca_cert {
        builder.with_root_certificates(authorities(pem).map_err(unusable(trust))?)
    } else {
        let mozilla = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned();
        let system = Verifier::new_with_extra_roots(mozilla, provider);
        let system = system.map_err(|error| unusable(trust)(error.to_string()))?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(system))
    };
    let Some(client) = &options.client_cert else { return Ok(builder.with_no_client_auth()) };
    let unusable = unusable("client certificate or its key");
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&client.cert).collect();
    let chain = chain.map_err(|error| unusable(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&client.key).map_err(|error| unusable(error.to_string()))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| unusable(error.to_string()))
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        store.add(certificate).map_err(|error| error.to_string())?;
    }
    if store.is_empty() {
        return Err("it contains no certificate (expected PEM)".to_owned());
    }
    Ok(store)
}

/// The verifier for `--insecure`. Accepts any certificate, but verifies that the broker has the private key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: u8, value: &[u8]) -> Vec<u8> {
        let length = if kind == b't' { Vec::new() } else { u32::try_from(value.len()).unwrap().to_be_bytes().to_vec() };
        [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), &[kind], &length, value].concat()
    }

    fn start(table: &[u8]) -> Vec<u8> {
        let length = u32::try_from(table.len()).unwrap().to_be_bytes();
        let payload = [&[0, 10, 0, 10, 0, 9], &length[..], table].concat();
        let size = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&[1, 0, 0], &size[..], &payload, &[206]].concat()
    }

    fn cluster(bytes: &[u8]) -> Option<String> {
        let greeting = Greeting::default();
        bytes.iter().for_each(|byte| greeting.add(&[*byte]));
        greeting.cluster()
    }

    #[test]
    fn cluster_name_is_read_from_the_greeting() {
        let capabilities = entry("capabilities", b'F', &entry("cluster_name", b't', &[1]));
        let name = entry("cluster_name", b'S', "rabbit@prodé".as_bytes());
        let greeting = start(&[capabilities.clone(), name, entry("product", b'S', b"RabbitMQ")].concat());
        assert_eq!(cluster(&greeting).as_deref(), Some("rabbit@prodé"));
        for end in 0..greeting.len() {
            // A truncated greeting never results in a different name.
            assert!(cluster(&greeting[..end]).is_none_or(|name| name == "rabbit@prodé"), "{end}");
        }
        assert_eq!(cluster(&start(&capabilities)), None);
        assert_eq!(cluster(&start(&entry("cluster_name", b'T', &[0; 8]))), None);
        assert_eq!(cluster(b"HTTP/1.1 400 Bad Request\r\n"), None);
    }
}
