//! Configuration of the new system: files as data, so that tests can compare them.

use proto_mesh::Install;
use proto_types::MacAddr;

use super::features::ImageFeatures;
use super::item::{ItemState, SystemItem, file, item, link};
use super::layout::Fs;
use super::login;
use super::machine_network::{self, MachineNetworkError, Mode, NetworkPlan};
use super::network::{self, NetworkError};
use super::rootfs::Owner;
use super::user_data::{self, Handling};
use super::users::{self, Accounts};

/// Directory with the identity of the installed system.
pub(crate) const STATE_DIR: &str = "/var/lib/metalmesh";
/// Path of the agent in the installed system.
pub(crate) const AGENT: &str = "/usr/lib/metalmesh/metalmesh-machine";
/// Directory of the units that hammer adds.
pub(super) const UNITS: &str = "/etc/systemd/system";
/// Directory of the links that enable units at boot.
pub(super) const WANTS: &str = "/etc/systemd/system/multi-user.target.wants";

/// The data from which the configuration is made.
#[derive(Debug)]
pub struct ConfigInput<'a> {
    /// The order.
    pub install: &'a Install,
    /// MAC address of the boot interface.
    pub mac: &'a str,
    /// Ethernet NICs with a carrier, the boot interface first. Used if the order names no uplinks.
    pub nics: &'a [MacAddr],
    /// File names in the image's /etc/netplan.
    pub netplan_names: &'a [String],
    /// File systems of the layout, parents first.
    pub filesystems: &'a [Fs],
    /// Programs of the image.
    pub features: ImageFeatures,
    /// The program that carries out the user data.
    pub handling: Handling,
    /// The image's accounts with the user added.
    pub accounts: &'a Accounts,
    /// File names in the image's /etc/ssh.
    pub ssh_names: &'a [String],
}

/// A reason why a system cannot be configured. None of them is retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The image lacks systemd-networkd.
    #[error("the image has no systemd-networkd to configure its network with")]
    NoNetworkd,
    /// A network of the order does not parse.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The routed or bridged network of the order cannot be configured.
    #[error(transparent)]
    MachineNetwork(#[from] MachineNetworkError),
    /// The order's host name is not valid (RFC 1123).
    #[error("{0:?} is not a host name")]
    Hostname(String),
    /// A time server of the order is neither a host name nor an address.
    #[error("{0:?} is not a time server")]
    TimeServer(String),
}

/// All files of a system, in the order to write them.
///
/// # Errors
/// When the order has an invalid value, or the image lacks the programs of its network.
pub fn items(input: &ConfigInput<'_>) -> Result<Vec<SystemItem>, ConfigError> {
    let install = input.install;
    if !is_hostname(&install.hostname) {
        return Err(ConfigError::Hostname(install.hostname.clone()));
    }
    let network = network_items(input)?;
    let mut out = vec![
        file("/etc/hostname", 0o644, format!("{}\n", install.hostname)),
        file("/etc/hosts", 0o644, network::hosts(&install.hostname)),
        // Empty: systemd generates an id at the first boot. With the image's own, all machines of
        // that image would have the same id, and DHCP and journald would mix them up.
        file("/etc/machine-id", 0o444, ""),
        item("/var/lib/dbus/machine-id", ItemState::Absent),
        file("/etc/fstab", 0o644, fstab(input.filesystems)),
    ];
    out.extend(network);
    out.extend(resolver(input));
    out.extend(time(input)?);
    out.extend(login::accounts(input));
    out.extend(login::host_keys(input.ssh_names));
    out.extend(user_data::items(
        install,
        input.features.cloud_init,
        input.handling,
    ));
    out.extend(phone_home());
    Ok(out)
}

/// Items of the network, as the mode of the order wants it.
fn network_items(input: &ConfigInput<'_>) -> Result<Vec<SystemItem>, ConfigError> {
    let install = input.install;
    if Mode::parse(&install.networking)? == Mode::Static {
        if !input.features.networkd {
            return Err(ConfigError::NoNetworkd);
        }
        let text = network::networkd_file(install, input.mac)?;
        return Ok(vec![
            file("/etc/systemd/network/10-metalmesh.network", 0o644, text),
            link(
                &format!("{WANTS}/systemd-networkd.service"),
                &unit("systemd-networkd.service"),
            ),
        ]);
    }
    let plan = NetworkPlan::of(install, input.nics)?;
    let image = machine_network::ImageNetwork {
        features: input.features,
        passwd: &input.accounts.passwd,
        netplan_names: input.netplan_names,
    };
    Ok(machine_network::render(&plan, &image)?)
}

