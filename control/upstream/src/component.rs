//! Components: what of the published stack reports that it lives.

use control_convert::component::from_version;
use control_convert::enums::from_component_kind;
use control_convert::{from_time, parse, required};
use control_gate::Caller;
use control_state::ReportComponent;
use control_state::query::component_report_matters;
use proto_public::infra::v2 as infra;
use proto_types::ComponentId;
use tonic::Request;
use uuid::Uuid;

use crate::{RpcResult, Upstream, ok};

#[tonic::async_trait]
impl infra::component_service_server::ComponentService for Upstream {
    async fn ping(
        &self,
        request: Request<infra::ComponentServicePingRequest>,
    ) -> RpcResult<infra::ComponentServicePingResponse> {
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
        let now = self.gate.now();
        let matters = self.gate.read(&caller, |tables| {
            Ok(component_report_matters(tables, &op, now))
        });
        if matters.await? {
            self.gate.propose(&caller, op).await?;
        }
        ok(infra::ComponentServicePingResponse {})
    }
}
