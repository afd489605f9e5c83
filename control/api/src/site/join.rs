//! One-time tickets by which agents join.

use std::time::Duration;

use control_convert::join::ticket;
use control_convert::parse;
use control_front::listing::listing;
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state, of_store, refused};
use control_pki::{NewJoinTicket, PkiError, tpm_of_certificate};
use control_state::{self as state, ErrorCode};
use proto_public::metalmesh::admin::v1::join_service_server::JoinService;
use proto_public::metalmesh::admin::v1::{
    AgentKind, JoinServiceCreateRequest, JoinServiceCreateResponse, JoinServiceListRequest,
    JoinServiceListResponse, JoinServiceRevokeRequest, JoinServiceRevokeResponse,
};
use proto_types::Digest;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

/// Longest life of a ticket, minutes. A longer one is refused.
const MINUTES_MAX: u32 = 1440;

#[tonic::async_trait]
impl JoinService for Services {
    async fn create(
        &self,
        request: Request<JoinServiceCreateRequest>,
    ) -> ApiResult<JoinServiceCreateResponse> {
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
            reenrols: request.reenrol,
            life: Duration::from_secs(u64::from(request.minutes) * 60),
            control: self.node.control_addresses(&self.gate.store),
        };
        let made = self
            .node
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
    ) -> ApiResult<JoinServiceListResponse> {
        let caller = Caller::of(&request)?;
        let tickets = self.gate.read(&caller, |tables| {
            Ok(tables.all::<state::JoinTicket>().cloned().collect())
        });
        listing(tickets.await?, ticket)
    }

    async fn revoke(
        &self,
        request: Request<JoinServiceRevokeRequest>,
    ) -> ApiResult<JoinServiceRevokeResponse> {
        let caller = Caller::of(&request)?;
        let id = parse("id", &request.get_ref().id)?;
        let revoked = self
            .node
            .pki
            .revoke_join_ticket(&caller.permit, &caller.user, id)
            .await;
        ok(JoinServiceRevokeResponse {
            ticket: Some(ticket(&*revoked.map_err(of_pki)?)),
        })
    }
}

/// Parses a digest. If `may_be_none`, an empty text means none.
fn digest(field: &str, text: &str, may_be_none: bool) -> Result<Option<Digest>, Status> {
    if text.is_empty() && may_be_none {
        return Ok(None);
    }
    parse(field, text).map(Some)
}

fn of_pki(error: PkiError) -> Status {
    match error {
        PkiError::Store(error) => of_store(error),
        PkiError::Refused(error) => of_state(error),
        // The agent's name is not valid in a SPIFFE id.
        PkiError::Identity(error) => invalid("id", error),
        other => {
            tracing::error!(error = %other, "a join ticket could not be made");
            refused(ErrorCode::Internal, "the ticket could not be made")
        }
    }
}
