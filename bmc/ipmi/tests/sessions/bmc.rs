//! A simulated BMC at a UDP socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bmc_ipmi::dcmi::GROUP_EXTENSION;
use bmc_ipmi::managed::Managed;
use bmc_ipmi::packet::{self, PACKET_BYTES_MAX, Payload, Protection, Request, Response};
use bmc_ipmi::power::{GET_POWER_READING, PowerReading};
use bmc_ipmi::rakp::Keys;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

pub(crate) const PASSWORD: &str = "labpass";
/// Completion code "node busy" (specification, table 5-2).
pub(crate) const BUSY: u8 = 0xc0;

/// A BMC for one session at a time.
#[derive(Default)]
pub(crate) struct Bmc {
    /// Its power reading, if it measures power.
    pub(crate) reading: Option<PowerReading>,
    /// Completion code of its answer to a request for another privilege.
    pub(crate) privilege: u8,
    /// The end of the time in which it answers that it is busy.
    pub(crate) busy_until: Option<Instant>,
    /// Sessions that were closed.
    pub(crate) closed: Arc<AtomicUsize>,
    pub(crate) opening: Option<Managed>,
    pub(crate) open: Option<(Keys, u32, u32)>,
    pub(crate) packets: u32,
}

impl Bmc {
    fn answer(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if let Some(answer) = self.in_session(bytes) {
            return Some(answer);
        }
        let (payload, body) = packet::decode(bytes, None)?;
        Some(match payload {
            Payload::Message => {
                let request = Request::decode(&body)?;
                let data = vec![0x01, 0x80, 0x04, 0x02, 0, 0, 0, 0];
                let answer = match self.is_busy() {
                    true => respond(&request, BUSY, Vec::new()),
                    false => respond(&request, 0, data),
                };
                packet::plain_v15(&answer)
            }
            Payload::OpenRequest => {
                let (managed, answer) = Managed::open(&body, 7, [1; 16], [2; 16])?;
                self.opening = Some(managed);
                packet::plain(Payload::OpenResponse, &answer)
            }
            Payload::Rakp1 => {
                let password = |user: &str| (user == "admin").then(|| PASSWORD.into());
                let answer = self.opening.as_mut()?.message2(&body, password)?;
                packet::plain(Payload::Rakp2, &answer)
            }
            Payload::Rakp3 => {
                let managed = self.opening.as_ref()?;
                let (answer, keys) = managed.message4(&body)?;
                self.open = Some((keys, managed.id(), managed.console()));
                self.packets = 0;
                packet::plain(Payload::Rakp4, &answer)
            }
            _ => return None,
        })
    }

    fn is_busy(&self) -> bool {
        self.busy_until.is_some_and(|end| Instant::now() < end)
    }

    fn in_session(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (keys, id, console) = self.open.as_ref()?;
        let (_, message) = packet::decode(bytes, Some((*id, keys)))?;
        let request = Request::decode(&message)?;
        let (completion, data) = match (request.netfn, request.command, &self.reading) {
            _ if self.is_busy() => (BUSY, Vec::new()),
            // Privilege, and the end of the session.
            (0x06, 0x3b, _) => (self.privilege, request.data.clone()),
            (0x06, 0x3c, _) => {
                self.closed.fetch_add(1, Ordering::Relaxed);
                (0, Vec::new())
            }
            (GROUP_EXTENSION, GET_POWER_READING, Some(reading)) => reading.answer(&request.data),
            _ => (0xc1, Vec::new()),
        };
        self.packets += 1;
        let protection = Protection {
            keys,
            session: *console,
            sequence: self.packets,
            iv: rand::random(),
        };
        let answer = respond(&request, completion, data);
        Some(packet::protected(&answer, &protection))
    }
}

fn respond(request: &Request, completion: u8, data: Vec<u8>) -> Vec<u8> {
    Response {
        netfn: request.netfn | 1,
        command: request.command,
        sequence: request.sequence,
        completion,
        data,
    }
    .encode()
}

/// Serves a BMC on loopback for as long as the tasks are held.
pub(crate) async fn serve(mut bmc: Bmc) -> (SocketAddr, JoinSet<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let address = socket.local_addr().expect("bound");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut buffer = [0; PACKET_BYTES_MAX];
        while let Ok((size, from)) = socket.recv_from(&mut buffer).await {
            if let Some(answer) = bmc.answer(&buffer[..size]) {
                socket.send_to(&answer, from).await.expect("loopback");
            }
        }
    });
    (address, tasks)
}
