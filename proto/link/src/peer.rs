//! The caller of a method.

use std::net::SocketAddr;

use proto_identity::{CallerKind, PeerIdentity, SpiffeId};

/// The caller of a method.
#[derive(Clone, Debug)]
pub struct Peer {
    identity: Option<PeerIdentity>,
    remote: SocketAddr,
}

impl Peer {
    /// A caller with this identity and address. Tests of services make one without a session.
    pub fn new(identity: Option<PeerIdentity>, remote: SocketAddr) -> Self {
        Self { identity, remote }
    }

    /// The identity and validity from its certificate. `None` means it has none.
    pub fn identity(&self) -> Option<&PeerIdentity> {
        self.identity.as_ref()
    }

    /// Its SPIFFE id. `None` means it has no certificate.
    pub fn id(&self) -> Option<&SpiffeId> {
        self.identity.as_ref().map(|i| &i.id)
    }

    /// Its kind, for the method table.
    pub fn kind(&self) -> CallerKind {
        self.id()
            .map_or(CallerKind::Anonymous, SpiffeId::caller_kind)
    }

    /// Its address when the session began.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Its name in logs.
    pub(crate) fn name(&self) -> String {
        self.id()
            .map_or_else(|| "anonymous".to_owned(), ToString::to_string)
    }
}
