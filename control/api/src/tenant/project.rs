//! Projects: what machines, networks and addresses belong to.

use std::sync::Arc;

use control_authz::project_role;
use control_convert::{from_labels, labels_update, lock, parse, required, tenancy};
use control_front::listing::{EncodedItems, listing, listing_encoded};
use control_gate::Caller;
use control_gate::StateDirectory;
use control_gate::refusal::of_state;
use control_state::{
    self as state, CreateProject, DeleteProject, InvitePlace, InviteTo, RemoveProjectMember,
    SetProjectMember, UpdateProject,
};
use proto_public::api::v2::project_service_server::ProjectService;
use proto_public::api::v2::{
    self as api, ProjectServiceCreateRequest, ProjectServiceCreateResponse,
    ProjectServiceDeleteRequest, ProjectServiceDeleteResponse, ProjectServiceGetRequest,
    ProjectServiceGetResponse, ProjectServiceListRequest, ProjectServiceListResponse,
    ProjectServiceUpdateRequest, ProjectServiceUpdateResponse,
};
use proto_types::{ProjectId, TenantId};
use tonic::{Request, Status};
use uuid::Uuid;

use super::invite::project_invite;
use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl ProjectService for Services {
    /// The projects that the caller belongs to, directly or through their tenant.
    async fn list(
        &self,
        request: Request<ProjectServiceListRequest>,
    ) -> ApiResult<ProjectServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let projects = self.gate.read(&caller, |tables| {
            let directory = StateDirectory {
                tables,
                provider: &self.gate.provider,
            };
            let own = tables.all::<state::Project>().filter(|project| {
                project_role(&directory, &caller.user, &project.id.to_string()).is_some()
            });
            let fitting = own.filter(|project| tenancy::project_matches(project, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(projects.await?, tenancy::project)
    }

    async fn get(
        &self,
        request: Request<ProjectServiceGetRequest>,
    ) -> ApiResult<ProjectServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: ProjectId = parse("project", &request.get_ref().project)?;
        let answer = self.gate.read(&caller, |tables| {
            let project = tables.require::<state::Project>(&id)?;
            Ok(ProjectServiceGetResponse {
                project: Some(tenancy::project(project)),
                project_members: tenancy::project_members(tables, project),
            })
        });
        ok(answer.await?)
    }

    async fn create(
        &self,
        request: Request<ProjectServiceCreateRequest>,
    ) -> ApiResult<ProjectServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = CreateProject {
            id: ProjectId::new(Uuid::now_v7()),
            tenant: parse("login", &request.login)?,
            name: request.name,
            description: request.description,
            avatar_url: request.avatar_url,
            labels: from_labels(request.labels),
            // The caller is owner or editor of the tenant, and thereby of its projects.
            owner: None,
        };
        let project = self.project_reply(&caller, op).await?;
        ok(ProjectServiceCreateResponse {
            project: Some(tenancy::project(&project)),
        })
    }

    async fn delete(
        &self,
        request: Request<ProjectServiceDeleteRequest>,
    ) -> ApiResult<ProjectServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let op = DeleteProject {
            id: parse("project", &request.get_ref().project)?,
        };
        let project = self.project_reply(&caller, op).await?;
        ok(ProjectServiceDeleteResponse {
            project: Some(tenancy::project(&project)),
        })
    }

    async fn update(
        &self,
        request: Request<ProjectServiceUpdateRequest>,
    ) -> ApiResult<ProjectServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = UpdateProject {
            id: parse("project", &request.project)?,
            lock: lock(request.update_meta)?,
            name: request.name,
            description: request.description,
            avatar_url: request.avatar_url,
            labels: labels_update(request.labels),
        };
        let project = self.project_reply(&caller, op).await?;
        ok(ProjectServiceUpdateResponse {
            project: Some(tenancy::project(&project)),
        })
    }

    async fn leave(
        &self,
        request: Request<api::ProjectServiceLeaveRequest>,
    ) -> ApiResult<api::ProjectServiceLeaveResponse> {
        let caller = Caller::of(&request)?;
        let id = parse("project", &request.get_ref().project)?;
        let op = RemoveProjectMember {
            id,
            member: caller.login()?,
        };
        self.project_reply(&caller, op).await?;
        ok(api::ProjectServiceLeaveResponse {})
    }

    async fn add_member(
        &self,
        request: Request<api::ProjectServiceAddMemberRequest>,
    ) -> ApiResult<api::ProjectServiceAddMemberResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let member = self
            .set_project_member(
                &caller,
                &request.project,
                &request.member,
                request.role,
                true,
            )
            .await?;
        // The contract's field is of the role's type, not the member's.
        ok(api::ProjectServiceAddMemberResponse {
            project_member: member.role,
        })
    }

    async fn update_member(
        &self,
        request: Request<api::ProjectServiceUpdateMemberRequest>,
    ) -> ApiResult<api::ProjectServiceUpdateMemberResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let member = self
            .set_project_member(
                &caller,
                &request.project,
                &request.member,
                request.role,
                false,
            )
            .await?;
        ok(api::ProjectServiceUpdateMemberResponse {
            project_member: Some(member),
        })
    }

    async fn remove_member(
        &self,
        request: Request<api::ProjectServiceRemoveMemberRequest>,
    ) -> ApiResult<api::ProjectServiceRemoveMemberResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = RemoveProjectMember {
            id: parse("project", &request.project)?,
            member: parse("member", &request.member)?,
        };
        self.project_reply(&caller, op).await?;
        ok(api::ProjectServiceRemoveMemberResponse {})
    }

    async fn invite(
        &self,
        request: Request<api::ProjectServiceInviteRequest>,
    ) -> ApiResult<api::ProjectServiceInviteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let to = InviteTo::Project {
            id: parse("project", &request.project)?,
            role: required("role", tenancy::from_project_role(request.role))?,
        };
        let made = self.make_invite(&caller, to).await?;
        let shown = self
            .gate
            .read(&caller, |tables| Ok(project_invite(tables, &made)));
        ok(api::ProjectServiceInviteResponse {
            invite: shown.await?,
        })
    }

    async fn invites_list(
        &self,
        request: Request<api::ProjectServiceInvitesListRequest>,
    ) -> ApiResult<api::ProjectServiceInvitesListResponse> {
        let caller = Caller::of(&request)?;
        let place = InvitePlace::Project(parse("project", &request.get_ref().project)?);
        let invites = self.invites(&caller, &place).await?;
        let shown = self.gate.read(&caller, |tables| {
            let shown = invites
                .iter()
                .filter_map(|invite| project_invite(tables, invite));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(shown.await?)
    }

    /// The invite of a secret. Every caller that knows the secret may read it.
    async fn invite_get(
        &self,
        request: Request<api::ProjectServiceInviteGetRequest>,
    ) -> ApiResult<api::ProjectServiceInviteGetResponse> {
        let caller = Caller::of(&request)?;
        let found = self.invite_of(&caller, &request.get_ref().secret, project_invite);
        ok(api::ProjectServiceInviteGetResponse {
            invite: Some(found.await?),
        })
    }

    async fn invite_accept(
        &self,
        request: Request<api::ProjectServiceInviteAcceptRequest>,
    ) -> ApiResult<api::ProjectServiceInviteAcceptResponse> {
        let caller = Caller::of(&request)?;
        let secret = request.into_inner().secret;
        let into = self.invite_of(&caller, &secret, project_invite).await?;
        self.accept(&caller, &secret).await?;
        ok(api::ProjectServiceInviteAcceptResponse {
            project: into.project,
            project_name: into.project_name,
        })
    }

    async fn invite_delete(
        &self,
        request: Request<api::ProjectServiceInviteDeleteRequest>,
    ) -> ApiResult<api::ProjectServiceInviteDeleteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let place = InvitePlace::Project(parse("project", &request.project)?);
        self.uninvite(&caller, place, &request.secret).await?;
        ok(api::ProjectServiceInviteDeleteResponse {})
    }
}

impl Services {
    async fn project_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<state::Project>, Status> {
        self.gate
            .propose(caller, op)
            .await?
            .project()
            .map_err(of_state)
    }

    async fn set_project_member(
        &self,
        caller: &Caller,
        project: &str,
        member: &str,
        role: i32,
        is_new: bool,
    ) -> Result<api::ProjectMember, Status> {
        let id: TenantId = parse("member", member)?;
        let op = SetProjectMember {
            id: parse("project", project)?,
            member: id.clone(),
            role: required("role", tenancy::from_project_role(role))?,
            must_be_new: Some(is_new),
        };
        let project = self.project_reply(caller, op).await?;
        let member = project.members.get(&id);
        required(
            "member",
            member.map(|member| tenancy::project_member(&id, member, false)),
        )
    }
}
