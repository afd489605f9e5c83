//! The authority itself: made once, kept in the replicated state.

use std::fmt;
use std::sync::Arc;

use control_authz::{Permit, SystemActor};
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

/// The certificate authority. Cheap to clone.
#[derive(Clone)]
pub struct Pki {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) trust_domain: String,
    root: CertificateDer<'static>,
    agents: Authority,
    nodes: Authority,
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
            }),
        })
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

    /// A secret of a node for one purpose, the same after each restart. Derived from the nodes'
    /// authority, so that nothing further has to be kept.
    pub fn node_secret(&self, node: &str, purpose: &str) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.inner.nodes.to_pkcs8());
        let tag = hmac::sign(&key, format!("metalmesh\0{purpose}\0{node}").as_bytes());
        let mut secret = [0u8; 32];
        secret.copy_from_slice(tag.as_ref());
        secret
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
        let command = Command::new(self.now(), actor, op);
        Ok(self.inner.store.propose(&permit, &command).await?)
    }
}

async fn make(store: &Store, seal: &SealingKey, trust_domain: &str) -> Result<(), PkiError> {
    let now = store.now();
    let root = Authority::root(trust_domain, now.ms())?;
    let agents = root.intermediate(Purpose::Agents, now.ms())?;
    let nodes = root.intermediate(Purpose::Nodes, now.ms())?;
    let permit = Permit::system(SystemActor::Bootstrap);
    // The root comes last: it marks the authority as complete.
    for (id, authority) in [(AGENTS, &agents), (NODES, &nodes), (ROOT, &root)] {
        let life = u64::try_from(CA_VALIDITY.as_millis()).unwrap_or(u64::MAX);
        let record = CaRecord {
            id: id.to_owned(),
            certificate: authority.certificate().to_vec(),
            sealed_key: seal.seal(id, &authority.to_pkcs8())?,
            created_at: now,
            not_after: Timestamp::from_ms(now.ms().saturating_add(life)),
            retired: false,
        };
        let command = Command::new(now, "metalmeshd", PutCa(record));
        store.propose(&permit, &command).await?;
    }
    info!(trust_domain, "certificate authority made");
    Ok(())
}

fn unseal(seal: &SealingKey, record: &CaRecord) -> Result<Authority, PkiError> {
    let key = seal.open(&record.id, &record.sealed_key)?;
    Ok(Authority::from_parts(&key, record.certificate.clone())?)
}
