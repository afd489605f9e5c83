//! The agent's configuration file.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use agents_nos::frr::Vtysh;
use agents_nos::model::PortName;
use agents_nos::{linux, sonic};
use agents_update::mesh_agent::SelfUpdateSection;
use base_runtime::Chain;
use serde::Deserialize;

use crate::relay::RelayConfig;

mod bgp;
mod drift_policy;
mod switch_os;

pub use bgp::BgpConfig;
pub use drift_policy::DriftPolicy;
pub use switch_os::SwitchOs;

/// A reason why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The file is not valid.
    #[error("{} is not a configuration", path.display())]
    Parse {
        /// Path of the file.
        path: PathBuf,
        /// The parser's error, with the position.
        #[source]
        source: Box<toml::de::Error>,
    },
}

/// Configuration of the agent, in TOML.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rack of the switch.
    pub rack: String,
    /// Room of the rack.
    #[serde(default)]
    pub room: String,
    /// Address of the management interface.
    pub management_ip: IpAddr,
    /// Underlay address of the switch's tunnel end.
    pub vtep: IpAddr,
    /// Front-panel ports: names, or a prefix and `*`.
    #[serde(default = "default_ports")]
    pub ports: Vec<String>,
    /// Operating system of the switch.
    #[serde(default)]
    pub nos: SwitchOs,
    /// Redis of SONiC: the path of its socket, or host and port.
    #[serde(default)]
    pub redis: Option<String>,
    /// Ports towards the provisioning services, always in the provisioning segment. They are not
    /// registered, because no machine is connected to them.
    #[serde(default)]
    pub uplinks: Vec<String>,
    /// Tunnel ends of the leaves with uplinks, the same list on every leaf of a partition without
    /// EVPN. A leaf without uplinks sends the frames of its unprovisioned machines there and nowhere
    /// else. Empty: only machines at leaves with uplinks reach the provisioning services.
    #[serde(default)]
    pub uplink_vteps: Vec<IpAddr>,
    /// Relay of the DHCP requests of unprovisioned machines. Without it a leaf relays nothing.
    #[serde(default)]
    pub relay: Option<RelayConfig>,
    /// Tunnel ends of routers that serve every tenant segment.
    #[serde(default)]
    pub gateways: Vec<IpAddr>,
    /// Policy for changes that somebody made on the switch by hand.
    #[serde(default)]
    pub drift: DriftPolicy,
    /// BGP of the switch, with `vtep` as its router id. Without it no port is routed: those that
    /// control wants routed stay in quarantine.
    #[serde(default)]
    pub bgp: Option<BgpConfig>,
    /// Replacement of the agent's program by signed releases. Without it nothing is replaced.
    #[serde(default)]
    pub self_update: Option<SelfUpdateSection>,
    /// Listeners of control that this agent itself is configured with. Not in the file.
    #[serde(skip)]
    pub control: Vec<SocketAddr>,
}

/// FRR's shell in SONiC's container. It ends by itself, before the agent stops waiting for it: what
/// ends `docker exec` ends nothing in the container.
const SONIC_VTYSH: [&str; 7] = ["docker", "exec", "-i", "bgp", "timeout", "15", "vtysh"];

fn default_ports() -> Vec<String> {
    vec!["swp*".to_owned()]
}

impl Config {
    /// A configuration with the keys that a file must have; every other key has its default.
    #[must_use]
    pub fn new(rack: impl Into<String>, management_ip: IpAddr, vtep: IpAddr) -> Self {
        Self {
            rack: rack.into(),
            room: String::new(),
            management_ip,
            vtep,
            ports: default_ports(),
            nos: SwitchOs::default(),
            redis: None,
            uplinks: Vec::new(),
            uplink_vteps: Vec::new(),
            relay: None,
            gateways: Vec::new(),
            drift: DriftPolicy::default(),
            bgp: None,
            self_update: None,
            control: Vec::new(),
        }
    }

    /// Loads a file.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a valid configuration.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        toml::from_str(&text).map_err(|source| ConfigError::Parse {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }

    /// Checks the text of a file.
    ///
    /// # Errors
    /// It is not a valid configuration.
    pub fn check(text: &str) -> Result<(), String> {
        let read = toml::from_str::<Self>(text);
        read.map(drop).map_err(|error| Chain(&error).to_string())
    }

    /// The configuration of the Linux back-end.
    #[must_use]
    pub fn linux(&self) -> linux::Config {
        linux::Config {
            ports: self.all_ports(),
            vtep: self.vtep,
            frr: self.vtysh(&["vtysh"]),
            filter: self.filter(),
        }
    }

    /// The site's part of the packet filter of the Linux back-end. An uplink with a name that no port
    /// has is a problem of the desired state.
    fn filter(&self) -> linux::FilterConfig {
        let uplinks = self.uplinks.iter();
        let bgp = self.bgp.clone().unwrap_or_default();
        let services = bgp.services(&self.control);
        linux::FilterConfig {
            uplinks: uplinks
                .filter_map(|port| PortName::new(port).ok())
                .collect(),
            underlay: bgp.underlay.into_iter().collect(),
            services,
            clients: bgp.firewall_clients.into_iter().collect(),
        }
    }

