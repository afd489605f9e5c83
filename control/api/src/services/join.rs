//! One-time tickets by which agents join.

use std::time::Duration;

use control_front::listing::listing;
use control_pki::{NewJoinTicket, PkiError, tpm_of_certificate};
use control_state::{self as state, ErrorCode};
use proto_public::metalmesh::admin::v1::join_service_server::JoinService;
use proto_public::metalmesh::admin::v1::{
    AgentKind, JoinServiceCreateRequest, JoinServiceCreateResponse, JoinServiceListRequest,
    JoinServiceListResponse, JoinServiceRevokeRequest, JoinServiceRevokeResponse, JoinTicket,
};
use proto_types::Digest;
use tonic::{Request, Status};

use super::{Answer, Services, ok};
use crate::caller::Caller;
use crate::convert::{parse, time};
use crate::refusal::{invalid, of_state, of_store, refused};

/// Longest life of a ticket, minutes.
const MINUTES_MAX: u32 = 1440;

#[tonic::async_trait]
impl JoinService for Services {
    async fn create(
        &self,
        request: Request<JoinServiceCreateRequest>,
    ) -> Answer<JoinServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        if request.minutes > MINUTES_MAX {
            return Err(invalid("minutes", format!("must be at most {MINUTES_MAX}")));
        }
        let kind = match request.kind() {
            AgentKind::Core => state::AgentKind::Core,
            AgentKind::Bmc => state::AgentKind::Bmc,
            AgentKind::Pixie => state::AgentKind::Pixie,
            AgentKind::Unspecified => return Err(invalid("kind", "is unspecified")),
        };
        let tpm = match request.tpm_ek_certificate.as_slice() {
            [] => digest("tpm_ek_sha256", &request.tpm_ek_sha256, true)?,
            _ if !request.tpm_ek_sha256.is_empty() => {
                return Err(invalid("tpm_ek_certificate", "stands beside tpm_ek_sha256"));
            }
            file => Some(
                tpm_of_certificate(file).map_err(|error| invalid("tpm_ek_certificate", error))?,
            ),
        };
        let new = NewJoinTicket {
            kind,
            partition: parse("partition", &request.partition)?,
            agent: request.id,
            key: digest("key_sha256", &request.key_sha256, tpm.is_some())?,
            tpm,
            life: Duration::from_secs(u64::from(request.minutes) * 60),
            control: self.0.control_addresses(),
        };
        let made = self
            .0
            .pki
            .create_join_ticket(&caller.permit, &caller.user, new)
            .await;
        let (made, secret) = made.map_err(of_pki)?;
        ok(JoinServiceCreateResponse {
            ticket: Some(ticket(&made)),
            secret,
        })
    }

    async fn list(
        &self,
        request: Request<JoinServiceListRequest>,
    ) -> Answer<JoinServiceListResponse> {
        let caller = Caller::of(&request)?;
        let tickets = self.0.read(&caller, |tables| {
            Ok(tables.all::<state::JoinTicket>().cloned().collect())
        });
        listing(tickets.await?, ticket)
    }

    async fn revoke(
        &self,
        request: Request<JoinServiceRevokeRequest>,
    ) -> Answer<JoinServiceRevokeResponse> {
        let caller = Caller::of(&request)?;
        let id = parse("id", &request.get_ref().id)?;
        let revoked = self
            .0
            .pki
            .revoke_join_ticket(&caller.permit, &caller.user, id)
            .await;
        ok(JoinServiceRevokeResponse {
            ticket: Some(ticket(&*revoked.map_err(of_pki)?)),
        })
    }
}

/// A digest, which may be left out at times.
fn digest(field: &str, text: &str, may_be_none: bool) -> Result<Option<Digest>, Status> {
    if text.is_empty() && may_be_none {
        return Ok(None);
    }
    parse(field, text).map(Some)
}

pub(crate) fn ticket(it: &state::JoinTicket) -> JoinTicket {
    let kind = match it.kind {
        state::AgentKind::Core => AgentKind::Core,
        state::AgentKind::Bmc => AgentKind::Bmc,
        state::AgentKind::Pixie => AgentKind::Pixie,
    };
    JoinTicket {
        id: it.id.to_string(),
        kind: kind.into(),
        partition: it.partition.to_string(),
        agent: it.agent.clone(),
        key_sha256: it.key.as_ref().map(Digest::hex).unwrap_or_default(),
        created_at: time(it.created_at),
        expires_at: time(it.expires_at),
        redeemed_at: it.redeemed_at.and_then(time),
        revoked: it.revoked_at.is_some(),
        tpm_ek_sha256: it.tpm.as_ref().map(Digest::hex).unwrap_or_default(),
    }
}

fn of_pki(error: PkiError) -> Status {
    match error {
        PkiError::Store(error) => of_store(error),
        PkiError::Refused(error) => of_state(error),
        // The agent's name cannot be part of an identity.
        PkiError::Identity(error) => invalid("id", error),
        other => {
            tracing::error!(error = %other, "a join ticket could not be made");
            refused(ErrorCode::Internal, "the ticket could not be made")
        }
    }
}
