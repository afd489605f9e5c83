//! The packages: which program each has, what it needs and which files it brings.

const MB: u64 = 1_000_000;

/// A file of the repository that a package brings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asset {
    /// Path in the repository.
    pub(crate) from: &'static str,
    /// Path in the package. Below `etc/` it is a file of configuration, which upgrades leave alone.
    pub(crate) to: &'static str,
}

/// A Debian package.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recipe {
    pub(crate) name: &'static str,
    /// The crate of the program.
    pub(crate) package: &'static str,
    pub(crate) program: &'static str,
    /// Section of its manual pages: 1 for everybody, 8 for administrators.
    pub(crate) section: u8,
    pub(crate) summary: &'static str,
    /// Lines of the description.
    pub(crate) description: &'static [&'static str],
    /// Beside the libraries of the program.
    pub(crate) depends: &'static [&'static str],
    pub(crate) recommends: &'static [&'static str],
    /// User of the service. `None` means root, or no service.
    pub(crate) user: Option<&'static str>,
    /// Units, the main one first.
    pub(crate) units: &'static [&'static str],
    /// Directory of the data, which a purge leaves if it is not empty.
    pub(crate) data: Option<&'static str>,
    /// Further directories, of configuration and backups, which a purge removes if they are empty.
    pub(crate) folders: &'static [&'static str],
    /// Further places where files of its user may be left; while one exists, a purge keeps the user.
    pub(crate) leavings: &'static [&'static str],
    pub(crate) assets: &'static [Asset],
    /// `true` for programs that are linked whole, and run on every Linux.
    pub(crate) is_static: bool,
    /// Longest package, bytes.
    pub(crate) size_max: u64,
}

const fn asset(from: &'static str, to: &'static str) -> Asset {
    Asset { from, to }
}

const SYSUSERS: &str = "systemd | systemd-standalone-sysusers | systemd-sysusers";
const TMPFILES: &str = "systemd | systemd-standalone-tmpfiles | systemd-tmpfiles";

impl Recipe {
    /// `true` if the program is the system's, and not only that of machines which boot from the network.
    pub(crate) fn is_installed(&self) -> bool {
        self.program != "metalmesh-hammer"
    }

    /// `true` if the package has a container image: a service that runs without an init system.
    pub(crate) fn has_image(&self) -> bool {
        !self.units.is_empty()
    }
}

/// Every package, in the order in which they are shown.
pub(crate) const RECIPES: [Recipe; 7] = [CONTROL, CLI, CORE, BMC, PIXIE, HAMMER, FIREWALL];

const CONTROL: Recipe = Recipe {
    name: "metalmesh-control",
    package: "control-server",
    program: "metalmeshd",
    section: 8,
    summary: "control plane of the metalmesh bare-metal cloud",
    description: &[
        "metalmeshd is one node of the control plane: the API for tenants and",
        "administrators, the gateway of the agents, and the replicated state. One node",
        "is a control plane of its own; three or five tolerate the loss of one or two.",
        ".",
        "The service is neither enabled nor started by the package: the first start",
        "forms a cluster, or joins one.",
    ],
    depends: &[SYSUSERS, TMPFILES, "ca-certificates"],
    recommends: &["metalmesh-cli", "chrony | time-daemon"],
    user: Some("metalmesh"),
    units: &["metalmeshd.service"],
    data: Some("/var/lib/metalmesh/control"),
    folders: &["/etc/metalmesh", "/var/backups/metalmesh"],
    // The state of nodes that were set up in the directory above.
    leavings: &["/var/lib/metalmesh/NODE"],
    assets: &[
        asset(
            "xtask/package/control/metalmeshd.service",
            "lib/systemd/system/metalmeshd.service",
        ),
        asset(
            "xtask/package/control/sysusers.conf",
            "usr/lib/sysusers.d/metalmesh-control.conf",
        ),
        asset(
            "xtask/package/control/tmpfiles.conf",
            "usr/lib/tmpfiles.d/metalmesh-control.conf",
        ),
        // No file of configuration: `metalmeshd init` writes that one, and asks only without it.
        asset(
            "control/server/metalmeshd.example.toml",
            "usr/share/doc/metalmesh-control/examples/metalmeshd.toml",
        ),
    ],
    is_static: false,
    size_max: 20 * MB,
};

const CLI: Recipe = Recipe {
    name: "metalmesh-cli",
    package: "control-ctl",
    program: "metalmesh",
    section: 1,
    summary: "command line of the metalmesh bare-metal cloud",
    description: &[
        "metalmesh is the command line of administrators and tenants: machines,",
        "networks, firewalls, projects, control nodes and everything else that the API",
        "knows.",
    ],
    depends: &["ca-certificates"],
    recommends: &[],
    user: None,
    units: &[],
    data: None,
    folders: &[],
    leavings: &[],
    assets: &[],
    is_static: false,
    size_max: 8 * MB,
};

