//! The configuration file: TOML, read once at start, every mistake refused by name.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::Ipv4Net;
use pixie_boot::{BmcMatch, BootFiles, Network, Range, RangeError};
use serde::Deserialize;

/// Networks one pixie serves at most.
const NETWORKS_MAX: usize = 64;
const LEASE_TIME_S_MIN: u32 = 60;
/// Serial console and what keeps slow virtual machines alive; see the project's lab.
const COMMANDLINE: &str = "console=ttyS0,115200n8 no_timer_check panic=30";

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("not valid TOML, or an unknown or missing key")]
    Syntax(#[from] Box<toml::de::Error>),
    #[error("there must be 1 to {NETWORKS_MAX} [[network]] sections, not {0}")]
    Networks(usize),
    #[error("network {interface}: {reason}")]
    Network { interface: String, reason: String },
    #[error("network {interface}: wrong range")]
    Range {
        interface: String,
        #[source]
        source: RangeError,
    },
}

/// UDP ports that are no matter of taste: firmware knows no others. Those of a rehearsal on
/// loopback, where clients come through a relay, may be any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    pub dhcp: u16,
    pub tftp: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self { dhcp: 67, tftp: 69 }
    }
}

/// Bounds of what is fetched when the partition names its installer by URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchLimits {
    /// Longest kernel, bytes; a longer one is refused.
    pub kernel_len_max: u64,
    /// Longest image, bytes; a longer one is refused.
    pub image_len_max: u64,
    /// A server that sends nothing for so long is given up.
    pub stall: Duration,
    /// Longest download of one file.
    pub time_max: Duration,
    /// Pause after a first failure. It doubles with each further one, up to `retry_max`.
    pub retry_min: Duration,
    pub retry_max: Duration,
    /// How often a fetched pair is compared with what its server has.
    pub recheck: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            kernel_len_max: 256 << 20,
            image_len_max: 2 << 30,
            stall: Duration::from_secs(30),
            time_max: Duration::from_secs(3600),
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(60),
            recheck: Duration::from_secs(300),
        }
    }
}

/// Everything that is configured.
#[derive(Debug, Clone)]
pub struct Config {
    pub ports: Ports,
    pub http_port: u16,
    /// Directory of the boot programs, served by TFTP and under `/assets/` by HTTP.
    pub assets: PathBuf,
    pub kernel: PathBuf,
    pub initrd: PathBuf,
    pub commandline: String,
    /// Authorities, PEM, that alone are trusted when an installer comes by https; without it those
    /// of the system.
    pub ca_file: Option<PathBuf>,
    pub fetch: FetchLimits,
    pub networks: Vec<NetworkConfig>,
}

/// One network and how it is served.
#[derive(Debug, Clone)]
pub struct NetworkConfig {
    pub interface: String,
    pub mode: Mode,
    /// Send IPv6 router advertisements, for which iPXE otherwise waits.
    pub router_advertisements: bool,
    pub network: Network,
}

/// How pixie does DHCP on a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// As the DHCP server.
    Server,
    /// Beside another DHCP server: boot information only.
    Proxy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "default_http_port")]
    http_port: u16,
    boot: FileBoot,
    network: Vec<FileNetwork>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileBoot {
    #[serde(default = "default_assets")]
    assets: PathBuf,
    kernel: PathBuf,
    initrd: PathBuf,
    #[serde(default = "default_commandline")]
    commandline: String,
    ca_file: Option<PathBuf>,
    bios: Option<String>,
    efi64: Option<String>,
    efi32: Option<String>,
    arm64: Option<String>,
    http_efi64: Option<String>,
    http_arm64: Option<String>,
    http_uki: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNetwork {
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
    #[serde(default = "default_true")]
    router_advertisements: bool,
    bmc: Option<FileBmc>,
}

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

fn default_http_port() -> u16 {
    8080
}
fn default_assets() -> PathBuf {
    PathBuf::from("/usr/lib/ipxe")
}
fn default_commandline() -> String {
    COMMANDLINE.into()
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

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// When it cannot be read or is wrong.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.into(),
            source,
        })?;
        Self::parse(&text)
    }

    /// Reads a configuration.
    ///
    /// # Errors
    /// When it is wrong.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text).map_err(Box::new)?;
        if file.network.is_empty() || file.network.len() > NETWORKS_MAX {
            return Err(ConfigError::Networks(file.network.len()));
        }
        let files = boot_files(&file.boot);
        let networks = file
            .network
            .into_iter()
            .map(|network| network.check(&files, file.http_port))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            ports: Ports::default(),
            http_port: file.http_port,
            assets: file.boot.assets,
            kernel: file.boot.kernel,
            initrd: file.boot.initrd,
            commandline: file.boot.commandline,
            ca_file: file.boot.ca_file,
            fetch: FetchLimits::default(),
            networks,
        })
    }
}

