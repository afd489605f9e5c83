//! Credentials of control nodes for each other.

use control_state::CaRecord;
use control_store::Store;
use proto_identity::profile::LEAF_VALIDITY;
use proto_identity::{CertificateDer, CertificateRequest, Credential, Key, SpiffeId, Subject};
use proto_types::Timestamp;

use crate::generations::{Authorities, CaRole};
use crate::{PkiError, SealingKey};

/// Certificate of a control node for its peers, and the anchors that it trusts for them.
#[derive(Clone, Debug)]
pub struct PeerCredential {
    /// Key and one-hour certificate of the node.
    pub own: Credential,
    /// The peers' intermediates. The certificate of a peer must be signed by one of them.
    pub anchors: Vec<CertificateDer<'static>>,
}

/// The peer credential of this node from its local state, without a quorum: nodes that start
/// together need it to form one. `None` means that the state has no authority yet.
pub fn peer_credential_at_rest(
    store: &Store,
    seal: &SealingKey,
    trust_domain: &str,
) -> Result<Option<PeerCredential>, PkiError> {
    let found = store.read_local(|tables| {
        let generation = Authorities::newest(tables);
        let peers = tables.get::<CaRecord>(&CaRole::Peers.id(generation));
        peers.map(|_| Authorities::load(tables, seal))
    })?;
    let Some(authorities) = found.transpose()? else {
        return Ok(None);
    };
    peer_credential(&authorities, trust_domain, store.node_id(), store.now()).map(Some)
}

/// Issues a peer credential for `node`.
pub(crate) fn peer_credential(
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
