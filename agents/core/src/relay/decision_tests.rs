use proto_wire_dhcp::Options;

use super::*;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 1, 1]);
const PORT_MAC: MacAddr = MacAddr([2, 0, 0, 0, 9, 9]);
const LEAF: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 11);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 5);
const PIXIE: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);

fn relay() -> Relay {
    let text = "rack = \"r1\"\nmanagement_ip = \"10.90.0.11\"\nvtep = \"10.91.0.11\"\n\
                [relay]\nserver = \"10.90.0.5\"\nlink = \"10.77.1.0\"\n";
    let config: Config = toml::from_str(text).unwrap();
    Relay::new("leaf1", &config, config.relay.as_ref().unwrap()).unwrap()
}

/// A relay that passed the request on which [`answer`] answers.
fn asked() -> Relay {
    let relay = relay();
    let request = frame(&message(BOOTP_REQUEST, Kind::Discover));
    relay.request("swp1", &request, 0).unwrap();
    relay
}

fn message(op: u8, kind: Kind) -> Message {
    Message {
        op,
        kind,
        hops: 0,
        xid: 7,
        secs: 0,
        flags: 0,
        ciaddr: Ipv4Addr::UNSPECIFIED,
        yiaddr: Ipv4Addr::UNSPECIFIED,
        siaddr: Ipv4Addr::UNSPECIFIED,
        giaddr: Ipv4Addr::UNSPECIFIED,
        chaddr: MAC,
        sname: String::new(),
        file: String::new(),
        options: Options::default(),
    }
}

/// A broadcast frame of a client.
fn frame(message: &Message) -> Vec<u8> {
    let frame = ServerFrame {
        source_mac: MAC,
        target_mac: MacAddr([0xff; 6]),
        source: Ipv4Addr::UNSPECIFIED,
        target: Ipv4Addr::BROADCAST,
    };
    let mut bytes = frame.encode(&message.encode()).unwrap();
    // From the client's port to the server's.
    bytes[34..38].copy_from_slice(&[0, 68, 0, 67]);
    bytes
}

fn answer(change: impl FnOnce(&mut Message)) -> Vec<u8> {
    let info = RelayAgentInfo::new("leaf1", "swp1", Some(Ipv4Addr::new(10, 77, 1, 0))).unwrap();
    let mut answer = message(BOOTP_REPLY, Kind::Offer);
    answer.giaddr = LEAF;
    answer.yiaddr = Ipv4Addr::new(10, 77, 1, 100);
    answer.options.set(code::RELAY_AGENT, info.encode());
    answer.options.set(code::SERVER_ID, PIXIE.octets());
    change(&mut answer);
    answer.encode()
}

#[test]
fn a_request_names_its_port() {
    let sent = relay().request("swp1", &frame(&message(BOOTP_REQUEST, Kind::Discover)), 0);
    let sent = Message::decode(&sent.unwrap()).unwrap();
    assert_eq!((sent.giaddr, sent.hops, sent.chaddr), (LEAF, 1, MAC));
    let info = RelayAgentInfo::decode(sent.options.get(code::RELAY_AGENT).unwrap()).unwrap();
    assert_eq!((info.switch(), info.port()), ("leaf1", "swp1"));
    assert_eq!(info.link(), Some(Ipv4Addr::new(10, 77, 1, 0)));
}

#[test]
fn machines_are_neither_relays_nor_servers() {
    let relay = relay();
    let refused = |op, kind, change: fn(&mut Message)| {
        let mut message = message(op, kind);
        change(&mut message);
        relay.request("swp1", &frame(&message), 0).unwrap_err()
    };
    for (what, got, want) in [
        (
            "option 82",
            refused(BOOTP_REQUEST, Kind::Discover, |m| {
                m.options
                    .set(code::RELAY_AGENT, *b"\x01\x04swp2\x02\x05leaf1");
            }),
            Dropped::ForgedRelay,
        ),
        (
            "an empty option 82",
            refused(BOOTP_REQUEST, Kind::Discover, |m| {
                m.options.set(code::RELAY_AGENT, []);
            }),
            Dropped::ForgedRelay,
        ),
        (
            "giaddr",
            refused(BOOTP_REQUEST, Kind::Discover, |m| m.giaddr = LEAF),
            Dropped::ForgedRelay,
        ),
        (
            "an offer",
            refused(BOOTP_REPLY, Kind::Offer, |_| {}),
            Dropped::RogueServer,
        ),
        (
            "an acknowledgement as a request",
            refused(BOOTP_REQUEST, Kind::Ack, |_| {}),
            Dropped::RogueServer,
        ),
        (
            "another MAC address",
            refused(BOOTP_REQUEST, Kind::Discover, |m| m.chaddr.0[5] = 9),
            Dropped::ForgedSender,
        ),
        (
            "hops",
            refused(BOOTP_REQUEST, Kind::Discover, |m| m.hops = HOPS_MAX),
            Dropped::Hops,
        ),
        (
            "hops that overflow",
            refused(BOOTP_REQUEST, Kind::Discover, |m| m.hops = u8::MAX),
            Dropped::Hops,
        ),
    ] {
        assert_eq!(got, want, "{what}");
    }
    let mut unicast = frame(&message(BOOTP_REQUEST, Kind::Request));
    unicast[..6].copy_from_slice(&PORT_MAC.0);
    assert_eq!(relay.request("swp1", &unicast, 0), Err(Dropped::NoRequest));
    let mut garbage = frame(&message(BOOTP_REQUEST, Kind::Discover));
    garbage[42 + 236] = 0;
    assert_eq!(relay.request("swp1", &garbage, 0), Err(Dropped::Malformed));
}