const CORE: Recipe = Recipe {
    name: "metalmesh-core",
    package: "agents-core",
    program: "metalmesh-core",
    section: 8,
    summary: "metalmesh agent of a switch",
    description: &[
        "metalmesh-core keeps one leaf switch, Linux or SONiC, in the state that the",
        "metalmesh control plane desires: ports, VRFs, tunnels, BGP and packet filter.",
        ".",
        "The service is neither enabled nor started by the package: set",
        "/etc/metalmesh/core.toml, and join with a ticket.",
    ],
    depends: &[SYSUSERS, TMPFILES, "nftables"],
    recommends: &["frr", "tpm-udev"],
    user: Some("metalmesh-core"),
    units: &["metalmesh-core.service"],
    data: Some("/var/lib/metalmesh/core"),
    folders: &["/etc/metalmesh"],
    leavings: &[],
    assets: &[
        asset(
            "xtask/package/core/metalmesh-core.service",
            "lib/systemd/system/metalmesh-core.service",
        ),
        asset(
            "xtask/package/core/sysusers.conf",
            "usr/lib/sysusers.d/metalmesh-core.conf",
        ),
        asset(
            "xtask/package/core/tmpfiles.conf",
            "usr/lib/tmpfiles.d/metalmesh-core.conf",
        ),
        asset("xtask/package/core/default", "etc/default/metalmesh-core"),
        asset(
            "agents/core/metalmesh-core.example.toml",
            "etc/metalmesh/core.toml",
        ),
    ],
    is_static: false,
    size_max: 8 * MB,
};

const BMC: Recipe = Recipe {
    name: "metalmesh-bmc",
    package: "bmc-agent",
    program: "metalmesh-bmc",
    section: 8,
    summary: "metalmesh agent of the BMCs of a partition",
    description: &[
        "metalmesh-bmc finds and drives the BMCs of one partition, by Redfish and IPMI:",
        "power, boot devices, sensors, inventory.",
        ".",
        "The service is neither enabled nor started by the package: set",
        "/etc/metalmesh/bmc.toml and its credentials, and join with a ticket.",
    ],
    depends: &[SYSUSERS, TMPFILES, "ca-certificates"],
    recommends: &["tpm-udev"],
    user: Some("metalmesh-bmc"),
    units: &["metalmesh-bmc.service"],
    data: Some("/var/lib/metalmesh/bmc"),
    folders: &["/etc/metalmesh"],
    leavings: &[],
    assets: &[
        asset(
            "xtask/package/bmc/metalmesh-bmc.service",
            "lib/systemd/system/metalmesh-bmc.service",
        ),
        asset(
            "xtask/package/bmc/sysusers.conf",
            "usr/lib/sysusers.d/metalmesh-bmc.conf",
        ),
        asset(
            "xtask/package/bmc/tmpfiles.conf",
            "usr/lib/tmpfiles.d/metalmesh-bmc.conf",
        ),
        asset("xtask/package/bmc/default", "etc/default/metalmesh-bmc"),
        asset("xtask/package/bmc/apparmor", "etc/apparmor.d/metalmesh-bmc"),
        asset(
            "bmc/agent/metalmesh-bmc.example.toml",
            "etc/metalmesh/bmc.toml",
        ),
    ],
    is_static: false,
    size_max: 8 * MB,
};

const PIXIE: Recipe = Recipe {
    name: "metalmesh-pixie",
    package: "pixie-server",
    program: "metalmesh-pixie",
    section: 8,
    summary: "metalmesh boot server of a partition",
    description: &[
        "metalmesh-pixie boots the machines of one partition from the network: DHCP,",
        "TFTP, HTTP and the installer that control or the package metalmesh-hammer",
        "provides.",
        ".",
        "The service is neither enabled nor started by the package: set",
        "/etc/metalmesh/pixie.toml, and join with a ticket.",
    ],
    depends: &[SYSUSERS, TMPFILES, "ca-certificates", "ipxe"],
    recommends: &["metalmesh-hammer", "tpm-udev"],
    user: Some("metalmesh-pixie"),
    units: &["metalmesh-pixie.service"],
    data: Some("/var/lib/metalmesh/pixie"),
    folders: &["/etc/metalmesh"],
    leavings: &[],
    assets: &[
        asset(
            "xtask/package/pixie/metalmesh-pixie.service",
            "lib/systemd/system/metalmesh-pixie.service",
        ),
        asset(
            "xtask/package/pixie/sysusers.conf",
            "usr/lib/sysusers.d/metalmesh-pixie.conf",
        ),
        asset(
            "xtask/package/pixie/tmpfiles.conf",
            "usr/lib/tmpfiles.d/metalmesh-pixie.conf",
        ),
        asset("xtask/package/pixie/default", "etc/default/metalmesh-pixie"),
        asset(
            "xtask/package/pixie/apparmor",
            "etc/apparmor.d/metalmesh-pixie",
        ),
        asset(
            "pixie/server/metalmesh-pixie.example.toml",
            "etc/metalmesh/pixie.toml",
        ),
    ],
    is_static: false,
    size_max: 8 * MB,
};