    /// The configuration of the back-end for SONiC.
    #[must_use]
    pub fn sonic(&self) -> sonic::Config {
        let defaults = sonic::Config::default();
        let redis = self.redis.as_ref().map(|address| {
            if address.starts_with('/') {
                sonic::Address::Unix(address.into())
            } else {
                sonic::Address::Tcp(address.clone())
            }
        });
        sonic::Config {
            ports: self.all_ports(),
            redis: redis.unwrap_or(defaults.redis),
            frr: self.vtysh(&SONIC_VTYSH),
            ..defaults
        }
    }

    /// The way to FRR: the configured command, or `default`. `None` without BGP.
    fn vtysh(&self, default: &[&str]) -> Option<Vtysh> {
        let default = || default.iter().map(|word| (*word).to_owned()).collect();
        self.bgp.as_ref().map(|bgp| Vtysh {
            command: bgp.vtysh.clone().unwrap_or_else(default),
            ..Vtysh::default()
        })
    }

    fn all_ports(&self) -> Vec<String> {
        let ports = self.ports.iter().chain(&self.uplinks);
        ports.chain(self.spines()).cloned().collect()
    }

    /// `true` if a port faces machines.
    #[must_use]
    pub fn is_front(&self, port: &str) -> bool {
        !self.backs().any(|other| other == port)
    }

    /// Ports that lead neither to a machine nor to a firewall: uplinks and ports towards spines.
    pub(crate) fn backs(&self) -> impl Iterator<Item = &String> {
        self.uplinks.iter().chain(self.spines())
    }

    /// Ports towards spines.
    fn spines(&self) -> impl Iterator<Item = &String> {
        self.bgp.iter().flat_map(|bgp| &bgp.spines)
    }
}

#[cfg(test)]
mod tests {
    use proto_types::IpNet;

    use super::*;

    #[test]
    fn the_example_is_whole_and_asks_for_what_only_the_site_knows() {
        let text = include_str!("../metalmesh-core.example.toml");
        let lines = text.lines();
        let all: String = lines
            .map(|line| format!("{}\n", line.strip_prefix("#: ").unwrap_or(line)))
            .collect();
        let config = toml::from_str::<Config>(&all).unwrap();
        let bgp = config.bgp.unwrap();
        assert!(config.self_update.is_some());
        assert!(config.relay.is_some() && !bgp.underlay.is_empty());
        assert_eq!(config.ports, default_ports());
        let unset = toml::from_str::<Config>(text).unwrap_err();
        assert!(unset.to_string().contains("rack"), "{unset}");
    }

    #[test]
    fn drift_is_healed_unless_the_site_says_otherwise() {
        let base = "rack = \"r1\"\nmanagement_ip = \"10.0.0.1\"\nvtep = \"10.1.0.1\"\n";
        let policy = |line: &str| toml::from_str::<Config>(&format!("{base}{line}"));
        assert_eq!(policy("").unwrap().drift, DriftPolicy::Heal);
        assert_eq!(policy("drift = \"heal\"").unwrap().drift, DriftPolicy::Heal);
        let report = policy("drift = \"report\"").unwrap().drift;
        assert_eq!(report, DriftPolicy::Report);
        assert!(policy("drift = \"ignore\"").is_err());
    }

    #[test]
    fn the_site_says_what_firewalls_reach_and_which_ports_are_its_own() {
        let text = "rack = \"r1\"\nmanagement_ip = \"10.0.0.1\"\nvtep = \"10.1.0.1\"\n\
                    uplinks = [\"up1\"]\n[bgp]\nasn = 65001\nunderlay = [\"10.1.0.0/24\"]\n\
                    firewall_services = [\"10.1.0.2:4443\", \"[2001:db8::2]:4443\"]\n\
                    firewall_clients = [\"10.1.0.3/32\"]\n";
        let mut config = toml::from_str::<Config>(text).unwrap();
        let filter = config.linux().filter;
        assert!(filter.uplinks.contains("up1") && filter.uplinks.len() == 1);
        assert_eq!(filter.services.len(), 2);
        let prefix = |text: &str| text.parse::<IpNet>().unwrap();
        assert_eq!(filter.underlay, [prefix("10.1.0.0/24")].into());
        assert_eq!(filter.clients, [prefix("10.1.0.3/32")].into());
        // Control in the underlay needs no name there.
        let control: SocketAddr = "10.1.0.9:4443".parse().unwrap();
        config.control = vec![control];
        let services = config.linux().filter.services;
        assert!(services.len() == 3 && services.contains(&control));
    }

    #[test]
    fn frr_is_the_hosts_or_that_of_a_container() {
        let base = "rack = \"r1\"\nmanagement_ip = \"10.0.0.1\"\nvtep = \"10.1.0.1\"\n";
        let read = |lines: &str| toml::from_str::<Config>(&format!("{base}{lines}"));
        let config = read("").unwrap();
        assert!(config.linux().frr.is_none() && config.sonic().frr.is_none());
        let config = read("[bgp]\nasn = 65001").unwrap();
        assert_eq!(config.linux().frr.unwrap().command, ["vtysh"]);
        assert_eq!(config.sonic().frr.unwrap().command, SONIC_VTYSH);
        let other = "[bgp]\nasn = 65001\nvtysh = [\"vtysh\", \"--vty_socket\", \"/run/leaf\"]";
        let config = read(other).unwrap();
        let command = ["vtysh", "--vty_socket", "/run/leaf"];
        assert_eq!(config.linux().frr.unwrap().command, command);
        assert_eq!(config.sonic().frr.unwrap().command, command);
        for empty in ["[]", "[\"\"]"] {
            assert!(read(&format!("[bgp]\nasn = 65001\nvtysh = {empty}")).is_err());
        }
    }
}
