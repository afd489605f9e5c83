//! What the operator wants: a TOML file, flags over it, and what must hold.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use control_duties::backup::{self, Schedule};
use control_duties::export;
use control_gate::CALLS_PER_MINUTE;
use control_store::{KEEP_ENTRIES, SNAPSHOT_EVERY_ENTRIES};
use control_vpn::headscale;
use serde::Deserialize;

use crate::login::{self, Login};
use crate::metrics;
use crate::traces;

/// Where the API listens when nobody says.
const API_PORT: u16 = 4443;
/// Where the mesh listens when nobody says.
const MESH_PORT: u16 = 4443;

/// Flags that go before the file.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Overrides {
    /// Where the state is kept.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// TCP address of the API.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) api_listen: Option<SocketAddr>,
    /// UDP address of the mesh.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) mesh_listen: Option<SocketAddr>,
    /// Where agents and machines reach the mesh, host:port; repeatable.
    #[arg(long = "mesh-address", value_name = "HOST:PORT")]
    pub(crate) mesh_addresses: Vec<String>,
}

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    data_dir: Option<PathBuf>,
    cluster: Option<String>,
    node_id: Option<u64>,
    api: ApiSection,
    mesh: MeshSection,
    peers: PeersSection,
    store: StoreSection,
    tenancy: TenancySection,
    login: login::Section,
    oidc: login::OidcSection,
    backup: backup::Section,
    audit: export::Section,
    vpn: headscale::Section,
    metrics: metrics::Section,
    traces: traces::Section,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ApiSection {
    listen: Option<SocketAddr>,
    issuer: Option<String>,
    calls_per_minute: Option<u32>,
    tls_certificate: Option<PathBuf>,
    tls_key: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MeshSection {
    listen: Option<SocketAddr>,
    addresses: Vec<String>,
    trust_domain: Option<String>,
    sealing_key: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PeersSection {
    listen: Option<SocketAddr>,
    address: Option<String>,
    join: bool,
    ticket: Option<PathBuf>,
    snapshot_bytes_per_second: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StoreSection {
    snapshot_every_entries: Option<u64>,
    keep_entries: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TenancySection {
    provider: Option<String>,
}

/// Files of the API's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The way to the other control nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peers {
    pub(crate) listen: SocketAddr,
    /// Where the others reach this node, host:port.
    pub(crate) address: String,
    /// An empty data directory waits to join a cluster instead of forming one.
    pub(crate) join: bool,
    /// Where the ticket is looked for; None: `node.ticket` in the data directory.
    pub(crate) ticket: Option<PathBuf>,
    pub(crate) snapshot_bytes_per_second: Option<u64>,
}

/// Everything a node needs, checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// None is a temporary one, with `--dev` only.
    pub(crate) data_dir: Option<PathBuf>,
    /// None: the one that the data directory has, else "metalmesh".
    pub(crate) cluster: Option<String>,
    /// None: the one that the data directory has, else 1.
    pub(crate) node_id: Option<u64>,
    /// None: a cluster of one node.
    pub(crate) peers: Option<Peers>,
    /// Log entries between two snapshots.
    pub(crate) snapshot_every_entries: u64,
    /// Log entries kept behind a snapshot.
    pub(crate) keep_entries: u64,
    pub(crate) api_listen: SocketAddr,
    pub(crate) issuer: String,
    /// Of each token; 0 is no bound.
    pub(crate) calls_per_minute: u32,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) mesh_listen: SocketAddr,
    /// Empty: the address that the mesh is bound to.
    pub(crate) mesh_addresses: Vec<String>,
    pub(crate) trust_domain: String,
    /// None: `seal.key` in the data directory.
    pub(crate) sealing_key: Option<PathBuf>,
    pub(crate) provider: String,
    /// How people log in.
    pub(crate) login: Login,
    /// Backups that are made without being asked for.
    pub(crate) backup: Option<Schedule>,
    /// Where the audit trail is sent.
    pub(crate) exports: Vec<export::Place>,
    /// None: there is no VPN.
    pub(crate) vpn: Option<headscale::Settings>,
    /// None: nobody is told how this node does.
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Where spans are sent, and of which calls.
    pub(crate) traces: traces::Section,
    pub(crate) dev: bool,
}

impl Config {
    /// Reads the file, puts the flags over it and checks the whole.
    pub(crate) fn resolve(path: Option<&Path>, dev: bool, flags: &Overrides) -> Result<Self> {
        let file = match path {
            None => File::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the configuration {}", path.display()))?;
                toml::from_str(&text).with_context(|| format!("in {}", path.display()))?
            }
        };
        let place = path.map_or_else(String::new, |path| format!(" (in {})", path.display()));
        Self::merge(file, dev, flags).with_context(|| format!("bad configuration{place}"))
    }

    fn merge(file: File, dev: bool, flags: &Overrides) -> Result<Self> {
        let snapshot_every_entries = file.check_store()?;
        let host = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let data_dir = flags.data_dir.clone().or(file.data_dir);
        ensure!(
            data_dir.is_some() || dev,
            "data_dir: is missing; name the directory that keeps the state, for example \
             data_dir = \"/var/lib/metalmesh\", or try out with --dev"
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
        check_addresses(&mesh_addresses, mesh_listen)?;
        let trust_domain = file
            .mesh
            .trust_domain
            .unwrap_or_else(|| "metalmesh.local".to_owned());
        check_trust_domain(&trust_domain)?;
        Ok(Self {
            data_dir,
            issuer: file
                .api
                .issuer
                .unwrap_or_else(|| format!("https://{trust_domain}")),
            cluster: file.cluster,
            node_id: file.node_id,
            peers: peers(file.peers)?,
            snapshot_every_entries,
            keep_entries: file.store.keep_entries.unwrap_or(KEEP_ENTRIES),
            api_listen: flags
                .api_listen
                .or(file.api.listen)
                .unwrap_or_else(|| host(API_PORT)),
            calls_per_minute: file.api.calls_per_minute.unwrap_or(CALLS_PER_MINUTE),
            tls: tls(file.api.tls_certificate, file.api.tls_key)?,
            mesh_listen,
            mesh_addresses,
            trust_domain,
            sealing_key: file.mesh.sealing_key,
            provider: file
                .tenancy
                .provider
                .unwrap_or_else(|| "metal-stack".to_owned()),
            login: file.login.check(file.oidc)?,
            backup: file.backup.check()?,
            exports: file.audit.check()?,
            vpn: file.vpn.check()?,
            metrics_listen: file.metrics.listen,
            traces: file.traces.check()?,
            dev,
        })
    }
}

impl File {
    /// What the store goes by, and after how many entries it takes a snapshot.
    fn check_store(&self) -> Result<u64> {
        let every = self.store.snapshot_every_entries;
        let every = every.unwrap_or(SNAPSHOT_EVERY_ENTRIES);
        ensure!(
            every > 0,
            "store.snapshot_every_entries: must be 1 or more; leave it out for the default"
        );
        ensure!(
            self.node_id != Some(0),
            "node_id: must be 1 or more; leave it out for the default"
        );
        ensure!(
            self.cluster.as_ref().is_none_or(|name| !name.is_empty()),
            "cluster: must not be empty; leave it out for the default"
        );
        Ok(every)
    }
}

fn peers(section: PeersSection) -> Result<Option<Peers>> {
    let Some(listen) = section.listen else {
        ensure!(
            section.address.is_none() && !section.join,
            "peers.listen: is missing; a node with peers needs an address of its own for them, for \
             example listen = \"0.0.0.0:4444\""
        );
        return Ok(None);
    };
    let address = match section.address {
        Some(address) => address,
        None => {
            ensure!(
                !listen.ip().is_unspecified() && listen.port() > 0,
                "peers.address: is missing; peers.listen is {listen}, which no node can dial. Name \
                 what they reach, for example address = \"control-1.example:4444\""
            );
            listen.to_string()
        }
    };
    check_address("peers.address", &address)?;
    ensure!(
        section.snapshot_bytes_per_second != Some(0),
        "peers.snapshot_bytes_per_second: must be 1 or more; leave it out for no limit"
    );
    Ok(Some(Peers {
        listen,
        address,
        join: section.join,
        ticket: section.ticket,
        snapshot_bytes_per_second: section.snapshot_bytes_per_second,
    }))
}

fn tls(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<TlsFiles>> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (Some(_), None) => bail!("api.tls_key: is missing beside api.tls_certificate; give both"),
        (None, Some(_)) => bail!("api.tls_certificate: is missing beside api.tls_key; give both"),
    }
}