/// The content of /etc/fstab: by UUID, parents first, swap at the end. Device names would change
/// with the order in which the kernel finds the disks.
fn fstab(filesystems: &[Fs]) -> String {
    let mut out = String::new();
    // Of the file systems without a mount point only swap has a line. systemd would fail the boot
    // at any other.
    let has_line = |f: &&Fs| match f.format.as_str() {
        "none" | "" => false,
        "swap" => true,
        _ => !f.path.is_empty(),
    };
    for fs in filesystems.iter().filter(has_line) {
        let source = if fs.uuid.is_empty() {
            fs.device.clone()
        } else {
            format!("UUID={}", fs.uuid)
        };
        // The order of checks at boot (fstab(5)): the root first, then the others. FAT and swap are
        // not checked.
        let (path, check) = match (fs.format.as_str(), fs.path.as_str()) {
            ("swap", _) => ("none", 0),
            ("ext3" | "ext4", "/") => ("/", 1),
            ("ext3" | "ext4", path) => (path, 2),
            (_, path) => (path, 0),
        };
        let options = fs.mount_options.join(",").replace(char::is_whitespace, "");
        let options = match (options.as_str(), fs.format.as_str()) {
            ("", "vfat") => "umask=0077".to_string(),
            ("", _) => "defaults".to_string(),
            _ => options,
        };
        out.push_str(&format!(
            "{source} {path} {} {options} 0 {check}\n",
            fs.format
        ));
    }
    out
}

/// Items of the DNS resolver. systemd-resolved reads its servers from the network file; without it
/// they go into /etc/resolv.conf.
fn resolver(input: &ConfigInput<'_>) -> Vec<SystemItem> {
    if input.features.resolved {
        return vec![
            link(
                &format!("{WANTS}/systemd-resolved.service"),
                &unit("systemd-resolved.service"),
            ),
            link(
                "/etc/resolv.conf",
                "../run/systemd/resolve/stub-resolv.conf",
            ),
        ];
    }
    // Safe to copy: `networkd_file` has refused every server that is not an address.
    let lines: String = input
        .install
        .dns_servers
        .iter()
        .map(|s| format!("nameserver {s}\n"))
        .collect();
    if lines.is_empty() {
        Vec::new()
    } else {
        vec![file("/etc/resolv.conf", 0o644, lines)]
    }
}

/// Items of the time client: the order's servers, and no others. chrony comes before
/// systemd-timesyncd, because Debian's chrony package replaces it.
fn time(input: &ConfigInput<'_>) -> Result<Vec<SystemItem>, ConfigError> {
    let servers = &input.install.ntp_servers;
    if let Some(stray) = servers.iter().find(|server| !is_host(server)) {
        return Err(ConfigError::TimeServer(stray.clone()));
    }
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(path) = input.features.chrony {
        let lines: String = servers
            .iter()
            .map(|server| format!("server {server} iburst\n"))
            .collect();
        // `makestep`: the first three corrections may step the clock, which slewing could not bring
        // back by years.
        let rest = "driftfile /var/lib/chrony/drift\nmakestep 1 3\nrtcsync\n";
        return Ok(vec![file(path, 0o644, lines + rest)]);
    }
    if input.features.timesyncd {
        let text = format!("[Time]\nNTP={}\nFallbackNTP=\n", servers.join(" "));
        let path = "/etc/systemd/timesyncd.conf.d/metalmesh.conf";
        return Ok(vec![file(path, 0o644, text)]);
    }
    tracing::warn!("image has neither chrony nor systemd-timesyncd: no time servers are set");
    Ok(Vec::new())
}

/// `true` for a name or an address. Other characters could inject a second directive into a
/// configuration file.
fn is_host(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '_');
    !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
}

/// Items of the installed system's agent. Its binary and identity are copied separately.
fn phone_home() -> Vec<SystemItem> {
    let text = format!(
        "[Unit]\nDescription=Tells the metalmesh control plane that this machine runs\n\
         After=network.target\n\n\
         [Service]\nExecStart={AGENT} phone-home --state-dir {STATE_DIR}\n\
         Restart=always\nRestartSec=5\nProtectSystem=strict\nReadWritePaths={STATE_DIR}\n\
         ProtectHome=yes\nNoNewPrivileges=yes\n\n\
         [Install]\nWantedBy=multi-user.target\n"
    );
    vec![
        file(&format!("{UNITS}/metalmesh-machine.service"), 0o644, text),
        link(
            &format!("{WANTS}/metalmesh-machine.service"),
            &format!("{UNITS}/metalmesh-machine.service"),
        ),
        item(STATE_DIR, ItemState::Dir(Owner::root(0o700))),
    ]
}

