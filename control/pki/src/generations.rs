//! The authority's generations: what signs, and what is trusted, while one follows the other.
//!
//! The intermediate of the nodes is certified by both roots while both are trusted, so that an
//! agent that knows only the old root goes on talking to nodes, and learns the new root when it
//! renews. Agents' certificates are of the new generation from the beginning: nodes trust both.
//! Peers trust each other's intermediate and nothing else, so they trust both for a while before
//! the first of them shows a certificate of the new one.

use std::sync::Arc;
use std::time::Duration;

use control_state::{BeginCaRotation, CaPhase, CaRecord, CaRotation, Tables};
use proto_identity::profile::{Authority, CA_VALIDITY, Purpose};
use proto_identity::{CertificateDer, IdentityError};
use proto_types::Timestamp;
use strum::IntoStaticStr;

use crate::tickets::after;
use crate::{Pki, PkiError, SealingKey};

/// What a certificate authority is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Role {
    Root,
    Agents,
    Nodes,
    Peers,
}

impl Role {
    /// The key of its record in a generation.
    pub(crate) fn id(self, generation: u32) -> String {
        let name: &str = self.into();
        match self {
            Self::Root if generation == 1 => name.to_owned(),
            _ => format!("{name}-{generation}"),
        }
    }
}

/// A whole generation, just made.
pub(crate) struct Generation {
    root: Authority,
    agents: Authority,
    nodes: Authority,
    peers: Authority,
}

impl Generation {
    pub(crate) fn make(trust_domain: &str, now_ms: u64) -> Result<Self, IdentityError> {
        let root = Authority::root(trust_domain, now_ms)?;
        Ok(Self {
            agents: root.intermediate(Purpose::Agents, now_ms)?,
            nodes: root.intermediate(Purpose::Nodes, now_ms)?,
            peers: root.intermediate(Purpose::Peers, now_ms)?,
            root,
        })
    }

    /// The root last.
    pub(crate) fn in_order(&self) -> [(Role, &Authority); 4] {
        [
            (Role::Agents, &self.agents),
            (Role::Nodes, &self.nodes),
            (Role::Peers, &self.peers),
            (Role::Root, &self.root),
        ]
    }
}

/// What is in force at one moment.
pub(crate) struct Authorities {
    /// Of the replacement that was read with it.
    pub(crate) stamp: Option<(u32, CaPhase)>,
    /// The generation that signs for agents and nodes.
    pub(crate) generation: u32,
    /// The trusted roots, newest first.
    pub(crate) roots: Vec<CertificateDer<'static>>,
    /// The agents' authorities, newest first: that one signs, all are trusted.
    agents: Vec<Authority>,
    /// Signs for nodes.
    pub(crate) nodes: Authority,
    /// The same certified by the old root.
    pub(crate) nodes_crossed: Option<CertificateDer<'static>>,
    /// Signs for peers.
    pub(crate) peers: Authority,
    /// What peers trust.
    pub(crate) anchors: Vec<CertificateDer<'static>>,
}

/// The replacement of the authority, the last one or the one under way.
pub(crate) fn rotation(tables: &Tables) -> Option<&Arc<CaRotation>> {
    tables.get::<CaRotation>(&CaRotation::ONE.to_owned())
}

impl Authorities {
    /// Changes whenever something else is in force.
    pub(crate) fn stamp(tables: &Tables) -> Option<(u32, CaPhase)> {
        rotation(tables).map(|it| (it.to, it.phase))
    }

    pub(crate) fn newest(tables: &Tables) -> u32 {
        rotation(tables).map_or(1, |it| it.to)
    }

    pub(crate) fn load(tables: &Tables, seal: &SealingKey) -> Result<Self, PkiError> {
        let rotation = rotation(tables).map(AsRef::as_ref);
        let newest = Self::newest(tables);
        let mut trusted = vec![newest];
        if let Some(open) = rotation.filter(|it| it.phase != CaPhase::Done) {
            trusted.push(open.from);
        }
        let signs_for_peers = match rotation {
            Some(it) if it.phase == CaPhase::Overlap => it.from,
            _ => newest,
        };
        let record = |role: Role, generation| tables.require::<CaRecord>(&role.id(generation));
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
        let crossed = &record(Role::Nodes, newest)?.crossed;
        let is_crossed = trusted.len() > 1 && !crossed.is_empty();
        Ok(Self {
            stamp: Self::stamp(tables),
            generation: newest,
            roots: all(Role::Root)?,
            agents: trusted
                .iter()
                .map(|generation| open(Role::Agents, *generation))
                .collect::<Result<_, _>>()?,
            nodes: open(Role::Nodes, newest)?,
            nodes_crossed: is_crossed.then(|| CertificateDer::from(crossed.clone())),
            peers: open(Role::Peers, signs_for_peers)?,
            anchors: all(Role::Peers)?,
        })
    }

    /// What signs for agents and machines.
    pub(crate) fn agents(&self) -> Result<&Authority, PkiError> {
        let first = self.agents.first();
        Ok(first.ok_or(IdentityError::Certificate("no authority of agents"))?)
    }

    /// The intermediates that agents' chains may contain.
    pub(crate) fn agents_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.agents
            .iter()
            .map(|it| it.certificate().clone())
            .collect()
    }
}

pub(crate) fn record(
    seal: &SealingKey,
    role: Role,
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

pub(crate) fn unseal(seal: &SealingKey, record: &CaRecord) -> Result<Authority, PkiError> {
    let key = seal.open(&record.id, &record.sealed_key)?;
    Ok(Authority::from_parts(&key, record.certificate.clone())?)
}

impl Pki {
    /// The next generation of the authority, and with it the order to replace the one of now:
    /// both are trusted until `overlap` is over. When it is forced, everybody is asked to renew
    /// now, and the old generation goes once they did, at the latest at the end of `overlap`.
    ///
    /// # Errors
    /// When the state cannot be read, or the authority of now not be unsealed.
    pub fn next_generation(
        &self,
        overlap: Duration,
        is_forced: bool,
    ) -> Result<BeginCaRotation, PkiError> {
        let now = self.now();
        let seal = &self.inner.seal;
        let (from, root) = self.inner.store.read_local(|t| {
            let from = Authorities::newest(t);
            let root = t.require::<CaRecord>(&Role::Root.id(from)).cloned();
            (from, root)
        })?;
        let old_root = unseal(seal, &*root?)?;
        let made = Generation::make(self.trust_domain(), now.ms())?;
        let crossed = old_root.cross(&made.nodes, Purpose::Nodes, now.ms())?;
        let mut authorities = Vec::new();
        for (role, authority) in made.in_order() {
            let mut record = record(seal, role, from.saturating_add(1), authority, now)?;
            if role == Role::Nodes {
                record.crossed = crossed.to_vec();
            }
            authorities.push(record);
        }
        Ok(BeginCaRotation {
            authorities,
            until: after(now, overlap),
            is_forced,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_authorities_do_not_change() {
        let ids = [Role::Root, Role::Agents, Role::Nodes, Role::Peers].map(|role| role.id(1));
        assert_eq!(ids, ["root", "agents-1", "nodes-1", "peers-1"]);
        assert_eq!(Role::Root.id(2), "root-2");
    }
}