fn boot_files(boot: &FileBoot) -> BootFiles {
    let default = BootFiles::default();
    let or = |own: &Option<String>, default: Option<String>| own.clone().or(default);
    BootFiles {
        bios: or(&boot.bios, default.bios),
        efi64: or(&boot.efi64, default.efi64),
        efi32: or(&boot.efi32, default.efi32),
        arm64: or(&boot.arm64, default.arm64),
        http_efi64: or(&boot.http_efi64, default.http_efi64),
        http_arm64: or(&boot.http_arm64, default.http_arm64),
        http_uki: or(&boot.http_uki, default.http_uki),
    }
}

impl FileNetwork {
    fn check(self, files: &BootFiles, http_port: u16) -> Result<NetworkConfig, ConfigError> {
        let wrong = |reason: &str| ConfigError::Network {
            interface: self.interface.clone(),
            reason: reason.into(),
        };
        if self.interface.is_empty() || self.interface.len() > 15 {
            return Err(wrong("an interface name has 1 to 15 characters"));
        }
        if !self.subnet.contains(&self.address) {
            return Err(wrong("the address is not in the subnet"));
        }
        if self.lease_time_s < LEASE_TIME_S_MIN {
            return Err(wrong("lease_time_s must be at least 60"));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        http_port = 8080
        [boot]
        kernel = "/boot/vmlinuz"
        initrd = "/boot/initrd"
        [[network]]
        interface = "br0"
        address = "10.77.1.2"
        subnet = "10.77.1.0/24"
        range = ["10.77.1.100", "10.77.1.199"]
        router = "10.77.1.2"
        [network.bmc]
        range = ["10.77.1.200", "10.77.1.220"]
        mac_prefixes = ["0C:C4:7A"]
    "#;

    #[test]
    fn a_short_file_has_good_defaults() {
        let config = Config::parse(GOOD).unwrap();
        let network = &config.networks[0];
        assert_eq!(network.mode, Mode::Server);
        assert!(network.router_advertisements);
        assert_eq!(network.network.lease_time_s, 600);
        assert_eq!(network.network.bmc_match.mac_prefixes, ["0c:c4:7a"]);
        assert_eq!(network.network.files.bios.as_deref(), Some("undionly.kpxe"));
        assert_eq!(config.assets, Path::new("/usr/lib/ipxe"));
        assert!(config.commandline.contains("console=ttyS0"));
    }

    #[test]
    fn mistakes_are_refused_by_name() {
        for (from, to, reason) in [
            (
                "range = [\"10.77.1.100\", \"10.77.1.199\"]",
                "range = [\"10.77.1.199\", \"10.77.1.100\"]",
                "range",
            ),
            ("10.77.1.200", "10.77.1.150", "overlap"),
            (
                "address = \"10.77.1.2\"",
                "address = \"10.77.1.101\"",
                "own address",
            ),
            (
                "address = \"10.77.1.2\"",
                "address = \"10.78.1.2\"",
                "not in the subnet",
            ),
            ("http_port", "http_prot", "TOML"),
            ("interface = \"br0\"", "interface = \"\"", "interface name"),
        ] {
            let text = GOOD.replacen(from, to, 1);
            let error = Config::parse(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let proxy = GOOD.replace("address =", "mode = \"proxy\"\naddress =");
        assert_eq!(Config::parse(&proxy).unwrap().networks[0].mode, Mode::Proxy);
    }
}
