//! Redirects of neighbour discovery about a flow of the firewall itself.

use std::time::{Duration, Instant};

use crate::fragments::{ip, site};
use crate::namespace::can_run;
use crate::packets::{PacketSender, datagram, icmp6, packet};
use crate::site::{OUTSIDE6, arrives, udp};

const OWN: &str = "fd00:b::1";
/// The router that the flow would go to.
const OTHER: &str = "fd00:b::66";

#[test]
fn neighbour_discovery_leads_no_flow_elsewhere() {
    if !can_run() {
        return;
    }
    let (site, _host) = site("redirect");
    let (client, server) = (udp(&site.router, OWN, 0), udp(&site.outside, OUTSIDE6, 53));
    assert!(arrives(&client, &server), "a question");
    assert!(arrives(&server, &client), "its answer");
    let (a, b) = (client.local_addr().unwrap(), server.local_addr().unwrap());
    let quoted = packet(a.ip(), b.ip(), 17, &datagram(a, b, b"x"), None);
    let redirect = icmp6_redirect(&quoted);
    let count = |name| site.counted(name).packets;
    // A kernel that does not know the flow of a redirect takes it for an invalid packet.
    let refused = || count("input/spoofed") + count("input/invalid");
    let before = (refused(), count("input/established"));
    PacketSender::new(&site.outside).send(&redirect, a.ip());
    let until = Instant::now() + Duration::from_secs(5);
    while refused() == before.0 {
        assert!(Instant::now() < until, "it is not refused");
    }
    assert_eq!(
        (refused(), count("input/established")),
        (before.0 + 1, before.1)
    );
    assert!(arrives(&server, &client), "the flow goes on");
}

/// A redirect of [`OUTSIDE6`] to [`OTHER`], with the packet that it is about.
fn icmp6_redirect(quoted: &[u8]) -> Vec<u8> {
    let octets = |text: &str| {
        let std::net::IpAddr::V6(address) = ip(text) else {
            panic!("{text} is an address of IPv6");
        };
        address.octets()
    };
    let mut about = quoted.to_vec();
    about.resize(about.len().next_multiple_of(8), 0);
    let mut body = [octets(OTHER), octets(OUTSIDE6)].concat();
    // The option with the packet; its length is in units of 8 bytes.
    let units = u8::try_from(1 + about.len() / 8).unwrap();
    body.extend([4, units, 0, 0, 0, 0, 0, 0]);
    body.extend(about);
    let router = ip("fe80::66");
    let message = icmp6(router, ip(OWN), 137, &body);
    let mut all = packet(router, ip(OWN), 58, &message, None);
    // No other host than a neighbour sends it.
    all[7] = 255;
    all
}
