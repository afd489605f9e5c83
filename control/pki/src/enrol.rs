//! Issues certificates for tickets (enrolment) and for old certificates (renewal, resumption).

use std::sync::Arc;

use control_state::life::Nonce;
use control_state::{
    BootTicket, Cause, ErrorCode, IssueCertificate, JoinTicket, JoinedBy, Machine,
    RedeemBootTicket, RedeemJoinTicket, StateError,
};
use proto_identity::{
    CertificateDer, CertificateRequest, IdentityError, PeerIdentity, SpiffeId, Subject, sha256,
};
use proto_types::{AllocationId, BootTicketId, Digest, JoinTicketId, MacAddr, MachineId};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::UnixTime;
use tracing::info;

use crate::judge::{self, JoinVerdict, role_of};
use crate::record;
use crate::tpm::TpmAnswer;
use crate::{Pki, PkiError};

/// Enrolment request of a caller without a certificate.
#[derive(Clone)]
pub struct Enrol {
    /// Id of the ticket.
    pub ticket_id: String,
    /// Secret of the ticket.
    pub secret: Vec<u8>,
    /// Certificate request, DER.
    pub request: Vec<u8>,
    /// For boot tickets: the machine, and the MAC address from which it booted. `None` means a join
    /// ticket.
    pub machine: Option<(MachineId, MacAddr)>,
    /// For tickets bound to a TPM: the answer of the TPM.
    pub tpm: Option<TpmAnswer>,
    /// For machines: the nonce that they read from their BMC. Empty means that they read none.
    pub nonce: Vec<u8>,
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
    /// The roots that agents trust.
    pub roots: Vec<CertificateDer<'static>>,
    /// The identity in the leaf.
    pub identity: PeerIdentity,
}

