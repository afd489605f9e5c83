//! The configuration of a node: a TOML file, flags that override it, and the checks of both.

mod address;
mod api;
mod file;
mod mesh;
mod peers;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use control_duties::backup::Schedule;
use control_duties::export::ExportTarget;
use control_gate::CALLS_PER_MINUTE;
use control_store::KEEP_ENTRIES;
use control_vpn::headscale::HeadscaleSettings;

use self::file::ConfigFile;
use crate::ironic::IronicSection;
use crate::login::LoginConfig;
use crate::traces::TracesSection;

pub(crate) use self::api::TlsFiles;
pub(crate) use self::peers::PeerSettings;

/// Default TCP port of the API.
const API_PORT: u16 = 4443;
/// Default UDP port of the mesh.
const MESH_PORT: u16 = 4443;

/// Flags that override the file.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Overrides {
    /// Directory of the state.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// TCP address of the API.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) api_listen: Option<SocketAddr>,
    /// UDP address of the mesh.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) mesh_listen: Option<SocketAddr>,
    /// Address by which agents and machines reach the mesh, host:port; repeatable.
    #[arg(long = "mesh-address", value_name = "HOST:PORT")]
    pub(crate) mesh_addresses: Vec<String>,
}

/// The checked configuration of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// The data directory. `None` means a temporary one, with `--dev` only.
    pub(crate) data_dir: Option<PathBuf>,
    /// Name of the cluster. `None` means the name in the data directory, or "metalmesh" for a new one.
    pub(crate) cluster: Option<String>,
    /// Number of the node. `None` means the number in the data directory, or 1 for a new one.
    pub(crate) node_id: Option<u64>,
    /// The peers. `None` means a cluster of one node.
    pub(crate) peers: Option<PeerSettings>,
    /// Log entries between two snapshots.
    pub(crate) snapshot_every_entries: u64,
    /// Log entries kept behind a snapshot.
    pub(crate) keep_entries: u64,
    /// TCP address of the API.
    pub(crate) api_listen: SocketAddr,
    /// Issuer in API tokens.
    pub(crate) issuer: String,
    /// Rate limit per token, calls per minute. 0 means no limit.
    pub(crate) calls_per_minute: u32,
    /// Certificate of the API. `None` means HTTP without TLS.
    pub(crate) tls: Option<TlsFiles>,
    /// UDP address of the mesh.
    pub(crate) mesh_listen: SocketAddr,
    /// Addresses of the mesh in tickets. Empty means the address that the mesh is bound to.
    pub(crate) mesh_addresses: Vec<String>,
    /// Trust domain of the SPIFFE ids.
    pub(crate) trust_domain: String,
    /// File of the sealing key. `None` means `seal.key` in the data directory.
    pub(crate) sealing_key: Option<PathBuf>,
    /// Login of the provider's tenant.
    pub(crate) provider: String,
    /// Log-in of users.
    pub(crate) login: LoginConfig,
    /// Ironic's API.
    pub(crate) ironic: IronicSection,
    /// Schedule of backups. `None` means that none are scheduled.
    pub(crate) backup: Option<Schedule>,
    /// Targets of the audit trail.
    pub(crate) exports: Vec<ExportTarget>,
    /// The VPN. `None` means that there is none.
    pub(crate) vpn: Option<HeadscaleSettings>,
    /// TCP address of the metrics. `None` means that no metrics are served.
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Export of traces.
    pub(crate) traces: TracesSection,
    /// `true` for `--dev`.
    pub(crate) dev: bool,
}

