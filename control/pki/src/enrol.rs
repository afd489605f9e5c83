//! Tickets and old certificates in, new certificates out.

use control_state::{
    BootTicket, CertificateChoice, ErrorCode, JoinTicket, Machine, RedeemBootTicket,
    RedeemJoinTicket, RevokeCertificates, RevokeJoinTicket, StateError,
};
use proto_identity::{
    CertificateDer, CertificateRequest, IdentityError, PeerIdentity, SpiffeId, Subject, sha256,
};
use proto_types::{AllocationId, BootTicketId, Digest, JoinTicketId, MacAddr, MachineId};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::UnixTime;
use tracing::info;

use crate::judge::{self, Join, role_of};
use crate::record;
use crate::{Pki, PkiError};

/// What somebody without a certificate shows.
#[derive(Clone)]
pub struct Enrol {
    /// Public name of the ticket.
    pub ticket_id: String,
    /// Its secret.
    pub secret: Vec<u8>,
    /// Certificate request, DER.
    pub request: Vec<u8>,
    /// Of boot tickets: machine and the address that it booted from.
    pub machine: Option<(MachineId, MacAddr)>,
}

impl std::fmt::Debug for Enrol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enrol")
            .field("ticket_id", &self.ticket_id)
            .field("secret", &"<redacted>")
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}

/// A certificate that is on record and may be handed out.
#[derive(Clone, Debug)]
pub struct Issued {
    /// Leaf first, without the root.
    pub chain: Vec<CertificateDer<'static>>,
    /// What agents trust.
    pub roots: Vec<CertificateDer<'static>>,
    /// What the leaf says.
    pub identity: PeerIdentity,
}

impl Pki {
    /// Trades a ticket for a certificate.
    pub async fn enrol(&self, enrol: &Enrol) -> Result<Issued, PkiError> {
        let request = verify(&enrol.request)?;
        let secret = Digest::sha256(sha256(&enrol.secret));
        match enrol.machine {
            Some((machine, mac)) => {
                self.enrol_machine(enrol, &secret, machine, mac, &request)
                    .await
            }
            None => self.enrol_agent(enrol, secret, &request).await,
        }
    }

    async fn enrol_agent(
        &self,
        enrol: &Enrol,
        secret: Digest,
        request: &CertificateRequest,
    ) -> Result<Issued, PkiError> {
        let id: JoinTicketId = enrol.ticket_id.parse().map_err(|_| unknown())?;
        let key: Digest = request.fingerprint().parse().map_err(|_| unknown())?;
        let now = self.now();
        let (ticket, verdict) = self
            .inner
            .store
            .read(|t| {
                let ticket = t.get::<JoinTicket>(&id);
                let verdict = judge::join(ticket.map(AsRef::as_ref), &secret, &key, now);
                (ticket.cloned(), verdict)
            })
            .await?;
        let ticket = ticket.ok_or_else(unknown)?;
        let spiffe = SpiffeId::agent(
            self.trust_domain(),
            ticket.partition.as_str(),
            role_of(&ticket),
            &ticket.agent,
        )?;
        if verdict? == Join::Redeem {
            let redeem = RedeemJoinTicket { id, secret, key };
            self.propose(spiffe.to_string(), redeem).await?;
        }
        info!(agent = %spiffe, ticket = %id, "joined");
        self.issue(&spiffe, request, None).await
    }

    async fn enrol_machine(
        &self,
        enrol: &Enrol,
        secret: &Digest,
        machine: MachineId,
        mac: MacAddr,
        request: &CertificateRequest,
    ) -> Result<Issued, PkiError> {
        let id: BootTicketId = enrol.ticket_id.parse().map_err(|_| unknown())?;
        let now = self.now();
        let judge = |t: &control_state::Tables| {
            let ticket = t.get::<BootTicket>(&id).map(AsRef::as_ref);
            judge::boot(ticket, secret, machine, mac, now)
        };
        self.inner.store.read(judge).await??;
        let subject = Subject::Machine {
            uuid: machine.uuid(),
        };
        let spiffe = SpiffeId::new(self.trust_domain(), subject)?;
        let redeem = RedeemBootTicket {
            id,
            secret: secret.clone(),
            machine,
            mac,
        };
        self.propose(spiffe.to_string(), redeem).await?;
        info!(machine = %machine, ticket = %id, "machine enrolled");
        self.issue(&spiffe, request, None).await
    }

    /// A fresh certificate of the same identity, over a session with the old one.
    pub async fn renew(&self, peer: &PeerIdentity, request: &[u8]) -> Result<Issued, PkiError> {
        let request = verify(request)?;
        let allocation = self
            .inner
            .store
            .read(|t| {
                let known = record::known(t, peer);
                judge::stands(peer, known)?;
                Ok::<_, StateError>(allocation_of(peer, known.machine))
            })
            .await??;
        self.issue(&peer.id, &request, allocation).await
    }

