//! The rack: two leaves, two spines, and machines that hang on both leaves.

use std::time::{Duration, Instant};

use agents_nos::SwitchModel;
use agents_nos::frr::{
    self, BgpInstance, BgpVrf, FrrConfig, InterfaceName, Neighbour, PeerSettings, Redistribute,
    Remote, RemoteAs,
};
use agents_nos::model::AsPathList;
use proto_types::Asn;

use super::daemons::{DEADLINE, Switch, ip};
use super::ear::Ear;
use super::fabric::{DOWNLINKS, Fabric, UPLINKS};
use super::filters::filter_as_agent;
use super::hosts::{PORT, answer, cable, listen};
use super::models::{enter, machine, name, place, tenant};
use super::packets::answer_datagrams;
use super::stream::End;
use super::switch::run_back_end;

/// A machine with a bond: name, port on both leaves, segment, its own address's last part, and the
/// cable that it uses first.
pub(crate) const BONDED: [(&str, &str, u32, u8, &str); 4] = [
    ("a1", "swp3", 271, 1, "eth0"),
    ("a2", "swp4", 271, 2, "eth1"),
    ("b1", "swp5", 281, 1, "eth0"),
    ("b2", "swp6", 281, 2, "eth1"),
];
/// A machine with BGP: name, port on both leaves, tenant, AS number, address.
const ROUTED: [(&str, &str, u32, u32, &str); 3] = [
    ("ar", "swp7", 27, 4_210_000_001, "10.3.0.1"),
    ("as", "swp8", 27, 4_210_000_002, "10.3.0.2"),
    ("br", "swp9", 28, 4_210_000_001, "10.3.0.1"),
];
/// Group of a switch's ports, which lose their carrier together.
pub(crate) const PORTS: u32 = 7;
/// Sessions of a leaf by address family: three with each spine, two with each machine.
const SESSIONS: usize = 2 * 3 + 3 * 2;

/// Switches and machines.
pub(crate) struct Rack {
    pub(crate) fabric: Fabric,
    /// Machines with BGP.
    routed: Vec<Switch>,
    pub(crate) machines: Vec<Machine>,
}

/// A machine of a tenant.
pub(crate) struct Machine {
    /// First letter: the tenant.
    pub(crate) name: &'static str,
    pub(crate) namespace: String,
    pub(crate) address: String,
    pub(crate) ear: Ear,
}

impl Machine {
    /// Its addresses. The last parts are equal.
    pub(crate) fn addresses(&self) -> [String; 2] {
        let v6 = self.address.replace("10.1.0.", "2001:db8:1::");
        [self.address.clone(), v6.replace("10.3.0.", "2001:db8:3::")]
    }

    /// The device that it sends by.
    pub(crate) fn device(&self) -> &'static str {
        match self.address.starts_with("10.3.") {
            true => "eth0",
            false => "bond0",
        }
    }

    pub(crate) fn tenant(&self) -> &'static str {
        &self.name[..1]
    }

    pub(crate) fn end(&self) -> End {
        End {
            name: self.name.into(),
            namespace: self.namespace.clone(),
            address: self.address.clone(),
        }
    }

    fn new(name: &'static str, namespace: &str, address: &str) -> Self {
        listen(namespace, name);
        answer_datagrams(namespace, name);
        Self {
            name,
            namespace: namespace.to_owned(),
            address: address.to_owned(),
            ear: Ear::open(namespace),
        }
    }
}

