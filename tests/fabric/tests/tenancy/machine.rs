//! A machine: a namespace with a NIC on each leaf.

use std::process::Command;
use std::sync::Mutex;

use proto_mesh::{BlockDevice, Cpu, Firmware, MachineRegisterRequest, Nic, nic};
use proto_wire_lldp::{Frame, Socket};
use tokio::time::interval;

use super::control::connect;
use super::daemons::{Switch, ip};
use super::firewall_system::{FirewallSystem, RulesSource};
use super::hosts::inside;
use super::leaf::Leaf;
use super::life::Installed;
use super::tap::Tap;

/// Interval of a machine's LLDP frames.
const LLDP: std::time::Duration = std::time::Duration::from_secs(2);
/// Prefix that a firewall announces, a part of its external network's.
pub(crate) const OUTSIDE: &str = "192.0.2.128/25";
/// Address that a probing firewall must reach after a change of its rules.
pub(crate) const PROBE: &str = "10.99.0.1:7070";
/// Time that a frame holds, seconds.
const TTL_S: u16 = 30;

/// How a machine's system takes part in its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Networking {
    /// By BGP to both leaves.
    Routed,
    /// By a bond.
    Bridged,
    /// As a firewall: by BGP and EVPN in the underlay, with rules of its own.
    Firewall,
    /// As a firewall that takes its rules and its place from control.
    ControlledFirewall,
    /// As one that takes them back unless an address of the test accepts a connection.
    ProbingFirewall,
    /// As a firewall that announces more than it may.
    ForgingFirewall,
}

/// A machine as control knows it before it has a tenant.
#[derive(Clone, Debug)]
pub(crate) struct Hardware {
    pub(crate) uuid: String,
    pub(crate) macs: [String; 2],
    pub(crate) port: String,
    leaves: [String; 2],
}

/// A machine. Its daemons and its namespace go away with the value.
pub(crate) struct Machine {
    pub(crate) number: u8,
    pub(crate) hardware: Hardware,
    pub(crate) networking: Networking,
    pub(crate) tap: Tap,
    /// Ends before the namespace.
    firewall: Mutex<Option<FirewallSystem>>,
    switch: Switch,
}

impl Machine {
    /// A machine on the same port of both leaves.
    pub(crate) async fn start(leaves: &[Leaf; 2], number: u8, networking: Networking) -> Self {
        let switch = Switch::start(&format!("m{number}"), &[]).await;
        // As the installer does: by ports as well, so that the flows of two machines share the cables.
        let of = &switch.name;
        ip(&format!(
            "netns exec {of} sysctl -qw net.ipv4.fib_multipath_hash_policy=1"
        ));
        let port = format!("swp{number}");
        for (leaf, nic) in leaves.iter().zip(["eth0", "eth1"]) {
            leaf.connect(&port, &switch.name, nic);
        }
        let macs = [0, 1].map(|side| [2, 0, 0, 0, number, side]);
        for (nic, mac) in ["eth0", "eth1"].iter().zip(macs) {
            switch.ip(&format!("link set {nic} address {}", text(mac)));
        }
        let hardware = Hardware {
            uuid: format!("00000000-0000-4000-8000-0000000000{number:02}"),
            macs: macs.map(text),
            port,
            leaves: leaves.each_ref().map(Leaf::name),
        };
        announce(&switch.name, macs, hardware.uuid.clone());
        if networking == Networking::Bridged {
            bond(&switch);
        }
        Self {
            number,
            hardware,
            networking,
            tap: Tap::open(&switch.name, number),
            firewall: Mutex::default(),
            switch,
        }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.switch.name
    }