impl Config {
    /// Reads the file, applies the flags and checks the result.
    pub(crate) fn resolve(path: Option<&Path>, dev: bool, flags: &Overrides) -> Result<Self> {
        let file = match path {
            None => ConfigFile::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the configuration {}", path.display()))?;
                toml::from_str(&text).with_context(|| format!("in {}", path.display()))?
            }
        };
        let place = path.map_or_else(String::new, |path| format!(" (in {})", path.display()));
        Self::merge(file, dev, flags).with_context(|| format!("bad configuration{place}"))
    }

    /// Reads the text of a configuration file that is not written yet, and checks it.
    pub(crate) fn from_text(text: &str, flags: &Overrides) -> Result<Self> {
        let file = toml::from_str(text).context("in the new configuration")?;
        Self::merge(file, false, flags).context("bad configuration")
    }

    fn merge(file: ConfigFile, dev: bool, flags: &Overrides) -> Result<Self> {
        let snapshot_every_entries = file.check_store()?;
        let host = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let data_dir = flags.data_dir.clone().or(file.data_dir);
        ensure!(
            data_dir.is_some() || dev,
            "data_dir: is missing; name the directory that keeps the state, for example \
             data_dir = \"/var/lib/metalmesh/control\", or try out with --dev"
        );
        let mesh_listen = flags
            .mesh_listen
            .or(file.mesh.listen)
            .unwrap_or_else(|| host(MESH_PORT));
        let mesh_addresses = if flags.mesh_addresses.is_empty() {
            file.mesh.addresses
        } else {
            flags.mesh_addresses.clone()
        };
        mesh::check_addresses(&mesh_addresses, mesh_listen)?;
        let trust_domain = file
            .mesh
            .trust_domain
            .unwrap_or_else(|| "metalmesh.local".to_owned());
        mesh::check_trust_domain(&trust_domain)?;
        Ok(Self {
            data_dir,
            issuer: file
                .api
                .issuer
                .unwrap_or_else(|| format!("https://{trust_domain}")),
            cluster: file.cluster,
            node_id: file.node_id,
            peers: peers::peers(file.peers)?,
            snapshot_every_entries,
            keep_entries: file.store.keep_entries.unwrap_or(KEEP_ENTRIES),
            api_listen: flags
                .api_listen
                .or(file.api.listen)
                .unwrap_or_else(|| host(API_PORT)),
            calls_per_minute: file.api.calls_per_minute.unwrap_or(CALLS_PER_MINUTE),
            tls: api::tls(file.api.tls_certificate, file.api.tls_key)?,
            mesh_listen,
            mesh_addresses,
            trust_domain,
            sealing_key: file.mesh.sealing_key,
            provider: file
                .tenancy
                .provider
                .unwrap_or_else(|| "metal-stack".to_owned()),
            login: file.login.check(file.oidc)?,
            ironic: file.ironic.check()?,
            backup: file.backup.check()?,
            exports: file.audit.check()?,
            vpn: file.vpn.check()?,
            metrics_listen: file.metrics.listen,
            traces: file.traces.check()?,
            dev,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str, dev: bool) -> Result<Config> {
        Config::merge(toml::from_str(text)?, dev, &Overrides::default())
    }

    #[test]
    fn the_example_is_good_and_whole() {
        let text = include_str!("../../metalmeshd.example.toml");
        let all: String = text
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line))
            .map(|line| format!("{line}\n"))
            .collect();
        let config = merged(&all, false).unwrap();
        assert!(config.tls.is_some() && config.sealing_key.is_some());
        assert!(merged(text, false).is_ok());
    }

    #[test]
    fn the_guide_names_every_listener() {
        let text = include_str!("../../metalmeshd.example.toml");
        let guide = include_str!("../../../../docs/operations/ports.md");
        let mut section = "";
        let mut listeners = Vec::new();
        for line in text.lines() {
            let line = line.strip_prefix("#: ").unwrap_or(line);
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']');
            }
            if line.starts_with("listen = ") {
                listeners.push(format!("`{section}.listen`"));
            }
        }
        assert_eq!(listeners.len(), 5, "{listeners:?}");
        for listener in listeners {
            let row = guide.lines().find(|line| line.contains(&listener));
            assert!(
                row.is_some_and(|row| row.starts_with("| metalmeshd |")),
                "{listener}"
            );
        }
    }

    #[test]
    fn mistakes_name_the_field_and_the_way_out() {
        for (text, field) in [
            ("", "data_dir"),
            ("data_dir = '/x'\nnode_id = 0", "node_id"),
            (
                "data_dir = '/x'\n[api]\ntls_key = '/k'",
                "api.tls_certificate",
            ),
            (
                "data_dir = '/x'\n[mesh]\nlisten = '0.0.0.0:4443'",
                "mesh.addresses",
            ),
            (
                "data_dir = '/x'\n[mesh]\naddresses = ['nowhere']",
                "mesh.addresses",
            ),
            (
                "data_dir = '/x'\n[mesh]\ntrust_domain = 'A/B'",
                "mesh.trust_domain",
            ),
            ("data_dir = '/x'\n[api]\nlisten = 'nonsense'", "listen"),
            ("data_dir = '/x'\n[peers]\njoin = true", "peers.listen"),
            (
                "data_dir = '/x'\n[peers]\nlisten = '0.0.0.0:4444'",
                "peers.address",
            ),
            (
                "data_dir = '/x'\n[peers]\nlisten = '10.0.0.1:4444'\naddress = 'x'",
                "peers.address",
            ),
            (
                "data_dir = '/x'\n[store]\nsnapshot_every_entries = 0",
                "store.snapshot_every_entries",
            ),
            ("data_dir = '/x'\n[login]\nhours = 25", "login.hours"),
            (
                "data_dir = '/x'\n[login]\nredirects = ['http://console.example/']",
                "login.redirects",
            ),
            ("data_dir = '/x'\n[oidc]\nclient_id = 'mesh'", "oidc.issuer"),
            (
                "data_dir = '/x'\n[oidc]\nissuer = 'http://id.example'",
                "oidc.issuer",
            ),
            (
                "data_dir = '/x'\n[oidc]\nissuer = 'https://id.example'",
                "oidc.url",
            ),
            (
                "data_dir = '/x'\n[oidc]\nissuer = 'https://id.example'\nurl = 'https://m.example'",
                "oidc.client_id",
            ),
            (
                "data_dir = '/x'\n[backup]\ndirectory = '/b'",
                "backup.recipients",
            ),
            (
                "data_dir = '/x'\n[backup]\nevery_minutes = 0",
                "backup.every_minutes",
            ),
            ("data_dir = '/x'\ncolour = 'red'", "colour"),
        ] {
            let error = format!("{:#}", merged(text, false).unwrap_err());
            assert!(error.contains(field), "{text:?}: {error}");
        }
    }

    #[test]
    fn dev_needs_nothing() {
        let config = merged("", true).unwrap();
        assert!(config.data_dir.is_none() && config.api_listen.ip().is_loopback());
        assert!(config.mesh_listen.ip().is_loopback());
    }
}
