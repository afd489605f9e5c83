use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;
use tracing::debug;

use crate::packet::{self, PACKET_BYTES_MAX, Payload, Protection, Response};
use crate::rakp::{Exchange, Keys};
use crate::{CipherSuite, Credentials, IpmiError};

/// Network functions and commands that a session itself needs (specification, appendix G).
const APP: u8 = 0x06;
const GET_CHANNEL_AUTHENTICATION: u8 = 0x38;
const SET_PRIVILEGE: u8 = 0x3b;
const CLOSE_SESSION: u8 = 0x3c;
const ADMINISTRATOR: u8 = 0x04;
/// This channel, and "tell me of version 2" (22.13).
const THIS_CHANNEL_V2: u8 = 0x8e;
/// "The node is busy": worth another try.
const BUSY: u8 = 0xc0;
/// Replies to earlier requests that one wait may see before it counts as silent.
const STRAY_PACKETS_MAX: usize = 16;

/// How long a session waits for a BMC, and how often it asks again.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Wait for one answer.
    pub answer: Duration,
    /// Times that a request is sent in all.
    pub tries: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            answer: Duration::from_millis(1500),
            tries: 4,
        }
    }
}

/// An open, encrypted session with one BMC.
///
/// One request at a time; [`Session::close`] frees the BMC's slot, of which most have four.
pub struct Session {
    wire: Wire,
    keys: Keys,
    console: u32,
    managed: u32,
    packet_sequence: u32,
    request_sequence: u8,
}

impl Session {
    /// Opens a session as administrator, with the best cipher suite that the BMC knows.
    ///
    /// # Errors
    /// [`IpmiError::Silent`] when nothing answers at `address`, [`IpmiError::WrongPassword`] or
    /// [`IpmiError::Refused`] when the user may not, [`IpmiError::NoVersion2`].
    pub async fn connect(
        address: SocketAddr,
        credentials: &Credentials,
        timing: Timing,
    ) -> Result<Self, IpmiError> {
        let wire = Wire::open(address, timing).await?;
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
                    let what = "asking for administrator";
                    session
                        .request(APP, SET_PRIVILEGE, &[ADMINISTRATOR], what)
                        .await?;
                    return Ok(session);
                }
                // A BMC that knows no such suite says so in one way or another.
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

    async fn open(
        wire: &Wire,
        credentials: &Credentials,
        suite: CipherSuite,
    ) -> Result<(Keys, u32, u32), IpmiError> {
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
    /// [`IpmiError::Silent`], or [`IpmiError::Completion`] with the BMC's code.
    pub async fn request(
        &mut self,
        netfn: u8,
        command: u8,
        data: &[u8],
        what: &'static str,
    ) -> Result<Vec<u8>, IpmiError> {
        // The same number for each try: a BMC that got the first one does not do it twice.
        self.request_sequence = (self.request_sequence + 1) % 64;
        let message = packet::request(netfn, command, self.request_sequence, data);
        let mut completion = None;
        for _ in 0..self.wire.timing.tries {
            self.send(&message).await?;
            let Some(response) = self.receive(netfn, command).await? else {
                continue;
            };
            match response.completion {
                0 => return Ok(response.data),
                BUSY => completion = Some(BUSY),
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

    /// Ends the session; a BMC that does not hear it ends it by itself after a minute.
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
        // Sequence 0 is not used (6.12.13).
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

    /// The answer to the newest request; `None` when it does not come in time.
    async fn receive(&self, netfn: u8, command: u8) -> Result<Option<Response>, IpmiError> {
        for _ in 0..STRAY_PACKETS_MAX {
            let Some(packet) = self.wire.receive().await? else {
                return Ok(None);
            };
            let decoded = packet::decode(&packet, Some((self.console, &self.keys)));
            let Some((Payload::Message, message)) = decoded else {
                continue;
            };
            match Response::decode(&message) {
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

/// The socket to one BMC, before a session and under it.
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
        let socket = UdpSocket::bind(any).await?;
        socket.connect(address).await?;
        Ok(Self { socket, timing })
    }

    /// Get Channel Authentication Capabilities (22.13): is anybody there, and who?
    async fn require_version2(&self) -> Result<(), IpmiError> {
        let data = [THIS_CHANNEL_V2, ADMINISTRATOR];
        let message = packet::request(APP, GET_CHANNEL_AUTHENTICATION, 0, &data);
        let what = "the first question";
        for _ in 0..self.timing.tries {
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
            return match response.data.get(3) {
                // Bit 1 of the extended capabilities: the channel does IPMI 2.0.
                Some(extended) if extended & 0x02 != 0 => Ok(()),
                _ => Err(IpmiError::NoVersion2),
            };
        }
        Err(IpmiError::Silent {
            what,
            tries: self.timing.tries,
        })
    }

    /// One step of opening a session: the request, and the body of its answer.
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

    /// The next datagram; `None` when none comes in time.
    async fn receive(&self) -> Result<Option<Vec<u8>>, IpmiError> {
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        match timeout(self.timing.answer, self.socket.recv(&mut buffer)).await {
            Err(_) => Ok(None),
            // The port is closed for now, as while a BMC restarts: the same as silence.
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(None),
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(size)) => {
                buffer.truncate(size);
                Ok(Some(buffer))
            }
        }
    }
}
