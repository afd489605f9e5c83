//! First certificates, later ones, and those after a long absence.

use control_pki::{Enrol, Issued, TpmAnswer, TpmClaim};
use control_state::{BootTicket, EventKind, EventLog, MachineEvent};
use proto_identity::{CertificateDer, PeerIdentity};
use proto_link::{LinkStatus, Peer};
use proto_mesh::{
    Certificate, EnrolService, IdentityService, JoinRequest, RenewRequest, ResumeRequest,
    TpmChallenge, TpmChallengeRequest, enrol_service,
};
use proto_types::{MacAddr, MachineId};
use tracing::info;

use crate::serve::Shared;
use crate::status;

/// Longest chain that is looked at.
const CHAIN_LEN_MAX: usize = 4;

impl EnrolService for Shared {
    async fn join(&self, peer: &Peer, request: JoinRequest) -> Result<Certificate, LinkStatus> {
        let what = format!(
            "ticket {} machine {}",
            request.ticket_id, request.machine_uuid
        );
        let call = self.begin(&enrol_service::JOIN, peer, what.clone());
        let result = self.within(&call).try_join(request).await;
        if let Err(e) = &result {
            info!(remote = %peer.remote(), what, error = %e, "join refused");
        }
        self.finish(call, &result).await;
        result
    }

    async fn challenge_tpm(
        &self,
        peer: &Peer,
        request: TpmChallengeRequest,
    ) -> Result<TpmChallenge, LinkStatus> {
        let claim = TpmClaim {
            ticket_id: request.ticket_id,
            secret: request.secret,
            request: request.csr,
            endorsement: request.endorsement,
            attestation: request.attestation,
        };
        let made = self.pki.challenge_tpm(&claim).await.map_err(status::pki);
        let made = made.inspect_err(|e| {
            info!(remote = %peer.remote(), ticket = claim.ticket_id, error = %e, "no challenge");
        })?;
        Ok(TpmChallenge {
            credential: made.credential,
            encrypted_seed: made.encrypted_seed,
            sealed: made.sealed,
        })
    }

    async fn resume(&self, peer: &Peer, request: ResumeRequest) -> Result<Certificate, LinkStatus> {
        if request.chain.len() > CHAIN_LEN_MAX {
            return Err(LinkStatus::invalid_argument("the chain is too long"));
        }
        let chain: Vec<_> = request
            .chain
            .into_iter()
            .map(CertificateDer::from)
            .collect();
        let leaf = chain.first().map(PeerIdentity::from_certificate);
        let what = leaf.and_then(Result::ok);
        let what = what.map(|leaf| leaf.id.to_string()).unwrap_or_default();
        let call = self.begin(&enrol_service::RESUME, peer, what);
        let result = self.within(&call).pki.resume(&chain, &request.csr).await;
        let result = result.map(certificate).map_err(status::pki);
        if let Err(e) = &result {
            info!(remote = %peer.remote(), error = %e, "resumption refused");
        }
        self.finish(call, &result).await;
        result
    }
}

impl Shared {
    async fn try_join(&self, request: JoinRequest) -> Result<Certificate, LinkStatus> {
        let machine = if request.machine_uuid.is_empty() {
            None
        } else {
            let uuid: MachineId = request.machine_uuid.parse().map_err(status::parse)?;
            let mac: MacAddr = request.mac.parse().map_err(status::parse)?;
            Some((uuid, mac))
        };
        let enrol = Enrol {
            ticket_id: request.ticket_id,
            secret: request.secret,
            request: request.csr,
            machine,
            tpm: (!request.tpm_sealed.is_empty()).then_some(TpmAnswer {
                sealed: request.tpm_sealed,
                proof: request.tpm_proof,
            }),
            nonce: request.bmc_nonce,
        };
        let result = self
            .pki
            .enrol(&enrol)
            .await
            .map(certificate)
            .map_err(status::pki);
        if let (Err(e), Some((machine, _))) = (&result, machine) {
            self.tell_admin(machine, e).await;
        }
        result
    }

    /// A machine that is just booting and cannot join says why, so that an admin sees it. Only
    /// between its request for a boot and its first word, and once: a stranger who names the
    /// machine can do no more than that.
    async fn tell_admin(&self, machine: MachineId, refusal: &LinkStatus) {
        let booting = self.look(|t| {
            let asked = t
                .all::<BootTicket>()
                .any(|ticket| ticket.machine == machine);
            let log = t.get::<EventLog>(&machine);
            asked && log.is_some_and(|log| log.state == Some(EventKind::PxeBooting))
        });
        if refusal.is_transient() || !booting.unwrap_or(false) {
            return;
        }
        let time = self.store.now();
        let message = format!("join refused: {refusal}");
        let event = MachineEvent {
            id: machine,
            kind: EventKind::Crashed,
            message,
            time,
        };
        // That is not what the call was for: its record says that it was refused.
        let plain = Self {
            call: None,
            ..self.clone()
        };
        let nobody = Peer::new(None, ([0, 0, 0, 0], 0).into());
        if let Err(e) = plain.propose(&nobody, event).await {
            info!(machine = %machine, error = %e, "refused join not recorded");
        }
    }
}

impl IdentityService for Shared {
    async fn renew(&self, peer: &Peer, request: RenewRequest) -> Result<Certificate, LinkStatus> {
        let Some(identity) = peer.identity() else {
            return Err(LinkStatus::unauthenticated("a certificate is needed"));
        };
        self.pki
            .renew(identity, &request.csr)
            .await
            .map(certificate)
            .map_err(status::pki)
    }
}

pub(crate) fn certificate(issued: Issued) -> Certificate {
    Certificate {
        chain: issued.chain.iter().map(|der| der.to_vec()).collect(),
        roots: issued.roots.iter().map(|der| der.to_vec()).collect(),
        not_after_ms: issued.identity.not_after_ms,
        identity: issued.identity.id.to_string(),
    }
}
