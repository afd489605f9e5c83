//! The socket on a real wire: a veth pair in a namespace of the test's own thread, one end in a
//! bridge as a switch port is. Needs root; says so and passes without.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test's helpers")]

use std::process::Command;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use proto_wire_lldp::{Frame, Socket, mac_of};

fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split(' '))
        .status()
        .unwrap();
    assert!(status.success(), "ip {arguments}");
}

#[tokio::test]
async fn a_bridge_port_hears_its_neighbour_and_answers() {
    if unshare(CloneFlags::CLONE_NEWNET).is_err() {
        println!("not run: no right to make a network namespace");
        return;
    }
    ip("link add swp1 type veth peer name eth0");
    ip("link add mmbr type bridge");
    ip("link set swp1 master mmbr");
    for name in ["mmbr", "swp1", "eth0"] {
        ip(&format!("link set {name} up"));
    }
    let (port, machine) = (Socket::open("swp1").unwrap(), Socket::open("eth0").unwrap());
    for (from, to, name) in [(&machine, &port, "eth0"), (&port, &machine, "swp1")] {
        let sent = Frame {
            source: mac_of(name).unwrap(),
            chassis_id: "leaf1".into(),
            port_id: name.into(),
            ttl_s: 120,
            ..Frame::default()
        };
        from.send(&sent.encode()).await.unwrap();
        let read = tokio::time::timeout(Duration::from_secs(5), to.recv())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(Frame::decode(&read), Ok(sent));
    }
    assert!(Socket::open("absent").is_err());
}
