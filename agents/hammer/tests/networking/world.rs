//! An order, its files, and programs to run.

use std::path::Path;
use std::process::Command;

use agents_hammer::install::features::ImageFeatures;
use agents_hammer::install::item::{ItemState, SystemItem};
use agents_hammer::install::machine_network::{
    FirewallPlan, ImageNetwork, NetworkPlan, render, render_firewall,
};
use proto_mesh::{Install, MachineNetwork};

/// The files of an order with addresses of both families.
pub(crate) fn files(mode: &str, bond: &str, features: ImageFeatures) -> Vec<SystemItem> {
    let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    let install = Install {
        networking: mode.into(),
        bond: bond.into(),
        mtu: 9000,
        uplinks: texts(&["52:54:00:00:00:01", "52:54:00:00:00:02"]),
        dns_servers: texts(&["9.9.9.9", "2620:fe::fe"]),
        networks: vec![MachineNetwork {
            ips: texts(&["10.1.0.5", "2001:db8::5", "192.0.2.9"]),
            prefixes: texts(&["10.1.0.0/22", "2001:db8::/64"]),
            destination_prefixes: texts(&["0.0.0.0/0", "198.18.0.0/15"]),
            asn: 4_210_000_007,
            ..MachineNetwork::default()
        }],
        ..Install::default()
    };
    let image = ImageNetwork {
        features,
        passwd: "",
        netplan_names: &[],
    };
    render(&NetworkPlan::of(&install, &[]).unwrap(), &image).unwrap()
}

/// The files of a firewall with two private networks and one outside.
pub(crate) fn firewall_files() -> Vec<SystemItem> {
    let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    let network = |kind: &str, vni, ips: &[&str], prefixes: &[&str]| MachineNetwork {
        r#type: kind.into(),
        vni,
        ips: texts(ips),
        prefixes: texts(prefixes),
        asn: 4_210_000_009,
        ..MachineNetwork::default()
    };
    let internet = MachineNetwork {
        destination_prefixes: texts(&["0.0.0.0/0", "::/0"]),
        ..network(
            "external",
            104,
            &["203.0.113.7", "2001:db8:1::7"],
            &["203.0.113.0/24", "2001:db8:1::/64"],
        )
    };
    let private = ["10.0.0.0/22", "2001:db8::/64"];
    let install = Install {
        host_addresses: true,
        firewall: true,
        uplinks: texts(&["52:54:00:00:00:01", "52:54:00:00:00:02"]),
        networks: vec![
            internet,
            network("child", 27, &["10.0.0.1", "2001:db8::1"], &private),
            network("child_shared", 28, &["10.8.0.1"], &["10.8.0.0/22"]),
            network("underlay", 0, &["10.255.0.9"], &["10.255.0.0/16"]),
        ],
        ..Install::default()
    };
    let image = ImageNetwork {
        features: ImageFeatures {
            networkd: true,
            frr: true,
            ..ImageFeatures::default()
        },
        passwd: "",
        netplan_names: &[],
    };
    render_firewall(&FirewallPlan::of(&install, &[]).unwrap(), &image).unwrap()
}

/// Writes the files below a directory, with their modes.
pub(crate) fn write(items: &[SystemItem], root: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for item in items {
        let ItemState::File(owner, bytes) = &item.state else {
            continue;
        };
        let path = root.join(item.path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let mode = std::fs::Permissions::from_mode(owner.mode);
        std::fs::set_permissions(&path, mode).unwrap();
    }
}

/// Runs a command line. Returns success and both outputs.
pub(crate) fn run(line: &str) -> (bool, String) {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.success(), text)
}

/// Runs a command line that must succeed.
pub(crate) fn must(line: &str) -> String {
    let (is_ok, text) = run(line);
    assert!(is_ok, "{line}: {text}");
    text
}
