//! The caller itself.

use control_authz::{Directory, project_role};
use control_convert::tenancy;
use control_gate::Caller;
use control_gate::StateDirectory;
use control_state::{self as state};
use proto_public::api::v2::user_service_server::UserService;
use proto_public::api::v2::{User, UserServiceGetRequest, UserServiceGetResponse};
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl UserService for Services {
    async fn get(
        &self,
        request: Request<UserServiceGetRequest>,
    ) -> ApiResult<UserServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let login = caller.login()?;
        let provider = &self.gate.provider;
        let user = self.gate.read(&caller, |tables| {
            let directory = StateDirectory { tables, provider };
            let own = tables.get::<state::Tenant>(&login);
            let tenants = tables.all::<state::Tenant>().filter(|tenant| {
                directory
                    .tenant_role(&caller.user, tenant.login.as_str())
                    .is_some()
            });
            let projects = tables.all::<state::Project>().filter(|project| {
                project_role(&directory, &caller.user, &project.id.to_string()).is_some()
            });
            Ok(User {
                login: login.to_string(),
                name: own.map_or_else(|| login.to_string(), |own| own.name.clone()),
                email: own.map(|own| own.email.clone()).unwrap_or_default(),
                avatar_url: own.map(|own| own.avatar_url.clone()).unwrap_or_default(),
                tenants: tenants.map(|tenant| tenancy::tenant(tenant)).collect(),
                projects: projects.map(|project| tenancy::project(project)).collect(),
                default_tenant: own.map(|own| tenancy::tenant(own)),
            })
        });
        ok(UserServiceGetResponse {
            user: Some(user.await?),
        })
    }
}
