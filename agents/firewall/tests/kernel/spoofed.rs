//! Packets whose source does not belong to the network that they come from.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use agents_firewall::admit::admit;
use agents_firewall::compile::compile;
use agents_firewall::config::Config;
use agents_firewall::render::render;
use agents_firewall::rule::RuleSet;

use crate::namespace::{Namespace, can_run};
use crate::site::{CONTROLLERS, Site, arrives, udp, uninterrupted};

const CONFIG: &str = "
sources:
  static:
    firewall:
      networks:
      - {networkID: one, networkType: private, vrf: 42, prefixes: [10.0.0.0/24, 'fd00:a::/64']}
      - {networkID: two, networkType: privatesecondaryshared, vrf: 43, prefixes: [10.0.1.0/24, 'fd00:c::/64']}
      - {networkID: internet, networkType: external, vrf: 104, nat: true, prefixes: [203.0.113.0/24, 'fd00:b::/64'], addresses: [203.0.113.200/32]}
    cwnp:
      ingress:
      - {name: db, from: [{cidr: 10.0.0.0/24}, {cidr: 'fd00:a::/64'}], to: [{cidr: 10.0.1.0/24}, {cidr: 'fd00:c::/64'}], ports: [{protocol: UDP, port: 5432}]}
      - {name: ssh, from: [{cidr: 203.0.113.0/24}], to: [{cidr: 10.0.0.2/32}], ports: [{protocol: UDP, port: 22}]}
      - {name: open, ports: [{protocol: UDP, port: 80}]}
      egress:
      - {name: one, from: [{cidr: 10.0.0.0/24}], ports: [{protocol: UDP, port: 443}]}
      - {name: own, from: [{cidr: 203.0.113.0/24}], to: [{cidr: 203.0.113.0/24}], ports: [{protocol: UDP, port: 444}]}
";

/// A host of the second network, behind a site.
pub(crate) fn second(site: &Site, test: &str) -> Namespace {
    let host = Namespace::new(test, "two");
    let router = &site.router;
    router.ip(&format!(
        "link add vrf43 type veth peer name eth0 netns {}",
        host.0
    ));
    for (at, link, number) in [(router, "vrf43", 1), (&host, "eth0", 2)] {
        at.ip(&format!("addr add 10.0.1.{number}/24 dev {link}"));
        at.ip(&format!("addr add fd00:c::{number}/64 dev {link} nodad"));
        at.ip(&format!("link set {link} up"));
    }
    host.ip("route add default via 10.0.1.1");
    host.ip("route add default via fd00:c::1");
    // A VRF has no other way back for a source: firewalls do not check it.
    for name in ["all", "vrf42", "vrf43", "vrf104"] {
        router.output(&format!("sysctl -q -w net.ipv4.conf.{name}.rp_filter=0"));
    }
    // An address of the external network that a machine announces.
    host.ip("addr add 203.0.113.200/32 dev eth0");
    router.ip("route add 203.0.113.200/32 via 10.0.1.2");
    site.outside
        .ip("route add 203.0.113.200/32 via 203.0.113.1");
    for address in ["203.0.113.5/32", "203.0.113.77/32", "10.0.0.99/32"] {
        host.ip(&format!("addr add {address} dev eth0"));
    }
    for address in ["10.0.0.77/32", "240.0.0.1/32"] {
        site.outside.ip(&format!("addr add {address} dev lo"));
    }
    site.outside.ip("addr add fd00:a::77/128 dev lo nodad");
    host
}

