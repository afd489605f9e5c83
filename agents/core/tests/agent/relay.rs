//! DHCP requests of machines reach the boot server with their port. Needs root; says so and passes
//! without.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents_core::config::Config;
use agents_core::relay::RelayConfig;
use agents_kit::Agent;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, send, socket,
};
use proto_types::MacAddr;
use proto_wire_dhcp::{
    BOOTP_REPLY, BOOTP_REQUEST, Kind, Message, Options, RelayAgentInfo, ServerFrame, code,
};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::fixture::{Control, PATIENCE, Running, Site, config, desired, heard};
use crate::linux::{Namespace, open};

const SERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const LEAF: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const LEASE: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 100);

/// A boot server that gives everybody one address, and keeps what came.
#[derive(Clone, Default)]
struct BootServer(Arc<Mutex<Vec<Message>>>);

impl BootServer {
    /// Serves until its task is dropped.
    async fn serve(self) {
        let socket = UdpSocket::bind((SERVER, 67)).await.unwrap();
        let mut buffer = [0; 4096];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let request = Message::decode(&buffer[..length]).unwrap();
            let kind = match request.kind {
                Kind::Discover => Kind::Offer,
                _ => Kind::Ack,
            };
            let mut reply = Message::reply_to(&request, kind);
            reply.yiaddr = LEASE;
            reply.options.set(code::SERVER_ID, [10, 77, 1, 2]);
            reply.options.set(code::LEASE_TIME, 600_u32.to_be_bytes());
            reply.options.set(code::SUBNET_MASK, [255, 255, 255, 0]);
            self.0.lock().unwrap().push(request);
            socket.send_to(&reply.encode(), from).await.unwrap();
        }
    }

    fn heard(&self) -> Vec<Message> {
        self.0.lock().unwrap().clone()
    }

    async fn until(&self, what: &str, mut condition: impl FnMut(&[Message]) -> bool) {
        let seen = async {
            while !condition(&self.heard()) {
                tokio::task::yield_now().await;
            }
        };
        assert!(timeout(PATIENCE, seen).await.is_ok(), "{what}");
    }
}

/// A leaf with a relay; `swp1` is in the provisioning segment.
struct Relaying {
    running: Running,
    server: BootServer,
    control: Control,
    _tasks: (JoinSet<()>, JoinSet<()>),
}

async fn start() -> Relaying {
    let (site, control) = (Site::new(), Control::default());
    control.desired.send_replace(desired(1, 4000));
    let (address, mesh) = site.serve(&control);
    let server = BootServer::default();
    let mut tasks = JoinSet::new();
    tasks.spawn(server.clone().serve());
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let relay = RelayConfig {
        server: SERVER,
        link: Ipv4Addr::new(10, 77, 1, 0),
        address: Some(LEAF),
        port: 67,
    };
    let config = Config {
        relay: Some(relay),
        ..config()
    };
    let switch = open(&config);
    let running = Running::start(agent, config, switch);
    heard(&control.report, |report| report.applied_generation == 1).await;
    Relaying {
        running,
        server,
        control,
        _tasks: (mesh, tasks),
    }
}

/// A machine's end of a cable.
struct Machine {
    socket: std::os::fd::OwnedFd,
    mac: MacAddr,
}

impl Machine {
    fn at(interface: &str) -> Self {
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::EthAll,
        );
        let socket = socket.unwrap();
        let address: LinkAddr = nix::ifaddrs::getifaddrs()
            .unwrap()
            .filter(|entry| entry.interface_name == interface)
            .find_map(|entry| entry.address.and_then(|a| a.as_link_addr().copied()))
            .unwrap();
        bind(socket.as_raw_fd(), &address).unwrap();
        Self {
            socket,
            mac: MacAddr(address.addr().unwrap()),
        }
    }

    fn message(&self, kind: Kind, xid: u32) -> Message {
        Message {
            op: BOOTP_REQUEST,
            kind,
            hops: 0,
            xid,
            secs: 0,
            flags: 0,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: Ipv4Addr::UNSPECIFIED,
            chaddr: self.mac,
            sname: String::new(),
            file: String::new(),
            options: Options::default(),
        }
    }

    fn send(&self, message: &Message) {
        let frame = ServerFrame {
            source_mac: self.mac,
            target_mac: MacAddr([0xff; 6]),
            source: Ipv4Addr::UNSPECIFIED,
            target: Ipv4Addr::BROADCAST,
        };
        let mut bytes = frame.encode(&message.encode()).unwrap();
        bytes[34..38].copy_from_slice(&[0, 68, 0, 67]);
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty()).unwrap();
    }
}

