//! From a name in a rule of control to an address in a kernel: control, the real agent with its DNS
//! proxy, a DNS server and a client, in network namespaces of their own.

use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use agents_firewall::netlink::Kernel;
use agents_firewall::rule::NameSelector;
use agents_firewall::run::run;
use control_state::{SetFirewallRules, UpdatePartition};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use proto_firewall::{NamePattern, PortSpec, RuleContent, RuleOwner, RuleSpec};
use tests_support::objects::text;
use tokio_util::sync::CancellationToken;

use crate::firewall::Site;
use crate::firewall_agent::{await_counter, in_namespace, install_agent};
use crate::fixture::PATIENCE;

/// Address of the DNS server: in the namespace of the firewall, where it asks from.
const SERVER: &str = "127.0.0.1";
const NAME: &str = "api.example.test";
/// Address that the server knows for the name.
const ADDRESS: [u8; 4] = [203, 0, 113, 10];
/// Header of a query with one question (RFC 1035, 4.1.1).
const QUERY_HEADER: [u8; 12] = [0, 77, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];

fn ip(arguments: &str) {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let status = Command::new("ip").args(&arguments).status().unwrap();
    assert!(status.success(), "ip {arguments:?}");
}

/// Asks for the IPv4 addresses of a name.
fn query() -> Vec<u8> {
    let mut bytes = QUERY_HEADER.to_vec();
    for label in NAME.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

/// Answers every query with the address.
async fn serve_dns() {
    let socket = tokio::net::UdpSocket::bind((SERVER, 53)).await.unwrap();
    let mut buffer = [0; 512];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
        let mut answer = buffer[..len].to_vec();
        answer[2] |= 0x80;
        answer[7] = 1;
        // The name of the question, A, IN, a TTL of 300 s.
        answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4]);
        answer.extend(ADDRESS);
        socket.send_to(&answer, from).await.unwrap();
    }
}

/// A client of a private network, in a namespace of its own.
struct PrivateClient {
    proxy: IpAddr,
    address: IpAddr,
    /// Says the id of the client's thread, whose namespace its link goes to.
    thread: mpsc::Sender<i32>,
    /// Is told that the link is there.
    linked: mpsc::Receiver<()>,
}

impl PrivateClient {
    /// Asks the proxy until it answers; returns the answer.
    fn ask(self) -> Vec<u8> {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        self.thread.send(gettid().as_raw()).unwrap();
        self.linked.recv().unwrap();
        ip(&format!("addr add {}/24 dev eth0", self.address));
        ip("link set eth0 up");
        let socket = UdpSocket::bind((self.address, 0)).unwrap();
        let wait = Some(Duration::from_millis(300));
        socket.set_read_timeout(wait).unwrap();
        let until = Instant::now() + PATIENCE;
        let mut answer = vec![0; 512];
        loop {
            // Refused as long as nobody listens.
            drop(socket.send_to(&query(), (self.proxy, 53)));
            if let Ok(len) = socket.recv(&mut answer) {
                answer.truncate(len);
                return answer;
            }
            assert!(Instant::now() < until, "the proxy does not answer");
        }
    }
}

/// Connects a client with the private network of a firewall, and has it ask.
async fn ask_from_inside(site: &Site) -> Vec<u8> {
    let machine = site.control.machine(site.machine);
    let networks = &machine.allocation.as_ref().unwrap().networks;
    let private = networks.iter().find(|network| network.kind.is_child());
    let private = private.unwrap();
    let mut hosts = private.prefixes[0].hosts();
    let (proxy, address) = (hosts.next().unwrap(), hosts.next().unwrap());
    let link = format!("vlan{}", private.vrf);
    ip(&format!("link add {link} type veth peer name eth0"));
    ip(&format!("addr add {proxy}/24 dev {link}"));
    ip(&format!("link set {link} up"));
    let (thread, of_thread) = mpsc::channel();
    let (link_moved, linked) = mpsc::channel();
    let client = PrivateClient {
        proxy,
        address,
        thread,
        linked,
    };
    let asking = thread::spawn(move || client.ask());
    let thread = of_thread.recv().unwrap();
    ip(&format!("link set eth0 netns {thread}"));
    link_moved.send(()).unwrap();
    let asked = tokio::task::spawn_blocking(move || asking.join().unwrap());
    asked.await.unwrap()
}

async fn names() {
    let site = Site::start().await;
    let servers = UpdatePartition {
        id: text("p1"),
        lock: control_state::Lock::Server,
        description: None,
        boot: None,
        dns_servers: Some(vec![SERVER.parse().unwrap()]),
        ntp_servers: None,
        mgmt_service_addresses: None,
        labels: None,
    };
    site.control.propose(servers).await.unwrap();
    site.allocate_firewall().await;
    let folder = tempfile::tempdir().unwrap();
    let files = install_agent(&site, folder.path()).await;
    let api = RuleSpec {
        name: "api".into(),
        to_fqdns: vec![NamePattern {
            match_name: Some(NAME.into()),
            match_pattern: None,
        }],
        ports: vec![PortSpec {
            port: Some(443),
            ..PortSpec::default()
        }],
        ..RuleSpec::default()
    };
    let written = SetFirewallRules {
        set: site.set(RuleOwner::Tenant),
        project: None,
        content: RuleContent {
            egress_policies: vec![api],
            ..RuleContent::default()
        },
        comment: String::new(),
        expected: None,
    };
    site.control.propose(written).await.unwrap();
    let stop = CancellationToken::new();
    let work = async {
        await_counter("cwnp/egress/api/0", true).await;
        let answer = ask_from_inside(&site).await;
        assert!(answer.ends_with(&ADDRESS), "{answer:?}");
        // The address is in the kernel before the client has the answer.
        let set = NameSelector::name(NAME).unwrap().set(true);
        let learned = Kernel::open().unwrap().timed(&set).unwrap();
        let learned: Vec<&[u8]> = learned.iter().map(|element| &*element.key).collect();
        assert_eq!(learned, [ADDRESS]);
        stop.cancel();
    };
    let agent = async {
        let (ran, ()) = tokio::join!(run(files, stop.clone()), work);
        ran.unwrap();
    };
    tokio::select! {
        () = agent => {}
        () = serve_dns() => {}
    }
    site.control.stop().await;
}

#[test]
fn a_name_in_a_rule_of_control_is_resolved_by_the_firewall() {
    in_namespace(names);
}