fn assert_sources_belong(site: &Site, host: &Namespace) {
    let (one, outside) = (&site.inside, &site.outside);
    // From, with the source, to, at the port: what must not pass.
    for (from, source, at, to, port) in [
        (outside, "10.0.0.77", host, "10.0.1.2", 5432),
        (outside, "fd00:a::77", host, "fd00:c::2", 5432),
        (host, "203.0.113.5", one, "10.0.0.2", 22),
        (host, "203.0.113.5", one, "10.0.0.2", 80),
        (host, "10.0.0.99", outside, "203.0.113.2", 443),
        // The address of another project's machine in the external network.
        (host, "203.0.113.77", outside, "203.0.113.2", 444),
        (outside, "240.0.0.1", one, "10.0.0.2", 80),
    ] {
        let (sender, receiver) = (udp(from, source, 0), udp(at, to, port));
        assert!(!arrives(&sender, &receiver), "{source} to {to} {port}");
    }
    for (from, source, at, to, port) in [
        (one, "10.0.0.2", host, "10.0.1.2", 5432),
        (one, "fd00:a::2", host, "fd00:c::2", 5432),
        (host, "10.0.1.2", one, "10.0.0.2", 80),
        (outside, "203.0.113.2", one, "10.0.0.2", 22),
        (host, "203.0.113.200", outside, "203.0.113.2", 444),
    ] {
        let (sender, receiver) = (udp(from, source, 0), udp(at, to, port));
        let until = Instant::now() + Duration::from_secs(20);
        while !arrives(&sender, &receiver) {
            assert!(Instant::now() < until, "{source} to {to} {port} must pass");
        }
        assert!(arrives(&receiver, &sender), "the reply to {source}");
    }
    // Through source NAT: the reply goes to the firewall's address.
    let (sender, receiver) = (udp(one, "10.0.0.2", 0), udp(outside, "203.0.113.2", 443));
    sender.send_to(b"x", "203.0.113.2:443").unwrap();
    let (_, seen) = uninterrupted(|| receiver.recv_from(&mut [0; 16])).unwrap();
    assert_eq!(seen.ip().to_string(), "203.0.113.1");
    receiver.send_to(b"y", seen).unwrap();
    uninterrupted(|| sender.recv_from(&mut [0; 16])).unwrap();
}

/// A host of another network knows the addresses and ports of a flow, and sends packets into it: in
/// the name of the server, and of the client.
fn assert_flows_are_bound(site: &Site, host: &Namespace) {
    let (one, outside) = (&site.inside, &site.outside);
    let (client, server) = (udp(one, "10.0.0.2", 0), udp(host, "10.0.1.2", 5432));
    let assert_flows = || {
        assert!(arrives(&client, &server), "a request");
        assert!(arrives(&server, &client), "a reply");
    };
    assert_flows();
    let port = client.local_addr().unwrap().port();
    for (source, port, to) in [("10.0.1.2", 5432, &client), ("10.0.0.2", port, &server)] {
        outside.ip(&format!("addr add {source}/32 dev lo"));
        let forged = udp(outside, source, port);
        assert!(!arrives(&forged, to), "{source} from outside");
        drop(forged);
        outside.ip(&format!("addr del {source}/32 dev lo"));
        assert_flows();
    }
}

/// A machine announces an address of an external network, and a host of another private network has it,
/// too: it takes no flow of the machine over, which nobody has answered yet.
fn assert_first_packet_binds(site: &Site, host: &Namespace) {
    let own = "203.0.113.200";
    site.inside.ip(&format!("addr add {own}/32 dev lo"));
    let [machine, forger] = [host, &site.inside].map(|at| udp(at, own, 5000));
    let server = udp(&site.outside, "203.0.113.2", 444);
    assert!(arrives(&machine, &server), "the first packet");
    let before = site.counted("spoofed").packets;
    assert!(!arrives(&forger, &server), "of another network");
    assert_eq!(site.counted("spoofed").packets - before, 1);
    assert!(arrives(&server, &machine), "the answer");
    assert!(arrives(&machine, &server), "a later packet");
    site.inside.ip(&format!("addr del {own}/32 dev lo"));
}

fn site_rules() -> RuleSet {
    let config = Config::parse(&format!("{CONFIG}{CONTROLLERS}")).unwrap();
    let admitted = admit(&config);
    assert_eq!(admitted.problems, Vec::new());
    admitted.rules
}

