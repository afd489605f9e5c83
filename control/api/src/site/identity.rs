//! Identities of agents and machines: who has certificates, and who is to lose them.

use control_convert::time;
use control_front::listing::{EncodedItems, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state};
use control_state::{self as state, RevokeIdentity, RotateIdentity, Tables};
use proto_identity::{AgentRole, SpiffeId, Subject};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::identity_service_server::IdentityService;
use proto_public::metalmesh::admin::v1::{Identity, IdentityKind, JoinMethod};
use proto_types::MachineId;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

/// Longest reason of a revocation, characters.
const REASON_LEN_MAX: usize = 256;
/// Identities whose sessions are asked for in one question to the leader, at most. With more there
/// are several questions: one for all would be longer than a message between control nodes.
const ASKED_AT_ONCE: usize = 1_000;

#[tonic::async_trait]
impl IdentityService for Services {
    async fn list(
        &self,
        request: Request<mesh::IdentityServiceListRequest>,
    ) -> ApiResult<mesh::IdentityServiceListResponse> {
        let caller = Caller::of(&request)?;
        let wanted = request.into_inner();
        let now = self.gate.now();
        let found = self.gate.read(&caller, |tables| {
            let shown = tables
                .all::<state::Identity>()
                .filter(|identity| wanted.all || now < identity.not_after)
                .map(|identity| self.shown_identity(tables, identity))
                .filter(|identity| fits(identity, &wanted));
            Ok(shown.collect::<Vec<_>>())
        });
        let mut found = found.await?;
        self.add_sessions(&mut found).await;
        listing_encoded(found.into_iter().collect::<EncodedItems>())
    }

    async fn get(
        &self,
        request: Request<mesh::IdentityServiceGetRequest>,
    ) -> ApiResult<mesh::IdentityServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id = self.identity_id(&request.get_ref().id)?;
        let found = self.gate.read(&caller, |tables| {
            let found = tables.require::<state::Identity>(&id)?;
            Ok(self.shown_identity(tables, found))
        });
        let mut found = found.await?;
        self.add_sessions(std::slice::from_mut(&mut found)).await;
        ok(mesh::IdentityServiceGetResponse {
            identity: Some(found),
        })
    }

    async fn revoke(
        &self,
        request: Request<mesh::IdentityServiceRevokeRequest>,
    ) -> ApiResult<mesh::IdentityServiceRevokeResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let identity = self.identity_id(&request.id)?;
        if request.reason.chars().count() > REASON_LEN_MAX {
            let rule = format!("must have at most {REASON_LEN_MAX} characters");
            return Err(invalid("reason", rule));
        }
        let reason = if request.reason.is_empty() {
            format!("revoked by {}", caller.user)
        } else {
            request.reason
        };
        let reply = self
            .gate
            .propose(&caller, RevokeIdentity { identity, reason });
        let identity = self.reply(reply.await?).await?;
        ok(mesh::IdentityServiceRevokeResponse {
            identity: Some(identity),
        })
    }

    async fn rotate(
        &self,
        request: Request<mesh::IdentityServiceRotateRequest>,
    ) -> ApiResult<mesh::IdentityServiceRotateResponse> {
        let caller = Caller::of(&request)?;
        let identity = self.identity_id(&request.get_ref().id)?;
        let reply = self
            .gate
            .propose(&caller, RotateIdentity { identity })
            .await?;
        let identity = self.reply(reply).await?;
        ok(mesh::IdentityServiceRotateResponse {
            identity: Some(identity),
        })
    }
}

impl Services {
    /// The whole SPIFFE id of a text that may lack the trust domain.
    fn identity_id(&self, text: &str) -> Result<String, Status> {
        let whole = if text.starts_with("spiffe://") {
            text.to_owned()
        } else {
            let domain = self.node.pki.trust_domain();
            format!("spiffe://{domain}/{}", text.trim_start_matches('/'))
        };
        let id: SpiffeId = whole.parse().map_err(|e| invalid("id", e))?;
        Ok(id.to_string())
    }

