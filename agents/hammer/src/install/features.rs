//! The programs of an image that decide how it is configured.

use super::rootfs::Root;
use super::user_data;

/// The image's programs that decide how it is configured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImageFeatures {
    /// `true` if the image has cloud-init.
    pub cloud_init: bool,
    /// `true` if the image has systemd-networkd.
    pub networkd: bool,
    /// `true` if the image has systemd-resolved.
    pub resolved: bool,
    /// `true` if the image has systemd-timesyncd.
    pub timesyncd: bool,
    /// Path of chrony's configuration. `None` if the image has no chrony.
    pub chrony: Option<&'static str>,
    /// `true` if the image has sudo.
    pub sudo: bool,
    /// `true` if the image has netplan.
    pub netplan: bool,
    /// `true` if the image has NetworkManager.
    pub network_manager: bool,
    /// `true` if the image has ifupdown.
    pub ifupdown: bool,
    /// `true` if the image has FRR with bgpd.
    pub frr: bool,
    /// Path of Ignition. `None` if the image has none.
    pub ignition: Option<&'static str>,
}

/// Looks for the programs in the image below `root`.
pub(super) fn features(root: &Root) -> ImageFeatures {
    let unit = |name: &str| root.exists(&format!("lib/systemd/system/{name}"));
    ImageFeatures {
        cloud_init: root.exists("usr/bin/cloud-init"),
        networkd: unit("systemd-networkd.service"),
        resolved: unit("systemd-resolved.service"),
        timesyncd: unit("systemd-timesyncd.service"),
        chrony: match (unit("chrony.service"), unit("chronyd.service")) {
            // The unit is chrony.service on Debian, chronyd.service on Fedora.
            (true, _) => Some("/etc/chrony/chrony.conf"),
            (_, true) => Some("/etc/chrony.conf"),
            _ => None,
        },
        sudo: root.exists("usr/bin/sudo"),
        netplan: root.exists("usr/sbin/netplan"),
        network_manager: unit("NetworkManager.service"),
        ifupdown: root.exists("sbin/ifup"),
        frr: unit("frr.service")
            && ["usr/lib/frr/bgpd", "usr/libexec/frr/bgpd"]
                .into_iter()
                .any(|path| root.exists(path)),
        ignition: user_data::IGNITION_PATHS
            .into_iter()
            .find(|path| root.exists(path)),
    }
}