/// `true` for names of RFC 1123 labels, as systemd and DNS accept them.
fn is_hostname(name: &str) -> bool {
    let is_label = |l: &str| {
        (1..=63).contains(&l.len())
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

fn unit(name: &str) -> String {
    format!("/lib/systemd/system/{name}")
}

/// The accounts of an image with the administrative user added.
#[must_use]
pub fn accounts_with_user(image: Accounts, hash: &str, has_bash: bool) -> Accounts {
    users::with_user(image, hash, if has_bash { "/bin/bash" } else { "/bin/sh" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ImageFeatures = ImageFeatures {
        cloud_init: true,
        networkd: true,
        resolved: true,
        timesyncd: true,
        chrony: None,
        sudo: true,
        netplan: false,
        network_manager: false,
        ifupdown: false,
        frr: false,
        ignition: None,
    };

    fn install() -> Install {
        Install {
            allocation_uuid: "a-1".into(),
            hostname: "web-1".into(),
            ssh_public_keys: vec!["ssh-ed25519 AAAA me\n".into(), "ssh-rsa BBBB you".into()],
            ntp_servers: vec!["10.0.0.1".into()],
            ..Install::default()
        }
    }

    fn fs(device: &str, path: &str, format: &str, uuid: &str) -> Fs {
        Fs {
            device: device.into(),
            path: path.into(),
            format: format.into(),
            uuid: uuid.into(),
            mount_options: vec![],
        }
    }

    fn run(install: &Install, features: ImageFeatures) -> Result<Vec<SystemItem>, ConfigError> {
        let accounts = accounts_with_user(Accounts::default(), "$6$", true);
        let names = ["ssh_host_rsa_key".to_string(), "sshd_config".to_string()];
        items(&ConfigInput {
            install,
            mac: "52:54:00:00:00:01",
            nics: &[],
            netplan_names: &[],
            filesystems: &[],
            features,
            handling: Handling::Nothing,
            accounts: &accounts,
            ssh_names: &names,
        })
    }

    fn get<'a>(items: &'a [SystemItem], path: &str) -> Option<&'a ItemState> {
        items.iter().find(|i| i.path == path).map(|i| &i.state)
    }

    #[test]
    fn keys_belong_to_the_user_and_no_host_key_comes_along() {
        let items = run(&install(), ALL).unwrap();
        let want = ItemState::File(
            Owner {
                mode: 0o600,
                uid: 1000,
                gid: 1000,
            },
            b"ssh-ed25519 AAAA me\nssh-rsa BBBB you\n".to_vec(),
        );
        assert_eq!(get(&items, "/home/metal/.ssh/authorized_keys"), Some(&want));
        assert_eq!(
            get(&items, "/etc/ssh/ssh_host_rsa_key"),
            Some(&ItemState::Absent)
        );
        assert_eq!(get(&items, "/etc/ssh/sshd_config"), None);
        assert_eq!(
            get(&items, "/etc/machine-id"),
            Some(&ItemState::File(Owner::root(0o444), vec![]))
        );
        assert_eq!(
            get(&items, "/var/lib/metalmesh"),
            Some(&ItemState::Dir(Owner::root(0o700)))
        );
    }

    #[test]
    fn time_servers_by_what_the_image_has() {
        let order = Install {
            ntp_servers: vec!["10.0.0.1".into(), "ntp.example".into()],
            ..install()
        };
        let timesyncd = "/etc/systemd/timesyncd.conf.d/metalmesh.conf";
        let text = |features, path| match get(&run(&order, features).unwrap(), path) {
            Some(ItemState::File(_, text)) => Some(String::from_utf8(text.clone()).unwrap()),
            _ => None,
        };
        assert_eq!(
            text(ALL, timesyncd).as_deref(),
            Some("[Time]\nNTP=10.0.0.1 ntp.example\nFallbackNTP=\n")
        );
        let chrony = "/etc/chrony/chrony.conf";
        let both = ImageFeatures {
            chrony: Some(chrony),
            ..ALL
        };
        assert_eq!(text(both, timesyncd), None);
        let lines = text(both, chrony).unwrap();
        assert!(
            lines.starts_with("server 10.0.0.1 iburst\nserver ntp.example iburst\n"),
            "{lines}"
        );
        for bad in ["", "a b", "a\ncmdallow all", "-x"] {
            let order = Install {
                ntp_servers: vec![bad.into()],
                ..install()
            };
            assert_eq!(
                run(&order, both),
                Err(ConfigError::TimeServer(bad.into())),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_configured_is_refused() {
        let none = ImageFeatures {
            networkd: false,
            ..ALL
        };
        assert_eq!(run(&install(), none), Err(ConfigError::NoNetworkd));
        for bad in ["", "-a", "a b", "a\nb", "a..b", &"x".repeat(64)] {
            let order = Install {
                hostname: bad.into(),
                ..install()
            };
            assert_eq!(
                run(&order, ALL),
                Err(ConfigError::Hostname(bad.into())),
                "{bad}"
            );
        }
    }

    #[test]
    fn fstab_by_uuid() {
        let list = [
            fs("/dev/vda3", "/", "ext4", "u-1"),
            fs("/dev/vda2", "/boot/efi", "vfat", "ABCD-0001"),
            fs("tmpfs", "/tmp", "tmpfs", ""),
            fs("/dev/vda5", "/raw", "none", ""),
            fs("/dev/vda6", "", "ext3", "u-3"),
            fs("/dev/vda4", "", "swap", "u-2"),
        ];
        assert_eq!(
            fstab(&list),
            "UUID=u-1 / ext4 defaults 0 1\nUUID=ABCD-0001 /boot/efi vfat umask=0077 0 0\n\
             tmpfs /tmp tmpfs defaults 0 0\nUUID=u-2 none swap defaults 0 0\n"
        );
    }
}
