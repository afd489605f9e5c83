//! Asks the servers.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rand::Rng as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::query::{AnswerFit, DnsQuery};

/// Time for an answer over UDP. The next server is asked then.
const UDP_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for a connection, and for an answer over it.
const TCP_TIMEOUT: Duration = Duration::from_secs(5);
/// Rounds through all servers.
const ROUNDS: usize = 2;
/// Datagrams that do not fit, after which the server is asked over TCP: somebody guesses.
const FOREIGN_MAX: usize = 16;
/// Largest datagram, bytes. What was asked for is smaller; the rest is cut off by the server.
const DATAGRAM_LEN_MAX: usize = 4096;

/// The answer to a query. `None` if no server answers.
///
/// Only an answer is taken that came from the address and port that was asked, to the port that the
/// kernel chose at random for this query alone, with its random id and its question in the same
/// random case. Without that case it must come over TCP, which nobody can forge without seeing it.
pub(super) async fn ask(
    servers: &[SocketAddr],
    query: &DnsQuery,
    over_tcp: bool,
) -> Option<Vec<u8>> {
    for round in 0..ROUNDS {
        for server in servers {
            let answer = if over_tcp {
                by_tcp(*server, query).await
            } else {
                by_udp(*server, query).await
            };
            match answer {
                Ok(answer) => return Some(answer),
                Err(error) => tracing::debug!(%server, round, %error, "no answer"),
            }
        }
    }
    None
}

fn own_query(query: &DnsQuery) -> Vec<u8> {
    let mut random = rand::rng();
    query.to_server(random.random(), &random.random())
}

async fn by_udp(server: SocketAddr, query: &DnsQuery) -> io::Result<Vec<u8>> {
    let any: SocketAddr = if server.is_ipv4() {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    // A socket for this query only: another port each time.
    let socket = UdpSocket::bind(any).await?;
    // From now on the kernel drops datagrams from anybody else.
    socket.connect(server).await?;
    let sent = own_query(query);
    socket.send(&sent).await?;
    let receive = async {
        let mut buffer = vec![0; DATAGRAM_LEN_MAX];
        for _ in 0..FOREIGN_MAX {
            let len = socket.recv(&mut buffer).await?;
            match DnsQuery::fit(&sent, &buffer[..len]) {
                AnswerFit::Exact => return Ok(Some(buffer[..len].to_vec())),
                AnswerFit::OtherCase => return Ok(None),
                AnswerFit::Foreign => {}
            }
        }
        io::Result::Ok(None)
    };
    match timeout(UDP_TIMEOUT, receive).await?? {
        Some(answer) => Ok(answer),
        None => by_tcp(server, query).await,
    }
}

async fn by_tcp(server: SocketAddr, query: &DnsQuery) -> io::Result<Vec<u8>> {
    let exchange = async {
        let mut stream = TcpStream::connect(server).await?;
        let sent = own_query(query);
        write_message(&mut stream, &sent).await?;
        let answer = read_message(&mut stream).await?;
        match DnsQuery::fit(&sent, &answer) {
            AnswerFit::Foreign => Err(io::ErrorKind::InvalidData.into()),
            AnswerFit::Exact | AnswerFit::OtherCase => Ok(answer),
        }
    };
    timeout(TCP_TIMEOUT, exchange).await?
}

/// Reads a message with its length before it (RFC 1035, 4.2.2).
pub(super) async fn read_message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let len = usize::from(stream.read_u16().await?);
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Writes a message with its length before it.
pub(super) async fn write_message(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let len = u16::try_from(message.len()).map_err(io::Error::other)?;
    let mut bytes = len.to_be_bytes().to_vec();
    bytes.extend(message);
    stream.write_all(&bytes).await
}
