//! A DNS server, the agent with its proxy, and clients.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agents_firewall::dns::address_of;
use agents_firewall::rule::NameSelector;
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, TYPE};

use crate::namespace::{Namespace, can_run};
use crate::site::{CONTROLLERS, INSIDE, INSIDE6, NETWORKS, Site, arrives, udp, uninterrupted};

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// Addresses of the proxy: those of the private interface.
pub(crate) const PROXY: &str = "10.0.0.1";
const PROXY6: &str = "fd00:a::1";
pub(crate) const DNS: &str = "      dnsServerAddress: 203.0.113.2
      allowedNetworks: {egress: [203.0.113.0/24, 'fd00:b::/64']}
";
pub(crate) const NAMES: &str = "    cwnp:
      egress:
      - name: api
        toFQDNs: [{matchName: API.example.test}, {matchPattern: '*.wild.example.test'}]
        ports: [{protocol: UDP, port: 5000}]
";
/// A program that is killed with the value.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn stop(mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn start(at: &Namespace, program: &str, arguments: &[&str]) -> Running {
    let child = Command::new("ip")
        .args(["netns", "exec", &at.0, program])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Running(child)
}

/// A server outside with the records of `hosts`, and an alias.
pub(crate) fn start_server(site: &Site, folder: &Path, hosts: &str) -> Running {
    let file = folder.join("hosts");
    fs::write(&file, hosts).unwrap();
    for last in 10..14 {
        site.outside
            .ip(&format!("addr add 203.0.113.{last}/32 dev eth0"));
        site.outside
            .ip(&format!("addr add fd00:b::{last}/128 dev eth0 nodad"));
    }
    let records = format!("--addn-hosts={}", file.display());
    start(
        &site.outside,
        "dnsmasq",
        &[
            "--keep-in-foreground",
            "--conf-file=/dev/null",
            "--no-resolv",
            "--no-hosts",
            "--bind-interfaces",
            "--listen-address=203.0.113.2",
            "--pid-file=",
            "--user=root",
            "--local=/test/",
            "--cname=alias.wild.example.test,other.example.test",
            "--local-ttl=300",
            &records,
        ],
    )
}

pub(crate) fn start_agent(site: &Site, folder: &Path) -> Running {
    let (config, state) = (folder.join("config.yaml"), folder.join("state"));
    let arguments = [
        "run",
        "--no-rules-file",
        "--config",
        config.to_str().unwrap(),
        "--state-dir",
        state.to_str().unwrap(),
    ];
    start(
        &site.router,
        env!("CARGO_BIN_EXE_metalmesh-firewall"),
        &arguments,
    )
}

pub(crate) fn write_config(folder: &Path, rest: &str) {
    fs::write(
        folder.join("config.yaml"),
        format!("{NETWORKS}{rest}{CONTROLLERS}"),
    )
    .unwrap();
}

pub(crate) fn query(id: u16, name: &str, kind: TYPE) -> Vec<u8> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new_unchecked(name);
    let (kind, class) = (QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN));
    packet
        .questions
        .push(Question::new(name, kind, class, false));
    packet.build_bytes_vec().unwrap()
}

pub(crate) fn addresses(answer: &[u8]) -> BTreeSet<IpAddr> {
    let packet = Packet::parse(answer).unwrap();
    let all = packet.answers.iter();
    all.filter_map(|record| match &record.rdata {
        RData::A(a) => Some(IpAddr::from(std::net::Ipv4Addr::from(a.address))),
        RData::AAAA(aaaa) => Some(IpAddr::from(std::net::Ipv6Addr::from(aaaa.address))),
        _ => None,
    })
    .collect()
}

/// Asks the proxy until it answers.
pub(crate) fn resolve(site: &Site, name: &str, kind: TYPE) -> Vec<u8> {
    let (from, proxy) = if kind == TYPE::A {
        (INSIDE, PROXY)
    } else {
        (INSIDE6, PROXY6)
    };
    let socket = udp(&site.inside, from, 0);
    let until = Instant::now() + DEADLINE;
    let mut answer = vec![0; 4096];
    loop {
        socket.send_to(&query(77, name, kind), (proxy, 53)).unwrap();
        if let Ok(len) = uninterrupted(|| socket.recv(&mut answer)) {
            answer.truncate(len);
            assert_eq!(&answer[..2], &77_u16.to_be_bytes());
            return answer;
        }
        assert!(Instant::now() < until, "no answer for {name}");
    }
}

pub(crate) fn resolve_by_tcp(site: &Site, name: &str) -> BTreeSet<IpAddr> {
    let mut stream = site
        .inside
        .inside(|| TcpStream::connect((PROXY, 53)).unwrap());
    let asked = query(78, name, TYPE::A);
    let mut bytes = u16::try_from(asked.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(asked);
    stream.write_all(&bytes).unwrap();
    let mut len = [0; 2];
    stream.read_exact(&mut len).unwrap();
    let mut answer = vec![0; usize::from(u16::from_be_bytes(len))];
    stream.read_exact(&mut answer).unwrap();
    addresses(&answer)
}

/// `true` if a new flow to an address passes.
pub(crate) fn passes(site: &Site, to: &str, port: u16) -> bool {
    let from = if to.contains(':') { INSIDE6 } else { INSIDE };
    arrives(&udp(&site.inside, from, 0), &server(site, to, port))
}

/// A socket outside. The one before may still be open in a child of another test that is not yet
/// another program.
fn server(site: &Site, to: &str, port: u16) -> UdpSocket {
    let address: IpAddr = to.parse().unwrap();
    let until = Instant::now() + DEADLINE;
    loop {
        match site.outside.inside(|| UdpSocket::bind((address, port))) {
            Ok(socket) => {
                let wait = Some(Duration::from_millis(300));
                socket.set_read_timeout(wait).unwrap();
                return socket;
            }
            Err(error) => assert!(Instant::now() < until, "{to}: {error}"),
        }
    }
}

pub(crate) fn await_passes(site: &Site, to: &str, expected: bool) {
    let until = Instant::now() + DEADLINE;
    while passes(site, to, 5000) != expected {
        assert!(Instant::now() < until, "{to} should pass: {expected}");
    }
}

/// The addresses in the kernel's set of a pattern.
pub(crate) fn learned(site: &Site, pattern: &str) -> BTreeSet<IpAddr> {
    let set = NameSelector::pattern(pattern).unwrap().set(true);
    let elements = site.with_kernel(|kernel| kernel.timed(&set).unwrap());
    elements
        .iter()
        .filter_map(|element| address_of(&element.key))
        .collect()
}

pub(crate) fn has_tools() -> bool {
    let is_there = Command::new("dnsmasq").arg("--version").output().is_ok();
    if !is_there {
        println!("not run: the test needs dnsmasq");
    }
    can_run() && is_there
}
