//! An RMCP+ session: opening, requests with retries, closing.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::packet::{self, PACKET_BYTES_MAX, Payload, Protection, Response};
use crate::rakp::{Exchange, Keys};
use crate::{CipherSuite, Credentials, IpmiError};

/// Network function of the commands that a session itself needs (specification, appendix G).
const APP: u8 = 0x06;
const GET_CHANNEL_AUTHENTICATION: u8 = 0x38;
const SET_PRIVILEGE: u8 = 0x3b;
const CLOSE_SESSION: u8 = 0x3c;
const ADMINISTRATOR: u8 = 0x04;
/// The channel of the request itself, with the flag for IPMI 2.0 data in the answer (22.13).
const THIS_CHANNEL_V2: u8 = 0x8e;
/// Completion code "node busy". The request is retried.
const BUSY: u8 = 0xc0;
/// Pause after the first answer "node busy", doubled with each further one. A BMC that is busy
/// with a sensor or its flash needs some tenths of a second; asked again at once, it is still busy.
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// Packets that are not the expected answer, per attempt. After this many the attempt counts as
/// unanswered. Without a bound, a host that floods the port would hold a request for ever.
const STRAY_PACKETS_MAX: usize = 16;

/// Timeout and retries of each request.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Longest wait for a packet. A stray packet starts it anew, at most
    /// `STRAY_PACKETS_MAX` times per attempt.
    pub answer: Duration,
    /// Attempts in total.
    pub tries: u32,
}

impl Default for Timing {
    fn default() -> Self {
        // BMCs are slow processors that also run a web server: answers after a second are normal.
        Self {
            answer: Duration::from_millis(1500),
            tries: 4,
        }
    }
}

/// An open, encrypted session with one BMC.
///
/// It carries one request at a time. [`Session::close`] frees the session slot in the BMC; most
/// BMCs have four.
pub struct Session {
    wire: Wire,
    keys: Keys,
    console: u32,
    managed: u32,
    packet_sequence: u32,
    request_sequence: u8,
}

