//! Unprovisioned machines at two leaves reach the services and never each other. Needs root; says so
//! and passes without.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test's helpers")]

mod host;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::{Duration, Instant};

use agents_nos::linux::{Config, FilterConfig, Linux};
use agents_nos::model::{Mtu, Port, PortName, Segment, Tunnel};
use agents_nos::{Membership, Nos, SwitchModel, Vni, plan};

use host::{Host, Namespace};

const DEADLINE: Duration = Duration::from_secs(20);
const SEGMENT: u32 = 4000;
const SERVICE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Broadcast, an IPv4 and an IPv6 multicast, the solicited nodes of ND, 802.1Q's and unknown unicast.
const GROUPS: [[u8; 6]; 6] = [
    [0xff; 6],
    [0x01, 0, 0x5e, 0, 0, 0xfb],
    [0x33, 0x33, 0, 0, 0, 1],
    [0x33, 0x33, 0xff, 0, 0, 2],
    [0x01, 0x80, 0xc2, 0, 0, 0x21],
    [2, 9, 9, 9, 9, 9],
];

fn vtep(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 9, 0, number).into()
}

/// `true` on a host with nft, where ports are filtered.
fn has_filter() -> bool {
    Command::new("nft").arg("--version").output().is_ok()
}

fn open(number: u8) -> Linux {
    let filter = FilterConfig {
        uplinks: [PortName::new("up1").unwrap()].into(),
        ..FilterConfig::default()
    };
    let switch = Linux::open(Config {
        ports: vec!["swp*".into(), "up1".into()],
        vtep: vtep(number),
        frr: None,
        filter,
    });
    switch.unwrap()
}

/// `swp*` private, `up1` not.
fn model(ports: &[&str], tunnel: Tunnel, remotes: &[IpAddr]) -> SwitchModel {
    let vni = Vni::new(SEGMENT).unwrap();
    let mut out = SwitchModel::default();
    let mut segment = Segment::new(Mtu::ETHERNET);
    segment.tunnel = tunnel;
    segment.remotes = remotes.iter().copied().collect();
    out.segments.insert(vni, segment);
    out.packet_filter.is_in_place = has_filter();
    for port in ports {
        let membership = Membership::Segment {
            vni,
            is_private: port.starts_with("swp"),
        };
        let place = Port {
            admin_up: true,
            mtu: None,
            membership,
        };
        out.ports.insert(PortName::new(port).unwrap(), place);
    }
    out
}

fn apply(leaf: &Namespace, number: u8, desired: SwitchModel) {
    leaf.inside(async move || {
        let switch = open(number);
        let observed = switch.observe().await.unwrap().model;
        for step in plan(&observed, &desired, switch.capabilities()).steps {
            switch.apply(&step).await.unwrap();
            switch.apply(&step).await.unwrap();
        }
        let observed = switch.observe().await.unwrap().model;
        let rest = plan(&observed, &desired, switch.capabilities()).steps;
        assert_eq!(rest, vec![], "an applied plan leaves nothing to do");
    });
}

/// A root with the services at its uplink and a machine, and two leaves with a machine each; `m3b`
/// is a second machine at the last leaf.
struct Tree {
    leaves: [Namespace; 3],
    hosts: Vec<Host>,
    _wire: Namespace,
}

impl Tree {
    fn new(test: &str) -> Self {
        let wire = Namespace::new(test, "wire");
        wire.ip("link add br0 type bridge");
        wire.ip("link set br0 up");
        let leaves = [1_u8, 2, 3].map(|number| {
            let leaf = Namespace::new(test, &format!("l{number}"));
            leaf.ip(&format!(
                "link add fab0 type veth peer name fab{number} netns {}",
                wire.0
            ));
            wire.ip(&format!("link set fab{number} master br0 mtu 1600 up"));
            leaf.ip("link set fab0 mtu 1600 up");
            leaf.ip(&format!("addr add {}/24 dev fab0", vtep(number)));
            leaf
        });
        let [root, second, third] = &leaves;
        let hosts = vec![
            Host::new(test, "services", root, "up1", SERVICE_MAC),
            Host::new(test, "m1", root, "swp1", [2, 0, 0, 0, 1, 1]),
            Host::new(test, "m2", second, "swp1", [2, 0, 0, 0, 2, 1]),
            Host::new(test, "m3", third, "swp1", [2, 0, 0, 0, 3, 1]),
            Host::new(test, "m3b", third, "swp2", [2, 0, 0, 0, 3, 2]),
        ];
        Self {
            leaves,
            hosts,
            _wire: wire,
        }
    }

