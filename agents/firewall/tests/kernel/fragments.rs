//! Parts of datagrams, and messages about flows, from other networks.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use agents_firewall::admit::admit;
use agents_firewall::compile::compile;
use agents_firewall::config::Config;
use agents_firewall::fragment_room::make_fragment_room;
use agents_firewall::model::NftTable;

use crate::namespace::{Namespace, can_run};
use crate::packets::{PacketSender, Part, datagram, icmp, packet};
use crate::site::{
    CONTROLLERS, INSIDE, INSIDE6, OUTSIDE, OUTSIDE6, Site, answers_ping, arrives, udp,
    uninterrupted,
};
use crate::spoofed::second;

const CONFIG: &str = "
sources:
  static:
    firewall:
      networks:
      - {networkID: tenant, networkType: private, vrf: 42, prefixes: [10.0.0.0/24, 'fd00:a::/64']}
      - {networkID: net268, networkType: private, vrf: 43, prefixes: [10.0.1.0/24, 'fd00:c::/64']}
      - {networkID: internet, networkType: external, vrf: 104, prefixes: [203.0.113.0/24, 'fd00:b::/64']}
    cwnp:
      egress:
      - {name: out, ports: [{protocol: UDP, port: 443}]}
";
/// Parts that fill the kernel's room, as it is by default.
const FLOOD: u16 = 2500;
/// Networks of [`CONFIG`].
const NETWORKS: usize = 3;
/// Memory of the fragments that one network may send, bytes.
const NETWORK_BYTES: u64 = 9000 * 20 * 1024;

/// A host of each network, with rules of [`CONFIG`] between them.
pub(crate) fn site(name: &str) -> (Site, Namespace) {
    site_of(name, CONFIG)
}

/// A host of each network, with rules of a configuration between them.
fn site_of(name: &str, rest: &str) -> (Site, Namespace) {
    let site = Site::new(name);
    let host = second(&site, name);
    // Packets of IPv6 wait a second and longer until their router is found.
    for router in ["10.0.1.1", "fd00:c::1"] {
        let until = Instant::now() + Duration::from_secs(30);
        while !answers_ping(&host, router) {
            assert!(Instant::now() < until, "{router} does not answer");
        }
    }
    let table = table_of(rest);
    site.with_kernel(|kernel| kernel.apply(&table).unwrap());
    (site, host)
}

fn table_of(rest: &str) -> NftTable {
    let config = Config::parse(&format!("{rest}{CONTROLLERS}")).unwrap();
    let admitted = admit(&config);
    assert_eq!(admitted.problems, Vec::new());
    compile(&admitted.rules)
}

