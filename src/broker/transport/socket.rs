//! The socket under AMQP, with TLS or without.
//!
//! The library can do TLS itself, and brings sixty crates for the forms of certificates that it takes, PKCS #12 among
//! them. Its runtime is told another kind of socket instead, and TLS is the one of HTTP.

use super::frames::Frames;
use super::greeting::{Heard, TeeStream};
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

/// Bytes go in and out, encrypted or not.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// In the library's terms.
pub(super) type Socket = Compat<Box<dyn Bytes>>;

/// Tokio, with such sockets.
pub(super) type Sockets = RuntimeParts<Tokio, Reactors>;

/// The runtime that this is called in.
pub(super) fn runtime() -> Runtime<Sockets> {
    Runtime::new(RuntimeParts::new(Tokio::current(), Reactors(Tokio::current())))
}

/// Connects, and shakes hands where there is TLS to speak. What the broker says first is overheard.
pub(super) async fn connect(host: &str, port: u16, tls: Option<Arc<ClientConfig>>, heard: Heard) -> io::Result<Socket> {
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
    let bytes: Box<dyn Bytes> = Box::new(Frames::new(Box::new(TeeStream { bytes, heard })));
    Ok(bytes.compat())
}

/// Tokio's reactor in all but its socket.
#[derive(Clone, Debug)]
pub(super) struct Reactors(Tokio);

impl Reactor for Reactors {
    type TcpStream = Socket;
    type Sleep = <Tokio as Reactor>::Sleep;

    // For sockets that others have opened; the library asks for none.
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
        async move { connect(&address.ip().to_string(), address.port(), None, Heard::default()).await }
    }
}
