//! Asks pixie's own sockets, as a machine would: a program whose sockets are open and do not answer boots
//! nothing.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proto_wire_tftp::{Packet, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::state::Shared;

/// Interval of probes.
const INTERVAL: Duration = Duration::from_secs(10);
/// Time within which a socket answers.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Failed probes in a row from which pixie does not do its work. Fewer are a moment of many machines.
const FAILURES_MAX: u32 = 3;
/// Begin of the answer to the request for the health page.
const HEALTHY: &[u8] = b"HTTP/1.1 200";

/// The results of probes so far.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct ProbeLog {
    has_answered: bool,
    /// Failures since the last answer.
    failures: u32,
    /// The last failure.
    problem: String,
}

impl ProbeLog {
    fn after(self, result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self {
                has_answered: true,
                ..Self::default()
            },
            Err(problem) => Self {
                failures: self.failures.saturating_add(1),
                problem,
                ..self
            },
        }
    }

    fn ailment(&self) -> Option<String> {
        if self.has_answered && self.failures < FAILURES_MAX {
            return None;
        }
        Some(match self.failures {
            0 => "its own sockets have not answered yet".to_owned(),
            _ => format!("its own sockets do not answer: {}", self.problem),
        })
    }
}

/// The newest result of the probes. Cheap to clone (`Arc`).
#[derive(Debug, Clone, Default)]
pub struct SelfProbe(Arc<Mutex<ProbeLog>>);

impl SelfProbe {
    /// The reason why pixie does not do its work. `None` means that it does.
    #[must_use]
    pub fn ailment(&self) -> Option<String> {
        self.0.lock().ailment()
    }

    /// Probes until stopped.
    pub(crate) async fn run(self, shared: Arc<Shared>, stop: CancellationToken) {
        let work = async {
            loop {
                let result = probe_all(&shared).await;
                if let Err(problem) = &result {
                    tracing::warn!(problem, "an own socket does not answer");
                }
                {
                    let mut log = self.0.lock();
                    *log = std::mem::take(&mut *log).after(result);
                }
                tokio::time::sleep(INTERVAL).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }
}

/// Probes TFTP and HTTP of each network. DHCP is not asked: its answers go to machines alone, and its task
/// ends the process if it fails.
async fn probe_all(shared: &Shared) -> Result<(), String> {
    let config = &shared.config;
    for network in &config.networks {
        let address = network.network.address;
        let told = |what: &str, error: io::Error| format!("{what} at {address}: {error}");
        let tftp = within(tftp(address, config.ports.tftp)).await;
        tftp.map_err(|error| told("TFTP", error))?;
        let http = within(http(address, config.http_port)).await;
        http.map_err(|error| told("HTTP", error))?;
    }
    Ok(())
}

async fn within(probe: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    let answered = timeout(ANSWER_WITHIN, probe).await;
    answered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Sends a write request, which is refused at once: a read would begin a transfer.
async fn tftp(address: Ipv4Addr, port: u16) -> io::Result<()> {
    let socket = UdpSocket::bind((address, 0)).await?;
    socket.connect(SocketAddrV4::new(address, port)).await?;
    let request = Packet::Write(Request {
        file: "self-probe".into(),
        mode: "octet".into(),
        options: Vec::new(),
    });
    socket.send(&request.encode()).await?;
    let mut buffer = [0_u8; 512];
    let len = socket.recv(&mut buffer).await?;
    match Packet::decode(&buffer[..len]) {
        Ok(Packet::Error { .. }) => Ok(()),
        _ => Err(io::Error::other("the answer is none of TFTP")),
    }
}

async fn http(address: Ipv4Addr, port: u16) -> io::Result<()> {
    let mut stream = TcpStream::connect(SocketAddrV4::new(address, port)).await?;
    let request = b"GET /healthz HTTP/1.1\r\nhost: pixie\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await?;
    let mut begin = [0_u8; HEALTHY.len()];
    stream.read_exact(&mut begin).await?;
    match begin == HEALTHY {
        true => Ok(()),
        false => Err(io::Error::other("the health page is not served")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixie_works_once_it_has_answered_and_until_it_fails_three_times() {
        const GOOD: bool = true;
        const BAD: bool = false;
        let cases: [(&[bool], Option<&str>); 8] = [
            (&[], Some("its own sockets have not answered yet")),
            (&[BAD], Some("its own sockets do not answer: TFTP")),
            (
                &[BAD, BAD, BAD],
                Some("its own sockets do not answer: TFTP"),
            ),
            (&[BAD, GOOD], None),
            (&[GOOD], None),
            (&[GOOD, BAD, BAD], None),
            (
                &[GOOD, BAD, BAD, BAD],
                Some("its own sockets do not answer: TFTP"),
            ),
            (&[GOOD, BAD, BAD, GOOD, BAD], None),
        ];
        for (results, expected) in cases {
            let log = results.iter().fold(ProbeLog::default(), |log, is_good| {
                log.after(is_good.then_some(()).ok_or_else(|| "TFTP".to_owned()))
            });
            assert_eq!(log.ailment().as_deref(), expected, "{results:?}");
        }
    }
}
