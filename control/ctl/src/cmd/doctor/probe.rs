//! Probes of addresses: TCP connections, and QUIC version negotiation.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::time::timeout;

/// Longest wait for an answer of one address; then the probe fails.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of times that a packet is sent, as packets may get lost.
const PACKETS: u32 = 3;
/// A reserved version of QUIC, which every server refuses by version negotiation (RFC 9000 §15).
const NO_VERSION: [u8; 4] = [0x1a, 0x2a, 0x3a, 0x4a];
/// Smallest first packet of a connection, bytes. Servers drop shorter ones (RFC 9000 §14.1).
const INITIAL_BYTES: usize = 1200;

/// Host and port of an `http://` or `https://` address.
pub(super) fn host_and_port(url: &str) -> Option<(String, u16)> {
    let (rest, port) = match url.split_once("://")? {
        ("http", rest) => (rest, 80),
        ("https", rest) => (rest, 443),
        _ => return None,
    };
    let authority = rest.split(['/', '?']).next()?;
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => Some((host.to_owned(), port.parse().ok()?)),
        _ => Some((authority.to_owned(), port)),
    }
}

/// Measures the time to open a TCP connection, milliseconds.
pub(super) async fn tcp(url: &str) -> Result<u64, String> {
    let connect = async {
        let (host, port) = host_and_port(url).context("it is not a URL")?;
        let began = Instant::now();
        TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
        Ok(began.elapsed())
    };
    in_time(connect).await
}

/// Measures the time until a QUIC server answers, milliseconds. The probe offers a reserved version,
/// so that the server answers with the versions that it supports and opens no connection.
pub(super) async fn quic(address: &str) -> Result<u64, String> {
    in_time(async {
        let target = lookup_host(address).await?.next();
        let target = target.context("the name has no address")?;
        let any = if target.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(target).await?;
        let id = *uuid::Uuid::new_v4().as_bytes();
        let mut answer = [0; 2048];
        for _ in 0..PACKETS {
            let began = Instant::now();
            socket.send(&packet(id)).await?;
            let attempt = PROBE_TIMEOUT / (PACKETS + 1);
            let Ok(read) = timeout(attempt, socket.recv(&mut answer)).await else {
                continue;
            };
            if is_version_negotiation(&answer[..read?], id) {
                return Ok(began.elapsed());
            }
            bail!("the server does not speak QUIC");
        }
        bail!("no answer")
    })
    .await
}

async fn in_time(probe: impl Future<Output = Result<Duration>>) -> Result<u64, String> {
    match timeout(PROBE_TIMEOUT, probe).await {
        Ok(Ok(took)) => Ok(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        Ok(Err(error)) => Err(format!("{error:#}")),
        Err(_) => Err("no answer".to_owned()),
    }
}

/// The first packet of a connection, with the given ids.
fn packet(id: [u8; 16]) -> Vec<u8> {
    let (destination, source) = id.split_at(8);
    let mut packet = vec![0xc0];
    packet.extend(NO_VERSION);
    for id in [destination, source] {
        packet.push(8);
        packet.extend(id);
    }
    packet.resize(INITIAL_BYTES, 0);
    packet
}

/// `true` for the answer of a server that does not support the version: version 0, with the ids
/// swapped.
fn is_version_negotiation(answer: &[u8], id: [u8; 16]) -> bool {
    let (destination, source) = id.split_at(8);
    let expected: Vec<u8> = [&[0, 0, 0, 0, 8][..], source, &[8], destination].concat();
    answer.first().is_some_and(|byte| byte & 0x80 != 0) && answer[1..].starts_with(&expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (url, expected) in [
            ("http://127.0.0.1:4443", Some(("127.0.0.1", 4443))),
            ("https://mesh.example/x", Some(("mesh.example", 443))),
            ("http://[::1]:80/", Some(("[::1]", 80))),
            ("https://[::1]", Some(("[::1]", 443))),
            ("ftp://x", None),
            ("nonsense", None),
        ] {
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(host_and_port(url), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn who_answers_something_else_does_not_speak_quic() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap().to_string();
        let mut task = tokio::task::JoinSet::new();
        task.spawn(async move {
            let mut packet = [0; 2048];
            let (_, from) = server.recv_from(&mut packet).await.unwrap();
            server.send_to(b"hello", from).await.unwrap();
        });
        let error = quic(&address).await.unwrap_err();
        assert!(error.contains("does not speak QUIC"), "{error}");
    }
}
