//! Components: what of the published stack reports that it lives.

use std::sync::Arc;

use control_convert::component::{component, component_matches, with_token};
use control_convert::parse;
use control_front::listing::listing;
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{self as state, DeleteComponent};
use proto_public::admin::v2 as admin;
use proto_public::admin::v2::component_service_server::ComponentService;
use proto_types::ComponentId;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

/// A component, and the token that it last used.
type ComponentRow = (Arc<state::Component>, Option<Arc<state::Token>>);

#[tonic::async_trait]
impl ComponentService for Services {
    async fn get(
        &self,
        request: Request<admin::ComponentServiceGetRequest>,
    ) -> ApiResult<admin::ComponentServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: ComponentId = parse("uuid", &request.get_ref().uuid)?;
        let found = self.gate.read(&caller, |tables| {
            let found = tables.require::<state::Component>(&id)?;
            Ok(component(tables, found))
        });
        ok(admin::ComponentServiceGetResponse {
            component: Some(found.await?),
        })
    }

    /// Forgets a component; one that lives comes back with its next report.
    async fn delete(
        &self,
        request: Request<admin::ComponentServiceDeleteRequest>,
    ) -> ApiResult<admin::ComponentServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let id = parse("uuid", &request.get_ref().uuid)?;
        let reply = self.gate.propose(&caller, DeleteComponent { id }).await?;
        let gone = reply.component().map_err(of_state)?;
        let shown = self
            .gate
            .read(&caller, |tables| Ok(component(tables, &gone)));
        ok(admin::ComponentServiceDeleteResponse {
            component: Some(shown.await?),
        })
    }

    async fn list(
        &self,
        request: Request<admin::ComponentServiceListRequest>,
    ) -> ApiResult<admin::ComponentServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let found = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::Component>()
                .filter(|component| component_matches(component, query.as_ref()));
            let rows = fitting
                .map(|component| (Arc::clone(component), tables.get(&component.token).cloned()));
            Ok(rows.collect())
        });
        let shown = |(component, token): &ComponentRow| with_token(component, token.as_deref());
        listing(found.await?, shown)
    }
}
