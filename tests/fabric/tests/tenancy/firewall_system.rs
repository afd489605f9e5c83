//! The installed system of a firewall: hammer's files, put in force in a namespace as
//! systemd-networkd, FRR and the firewall agent would.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use agents_hammer::install::features::ImageFeatures;
use agents_hammer::install::item::{ItemState, SystemItem};
use agents_hammer::install::machine_network::{FirewallPlan, ImageNetwork, render_firewall};
use agents_kit::StateDir;
use agents_kit::state_dir::StoredSession;
use proto_mesh::Install;
use tempfile::TempDir;

use super::daemons::ip;
use super::hosts::PORT;

/// The agent sees FRR's sockets of its namespace where FRR has them by default.
const START: &str = "mount --bind /var/run/frr/$0 /var/run/frr && exec metalmesh-firewall run \
                     --no-rules-file --config $1 --state-dir $2";

/// The source of a firewall's rules.
pub(crate) enum RulesSource<'a> {
    /// The agent's file: TCP to the listeners outside.
    File,
    /// Control.
    Control {
        /// The identity of the installed system.
        session: &'a StoredSession,
        /// Address that must accept a connection after a change. `None` for none.
        probe: Option<&'a str>,
    },
}

/// A namespace with a firewall's system. Its programs end with the value.
pub(crate) struct FirewallSystem {
    namespace: String,
    programs: Vec<Child>,
    /// The disk: the agent's files, and FRR's configuration.
    disk: TempDir,
}

impl FirewallSystem {
    /// Installs the system that an order wants, and starts its programs. zebra and bgpd run already.
    pub(crate) fn start(namespace: &str, order: &Install, source: &RulesSource<'_>) -> Self {
        let image = ImageNetwork {
            features: ImageFeatures {
                networkd: true,
                frr: true,
                ..ImageFeatures::default()
            },
            passwd: "",
            netplan_names: &[],
        };
        let plan = FirewallPlan::of(order, &[]).unwrap();
        let items = render_firewall(&plan, &image).unwrap();
        let disk = tempfile::tempdir().unwrap();
        for (nic, name) in [("eth0", "lan0"), ("eth1", "lan1")] {
            ip(&format!("-n {namespace} link set {nic} down"));
            ip(&format!("-n {namespace} link set {nic} name {name}"));
            ip(&format!(
                "-n {namespace} link set {name} mtu {}",
                plan.mtu + 50
            ));
            ip(&format!("-n {namespace} link set {name} up"));
        }
        for (path, text) in texts(&items) {
            if path.starts_with("/etc/sysctl.d/") {
                sysctl(namespace, &text);
            }
        }
        create_devices(namespace, &items);
        std::fs::write(
            disk.path().join("frr.conf"),
            find(&items, "/etc/frr/frr.conf"),
        )
        .unwrap();
        let text = match source {
            RulesSource::File => rules(order),
            RulesSource::Control { session, probe } => {
                let identity = disk.path().join("identity");
                StateDir::open(&identity).unwrap().store(session).unwrap();
                controlled(&identity, *probe)
            }
        };
        std::fs::write(disk.path().join("config.yaml"), text).unwrap();
        let mut system = Self {
            namespace: namespace.to_owned(),
            programs: Vec::new(),
            disk,
        };
        system.start_programs();
        system
    }

    fn start_programs(&mut self) {
        let name = self.namespace.as_str();
        let static_routes = [
            "/usr/lib/frr/staticd",
            "-N",
            name,
            "-P",
            "0",
            "-f",
            "/dev/null",
        ];
        self.programs.push(run(name, &static_routes));
        load(name, &self.disk.path().join("frr.conf"));
        let [config, state] = ["config.yaml", "state"].map(|file| self.disk.path().join(file));
        let [config, state] = [&config, &state].map(|path| path.to_str().unwrap());
        let agent = ["sh", "-c", START, name, config, state];
        self.programs.push(run(name, &agent));
    }

    /// Ends the programs, and takes from the kernel what a boot does not find: links, rules, and
    /// open forwarding. Devices stay; their links are down.
    pub(crate) fn lose_power(&mut self) {
        self.end_programs();
        let name = &self.namespace;
        for nic in ["lan0", "lan1"] {
            ip(&format!("-n {name} link set {nic} down"));
        }
        let mut nft = run(name, &["nft", "flush", "ruleset"]);
        assert!(nft.wait().unwrap().success(), "nft flush ruleset");
        sysctl(
            name,
            "net.ipv4.ip_forward=0\nnet.ipv6.conf.all.forwarding=0\n",
        );
    }

    /// Starts the programs again. zebra and bgpd run already, without configuration.
    pub(crate) fn boot(&mut self) {
        for nic in ["lan0", "lan1"] {
            ip(&format!("-n {} link set {nic} up", self.namespace));
        }
        self.start_programs();
    }

    fn end_programs(&mut self) {
        for mut program in self.programs.drain(..) {
            program.kill().ok();
            program.wait().ok();
        }
    }
}

