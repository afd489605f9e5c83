//! Components: what of the published stack reports that it lives.

use std::sync::Arc;

use control_front::listing::listing;
use control_state::query::component_report_matters;
use control_state::{self as state, DeleteComponent, ReportComponent};
use proto_public::admin::v2 as admin;
use proto_public::admin::v2::component_service_server::ComponentService;
use proto_public::infra::v2 as infra;
use proto_types::ComponentId;
use tonic::Request;
use uuid::Uuid;

use super::{Answer, Services, ok};
use crate::caller::Caller;
use crate::convert::component::{component, component_matches, from_version, with_token};
use crate::convert::enums::from_component_kind;
use crate::convert::{from_time, parse, required};
use crate::refusal::of_state;

/// A component, and the token that it last used.
type ComponentRow = (Arc<state::Component>, Option<Arc<state::Token>>);

#[tonic::async_trait]
impl ComponentService for Services {
    async fn get(
        &self,
        request: Request<admin::ComponentServiceGetRequest>,
    ) -> Answer<admin::ComponentServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: ComponentId = parse("uuid", &request.get_ref().uuid)?;
        let found = self.0.read(&caller, |tables| {
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
    ) -> Answer<admin::ComponentServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let id = parse("uuid", &request.get_ref().uuid)?;
        let reply = self.0.propose(&caller, DeleteComponent { id }).await?;
        let gone = reply.component().map_err(of_state)?;
        let shown = self.0.read(&caller, |tables| Ok(component(tables, &gone)));
        ok(admin::ComponentServiceDeleteResponse {
            component: Some(shown.await?),
        })
    }

    async fn list(
        &self,
        request: Request<admin::ComponentServiceListRequest>,
    ) -> Answer<admin::ComponentServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let found = self.0.read(&caller, |tables| {
            let fitting = tables
                .all::<state::Component>()
                .filter(|it| component_matches(it, query.as_ref()));
            let rows = fitting.map(|it| (Arc::clone(it), tables.get(&it.token).cloned()));
            Ok(rows.collect())
        });
        let shown = |(it, token): &ComponentRow| with_token(it, token.as_deref());
        listing(found.await?, shown)
    }
}

#[tonic::async_trait]
impl infra::component_service_server::ComponentService for Services {
    async fn ping(
        &self,
        request: Request<infra::ComponentServicePingRequest>,
    ) -> Answer<infra::ComponentServicePingResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let interval = request.interval.unwrap_or_default();
        let seconds = u64::try_from(interval.seconds).unwrap_or(0);
        let op = ReportComponent {
            id: ComponentId::new(Uuid::now_v7()),
            kind: required("type", from_component_kind(request.r#type))?,
            identifier: request.identifier,
            started_at: request
                .started_at
                .as_ref()
                .map(from_time)
                .unwrap_or_default(),
            interval_ms: seconds * 1000,
            version: from_version(request.version),
            token: parse("token", &caller.principal.token)?,
        };
        let now = self.0.now();
        let matters = self.0.read(&caller, |tables| {
            Ok(component_report_matters(tables, &op, now))
        });
        if matters.await? {
            self.0.propose(&caller, op).await?;
        }
        ok(infra::ComponentServicePingResponse {})
    }
}
