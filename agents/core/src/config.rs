//! The agent's configuration file.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use agents_nos::linux;
use serde::Deserialize;

/// Why a configuration is not usable.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} is not a configuration", path.display())]
    Parse {
        path: PathBuf,
        #[source]
        source: Box<toml::de::Error>,
    },
}

/// What the agent is told about its switch. TOML.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rack that the switch stands in.
    pub rack: String,
    /// Room of the rack.
    #[serde(default)]
    pub room: String,
    /// Address of the management interface.
    pub management_ip: IpAddr,
    /// Underlay address that tunnels end at.
    pub vtep: IpAddr,
    /// Front-panel ports: names, or a prefix and `*`.
    #[serde(default = "default_ports")]
    pub ports: Vec<String>,
    /// Ports towards the provisioning services, in the provisioning segment for good. They are
    /// not registered: no machine hangs there.
    #[serde(default)]
    pub uplinks: Vec<String>,
    /// Tunnel ends of routers that serve every tenant segment.
    #[serde(default)]
    pub gateways: Vec<IpAddr>,
}

fn default_ports() -> Vec<String> {
    vec!["swp*".to_owned()]
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is not a configuration.
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

    /// What the Linux back-end needs of it.
    #[must_use]
    pub fn linux(&self) -> linux::Config {
        let ports = self.ports.iter().chain(&self.uplinks).cloned().collect();
        linux::Config {
            ports,
            vtep: self.vtep,
        }
    }

    /// Whether a port faces machines.
    #[must_use]
    pub fn is_front(&self, port: &str) -> bool {
        !self.uplinks.iter().any(|u| u == port)
    }
}