#[test]
fn a_source_belongs_to_the_network_that_its_packet_comes_from() {
    if !can_run() {
        return;
    }
    let site = Site::new("spoof");
    let host = second(&site, "spoof");
    let rules = site_rules();
    let table = compile(&rules);
    site.with_kernel(|kernel| kernel.apply(&table).unwrap());
    assert_sources_belong(&site, &host);
    assert_eq!(site.counted("spoofed").packets, 7);
    assert_flows_are_bound(&site, &host);
    assert_eq!(site.counted("spoofed").packets, 9);
    assert_first_packet_binds(&site, &host);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), render(&rules)).unwrap();
    site.router
        .output("nft delete table inet metalmesh-firewall");
    let load = format!("nft -f {}", file.path().display());
    site.router.output(&load);
    assert_sources_belong(&site, &host);
    assert_flows_are_bound(&site, &host);
    let changes = site.with_kernel(|kernel| kernel.apply(&table).unwrap().changes);
    assert!(!changes.is_empty(), "the agent takes over");
    assert_sources_belong(&site, &host);
    assert_flows_are_bound(&site, &host);
    let changes = site.with_kernel(|kernel| kernel.apply(&table).unwrap().changes);
    assert!(changes.is_empty(), "{changes:?}");
}

/// The object of a network has a mistake: its hosts get no further than those of a right one, and the
/// others go on.
#[test]
fn a_refused_network_is_closed() {
    if !can_run() {
        return;
    }
    let site = Site::new("refused");
    let host = second(&site, "refused");
    let managed = "      management: {prefixes: [203.0.113.0/24], ports: [22]}\n    cwnp:";
    let right = CONFIG.replace("    cwnp:", managed);
    // From the address of a manager.
    let port: SocketAddr = "10.0.1.1:22".parse().unwrap();
    let listener = site.router.inside(|| TcpListener::bind(port).unwrap());
    host.ip("route add 10.0.1.1/32 dev eth0 src 203.0.113.5");
    site.router.ip("route add 203.0.113.5/32 via 10.0.1.2");
    let connects = || {
        let wait = Duration::from_millis(300);
        host.inside(|| TcpStream::connect_timeout(&port, wait).is_ok())
    };
    assert!(connects(), "without rules");
    let one = &site.inside;
    let (client, server) = (udp(one, "10.0.0.2", 0), udp(&host, "10.0.1.2", 5432));
    for (prefix, problems, is_open) in [("[10.0.1.0/24,", 0, true), ("[10.0.1.1/24,", 1, false)] {
        let text = right.replace("[10.0.1.0/24,", prefix);
        let admitted = admit(&Config::parse(&format!("{text}{CONTROLLERS}")).unwrap());
        assert_eq!(admitted.problems.len(), problems, "{:?}", admitted.problems);
        let table = compile(&admitted.rules);
        site.with_kernel(|kernel| kernel.apply(&table).unwrap());
        assert!(!connects(), "{prefix}: to the firewall as a manager");
        assert_eq!(arrives(&client, &server), is_open, "{prefix}: a request");
        assert_eq!(arrives(&server, &client), is_open, "{prefix}: a reply");
        for (source, port) in [("203.0.113.5", 22), ("203.0.113.5", 80)] {
            let (sender, receiver) = (udp(&host, source, 0), udp(one, "10.0.0.2", port));
            assert!(!arrives(&sender, &receiver), "{prefix}: {source} to {port}");
        }
        let (sender, receiver) = (udp(&host, "10.0.1.2", 0), udp(one, "10.0.0.2", 80));
        assert_eq!(arrives(&sender, &receiver), is_open, "{prefix}: its own");
        // Other networks go on.
        let (sender, receiver) = (
            udp(&site.outside, "203.0.113.2", 0),
            udp(one, "10.0.0.2", 22),
        );
        assert!(arrives(&sender, &receiver), "{prefix}: from outside");
    }
    drop(listener);
}