    async fn reply(&self, reply: state::Reply) -> Result<Identity, Status> {
        let identity = reply.identity().map_err(of_state)?;
        let shown = self
            .gate
            .read_latest(|tables| Ok(self.shown_identity(tables, &identity)));
        let mut shown = shown.await?;
        self.add_sessions(std::slice::from_mut(&mut shown)).await;
        Ok(shown)
    }

    /// Adds the sessions of the bearers. Only the leader has them, and every node asks it: two nodes
    /// would otherwise answer differently. Nothing is added while no leader answers.
    async fn add_sessions(&self, shown: &mut [Identity]) {
        for part in shown.chunks_mut(ASKED_AT_ONCE) {
            let (mut asked, mut ids) = (Vec::new(), Vec::new());
            for identity in part {
                if let Ok(id) = identity.id.parse::<SpiffeId>() {
                    ids.push(id);
                    asked.push(identity);
                }
            }
            let sessions = self.node.presence.agents(&ids).await;
            let Ok(Some(sessions)) = sessions else { return };
            for (identity, has_session) in asked.into_iter().zip(sessions) {
                identity.connected = Some(has_session);
                if has_session {
                    identity.last_seen = time(self.gate.now());
                }
            }
        }
    }

    /// An identity for the wire, without the session of its bearer.
    fn shown_identity(&self, tables: &Tables, identity: &state::Identity) -> Identity {
        let id: Option<SpiffeId> = identity.id.parse().ok();
        let subject = id.as_ref().map(SpiffeId::subject);
        let machine = id.as_ref().and_then(SpiffeId::machine).map(MachineId::new);
        let machine = machine.and_then(|id| tables.get::<state::Machine>(&id));
        let of_machine = machine.and_then(|machine| machine.partition.as_ref());
        let of_machine = of_machine.map(ToString::to_string);
        let (kind, partition, project) = match subject {
            Some(Subject::Agent {
                role, partition, ..
            }) => (of_role(*role), Some(partition.clone()), None),
            Some(Subject::Machine { .. }) => (IdentityKind::Machine, of_machine, None),
            Some(Subject::ProjectMachine { project, .. }) => (
                IdentityKind::ProjectMachine,
                of_machine,
                Some(project.clone()),
            ),
            _ => (IdentityKind::Unspecified, None, None),
        };
        let (joined_by, joined_with) = joined(&identity.joined_by);
        Identity {
            id: identity.id.clone(),
            kind: kind.into(),
            partition: partition.unwrap_or_default(),
            project: project.unwrap_or_default(),
            serial: identity.serial.clone(),
            issued_at: time(identity.issued_at),
            expires_at: time(identity.not_after),
            joined_by: joined_by.into(),
            joined_with,
            joined_at: time(identity.joined_at),
            key_sha256: identity.key.hex(),
            last_seen: time(identity.issued_at),
            connected: None,
            revoked_at: identity.revoked_at.and_then(time),
            revoked_reason: identity.revoked_reason.clone(),
            rotate_since: identity.rotate_since.and_then(time),
            authority: identity.authority,
        }
    }
}

fn fits(identity: &Identity, wanted: &mesh::IdentityServiceListRequest) -> bool {
    (wanted.partition.is_empty() || wanted.partition == identity.partition)
        && (wanted.project.is_empty() || wanted.project == identity.project)
        && (wanted.kind() == IdentityKind::Unspecified || wanted.kind() == identity.kind())
}

const fn of_role(role: AgentRole) -> IdentityKind {
    match role {
        AgentRole::Core => IdentityKind::Core,
        AgentRole::Bmc => IdentityKind::Bmc,
        AgentRole::Pixie => IdentityKind::Pixie,
    }
}

fn joined(by: &state::JoinedBy) -> (JoinMethod, String) {
    match by {
        state::JoinedBy::Unknown => (JoinMethod::Unspecified, String::new()),
        state::JoinedBy::JoinTicket(id) => (JoinMethod::JoinTicket, id.to_string()),
        state::JoinedBy::BootTicket(id) => (JoinMethod::BootTicket, id.to_string()),
        state::JoinedBy::BmcNonce(id) => (JoinMethod::BmcNonce, id.to_string()),
        state::JoinedBy::Allocation(id) => (JoinMethod::Allocation, id.to_string()),
    }
}
