//! Packets of two tenants with the same addresses, over two leaves.

use std::time::Instant;

use agents_nos::Membership;
use agents_nos::frr::{
    BgpInstance, BgpVrf, FrrConfig, InterfaceName, Neighbour, PeerSettings, Redistribute, Remote,
    RemoteAs,
};

use super::daemons::{DEADLINE, Switch, ip};
use super::fabric::{Fabric, UPLINKS};
use super::hosts::{Host, PORT, answer, assert_silent, cable, listen, reaches};
use super::models::{enter, machine, place, tenant};
use super::switch::{is_available, run_back_end};

const MACHINE_ASN: u32 = 4_210_000_001;

/// A machine with FRR that announces the addresses of its loopback.
async fn start_machine(test: &str, leaf: &Switch, port: &str, address: &str) -> Switch {
    let machine = Switch::start(test, &[]).await;
    cable(leaf, port, &machine.name, "eth0");
    machine.ip(&format!("addr add {address} dev lo"));
    ip(&format!(
        "netns exec {} sysctl -qw net.ipv4.conf.all.rp_filter=0",
        machine.name
    ));
    let asn = agents_nos::frr::Asn::parse(&MACHINE_ASN.to_string()).unwrap();
    let mut instance = BgpInstance::new(asn);
    instance.router_id = Some([10, 3, 0, 1].into());
    instance.ebgp_requires_policy = false;
    instance.redistribute.ipv4 = Redistribute::Connected;
    let mut settings = PeerSettings::default();
    settings.families.ipv4.activate = true;
    settings.families.ipv6.activate = true;
    let remote = Remote::As(RemoteAs::External);
    let neighbour = Neighbour { remote, settings };
    let eth0 = InterfaceName::new("eth0").unwrap();
    instance.neighbours.insert(eth0, neighbour);
    let mut config = FrrConfig::default();
    config.bgp.insert(BgpVrf::Default, instance);
    let observed = machine.ready().await;
    machine.frr.apply(&observed, &config).await.unwrap();
    listen(&machine.name, test);
    machine
}

#[tokio::test]
async fn tenants_reach_their_own_and_nothing_else() {
    if !is_available() {
        return;
    }
    let started = Instant::now();
    let mut fabric = Fabric::start("pk").await;
    let [first, second] = &mut fabric.models;
    for (number, port) in [(27, "swp3"), (28, "swp4")] {
        tenant(
            first,
            number,
            number * 10 + 1,
            &["10.1.0.254/24", "2001:db8:1::fe/64"],
        );
        tenant(
            second,
            number,
            number * 10 + 2,
            &["10.2.0.254/24", "2001:db8:2::fe/64"],
        );
        enter(first, port, place(number * 10 + 1), 1500);
        enter(second, port, place(number * 10 + 2), 1500);
    }
    machine(first, "swp5", 27, MACHINE_ASN, "10.3.0.0/24");
    machine(second, "swp5", 28, MACHINE_ASN, "10.3.0.0/24");
    let [leaf1, leaf2] = &fabric.leaves;
    let hosts = [
        Host::new("a1", leaf1, "swp3", "10.1.0.1/24", "10.1.0.254"),
        Host::new("b1", leaf1, "swp4", "10.1.0.1/24", "10.1.0.254"),
        Host::new("a2", leaf2, "swp3", "10.2.0.1/24", "10.2.0.254"),
        Host::new("b2", leaf2, "swp4", "10.2.0.1/24", "10.2.0.254"),
    ];
    let machine_a = start_machine("ma", leaf1, "swp5", "10.3.0.1/32").await;
    let machine_b = start_machine("mb", leaf2, "swp5", "10.3.0.1/32").await;
    println!("started after {:?}", started.elapsed());
    fabric.reconcile();
    println!("configured after {:?}", started.elapsed());
    let [a1, b1, a2, b2] = hosts.each_ref().map(|host| host.name.as_str());
    for (host, target, word) in [
        (a1, "10.2.0.1", "a2"),
        (b1, "10.2.0.1", "b2"),
        (a2, "10.1.0.1", "a1"),
        (b2, "10.1.0.1", "b1"),
        (a1, "10.3.0.1", "ma"),
        (a2, "10.3.0.1", "ma"),
        (b1, "10.3.0.1", "mb"),
        (b2, "10.3.0.1", "mb"),
        (&machine_a.name, "10.2.0.1", "a2"),
        (&machine_b.name, "10.1.0.1", "b1"),
    ] {
        if !reaches(host, target, word) {
            fabric.show();
            panic!("{host} does not reach {target}");
        }
        println!("{host} reaches {word} after {:?}", started.elapsed());
    }
    // The gateway itself answers; no other address of the switch does.
    assert_eq!(answer(a1, "10.1.0.254", PORT).as_deref(), Some("refused"));
    let bgp = 179;
    for host in [a1, b1, a2, b2, &machine_a.name, &machine_b.name] {
        for target in ["10.0.0.11", "10.0.0.12", "10.0.0.1"] {
            assert_silent(host, target, bgp);
        }
    }
    let spine = &fabric.spines[0].name;
    assert_eq!(
        answer(spine, "10.0.0.11", bgp).as_deref().map(|_| ()),
        Some(())
    );
    assert_silent(spine, "10.1.0.1", PORT);
    router_macs_come_back(&fabric, a1);
    leave(&mut fabric, b1, a1);
}

/// zebra removes the entry of a router MAC address that routes of one IP version still need.
fn router_macs_come_back(fabric: &Fabric, host: &str) {
    let leaf = &fabric.leaves[0];
    run_back_end(leaf);
    let entry = || {
        let shown = bridge(leaf, "fdb show dev mmx27");
        let mut lines = shown.lines().filter(|line| line.contains("dst 10.0.0.12"));
        let mac = lines.next()?.split(' ').next()?.to_owned();
        (mac != "00:00:00:00:00:00").then_some(mac)
    };
    for _ in 0..3 {
        let mac = entry().unwrap();
        bridge(leaf, &format!("fdb del {mac} dev mmx27 master"));
        bridge(leaf, &format!("fdb del {mac} dev mmx27 dst 10.0.0.12 self"));
        let removed = Instant::now();
        while entry().is_none() {
            assert!(removed.elapsed() < DEADLINE, "{mac} is gone");
        }
        println!("{mac} is back after {:?}", removed.elapsed());
        assert!(reaches(host, "10.2.0.1", "a2"));
    }
}

fn bridge(switch: &Switch, command: &str) -> String {
    let mut bridge = std::process::Command::new("bridge");
    let bridge = bridge.args(["-n", &switch.name]).args(command.split(' '));
    let output = bridge.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A tenant that leaves is gone, and the other one does not notice.
fn leave(fabric: &mut Fabric, gone: &str, stays: &str) {
    let first = &mut fabric.models[0];
    let mut rest = super::models::underlay(11, &UPLINKS);
    tenant(&mut rest, 27, 271, &["10.1.0.254/24", "2001:db8:1::fe/64"]);
    enter(&mut rest, "swp3", place(271), 1500);
    machine(&mut rest, "swp5", 27, MACHINE_ASN, "10.3.0.0/24");
    enter(&mut rest, "swp4", Membership::Quarantine, 1500);
    *first = rest;
    fabric.reconcile();
    assert_silent(gone, "10.2.0.1", PORT);
    assert_silent(gone, "10.1.0.254", PORT);
    assert!(reaches(stays, "10.2.0.1", "a2"));
}
