//! The control nodes: status, joining, promotion, removal.

use std::time::Duration;

use control_convert::{from_time, parse, time};
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state, of_store, refused};
use control_pki::{NewNodeInvitation, PkiError};
use control_state::{
    AcceptTime, AnnounceNode, ClusterClock, ControlNode, ErrorCode, FEATURE_LEVEL, RemoveNode,
    StateError,
};
use control_store::{ClusterView, MemberChange, MemberState, MembershipError};
use proto_public::metalmesh::admin::v1::cluster_service_server::ClusterService;
use proto_public::metalmesh::admin::v1::{
    ClusterServiceAcceptTimeRequest, ClusterServiceAcceptTimeResponse, ClusterServiceInviteRequest,
    ClusterServiceInviteResponse, ClusterServicePromoteRequest, ClusterServicePromoteResponse,
    ClusterServiceReconcileAfterRestoreRequest, ClusterServiceReconcileAfterRestoreResponse,
    ClusterServiceRemoveRequest, ClusterServiceRemoveResponse, ClusterServiceStatusRequest,
    ClusterServiceStatusResponse, ClusterServiceTransferLeaderRequest,
    ClusterServiceTransferLeaderResponse, ClusterTime, Node, NodeRole,
};
use proto_types::{Digest, Timestamp, is_host_and_port};
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

/// Longest life of an invitation, minutes. A longer one is refused.
const MINUTES_MAX: u32 = 1440;
/// Longest address of a node for its peers, bytes. The gateway refuses a longer one at the join.
const ADDRESS_LEN_MAX: usize = 255;

#[tonic::async_trait]
impl ClusterService for Services {
    async fn status(
        &self,
        request: Request<ClusterServiceStatusRequest>,
    ) -> ApiResult<ClusterServiceStatusResponse> {
        let all = request.into_inner().all;
        let store = &self.gate.store;
        let view = store.cluster_view().await;
        // A local read: operators look at this when there is no majority.
        let (records, clock) = store
            .read_local(|tables| {
                let records = tables.all::<ControlNode>();
                let records: Vec<_> = records.map(|node| ControlNode::clone(node)).collect();
                let clock = tables.get::<ClusterClock>(&ClusterClock::ONE.to_owned());
                (records, clock.cloned())
            })
            .map_err(of_store)?;
        let now = self.gate.now();
        let is_shown = |record: &ControlNode, member: Option<&MemberState>| {
            let is_over = record.removed_at.is_some()
                || (record.joined_at.is_none() && record.expires_at.is_some_and(|at| at < now));
            all || member.is_some() || !is_over
        };
        let mut nodes = Vec::new();
        for record in &records {
            let member = view.members.iter().find(|m| m.node == record.id);
            if is_shown(record, member) {
                nodes.push(node(Some(record), member, &view, now));
            }
        }
        for member in &view.members {
            if !records.iter().any(|record| record.id == member.node) {
                nodes.push(node(None, Some(member), &view, now));
            }
        }
        nodes.sort_by_key(|node| node.id);
        let known = nodes.iter().filter(|node| is_member(node.role()));
        ok(ClusterServiceStatusResponse {
            cluster_id: store.cluster_id().to_string(),
            name: store.cluster().to_owned(),
            leader: view.leader.unwrap_or(0),
            term: view.term,
            answered_by: store.node_id(),
            may_fail: u32::try_from(view.spare_voters()).unwrap_or(u32::MAX),
            feature_level: known.map(|node| node.feature_level).min().unwrap_or(0),
            nodes,
            time: clock.as_deref().map(cluster_time),
        })
    }