impl Pki {
    /// Redeems a ticket and issues a certificate.
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
        let (ticket, verdict) = self
            .judge_ticket(&enrol.ticket_id, &secret, request)
            .await?;
        let tpm = self.judge_tpm(&ticket, request, enrol.tpm.as_ref())?;
        let id = ticket.id;
        let spiffe = SpiffeId::agent(
            self.trust_domain(),
            ticket.partition.as_str(),
            role_of(&ticket),
            &ticket.agent,
        )?;
        // The redemption is a command: of two agents that race with one ticket only one is applied.
        // A repeated request skips it, because its ticket is redeemed already.
        if verdict == JoinVerdict::Redeem {
            let key = request.fingerprint().parse().map_err(|_| unknown())?;
            let redeem = RedeemJoinTicket {
                id,
                secret,
                key,
                tpm,
            };
            self.propose(spiffe.to_string(), redeem).await?;
        }
        info!(agent = %spiffe, ticket = %id, "joined");
        let cause = Cause::Join(JoinedBy::JoinTicket(id));
        self.issue(&spiffe, request, None, cause).await
    }

    /// Finds the ticket that is presented and judges it.
    pub(crate) async fn judge_ticket(
        &self,
        ticket_id: &str,
        secret: &Digest,
        request: &CertificateRequest,
    ) -> Result<(Arc<JoinTicket>, JoinVerdict), PkiError> {
        let id: JoinTicketId = ticket_id.parse().map_err(|_| unknown())?;
        let key: Digest = request.fingerprint().parse().map_err(|_| unknown())?;
        let now = self.now();
        let (ticket, verdict) = self
            .inner
            .store
            .read(|tables| {
                let ticket = tables.get::<JoinTicket>(&id);
                let verdict = judge::join(ticket.map(AsRef::as_ref), secret, &key, now);
                (ticket.cloned(), verdict)
            })
            .await?;
        let verdict = verdict?;
        Ok((ticket.ok_or_else(unknown)?, verdict))
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
        let shown = (!enrol.nonce.is_empty()).then(|| Digest::sha256(sha256(&enrol.nonce)));
        let judge = |tables: &control_state::Tables| {
            let ticket = tables.get::<BootTicket>(&id).map(AsRef::as_ref);
            judge::boot(ticket, secret, machine, mac, now)?;
            let nonce = Nonce::of(tables, machine);
            nonce.judge(shown.as_ref(), now)?;
            Ok::<_, StateError>(nonce.is_demanded)
        };
        let is_demanded = self.inner.store.read(judge).await??;
        let subject = Subject::Machine {
            uuid: machine.uuid(),
        };
        let spiffe = SpiffeId::new(self.trust_domain(), subject)?;
        let redeem = RedeemBootTicket {
            id,
            secret: secret.clone(),
            machine,
            mac,
            nonce: shown.filter(|_| is_demanded),
        };
        self.propose(spiffe.to_string(), redeem).await?;
        info!(machine = %machine, ticket = %id, "machine enrolled");
        let by = if is_demanded {
            JoinedBy::BmcNonce(id)
        } else {
            JoinedBy::BootTicket(id)
        };
        let cause = Cause::Join(by);
        self.issue(&spiffe, request, None, cause).await
    }

    /// Issues a new certificate of the same identity, over a session with the old one.
    pub async fn renew(&self, peer: &PeerIdentity, request: &[u8]) -> Result<Issued, PkiError> {
        let request = verify(request)?;
        let allocation = self
            .inner
            .store
            .read(|tables| {
                let known = record::known(tables, peer, &peer.fingerprint);
                judge::stands(peer, known)?;
                Ok::<_, StateError>(allocation_of(peer, known.machine))
            })
            .await??;
        let cause = Cause::Renewal(fingerprint(peer)?);
        self.issue(&peer.id, &request, allocation, cause).await
    }

    /// Issues a new certificate in place of an expired one. The request must be of the same key, or
    /// of the key that replaced it.
    pub async fn resume(
        &self,
        chain: &[CertificateDer<'static>],
        request: &[u8],
    ) -> Result<Issued, PkiError> {
        let request = verify(request)?;
        let peer = self.verify_ended(chain)?;
        let now = self.now();
        let allocation = self
            .inner
            .store
            .read(|tables| {
                let known = record::known(tables, &peer, request.fingerprint());
                judge::may_resume(&peer, request.fingerprint(), known, now)?;
                Ok::<_, StateError>(allocation_of(&peer, known.machine))
            })
            .await??;
        info!(agent = %peer.id, "identity resumed");
        let cause = Cause::Resume(fingerprint(&peer)?);
        self.issue(&peer.id, &request, allocation, cause).await
    }

    /// Issues the certificate of an installed machine, bound to the project that it is allocated
    /// to.
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
        let cause = Cause::Join(JoinedBy::Allocation(allocation.id));
        self.issue(&spiffe, &request, Some(allocation.id), cause)
            .await
    }

    /// Signs a certificate, records it, and returns it only then.
    async fn issue(
        &self,
        id: &SpiffeId,
        request: &CertificateRequest,
        allocation: Option<AllocationId>,
        cause: Cause,
    ) -> Result<Issued, PkiError> {
        let signed = self.sign(id, request)?;
        // Only a recorded certificate can be revoked. One that was handed out first would be out of
        // reach if the node died before the record.
        let mut certificate = record::certificate(&signed.says, self.now(), allocation);
        certificate.authority = signed.generation;
        let op = IssueCertificate { certificate, cause };
        self.propose(id.to_string(), op).await?;
        Ok(Issued {
            chain: signed.chain,
            roots: signed.roots,
            identity: signed.says,
        })
    }

    /// Verifies a chain of ours as of the moment before it ended.
    fn verify_ended(&self, chain: &[CertificateDer<'static>]) -> Result<PeerIdentity, PkiError> {
        let leaf = chain
            .first()
            .ok_or(IdentityError::Certificate("empty chain"))?;
        let peer = PeerIdentity::from_certificate(leaf)?;
        let mut roots = RootCertStore::empty();
        let tls = |_: rustls::Error| {
            IdentityError::Certificate(
                "not of an authority that is trusted now; join anew: metalmesh join create",
            )
        };
        let authorities = self.in_force();
        for root in &authorities.roots {
            roots.add(root.clone()).map_err(tls)?;
        }
        let provider = proto_identity::tls::provider();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
            .build()
            .map_err(|e| IdentityError::Tls(e.to_string()))?;
        let before = std::time::Duration::from_millis(peer.not_after_ms.saturating_sub(1000));
        let at = UnixTime::since_unix_epoch(before);
        // Our own intermediates: a chain that names another is not looked at.
        let intermediates = authorities.agents_certificates();
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

fn fingerprint(peer: &PeerIdentity) -> Result<Digest, PkiError> {
    let key = peer.fingerprint.parse();
    Ok(key.map_err(|_| IdentityError::Certificate("its key has no fingerprint"))?)
}

fn unknown() -> StateError {
    StateError::new(ErrorCode::TicketUnknown, ErrorCode::TicketUnknown.title())
}

fn verify(request: &[u8]) -> Result<CertificateRequest, PkiError> {
    Ok(CertificateRequest::verify(request)?)
}
