//! A private host, a router with the firewall, and a host outside.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use agents_firewall::admit::admit;
use agents_firewall::compile::compile;
use agents_firewall::config::Config;
use agents_firewall::model::NftTable;
use agents_firewall::netlink::{CounterValue, Kernel};
use agents_firewall::plan::Change;
use agents_firewall::rule::RuleSet;

use crate::namespace::{Namespace, POLL};

/// Addresses of the private host.
pub(crate) const INSIDE: &str = "10.0.0.2";
pub(crate) const INSIDE6: &str = "fd00:a::2";
/// Addresses of the host outside.
pub(crate) const OUTSIDE: &str = "203.0.113.2";
pub(crate) const OUTSIDE6: &str = "fd00:b::2";

/// The networks of the site, to begin a configuration with.
pub(crate) const NETWORKS: &str = "
sources:
  static:
    firewall:
      networks:
      - {networkID: tenant, networkType: private, vrf: 42, prefixes: [10.0.0.0/8, 'fd00:a::/32']}
      - {networkID: internet, networkType: external, vrf: 104, prefixes: [0.0.0.0/0]}
";
/// The controllers, to end a configuration with.
pub(crate) const CONTROLLERS: &str = "
controllers:
  firewall: {source: static}
  cwnp: {source: static}
  service: {source: static}
";

/// A private host, a router and a host outside.
pub(crate) struct Site {
    pub(crate) inside: Namespace,
    pub(crate) router: Namespace,
    pub(crate) outside: Namespace,
}

impl Site {
    pub(crate) fn new(test: &str) -> Self {
        let [inside, router, outside] = ["in", "fw", "out"].map(|name| Namespace::new(test, name));
        for (host, port, own, own6) in [
            (&inside, "vrf42", "10.0.0", "fd00:a::"),
            (&outside, "vrf104", "203.0.113", "fd00:b::"),
        ] {
            router.ip(&format!(
                "link add {port} type veth peer name eth0 netns {}",
                host.0
            ));
            for (at, link, number) in [(&router, port, 1), (host, "eth0", 2)] {
                at.ip(&format!("addr add {own}.{number}/24 dev {link}"));
                at.ip(&format!("addr add {own6}{number}/64 dev {link} nodad"));
                at.ip(&format!("link set {link} up"));
            }
            host.ip(&format!("route add default via {own}.1"));
            host.ip(&format!("route add default via {own6}1"));
        }
        router.output("sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
        let site = Self {
            inside,
            router,
            outside,
        };
        site.await_links();
        site
    }

    /// Waits until both hosts know their neighbours, so that no later packet is late for it.
    fn await_links(&self) {
        for (from, to) in [(INSIDE, OUTSIDE), (INSIDE6, OUTSIDE6)] {
            let sender = udp(&self.inside, from, 0);
            let receiver = udp(&self.outside, to, 9);
            let until = Instant::now() + Duration::from_secs(20);
            while !arrives(&sender, &receiver) {
                assert!(
                    Instant::now() < until,
                    "{from} does not reach {to} without rules"
                );
            }
            assert!(arrives(&receiver, &sender));
        }
    }

    /// Runs work with the router's kernel.
    pub(crate) fn with_kernel<T: Send>(&self, work: impl FnOnce(&Kernel) -> T + Send) -> T {
        self.router.inside(|| work(&Kernel::open().unwrap()))
    }

    /// Applies the rest of a configuration.
    pub(crate) fn apply(&self, rest: &str) -> Vec<Change> {
        let table = table(rest);
        self.with_kernel(|kernel| kernel.apply(&table).unwrap().changes)
    }

    /// The packets that a counter of the router has counted.
    pub(crate) fn counted(&self, name: &str) -> CounterValue {
        let counters = self.with_kernel(|kernel| kernel.counters().unwrap());
        *counters
            .get(name)
            .unwrap_or_else(|| panic!("no counter {name}: {counters:?}"))
    }
}

/// The rules of a configuration after the networks.
pub(crate) fn rules(rest: &str) -> RuleSet {
    let text = format!("{NETWORKS}{rest}{CONTROLLERS}");
    let config = Config::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let admitted = admit(&config);
    assert_eq!(admitted.problems, Vec::new());
    admitted.rules
}

/// The table of a configuration after the networks.
pub(crate) fn table(rest: &str) -> NftTable {
    compile(&rules(rest))
}

/// Name of the only chain of a configuration whose name begins so.
pub(crate) fn chain(rest: &str, begin: &str) -> String {
    let table = table(rest);
    let mut names = table.chains.keys().filter(|name| name.starts_with(begin));
    names.next().unwrap().clone()
}

/// A UDP socket in a namespace.
pub(crate) fn udp(at: &Namespace, address: &str, port: u16) -> UdpSocket {
    let address = SocketAddr::new(address.parse::<IpAddr>().unwrap(), port);
    let socket = at.inside(|| bind(address));
    socket
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    socket
}

/// Binds a socket, and tries again while its port is in use: a process that another test starts holds a copy
/// of every socket until it runs its own program, also of one that was dropped meanwhile.
fn bind(address: SocketAddr) -> UdpSocket {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match UdpSocket::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < end => {
                std::thread::sleep(POLL);
            }
            bound => return bound.unwrap(),
        }
    }
}

/// Makes a call that has a limit again while a signal ends it: the end of a process that another test
/// started is one, and such a call does not go on by itself (signal(7)).
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            ended => return ended,
        }
    }
}

/// `true` if a datagram from one socket arrives at the other.
pub(crate) fn arrives(from: &UdpSocket, to: &UdpSocket) -> bool {
    from.send_to(b"x", to.local_addr().unwrap()).unwrap();
    uninterrupted(|| to.recv_from(&mut [0; 16])).is_ok()
}

/// `true` if an echo request to an address is answered.
pub(crate) fn answers_ping(from: &Namespace, target: &str) -> bool {
    use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
    // The kernel lets groups of this range, and nobody by default, send echo requests without a raw
    // socket.
    from.output("sysctl -q -w net.ipv4.ping_group_range=0\t0");
    let target: IpAddr = target.parse().unwrap();
    let (family, protocol, request) = if target.is_ipv4() {
        (AddressFamily::Inet, SockProtocol::Icmp, 8)
    } else {
        (AddressFamily::Inet6, SockProtocol::IcmpV6, 128)
    };
    let open = || socket(family, SockType::Datagram, SockFlag::empty(), protocol);
    let socket = UdpSocket::from(from.inside(|| open().unwrap()));
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let echo = [request, 0, 0, 0, 0, 1, 0, 1];
    socket.send_to(&echo, SocketAddr::new(target, 0)).unwrap();
    uninterrupted(|| socket.recv_from(&mut [0; 64])).is_ok()
}