const HAMMER: Recipe = Recipe {
    name: "metalmesh-hammer",
    package: "agents-hammer",
    program: "metalmesh-hammer",
    section: 8,
    summary: "metalmesh installer that machines boot into",
    description: &[
        "Kernel and initramfs that machines of a metalmesh partition boot from the",
        "network: inventory, wipe and installation. metalmesh-pixie serves them.",
    ],
    depends: &[],
    recommends: &["metalmesh-pixie"],
    user: None,
    units: &[],
    data: None,
    folders: &[],
    leavings: &[],
    assets: &[],
    is_static: true,
    // Kernel, every module and every tool: the bound of the initramfs, and the kernel.
    size_max: 140 * MB,
};

const FIREWALL: Recipe = Recipe {
    name: "metalmesh-firewall",
    package: "agents-firewall",
    program: "metalmesh-firewall",
    section: 8,
    summary: "metalmesh agent of a firewall's rules",
    description: &[
        "metalmesh-firewall keeps the rules of one firewall machine in the kernel, from",
        "control, from Kubernetes or from a file. Firewalls that metalmesh installs have",
        "the agent from the installer; this package is for others, and for images.",
        ".",
        "The service is neither enabled nor started by the package: write",
        "/etc/firewall-controller/config.yaml first.",
    ],
    depends: &[SYSUSERS, TMPFILES, "ca-certificates"],
    recommends: &["frr"],
    user: None,
    units: &["metalmesh-firewall.service", "metalmesh-closed.service"],
    data: Some("/var/lib/metalmesh/firewall"),
    folders: &["/etc/firewall-controller", "/etc/nftables"],
    leavings: &[],
    assets: &[
        asset(
            "xtask/package/firewall/metalmesh-firewall.service",
            "lib/systemd/system/metalmesh-firewall.service",
        ),
        asset(
            "xtask/package/firewall/metalmesh-closed.service",
            "lib/systemd/system/metalmesh-closed.service",
        ),
        asset(
            "xtask/package/firewall/closed.conf",
            "usr/lib/metalmesh/closed.conf",
        ),
        asset(
            "xtask/package/firewall/sysusers.conf",
            "usr/lib/sysusers.d/metalmesh-firewall.conf",
        ),
        asset(
            "xtask/package/firewall/tmpfiles.conf",
            "usr/lib/tmpfiles.d/metalmesh-firewall.conf",
        ),
        asset(
            "xtask/package/firewall/default",
            "etc/default/metalmesh-firewall",
        ),
        asset(
            "agents/firewall/metalmesh-firewall.example.yaml",
            "usr/share/doc/metalmesh-firewall/examples/config.yaml",
        ),
    ],
    is_static: true,
    size_max: 8 * MB,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_asset_is_there_and_every_unit_is_an_asset() {
        let root = crate::root();
        for recipe in RECIPES {
            for asset in recipe.assets {
                assert!(
                    root.join(asset.from).is_file(),
                    "{}: {}",
                    recipe.name,
                    asset.from
                );
                assert!(!asset.to.starts_with('/'), "{}", asset.to);
            }
            for unit in recipe.units {
                let is_unit = |asset: &Asset| asset.to == format!("lib/systemd/system/{unit}");
                assert!(recipe.assets.iter().any(is_unit), "{}: {unit}", recipe.name);
            }
        }
    }

    #[test]
    fn lines_of_descriptions_are_short() {
        for recipe in RECIPES {
            assert!(recipe.summary.len() <= 60, "{}", recipe.summary);
            for line in recipe.description {
                assert!(line.len() <= 79, "{line}");
            }
        }
    }

    #[test]
    fn only_installed_services_have_a_user_and_data() {
        for recipe in RECIPES {
            let is_service = !recipe.units.is_empty();
            assert_eq!(recipe.data.is_some(), is_service, "{}", recipe.name);
            assert!(recipe.user.is_none() || is_service, "{}", recipe.name);
            assert!(
                !recipe.has_image() || recipe.is_installed(),
                "{}",
                recipe.name
            );
        }
    }
}
