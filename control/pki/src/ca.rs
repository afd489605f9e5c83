//! The authority itself: made once, kept in the replicated state.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use control_authz::{AuditedCall, Permit, SystemActor};
use control_state::{CaRecord, Change, Command, Kind, Op, PutCa, Reply};
use control_store::{Store, Subscription, WatchEvent};
use proto_identity::profile::{Authority, LEAF_VALIDITY, Purpose};
use proto_identity::{
    CertificateDer, CertificateRequest, Credential, IdentityError, Key, PeerIdentity, SpiffeId,
    Subject, sha256_hex,
};
use proto_types::Timestamp;
use ring::hmac;
use tracing::{info, warn};

use crate::generations::{Authorities, Generation, Role, record, rotation, unseal};
use crate::{PkiError, SealingKey};

/// The certificate authority. Cheap to clone.
#[derive(Clone)]
pub struct Pki {
    pub(crate) inner: Arc<Inner>,
    /// The call that it works for, where that is recorded.
    call: Option<Arc<AuditedCall>>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) trust_domain: String,
    /// As last read; see [`Pki::in_force`].
    current: RwLock<Arc<Authorities>>,
    /// The data key: what a node that joins gets.
    pub(crate) seal: SealingKey,
}

impl fmt::Debug for Pki {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pki")
            .field("trust_domain", &self.inner.trust_domain)
            .finish_non_exhaustive()
    }
}

