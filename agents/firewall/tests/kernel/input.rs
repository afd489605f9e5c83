//! Packets for the firewall itself.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::namespace::{Namespace, can_run};
use crate::site::{Site, answers_ping, arrives, udp};

/// Time for a connection that should be refused by silence.
const SILENCE: Duration = Duration::from_millis(300);
/// The router's addresses on each side.
const ROUTER: [&str; 4] = ["10.0.0.1", "fd00:a::1", "203.0.113.1", "fd00:b::1"];

/// Tenants may do everything that is forwarded, and the host outside manages the firewall.
const OPEN: &str = "
      management: {interfaces: [eth9], prefixes: [203.0.113.0/24, 'fd00:b::/64'], ports: [22]}
    cwnp: {egress: [{name: all}], ingress: [{name: all}]}
";

fn target(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse::<IpAddr>().unwrap(), port)
}

fn connects(from: &Namespace, to: SocketAddr) -> bool {
    from.inside(|| TcpStream::connect_timeout(&to, SILENCE).is_ok())
}

#[test]
fn tenants_do_not_reach_the_firewall_and_management_does() {
    if !can_run() {
        return;
    }
    let site = Site::new("input");
    let listeners: Vec<TcpListener> = ROUTER
        .iter()
        .flat_map(|address| [22, 179, 9100].map(|port| target(address, port)))
        .map(|at| site.router.inside(|| TcpListener::bind(at).unwrap()))
        .collect();
    for listener in &listeners {
        let at = listener.local_addr().unwrap();
        assert!(connects(&site.inside, at), "without rules: {at}");
    }
    site.apply(OPEN);
    for listener in &listeners {
        let at = listener.local_addr().unwrap();
        assert!(!connects(&site.inside, at), "a tenant reaches {at}");
        let is_management = at.port() == 22;
        assert_eq!(
            connects(&site.outside, at),
            is_management,
            "from outside: {at}"
        );
    }
    // Neighbours are found, and pings answered, on both sides.
    for (host, router) in [
        (&site.inside, [ROUTER[0], ROUTER[1]]),
        (&site.outside, [ROUTER[2], ROUTER[3]]),
    ] {
        host.output("ip neigh flush all");
        for address in router {
            assert!(answers_ping(host, address), "{address}");
        }
    }
    assert!(site.counted("input/private").packets > 0);
    assert!(site.counted("input/dropped").packets > 0);
    assert!(site.counted("firewall/input/managers/0").packets > 0);
}

#[test]
fn the_firewalls_own_flows_go_on() {
    if !can_run() {
        return;
    }
    let site = Site::new("own");
    site.apply("");
    for (own, to) in [("203.0.113.1", "203.0.113.2"), ("fd00:b::1", "fd00:b::2")] {
        let (client, server) = (udp(&site.router, own, 0), udp(&site.outside, to, 53));
        assert!(arrives(&client, &server), "a question");
        assert!(arrives(&server, &client), "its answer");
        let stranger = udp(&site.outside, to, 54);
        assert!(!arrives(&stranger, &client), "a stranger");
    }
}
