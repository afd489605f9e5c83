//! The audit trail as it is stored, for tools that verify or export it.

use std::ops::Bound;
use std::sync::Arc;

use control_convert::time;
use control_front::listing::{EncodedItems, listing_encoded, listing_in};
use control_gate::Caller;
use control_state::{self as state, AuditEntry, AuditPhase, ForgetAuditExport};
use proto_public::metalmesh::admin::v1::audit_trail_service_server::AuditTrailService;
use proto_public::metalmesh::admin::v1::{
    AuditAnchor, AuditExport, AuditPart, AuditRecord, AuditTrailServiceExportsRequest,
    AuditTrailServiceExportsResponse, AuditTrailServiceForgetExportRequest,
    AuditTrailServiceForgetExportResponse, AuditTrailServiceListRequest,
    AuditTrailServiceListResponse,
};
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

/// Most records in an answer, and the default.
const PAGE_MAX: usize = 500;

#[tonic::async_trait]
impl AuditTrailService for Services {
    async fn list(
        &self,
        request: Request<AuditTrailServiceListRequest>,
    ) -> ApiResult<AuditTrailServiceListResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let limit = match usize::try_from(request.limit) {
            Ok(limit) if (1..PAGE_MAX).contains(&limit) => limit,
            _ => PAGE_MAX,
        };
        let behind = (Bound::Excluded(request.after), Bound::Unbounded);
        let page = self.gate.read(&caller, |tables| {
            let anchor = tables.get::<state::AuditAnchor>(&state::AuditAnchor::TRAIL.to_owned());
            let entries = tables.table::<AuditEntry>().range(behind).take(limit);
            let answer = AuditTrailServiceListResponse {
                anchor: anchor.map(|anchor| shown(anchor)),
                records: Vec::new(),
            };
            let entries = entries.map(|(_, slot)| Arc::clone(&slot.value));
            Ok((answer, entries.collect::<Vec<_>>()))
        });
        let (answer, entries) = page.await?;
        listing_in(answer, entries, record)
    }

    async fn exports(
        &self,
        request: Request<AuditTrailServiceExportsRequest>,
    ) -> ApiResult<AuditTrailServiceExportsResponse> {
        let caller = Caller::of(&request)?;
        let exports = self.gate.read(&caller, |tables| {
            let all = tables.all::<state::AuditExport>();
            let shown = all.map(|export| exported(tables, export));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(exports.await?)
    }

    async fn forget_export(
        &self,
        request: Request<AuditTrailServiceForgetExportRequest>,
    ) -> ApiResult<AuditTrailServiceForgetExportResponse> {
        let caller = Caller::of(&request)?;
        let name = request.into_inner().name;
        self.gate
            .propose(&caller, ForgetAuditExport { name })
            .await?;
        ok(AuditTrailServiceForgetExportResponse {})
    }
}

fn exported(tables: &state::Tables, export: &state::AuditExport) -> AuditExport {
    let behind = (Bound::Excluded(export.sequence), Bound::Unbounded);
    let behind = tables.table::<AuditEntry>().range(behind).count();
    AuditExport {
        name: export.name.clone(),
        sequence: export.sequence,
        behind: u64::try_from(behind).unwrap_or(u64::MAX),
        missed: export.missed,
        at: time(export.at),
    }
}

fn shown(anchor: &state::AuditAnchor) -> AuditAnchor {
    AuditAnchor {
        hash: anchor.hash.bytes().to_vec(),
        sequence: anchor.sequence,
        began_ms: anchor.began.ms(),
        dropped: anchor.dropped,
    }
}

fn record(entry: &AuditEntry) -> AuditRecord {
    let part = match entry.phase {
        AuditPhase::Request => AuditPart::Request,
        AuditPhase::Response => AuditPart::Response,
        AuditPhase::Call => AuditPart::Call,
        AuditPhase::Dropped => AuditPart::Dropped,
    };
    AuditRecord {
        sequence: entry.sequence,
        id: entry.id.clone(),
        time_ms: entry.time.ms(),
        ended_ms: entry.ended.map(proto_types::Timestamp::ms),
        user: entry.user.clone(),
        tenant: entry.tenant.clone(),
        project: entry.project.clone(),
        method: entry.method.clone(),
        body: entry.body.clone(),
        source_ip: entry.source_ip.clone(),
        result_code: entry.result_code,
        part: part.into(),
        rule: entry.rule.clone(),
        count: entry.count,
        hash: entry
            .hash
            .map(|hash| hash.bytes().to_vec())
            .unwrap_or_default(),
    }
}
