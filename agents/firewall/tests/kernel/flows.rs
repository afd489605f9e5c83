//! Flows that another firewall takes over in their middle: it has the same rules, and has seen none of
//! their packets.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use agents_firewall::admit::admit;
use agents_firewall::compile::compile;
use agents_firewall::config::Config;
use agents_firewall::model::NftTable;
use agents_firewall::netlink::Kernel;

use crate::namespace::{Namespace, can_run};
use crate::site::{CONTROLLERS, INSIDE, OUTSIDE, Site, arrives, udp, uninterrupted};

/// Port that the rules let flows pass to, for both protocols.
const PORT: u16 = 443;
/// Longest wait for a segment that must arrive: TCP sends it again and again.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes that no window of TCP has.
const MORE_THAN_A_WINDOW: usize = 64 << 20;
/// Wait for a segment that must not arrive: some retransmissions.
const SILENCE: Duration = Duration::from_secs(2);

/// The rules of both firewalls. With source NAT each gives flows its own address.
fn rules(has_nat: bool) -> NftTable {
    let text = format!(
        "
sources:
  static:
    firewall:
      networks:
      - {{networkID: tenant, networkType: private, vrf: 42, prefixes: [10.0.0.0/8]}}
      - {{networkID: internet, networkType: external, vrf: 104, nat: {has_nat}, prefixes: [0.0.0.0/0]}}
    cwnp:
      egress:
      - {{name: out, ports: [{{port: {PORT}}}, {{protocol: UDP, port: {PORT}}}]}}
{CONTROLLERS}"
    );
    let admitted = admit(&Config::parse(&text).unwrap());
    assert_eq!(admitted.problems, Vec::new());
    compile(&admitted.rules)
}

/// A second firewall beside that of a site, on cables of its own.
fn second(site: &Site, test: &str, table: &NftTable) -> Namespace {
    let router = Namespace::new(test, "fw2");
    for (host, port, network) in [
        (&site.inside, "vrf42", "10.0.9"),
        (&site.outside, "vrf104", "203.0.114"),
    ] {
        router.ip(&format!(
            "link add {port} type veth peer name eth1 netns {}",
            host.0
        ));
        for (at, link, number) in [(&router, port, 1), (host, "eth1", 2)] {
            at.ip(&format!("addr add {network}.{number}/24 dev {link}"));
            at.ip(&format!("link set {link} up"));
            for name in ["all", link] {
                at.output(&format!("sysctl -q -w net.ipv4.conf.{name}.rp_filter=0"));
            }
        }
    }
    router.ip(&format!("route add {INSIDE}/32 via 10.0.9.2"));
    router.ip(&format!("route add {OUTSIDE}/32 via 203.0.114.2"));
    router.output("sysctl -q -w net.ipv4.ip_forward=1");
    router.inside(|| Kernel::open().unwrap().apply(table).unwrap());
    router
}

/// Leads the packets of both hosts through a firewall.
fn lead(site: &Site, [inside, outside]: [&str; 2]) {
    for (host, via, own) in [
        (&site.inside, inside, INSIDE),
        (&site.outside, outside, OUTSIDE),
    ] {
        host.ip(&format!("route replace default via {via} src {own}"));
    }
}

/// Leads the packets of both hosts through the second firewall.
fn fail_over(site: &Site) {
    lead(site, ["10.0.9.1", "203.0.114.1"]);
}

/// A connection through the first firewall: the client's and the server's end.
fn connect(site: &Site) -> [TcpStream; 2] {
    let listener = site.outside.inside(|| TcpListener::bind((OUTSIDE, PORT)));
    let listener = listener.unwrap();
    let client = site.inside.inside(|| TcpStream::connect((OUTSIDE, PORT)));
    let mut ends = [client.unwrap(), listener.accept().unwrap().0];
    let [client, server] = &mut ends;
    assert!(passes(client, server, PATIENCE) && passes(server, client, PATIENCE));
    ends
}

/// `true` if a byte from one end arrives at the other within a time.
fn passes(from: &mut TcpStream, to: &mut TcpStream, within: Duration) -> bool {
    from.write_all(b"x").unwrap();
    reads(to, within)
}

fn reads(from: &mut TcpStream, within: Duration) -> bool {
    from.set_read_timeout(Some(within)).unwrap();
    match uninterrupted(|| from.read(&mut [0; 1])) {
        Ok(count) => count == 1,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    }
}

