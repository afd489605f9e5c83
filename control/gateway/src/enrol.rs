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

use crate::parts::GatewayParts;
use crate::status;

/// Longest chain that is looked at.
const CHAIN_LEN_MAX: usize = 4;

impl EnrolService for GatewayParts {
    async fn join(&self, peer: &Peer, request: JoinRequest) -> Result<Certificate, LinkStatus> {
        let (ticket, machine) = (&request.ticket_id, &request.machine_uuid);
        let about = format!("ticket {ticket} machine {machine}");
        let told = about.clone();
        let result = self
            .audited(&enrol_service::JOIN, peer, about, |shared| async move {
                shared.try_join(request).await
            })
            .await;
        result.inspect_err(|error| {
            info!(remote = %peer.remote(), about = told, %error, "join refused");
        })
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
        let chain = request.chain.into_iter().map(CertificateDer::from);
        let chain: Vec<_> = chain.take(CHAIN_LEN_MAX + 1).collect();
        let leaf = chain.first().map(PeerIdentity::from_certificate);
        let about = leaf.and_then(Result::ok).map(|leaf| leaf.id.to_string());
        let about = about.unwrap_or_default();
        let result = self
            .audited(&enrol_service::RESUME, peer, about, |shared| async move {
                if chain.len() > CHAIN_LEN_MAX {
                    return Err(LinkStatus::invalid_argument("the chain is too long"));
                }
                let resumed = shared.pki.resume(&chain, &request.csr).await;
                resumed.map(certificate).map_err(status::pki)
            })
            .await;
        result.inspect_err(|error| {
            info!(remote = %peer.remote(), %error, "resumption refused");
        })
    }
}

impl GatewayParts {
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
        // The event is a command of its own, outside the audited call: the audit record of the call
        // says that it was refused.
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

impl IdentityService for GatewayParts {
    async fn renew(&self, peer: &Peer, request: RenewRequest) -> Result<Certificate, LinkStatus> {
        let Some(identity) = peer.identity() else {
            return Err(LinkStatus::unauthenticated("a certificate is required"));
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