    /// A fresh certificate in place of one that has ended. The request must be of the same key.
    pub async fn resume(
        &self,
        chain: &[CertificateDer<'static>],
        request: &[u8],
    ) -> Result<Issued, PkiError> {
        let request = verify(request)?;
        let peer = self.verify_ended(chain)?;
        if peer.fingerprint != request.fingerprint() {
            return Err(StateError::new(
                ErrorCode::TicketForeign,
                "the request is of another key than the certificate",
            )
            .into());
        }
        let now = self.now();
        let allocation = self
            .inner
            .store
            .read(|t| {
                let known = record::known(t, &peer);
                judge::may_resume(&peer, known, now)?;
                Ok::<_, StateError>(allocation_of(&peer, known.machine))
            })
            .await??;
        info!(agent = %peer.id, "identity resumed");
        self.issue(&peer.id, &request, allocation).await
    }

    /// The certificate of an installed machine, bound to the project that has it.
    pub async fn issue_project_machine(
        &self,
        machine: &Machine,
        request: &[u8],
    ) -> Result<Issued, PkiError> {
        let request = verify(request)?;
        let allocation = machine.allocation.as_ref().ok_or_else(|| {
            StateError::new(
                ErrorCode::MachineNotAllocated,
                "the machine is not allocated",
            )
        })?;
        let project = allocation.project.to_string();
        let subject = Subject::ProjectMachine {
            project,
            uuid: machine.id.uuid(),
        };
        let spiffe = SpiffeId::new(self.trust_domain(), subject)?;
        self.issue(&spiffe, &request, Some(allocation.id)).await
    }

    /// Revokes an identity: open sessions end, renewal and resumption are refused. Of agents the
    /// tickets that they joined by are revoked first, so that nothing is left to resume from.
    pub async fn revoke(
        &self,
        actor: &str,
        identity: &SpiffeId,
        reason: &str,
    ) -> Result<(), PkiError> {
        let tickets = self
            .inner
            .store
            .read(|t| {
                let Subject::Agent {
                    partition,
                    role,
                    id,
                } = identity.subject()
                else {
                    return Vec::new();
                };
                t.all::<JoinTicket>()
                    .filter(|k| k.partition.as_str() == partition && k.agent == *id)
                    .filter(|k| role_of(k) == *role && k.revoked_at.is_none())
                    .map(|k| k.id)
                    .collect()
            })
            .await?;
        for id in tickets {
            self.propose(actor, RevokeJoinTicket { id }).await?;
        }
        let choice = CertificateChoice::Identity(identity.to_string());
        self.propose(
            actor,
            RevokeCertificates {
                choice,
                reason: reason.to_owned(),
            },
        )
        .await?;
        Ok(())
    }

    /// Signs, records, and only then hands out.
    async fn issue(
        &self,
        id: &SpiffeId,
        request: &CertificateRequest,
        allocation: Option<AllocationId>,
    ) -> Result<Issued, PkiError> {
        let (chain, identity) = self.sign(id, request)?;
        let record = record::certificate(&identity, self.now(), allocation);
        self.propose(id.to_string(), record).await?;
        Ok(Issued {
            chain,
            roots: self.roots(),
            identity,
        })
    }

    /// Verifies a chain of ours as of the moment before it ended.
    fn verify_ended(&self, chain: &[CertificateDer<'static>]) -> Result<PeerIdentity, PkiError> {
        let leaf = chain
            .first()
            .ok_or(IdentityError::Certificate("empty chain"))?;
        let peer = PeerIdentity::from_certificate(leaf)?;
        let mut roots = RootCertStore::empty();
        let tls = |_: rustls::Error| IdentityError::Certificate("not of this authority");
        for root in self.roots() {
            roots.add(root).map_err(tls)?;
        }
        let provider = proto_identity::tls::provider();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
            .build()
            .map_err(|e| IdentityError::Tls(e.to_string()))?;
        let before = std::time::Duration::from_millis(peer.not_after_ms.saturating_sub(1000));
        let at = UnixTime::since_unix_epoch(before);
        // Our own intermediate: a chain that names another is not looked at.
        let intermediates = [self.agents_certificate().clone()];
        verifier
            .verify_client_cert(leaf, &intermediates, at)
            .map_err(tls)?;
        if peer.id.trust_domain() != self.trust_domain() {
            return Err(IdentityError::Certificate("of another trust domain").into());
        }
        Ok(peer)
    }
}

fn allocation_of(peer: &PeerIdentity, machine: Option<&Machine>) -> Option<AllocationId> {
    match peer.id.subject() {
        Subject::ProjectMachine { .. } => machine?.allocation.as_ref().map(|a| a.id),
        _ => None,
    }
}

fn unknown() -> StateError {
    StateError::new(ErrorCode::TicketUnknown, ErrorCode::TicketUnknown.title())
}

fn verify(request: &[u8]) -> Result<CertificateRequest, PkiError> {
    Ok(CertificateRequest::verify(request)?)
}
