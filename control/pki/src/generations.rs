//! Generations of the authority: which of them sign and which are trusted during a rotation.
//!
//! The intermediate of the nodes is cross-signed by both roots while both are trusted. So an agent
//! that knows only the old root can still connect to nodes, and learns the new root when it renews.
//! Agents get certificates of the new generation from the beginning, because nodes trust both.
//! Peers trust only each other's intermediate, so they trust both for a while before the first of
//! them presents a certificate of the new one.

use std::sync::Arc;

use control_state::{CaPhase, CaRecord, CaRotation, Tables};
use proto_identity::profile::{Authority, CA_VALIDITY, Purpose};
use proto_identity::{CertificateDer, IdentityError};
use proto_types::Timestamp;
use strum::IntoStaticStr;

use crate::validity::after;
use crate::{PkiError, SealingKey};

/// Purpose of a certificate authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum CaRole {
    Root,
    Agents,
    Nodes,
    Peers,
}

impl CaRole {
    /// Key of its record in a generation.
    pub(crate) fn id(self, generation: u32) -> String {
        let name: &str = self.into();
        match self {
            Self::Root if generation == 1 => name.to_owned(),
            _ => format!("{name}-{generation}"),
        }
    }
}

/// A complete new generation.
pub(crate) struct Generation {
    root: Authority,
    agents: Authority,
    /// Crossed by the root of the generation before.
    pub(crate) nodes: Authority,
    peers: Authority,
}

impl Generation {
    /// Creates the keys and certificates of a generation.
    pub(crate) fn make(trust_domain: &str, now_ms: u64) -> Result<Self, IdentityError> {
        let root = Authority::root(trust_domain, now_ms)?;
        Ok(Self {
            agents: root.intermediate(Purpose::Agents, now_ms)?,
            nodes: root.intermediate(Purpose::Nodes, now_ms)?,
            peers: root.intermediate(Purpose::Peers, now_ms)?,
            root,
        })
    }

    /// The authorities in the order in which they are stored: the root last.
    pub(crate) fn in_order(&self) -> [(CaRole, &Authority); 4] {
        [
            (CaRole::Agents, &self.agents),
            (CaRole::Nodes, &self.nodes),
            (CaRole::Peers, &self.peers),
            (CaRole::Root, &self.root),
        ]
    }
}

/// The authorities in force at one moment.
pub(crate) struct Authorities {
    /// Generation and phase of the rotation that was read with them.
    pub(crate) stamp: Option<(u32, CaPhase)>,
    /// The generation that signs for agents and nodes.
    pub(crate) generation: u32,
    /// The trusted roots, newest first.
    pub(crate) roots: Vec<CertificateDer<'static>>,
    /// The agents' authorities, newest first. The newest signs, all are trusted.
    agents: Vec<Authority>,
    /// Signs for nodes.
    pub(crate) nodes: Authority,
    /// Certificate of the same key by the old root; `None` outside a rotation.
    pub(crate) nodes_crossed: Option<CertificateDer<'static>>,
    /// Signs for peers.
    pub(crate) peers: Authority,
    /// The intermediates that peers trust.
    pub(crate) anchors: Vec<CertificateDer<'static>>,
}

/// The rotation of the authority: the current or the last one. `None` means that there was none.
pub(crate) fn rotation(tables: &Tables) -> Option<&Arc<CaRotation>> {
    tables.get::<CaRotation>(&CaRotation::ONE.to_owned())
}

impl Authorities {
    /// A value that changes whenever other authorities are in force.
    pub(crate) fn stamp(tables: &Tables) -> Option<(u32, CaPhase)> {
        rotation(tables).map(|rotation| (rotation.to, rotation.phase))
    }

    /// The newest generation.
    pub(crate) fn newest(tables: &Tables) -> u32 {
        rotation(tables).map_or(1, |rotation| rotation.to)
    }

    /// Reads and unseals the authorities in force.
    pub(crate) fn load(tables: &Tables, seal: &SealingKey) -> Result<Self, PkiError> {
        let rotation = rotation(tables).map(AsRef::as_ref);
        let newest = Self::newest(tables);
        let mut trusted = vec![newest];
        if let Some(open) = rotation.filter(|rotation| rotation.phase != CaPhase::Done) {
            trusted.push(open.from);
        }
        // In the first phase peers only learn to trust the new intermediate. A certificate of it
        // now would be refused by the nodes that have not applied the rotation yet.
        let signs_for_peers = match rotation {
            Some(rotation) if rotation.phase == CaPhase::Overlap => rotation.from,
            _ => newest,
        };
        let record = |role: CaRole, generation| tables.require::<CaRecord>(&role.id(generation));
        let open = |role, generation| unseal(seal, record(role, generation)?);
        let certificate = |role, generation| {
            let record = record(role, generation)?;
            Ok::<_, PkiError>(CertificateDer::from(record.certificate.clone()))
        };
        let all = |role| {
            let all = trusted
                .iter()
                .map(|generation| certificate(role, *generation));
            all.collect::<Result<Vec<_>, PkiError>>()
        };
        let crossed = &record(CaRole::Nodes, newest)?.crossed;
        let is_crossed = trusted.len() > 1 && !crossed.is_empty();
        Ok(Self {
            stamp: Self::stamp(tables),
            generation: newest,
            roots: all(CaRole::Root)?,
            agents: trusted
                .iter()
                .map(|generation| open(CaRole::Agents, *generation))
                .collect::<Result<_, _>>()?,
            nodes: open(CaRole::Nodes, newest)?,
            nodes_crossed: is_crossed.then(|| CertificateDer::from(crossed.clone())),
            peers: open(CaRole::Peers, signs_for_peers)?,
            anchors: all(CaRole::Peers)?,
        })
    }

    /// The authority that signs for agents and machines.
    pub(crate) fn agents(&self) -> Result<&Authority, PkiError> {
        let first = self.agents.first();
        Ok(first.ok_or(IdentityError::Certificate("no authority of agents"))?)
    }

    /// The intermediates that agents' chains may contain.
    pub(crate) fn agents_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.agents
            .iter()
            .map(|authority| authority.certificate().clone())
            .collect()
    }
}

/// The record of an authority, with its key sealed.
pub(crate) fn record(
    seal: &SealingKey,
    role: CaRole,
    generation: u32,
    authority: &Authority,
    now: Timestamp,
) -> Result<CaRecord, PkiError> {
    let id = role.id(generation);
    Ok(CaRecord {
        certificate: authority.certificate().to_vec(),
        sealed_key: seal.seal(&id, &authority.to_pkcs8())?,
        created_at: now,
        not_after: after(now, CA_VALIDITY),
        retired: false,
        generation,
        crossed: Vec::new(),
        id,
    })
}

/// Unseals the authority of a record.
pub(crate) fn unseal(seal: &SealingKey, record: &CaRecord) -> Result<Authority, PkiError> {
    let key = seal.open(&record.id, &record.sealed_key)?;
    Ok(Authority::from_parts(&key, record.certificate.clone())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_authorities_do_not_change() {
        let all = [CaRole::Root, CaRole::Agents, CaRole::Nodes, CaRole::Peers];
        let ids = all.map(|role| role.id(1));
        assert_eq!(ids, ["root", "agents-1", "nodes-1", "peers-1"]);
        assert_eq!(CaRole::Root.id(2), "root-2");
    }
}
