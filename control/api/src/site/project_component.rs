//! Credentials of components that work for one project.

use control_authz::ComponentProfile;
use control_convert::{parse, time};
use control_front::listing::listing;
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state};
use control_state::{
    self as state, CreateComponentToken, CreateToken, MethodPermission, RevokeToken,
    TokenComponent, TokenType, user_of_component,
};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::project_component_service_server::ProjectComponentService;
use proto_public::metalmesh::admin::v1::{ProjectComponent, ProjectComponentKind};
use proto_types::{ProjectId, TokenId};
use tonic::Request;
use uuid::Uuid;

use crate::services::{ApiResult, Services, ok};

/// Default life of a credential, days.
const DAYS: u32 = 90;
/// Longest life of a credential, days. A longer one is refused.
const DAYS_MAX: u32 = 365;
const DAY_MS: u64 = 24 * 3_600_000;

#[tonic::async_trait]
impl ProjectComponentService for Services {
    async fn create(
        &self,
        request: Request<mesh::ProjectComponentServiceCreateRequest>,
    ) -> ApiResult<mesh::ProjectComponentServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let kind = from_kind(request.kind()).ok_or_else(|| invalid("kind", "is unspecified"))?;
        let project: ProjectId = parse("project", &request.project)?;
        if request.days > DAYS_MAX {
            return Err(invalid("days", format!("must be at most {DAYS_MAX}")));
        }
        let days = if request.days == 0 {
            DAYS
        } else {
            request.days
        };
        // A token must not get more rights by this call than it has.
        let mut rights = kind.rights(&project.to_string());
        let listed = permissions(&rights);
        rights.component = None;
        rights.permissions = of_project(kind, &project.to_string());
        self.gate.check_grant(&caller, &rights).await?;
        let op = CreateComponentToken {
            token: CreateToken {
                id: TokenId::new(Uuid::now_v7()),
                user: user_of_component(kind.as_str(), &request.name),
                description: format!("{} of project {project}", kind.as_str()),
                labels: state::Labels::new(),
                permissions: listed,
                expires: self.gate.now().plus_ms(u64::from(days) * DAY_MS),
                token_type: TokenType::Api,
                project_roles: Default::default(),
                tenant_roles: Default::default(),
                admin_role: None,
                infra_role: None,
                machine_roles: Default::default(),
                warrant: None,
            },
            component: TokenComponent {
                project,
                kind: kind.as_str().to_owned(),
                name: request.name,
            },
        };
        let made = self.gate.propose(&caller, op).await?;
        let made = made.token().map_err(of_state)?;
        let secret = self.gate.sign(&made)?;
        ok(mesh::ProjectComponentServiceCreateResponse {
            component: shown(&made),
            secret,
        })
    }

    async fn list(
        &self,
        request: Request<mesh::ProjectComponentServiceListRequest>,
    ) -> ApiResult<mesh::ProjectComponentServiceListResponse> {
        let caller = Caller::of(&request)?;
        let project: ProjectId = parse("project", &request.get_ref().project)?;
        let now = self.gate.now();
        let found = self.gate.read(&caller, |tables| {
            let valid = tables
                .all::<state::Token>()
                .filter(|token| token.is_valid(now));
            let of_it = valid.filter(|token| is_of(token, project));
            Ok(of_it.cloned().collect())
        });
        // Every token of the list has a component: the filter above asks for it.
        let shown = |token: &state::Token| shown(token).unwrap_or_default();
        listing(found.await?, shown)
    }

    async fn revoke(
        &self,
        request: Request<mesh::ProjectComponentServiceRevokeRequest>,
    ) -> ApiResult<mesh::ProjectComponentServiceRevokeResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let id: TokenId = parse("id", &request.id)?;
        let found = self.gate.read(&caller, |tables| {
            let found = tables.get::<state::Token>(&id).map(AsRef::as_ref);
            match found.filter(|token| is_of(token, project)) {
                Some(_) => Ok(()),
                None => Err(state::StateError::not_found("component", id)),
            }
        });
        found.await?;
        self.gate.propose(&caller, RevokeToken { id }).await?;
        ok(mesh::ProjectComponentServiceRevokeResponse {})
    }
}

fn is_of(token: &state::Token, project: ProjectId) -> bool {
    let component = token.component.as_ref();
    component.is_some_and(|component| component.project == project)
}

fn permissions(rights: &control_authz::TokenRights) -> Vec<MethodPermission> {
    let all = rights.permissions.iter();
    all.map(|(subject, methods)| MethodPermission {
        subject: subject.to_owned(),
        methods: methods.into_iter().map(str::to_owned).collect(),
    })
    .collect()
}

fn of_project(kind: ComponentProfile, project: &str) -> control_authz::Permissions {
    let mut permissions = control_authz::Permissions::default();
    for method in kind.methods() {
        permissions.add(project, &method);
    }
    permissions
}

fn shown(token: &state::Token) -> Option<ProjectComponent> {
    let of = token.component.as_ref()?;
    let project = of.project.to_string();
    let listed = token
        .permissions
        .iter()
        .find(|permission| permission.subject == project);
    Some(ProjectComponent {
        id: token.id.to_string(),
        kind: ComponentProfile::named(&of.kind).map_or(0, |kind| to_kind(kind).into()),
        name: of.name.clone(),
        issued_at: time(token.issued_at),
        expires_at: time(token.expires),
        last_used: token.last_used.and_then(time),
        methods: listed
            .map(|permission| permission.methods.clone())
            .unwrap_or_default(),
        project,
    })
}

const fn from_kind(kind: ProjectComponentKind) -> Option<ComponentProfile> {
    Some(match kind {
        ProjectComponentKind::Gardener => ComponentProfile::Gardener,
        ProjectComponentKind::Ccm => ComponentProfile::Ccm,
        ProjectComponentKind::MachineControllerManager => {
            ComponentProfile::MachineControllerManager
        }
        ProjectComponentKind::FirewallControllerManager => {
            ComponentProfile::FirewallControllerManager
        }
        ProjectComponentKind::ClusterApi => ComponentProfile::ClusterApi,
        ProjectComponentKind::Reader => ComponentProfile::Reader,
        ProjectComponentKind::Unspecified => return None,
    })
}

const fn to_kind(kind: ComponentProfile) -> ProjectComponentKind {
    match kind {
        ComponentProfile::Gardener => ProjectComponentKind::Gardener,
        ComponentProfile::Ccm => ProjectComponentKind::Ccm,
        ComponentProfile::MachineControllerManager => {
            ProjectComponentKind::MachineControllerManager
        }
        ComponentProfile::FirewallControllerManager => {
            ProjectComponentKind::FirewallControllerManager
        }
        ComponentProfile::ClusterApi => ProjectComponentKind::ClusterApi,
        ComponentProfile::Reader => ProjectComponentKind::Reader,
    }
}
