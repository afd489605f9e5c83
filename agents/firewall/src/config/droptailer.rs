use std::path::PathBuf;

use serde::Deserialize;

/// The droptailer server that drops are sent to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DroptailerConfig {
    /// `true` if drops are sent.
    #[serde(default)]
    pub enabled: bool,
    /// Address of the server, with its port. Its certificate must be for the name `droptailer`.
    #[serde(default = "address")]
    pub address: String,
    /// File of the authority's certificates, PEM.
    #[serde(default = "ca_certificate")]
    pub ca_certificate: PathBuf,
    /// File of the agent's certificates, PEM.
    #[serde(default = "client_certificate")]
    pub client_certificate: PathBuf,
    /// File of the agent's key, PEM.
    #[serde(default = "client_key")]
    pub client_key: PathBuf,
}

impl Default for DroptailerConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            address: address(),
            ca_certificate: ca_certificate(),
            client_certificate: client_certificate(),
            client_key: client_key(),
        }
    }
}

/// The published client's address and files.
fn address() -> String {
    "droptailer:50051".to_owned()
}

fn ca_certificate() -> PathBuf {
    "/etc/droptailer-client/ca.crt".into()
}

fn client_certificate() -> PathBuf {
    "/etc/droptailer-client/tls.crt".into()
}

fn client_key() -> PathBuf {
    "/etc/droptailer-client/tls.key".into()
}
