//! The installed system of a firewall: hammer's files, put in force in a namespace as
//! systemd-networkd, FRR and the firewall agent would.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use agents_hammer::install::features::ImageFeatures;
use agents_hammer::install::item::{ItemState, SystemItem};
use agents_hammer::install::machine_network::{FirewallPlan, ImageNetwork, render_firewall};
use proto_mesh::Install;
use tempfile::TempDir;

use super::daemons::ip;
use super::hosts::PORT;

/// A namespace with a firewall's system. Its programs end with the value.
pub(crate) struct FirewallSystem {
    programs: Vec<Child>,
    _dir: TempDir,
}

impl FirewallSystem {
    /// Installs the system that an order wants, and starts its programs. zebra and bgpd run already.
    pub(crate) fn start(namespace: &str, order: &Install) -> Self {
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
        let dir = tempfile::tempdir().unwrap();
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
        let static_routes = [
            "/usr/lib/frr/staticd",
            "-N",
            namespace,
            "-P",
            "0",
            "-f",
            "/dev/null",
        ];
        let mut programs = vec![run(namespace, &static_routes)];
        let conf = dir.path().join("frr.conf");
        std::fs::write(&conf, find(&items, "/etc/frr/frr.conf")).unwrap();
        load(namespace, &conf);
        let config = dir.path().join("config.yaml");
        std::fs::write(&config, rules(order)).unwrap();
        let state = dir.path().join("state");
        let agent = ["metalmesh-firewall", "run", "--no-rules-file", "--config"];
        let files = [
            config.to_str().unwrap(),
            "--state-dir",
            state.to_str().unwrap(),
        ];
        programs.push(run(namespace, &[agent.as_slice(), &files].concat()));
        Self {
            programs,
            _dir: dir,
        }
    }
}

impl Drop for FirewallSystem {
    fn drop(&mut self) {
        for program in &mut self.programs {
            program.kill().ok();
            program.wait().ok();
        }
    }
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