impl Rack {
    /// Builds the rack with names that begin with `test`, and waits until machines of one tenant
    /// reach each other.
    pub(crate) async fn start(test: &str) -> Self {
        let started = Instant::now();
        let mut fabric = Fabric::start(test).await;
        fabric.models.iter_mut().for_each(add_tenants);
        let mut machines = Vec::new();
        let mut routed = Vec::new();
        for (name, port, _, number, first) in BONDED {
            let namespace = format!("{test}-{name}");
            start_bonded(&fabric, &namespace, port, number, first);
            let address = format!("10.1.0.{number}");
            machines.push(Machine::new(name, &namespace, &address));
        }
        for (name, port, _, asn, address) in ROUTED {
            let switch = start_routed(&fabric, &format!("{test}-{name}"), port, asn, address).await;
            machines.push(Machine::new(name, &switch.name, address));
            routed.push(switch);
        }
        fabric.leaves.iter().for_each(run_back_end);
        println!("rack started after {:?}", started.elapsed());
        fabric.reconcile();
        for leaf in &fabric.leaves {
            for port in ports() {
                leaf.ip(&format!("link set {port} group {PORTS}"));
            }
        }
        for spine in &fabric.spines {
            for port in DOWNLINKS {
                spine.ip(&format!("link set {port} group {PORTS}"));
            }
        }
        println!("rack configured after {:?}", started.elapsed());
        let rack = Self {
            fabric,
            routed,
            machines,
        };
        rack.converge();
        println!("rack converged after {:?}", started.elapsed());
        rack
    }

    pub(crate) fn machine(&self, name: &str) -> &Machine {
        self.machines.iter().find(|m| m.name == name).unwrap()
    }

    /// Prints what switches and machines with BGP know, for a failure.
    pub(crate) fn show(&self) {
        self.fabric.show();
        for machine in &self.routed {
            for command in ["show bgp summary", "show ip route", "show ipv6 route"] {
                println!("{} {command}: {}", machine.name, machine.vtysh(command));
            }
            for arguments in ["-br link", "route show", "-6 route show", "neigh"] {
                println!("{} ip {arguments}", machine.name);
                machine.ip(arguments);
            }
        }
    }

    /// `true` if every way works again: all sessions of the leaves are up, and machines with BGP
    /// have routes over both cables.
    pub(crate) async fn is_whole(&self) -> bool {
        for leaf in &self.fabric.leaves {
            let Ok(sessions) = leaf.frr.sessions().await else {
                return false;
            };
            let is_up = sessions.iter().all(|session| session.is_established());
            if sessions.len() < SESSIONS || !is_up {
                return false;
            }
        }
        [
            ("ar", "10.3.0.2"),
            ("as", "10.3.0.1"),
            ("ar", "10.1.0.0/24"),
        ]
        .iter()
        .all(|(from, to)| {
            let routes = read_ip(&self.machine(from).namespace, &format!("route show {to}"));
            ["eth0", "eth1"].iter().all(|cable| routes.contains(cable))
        })
    }

    /// Waits until every machine reaches every other of its tenant at both addresses.
    pub(crate) fn converge(&self) {
        for from in &self.machines {
            let own = self
                .machines
                .iter()
                .filter(|to| to.tenant() == from.tenant());
            for to in own.filter(|to| to.name != from.name) {
                for address in to.addresses() {
                    self.wait_for(from, to, &address);
                }
            }
        }
    }

    fn wait_for(&self, from: &Machine, to: &Machine, address: &str) {
        let began = Instant::now();
        while answer(&from.namespace, address, PORT).as_deref() != Some(to.name) {
            if began.elapsed() > 2 * DEADLINE {
                self.show();
                panic!("{} does not reach {} at {address}", from.name, to.name);
            }
        }
        if began.elapsed() > Duration::from_secs(1) {
            println!(
                "{} reached {address} after {:?}",
                from.name,
                began.elapsed()
            );
        }
    }
}

/// Every port of a leaf.
fn ports() -> impl Iterator<Item = &'static str> {
    let bonded = BONDED.iter().map(|machine| machine.1);
    let routed = ROUTED.iter().map(|machine| machine.1);
    bonded.chain(routed).chain(UPLINKS)
}

fn add_tenants(model: &mut SwitchModel) {
    for number in [27, 28] {
        let gateway = ["10.1.0.254/24", "2001:db8:1::fe/64"];
        tenant(model, number, number * 10 + 1, &gateway);
    }
    for (_, port, segment, ..) in BONDED {
        enter(model, port, place(segment), 1500);
    }
    for (_, port, number, asn, _) in ROUTED {
        machine(model, port, number, asn, "10.3.0.0/24");
        filter_as_agent(model, number, port);
    }
    // Both machines of a tenant are origins of its VRF's only list.
    for number in [27, 28] {
        let of_tenant = ROUTED.iter().filter(|machine| machine.2 == number);
        let origins = AsPathList::new(of_tenant.map(|machine| Asn(machine.3))).unwrap();
        let id = name(&format!("MM-origins-{number}"));
        model.policies.as_path_lists.insert(id, origins);
    }
}