/// A datagram that its host sends in parts.
fn assert_long_one_arrives(from: &UdpSocket, to: &UdpSocket, what: &str) {
    let until = Instant::now() + Duration::from_secs(3);
    let mut bytes = [0; 4000];
    loop {
        from.send_to(&[b'x'; 3000], to.local_addr().unwrap())
            .unwrap();
        if uninterrupted(|| to.recv_from(&mut bytes)).is_ok_and(|(len, _)| len == 3000) {
            return;
        }
        assert!(Instant::now() < until, "{what}: it does not arrive");
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn fragments_of_others_take_no_room() {
    if !can_run() {
        return;
    }
    let (site, host) = site("room");
    let sender = PacketSender::new(&host);
    for (from, to, nobody, own) in [
        (INSIDE, OUTSIDE, "172.31.0.9", "10.0.1.2"),
        (INSIDE6, OUTSIDE6, "fd00:dead::9", "fd00:c::2"),
    ] {
        let (client, server) = (udp(&site.inside, from, 0), udp(&site.outside, to, 443));
        assert_long_one_arrives(&client, &server, "before");
        let flood = |source: &str| {
            for id in 0..FLOOD {
                let part = Part {
                    id,
                    offset: 0,
                    has_more: true,
                };
                sender.send_part(ip(source), ip(to), &[0; 1200], part);
            }
        };
        // Sources of no network, with the room that the kernel has by default.
        let before = site.counted("spoofed").packets;
        flood(nobody);
        assert_eq!(site.counted("spoofed").packets - before, u64::from(FLOOD));
        assert_long_one_arrives(&client, &server, nobody);
        // Sources of the network, with the room that the agent makes.
        site.router.inside(|| make_fragment_room(NETWORKS));
        let (before, began) = (site.counted("rate-limit/net268").packets, Instant::now());
        flood(own);
        let passed = 1000 + 4000 * began.elapsed().as_micros() / 1_000_000 + 2;
        let dropped = site.counted("rate-limit/net268").packets - before;
        assert!(
            u128::from(dropped) + passed >= u128::from(FLOOD),
            "{dropped} dropped, at most {passed} may pass"
        );
        assert_long_one_arrives(&client, &server, own);
    }
}

#[test]
fn a_fragment_comes_from_the_network_of_its_datagram() {
    if !can_run() {
        return;
    }
    let (site, host) = site("parts");
    let (forger, one) = (PacketSender::new(&host), PacketSender::new(&site.inside));
    let outside = PacketSender::new(&site.outside);
    for (from, to) in [(INSIDE, OUTSIDE), (INSIDE6, OUTSIDE6)] {
        let (client, server) = (udp(&site.inside, from, 0), udp(&site.outside, to, 443));
        assert!(arrives(&client, &server), "a request");
        assert!(arrives(&server, &client), "a reply");
        let (a, b) = (client.local_addr().unwrap(), server.local_addr().unwrap());
        let ways: [(SocketAddr, SocketAddr, &PacketSender, &UdpSocket); 2] =
            [(a, b, &one, &server), (b, a, &outside, &client)];
        for (id, (source, target, own, receiver)) in (70..).zip(ways) {
            let whole = datagram(source, target, &[b'F'; 1200]);
            let (first, last) = whole.split_at(1000);
            let part = |offset, has_more| Part {
                id,
                offset,
                has_more,
            };
            let before = site.counted("spoofed").packets;
            // The sender's own host completes what another one has begun in its name.
            forger.send_part(source.ip(), target.ip(), first, part(0, true));
            own.send_part(source.ip(), target.ip(), last, part(1000, false));
            assert!(
                uninterrupted(|| receiver.recv_from(&mut [0; 16])).is_err(),
                "{source} to {target}"
            );
            assert_eq!(site.counted("spoofed").packets - before, 1);
        }
        assert_long_one_arrives(&client, &server, from);
        assert_long_one_arrives(&server, &client, to);
    }
}

/// An interface that manages the firewall may be one of a network outside: what it may send to the firewall
/// is no reason to take its fragments.
#[test]
fn a_fragment_from_an_interface_of_management_is_checked() {
    if !can_run() {
        return;
    }
    let managed = "      management: {interfaces: [vrf104], ports: [22]}\n    cwnp:";
    let (site, host) = site_of("managed", &CONFIG.replace("    cwnp:", managed));
    let (forger, one) = (
        PacketSender::new(&site.outside),
        PacketSender::new(&site.inside),
    );
    for (from, to) in [(INSIDE, "10.0.1.2"), (INSIDE6, "fd00:c::2")] {
        let (client, server) = (udp(&site.inside, from, 0), udp(&host, to, 443));
        assert_long_one_arrives(&client, &server, from);
        let (a, b) = (client.local_addr().unwrap(), server.local_addr().unwrap());
        assert_completed(&site, [&forger, &one], [a, b], &server);
        assert_long_one_arrives(&client, &server, from);
    }
}

/// One sender begins a datagram, another one completes it: it must not arrive.
fn assert_completed(
    site: &Site,
    [forger, own]: [&PacketSender; 2],
    [source, target]: [SocketAddr; 2],
    receiver: &UdpSocket,
) {
    let whole = datagram(source, target, &[b'F'; 1200]);
    let (first, last) = whole.split_at(1000);
    let part = |offset, has_more| Part {
        id: 97,
        offset,
        has_more,
    };
    let before = site.counted("spoofed").packets;
    forger.send_part(source.ip(), target.ip(), first, part(0, true));
    own.send_part(source.ip(), target.ip(), last, part(1000, false));
    let received = uninterrupted(|| receiver.recv_from(&mut [0; 16]));
    assert!(received.is_err(), "{source} to {target}");
    assert_eq!(site.counted("spoofed").packets - before, 1);
}

/// The address of the firewall in a network outside stands for a host inside.
#[test]
fn a_fragment_of_another_network_gets_into_no_translated_flow() {
    if !can_run() {
        return;
    }
    let nat = CONFIG.replace("vrf: 104,", "vrf: 104, nat: true,");
    let (site, host) = site_of("nat", &nat);
    let (forger, outside) = (PacketSender::new(&host), PacketSender::new(&site.outside));
    for (from, to, own) in [
        (INSIDE, OUTSIDE, "203.0.113.1"),
        (INSIDE6, OUTSIDE6, "fd00:b::1"),
    ] {
        let (client, server) = (udp(&site.inside, from, 0), udp(&site.outside, to, 443));
        client.send_to(b"x", server.local_addr().unwrap()).unwrap();
        let (_, translated) = uninterrupted(|| server.recv_from(&mut [0; 16])).unwrap();
        assert_eq!(translated.ip(), ip(own));
        server.send_to(b"y", translated).unwrap();
        uninterrupted(|| client.recv_from(&mut [0; 16])).unwrap();
        let ends = [server.local_addr().unwrap(), translated];
        assert_completed(&site, [&forger, &outside], ends, &client);
        server.send_to(&[b'y'; 3000], translated).unwrap();
        let mut bytes = [0; 4000];
        assert_eq!(
            uninterrupted(|| client.recv_from(&mut bytes)).unwrap().0,
            3000,
            "{from}"
        );
    }
}

#[test]
fn fragments_of_one_stranger_leave_those_of_others() {
    if !can_run() {
        return;
    }
    let (site, _host) = site("stranger");
    site.router.inside(|| make_fragment_room(NETWORKS));
    let sender = PacketSender::new(&site.outside);
    for (from, to, stranger) in [
        (INSIDE, OUTSIDE, "203.0.113.3"),
        (INSIDE6, OUTSIDE6, "fd00:b:0:1::3"),
    ] {
        let (client, server) = (udp(&site.inside, from, 0), udp(&site.outside, to, 443));
        assert_long_one_arrives(&client, &server, "before");
        let limited = || site.counted("rate-limit/internet").packets;
        let (before, began) = (limited(), Instant::now());
        for id in 0..FLOOD * 2 {
            let part = Part {
                id,
                offset: 0,
                has_more: true,
            };
            sender.send_part(ip(stranger), ip(from), &[0; 8], part);
        }
        for _ in 0..10 {
            server
                .send_to(&[b'x'; 3000], client.local_addr().unwrap())
                .unwrap();
        }
        let mut bytes = [0; 4000];
        for _ in 0..10 {
            let (len, _) = uninterrupted(|| client.recv_from(&mut bytes)).unwrap();
            assert_eq!(len, 3000);
        }
        let passed = 250 + 500 * began.elapsed().as_micros() / 1_000_000 + 2;
        let dropped = limited() - before;
        assert!(
            u128::from(dropped) + passed >= u128::from(FLOOD * 2),
            "{dropped} dropped, at most {passed} may pass"
        );
        // The kernel's memory of senders is none of the rules.
        let changes = site.with_kernel(|kernel| kernel.apply(&table_of(CONFIG)).unwrap().changes);
        assert_eq!(changes, Vec::new());
    }
}

#[test]
fn a_network_fills_its_part_of_the_room_also_with_large_fragments() {
    if !can_run() {
        return;
    }
    let (site, host) = site("large");
    host.ip("link set eth0 mtu 9000");
    site.router.ip("link set vrf43 mtu 9000");
    site.router.inside(|| make_fragment_room(NETWORKS));
    let (client, server) = (
        udp(&site.inside, INSIDE, 0),
        udp(&site.outside, OUTSIDE, 443),
    );
    assert_long_one_arrives(&client, &server, "before");
    let sender = PacketSender::new(&host);
    let (mut most, began) = (0, Instant::now());
    // Longer than the kernel waits for the rest, from many senders.
    let mut ids = (0..u16::MAX).cycle();
    while began.elapsed() < Duration::from_millis(2500) {
        for id in ids.by_ref().take(500) {
            let part = Part {
                id,
                offset: 0,
                has_more: true,
            };
            let source = format!("10.0.1.{}", 10 + id % 50);
            sender.send_part(ip(&source), ip(OUTSIDE), &[0; 8960], part);
        }
        let text = site.router.output("cat /proc/net/sockstat");
        let memory = text.lines().find_map(|line| line.strip_prefix("FRAG: "));
        let memory = memory.and_then(|line| line.rsplit(' ').next()).unwrap();
        most = most.max(memory.parse::<u64>().unwrap());
    }
    assert!(most > 0 && most <= NETWORK_BYTES, "{most} bytes");
    assert_long_one_arrives(&server, &client, "of another network");
}

#[test]
fn messages_about_a_flow_come_from_its_networks() {
    if !can_run() {
        return;
    }
    let (site, host) = site("about");
    let (client, server) = (
        udp(&site.inside, INSIDE, 0),
        udp(&site.outside, OUTSIDE, 443),
    );
    assert!(arrives(&client, &server), "a request");
    assert!(arrives(&server, &client), "a reply");
    let (a, b) = (client.local_addr().unwrap(), server.local_addr().unwrap());
    let sent = packet(a.ip(), b.ip(), 17, &datagram(a, b, b"x"), None);
    let gateway = [10, 0, 0, 66];
    let count = |name| site.counted(name).packets;
    for (at, source, kind, code, rest, counter) in [
        (&host, "10.0.1.2", 3, 4, [0, 0, 5, 0], "spoofed"),
        (&host, "10.0.1.2", 3, 1, [0; 4], "spoofed"),
        (&host, "10.0.1.2", 5, 1, gateway, "spoofed"),
        // In the name of a router of the victim.
        (&host, "10.0.0.77", 5, 1, gateway, "spoofed"),
        (&site.outside, OUTSIDE, 3, 4, [0, 0, 5, 0], "established"),
        (&site.outside, OUTSIDE, 5, 1, gateway, "spoofed"),
    ] {
        let message = packet(ip(source), a.ip(), 1, &icmp(kind, code, rest, &sent), None);
        let before = ["spoofed", "established"].map(count);
        PacketSender::new(at).send(&message, a.ip());
        let until = Instant::now() + Duration::from_secs(5);
        while ["spoofed", "established"].map(count) == before {
            assert!(Instant::now() < until, "{source} {kind} is not counted");
        }
        let after = ["spoofed", "established"].map(count);
        let expected = if counter == "spoofed" {
            [before[0] + 1, before[1]]
        } else {
            [before[0], before[1] + 1]
        };
        assert_eq!(after, expected, "{source} {kind}/{code}");
    }
    assert!(arrives(&client, &server), "the flow goes on");
}

#[test]
fn the_firewalls_own_flows_are_bound() {
    if !can_run() {
        return;
    }
    let (site, host) = site("ownflow");
    let forger = PacketSender::new(&host);
    for (own, to) in [("203.0.113.1", OUTSIDE), ("fd00:b::1", OUTSIDE6)] {
        let (client, server) = (udp(&site.router, own, 0), udp(&site.outside, to, 53));
        assert!(arrives(&client, &server), "a question");
        let (a, b) = (client.local_addr().unwrap(), server.local_addr().unwrap());
        let before = site.counted("input/spoofed").packets;
        let forged = packet(b.ip(), a.ip(), 17, &datagram(b, a, b"FORGED"), None);
        forger.send(&forged, a.ip());
        assert!(
            uninterrupted(|| client.recv_from(&mut [0; 16])).is_err(),
            "{own} got it"
        );
        assert_eq!(site.counted("input/spoofed").packets - before, 1);
        assert!(arrives(&server, &client), "its answer");
    }
}