    fn apply(&self, tunnels: [(Tunnel, &[u8]); 3]) {
        let ports: [&[&str]; 3] = [&["up1", "swp1"], &["swp1"], &["swp1", "swp2"]];
        for (at, (tunnel, remotes)) in tunnels.into_iter().enumerate() {
            let number = u8::try_from(at + 1).unwrap();
            let remotes: Vec<_> = remotes.iter().copied().map(vtep).collect();
            apply(&self.leaves[at], number, model(ports[at], tunnel, &remotes));
        }
    }

    fn host(&self, name: &str) -> &Host {
        self.hosts.iter().find(|host| host.name == name).unwrap()
    }

    /// Sends until the frames arrive.
    fn until_heard(&self, from: &str, to: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            self.host(from)
                .send(self.host(to).mac, self.host(from).mac, 7);
            std::thread::park_timeout(Duration::from_millis(20));
            if self.host(to).heard(&BTreeSet::new()).contains(&7) {
                return;
            }
            assert!(Instant::now() < end, "{from} does not reach {to}");
        }
    }

    /// Each machine sends to every other one and to every group, as itself, as the services and as
    /// another machine. Who heard whom, without the services.
    fn cross(&self) -> Vec<String> {
        let mut mark = 100;
        let mut sent = Vec::new();
        let machines = || self.hosts.iter().filter(|host| host.name != "services");
        for sender in machines() {
            let others = machines().map(|other| other.mac);
            let sources = [sender.mac, SERVICE_MAC].into_iter().chain(others.clone());
            for source in sources {
                for target in others.clone().chain(GROUPS) {
                    mark += 1;
                    sender.send(target, source, mark);
                    sent.push((mark, sender.name, target, source));
                }
            }
            // What was learned from a forged sender is learned again.
            self.host("services").send([0xff; 6], SERVICE_MAC, 1);
        }
        // The last probes have crossed when later ones on the same ways have.
        for machine in machines() {
            self.until_heard("services", machine.name);
        }
        std::thread::park_timeout(Duration::from_millis(300));
        let mut crossed = Vec::new();
        for hearer in machines() {
            let own: BTreeSet<u32> = sent
                .iter()
                .filter(|(_, sender, ..)| *sender == hearer.name)
                .map(|(mark, ..)| *mark)
                .collect();
            for heard in hearer.heard(&own) {
                crossed.extend(sent.iter().filter(|(mark, ..)| *mark == heard).map(
                    |(_, sender, target, source)| {
                        format!(
                            "{} hears {sender} as {source:02x?} to {target:02x?}",
                            hearer.name
                        )
                    },
                ));
            }
        }
        crossed
    }
}

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("not run: network namespaces need root");
    }
    root
}

#[test]
fn machines_without_a_tenant_meet_neither_at_a_leaf_nor_across_leaves() {
    if !is_root() {
        return;
    }
    let tree = Tree::new("tree");
    // The probes themselves: with tunnels of every leaf to every other, machines meet.
    tree.apply([
        (Tunnel::Open, &[2, 3]),
        (Tunnel::Open, &[1, 3]),
        (Tunnel::Open, &[1, 2]),
    ]);
    tree.until_heard("m2", "m3");
    tree.until_heard("m2", "m1");
    tree.apply([
        (Tunnel::Private, &[2, 3]),
        (Tunnel::Open, &[1]),
        (Tunnel::Open, &[1]),
    ]);
    for host in &tree.hosts {
        host.heard(&BTreeSet::new());
    }
    for machine in ["m1", "m2", "m3", "m3b"] {
        tree.until_heard(machine, "services");
        tree.until_heard("services", machine);
    }
    assert_eq!(tree.cross(), Vec::<String>::new());
}