    /// Configures the network as the installer does.
    pub(crate) fn configure(&self, system: &Installed) {
        let name = self.namespace();
        match self.networking {
            Networking::Bridged => {
                ip(&format!("-n {name} addr flush dev bond0 scope global"));
                let address = &system.address;
                self.switch.ip(&format!("addr add {address}/32 dev bond0"));
                self.switch
                    .ip("route replace default via 169.254.1.1 dev bond0 onlink");
            }
            Networking::Routed => self.announce_routes(system, &system.address, &[]),
            Networking::Firewall => self.start_firewall(system, &RulesSource::File),
            Networking::ControlledFirewall | Networking::ProbingFirewall => {
                connect(name, self.number);
                let is_probing = self.networking == Networking::ProbingFirewall;
                let source = RulesSource::Control {
                    session: &system.session,
                    probe: is_probing.then_some(PROBE),
                };
                self.start_firewall(system, &source);
            }
            Networking::ForgingFirewall => self.announce_evpn(system),
        }
    }

    fn start_firewall(&self, system: &Installed, source: &RulesSource<'_>) {
        let started = FirewallSystem::start(self.namespace(), &system.order, source);
        *self.firewall.lock().unwrap() = Some(started);
    }

    /// Loses its power: its programs, its links, and the kernel's rules and switches.
    pub(crate) fn lose_power(&mut self) {
        if let Some(firewall) = self.firewall.lock().unwrap().as_mut() {
            firewall.lose_power();
        }
        self.switch.crash();
    }

    /// Boots from its disk.
    pub(crate) async fn power_on(&mut self) {
        self.switch.restart().await;
        if let Some(firewall) = self.firewall.lock().unwrap().as_mut() {
            firewall.boot();
        }
    }

    /// Prints its routes, for a failure.
    pub(crate) fn show(&self) {
        println!("m{}: {}", self.number, self.vtysh("show ip route"));
        for arguments in ["-br link", "route show", "neigh"] {
            println!("m{} ip {arguments}", self.number);
            self.switch.ip(arguments);
        }
    }

    /// Runs a command of FRR's shell.
    pub(crate) fn vtysh(&self, command: &str) -> String {
        self.switch.vtysh(command)
    }

    /// Announces a prefix for its own network, and for one of which it is not.
    fn announce_evpn(&self, system: &Installed) {
        let underlay = system.underlay.clone().unwrap();
        let mut lines: Vec<String> = Vec::new();
        lines.push("address-family l2vpn evpn".into());
        for nic in ["eth0", "eth1"] {
            lines.push(format!("neighbor {nic} activate"));
        }
        lines.push("advertise-all-vni".into());
        self.announce_routes(system, &underlay, &lines);
        for vni in 1..=2 {
            for command in [
                format!("link add Vrf{vni} type vrf table {}", 1000 + vni),
                format!("link set Vrf{vni} up"),
                format!("link add br{vni} type bridge"),
                format!("link set br{vni} address 02:00:00:00:ff:0{vni}"),
                format!("link set br{vni} master Vrf{vni} up"),
                format!(
                    "link add vx{vni} type vxlan id {vni} dstport 4789 local {underlay} nolearning"
                ),
                format!("link set vx{vni} master br{vni} up"),
                format!("route add blackhole {OUTSIDE} vrf Vrf{vni}"),
            ] {
                self.switch.ip(&command);
            }
            let asn = system.asn;
            self.configure_frr(&[
                format!("vrf Vrf{vni}"),
                format!("vni {vni}"),
                "exit-vrf".into(),
                format!("router bgp {asn} vrf Vrf{vni}"),
                "address-family ipv4 unicast".into(),
                "redistribute kernel".into(),
                "exit-address-family".into(),
                "address-family l2vpn evpn".into(),
                "advertise ipv4 unicast".into(),
            ]);
        }
    }