/// What goes into tickets must be reachable from elsewhere.
fn check_addresses(addresses: &[String], listen: SocketAddr) -> Result<()> {
    if addresses.is_empty() && listen.ip().is_unspecified() {
        bail!(
            "mesh.addresses: is missing; mesh.listen is {listen}, which no agent can dial. Name \
             what they reach, for example addresses = [\"control.example:{}\"]",
            listen.port()
        );
    }
    addresses
        .iter()
        .try_for_each(|address| check_address("mesh.addresses", address))
}

fn check_address(field: &str, address: &str) -> Result<()> {
    let port = address
        .rsplit_once(':')
        .filter(|(host, _)| !host.is_empty());
    let port = port
        .and_then(|(_, port)| port.parse::<u16>().ok())
        .filter(|port| *port > 0);
    ensure!(
        port.is_some(),
        "{field}: {address:?} is not HOST:PORT; for example \"control.example:4443\""
    );
    Ok(())
}

fn check_trust_domain(domain: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    ensure!(
        !domain.is_empty() && domain.len() <= 255 && domain.chars().all(plain),
        "mesh.trust_domain: {domain:?} must be lower-case letters, digits, '-' and '.', for \
         example \"metalmesh.example\""
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str, dev: bool) -> Result<Config> {
        Config::merge(toml::from_str(text)?, dev, &Overrides::default())
    }

    #[test]
    fn the_example_is_good_and_whole() {
        let text = include_str!("../metalmeshd.example.toml");
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