/// The packets that a counter of a firewall has counted.
fn counted(router: &Namespace, name: &str) -> u64 {
    let counters = router.inside(|| Kernel::open().unwrap().counters().unwrap());
    counters[name].packets
}

#[test]
fn a_flow_goes_on_through_another_firewall_once_its_client_sends() {
    if !can_run() {
        return;
    }
    let site = Site::new("flow");
    let table = rules(false);
    site.with_kernel(|kernel| kernel.apply(&table).unwrap());
    let other = second(&site, "flow", &table);
    let [mut client, mut server] = connect(&site);
    let sender = udp(&site.inside, INSIDE, 0);
    let receiver = udp(&site.outside, OUTSIDE, PORT);
    assert!(arrives(&sender, &receiver) && arrives(&receiver, &sender));
    fail_over(&site);

    // The rules permit the direction of the client alone: nothing tells that a packet of the server is
    // a reply.
    assert!(!passes(&mut server, &mut client, SILENCE));
    assert!(!arrives(&receiver, &sender));
    assert!(counted(&other, "dropped") >= 2);

    // The client's next packet makes it known, and lost segments are sent again.
    assert!(passes(&mut client, &mut server, PATIENCE));
    assert!(reads(&mut client, PATIENCE), "sent again by the server");
    assert!(passes(&mut server, &mut client, PATIENCE));
    let until = Instant::now() + PATIENCE;
    while !arrives(&sender, &receiver) {
        assert!(Instant::now() < until, "the client's datagram must pass");
    }
    assert!(arrives(&receiver, &sender));
}

#[test]
fn the_end_of_an_unknown_flow_is_invalid() {
    if !can_run() {
        return;
    }
    let site = Site::new("flow-end");
    let table = rules(false);
    site.with_kernel(|kernel| kernel.apply(&table).unwrap());
    let other = second(&site, "flow-end", &table);
    let [mut client, server] = connect(&site);
    fail_over(&site);
    client.shutdown(Shutdown::Write).unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    client.set_read_timeout(Some(SILENCE)).unwrap();
    let end = uninterrupted(|| client.read(&mut [0; 1])).map_err(|error| error.kind());
    assert_eq!(end, Err(ErrorKind::WouldBlock));
    assert!(counted(&other, "invalid") >= 2);
}

#[test]
fn a_flow_that_comes_back_after_a_window_is_invalid() {
    if !can_run() {
        return;
    }
    let site = Site::new("flow-back");
    let table = rules(false);
    site.with_kernel(|kernel| kernel.apply(&table).unwrap());
    let _other = second(&site, "flow-back", &table);
    let [mut client, mut server] = connect(&site);
    fail_over(&site);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rest = vec![0; MORE_THAN_A_WINDOW];
            server.set_read_timeout(Some(PATIENCE)).unwrap();
            server.read_exact(&mut rest).unwrap();
        });
        client.write_all(&vec![0; MORE_THAN_A_WINDOW]).unwrap();
    });
    lead(&site, ["10.0.0.1", "203.0.113.1"]);
    assert!(!passes(&mut client, &mut server, SILENCE));
    assert!(site.counted("invalid").packets > 0);
}

#[test]
fn a_flow_with_source_nat_ends_with_its_firewall() {
    if !can_run() {
        return;
    }
    let site = Site::new("flow-nat");
    let table = rules(true);
    site.with_kernel(|kernel| kernel.apply(&table).unwrap());
    let _other = second(&site, "flow-nat", &table);
    let [mut client, mut server] = connect(&site);
    assert_eq!(server.peer_addr().unwrap().ip().to_string(), "203.0.113.1");
    fail_over(&site);
    // It comes from the address of the other firewall, of which the server knows no connection.
    assert!(!passes(&mut client, &mut server, SILENCE));
    assert!(!reads(&mut client, SILENCE));
    // A new one passes.
    let client = site.inside.inside(|| {
        let listener = site.outside.inside(|| TcpListener::bind((OUTSIDE, PORT)));
        let listener = listener.unwrap();
        let client = TcpStream::connect((OUTSIDE, PORT)).unwrap();
        let (_, caller) = listener.accept().unwrap();
        assert_eq!(caller.ip().to_string(), "203.0.114.1");
        client
    });
    drop(client);
}