impl Drop for FirewallSystem {
    fn drop(&mut self) {
        self.end_programs();
    }
}

/// The agent's file with control as the source of everything, as control makes it.
fn controlled(identity: &Path, probe: Option<&str>) -> String {
    let probes: Vec<&str> = probe.into_iter().collect();
    format!(
        "sources: {{metal: {{identityDir: {}}}}}\ncontrollers:\n  firewall: {{source: metal, probes: \
         {probes:?}}}\n  cwnp: {{source: metal}}\n  service: {{source: metal}}\n",
        identity.display()
    )
}

/// The owner's rules: TCP to the listeners outside, with the firewall's address as the source.
fn rules(order: &Install) -> String {
    let mut networks = String::new();
    for network in order.networks.iter().filter(|network| network.vni != 0) {
        let kind = match network.r#type.as_str() {
            "external" => "external, nat: true",
            _ => "private",
        };
        networks.push_str(&format!(
            "      - {{networkID: {}, networkType: {kind}, vrf: {}, prefixes: {:?}}}\n",
            network.network, network.vni, network.prefixes
        ));
    }
    format!(
        "name: m5\nsources:\n  static:\n    firewall:\n      networks:\n{networks}    cwnp:\n      \
         egress:\n      - {{name: listeners, to: [{{cidr: 0.0.0.0/0}}], ports: [{{port: {PORT}}}]}}\n\
         controllers:\n  firewall: {{source: static}}\n  cwnp: {{source: static}}\n"
    )
}

/// Creates the devices of networkd's files: those of each kind first that others are put into.
fn create_devices(namespace: &str, items: &[SystemItem]) {
    let on = |line: String| ip(&format!("-n {namespace} {line}"));
    let mut devices: Vec<_> = texts(items)
        .filter(|(path, _)| path.ends_with(".netdev"))
        .map(|(path, text)| {
            let network = path.replace(".netdev", ".network");
            (settings(&text), settings(&find(items, &network)))
        })
        .collect();
    let rank = |kind: &str| ["vrf", "bridge", "vxlan"].iter().position(|k| *k == kind);
    devices.sort_by_key(|(device, _)| rank(&device["Kind"]));
    for (device, network) in devices {
        let (name, kind) = (&device["Name"], &device["Kind"]);
        on(match kind.as_str() {
            "vrf" => format!("link add {name} type vrf table {}", device["Table"]),
            "bridge" => format!("link add {name} type bridge"),
            "vxlan" => format!(
                "link add {name} type vxlan id {} local {} dstport {} nolearning",
                device["VNI"], device["Local"], device["DestinationPort"]
            ),
            other => panic!("{name} is a {other}"),
        });
        if let Some(mac) = device.get("MACAddress") {
            on(format!("link set {name} address {mac}"));
        }
        if let Some(mtu) = device.get("MTUBytes") {
            on(format!("link set {name} mtu {mtu}"));
        }
        for place in ["VRF", "Bridge"] {
            if let Some(place) = network.get(place) {
                on(format!("link set {name} master {place}"));
            }
        }
        on(format!("link set {name} up"));
    }
}

/// The settings of a file of networkd, of all its sections.
fn settings(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    lines
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn texts(items: &[SystemItem]) -> impl Iterator<Item = (String, String)> + '_ {
    items.iter().filter_map(|item| match &item.state {
        ItemState::File(_, bytes) => {
            let text = String::from_utf8(bytes.clone()).unwrap();
            Some((item.path.clone(), text))
        }
        _ => None,
    })
}

fn find(items: &[SystemItem], path: &str) -> String {
    let mut found = texts(items).filter(|(of, _)| of == path);
    let found = found.next().unwrap_or_else(|| panic!("no file {path}"));
    found.1
}

fn sysctl(namespace: &str, text: &str) {
    for (key, value) in settings(text) {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        let line = format!("echo {value} > {path}");
        let mut shell = Command::new("ip");
        let shell = shell.args(["netns", "exec", namespace, "sh", "-c", &line]);
        assert!(shell.status().unwrap().success(), "{line}");
    }
}

fn run(namespace: &str, command: &[&str]) -> Child {
    let mut program = Command::new("ip");
    program.args(["netns", "exec", namespace]).args(command);
    program.stdin(Stdio::null()).spawn().unwrap()
}

/// Loads FRR's configuration as its start does. staticd may not answer at once.
fn load(namespace: &str, conf: &Path) {
    let until = std::time::Instant::now() + super::daemons::DEADLINE;
    let vtysh = |arguments: &[&str]| {
        let mut vtysh = Command::new("vtysh");
        let output = vtysh.args(["-N", namespace]).args(arguments).output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    };
    while !vtysh(&["-c", "show daemons"]).contains("staticd") {
        assert!(std::time::Instant::now() < until, "staticd does not start");
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
    let said = vtysh(&["-f", conf.to_str().unwrap()]);
    assert!(!said.contains('%'), "{namespace}: {said}");
}
