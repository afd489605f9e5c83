//! The configuration: a TOML file, read once at the start. Every mistake is refused by name.

mod file;
mod limits;
mod network;
mod network_file;
mod relay;

use std::path::{Path, PathBuf};

use agents_update::mesh_agent::SelfUpdateSection;
use pixie_boot::RangeError;

use file::{File, boot_files};
pub use limits::{FetchLimits, Ports};
pub use network::{Mode, NetworkConfig};
pub use relay::RelayConfig;

/// Networks per pixie. A configuration with more is refused.
const NETWORKS_MAX: usize = 64;

/// The reason why a configuration is refused.
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

/// The configuration of pixie.
#[derive(Debug, Clone)]
pub struct Config {
    pub ports: Ports,
    pub http_port: u16,
    /// Directory of the boot programs, served by TFTP and under `/assets/` by HTTP.
    pub assets: PathBuf,
    pub kernel: PathBuf,
    pub initrd: PathBuf,
    pub commandline: String,
    /// PEM file with the only authorities that are trusted for installers by https. `None` means
    /// those of the system.
    pub ca_file: Option<PathBuf>,
    pub fetch: FetchLimits,
    pub networks: Vec<NetworkConfig>,
    /// Listener for the relays of switches. `None` means that no network is behind relays.
    pub relay: Option<RelayConfig>,
    /// Replacement of the program by signed releases. `None` means that nothing is replaced.
    pub self_update: Option<SelfUpdateSection>,
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`] if it cannot be read or is invalid.
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
    /// [`ConfigError`] if it is invalid.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text).map_err(Box::new)?;
        if file.network.is_empty() || file.network.len() > NETWORKS_MAX {
            return Err(ConfigError::Networks(file.network.len()));
        }
        check_relay(&file)?;
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
            relay: file.relay,
            self_update: file.self_update,
        })
    }
}

/// Checks that networks behind relays have a listener, on an interface without machines.
fn check_relay(file: &File) -> Result<(), ConfigError> {
    let wrong = |interface: &str, reason: &str| ConfigError::Network {
        interface: interface.to_owned(),
        reason: reason.to_owned(),
    };
    let mut networks = file.network.iter();
    match &file.relay {
        None => {
            let unheard = networks.find(|network| network.is_relayed());
            unheard.map_or(Ok(()), |network| {
                let reason = "relayed = true needs a [relay] section";
                Err(wrong(network.interface(), reason))
            })
        }
        // A machine on that interface could send with a switch's address.
        Some(relay) if networks.any(|network| network.interface() == relay.interface) => {
            let reason = "relays need an interface without machines";
            Err(wrong(&relay.interface, reason))
        }
        Some(_) => Ok(()),
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
    fn the_example_is_whole_and_asks_for_a_network() {
        let text = include_str!("../../metalmesh-pixie.example.toml");
        let lines = text.lines();
        let all: String = lines
            .map(|line| format!("{}\n", line.strip_prefix("#: ").unwrap_or(line)))
            .collect();
        let config = Config::parse(&all).unwrap();
        assert!(config.relay.is_some() && config.networks[0].is_relayed);
        assert!(config.self_update.is_some());
        assert_eq!(config.commandline, Config::parse(GOOD).unwrap().commandline);
        let unset = Config::parse(text).unwrap_err();
        let is_syntax = matches!(unset, ConfigError::Syntax(_));
        assert!(is_syntax, "without [[network]]: {unset}");
    }

    #[test]
    fn the_listener_for_relays_is_on_an_interface_of_its_own() {
        assert_eq!(Config::parse(GOOD).unwrap().relay, None);
        let section = "[relay]\ninterface = \"mgmt0\"\naddress = \"10.90.0.5\"\n";
        let relay = |section: &str| Config::parse(&format!("{GOOD}\n{section}"));
        let found = relay(section).unwrap().relay.unwrap();
        assert_eq!(found.interface, "mgmt0");
        let relayed = GOOD.replacen("router =", "relayed = true\nrouter =", 1);
        let alone = Config::parse(&relayed).unwrap_err().to_string();
        assert!(alone.contains("[relay]"), "{alone}");
        let both = Config::parse(&format!("{relayed}\n{section}")).unwrap();
        assert!(both.networks[0].is_relayed);
        let same = relay(&section.replace("mgmt0", "br0")).unwrap_err();
        assert!(same.to_string().contains("br0"), "{same}");
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