#[test]
fn without_a_tunnel_a_segment_ends_at_the_leaf() {
    if !is_root() {
        return;
    }
    let tree = Tree::new("end");
    tree.apply([
        (Tunnel::Open, &[2, 3]),
        (Tunnel::Open, &[1]),
        (Tunnel::Open, &[1]),
    ]);
    tree.until_heard("services", "m2");
    tree.apply([
        (Tunnel::Absent, &[]),
        (Tunnel::Absent, &[]),
        (Tunnel::Open, &[1]),
    ]);
    tree.until_heard("m1", "services");
    for host in &tree.hosts {
        host.heard(&BTreeSet::new());
    }
    tree.host("services").send([0xff; 6], SERVICE_MAC, 9);
    tree.host("m3").send([0xff; 6], tree.host("m3").mac, 8);
    tree.until_heard("services", "m1");
    std::thread::park_timeout(Duration::from_millis(200));
    assert_eq!(tree.host("m2").heard(&BTreeSet::new()), BTreeSet::new());
    assert_eq!(tree.host("m3").heard(&BTreeSet::new()), BTreeSet::new());
    assert!(!tree.host("services").heard(&BTreeSet::new()).contains(&8));
    // And back.
    tree.apply([
        (Tunnel::Private, &[2, 3]),
        (Tunnel::Open, &[1]),
        (Tunnel::Open, &[1]),
    ]);
    tree.until_heard("services", "m2");
}

#[test]
fn a_tunnel_that_somebody_opens_is_unsafe_and_closed_again() {
    if !is_root() {
        return;
    }
    let leaf = Namespace::new("open", "l1");
    for port in ["swp1", "up1"] {
        leaf.ip(&format!("link add {port} type veth peer name x{port}"));
    }
    let want = model(&["swp1", "up1"], Tunnel::Private, &[vtep(2)]);
    apply(&leaf, 1, want.clone());
    leaf.ip("link set mmx4000 type bridge_slave isolated off");
    let desired = want.clone();
    let found = leaf.inside(async move || {
        let switch = open(1);
        let observed = switch.observe().await.unwrap().model;
        agents_nos::find_drift(&observed, &desired, &[], switch.capabilities())
    });
    let unsafe_ones: Vec<_> = found.iter().map(|drift| drift.is_unsafe).collect();
    assert_eq!(unsafe_ones, [true], "{found:?}");
    apply(&leaf, 1, want);
}

/// Spanning trees, GVRP, PVST, VTP, CFM, ERPS and EAPS.
const CONTROL: [[u8; 6]; 7] = [
    [0x01, 0x80, 0xc2, 0, 0, 0],
    [0x01, 0x80, 0xc2, 0, 0, 0x21],
    [0x01, 0, 0x0c, 0xcc, 0xcc, 0xcd],
    [0x01, 0, 0x0c, 0xcc, 0xcc, 0xcc],
    [0x01, 0x80, 0xc2, 0, 0, 0x30],
    [0x01, 0x19, 0xa7, 0, 0, 1],
    [0, 0xe0, 0x2b, 0, 0, 4],
];

#[test]
fn a_machine_without_a_tenant_speaks_to_no_switch_of_the_site() {
    if !is_root() || !has_filter() {
        println!("not run: needs root and nft");
        return;
    }
    let tree = Tree::new("stp");
    tree.apply([
        (Tunnel::Private, &[2, 3]),
        (Tunnel::Open, &[1]),
        (Tunnel::Open, &[1]),
    ]);
    // At the root, and behind a tunnel to it.
    for machine in ["m1", "m2"] {
        tree.until_heard(machine, "services");
        let host = tree.host(machine);
        for (mark, to) in (11..).zip(CONTROL) {
            host.send(to, host.mac, mark);
        }
        host.send([0x01, 0, 0x5e, 0, 0, 0xfb], host.mac, 20);
        let until = Instant::now() + DEADLINE;
        let mut heard = BTreeSet::new();
        while !heard.contains(&20) {
            heard.extend(tree.host("services").heard(&BTreeSet::new()));
            assert!(Instant::now() < until, "a multicast of {machine}");
        }
        // Frames of one sender are in order.
        heard.remove(&7);
        assert_eq!(heard, BTreeSet::from([20]), "{machine}");
    }
}
