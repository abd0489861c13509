//! The socket of an AMQP connection, with or without TLS.
//!
//! The TLS support of the AMQP library adds sixty crates for formats of certificates, such as PKCS #12. So topo gives
//! the runtime of the library another type of socket, with the TLS of HTTP.

use super::frames::Frames;
use super::greeting::{Greeting, TeeStream};
use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures_util::io::{AsyncRead as FuturesRead, AsyncWrite as FuturesWrite};
use futures_util::stream::Stream;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

/// A stream of bytes, encrypted or not.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// The socket as the library expects it.
pub(super) type Socket = Compat<Box<dyn Bytes>>;

/// The Tokio runtime with these sockets.
pub(super) type Sockets = RuntimeParts<Tokio, Reactors>;

/// Returns the runtime of the caller.
pub(super) fn runtime() -> Runtime<Sockets> {
    Runtime::new(RuntimeParts::new(Tokio::current(), Reactors(Tokio::current())))
}

/// Connects, performs the TLS handshake if configured, and records the greeting of the broker.
pub(super) async fn connect(
    host: &str,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    greeting: Greeting,
) -> io::Result<Socket> {
    let stream = TcpStream::connect((host, port)).await?;
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

/// The reactor of Tokio, with another socket.
#[derive(Clone, Debug)]
pub(super) struct Reactors(Tokio);

impl Reactor for Reactors {
    type TcpStream = Socket;
    type Sleep = <Tokio as Reactor>::Sleep;

    // Registers sockets that were opened elsewhere; the library never does this.
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

    #[allow(clippy::manual_async_fn, reason = "an async fn would borrow, and this future may not")]
    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        async move { connect(&address.ip().to_string(), address.port(), None, Greeting::default()).await }
    }
}