/// Puts cables to the same port of both leaves: `eth0` to the first.
fn cables(fabric: &Fabric, namespace: &str, port: &str) {
    for (leaf, own) in fabric.leaves.iter().zip(["eth0", "eth1"]) {
        cable(leaf, port, namespace, own);
    }
}

fn start_bonded(fabric: &Fabric, namespace: &str, port: &str, number: u8, first: &str) {
    ip(&format!("netns add {namespace}"));
    cables(fabric, namespace, port);
    let bond = "link add bond0 type bond mode active-backup miimon 20 primary_reselect failure";
    for command in [
        "link set lo up",
        bond,
        "link set eth0 down",
        "link set eth1 down",
        "link set eth0 master bond0",
        "link set eth1 master bond0",
        &format!("link set bond0 type bond active_slave {first}"),
        "link set bond0 up",
        &format!("link set bond0 type bond active_slave {first}"),
        &format!("addr add 10.1.0.{number}/24 dev bond0"),
        &format!("addr add 2001:db8:1::{number}/64 dev bond0 nodad"),
        "route add default via 10.1.0.254",
        "route add default via 2001:db8:1::fe",
    ] {
        // The first attempt to choose a cable is refused where the bond is not up.
        let quiet = command.contains("active_slave");
        run_ip(namespace, command, quiet);
    }
}

/// The output of a command of `ip` in a namespace.
pub(crate) fn read_ip(namespace: &str, command: &str) -> String {
    let mut ip = std::process::Command::new("ip");
    let output = ip.args(["-n", namespace]).args(command.split(' ')).output();
    String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
}

fn run_ip(namespace: &str, command: &str, may_fail: bool) {
    let mut ip = std::process::Command::new("ip");
    let output = ip.args(["-n", namespace]).args(command.split(' ')).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_done = output.status.success() || may_fail;
    assert!(is_done, "{namespace}: ip {command}: {errors}");
}

/// A machine that announces its loopback's address to both leaves.
async fn start_routed(fabric: &Fabric, test: &str, port: &str, asn: u32, address: &str) -> Switch {
    let machine = Switch::start(test, &[]).await;
    cables(fabric, &machine.name, port);
    machine.ip(&format!("addr add {address}/32 dev lo"));
    let v6 = address.replace("10.3.0.", "2001:db8:3::");
    machine.ip(&format!("addr add {v6}/128 dev lo nodad"));
    for setting in [
        "conf.all.rp_filter=0",
        // By ports as well: streams between two machines share the cables.
        "fib_multipath_hash_policy=1",
    ] {
        let name = &machine.name;
        ip(&format!("netns exec {name} sysctl -qw net.ipv4.{setting}"));
    }
    let mut instance = BgpInstance::new(frr::Asn::parse(&asn.to_string()).unwrap());
    instance.router_id = Some(address.parse().unwrap());
    instance.ebgp_requires_policy = false;
    instance.multipath_relax = true;
    instance.redistribute.ipv4 = Redistribute::Connected;
    instance.redistribute.ipv6 = Redistribute::Connected;
    for interface in ["eth0", "eth1"] {
        let mut settings = PeerSettings::default();
        settings.families.ipv4.activate = true;
        settings.families.ipv6.activate = true;
        let remote = Remote::As(RemoteAs::External);
        let neighbour = Neighbour { remote, settings };
        let interface = InterfaceName::new(interface).unwrap();
        instance.neighbours.insert(interface, neighbour);
    }
    // As the installer does.
    machine.vtysh("configure terminal\nno zebra nexthop kernel enable");
    let mut config = FrrConfig::default();
    config.bgp.insert(BgpVrf::Default, instance);
    let observed = machine.ready().await;
    machine.frr.apply(&observed, &config).await.unwrap();
    machine
}
