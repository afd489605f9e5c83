//! Names in rules with packets: a real DNS server, the agent with its proxy, and clients.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use agents_firewall::compile::compile;
use agents_firewall::dns::{NameLimits, NameService, ResolvedAddress};
use agents_firewall::rule::NameSelector;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, socket};
use simple_dns::{Packet, PacketFlag, TYPE};

use crate::dns_site::{
    DEADLINE, DNS, NAMES, PROXY, addresses, await_passes, has_tools, learned, passes, query,
    resolve, resolve_by_tcp, start_agent, start_server, write_config,
};
use crate::namespace::{Namespace, can_run};
use crate::site::{
    CONTROLLERS, INSIDE, NETWORKS, OUTSIDE, Site, arrives, rules, udp, uninterrupted,
};
use crate::spoofed::second;

/// Records of the server. Each line of a name is an address more.
const HOSTS: &str = "203.0.113.10 api.example.test
fd00:b::10 api.example.test
203.0.113.11 other.example.test
203.0.113.12 a.wild.example.test
10.0.0.77 inside.wild.example.test
127.0.0.1 loop.wild.example.test
198.51.100.1 far.wild.example.test
203.0.113.1 self.wild.example.test
";

#[test]
fn a_name_passes_when_it_was_resolved_and_only_to_its_addresses() {
    if !has_tools() {
        return;
    }
    let site = Site::new("names");
    let folder = tempfile::tempdir().unwrap();
    let _server = start_server(&site, folder.path(), HOSTS);
    write_config(folder.path(), &format!("{DNS}{NAMES}"));
    let agent = start_agent(&site, folder.path());
    // Another name, so that the proxy is known to be there.
    assert_eq!(
        addresses(&resolve(&site, "other.example.test", TYPE::A)).len(),
        1
    );
    for to in ["203.0.113.10", "203.0.113.11", "fd00:b::10"] {
        assert!(!passes(&site, to, 5000), "{to} was not resolved for a rule");
    }
    let answer = resolve(&site, "api.example.test", TYPE::A);
    assert_eq!(addresses(&answer), ["203.0.113.10".parse().unwrap()].into());
    assert!(
        passes(&site, "203.0.113.10", 5000),
        "at once after the answer"
    );
    assert!(!passes(&site, "203.0.113.10", 5001));
    assert!(!passes(&site, "203.0.113.11", 5000));
    assert!(
        !passes(&site, "fd00:b::10", 5000),
        "the other family was not asked for"
    );
    resolve(&site, "API.example.TEST", TYPE::AAAA);
    assert!(passes(&site, "fd00:b::10", 5000));
    resolve(&site, "a.wild.example.test", TYPE::A);
    assert!(passes(&site, "203.0.113.12", 5000), "by the pattern");
    // An alias: its own name is in the pattern, its target is not in any rule.
    resolve(&site, "alias.wild.example.test", TYPE::A);
    assert!(passes(&site, "203.0.113.11", 5000));
    // Names that lead inside, to the firewall itself, or where the operator allows nobody.
    for name in ["inside", "loop", "far", "self"] {
        let answer = resolve(&site, &format!("{name}.wild.example.test"), TYPE::A);
        assert_eq!(addresses(&answer).len(), 1, "the answer itself passes");
    }
    let expected = ["203.0.113.11", "203.0.113.12"].map(|text| text.parse().unwrap());
    assert_eq!(learned(&site, "*.wild.example.test"), expected.into());
    // Rules change, the agent is killed, somebody removes the table: addresses stay.
    let deny = "      rules: [{name: deny, action: drop, to: [{cidr: 203.0.113.12/32}]}]\n";
    write_config(folder.path(), &format!("{DNS}{deny}{NAMES}"));
    await_passes(&site, "203.0.113.12", false);
    assert!(passes(&site, "203.0.113.10", 5000));
    drop(agent);
    assert!(passes(&site, "203.0.113.10", 5000), "without the agent");
    let agent = start_agent(&site, folder.path());
    resolve(&site, "other.example.test", TYPE::A);
    assert!(passes(&site, "203.0.113.10", 5000));
    site.router.output("nft flush ruleset");
    site.router.output("nft add table inet other");
    await_passes(&site, "203.0.113.12", false);
    await_passes(&site, "203.0.113.10", true);
    // A restart of the host: what was learned is in the state file.
    agent.stop();
    site.router.output("nft flush ruleset");
    let agent = start_agent(&site, folder.path());
    await_passes(&site, "203.0.113.12", false);
    await_passes(&site, "203.0.113.10", true);
    await_passes(&site, "fd00:b::10", true);
    // Without the name in a rule its addresses go.
    let other = NAMES.replace("API.example.test", "x.example.test");
    write_config(folder.path(), &format!("{DNS}{other}"));
    await_passes(&site, "203.0.113.10", false);
    agent.stop();
}

