//! The authority itself: made once, kept in the replicated state.

use std::fmt;
use std::sync::Arc;

use control_authz::{AuditedCall, Permit, SystemActor};
use control_state::{CaRecord, Command, Op, PutCa, Reply};
use control_store::Store;
use proto_identity::profile::{Authority, CA_VALIDITY, LEAF_VALIDITY, Purpose};
use proto_identity::{
    CertificateDer, CertificateRequest, Credential, Key, PeerIdentity, SpiffeId, Subject,
    sha256_hex,
};
use proto_types::Timestamp;
use ring::hmac;
use tracing::info;

use crate::{PkiError, SealingKey};

const ROOT: &str = "root";
const AGENTS: &str = "agents-1";
const NODES: &str = "nodes-1";
const PEERS: &str = "peers-1";

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
    root: CertificateDer<'static>,
    agents: Authority,
    nodes: Authority,
    peers: Authority,
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
            .read(|t| t.get::<CaRecord>(&ROOT.to_owned()).is_some())
            .await?;
        if !found {
            make(&store, seal, trust_domain).await?;
        }
        let load = |id: &str| {
            let id = id.to_owned();
            store.read_local(move |t| t.require::<CaRecord>(&id).cloned())
        };
        let root = CertificateDer::from(load(ROOT)??.certificate.clone());
        if load(PEERS)?.is_err() {
            // Made before nodes had peers.
            let root = unseal(seal, &*load(ROOT)??)?;
            let peers = root.intermediate(Purpose::Peers, store.now().ms())?;
            put(&store, seal, PEERS, &peers).await?;
        }
        let peers = unseal(seal, &*load(PEERS)??)?;
        let agents = unseal(seal, &*load(AGENTS)??)?;
        let nodes = unseal(seal, &*load(NODES)??)?;
        let trust_domain = trust_domain.to_owned();
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                trust_domain,
                root,
                agents,
                nodes,
                peers,
                seal: seal.clone(),
            }),
            call: None,
        })
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
        vec![self.inner.root.clone()]
    }

    /// SHA-256 of the roots, hex: what tickets pin.
    pub fn root_hashes(&self) -> Vec<String> {
        vec![sha256_hex(&self.inner.root)]
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
        let chain = self.sign(&id, &request)?.0;
        Ok(Credential {
            key,
            chain,
            roots: self.roots(),
        })
    }

    /// What control nodes show to each other, and trust in each other: nothing else.
    pub fn peer_credential(&self, node: u64) -> Result<PeerCredential, PkiError> {
        peer_credential(&self.inner.peers, self.trust_domain(), node, self.now())
    }

    /// A secret of a node for one purpose, the same after each restart. Derived from the nodes'
    /// authority, so that nothing further has to be kept.
    pub fn node_secret(&self, node: &str, purpose: &str) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.inner.nodes.to_pkcs8());
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

    pub(crate) fn peers(&self) -> &Authority {
        &self.inner.peers
    }

    /// The intermediate that agents' chains must contain.
    pub(crate) fn agents_certificate(&self) -> &CertificateDer<'static> {
        self.inner.agents.certificate()
    }

    /// A leaf with its chain, and what it says.
    pub(crate) fn sign(
        &self,
        id: &SpiffeId,
        request: &CertificateRequest,
    ) -> Result<(Vec<CertificateDer<'static>>, PeerIdentity), PkiError> {
        let authority = match Purpose::of(id.subject()) {
            Purpose::Agents => &self.inner.agents,
            Purpose::Nodes => &self.inner.nodes,
            Purpose::Peers => &self.inner.peers,
        };
        let leaf = authority.issue(id, request, self.now().ms(), LEAF_VALIDITY)?;
        let says = PeerIdentity::from_certificate(&leaf)?;
        Ok((vec![leaf, authority.certificate().clone()], says))
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

async fn make(store: &Store, seal: &SealingKey, trust_domain: &str) -> Result<(), PkiError> {
    let now = store.now().ms();
    let root = Authority::root(trust_domain, now)?;
    let agents = root.intermediate(Purpose::Agents, now)?;
    let nodes = root.intermediate(Purpose::Nodes, now)?;
    let peers = root.intermediate(Purpose::Peers, now)?;
    // The root comes last: it marks the authority as complete.
    for (id, authority) in [
        (AGENTS, &agents),
        (NODES, &nodes),
        (PEERS, &peers),
        (ROOT, &root),
    ] {
        put(store, seal, id, authority).await?;
    }
    info!(trust_domain, "certificate authority made");
    Ok(())
}

async fn put(
    store: &Store,
    seal: &SealingKey,
    id: &str,
    authority: &Authority,
) -> Result<(), PkiError> {
    let now = store.now();
    let life = u64::try_from(CA_VALIDITY.as_millis()).unwrap_or(u64::MAX);
    let record = CaRecord {
        id: id.to_owned(),
        certificate: authority.certificate().to_vec(),
        sealed_key: seal.seal(id, &authority.to_pkcs8())?,
        created_at: now,
        not_after: Timestamp::from_ms(now.ms().saturating_add(life)),
        retired: false,
    };
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
    /// The peers' intermediate: the only one that the other side may be of.
    pub anchor: CertificateDer<'static>,
}

/// The peer credential of `node` from what its own disk has, without asking anybody: so that
/// nodes that start together find each other. `None` while the state has no authority.
pub fn peer_credential_at_rest(
    store: &Store,
    seal: &SealingKey,
    trust_domain: &str,
) -> Result<Option<PeerCredential>, PkiError> {
    let record = store.read_local(|t| t.get::<CaRecord>(&PEERS.to_owned()).cloned())?;
    let Some(record) = record else {
        return Ok(None);
    };
    let peers = unseal(seal, &record)?;
    peer_credential(&peers, trust_domain, store.node_id(), store.now()).map(Some)
}

fn peer_credential(
    peers: &Authority,
    trust_domain: &str,
    node: u64,
    now: Timestamp,
) -> Result<PeerCredential, PkiError> {
    let key = Key::generate()?;
    let request = CertificateRequest::verify(&key.request()?)?;
    let id = SpiffeId::new(trust_domain, Subject::Peer { node })?;
    let leaf = peers.issue(&id, &request, now.ms(), LEAF_VALIDITY)?;
    let anchor = peers.certificate().clone();
    let own = Credential {
        key,
        chain: vec![leaf],
        roots: vec![anchor.clone()],
    };
    Ok(PeerCredential { own, anchor })
}

fn unseal(seal: &SealingKey, record: &CaRecord) -> Result<Authority, PkiError> {
    let key = seal.open(&record.id, &record.sealed_key)?;
    Ok(Authority::from_parts(&key, record.certificate.clone())?)
}
