//! The node that the answers describe, with a default for each field that they leave out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use proto_identity::invitation::NodeInvitation;

use super::answers::{BackupAnswers, SetupAnswers};
use crate::config::TlsFiles;

/// Default data directory: below one of root's, where the agents of the same host have theirs beside it.
/// The unit of the package has it as its state directory.
pub(super) const DATA_DIR: &str = "/var/lib/metalmesh/control";
/// Default name of a new cluster.
pub(super) const CLUSTER: &str = "metalmesh";
/// Default trust domain of a new cluster.
pub(super) const TRUST_DOMAIN: &str = "metalmesh.local";
/// Default ports: TCP of the API, UDP of the mesh, UDP of the peers.
pub(super) const API_PORT: u16 = 4443;
pub(super) const MESH_PORT: u16 = 4443;
pub(super) const PEERS_PORT: u16 = 4444;
/// Longest text of one answer, bytes.
const TEXT_BYTES_MAX: usize = 255;

/// The part of a node in its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodePart {
    /// Forms a cluster of this name.
    Forms { cluster: String, node_id: u64 },
    /// Joins the cluster that invited it.
    Joins,
}

/// A node that is to be configured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodePlan {
    pub(super) part: NodePart,
    pub(super) data_dir: PathBuf,
    pub(super) api_listen: SocketAddr,
    pub(super) tls: Option<TlsFiles>,
    pub(super) mesh_listen: SocketAddr,
    /// Empty means the address that the mesh is bound to.
    pub(super) mesh_addresses: Vec<String>,
    pub(super) trust_domain: String,
    pub(super) peers_listen: SocketAddr,
    /// Empty means the address that the node listens on for its peers.
    pub(super) peers_address: String,
    pub(super) backup: Option<BackupAnswers>,
}

impl NodePlan {
    /// The node that forms a cluster. `hostname` is the default of the host's name.
    ///
    /// # Errors
    /// An answer that no configuration can hold; the message names it.
    pub(super) fn forming(answers: SetupAnswers, hostname: &str) -> Result<Self> {
        let part = NodePart::Forms {
            cluster: answers
                .cluster
                .clone()
                .unwrap_or_else(|| CLUSTER.to_owned()),
            node_id: answers.node_id.unwrap_or(1),
        };
        let trust_domain = answers.trust_domain.clone();
        let trust_domain = trust_domain.unwrap_or_else(|| TRUST_DOMAIN.to_owned());
        Self::of(part, answers, trust_domain, hostname)
    }

    /// The node that an invitation is for.
    ///
    /// # Errors
    /// An answer that contradicts the invitation; the message names it.
    pub(super) fn joining(
        answers: SetupAnswers,
        invitation: &NodeInvitation,
        hostname: &str,
    ) -> Result<Self> {
        ensure!(
            answers.node_id.is_none(),
            "node_id: a node that joins gets its number from the cluster; leave node_id out"
        );
        agree("cluster", answers.cluster.as_ref(), &invitation.cluster)?;
        agree(
            "trust_domain",
            answers.trust_domain.as_ref(),
            &invitation.trust_domain,
        )?;
        let mut answers = answers;
        if !invitation.peer_address.is_empty() {
            let invited = invitation.peer_address.clone();
            agree("peers_address", answers.peers_address.as_ref(), &invited)?;
            let (host, port) = split(&invited)?;
            answers.host.get_or_insert_with(|| host.to_owned());
            answers.peers_listen.get_or_insert_with(|| any(port));
            answers.peers_address = Some(invited);
        }
        Self::of(
            NodePart::Joins,
            answers,
            invitation.trust_domain.clone(),
            hostname,
        )
    }

    fn of(
        part: NodePart,
        answers: SetupAnswers,
        trust_domain: String,
        hostname: &str,
    ) -> Result<Self> {
        let host = answers.host.unwrap_or_else(|| hostname.to_owned());
        let mesh_listen = answers.mesh_listen.unwrap_or_else(|| any(MESH_PORT));
        let peers_listen = answers.peers_listen.unwrap_or_else(|| any(PEERS_PORT));
        let mesh_addresses = match answers.mesh_addresses {
            addresses if addresses.is_empty() => announced(mesh_listen, &host),
            addresses => addresses,
        };
        let peers_address = match answers.peers_address {
            Some(address) => address,
            None => announced(peers_listen, &host).pop().unwrap_or_default(),
        };
        let tls = match (answers.api_certificate, answers.api_key) {
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            (None, None) => None,
            (Some(_), None) => bail!("api_key: is missing beside api_certificate; give both"),
            (None, Some(_)) => bail!("api_certificate: is missing beside api_key; give both"),
        };
        let plan = Self {
            part,
            data_dir: answers.data_dir.unwrap_or_else(|| DATA_DIR.into()),
            api_listen: answers
                .api_listen
                .unwrap_or_else(|| (Ipv4Addr::LOCALHOST, API_PORT).into()),
            tls,
            mesh_listen,
            mesh_addresses,
            trust_domain,
            peers_listen,
            peers_address,
            backup: answers.backup,
        };
        plan.check_texts()?;
        Ok(plan)
    }

