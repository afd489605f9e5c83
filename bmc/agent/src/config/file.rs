//! The configuration file as TOML.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use agents_update::mesh_agent::SelfUpdateSection;
use bmc_redfish::Trust;
use proto_types::MachineId;
use serde::Deserialize;

use super::{ConfigError, Interface, Speech, certificates};

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) credentials: PathBuf,
    #[serde(default = "default_interval_s")]
    pub(super) interval_s: u64,
    #[serde(default)]
    pub(super) candidates: FileBmc,
    #[serde(default)]
    pub(super) bmc: Vec<FileBmc>,
    #[serde(default)]
    pub(super) self_update: Option<SelfUpdateSection>,
}

/// A `[[bmc]]` section, or `[candidates]`, which has no address.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileBmc {
    pub(super) address: Option<IpAddr>,
    pub(super) machine_uuid: Option<MachineId>,
    #[serde(default)]
    interface: Interface,
    redfish_port: Option<u16>,
    ipmi_port: Option<u16>,
    tls_sha256: Option<String>,
    tls_ca: Option<PathBuf>,
    #[serde(default)]
    plain_http: bool,
    #[serde(default)]
    efi: bool,
}

fn default_interval_s() -> u64 {
    60
}

impl FileBmc {
    /// Checks a section and returns the protocols and the trust of its BMC. `whose` names it in errors.
    pub(super) fn check(self, folder: &Path, whose: &str) -> Result<Speech, ConfigError> {
        let ways = [
            self.tls_sha256.is_some(),
            self.tls_ca.is_some(),
            self.plain_http,
        ];
        if ways.iter().filter(|way| **way).count() > 1 {
            let reason = format!("{whose}: only one of tls_sha256, tls_ca and plain_http");
            return Err(ConfigError::Wrong(reason));
        }
        let trust = match (&self.tls_sha256, &self.tls_ca, self.plain_http) {
            (Some(text), _, _) => {
                let pin = hex::decode(text.replace(':', ""))
                    .ok()
                    .and_then(|b| b.try_into().ok());
                Some(Trust::Pin(pin.ok_or_else(|| {
                    ConfigError::Wrong(format!("{whose}: tls_sha256 has 64 hexadecimal digits"))
                })?))
            }
            (None, Some(path), _) => Some(Trust::Roots(certificates(&folder.join(path))?)),
            (None, None, true) => Some(Trust::PlainHttp),
            (None, None, false) => None,
        };
        if self.interface == Interface::Redfish && trust.is_none() {
            let reason = format!("{whose}: redfish needs tls_sha256, tls_ca or plain_http");
            return Err(ConfigError::Wrong(reason));
        }
        let default_port = if self.plain_http { 80 } else { 443 };
        Ok(Speech {
            interface: self.interface,
            redfish_port: self.redfish_port.unwrap_or(default_port),
            ipmi_port: self.ipmi_port.unwrap_or(623),
            trust,
            efi: self.efi,
        })
    }
}