impl Pki {
    /// Opens the authority in the state; makes it at the first start. `trust_domain` names it
    /// for good: certificates of another name are refused.
    pub async fn open(
        store: Store,
        seal: &SealingKey,
        trust_domain: &str,
    ) -> Result<Self, PkiError> {
        SpiffeId::new(trust_domain, Subject::Node { id: "x".to_owned() })?;
        let found = store
            .read(|t| t.get::<CaRecord>(&Role::Root.id(1)).is_some() || rotation(t).is_some())
            .await?;
        if !found {
            make(&store, seal, trust_domain).await?;
        }
        let old = store.read_local(|t| {
            let has_peers = t.get::<CaRecord>(&Role::Peers.id(1)).is_some();
            let is_first = rotation(t).is_none();
            (is_first && !has_peers).then(|| t.require::<CaRecord>(&Role::Root.id(1)).cloned())
        })?;
        if let Some(root) = old {
            // Made before nodes had peers.
            let root = unseal(seal, &*root?)?;
            let peers = root.intermediate(Purpose::Peers, store.now().ms())?;
            put(&store, seal, Role::Peers, &peers).await?;
        }
        let current = store.read_local(|t| Authorities::load(t, seal))??;
        let trust_domain = trust_domain.to_owned();
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                trust_domain,
                current: RwLock::new(Arc::new(current)),
                seal: seal.clone(),
            }),
            call: None,
        })
    }

    /// What signs and what is trusted now. A node that cannot read the state goes on with what it
    /// read last.
    pub(crate) fn in_force(&self) -> Arc<Authorities> {
        let last = Arc::clone(
            &self
                .inner
                .current
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let fresh = self.inner.store.read_local(|t| {
            (Authorities::stamp(t) != last.stamp).then(|| Authorities::load(t, &self.inner.seal))
        });
        match fresh.map_err(PkiError::from) {
            Ok(None) => last,
            Ok(Some(Ok(fresh))) => {
                let fresh = Arc::new(fresh);
                let current = self.inner.current.write();
                let mut current = current.unwrap_or_else(PoisonError::into_inner);
                current.clone_from(&fresh);
                fresh
            }
            Ok(Some(Err(e))) | Err(e) => {
                warn!(error = %e, "the certificate authority could not be read again");
                last
            }
        }
    }

    /// Follows whether another authority is in force.
    pub fn watch(&self) -> AuthorityWatch {
        AuthorityWatch(self.inner.store.watch())
    }

    /// The same authority for what this call changes: its record goes with the change.
    #[must_use]
    pub fn within(&self, call: Arc<AuditedCall>) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            call: Some(call),
        }
    }

    /// The trust domain.
    pub fn trust_domain(&self) -> &str {
        &self.inner.trust_domain
    }

    /// What agents trust.
    pub fn roots(&self) -> Vec<CertificateDer<'static>> {
        self.in_force().roots.clone()
    }

    /// SHA-256 of the roots, hex: what tickets pin.
    pub fn root_hashes(&self) -> Vec<String> {
        let roots = self.roots();
        roots.iter().map(|root| sha256_hex(root)).collect()
    }

    /// A fresh key and one-hour certificate for the mesh endpoint of a node. Nothing is recorded:
    /// the key stays in this process.
    pub fn node_credential(&self, node: &str) -> Result<Credential, PkiError> {
        let key = Key::generate()?;
        let request = CertificateRequest::verify(&key.request()?)?;
        let id = SpiffeId::new(
            self.trust_domain(),
            Subject::Node {
                id: node.to_owned(),
            },
        )?;
        let authorities = self.in_force();
        let leaf = authorities
            .nodes
            .issue(&id, &request, self.now().ms(), LEAF_VALIDITY)?;
        let mut chain = vec![leaf, authorities.nodes.certificate().clone()];
        chain.extend(authorities.nodes_crossed.clone());
        Ok(Credential {
            key,
            chain,
            roots: authorities.roots.clone(),
        })
    }

    /// What control nodes show to each other, and trust in each other: nothing else.
    pub fn peer_credential(&self, node: u64) -> Result<PeerCredential, PkiError> {
        let authorities = self.in_force();
        peer_credential(&authorities, self.trust_domain(), node, self.now())
    }

    /// A secret of a node for one purpose, the same after each restart until the authority is
    /// replaced. Derived from the nodes' authority, so that nothing further has to be kept.
    pub fn node_secret(&self, node: &str, purpose: &str) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.in_force().nodes.to_pkcs8());
        let tag = hmac::sign(&key, format!("metalmesh\0{purpose}\0{node}").as_bytes());
        let mut secret = [0u8; 32];
        secret.copy_from_slice(tag.as_ref());
        secret
    }

    /// Seals a secret that is to be kept in the state; it opens under the same `name` only, on
    /// every node of the cluster.
    pub fn seal(&self, name: &str, secret: &[u8]) -> Result<Vec<u8>, PkiError> {
        self.inner.seal.seal(name, secret)
    }

    /// Opens what [`Pki::seal`] made under the same name.
    pub fn unseal(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, PkiError> {
        self.inner.seal.open(name, sealed)
    }

    /// A leaf of an agent or machine with its chain, what it says, and the generation that signed.
    pub(crate) fn sign(
        &self,
        id: &SpiffeId,
        request: &CertificateRequest,
    ) -> Result<Signed, PkiError> {
        if Purpose::of(id.subject()) != Purpose::Agents {
            return Err(IdentityError::Certificate("not of an agent or machine").into());
        }
        let authorities = self.in_force();
        let by = authorities.agents()?;
        let leaf = by.issue(id, request, self.now().ms(), LEAF_VALIDITY)?;
        let says = PeerIdentity::from_certificate(&leaf)?;
        Ok(Signed {
            chain: vec![leaf, by.certificate().clone()],
            roots: authorities.roots.clone(),
            says,
            generation: authorities.generation,
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.store.now()
    }

    pub(crate) async fn propose(
        &self,
        actor: impl Into<String>,
        op: impl Into<Op>,
    ) -> Result<Reply, PkiError> {
        let permit = Permit::system(SystemActor::Pki);
        let permit = match &self.call {
            Some(call) => permit.for_call(Arc::clone(call)),
            None => permit,
        };
        let command = Command::new(self.now(), actor, op);
        Ok(self.inner.store.propose(&permit, &command).await?)
    }
}

/// A leaf that is not handed out yet.
pub(crate) struct Signed {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) roots: Vec<CertificateDer<'static>>,
    pub(crate) says: PeerIdentity,
    pub(crate) generation: u32,
}

/// See [`Pki::watch`].
#[derive(Debug)]
pub struct AuthorityWatch(Subscription<Change>);

impl AuthorityWatch {
    /// Waits for a change of what is in force; false when the store is shut down.
    pub async fn changed(&mut self) -> bool {
        loop {
            match self.0.next().await {
                Some(WatchEvent::Changed { changes, .. }) => {
                    if changes.iter().any(|it| it.kind == Kind::CaRotation) {
                        return true;
                    }
                }
                Some(WatchEvent::Resync) => return true,
                None => return false,
            }
        }
    }
}

async fn make(store: &Store, seal: &SealingKey, trust_domain: &str) -> Result<(), PkiError> {
    let now = store.now().ms();
    let made = Generation::make(trust_domain, now)?;
    // The root comes last: it marks the authority as complete.
    for (role, authority) in made.in_order() {
        put(store, seal, role, authority).await?;
    }
    info!(trust_domain, "certificate authority made");
    Ok(())
}

async fn put(
    store: &Store,
    seal: &SealingKey,
    role: Role,
    authority: &Authority,
) -> Result<(), PkiError> {
    let now = store.now();
    let record = record(seal, role, 1, authority, now)?;
    let permit = Permit::system(SystemActor::Bootstrap);
    let command = Command::new(now, "metalmeshd", PutCa(record));
    store.propose(&permit, &command).await?;
    Ok(())
}

/// What a control node shows to the others.
#[derive(Clone, Debug)]
pub struct PeerCredential {
    /// Its key and one-hour certificate.
    pub own: Credential,
    /// The peers' intermediates: the only ones that the other side may be of.
    pub anchors: Vec<CertificateDer<'static>>,
}

/// The peer credential of `node` from what its own disk has, without asking anybody: so that
/// nodes that start together find each other. `None` while the state has no authority.
pub fn peer_credential_at_rest(
    store: &Store,
    seal: &SealingKey,
    trust_domain: &str,
) -> Result<Option<PeerCredential>, PkiError> {
    let found = store.read_local(|t| {
        let generation = Authorities::newest(t);
        let peers = t.get::<CaRecord>(&Role::Peers.id(generation));
        peers.map(|_| Authorities::load(t, seal))
    })?;
    let Some(authorities) = found.transpose()? else {
        return Ok(None);
    };
    peer_credential(&authorities, trust_domain, store.node_id(), store.now()).map(Some)
}

fn peer_credential(
    authorities: &Authorities,
    trust_domain: &str,
    node: u64,
    now: Timestamp,
) -> Result<PeerCredential, PkiError> {
    let key = Key::generate()?;
    let request = CertificateRequest::verify(&key.request()?)?;
    let id = SpiffeId::new(trust_domain, Subject::Peer { node })?;
    let leaf = authorities
        .peers
        .issue(&id, &request, now.ms(), LEAF_VALIDITY)?;
    let anchors = authorities.anchors.clone();
    let own = Credential {
        key,
        chain: vec![leaf],
        roots: anchors.clone(),
    };
    Ok(PeerCredential { own, anchors })
}