#[test]
fn a_client_gets_its_lease_over_the_relay_that_names_its_port() {
    let Some(leaf) = Namespace::new("relay") else {
        return;
    };
    let name = leaf.name().to_owned();
    leaf.inside(async move || {
        let relaying = start().await;
        let machine = Machine::at("xswp1");
        // Until the relay hears the port.
        let asks = async {
            loop {
                machine.send(&machine.message(Kind::Discover, 1));
                let pause = Duration::from_millis(200);
                let heard = relaying.server.until("a request", |all| !all.is_empty());
                if timeout(pause, heard).await.is_ok() {
                    return;
                }
            }
        };
        timeout(PATIENCE, asks).await.unwrap();
        let first = relaying.server.heard().remove(0);
        let info = first.options.get(code::RELAY_AGENT).unwrap();
        let info = RelayAgentInfo::decode(info).unwrap();
        assert_eq!((info.switch(), info.port()), ("leaf1", "swp1"));
        assert_eq!((first.giaddr, first.hops), (LEAF, 1));
        let mut udhcpc = tokio::process::Command::new("ip");
        udhcpc.args(["netns", "exec", &name, "busybox", "udhcpc", "-i", "xswp1"]);
        udhcpc.args(["-f", "-q", "-n", "-t", "5", "-T", "2", "-s", "/bin/true"]);
        let output = udhcpc.stdin(Stdio::null()).output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(127) {
            println!("SKIPPED: udhcpc is not installed: {text}");
        } else {
            assert!(
                text.contains(&format!("lease of {LEASE} obtained")),
                "{text}"
            );
        }
        relaying.running.stop().await;
    });
}

#[test]
fn machines_are_neither_relays_nor_servers_and_tenants_have_no_relay() {
    let Some(leaf) = Namespace::new("forge") else {
        return;
    };
    leaf.inside(async || {
        let relaying = start().await;
        let machine = Machine::at("xswp1");
        let xids = |all: &[Message]| all.iter().map(|m| m.xid).collect::<Vec<_>>();
        let until_relayed = async |machine: &Machine, xid: u32| {
            let asks = async {
                loop {
                    machine.send(&machine.message(Kind::Discover, xid));
                    let heard = relaying.server.until("", |all| xids(all).contains(&xid));
                    if timeout(Duration::from_millis(300), heard).await.is_ok() {
                        return;
                    }
                }
            };
            timeout(PATIENCE, asks).await
        };
        until_relayed(&machine, 1).await.unwrap();
        let mut option = machine.message(Kind::Discover, 2);
        option
            .options
            .set(code::RELAY_AGENT, *b"\x01\x04swp2\x02\x05leaf1");
        let mut relay = machine.message(Kind::Discover, 3);
        relay.giaddr = SERVER;
        let mut server = machine.message(Kind::Offer, 4);
        server.op = BOOTP_REPLY;
        let mut other = machine.message(Kind::Discover, 5);
        other.chaddr = MacAddr([2, 0, 0, 0, 7, 7]);
        for forged in [option, relay, server, other] {
            machine.send(&forged);
        }
        // After a later one has passed, the ones before were dropped.
        until_relayed(&machine, 6).await.unwrap();
        let mut passed = xids(&relaying.server.heard());
        passed.dedup();
        assert_eq!(passed, [1, 6]);
        // The port becomes a tenant's.
        relaying.control.desired.send_replace(desired(2, 27));
        heard(&relaying.control.report, |report| {
            report.applied_generation == 2
        })
        .await;
        let silent = async {
            // The relay hears of it from the observation after the change.
            loop {
                let before = relaying.server.heard().len();
                for xid in 10..13 {
                    machine.send(&machine.message(Kind::Discover, xid));
                }
                let more = relaying.server.until("", |all| all.len() > before);
                if timeout(Duration::from_millis(500), more).await.is_err() {
                    return;
                }
            }
        };
        timeout(PATIENCE, silent).await.unwrap();
        // A stranger's answer goes nowhere: only the boot server's address and port count.
        let stranger = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 3), 67)).await;
        let mut answer = machine.message(Kind::Offer, 20);
        answer.op = BOOTP_REPLY;
        answer.giaddr = LEAF;
        let to = SocketAddr::from((LEAF, 67));
        stranger
            .unwrap()
            .send_to(&answer.encode(), to)
            .await
            .unwrap();
        relaying.running.stop().await;
    });
}