#[test]
fn a_large_answer_comes_over_tcp() {
    if !has_tools() {
        return;
    }
    let site = Site::new("big");
    let folder = tempfile::tempdir().unwrap();
    let many: String = (100..160)
        .map(|last| format!("203.0.113.{last} big.wild.example.test\n"))
        .collect();
    let _server = start_server(&site, folder.path(), &many);
    write_config(folder.path(), &format!("{DNS}{NAMES}"));
    let agent = start_agent(&site, folder.path());
    let short = resolve(&site, "big.wild.example.test", TYPE::A);
    assert!(short.len() <= 512);
    assert!(
        Packet::parse(&short)
            .unwrap()
            .has_flags(PacketFlag::TRUNCATION)
    );
    assert_eq!(
        learned(&site, "*.wild.example.test"),
        BTreeSet::new(),
        "it was cut off"
    );
    let found = resolve_by_tcp(&site, "big.wild.example.test");
    assert_eq!(found.len(), 60);
    assert_eq!(learned(&site, "*.wild.example.test"), found);
    agent.stop();
}

/// A connection to a DNS proxy from one of a host's addresses.
fn connect_from(host: &Namespace, from: &str, to: &str) -> Option<TcpStream> {
    let address = |text: &str, port| {
        let address: IpAddr = text.parse().unwrap();
        SockaddrStorage::from(SocketAddr::new(address, port))
    };
    host.inside(|| {
        let (family, kind) = (AddressFamily::Inet, SockType::Stream);
        let open = socket(family, kind, SockFlag::SOCK_CLOEXEC, None).unwrap();
        bind(open.as_raw_fd(), &address(from, 0)).unwrap();
        connect(open.as_raw_fd(), &address(to, 53)).ok()?;
        Some(TcpStream::from(open))
    })
}

#[test]
fn one_network_does_not_hold_the_connections_of_another() {
    if !has_tools() {
        return;
    }
    let site = Site::new("hold");
    let host = second(&site, "hold");
    for last in 10..40 {
        host.ip(&format!("addr add 10.0.1.{last}/24 dev eth0"));
    }
    let folder = tempfile::tempdir().unwrap();
    let _server = start_server(&site, folder.path(), HOSTS);
    let other =
        "\n      - {networkID: other, networkType: private, vrf: 43, prefixes: [10.0.1.0/24]}\n";
    let text = format!("{}{other}{DNS}{NAMES}{CONTROLLERS}", NETWORKS.trim_end());
    fs::write(folder.path().join("config.yaml"), text).unwrap();
    let agent = start_agent(&site, folder.path());
    resolve(&site, "other.example.test", TYPE::A);
    let mut held = Vec::new();
    for last in 10..40 {
        for _ in 0..10 {
            held.extend(connect_from(&host, &format!("10.0.1.{last}"), "10.0.1.1"));
        }
    }
    assert!(held.len() > 128, "the kernel accepts them for the proxy");
    let found = resolve_by_tcp(&site, "other.example.test");
    assert_eq!(found, ["203.0.113.11".parse().unwrap()].into());
    drop(held);
    agent.stop();
}

