//! A connection to a syslog server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use control_state::AuditEntry;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::record;

/// How long the way there may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a batch may take.
const SEND: Duration = Duration::from_secs(30);
/// The largest datagram over IPv4 (RFC 5426, 3.2 allows as much).
const DATAGRAM_BYTES_MAX: usize = 65_507;

trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

enum Way {
    Datagrams(UdpSocket),
    Stream(Box<dyn Stream>),
}

/// Where messages go, and the connection while there is one.
pub(super) struct Syslog {
    host: String,
    port: u16,
    /// Datagrams instead of a stream.
    is_udp: bool,
    tls: Option<Arc<rustls::ClientConfig>>,
    way: Option<Way>,
    /// This machine, for headers.
    sender: String,
}

impl Syslog {
    pub(super) fn new(
        host: &str,
        port: u16,
        is_udp: bool,
        tls: Option<Arc<rustls::ClientConfig>>,
    ) -> Self {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            host: host.to_owned(),
            port,
            is_udp,
            tls,
            way: None,
            sender: record::header_host(&name),
        }
    }

    /// Gives the records to the kernel, in order. The protocol has no answer: what a server that
    /// goes away had not read is lost unless the connection says so first.
    pub(super) async fn send(&mut self, entries: &[Arc<AuditEntry>]) -> Result<()> {
        let mut way = match self.way.take() {
            Some(way) => way,
            None => self.connect().await?,
        };
        let process = std::process::id();
        let messages = entries
            .iter()
            .map(|entry| record::syslog(entry, &self.sender, process));
        let sent = timeout(SEND, way.write(messages)).await;
        sent.context("it takes nothing more")??;
        self.way = Some(way);
        Ok(())
    }

    /// Gives the connection up.
    pub(super) fn close(&mut self) {
        self.way = None;
    }

    async fn connect(&self) -> Result<Way> {
        match timeout(CONNECT, self.dial()).await {
            Ok(way) => way,
            Err(_) => bail!("no answer within {} s", CONNECT.as_secs()),
        }
    }

    async fn dial(&self) -> Result<Way> {
        let at = (self.host.as_str(), self.port);
        if self.is_udp {
            let found = tokio::net::lookup_host(at).await?.next();
            let to = found.context("the name has no address")?;
            let any: SocketAddr = if to.is_ipv4() {
                (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
            } else {
                (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
            };
            let socket = UdpSocket::bind(any).await?;
            socket.connect(to).await?;
            return Ok(Way::Datagrams(socket));
        }
        let stream = TcpStream::connect(at).await?;
        let Some(tls) = &self.tls else {
            return Ok(Way::Stream(Box::new(stream)));
        };
        let name = ServerName::try_from(self.host.clone()).context("not a name for TLS")?;
        let tls = TlsConnector::from(Arc::clone(tls));
        Ok(Way::Stream(Box::new(tls.connect(name, stream).await?)))
    }
}

impl Way {
    async fn write(&mut self, messages: impl Iterator<Item = String>) -> Result<()> {
        match self {
            Self::Datagrams(socket) => {
                for message in messages {
                    let end = floor_char_boundary(&message, DATAGRAM_BYTES_MAX);
                    socket.send(&message.as_bytes()[..end]).await?;
                }
            }
            Self::Stream(stream) => {
                closed(stream.as_mut()).await?;
                for message in messages {
                    // Octet counting (RFC 6587, 3.4.1; RFC 5425, 4.3).
                    let framed = format!("{} {message}", message.len());
                    stream.write_all(framed.as_bytes()).await?;
                }
                stream.flush().await?;
            }
        }
        Ok(())
    }
}

/// A server never speaks: an end that came since is the one thing to read. Without this look the
/// first batch after it would be written into nothing.
async fn closed(stream: &mut dyn Stream) -> io::Result<()> {
    use tokio::io::AsyncReadExt as _;
    let mut byte = [0; 64];
    match futures::FutureExt::now_or_never(stream.read(&mut byte)) {
        Some(Ok(0)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(Err(error)) => Err(error),
        Some(Ok(_)) | None => Ok(()),
    }
}

fn floor_char_boundary(text: &str, most: usize) -> usize {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}