    /// Announces the address on the loopback to both leaves.
    fn announce_routes(&self, system: &Installed, address: &str, more: &[String]) {
        let name = self.namespace();
        ip(&format!("-n {name} addr flush dev lo scope global"));
        self.switch.ip(&format!("addr add {address}/32 dev lo"));
        let shown = self.switch.vtysh("show running-config bgpd");
        let old = shown.lines().find(|line| line.starts_with("router bgp "));
        // As the installer does: its ports lose their carrier while they move.
        let mut lines: Vec<String> = vec!["no zebra nexthop kernel enable".into()];
        lines.extend(old.map(|old| format!("no {old}")));
        lines.push(format!("router bgp {}", system.asn));
        lines.push(format!("bgp router-id 10.255.0.{}", self.number));
        lines.push("no bgp ebgp-requires-policy".into());
        lines.push("bgp bestpath as-path multipath-relax".into());
        for nic in ["eth0", "eth1"] {
            lines.push(format!("neighbor {nic} interface remote-as external"));
            lines.push(format!("neighbor {nic} timers 2 8"));
            lines.push(format!("neighbor {nic} timers connect 2"));
        }
        lines.push("address-family ipv4 unicast".into());
        lines.push(format!("network {address}/32"));
        lines.push("exit-address-family".into());
        lines.extend_from_slice(more);
        self.configure_frr(&lines);
    }

    fn configure_frr(&self, lines: &[String]) {
        let name = self.namespace();
        let mut vtysh = Command::new("vtysh");
        vtysh.args(["-N", name, "-c", "configure terminal"]);
        for line in lines {
            vtysh.args(["-c", line]);
        }
        let output = vtysh.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {said}");
    }
}

impl Hardware {
    /// The installer's first report.
    pub(crate) fn registration(&self, boot_id: String) -> MachineRegisterRequest {
        let nic = |(side, mac): (usize, &String)| Nic {
            name: format!("eth{side}"),
            mac: mac.clone(),
            identifier: mac.clone(),
            vendor: "test".into(),
            model: "25G".into(),
            speed: 25_000,
            neighbours: vec![nic::Neighbour {
                chassis_id: self.leaves[side].clone(),
                port_id: self.port.clone(),
                system_name: self.leaves[side].clone(),
            }],
            boot: side == 0,
        };
        let cpu = Cpu {
            vendor: "test".into(),
            model: "test".into(),
            cores: 8,
            threads: 16,
        };
        let disk = BlockDevice {
            name: "/dev/vda".into(),
            size: 960 << 30,
            serial: self.uuid.clone(),
            model: "test".into(),
            ..BlockDevice::default()
        };
        MachineRegisterRequest {
            hammer_version: "test".into(),
            memory: 64 << 30,
            cpus: vec![cpu],
            disks: vec![disk],
            nics: self.macs.iter().enumerate().map(nic).collect(),
            firmware: Firmware::Uefi.into(),
            boot_id,
            ..MachineRegisterRequest::default()
        }
    }
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Says by LLDP on both NICs which machine this is, to the end of the guest.
fn announce(namespace: &str, macs: [[u8; 6]; 2], uuid: String) {
    let namespace = namespace.to_owned();
    std::thread::spawn(move || {
        inside(&namespace, async move || {
            let sockets = ["eth0", "eth1"].map(|nic| Socket::open(nic).unwrap());
            let mut due = interval(LLDP);
            loop {
                due.tick().await;
                for (socket, mac) in sockets.iter().zip(macs) {
                    let frame = Frame {
                        source: mac,
                        chassis_id: uuid.clone(),
                        port_id: text(mac),
                        system_name: uuid.clone(),
                        system_description: "test".into(),
                        ttl_s: TTL_S,
                    };
                    // The NIC may be down, or gone with its namespace.
                    socket.send(&frame.encode()).await.ok();
                }
            }
        });
    });
}

fn bond(switch: &Switch) {
    for command in [
        "link add bond0 type bond mode active-backup miimon 20",
        "link set eth0 down",
        "link set eth1 down",
        "link set eth0 master bond0",
        "link set eth1 master bond0",
        "link set eth0 up",
        "link set eth1 up",
        "link set bond0 up",
    ] {
        switch.ip(command);
    }
}
