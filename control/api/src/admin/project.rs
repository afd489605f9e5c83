//! Projects of all tenants.

use control_convert::tenancy;
use control_front::listing::listing;
use control_gate::Caller;
use control_state::{self as state};
use proto_public::admin::v2 as admin;
use tonic::Request;

use crate::services::{ApiResult, Services};

#[tonic::async_trait]
impl admin::project_service_server::ProjectService for Services {
    async fn list(
        &self,
        request: Request<admin::ProjectServiceListRequest>,
    ) -> ApiResult<admin::ProjectServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let projects = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::Project>()
                .filter(|project| tenancy::project_matches(project, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(projects.await?, tenancy::project)
    }
}
