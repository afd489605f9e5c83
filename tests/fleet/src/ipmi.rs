//! BMCs that speak IPMI 2.0 over the network, each at a socket of its own.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bmc_ipmi::managed::Managed;
use bmc_ipmi::packet::{self, PACKET_BYTES_MAX, Payload, Protection, Request, Response};
use bmc_ipmi::rakp::Keys;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use crate::bmc::{self, PASSWORD, Switching};
use crate::delays::pass;
use crate::ipmi_commands::{self, Effect};
use crate::machine::Machine;
use crate::plan::partition_name;
use crate::world::World;

/// Sessions that a BMC has room for; a further one ends the oldest.
const SESSIONS_MAX: usize = 4;

/// One BMC.
struct Bmc<'a> {
    world: &'a World,
    machine: &'a Machine,
    /// Oldest first.
    sessions: VecDeque<Session>,
}

struct Session {
    peer: SocketAddr,
    stage: Stage,
}

enum Stage {
    Opening(Managed),
    Open(Open),
}

/// A session whose both sides know the password.
struct Open {
    keys: Keys,
    id: u32,
    console: u32,
    packets: u32,
    /// The last request's number and command, and its answer: who asks again gets that.
    last: Option<(u8, u8, Vec<u8>)>,
}

/// Answers for the BMC of one machine until the world stops.
pub(crate) async fn serve(world: Arc<World>, number: usize) -> Result<()> {
    let machine = world.machines.get(number).context("no such machine")?;
    let at = (machine.plan.bmc, world.ports.ipmi);
    let socket = UdpSocket::bind(at).await.context("no socket")?;
    let mut bmc = Bmc {
        world: &world,
        machine,
        sessions: VecDeque::new(),
    };
    let mut switchings = JoinSet::new();
    let mut buffer = [0; PACKET_BYTES_MAX];
    loop {
        tokio::select! {
            () = world.stop.cancelled() => return Ok(()),
            Some(done) = switchings.join_next() => bmc::switch(&world, machine, done?),
            received = socket.recv_from(&mut buffer) => {
                let (size, from) = received?;
                if machine.is_dark() {
                    bmc.sessions.clear();
                    continue;
                }
                if machine.is_hung() {
                    continue;
                }
                let (answer, switching) = bmc.answer(&buffer[..size], from);
                if let Some(answer) = answer {
                    // An agent that has gone is no matter of the BMC.
                    socket.send_to(&answer, from).await.ok();
                }
                if let Some(switching) = switching {
                    let ms = world.delays.power_ms;
                    switchings.spawn(async move {
                        pass(ms).await;
                        switching
                    });
                }
            }
        }
    }
}

impl Bmc<'_> {
    /// The answer to a packet, and what it has the BMC do with the power.
    fn answer(&mut self, bytes: &[u8], from: SocketAddr) -> (Option<Vec<u8>>, Option<Switching>) {
        if let Some(done) = self.in_session(bytes, from) {
            return done;
        }
        let Some((payload, body)) = packet::decode(bytes, None) else {
            return (None, None);
        };
        let answer = match payload {
            Payload::Message => capabilities(&body),
            Payload::OpenRequest => self.open(&body, from),
            Payload::Rakp1 => self.rakp1(&body, from),
            Payload::Rakp3 => self.rakp3(&body, from),
            _ => None,
        };
        (answer, None)
    }

    fn open(&mut self, body: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
        let guid = self.machine.plan.uuid.to_bytes_le();
        let id = rand::random::<u32>() | 1;
        let (managed, answer) = Managed::open(body, id, rand::random(), guid)?;
        self.sessions.retain(|session| session.peer != from);
        while self.sessions.len() >= SESSIONS_MAX {
            self.sessions.pop_front();
        }
        self.sessions.push_back(Session {
            peer: from,
            stage: Stage::Opening(managed),
        });
        Some(packet::plain(Payload::OpenResponse, &answer))
    }

    fn rakp1(&mut self, body: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
        let (world, plan) = (self.world, &self.machine.plan);
        let Stage::Opening(managed) = &mut self.session(from)?.stage else {
            return None;
        };
        let answer = managed.message2(body, |user| {
            let is_own = user == partition_name(plan.partition);
            world.truth.bmc_asked(plan.number, user, is_own);
            is_own.then(|| PASSWORD.as_bytes().to_vec())
        })?;
        Some(packet::plain(Payload::Rakp2, &answer))
    }

    fn rakp3(&mut self, body: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
        let session = self.session(from)?;
        let Stage::Opening(managed) = &session.stage else {
            return None;
        };
        let (answer, keys) = managed.message4(body)?;
        session.stage = Stage::Open(Open {
            keys,
            id: managed.id(),
            console: managed.console(),
            packets: 0,
            last: None,
        });
        Some(packet::plain(Payload::Rakp4, &answer))
    }

    fn session(&mut self, from: SocketAddr) -> Option<&mut Session> {
        self.sessions
            .iter_mut()
            .find(|session| session.peer == from)
    }

    /// `None` when the packet is of no open session.
    fn in_session(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
    ) -> Option<(Option<Vec<u8>>, Option<Switching>)> {
        let (world, machine) = (self.world, self.machine);
        let Stage::Open(open) = &mut self.session(from)?.stage else {
            return None;
        };
        let (_, message) = packet::decode(bytes, Some((open.id, &open.keys)))?;
        let Some(request) = Request::decode(&message) else {
            return Some((None, None));
        };
        let known = open.last.as_ref().filter(|(sequence, command, _)| {
            (*sequence, *command) == (request.sequence, request.command)
        });
        if let Some((_, _, answer)) = known {
            let answer = answer.clone();
            return Some((Some(open.protect(&answer)), None));
        }
        let (completion, data, effect) = ipmi_commands::obey(world, machine, &request);
        let answer = respond(&request, completion, data);
        let sealed = open.protect(&answer);
        open.last = Some((request.sequence, request.command, answer));
        let switching = match effect {
            Effect::Nothing => None,
            Effect::Switch(switching) => Some(switching),
            Effect::Close => {
                self.sessions.retain(|session| session.peer != from);
                None
            }
        };
        Some((Some(sealed), switching))
    }
}

impl Open {
    fn protect(&mut self, message: &[u8]) -> Vec<u8> {
        // Sequence 0 is not used (6.12.13).
        self.packets = self.packets.wrapping_add(1).max(1);
        let protection = Protection {
            keys: &self.keys,
            session: self.console,
            sequence: self.packets,
            iv: rand::random(),
        };
        packet::protected(message, &protection)
    }
}

/// What the channel can do is told to everybody (22.13).
fn capabilities(message: &[u8]) -> Option<Vec<u8>> {
    let request = Request::decode(message)?;
    let data = ipmi_commands::capabilities(&request)?;
    Some(packet::plain_v15(&respond(&request, 0, data)))
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
