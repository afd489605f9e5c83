//! The parsers of the renderers, on the host or in the directory `METALMESH_NET_TOOLS`, into which
//! packages were extracted (`dpkg-deb -x`).

use std::path::{Path, PathBuf};

use agents_hammer::install::features::ImageFeatures;

use crate::world::{files, firewall_files, must, run, write};

const MODES: [(&str, &str); 3] = [
    ("routed", ""),
    ("bridged", "active-backup"),
    ("bridged", "802.3ad"),
];

/// A program on the host or among the extracted packages, with the environment to run it.
fn tool(paths: &[&str]) -> Option<String> {
    let extracted = std::env::var("METALMESH_NET_TOOLS").unwrap_or_default();
    for root in ["", extracted.as_str()] {
        for path in paths {
            let path = format!("{root}{path}");
            if Path::new(&path).exists() {
                let libs = format!("{extracted}/usr/lib/x86_64-linux-gnu");
                return Some(format!("env LD_LIBRARY_PATH={libs} {path}"));
            }
        }
    }
    eprintln!("SKIPPED: {paths:?} is missing");
    None
}

fn features() -> ImageFeatures {
    ImageFeatures {
        networkd: true,
        frr: true,
        ..ImageFeatures::default()
    }
}

fn names(dir: PathBuf) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn netplan_takes_its_yaml() {
    let paths = ["/usr/libexec/netplan/generate", "/lib/netplan/generate"];
    let Some(generate) = tool(&paths) else {
        return;
    };
    for (mode, bond) in MODES {
        for networkd in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().display();
            let image = ImageFeatures {
                netplan: true,
                networkd,
                network_manager: true,
                ..features()
            };
            write(&files(mode, bond, image), dir.path());
            let said = must(&format!("{generate} --root-dir {root}"));
            assert_eq!(said, "", "{mode} {bond}");
            let made = if networkd {
                names(dir.path().join("run/systemd/network"))
            } else {
                names(dir.path().join("run/NetworkManager/system-connections"))
            };
            let has = |part: &str| made.iter().any(|name| name.contains(part));
            assert!(has("lan0") && has("lan1"), "{mode}: {made:?}");
            assert_eq!(has("bond0"), mode == "bridged", "{made:?}");
        }
    }
}

#[test]
fn network_manager_takes_its_keyfiles() {
    let Some(nmcli) = tool(&["/usr/bin/nmcli"]) else {
        return;
    };
    let image = ImageFeatures {
        network_manager: true,
        ..features()
    };
    for (mode, bond) in MODES {
        let dir = tempfile::tempdir().unwrap();
        write(&files(mode, bond, image), dir.path());
        let keyfiles = dir.path().join("etc/NetworkManager/system-connections");
        for name in names(keyfiles.clone()) {
            let path = keyfiles.join(&name);
            // The parser writes the connection back, with what it understood.
            let line = format!("{nmcli} --offline c modify connection.autoconnect yes");
            let read = must(&format!("{line} < {}", path.display()));
            let was = std::fs::read_to_string(&path).unwrap();
            for wanted in was.lines().filter(|line| !line.is_empty()) {
                let key = wanted.split('=').next().unwrap();
                assert!(read.contains(key), "{name}: {wanted} is gone:\n{read}");
            }
        }
    }
}

#[test]
fn networkd_takes_its_files() {
    let Some(networkd) = tool(&["/lib/systemd/systemd-networkd"]) else {
        return;
    };
    if !nix::unistd::geteuid().is_root() || !run("unshare -mn true").0 {
        eprintln!("SKIPPED: namespaces need root");
        return;
    }
    let machines = MODES.map(|(mode, bond)| files(mode, bond, features()));
    for items in machines.into_iter().chain([firewall_files()]) {
        let dir = tempfile::tempdir().unwrap();
        write(&items, dir.path());
        let network = dir.path().join("etc/systemd/network");
        // In a namespace without links: it reads its files, and ends with the timeout.
        let line = format!(
            "unshare -mn sh -c 'mkdir -p /run/systemd/network /etc/systemd/network; \
             mount --bind {} /etc/systemd/network; mount -t tmpfs -o mode=755 none /run/systemd/netif; \
             chown systemd-network /run/systemd/netif; \
             SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console timeout 2 {networkd}'",
            network.display()
        );
        let (_, said) = run(&line);
        assert!(said.contains("lo: "), "networkd does not start: {said}");
        for wrong in ["Unknown", "Failed to parse", "Invalid", "ignoring"] {
            let line = said
                .lines()
                .find(|line| line.contains(wrong) && line.contains("10-metalmesh"));
            assert_eq!(line, None);
        }
    }
}

#[test]
fn frr_takes_the_configuration_of_a_firewall() {
    let Some(vtysh) = tool(&["/usr/bin/vtysh"]) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    write(&firewall_files(), dir.path());
    let conf = dir.path().join("etc/frr/frr.conf");
    let said = must(&format!("{vtysh} -C -f {}", conf.display()));
    assert_eq!(said, "", "FRR's parser refuses a line");
}
