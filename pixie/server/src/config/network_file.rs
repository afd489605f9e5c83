//! The `[[network]]` sections of the configuration file, and their check.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use pixie_boot::{BmcMatch, BootFiles, Network, Range};
use serde::Deserialize;

use super::ConfigError;
use super::network::{Mode, NetworkConfig};

/// Shortest lease time, s. A configuration with a shorter one is refused.
const LEASE_TIME_S_MIN: u32 = 60;

/// A `[[network]]` section.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileNetwork {
    interface: String,
    address: Ipv4Addr,
    #[serde(default = "default_mode")]
    mode: Mode,
    subnet: Ipv4Net,
    range: Option<[Ipv4Addr; 2]>,
    router: Option<Ipv4Addr>,
    #[serde(default)]
    dns: Vec<Ipv4Addr>,
    #[serde(default)]
    ntp: Vec<Ipv4Addr>,
    domain: Option<String>,
    #[serde(default = "default_lease_time_s")]
    lease_time_s: u32,
    #[serde(default)]
    relayed: bool,
    #[serde(default = "default_true")]
    router_advertisements: bool,
    bmc: Option<FileBmc>,
}

/// A `[network.bmc]` section.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileBmc {
    range: [Ipv4Addr; 2],
    #[serde(default)]
    vendor_classes: Vec<String>,
    #[serde(default)]
    mac_prefixes: Vec<String>,
    #[serde(default)]
    all: bool,
}

fn default_mode() -> Mode {
    Mode::Server
}

fn default_lease_time_s() -> u32 {
    600
}

fn default_true() -> bool {
    true
}

impl FileNetwork {
    /// The interface of the section.
    pub(super) fn interface(&self) -> &str {
        &self.interface
    }

    /// `true` if all clients of the section are behind relays.
    pub(super) fn is_relayed(&self) -> bool {
        self.relayed
    }

    /// Checks a section and converts it.
    pub(super) fn check(
        self,
        files: &BootFiles,
        http_port: u16,
    ) -> Result<NetworkConfig, ConfigError> {
        let wrong = |reason: &str| ConfigError::Network {
            interface: self.interface.clone(),
            reason: reason.into(),
        };
        // Linux stores names in 16 bytes with a final 0 (IFNAMSIZ).
        if self.interface.is_empty() || self.interface.len() > 15 {
            return Err(wrong("an interface name has 1 to 15 characters"));
        }
        if !self.subnet.contains(&self.address) {
            return Err(wrong("the address is not in the subnet"));
        }
        if self.relayed && self.mode == Mode::Proxy {
            return Err(wrong(
                "a proxy has no relays: the network's server has them",
            ));
        }
        if self.lease_time_s < LEASE_TIME_S_MIN {
            return Err(wrong("lease_time_s must be at least 60"));
        }
        // A network of BMCs alone needs no range for machines.
        let wants_range = self.mode == Mode::Server && self.bmc.is_none();
        if wants_range && self.range.is_none() {
            return Err(wrong("a server without a range gives no addresses"));
        }
        let range = |[first, last]: [Ipv4Addr; 2]| {
            Range::new(first, last, self.subnet).map_err(|source| ConfigError::Range {
                interface: self.interface.clone(),
                source,
            })
        };
        let machines = self.range.map(range).transpose()?;
        let bmcs = self.bmc.as_ref().map(|bmc| range(bmc.range)).transpose()?;
        for pool in [machines, bmcs].iter().flatten() {
            // A client with pixie's address would cut the network off from it.
            if pool.contains(self.address) {
                return Err(wrong("pixie's own address lies in a range"));
            }
        }
        if let (Some(machines), Some(bmcs)) = (&machines, &bmcs)
            && bmcs.iter().any(|address| machines.contains(address))
        {
            return Err(wrong("the ranges of machines and BMCs overlap"));
        }
        let bmc_match = self.bmc.map(BmcMatch::from).unwrap_or_default();
        Ok(NetworkConfig {
            interface: self.interface,
            mode: self.mode,
            router_advertisements: self.router_advertisements,
            is_relayed: self.relayed,
            network: Network {
                address: self.address,
                subnet: self.subnet,
                machines,
                bmcs,
                bmc_match,
                router: self.router,
                dns: self.dns,
                ntp: self.ntp,
                domain: self.domain,
                lease_time_s: self.lease_time_s,
                http_port,
                files: files.clone(),
            },
        })
    }
}

impl From<FileBmc> for BmcMatch {
    fn from(bmc: FileBmc) -> Self {
        Self {
            vendor_classes: bmc.vendor_classes,
            mac_prefixes: bmc
                .mac_prefixes
                .iter()
                .map(|p| p.to_ascii_lowercase())
                .collect(),
            all: bmc.all,
        }
    }
}