#[test]
fn a_lifetime_that_ends_closes_new_flows_only() {
    if !can_run() {
        return;
    }
    let site = Site::new("ttl");
    let rules = rules(&format!("{DNS}{NAMES}"));
    site.with_kernel(|kernel| kernel.apply(&compile(&rules)).unwrap());
    let limits = NameLimits {
        lifetime_min: Duration::from_secs(2),
        ..NameLimits::default()
    };
    let service = site.router.inside(|| NameService::open(limits).unwrap());
    service.configure(&rules).unwrap();
    let resolved = |seconds| ResolvedAddress {
        address: OUTSIDE.parse().unwrap(),
        lifetime: Duration::from_secs(seconds),
    };
    let client_address = INSIDE.parse().unwrap();
    assert!(!passes(&site, OUTSIDE, 5000));
    let generation = site.with_kernel(|kernel| kernel.generation().unwrap());
    service.learn("api.example.test", &[resolved(0)], client_address);
    let later = site.with_kernel(|kernel| kernel.generation().unwrap());
    assert!(
        service.made_all_since(generation, later),
        "{generation} to {later}"
    );
    assert!(!service.made_all_since(generation - 1, later));
    let (client, server) = (
        udp(&site.inside, INSIDE, 0),
        udp(&site.outside, OUTSIDE, 5000),
    );
    assert!(arrives(&client, &server));
    let changes = site.with_kernel(|kernel| kernel.apply(&compile(&rules)).unwrap().changes);
    assert_eq!(changes, Vec::new(), "what was learned is no drift");
    // The answer makes the flow established.
    assert!(arrives(&server, &client));
    let until = Instant::now() + DEADLINE;
    let is_open = || {
        let other = udp(&site.inside, INSIDE, 0);
        arrives(&other, &server)
    };
    while is_open() {
        assert!(Instant::now() < until, "the lifetime does not end");
    }
    assert!(arrives(&client, &server), "the flow from before goes on");
    assert_eq!(service.elements(), Vec::new());
    // A new answer opens it again, and a longer one keeps it open.
    service.learn("api.example.test", &[resolved(1)], client_address);
    service.learn("api.example.test", &[resolved(3600)], client_address);
    assert!(is_open());
    let set = NameSelector::name("api.example.test").unwrap().set(true);
    let elements = site.with_kernel(|kernel| kernel.timed(&set).unwrap());
    assert!(
        elements[0].lifetime > Duration::from_secs(3000),
        "{elements:?}"
    );
}

/// Answers of a server that lies, after the bytes of a query.
fn lies(asked: &[u8]) -> Vec<Vec<u8>> {
    let with = |change: &dyn Fn(&mut Vec<u8>), address: [u8; 4]| {
        let mut answer = asked[..asked.len()].to_vec();
        answer[2] |= 0x80;
        answer[7] = 1;
        answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 1, 0, 0, 4]);
        answer.extend(address);
        change(&mut answer);
        answer
    };
    let wrong_id = |answer: &mut Vec<u8>| answer[0] ^= 1;
    let wrong_name = |answer: &mut Vec<u8>| answer[13] = b'x';
    let is_query = |answer: &mut Vec<u8>| answer[2] &= 0x7F;
    vec![
        with(&wrong_id, [203, 0, 113, 11]),
        with(&wrong_name, [203, 0, 113, 11]),
        with(&is_query, [203, 0, 113, 11]),
        vec![0; 5],
        with(&|_| {}, [203, 0, 113, 10]),
    ]
}

#[test]
fn answers_that_nobody_asked_for_teach_nothing() {
    if !can_run() {
        return;
    }
    let site = Site::new("lies");
    let folder = tempfile::tempdir().unwrap();
    let server = udp(&site.outside, OUTSIDE, 53);
    write_config(folder.path(), &format!("{DNS}{NAMES}"));
    let agent = start_agent(&site, folder.path());
    let client = udp(&site.inside, INSIDE, 0);
    let until = Instant::now() + DEADLINE;
    let mut buffer = [0; 512];
    let (len, proxy) = loop {
        assert!(Instant::now() < until, "the proxy does not ask");
        let asked = query(5, "a.wild.example.test", TYPE::A);
        client.send_to(&asked, (PROXY, 53)).unwrap();
        if let Ok(received) = uninterrupted(|| server.recv_from(&mut buffer)) {
            break received;
        }
    };
    // From another port of the right host, and to the proxy's own port from a tenant.
    let stranger = udp(&site.outside, OUTSIDE, 0);
    for answer in lies(&buffer[..len]) {
        let other = [answer.as_slice(), &[0; 0]].concat();
        stranger.send_to(&other, proxy).unwrap();
        client.send_to(&other, (PROXY, 53)).unwrap();
    }
    assert_eq!(learned(&site, "*.wild.example.test"), BTreeSet::new());
    for answer in lies(&buffer[..len]) {
        server.send_to(&answer, proxy).unwrap();
    }
    let answer = receive_answer(&client, 5);
    let expected: BTreeSet<IpAddr> = ["203.0.113.10".parse().unwrap()].into();
    assert_eq!(addresses(&answer), expected);
    assert_eq!(learned(&site, "*.wild.example.test"), expected);
    agent.stop();
}

/// The next answer with an id and records.
fn receive_answer(client: &UdpSocket, id: u16) -> Vec<u8> {
    let until = Instant::now() + DEADLINE;
    let mut buffer = [0; 512];
    loop {
        assert!(Instant::now() < until, "no answer");
        if let Ok(len) = uninterrupted(|| client.recv(&mut buffer))
            && buffer[..2] == id.to_be_bytes()
            && !addresses(&buffer[..len]).is_empty()
        {
            return buffer[..len].to_vec();
        }
    }
}