    /// Refuses texts that would break out of their line in the file, and relative paths, which mean
    /// another directory for the service than for the person who answers.
    fn check_texts(&self) -> Result<()> {
        let texts = self
            .mesh_addresses
            .iter()
            .chain([&self.trust_domain, &self.peers_address]);
        let recipients = self.backup.iter().flat_map(|backup| &backup.recipients);
        for text in texts.chain(recipients).map(String::as_str) {
            check_text(text)?;
        }
        if let NodePart::Forms { cluster, .. } = &self.part {
            check_text(cluster)?;
        }
        let tls = self
            .tls
            .iter()
            .flat_map(|files| [&files.certificate, &files.key]);
        let backup = self.backup.iter().map(|backup| &backup.directory);
        for path in std::iter::once(&self.data_dir).chain(tls).chain(backup) {
            ensure!(
                path.is_absolute() && path.to_str().is_some(),
                "{}: is not an absolute path in UTF-8; begin it with /",
                path.display()
            );
            check_text(&path.to_string_lossy())?;
        }
        Ok(())
    }
}

fn check_text(text: &str) -> Result<()> {
    ensure!(
        text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control),
        "{text:?}: is longer than {TEXT_BYTES_MAX} bytes, or has control characters"
    );
    Ok(())
}

/// Refuses an answer that differs from the invitation.
fn agree(field: &str, answer: Option<&String>, invited: &str) -> Result<()> {
    let Some(answer) = answer.filter(|answer| *answer != invited) else {
        return Ok(());
    };
    bail!(
        "{field}: is {answer:?}, but the invitation is for {invited:?}; leave {field} out, or get \
           another invitation"
    )
}

/// Host and port of `HOST:PORT`, the host without brackets.
fn split(address: &str) -> Result<(&str, u16)> {
    let parts = address.rsplit_once(':');
    let parts = parts.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let Some((host, port)) = parts else {
        bail!("peers_address: {address:?} is not HOST:PORT");
    };
    Ok((host.trim_matches(['[', ']']), port))
}

/// All addresses of the host, with this port.
fn any(port: u16) -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, port).into()
}

/// The address at which others reach a listener: itself, or `host` with its port. None of both is
/// known for a free port.
fn announced(listen: SocketAddr, host: &str) -> Vec<String> {
    match (listen.port(), listen.ip().is_unspecified()) {
        (0, _) => Vec::new(),
        (port, true) => vec![with_port(host, port)],
        (_, false) => vec![listen.to_string()],
    }
}

/// `HOST:PORT`, with brackets around an IPv6 address.
pub(super) fn with_port(host: &str, port: u16) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(ip) => SocketAddr::new(IpAddr::V6(ip), port).to_string(),
        Err(_) => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use proto_identity::ticket::{JoinTicket, SECRET_LEN};
    use uuid::Uuid;

    use super::*;

    fn answers(text: &str) -> SetupAnswers {
        toml::from_str(text).unwrap()
    }

    fn invitation(peer_address: &str) -> NodeInvitation {
        NodeInvitation {
            ticket: JoinTicket {
                id: "node-2".into(),
                secret: [7; SECRET_LEN],
                roots: vec!["ab".repeat(32)],
                control: vec!["10.0.0.1:4443".into()],
                tpm: false,
            },
            cluster: "east".into(),
            cluster_id: Uuid::from_u128(5),
            trust_domain: "east.example".into(),
            peer_address: peer_address.into(),
        }
    }

    #[test]
    fn the_host_is_enough() {
        let plan = NodePlan::forming(answers(""), "control-1").unwrap();
        assert_eq!(plan.mesh_addresses, ["control-1:4443"]);
        assert_eq!(plan.peers_address, "control-1:4444");
        assert!(plan.api_listen.ip().is_loopback() && plan.tls.is_none());
        let own = "mesh_listen = '10.0.0.1:5000'\npeers_listen = '[2001:db8::1]:5001'";
        let plan = NodePlan::forming(answers(own), "control-1").unwrap();
        assert_eq!(plan.mesh_addresses, ["10.0.0.1:5000"]);
        assert_eq!(plan.peers_address, "[2001:db8::1]:5001");
        let plan = NodePlan::forming(answers("host = '2001:db8::1'"), "control-1").unwrap();
        assert_eq!(plan.peers_address, "[2001:db8::1]:4444");
    }

    #[test]
    fn an_invitation_answers_for_the_node_that_joins() {
        let invited = invitation("control-2:4555");
        let plan = NodePlan::joining(answers(""), &invited, "other").unwrap();
        assert_eq!(plan.part, NodePart::Joins);
        assert_eq!(plan.trust_domain, "east.example");
        assert_eq!(plan.peers_address, "control-2:4555");
        assert_eq!(plan.peers_listen.port(), 4555);
        assert_eq!(plan.mesh_addresses, ["control-2:4443"]);
        let plan = NodePlan::joining(answers(""), &invitation("[2001:db8::2]:4444"), "o").unwrap();
        assert_eq!(plan.mesh_addresses, ["[2001:db8::2]:4443"]);
        let plan = NodePlan::joining(answers(""), &invitation(""), "other").unwrap();
        assert_eq!(plan.peers_address, "other:4444");
        for (text, field) in [
            ("cluster = 'west'", "cluster"),
            ("node_id = 2", "node_id"),
            ("trust_domain = 'west.example'", "trust_domain"),
            ("peers_address = 'control-3:4555'", "peers_address"),
        ] {
            let error = NodePlan::joining(answers(text), &invited, "other").unwrap_err();
            assert!(error.to_string().starts_with(field), "{text}: {error}");
        }
    }

    #[test]
    fn bad_answers_are_named() {
        for (text, said) in [
            ("api_key = '/k'", "api_certificate"),
            ("api_certificate = '/c'", "api_key"),
            ("data_dir = 'relative'", "relative"),
            ("cluster = \"a\\nb\"", "control characters"),
        ] {
            let error = NodePlan::forming(answers(text), "control-1").unwrap_err();
            assert!(error.to_string().contains(said), "{text}: {error}");
        }
    }
}
