//! Pools of hosts that projects claim.

use control_convert::claim_spec::{from_duration, from_map};
use control_convert::pool::{
    from_evict_after, from_metadata, from_policies, from_reuse_floor, from_taints, from_wipe_floor,
    host, pool, pool_claim, project_labels,
};
use control_convert::{parse, required};
use control_front::listing::{EncodedItems, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::query::pool_hosts;
use control_state::{
    self as state, CleanHost, DeletePool, HoldActor, HoldHost, Op, RemovePoolHost, SetPool,
    SetPoolHost, SetProjectLabels, StateError,
};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::pool_service_server::PoolService;
use proto_types::{PoolId, ProjectId};
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl PoolService for Services {
    async fn set(
        &self,
        request: Request<mesh::PoolServiceSetRequest>,
    ) -> ApiResult<mesh::PoolServiceSetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let wanted = required("pool", request.pool)?;
        let op = SetPool {
            id: parse("pool.id", &wanted.id)?,
            expected: request.expected_generation,
            labels: from_map(wanted.labels),
            description: wanted.description,
            policies: from_policies("pool.policies", wanted.policies)?,
            published: wanted.published_labels.into_iter().collect(),
            floor: from_wipe_floor(&wanted.wipe_floor)?,
            reuse_max_ms: from_duration("pool.reuse_max", wanted.reuse_max.as_ref())?,
            reuse_floor: from_reuse_floor(&wanted.reuse_floor)?,
            metadata: from_metadata(wanted.metadata),
            on_revoke: from_evict_after(wanted.evict_after.as_ref())?,
        };
        let pool = Some(self.pool_reply(&caller, op).await?);
        ok(mesh::PoolServiceSetResponse { pool })
    }

    async fn remove(
        &self,
        request: Request<mesh::PoolServiceRemoveRequest>,
    ) -> ApiResult<mesh::PoolServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let id = parse("pool", &request.get_ref().pool)?;
        let pool = Some(self.pool_reply(&caller, DeletePool { id }).await?);
        ok(mesh::PoolServiceRemoveResponse { pool })
    }

    async fn get(
        &self,
        request: Request<mesh::PoolServiceGetRequest>,
    ) -> ApiResult<mesh::PoolServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: PoolId = parse("pool", &request.get_ref().pool)?;
        let found = self.gate.read(&caller, |tables| {
            let found = tables.require::<state::HostPool>(&id)?;
            Ok::<_, StateError>(pool(tables, found))
        });
        let pool = Some(found.await?);
        ok(mesh::PoolServiceGetResponse { pool })
    }

    async fn list(
        &self,
        request: Request<mesh::PoolServiceListRequest>,
    ) -> ApiResult<mesh::PoolServiceListResponse> {
        let caller = Caller::of(&request)?;
        let pools = self.gate.read(&caller, |tables| {
            let all = tables.all::<state::HostPool>();
            let shown = all.map(|found| pool(tables, found));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(pools.await?)
    }

    async fn set_host(
        &self,
        request: Request<mesh::PoolServiceSetHostRequest>,
    ) -> ApiResult<mesh::PoolServiceSetHostResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = SetPoolHost {
            machine: parse("machine", &request.machine)?,
            expected: request.expected_generation,
            pool: parse("pool", &request.pool)?,
            labels: from_map(request.labels),
            annotations: from_map(request.annotations),
            taints: from_taints(request.taints),
            domain: request.failure_domain,
            only: from_policies("only", request.only)?,
            cordon: (!request.cordon.is_empty()).then_some(request.cordon),
        };
        let host = Some(self.host_reply(&caller, op).await?);
        ok(mesh::PoolServiceSetHostResponse { host })
    }

    async fn remove_host(
        &self,
        request: Request<mesh::PoolServiceRemoveHostRequest>,
    ) -> ApiResult<mesh::PoolServiceRemoveHostResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = RemovePoolHost {
            machine: parse("machine", &request.machine)?,
            force: request.force,
        };
        let host = Some(self.host_reply(&caller, op).await?);
        ok(mesh::PoolServiceRemoveHostResponse { host })
    }

    async fn list_hosts(
        &self,
        request: Request<mesh::PoolServiceListHostsRequest>,
    ) -> ApiResult<mesh::PoolServiceListHostsResponse> {
        let caller = Caller::of(&request)?;
        let wanted = request.into_inner().pool;
        let id: Option<PoolId> = match wanted.is_empty() {
            true => None,
            false => Some(parse("pool", &wanted)?),
        };
        let hosts = self.gate.read(&caller, |tables| {
            let shown: EncodedItems = match &id {
                Some(id) => pool_hosts(tables, id)
                    .map(|found| host(tables, found))
                    .collect(),
                None => {
                    let all = tables.all::<state::PoolHost>();
                    all.map(|found| host(tables, found)).collect()
                }
            };
            Ok(shown)
        });
        listing_encoded(hosts.await?)
    }

    async fn set_host_hold(
        &self,
        request: Request<mesh::PoolServiceSetHostHoldRequest>,
    ) -> ApiResult<mesh::PoolServiceSetHostHoldResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = HoldHost {
            machine: parse("machine", &request.machine)?,
            actor: HoldActor::named(&request.actor).map_err(of_state)?,
            key: request.key,
            is_held: true,
            reason: request.reason,
        };
        let host = Some(self.host_reply(&caller, op).await?);
        ok(mesh::PoolServiceSetHostHoldResponse { host })
    }

    async fn clear_host_hold(
        &self,
        request: Request<mesh::PoolServiceClearHostHoldRequest>,
    ) -> ApiResult<mesh::PoolServiceClearHostHoldResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = HoldHost {
            machine: parse("machine", &request.machine)?,
            actor: HoldActor::named(&request.actor).map_err(of_state)?,
            key: request.key,
            is_held: false,
            reason: String::new(),
        };
        let host = Some(self.host_reply(&caller, op).await?);
        ok(mesh::PoolServiceClearHostHoldResponse { host })
    }

    async fn clean_host(
        &self,
        request: Request<mesh::PoolServiceCleanHostRequest>,
    ) -> ApiResult<mesh::PoolServiceCleanHostResponse> {
        let caller = Caller::of(&request)?;
        let machine = parse("machine", &request.get_ref().machine)?;
        let host = Some(self.host_reply(&caller, CleanHost { machine }).await?);
        ok(mesh::PoolServiceCleanHostResponse { host })
    }

    async fn set_project(
        &self,
        request: Request<mesh::PoolServiceSetProjectRequest>,
    ) -> ApiResult<mesh::PoolServiceSetProjectResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = SetProjectLabels {
            project: parse("project", &request.project)?,
            alias: (!request.alias.is_empty()).then_some(request.alias),
            labels: from_map(request.labels),
        };
        let reply = self.gate.propose(&caller, op).await?;
        let set = reply.project_labels().map_err(of_state)?;
        let project = Some(project_labels(&set));
        ok(mesh::PoolServiceSetProjectResponse { project })
    }

    async fn list_projects(
        &self,
        request: Request<mesh::PoolServiceListProjectsRequest>,
    ) -> ApiResult<mesh::PoolServiceListProjectsResponse> {
        let caller = Caller::of(&request)?;
        let projects = self.gate.read(&caller, |tables| {
            let all = tables.all::<state::ProjectLabels>();
            let shown = all.map(|found| project_labels(found));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(projects.await?)
    }

    async fn list_claims(
        &self,
        request: Request<mesh::PoolServiceListClaimsRequest>,
    ) -> ApiResult<mesh::PoolServiceListClaimsResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: Option<ProjectId> = match request.project.is_empty() {
            true => None,
            false => Some(parse("project", &request.project)?),
        };
        let is_wanted = |claim: &state::Claim| {
            let pool = claim.binding.as_ref().map(|binding| binding.pool.as_str());
            project.is_none_or(|project| claim.project == project)
                && (request.pool.is_empty() || pool == Some(request.pool.as_str()))
        };
        let claims = self.gate.read(&caller, |tables| {
            let all = tables
                .all::<state::Claim>()
                .filter(|claim| is_wanted(claim));
            let shown = all.map(|claim| pool_claim(tables, claim));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(claims.await?)
    }
}

impl Services {
    /// Proposes a change of a pool, and shows the pool as it is then, or as it was before it went.
    async fn pool_reply(
        &self,
        caller: &Caller,
        op: impl Into<Op>,
    ) -> Result<mesh::HostPool, Status> {
        let reply = self.gate.propose(caller, op).await?;
        let set = reply.host_pool().map_err(of_state)?;
        let read = self.gate.read_latest(|tables| Ok(pool(tables, &set)));
        read.await
    }

    /// Proposes a change of a host, and shows the host as it is then, or as it was before it went.
    async fn host_reply(
        &self,
        caller: &Caller,
        op: impl Into<Op>,
    ) -> Result<mesh::PoolHost, Status> {
        let reply = self.gate.propose(caller, op).await?;
        let set = reply.pool_host().map_err(of_state)?;
        let is_trial = caller.permit.is_trial();
        // The command may have bound it: the reply is older. A dry run left it as it was.
        let read = self.gate.read_latest(|tables| {
            let newest = tables.get::<state::PoolHost>(&set.machine);
            let newest = newest.filter(|_| !is_trial);
            Ok(host(tables, newest.unwrap_or(&set)))
        });
        read.await
    }
}