    async fn invite(
        &self,
        request: Request<ClusterServiceInviteRequest>,
    ) -> ApiResult<ClusterServiceInviteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        if request.minutes > MINUTES_MAX {
            return Err(invalid("minutes", format!("must be at most {MINUTES_MAX}")));
        }
        if self.node.peer_address.is_empty() {
            let message = "this cluster has one node, which listens to no peers";
            let error = StateError::new(ErrorCode::MembershipRefused, message)
                .hint("give it peers.listen and peers.address in its configuration and restart it");
            return Err(of_state(error));
        }
        let key: Option<Digest> = match request.key_sha256.as_str() {
            "" => None,
            text => Some(parse("key_sha256", text)?),
        };
        check_peer_address(&request.peer_address, key.is_some())?;
        let new = NewNodeInvitation {
            key,
            peer_address: request.peer_address,
            life: Duration::from_secs(u64::from(request.minutes) * 60),
            control: self.node.control_addresses(&self.gate.store),
        };
        let (permit, user) = (&caller.permit, &caller.user);
        let invited = self.node.pki.invite_node(permit, user, new);
        let (record, invitation) = invited.await.map_err(of_pki)?;
        let view = self.gate.store.cluster_view().await;
        ok(ClusterServiceInviteResponse {
            node: Some(node(Some(&record), None, &view, self.gate.now())),
            secret: invitation.ticket.encode(),
            invitation: invitation.encode(),
        })
    }

    async fn promote(
        &self,
        request: Request<ClusterServicePromoteRequest>,
    ) -> ApiResult<ClusterServicePromoteResponse> {
        let caller = Caller::of(&request)?;
        let id = request.get_ref().id;
        let node = self.change(&caller, MemberChange::Promote { node: id }, id);
        ok(ClusterServicePromoteResponse {
            node: Some(node.await?),
        })
    }

    async fn remove(
        &self,
        request: Request<ClusterServiceRemoveRequest>,
    ) -> ApiResult<ClusterServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let ClusterServiceRemoveRequest { id, dry_run } = request.into_inner();
        let change = MemberChange::Remove { node: id };
        let view = self.gate.store.cluster_view().await;
        let is_member = view.members.iter().any(|m| m.node == id);
        if is_member {
            view.check(&change).map_err(of_membership)?;
        }
        let record = self
            .gate
            .read(&caller, |t| Ok(t.get::<ControlNode>(&id).cloned()))
            .await?;
        if record.is_none() && !is_member {
            return Err(of_membership(MembershipError::Unknown { node: id }));
        }
        if dry_run || caller.permit.is_trial() {
            let now = self.gate.now();
            let member = view.members.iter().find(|m| m.node == id);
            let record = record.as_ref().map(AsRef::as_ref);
            return ok(ClusterServiceRemoveResponse {
                node: Some(node(record, member, &view, now)),
            });
        }
        if is_member {
            self.change(&caller, change, id).await?;
        }
        if record.is_none() {
            // The node is older than records of nodes. It gets one, which the removal needs.
            let announce = AnnounceNode {
                id,
                peer_address: String::new(),
                mesh_addresses: Vec::new(),
                level: FEATURE_LEVEL,
                version: String::new(),
            };
            self.gate.propose(&caller, announce).await?;
        }
        // From this entry on its certificate is refused.
        self.gate.propose(&caller, RemoveNode { id }).await?;
        ok(ClusterServiceRemoveResponse {
            node: Some(self.node(id).await?),
        })
    }

    async fn transfer_leader(
        &self,
        request: Request<ClusterServiceTransferLeaderRequest>,
    ) -> ApiResult<ClusterServiceTransferLeaderResponse> {
        let caller = Caller::of(&request)?;
        let id = request.get_ref().id;
        let node = self.change(&caller, MemberChange::Lead { node: id }, id);
        ok(ClusterServiceTransferLeaderResponse {
            node: Some(node.await?),
        })
    }

    async fn reconcile_after_restore(
        &self,
        request: Request<ClusterServiceReconcileAfterRestoreRequest>,
    ) -> ApiResult<ClusterServiceReconcileAfterRestoreResponse> {
        let caller = Caller::of(&request)?;
        let judge_silent = request.into_inner().judge_silent;
        ok(self.compare_and_reconcile(&caller, judge_silent).await?)
    }

    async fn accept_time(
        &self,
        request: Request<ClusterServiceAcceptTimeRequest>,
    ) -> ApiResult<ClusterServiceAcceptTimeResponse> {
        let caller = Caller::of(&request)?;
        let time = request.into_inner().time;
        let time = time.ok_or_else(|| invalid("time", "is missing: what your clock shows"))?;
        let accept = AcceptTime {
            time: from_time(&time),
        };
        let reply = self.gate.propose(&caller, accept).await?;
        let clock = reply.cluster_clock().map_err(of_state)?;
        ok(ClusterServiceAcceptTimeResponse {
            time: Some(cluster_time(&clock)),
        })
    }
}

fn cluster_time(clock: &ClusterClock) -> ClusterTime {
    let held = clock.held.as_ref();
    ClusterTime {
        time: time(clock.time),
        held: held.and_then(|jump| time(jump.claimed)),
        held_node: held.map_or(0, |jump| jump.node),
        restored_from: (clock.restored.as_ref()).and_then(|restored| time(restored.made_at)),
    }
}

