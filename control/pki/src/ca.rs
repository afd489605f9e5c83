//! The certificate authority: made once, kept in the replicated state.

use std::fmt;
use std::sync::Arc;

use control_authz::{AuditedCall, Permit, SystemActor};
use control_state::{CaRecord, Command, Op, PutCa, Reply};
use control_store::Store;
use parking_lot::RwLock;
use proto_identity::profile::{Authority, LEAF_VALIDITY, Purpose};
use proto_identity::{
    CertificateDer, CertificateRequest, Credential, IdentityError, Key, PeerIdentity, SpiffeId,
    Subject, sha256_hex,
};
use proto_types::Timestamp;
use ring::hmac;
use tracing::{info, warn};

use crate::authority_watch::AuthorityWatch;
use crate::generations::{Authorities, CaRole, Generation, record, rotation, unseal};
use crate::peer_credential::{PeerCredential, peer_credential};
use crate::{PkiError, SealingKey};

/// The certificate authority. Cheap to clone.
#[derive(Clone)]
pub struct Pki {
    pub(crate) inner: Arc<PkiInner>,
    /// The call on whose behalf it works. `Some` means that the call is recorded in the audit
    /// trail.
    call: Option<Arc<AuditedCall>>,
}

/// The state shared by all handles of the authority.
pub(crate) struct PkiInner {
    pub(crate) store: Store,
    pub(crate) trust_domain: String,
    /// The authorities as last read; see [`Pki::in_force`].
    current: RwLock<Arc<Authorities>>,
    /// The data key, which every node of the cluster has.
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
    /// Opens the authority in the state; creates it at the first start. `trust_domain` names it for
    /// good: certificates of another trust domain are refused.
    pub async fn open(
        store: Store,
        seal: &SealingKey,
        trust_domain: &str,
    ) -> Result<Self, PkiError> {
        SpiffeId::new(trust_domain, Subject::Node { id: "x".to_owned() })?;
        let found = store
            .read(|tables| {
                tables.get::<CaRecord>(&CaRole::Root.id(1)).is_some() || rotation(tables).is_some()
            })
            .await?;
        if !found {
            make(&store, seal, trust_domain).await?;
        }
        let old = store.read_local(|tables| {
            let has_peers = tables.get::<CaRecord>(&CaRole::Peers.id(1)).is_some();
            let is_first = rotation(tables).is_none();
            (is_first && !has_peers)
                .then(|| tables.require::<CaRecord>(&CaRole::Root.id(1)).cloned())
        })?;
        if let Some(root) = old {
            // This authority was made by a version without peers; its intermediate is added now.
            let root = unseal(seal, &*root?)?;
            let peers = root.intermediate(Purpose::Peers, store.now().ms())?;
            put(&store, seal, CaRole::Peers, &peers).await?;
        }
        let current = store.read_local(|tables| Authorities::load(tables, seal))??;
        let trust_domain = trust_domain.to_owned();
        Ok(Self {
            inner: Arc::new(PkiInner {
                store,
                trust_domain,
                current: RwLock::new(Arc::new(current)),
                seal: seal.clone(),
            }),
            call: None,
        })
    }

    /// The authorities that sign and are trusted now. A node that cannot read the state continues
    /// with those that it read last.
    pub(crate) fn in_force(&self) -> Arc<Authorities> {
        let last = Arc::clone(&self.inner.current.read());
        // Unsealing the keys is expensive, so the cached authorities are used while the rotation is
        // at the same phase.
        let fresh = self.inner.store.read_local(|tables| {
            (Authorities::stamp(tables) != last.stamp)
                .then(|| Authorities::load(tables, &self.inner.seal))
        });
        match fresh.map_err(PkiError::from) {
            Ok(None) => last,
            Ok(Some(Ok(fresh))) => {
                let fresh = Arc::new(fresh);
                self.inner.current.write().clone_from(&fresh);
                fresh
            }
            Ok(Some(Err(e))) | Err(e) => {
                warn!(error = %e, "the authority cannot be read, the last known one stays");
                last
            }
        }
    }

    /// Watches for changes of the authorities in force.
    pub fn watch(&self) -> AuthorityWatch {
        AuthorityWatch::new(self.inner.store.watch())
    }

    /// The same authority on behalf of a call: changes carry the audit record of the call.
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

    /// The roots that agents trust.
    pub fn roots(&self) -> Vec<CertificateDer<'static>> {
        self.in_force().roots.clone()
    }

    /// SHA-256 of the roots, hex. Tickets pin them.
    pub fn root_hashes(&self) -> Vec<String> {
        let roots = self.roots();
        roots.iter().map(|root| sha256_hex(root)).collect()
    }

    /// A new key and one-hour certificate for the mesh endpoint of a node. Not recorded: the key
    /// stays in this process.
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

    /// The certificate with which this node authenticates to other control nodes, and the anchors
    /// that it trusts for them.
    pub fn peer_credential(&self, node: u64) -> Result<PeerCredential, PkiError> {
        let authorities = self.in_force();
        peer_credential(&authorities, self.trust_domain(), node, self.now())
    }

    /// Derives a secret of a node for one purpose from the key of the nodes' authority
    /// (HMAC-SHA-256). It is the same after each restart, until the authority is replaced, and need
    /// not be stored.
    pub fn node_secret(&self, node: &str, purpose: &str) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.in_force().nodes.to_pkcs8());
        let tag = hmac::sign(&key, format!("metalmesh\0{purpose}\0{node}").as_bytes());
        let mut secret = [0u8; 32];
        secret.copy_from_slice(tag.as_ref());
        secret
    }

    /// Seals a secret for the state. It can be unsealed on every node of the cluster, under the
    /// same `name` only.
    pub fn seal(&self, name: &str, secret: &[u8]) -> Result<Vec<u8>, PkiError> {
        self.inner.seal.seal(name, secret)
    }

    /// Unseals a secret of [`Pki::seal`], which had the same name.
    pub fn unseal(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, PkiError> {
        self.inner.seal.open(name, sealed)
    }

    /// Issues a certificate for an agent or machine. The caller records it before it hands it out.
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

/// A certificate that is not handed out yet.
pub(crate) struct Signed {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) roots: Vec<CertificateDer<'static>>,
    /// The identity in the certificate.
    pub(crate) says: PeerIdentity,
    /// Generation of the authority that signed.
    pub(crate) generation: u32,
}

/// Creates the first generation of the authority.
async fn make(store: &Store, seal: &SealingKey, trust_domain: &str) -> Result<(), PkiError> {
    let now = store.now().ms();
    let made = Generation::make(trust_domain, now)?;
    // The root is stored last: it marks the authority as complete. A node that is killed before it
    // starts over and overwrites the intermediates.
    for (role, authority) in made.in_order() {
        put(store, seal, role, authority).await?;
    }
    info!(trust_domain, "certificate authority made");
    Ok(())
}

/// Stores an authority of the first generation.
async fn put(
    store: &Store,
    seal: &SealingKey,
    role: CaRole,
    authority: &Authority,
) -> Result<(), PkiError> {
    let now = store.now();
    let record = record(seal, role, 1, authority, now)?;
    let permit = Permit::system(SystemActor::Bootstrap);
    let command = Command::new(now, "metalmeshd", PutCa(record));
    store.propose(&permit, &command).await?;
    Ok(())
}
