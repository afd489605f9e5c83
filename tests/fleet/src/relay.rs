//! The DHCP relay of a partition: the way from firmware without an address to the boot server.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use proto_types::MacAddr;
use proto_wire_dhcp::{BOOTP_REQUEST, Kind, Message, Options, code};
use rand::Rng as _;
use tokio::net::UdpSocket;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::plan;

/// What firmware waits for an answer, and how often it asks.
const WAIT: Duration = Duration::from_secs(2);
const TRIES: u32 = 6;
const PACKET_LEN_MAX: usize = 2048;

/// Who on a machine asks for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    Firmware,
    Ipxe,
    Hammer,
}

/// A relay.
#[derive(Debug)]
pub(crate) struct Relay {
    socket: UdpSocket,
    address: Ipv4Addr,
    server: (Ipv4Addr, u16),
    waiting: Mutex<BTreeMap<u32, oneshot::Sender<Message>>>,
}

impl Relay {
    pub(crate) async fn bind(partition: usize, port: u16) -> Result<Self> {
        let address = plan::relay(partition);
        Ok(Self {
            socket: UdpSocket::bind((address, port)).await?,
            address,
            server: (plan::pixie(partition), port),
            waiting: Mutex::default(),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u32, oneshot::Sender<Message>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands answers to who asked, until `stop`.
    pub(crate) async fn run(&self, stop: &CancellationToken) {
        let mut buffer = vec![0_u8; PACKET_LEN_MAX];
        loop {
            let received = tokio::select! {
                () = stop.cancelled() => return,
                received = self.socket.recv_from(&mut buffer) => received,
            };
            // An error is that of a boot server that is away just now.
            let Ok((len, _)) = received else { continue };
            let Some(answer) = buffer.get(..len).and_then(|b| Message::decode(b).ok()) else {
                continue;
            };
            if let Some(asker) = self.waiting().remove(&answer.xid) {
                // One that has stopped waiting asks again.
                drop(asker.send(answer));
            }
        }
    }

    /// Gets a lease; the acknowledgement says what to boot.
    ///
    /// # Errors
    /// Nobody answered, or the server refused.
    pub(crate) async fn lease(&self, mac: MacAddr, uuid: Uuid, asker: Asker) -> Result<Message> {
        let offer = self
            .ask(|| self.message(Kind::Discover, mac, uuid, asker))
            .await?;
        let server = offer
            .options
            .get(code::SERVER_ID)
            .unwrap_or_default()
            .to_vec();
        let request = || {
            let mut request = self.message(Kind::Request, mac, uuid, asker);
            request
                .options
                .set(code::REQUESTED_ADDRESS, offer.yiaddr.octets());
            request.options.set(code::SERVER_ID, server.clone());
            request
        };
        let answer = self.ask(request).await?;
        if answer.kind != Kind::Ack {
            bail!("the boot server refuses {} for {mac}", offer.yiaddr);
        }
        Ok(answer)
    }

    async fn ask(&self, make: impl Fn() -> Message) -> Result<Message> {
        for _ in 0..TRIES {
            let message = make();
            let (sender, answer) = oneshot::channel();
            self.waiting().insert(message.xid, sender);
            // What does not go out is asked again like what is lost.
            self.socket
                .send_to(&message.encode(), self.server)
                .await
                .ok();
            let answer = timeout(WAIT, answer).await;
            self.waiting().remove(&message.xid);
            if let Ok(Ok(answer)) = answer {
                return Ok(answer);
            }
        }
        bail!("no answer by DHCP")
    }

    fn message(&self, kind: Kind, mac: MacAddr, uuid: Uuid, asker: Asker) -> Message {
        let mut options = Options::default();
        if asker != Asker::Hammer {
            options.set(code::VENDOR_CLASS, *b"PXEClient:Arch:00007:UNDI:003000");
            options.set(code::CLIENT_ARCH, [0, 7]);
            let mut guid = vec![0];
            guid.extend_from_slice(&uuid.to_bytes_le());
            options.set(code::CLIENT_UUID, guid);
        }
        if asker == Asker::Ipxe {
            options.set(code::USER_CLASS, *b"iPXE");
        }
        Message {
            op: BOOTP_REQUEST,
            kind,
            hops: 1,
            xid: rand::rng().random(),
            secs: 0,
            flags: 0,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: self.address,
            chaddr: mac,
            sname: String::new(),
            file: String::new(),
            options,
        }
    }
}