#[test]
fn a_flood_of_one_port_leaves_the_others_alone() {
    let relay = relay();
    let bytes = frame(&message(BOOTP_REQUEST, Kind::Discover));
    let passed = |port: &str, mac: MacAddr, now_us| {
        let mut message = message(BOOTP_REQUEST, Kind::Discover);
        message.chaddr = mac;
        let mut bytes = frame(&message);
        bytes[6..12].copy_from_slice(&mac.0);
        relay.request(port, &bytes, now_us).is_ok()
    };
    let sent = (0..1000).filter(|_| relay.request("swp1", &bytes, 0).is_ok());
    let sent = sent.count();
    assert!((10..=40).contains(&sent), "{sent}");
    // Other addresses at that port are held back. That address at another port is heard: the
    // flood may be in the name of the machine there, so that it would not boot.
    assert!(!passed("swp1", MacAddr([2, 0, 0, 0, 1, 2]), 0));
    assert!(passed("swp2", MAC, 0));
    assert!(passed("swp2", MacAddr([2, 0, 0, 0, 1, 3]), 0));
    assert!(passed("swp1", MAC, 60_000_000), "a minute later");
}

#[test]
fn an_answer_goes_to_the_port_that_it_names_without_the_relays_data() {
    let relay = asked();
    let from = SocketAddr::from((SERVER, 67));
    let mac_of = |port: &str| (port == "swp1").then_some(PORT_MAC);
    let delivery = relay.answer(&answer(|_| {}), from, mac_of).unwrap();
    assert_eq!(delivery.port, "swp1");
    assert_eq!(delivery.frame[..6], MAC.0, "to the client alone");
    assert_eq!(delivery.frame[6..12], PORT_MAC.0);
    assert_eq!(delivery.frame[26..30], PIXIE.octets());
    assert_eq!(delivery.frame[30..34], [10, 77, 1, 100]);
    let message = Message::decode(&delivery.frame[42..]).unwrap();
    assert_eq!(message.options.get(code::RELAY_AGENT), None);
    let changes: [fn(&mut Message); 3] = [
        |m| m.flags = 0x8000,
        |m| m.kind = Kind::Nak,
        |m| m.yiaddr = Ipv4Addr::UNSPECIFIED,
    ];
    for change in changes {
        let delivery = relay.answer(&answer(change), from, mac_of).unwrap();
        assert_eq!(delivery.frame[..6], [0xff; 6]);
        assert_eq!(delivery.frame[30..34], [0xff; 4]);
    }
}

#[test]
fn answers_of_others_are_dropped() {
    let relay = asked();
    let from = SocketAddr::from((SERVER, 67));
    let refused = |change: fn(&mut Message), from| {
        let mac_of = |port: &str| (port == "swp1").then_some(PORT_MAC);
        relay.answer(&answer(change), from, mac_of).unwrap_err()
    };
    for (what, got, want) in [
        (
            "another host",
            refused(|_| {}, SocketAddr::from((LEAF, 67))),
            Dropped::Stranger,
        ),
        (
            "another port of the server",
            refused(|_| {}, SocketAddr::from((SERVER, 6767))),
            Dropped::Stranger,
        ),
        (
            "a request",
            refused(|m| m.op = BOOTP_REQUEST, from),
            Dropped::Malformed,
        ),
        (
            "another relay's",
            refused(|m| m.giaddr = PIXIE, from),
            Dropped::OtherRelay,
        ),
        (
            "another switch's",
            refused(
                |m| {
                    m.options
                        .set(code::RELAY_AGENT, *b"\x01\x04swp1\x02\x05leaf2");
                },
                from,
            ),
            Dropped::OtherRelay,
        ),
        (
            "without the relay's data",
            refused(|m| m.options.remove(code::RELAY_AGENT), from),
            Dropped::OtherRelay,
        ),
        (
            "a tenant's port",
            refused(
                |m| {
                    m.options
                        .set(code::RELAY_AGENT, *b"\x01\x04swp2\x02\x05leaf1");
                },
                from,
            ),
            Dropped::NoPort,
        ),
    ] {
        assert_eq!(got, want, "{what}");
    }
}

/// The server's address proves nothing: whoever reaches the switch can send in its name.
#[test]
fn an_answer_that_no_machine_asked_for_is_dropped() {
    let from = SocketAddr::from((SERVER, 67));
    let mac_of = |port: &str| port.starts_with("swp").then_some(PORT_MAC);
    let unasked = relay().answer(&answer(|_| {}), from, mac_of);
    assert!(unasked.is_err(), "{unasked:?}");
    let relay = asked();
    let changes: [fn(&mut Message); 3] = [
        |m| m.xid = 8,
        |m| m.chaddr.0[5] = 9,
        |m| {
            m.options
                .set(code::RELAY_AGENT, *b"\x01\x04swp2\x02\x05leaf1");
        },
    ];
    for change in changes {
        let unasked = relay.answer(&answer(change), from, mac_of);
        assert!(unasked.is_err(), "{unasked:?}");
    }
    relay.answer(&answer(|_| {}), from, mac_of).unwrap();
}
