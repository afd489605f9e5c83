//! Export to a syslog server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use control_state::AuditEntry;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::error::SyslogError;
use super::record;

/// Time limit of connecting, with name resolution and TLS.
const CONNECT: Duration = Duration::from_secs(10);
/// Time limit of one batch.
const SEND: Duration = Duration::from_secs(30);
/// Maximum size of a message in a datagram, bytes: the limit of UDP over IPv4 (RFC 5426, 3.2). The rest
/// is cut.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// A TCP or TLS stream.
trait SyslogStream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> SyslogStream for T {}

/// An open connection.
enum SyslogChannel {
    Datagrams(UdpSocket),
    Stream(Box<dyn SyslogStream>),
}

/// A syslog server, with the connection to it.
pub(super) struct Syslog {
    host: String,
    port: u16,
    /// `true` for UDP.
    is_udp: bool,
    tls: Option<Arc<rustls::ClientConfig>>,
    /// The open connection. `None` means that the next batch connects.
    channel: Option<SyslogChannel>,
    /// Host name of this node, for the headers.
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
            channel: None,
            sender: record::header_host(&name),
        }
    }

    /// Writes the records to the socket, in order. The protocol has no acknowledgement: records that
    /// a disappearing server did not read are lost, unless the socket reports it before the next write.
    pub(super) async fn send(&mut self, entries: &[Arc<AuditEntry>]) -> Result<(), SyslogError> {
        // The connection is taken out and put back only after a success: after an error or a timeout
        // a message may be half written, and the next one would be read as a part of it.
        let mut channel = match self.channel.take() {
            Some(channel) => channel,
            None => self.connect().await?,
        };
        let process = std::process::id();
        let messages = entries
            .iter()
            .map(|entry| record::syslog(entry, &self.sender, process));
        let sent = timeout(SEND, channel.write(messages)).await;
        sent.map_err(|_| SyslogError::NotRead(SEND))??;
        self.channel = Some(channel);
        Ok(())
    }

    /// Closes the connection.
    pub(super) fn close(&mut self) {
        self.channel = None;
    }

    async fn connect(&self) -> Result<SyslogChannel, SyslogError> {
        let dialled = timeout(CONNECT, self.dial()).await;
        dialled.unwrap_or(Err(SyslogError::NoAnswer(CONNECT)))
    }

    async fn dial(&self) -> Result<SyslogChannel, SyslogError> {
        let at = (self.host.as_str(), self.port);
        if self.is_udp {
            let found = tokio::net::lookup_host(at).await?.next();
            let to = found.ok_or_else(|| SyslogError::NoAddress(self.host.clone()))?;
            let any: SocketAddr = if to.is_ipv4() {
                (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
            } else {
                (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
            };
            let socket = UdpSocket::bind(any).await?;
            socket.connect(to).await?;
            return Ok(SyslogChannel::Datagrams(socket));
        }
        let stream = TcpStream::connect(at).await?;
        let Some(tls) = &self.tls else {
            return Ok(SyslogChannel::Stream(Box::new(stream)));
        };
        let name = ServerName::try_from(self.host.clone());
        let name = name.map_err(|source| SyslogError::NotTlsName {
            name: self.host.clone(),
            source,
        })?;
        let tls = TlsConnector::from(Arc::clone(tls));
        Ok(SyslogChannel::Stream(Box::new(
            tls.connect(name, stream).await?,
        )))
    }
}

impl SyslogChannel {
    async fn write(&mut self, messages: impl Iterator<Item = String>) -> io::Result<()> {
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

/// Fails if the server has closed the connection. A syslog server never sends data, so the only thing
/// to read is its end. Without this check the first batch after it would be lost without an error.
async fn closed(stream: &mut dyn SyslogStream) -> io::Result<()> {
    use tokio::io::AsyncReadExt as _;
    let mut byte = [0; 64];
    match futures::FutureExt::now_or_never(stream.read(&mut byte)) {
        Some(Ok(0)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(Err(error)) => Err(error),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// The last character boundary at or before `most` bytes.
fn floor_char_boundary(text: &str, most: usize) -> usize {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}
