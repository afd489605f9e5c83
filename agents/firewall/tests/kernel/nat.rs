//! Source NAT and rate limits with packets.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use crate::namespace::{Namespace, can_run};
use crate::site::{INSIDE, INSIDE6, OUTSIDE, OUTSIDE6, Site, udp, uninterrupted};

const ALL: &str = "    cwnp: {egress: [{name: all}]}\n";

/// The sources that a host outside sees of datagrams from several ports.
fn sources(site: &Site, from: &str, to: &str) -> BTreeSet<IpAddr> {
    let receiver = patient(&site.outside, to, 5000);
    let mut seen = BTreeSet::new();
    for port in 0..8 {
        let sender = patient(&site.inside, from, 6000 + port);
        sender
            .send_to(b"x", receiver.local_addr().unwrap())
            .unwrap();
        let (_, peer) = uninterrupted(|| receiver.recv_from(&mut [0; 16])).unwrap();
        seen.insert(peer.ip());
        // The answer finds its way back.
        receiver.send_to(b"y", peer).unwrap();
        uninterrupted(|| sender.recv_from(&mut [0; 16])).unwrap();
    }
    seen
}

/// A socket that waits for what must arrive.
fn patient(at: &Namespace, address: &str, port: u16) -> UdpSocket {
    let socket = udp(at, address, port);
    let wait = std::time::Duration::from_secs(20);
    socket.set_read_timeout(Some(wait)).unwrap();
    socket
}

fn set(addresses: &[&str]) -> BTreeSet<IpAddr> {
    addresses.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn sources_are_replaced_in_every_protocol() {
    if !can_run() {
        return;
    }
    let site = Site::new("nat");
    site.router.ip("addr add 203.0.113.50/32 dev vrf104");
    site.router.ip("addr add fd00:b::50/128 dev vrf104 nodad");
    site.apply(ALL);
    assert_eq!(
        sources(&site, INSIDE, OUTSIDE),
        set(&[INSIDE]),
        "without NAT"
    );
    let one = "      egressRules: [{networkID: internet, ips: [203.0.113.50, 'fd00:b::50']}]\n";
    site.apply(&format!("{one}{ALL}"));
    // The flows from before have their sources: another port begins another flow.
    let receiver = patient(&site.outside, OUTSIDE, 5001);
    let sender = patient(&site.inside, INSIDE, 0);
    sender
        .send_to(b"x", receiver.local_addr().unwrap())
        .unwrap();
    let (_, peer) = uninterrupted(|| receiver.recv_from(&mut [0; 16])).unwrap();
    assert_eq!(set(&["203.0.113.50"]), [peer.ip()].into());
    assert_eq!(sources(&site, INSIDE6, OUTSIDE6), set(&["fd00:b::50"]));
    let target = SocketAddr::new(OUTSIDE.parse().unwrap(), 7000);
    let listener = site.outside.inside(|| TcpListener::bind(target).unwrap());
    let mut stream = site.inside.inside(|| TcpStream::connect(target).unwrap());
    let (mut accepted, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip(), "203.0.113.50".parse::<IpAddr>().unwrap());
    stream.write_all(b"hello").unwrap();
    accepted.read_exact(&mut [0; 5]).unwrap();
    assert!(site.counted("snat/internet").packets >= 10);
}

#[test]
fn several_addresses_are_chosen_by_flow_and_stay() {
    if !can_run() {
        return;
    }
    let site = Site::new("nats");
    let addresses = ["203.0.113.50", "203.0.113.51", "203.0.113.52"];
    for address in addresses {
        site.router.ip(&format!("addr add {address}/32 dev vrf104"));
    }
    let rest = format!(
        "      egressRules: [{{networkID: internet, ips: [{}]}}]\n{ALL}",
        addresses.join(", ")
    );
    site.apply(&rest);
    let seen = sources(&site, INSIDE, OUTSIDE);
    assert_eq!(
        seen.len(),
        1,
        "one client and one server: one source: {seen:?}"
    );
    assert!(seen.is_subset(&set(&addresses)));
    // More servers: more sources.
    let mut all = BTreeSet::new();
    for last in 100..130 {
        let to = format!("203.0.113.{last}");
        site.outside.ip(&format!("addr add {to}/32 dev eth0"));
        let receiver = patient(&site.outside, &to, 5000);
        let sender = udp(&site.inside, INSIDE, 0);
        sender
            .send_to(b"x", receiver.local_addr().unwrap())
            .unwrap();
        all.insert(
            uninterrupted(|| receiver.recv_from(&mut [0; 16]))
                .unwrap()
                .1
                .ip(),
        );
    }
    assert_eq!(all, set(&addresses));
}

#[test]
fn a_rate_limit_drops_what_is_above_it() {
    if !can_run() {
        return;
    }
    let site = Site::new("rate");
    let rest = format!("      rateLimits: [{{networkID: tenant, rate: 1}}]\n{ALL}");
    site.apply(&rest);
    let (sender, receiver) = (
        udp(&site.inside, INSIDE, 0),
        udp(&site.outside, OUTSIDE, 5000),
    );
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while site.counted("rate-limit/tenant").packets == 0 {
        assert!(
            std::time::Instant::now() < until,
            "the limit is never reached"
        );
        for _ in 0..5000 {
            sender
                .send_to(&[0; 1400], receiver.local_addr().unwrap())
                .unwrap();
        }
    }
}
