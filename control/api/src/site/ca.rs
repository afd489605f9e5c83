//! The certificate authority: its roots, and its replacement.

use std::time::Duration;

use control_convert::time;
use control_gate::Caller;
use control_gate::refusal::{of_state, of_store, refused};
use control_pki::PkiError;
use control_state::{self as state, CaRecord, ErrorCode, ForceCaRotation, Tables};
use proto_identity::sha256_hex;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::ca_service_server::CaService;
use proto_public::metalmesh::admin::v1::{CaPhase, CaRoot, CaRotation};
use proto_types::Timestamp;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

/// Default overlap of a replacement: as long as an agent may be away and still resume without a
/// ticket.
const OVERLAP: Duration = Duration::from_millis(state::RESUME_MAX_MS);
/// Default overlap of a forced replacement.
const OVERLAP_FORCED: Duration = Duration::from_secs(3600);

#[tonic::async_trait]
impl CaService for Services {
    async fn get(
        &self,
        request: Request<mesh::CaServiceGetRequest>,
    ) -> ApiResult<mesh::CaServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let now = self.gate.now();
        let found = self.gate.read(&caller, |tables| {
            Ok(mesh::CaServiceGetResponse {
                roots: roots(tables),
                rotation: current(tables).map(|found| rotation(tables, found, now)),
            })
        });
        ok(found.await?)
    }

    async fn rotate(
        &self,
        request: Request<mesh::CaServiceRotateRequest>,
    ) -> ApiResult<mesh::CaServiceRotateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let overlap = match (request.overlap_minutes, request.force) {
            (0, false) => OVERLAP,
            (0, true) => OVERLAP_FORCED,
            (minutes, _) => Duration::from_secs(u64::from(minutes) * 60),
        };
        let is_open = self
            .gate
            .read(&caller, |tables| {
                Ok(current(tables).is_some_and(|rotation| rotation.phase != state::CaPhase::Done))
            })
            .await?;
        let reply = if request.force && is_open {
            let life = u64::try_from(overlap.as_millis()).unwrap_or(u64::MAX);
            let until = self.gate.now().plus_ms(life);
            self.gate
                .propose(&caller, ForceCaRotation { until })
                .await?
        } else {
            let next = self.node.pki.next_generation(overlap, request.force);
            self.gate.propose(&caller, next.map_err(of_pki)?).await?
        };
        let begun = reply.ca_rotation().map_err(of_state)?;
        let now = self.gate.now();
        let shown = self
            .gate
            .read(&caller, |tables| Ok(rotation(tables, &begun, now)))
            .await?;
        ok(mesh::CaServiceRotateResponse {
            rotation: Some(shown),
        })
    }
}

fn current(tables: &Tables) -> Option<&state::CaRotation> {
    let found = tables.get::<state::CaRotation>(&state::CaRotation::ONE.to_owned());
    found.map(AsRef::as_ref)
}

fn roots(tables: &Tables) -> Vec<CaRoot> {
    let newest = current(tables).map_or(1, |rotation| rotation.to);
    let all = tables.all::<CaRecord>();
    let mut roots: Vec<CaRoot> = all
        .filter(|record| record.id.starts_with("root"))
        .map(|record| CaRoot {
            generation: record.generation,
            sha256: sha256_hex(&record.certificate),
            created_at: time(record.created_at),
            expires_at: time(record.not_after),
            signs: record.generation == newest,
        })
        .collect();
    roots.sort_by_key(|root| root.generation);
    roots
}

fn rotation(tables: &Tables, record: &state::CaRotation, now: Timestamp) -> CaRotation {
    let phase = match record.phase {
        state::CaPhase::Overlap => CaPhase::Overlap,
        state::CaPhase::Switched => CaPhase::Switched,
        state::CaPhase::Done => CaPhase::Done,
    };
    let waiting = tables
        .all::<state::Identity>()
        .filter(|identity| identity.is_live(now) && identity.authority < record.to)
        .count();
    CaRotation {
        from: record.from,
        to: record.to,
        phase: phase.into(),
        forced: record.is_forced,
        began_at: time(record.began_at),
        until: time(record.until),
        switched_at: record.switched_at.and_then(time),
        done_at: record.done_at.and_then(time),
        waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
    }
}

fn of_pki(error: PkiError) -> Status {
    match error {
        PkiError::Store(error) => of_store(error),
        PkiError::Refused(error) => of_state(error),
        other => {
            tracing::error!(error = %other, "the certificate authority could not be replaced");
            refused(ErrorCode::Internal, "the authority could not be made")
        }
    }
}