impl Session {
    /// Opens a session as administrator, with the strongest cipher suite that the BMC supports.
    ///
    /// # Errors
    /// [`IpmiError::Silent`] if nothing answers at `address`; [`IpmiError::WrongPassword`] or
    /// [`IpmiError::Refused`] if the BMC does not accept the user; [`IpmiError::NoVersion2`];
    /// [`IpmiError::NoSuite`].
    pub async fn connect(
        address: SocketAddr,
        credentials: &Credentials,
        timing: Timing,
    ) -> Result<Self, IpmiError> {
        let wire = Wire::open(address, timing).await?;
        // An IPMI 1.5 BMC drops RMCP+ packets. Without this check it would be reported as silent, and
        // the operator would look for a network fault.
        wire.require_version2().await?;
        for suite in CipherSuite::PREFERRED {
            match Self::open(&wire, credentials, suite).await {
                Ok((keys, console, managed)) => {
                    debug!(%address, ?suite, "session opened");
                    let mut session = Self {
                        wire,
                        keys,
                        console,
                        managed,
                        packet_sequence: 0,
                        request_sequence: 0,
                    };
                    return match session.become_administrator().await {
                        Ok(()) => Ok(session),
                        Err(error) => {
                            session.give_up().await;
                            Err(error)
                        }
                    };
                }
                // BMCs refuse an unsupported suite with different status codes. Each of them moves
                // on to the next suite; any other error is final.
                Err(IpmiError::NoSuite | IpmiError::Refused { status: 0x12, .. }) => {}
                Err(IpmiError::Refused {
                    what: "the session request",
                    ..
                }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(IpmiError::NoSuite)
    }

    async fn become_administrator(&mut self) -> Result<(), IpmiError> {
        // A session starts with the privilege "user", whatever role it was opened for. Without this
        // step the BMC refuses power and boot commands.
        let what = "asking for administrator";
        let asked = self.request(APP, SET_PRIVILEGE, &[ADMINISTRATOR], what);
        asked.await.map(drop)
    }

    /// Closes a session that is of no use, in one attempt: its slot in the BMC is free again, and a
    /// BMC that went silent does not hold up the caller.
    async fn give_up(mut self) {
        self.wire.timing.tries = 1;
        if let Err(error) = self.close().await {
            debug!(%error, "the BMC keeps the session until its timeout");
        }
    }

    async fn open(
        wire: &Wire,
        credentials: &Credentials,
        suite: CipherSuite,
    ) -> Result<(Keys, u32, u32), IpmiError> {
        // 0 means "no session" in a packet's header.
        let console = rand::random::<u32>() | 1;
        let mut exchange = Exchange::new(suite, credentials.clone(), console, rand::random());
        let body = wire
            .ask(Payload::OpenRequest, &exchange.open_request())
            .await?;
        exchange.open_response(&body)?;
        let body = wire.ask(Payload::Rakp1, &exchange.message1()).await?;
        exchange.message2(&body)?;
        let body = wire.ask(Payload::Rakp3, &exchange.message3()).await?;
        let keys = exchange.message4(&body)?;
        Ok((keys, console, exchange.managed()))
    }

    /// Sends one command and returns the data of its answer. `what` names it in errors.
    ///
    /// # Errors
    /// [`IpmiError::Silent`] after the last attempt, [`IpmiError::Completion`] with the BMC's code,
    /// or [`IpmiError::Io`].
    pub async fn request(
        &mut self,
        netfn: u8,
        command: u8,
        data: &[u8],
        what: &'static str,
    ) -> Result<Vec<u8>, IpmiError> {
        // All attempts share one request sequence number, so that a BMC whose answer was lost can
        // recognise the retry and does not run a power cycle twice. The field has six bits.
        self.request_sequence = (self.request_sequence + 1) % 64;
        let message = packet::request(netfn, command, self.request_sequence, data);
        let mut completion = None;
        let mut pause = Duration::ZERO;
        for _ in 0..self.wire.timing.tries {
            sleep(pause).await;
            self.send(&message).await?;
            let Some(response) = self.receive(netfn, command).await? else {
                continue;
            };
            match response.completion {
                0 => return Ok(response.data),
                BUSY => {
                    completion = Some(BUSY);
                    pause = longer(pause);
                }
                code => return Err(IpmiError::Completion { what, code }),
            }
        }
        Err(completion.map_or_else(
            || IpmiError::Silent {
                what,
                tries: self.wire.timing.tries,
            },
            |code| IpmiError::Completion { what, code },
        ))
    }

    /// Closes the session. A BMC that does not receive the request drops the session after its
    /// inactivity timeout of about a minute.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn close(mut self) -> Result<(), IpmiError> {
        let id = self.managed.to_le_bytes();
        self.request(APP, CLOSE_SESSION, &id, "closing the session")
            .await
            .map(drop)
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), IpmiError> {
        // A new packet sequence number for each attempt: the BMC drops a number that it has seen as
        // a replay. 0 is reserved for packets outside of a session (6.12.13).
        self.packet_sequence = self.packet_sequence.wrapping_add(1).max(1);
        let protection = Protection {
            keys: &self.keys,
            session: self.managed,
            sequence: self.packet_sequence,
            iv: rand::random(),
        };
        self.wire
            .socket
            .send(&packet::protected(message, &protection))
            .await?;
        Ok(())
    }

    /// Receives the answer to the current request. `None` means that it did not come in time.
    async fn receive(&self, netfn: u8, command: u8) -> Result<Option<Response>, IpmiError> {
        for _ in 0..STRAY_PACKETS_MAX {
            let Some(packet) = self.wire.receive().await? else {
                return Ok(None);
            };
            let decoded = packet::decode(&packet, Some((self.console, &self.keys)));
            // Anyone can send to this port. A packet that is not authentic is skipped; an error would
            // let a third party end the session.
            let Some((Payload::Message, message)) = decoded else {
                continue;
            };
            match Response::decode(&message) {
                // A late answer to an earlier request differs in at least one of these. Taking it
                // would report the wrong state of the machine.
                Some(response)
                    if response.netfn == netfn + 1
                        && response.command == command
                        && response.sequence == self.request_sequence =>
                {
                    return Ok(Some(response));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}

/// The UDP socket to one BMC, before and within a session.
#[derive(Debug)]
struct Wire {
    socket: UdpSocket,
    timing: Timing,
}

impl Wire {
    async fn open(address: SocketAddr, timing: Timing) -> Result<Self, IpmiError> {
        let any = if address.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        // Connected: the kernel then drops datagrams from other addresses, which would count as
        // stray packets, and reports a closed port of the BMC as an error.
        let socket = UdpSocket::bind(any).await?;
        socket.connect(address).await?;
        Ok(Self { socket, timing })
    }

    /// Checks that a BMC answers and supports IPMI 2.0, by Get Channel Authentication Capabilities
    /// (22.13). Sent as an IPMI 1.5 packet, which every BMC understands.
    async fn require_version2(&self) -> Result<(), IpmiError> {
        let data = [THIS_CHANNEL_V2, ADMINISTRATOR];
        let message = packet::request(APP, GET_CHANNEL_AUTHENTICATION, 0, &data);
        let what = "the capabilities request";
        let tries = self.timing.tries;
        let mut failure = IpmiError::Silent { what, tries };
        let mut pause = Duration::ZERO;
        for _ in 0..tries {
            sleep(pause).await;
            self.socket.send(&packet::plain_v15(&message)).await?;
            let Some(answer) = self.receive().await? else {
                continue;
            };
            let Some((Payload::Message, message)) = packet::decode(&answer, None) else {
                continue;
            };
            let Some(response) = Response::decode(&message) else {
                continue;
            };
            // A busy BMC answers without data, which would pass for one that lacks IPMI 2.0.
            if response.completion == BUSY {
                failure = IpmiError::Completion { what, code: BUSY };
                pause = longer(pause);
                continue;
            }
            return match response.data.get(3) {
                // Bit 1 of the extended capabilities: the channel supports IPMI 2.0.
                Some(extended) if extended & 0x02 != 0 => Ok(()),
                _ => Err(IpmiError::NoVersion2),
            };
        }
        Err(failure)
    }

    /// Sends one step of opening a session, with retries, and returns the body of the answer.
    async fn ask(&self, payload: Payload, body: &[u8]) -> Result<Vec<u8>, IpmiError> {
        let (want, what) = match payload {
            Payload::OpenRequest => (Payload::OpenResponse, "the session request"),
            Payload::Rakp1 => (Payload::Rakp2, "RAKP message 1"),
            _ => (Payload::Rakp4, "RAKP message 3"),
        };
        for _ in 0..self.timing.tries {
            self.socket.send(&packet::plain(payload, body)).await?;
            for _ in 0..STRAY_PACKETS_MAX {
                let Some(answer) = self.receive().await? else {
                    break;
                };
                match packet::decode(&answer, None) {
                    // A retried step is answered twice. The second answer arrives during the next
                    // step and has the kind of the previous one.
                    Some((got, body)) if got == want => return Ok(body),
                    _ => {}
                }
            }
        }
        Err(IpmiError::Silent {
            what,
            tries: self.timing.tries,
        })
    }

    /// Receives the next datagram. `None` means that none came in time.
    async fn receive(&self) -> Result<Option<Vec<u8>>, IpmiError> {
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        match timeout(self.timing.answer, self.socket.recv(&mut buffer)).await {
            Err(_) => Ok(None),
            // The port is closed: IPMI is off, or the BMC restarts. The attempts follow at once
            // and end as silence. Waiting here would hold up a round over many such BMCs, and a
            // restart outlasts every attempt; callers retry the whole session.
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(None),
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(size)) => {
                buffer.truncate(size);
                Ok(Some(buffer))
            }
        }
    }
}

/// The pause after one more answer "node busy".
fn longer(pause: Duration) -> Duration {
    (pause * 2).max(BUSY_PAUSE)
}
