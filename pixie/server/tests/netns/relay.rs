//! Requests over the relays of switches.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use pixie_boot::{InstallerSource, Relays, Target};
use pixie_server::control::{Desired, SwitchPort};
use proto_wire_dhcp::{Kind, Message, RelayAgentInfo, code};

use crate::dhcp_client::*;
use crate::running_pixie::Running;
use crate::world::*;

const LEAF: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 11);
const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 12);
const LISTENER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 5);

/// A world with a second cable, for management, and a pixie whose network is behind relays.
fn relayed_world() -> (World, Running) {
    let world = World::new();
    let (server, client) = (world.pixie_ns.as_str(), world.client_ns.as_str());
    let ip = |text: &str| sh("ip", &text.split(' ').collect::<Vec<_>>());
    ip(&format!(
        "-n {server} link add r0 type veth peer name r1 netns {client}"
    ));
    ip(&format!("-n {server} addr add {LISTENER}/24 dev r0"));
    ip(&format!("-n {server} link set r0 up"));
    for address in [LEAF, STRANGER] {
        ip(&format!("-n {client} addr add {address}/24 dev r1"));
    }
    ip(&format!("-n {client} link set r1 up"));
    let config = world.config(&format!(
        "relayed = true\nrange = [\"10.99.1.100\", \"10.99.1.110\"]\n\
         [relay]\ninterface = \"r0\"\naddress = \"{LISTENER}\""
    ));
    let pixie = Running::start(&world, config);
    let mut desired = Desired {
        generation: 1,
        installer: InstallerSource::Own,
        relays: Relays::new([(LEAF, "leaf1".to_owned())]),
        ..Desired::default()
    };
    let machine = UUID.parse().unwrap();
    desired.machines.insert(machine, [MAC], Target::Hammer);
    pixie.sink.set(desired, true);
    (world, pixie)
}

/// Sends a message as the relay of a switch would, and waits for the answer.
fn relay(world: &World, from: Ipv4Addr, message: Message, wait: Duration) -> Option<Message> {
    world.in_client(move || {
        let socket = UdpSocket::bind((from, 67)).unwrap();
        socket.set_read_timeout(Some(wait)).unwrap();
        socket.send_to(&message.encode(), (LISTENER, 67)).unwrap();
        let mut buffer = [0; 2048];
        let (length, _) = socket.recv_from(&mut buffer).ok()?;
        Message::decode(&buffer[..length]).ok()
    })
}

fn relayed(kind: Kind, switch: &str, port: &str, options: Raw<'_>) -> Message {
    let mut message = message(kind, options);
    let link = Some(Ipv4Addr::new(10, 99, 1, 0));
    let info = RelayAgentInfo::new(switch, port, link).unwrap();
    message.options.set(code::RELAY_AGENT, info.encode());
    message.giaddr = LEAF;
    message.hops = 1;
    message
}

#[test]
fn a_relayed_boot_is_told_with_its_port() {
    if skipped() {
        return;
    }
    let (world, pixie) = relayed_world();
    let discover = relayed(Kind::Discover, "leaf1", "swp1", &[]);
    let offer = relay(&world, LEAF, discover, WAIT).expect("an offer");
    assert_eq!(offer.kind, Kind::Offer);
    assert!(offer.options.get(code::RELAY_AGENT).is_some(), "returned");
    let address = offer.yiaddr.octets();
    let request = relayed(
        Kind::Request,
        "leaf1",
        "swp1",
        &[
            (code::SERVER_ID, &PIXIE.octets()),
            (code::REQUESTED_ADDRESS, &address),
        ],
    );
    let ack = relay(&world, LEAF, request, WAIT).expect("an acknowledgement");
    assert_eq!((ack.kind, ack.yiaddr), (Kind::Ack, offer.yiaddr));
    world.set_address(ack.yiaddr);
    let path =
        format!("/v1/boot.ipxe?mac=52-54-00-99-01-01&uuid={UUID}&platform=pcbios&buildarch=i386");
    let (status, _) = world.curl(&path, &[]);
    assert_eq!(status, 200);
    let seen = pixie.control.seen.lock().unwrap().clone();
    let port = SwitchPort {
        switch: "leaf1".into(),
        port: "swp1".into(),
    };
    assert_eq!(seen.last().unwrap().relayed, Some(port));
    // The client renews without the relay.
    let mut renewal = message(Kind::Request, &[]);
    renewal.ciaddr = ack.yiaddr;
    let renewed = ask(&world, renewal, 67, WAIT).expect("a renewal");
    assert_eq!(renewed.kind, Kind::Ack);
}

#[test]
fn others_are_refused_and_counted() {
    if skipped() {
        return;
    }
    let (world, _pixie) = relayed_world();
    let short = Duration::from_millis(300);
    let good = relayed(Kind::Discover, "leaf1", "swp1", &[]);
    let mut elsewhere = good.clone();
    elsewhere.giaddr = STRANGER;
    let mut bare = good.clone();
    bare.options.remove(code::RELAY_AGENT);
    let other = relayed(Kind::Discover, "leaf2", "swp1", &[]);
    for (from, message) in [
        (STRANGER, good.clone()),
        (LEAF, elsewhere),
        (LEAF, bare),
        (LEAF, other),
    ] {
        assert_eq!(relay(&world, from, message, short), None);
    }
    assert_eq!(ask(&world, message(Kind::Discover, &[]), 67, short), None);
    assert_eq!(ask(&world, good.clone(), 67, short), None, "from a machine");
    world.set_address(Ipv4Addr::new(10, 99, 1, 77));
    let (_, health) = world.curl("/healthz", &[]);
    for reason in [
        "unknown_relay",
        "other_address",
        "malformed_option_82",
        "other_switch",
        "unrelayed",
        "forged_relay",
    ] {
        assert!(
            health.contains(&format!("\"{reason}\":1")),
            "{reason}: {health}"
        );
    }
    assert!(relay(&world, LEAF, good, WAIT).is_some(), "the good one");
}
