//! Configuration of the new system: files as data, so that tests can compare them.

use proto_mesh::Install;
use proto_types::MacAddr;

use super::features::ImageFeatures;
use super::firewall_agent::{self, FirewallAgentError};
use super::item::{ItemState, SystemItem, file, item, link};
use super::layout::Fs;
use super::login;
use super::machine_network::{self, FirewallPlan, MachineNetworkError, Mode, NetworkPlan};
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
    /// The agent of a firewall cannot be configured.
    #[error(transparent)]
    FirewallAgent(#[from] FirewallAgentError),
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
    out.extend(firewall_agent::items(install)?);
    Ok(out)
}

/// Items of the network, as the mode of the order wants it.
fn network_items(input: &ConfigInput<'_>) -> Result<Vec<SystemItem>, ConfigError> {
    let install = input.install;
    let image = machine_network::ImageNetwork {
        features: input.features,
        passwd: &input.accounts.passwd,
        netplan_names: input.netplan_names,
    };
    if FirewallPlan::is_for(install) {
        let plan = FirewallPlan::of(install, input.nics)?;
        return Ok(machine_network::render_firewall(&plan, &image)?);
    }
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
#[path = "config_tests.rs"]
mod tests;