impl Services {
    /// Changes the membership, and returns the node as it is afterwards.
    async fn change(&self, caller: &Caller, change: MemberChange, id: u64) -> Result<Node, Status> {
        let changed = self
            .gate
            .store
            .change_members(&caller.permit, &change)
            .await;
        changed.map_err(of_membership)?;
        tracing::info!(user = %caller.user, change = ?change, "the membership changed");
        self.node(id).await
    }

    async fn node(&self, id: u64) -> Result<Node, Status> {
        let view = self.gate.store.cluster_view().await;
        let record = self
            .gate
            .read_latest(|t| Ok(t.get::<ControlNode>(&id).cloned()))
            .await?;
        let member = view.members.iter().find(|m| m.node == id);
        let record = record.as_ref().map(AsRef::as_ref);
        Ok(node(record, member, &view, self.gate.now()))
    }
}

/// Checks the address that an invitation is bound to. The state refuses an invitation that is bound to
/// nothing; the message of this check also says how to make one.
fn check_peer_address(address: &str, has_key: bool) -> Result<(), Status> {
    if address.is_empty() {
        if has_key {
            return Ok(());
        }
        let rule = "is needed without key_sha256: where the other nodes will reach the new one, \
             for example \"control-2.example:4444\"";
        return Err(invalid("peer_address", rule));
    }
    // It becomes a part of command lines and of configuration files, and is shown at terminals.
    if address.len() <= ADDRESS_LEN_MAX && is_host_and_port(address) {
        return Ok(());
    }
    let rule = format!("{address:?} is not HOST:PORT; for example \"control-2.example:4444\"");
    Err(invalid("peer_address", rule))
}

fn is_member(role: NodeRole) -> bool {
    matches!(role, NodeRole::Leader | NodeRole::Voter | NodeRole::Learner)
}

fn node(
    record: Option<&ControlNode>,
    member: Option<&MemberState>,
    view: &ClusterView,
    now: Timestamp,
) -> Node {
    let role = match (member, record) {
        (Some(member), _) if member.is_leader => NodeRole::Leader,
        (Some(member), _) if member.is_voter => NodeRole::Voter,
        (Some(_), _) => NodeRole::Learner,
        (None, Some(record)) if record.removed_at.is_some() => NodeRole::Removed,
        (None, Some(_)) => NodeRole::Invited,
        (None, None) => NodeRole::Unspecified,
    };
    let behind = member.and_then(|m| m.matched);
    let heard = member.and_then(|m| m.heard_ms);
    let address = member.map(|m| m.address.clone()).filter(|a| !a.is_empty());
    let from = |get: fn(&ControlNode) -> Option<Timestamp>| record.and_then(get).and_then(time);
    Node {
        id: member.map_or_else(|| record.map_or(0, |r| r.id), |m| m.node),
        role: role.into(),
        peer_address: address
            .or_else(|| record.map(|r| r.peer_address.clone()))
            .unwrap_or_default(),
        mesh_addresses: record.map(|r| r.mesh_addresses.clone()).unwrap_or_default(),
        behind: behind.map(|matched| view.last_log.saturating_sub(matched)),
        heard_at: heard.and_then(|ms| time(Timestamp::from_ms(now.ms().saturating_sub(ms)))),
        joined_at: from(|r| r.joined_at),
        removed_at: from(|r| r.removed_at),
        expires_at: from(|r| r.expires_at.filter(|_| r.joined_at.is_none())),
        feature_level: record.map_or(0, |r| r.level),
        version: record.map(|r| r.version.clone()).unwrap_or_default(),
    }
}

fn of_membership(error: MembershipError) -> Status {
    match error {
        MembershipError::Store(error) => of_store(error),
        error @ MembershipError::Unknown { .. } => {
            of_state(StateError::new(ErrorCode::NotFound, error.to_string()).hint(""))
        }
        error @ (MembershipError::InProgress | MembershipError::NotTaken { .. }) => {
            of_state(StateError::new(ErrorCode::Unavailable, error.to_string()))
        }
        error => {
            let code = ErrorCode::MembershipRefused;
            of_state(StateError::new(code, error.to_string()).hint(""))
        }
    }
}

fn of_pki(error: PkiError) -> Status {
    match error {
        PkiError::Store(error) => of_store(error),
        PkiError::Refused(error) => of_state(error),
        other => {
            tracing::error!(error = %other, "an invitation could not be made");
            refused(ErrorCode::Internal, "the invitation could not be made")
        }
    }
}
