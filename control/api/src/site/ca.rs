//! The certificate authority: what is trusted, and its replacement.

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

use crate::services::{Answer, Services, ok};

/// Overlap of a replacement whose request does not say: as long as an agent may be away and come
/// back without a ticket.
const OVERLAP: Duration = Duration::from_millis(state::RESUME_MAX_MS);
/// The same when it is forced.
const OVERLAP_FORCED: Duration = Duration::from_secs(3600);

#[tonic::async_trait]
impl CaService for Services {
    async fn get(
        &self,
        request: Request<mesh::CaServiceGetRequest>,
    ) -> Answer<mesh::CaServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let now = self.gate.now();
        let found = self.gate.read(&caller, |tables| {
            Ok(mesh::CaServiceGetResponse {
                roots: roots(tables),
                rotation: current(tables).map(|it| rotation(tables, it, now)),
            })
        });
        ok(found.await?)
    }

    async fn rotate(
        &self,
        request: Request<mesh::CaServiceRotateRequest>,
    ) -> Answer<mesh::CaServiceRotateResponse> {
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
                Ok(current(tables).is_some_and(|it| it.phase != state::CaPhase::Done))
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
    let newest = current(tables).map_or(1, |it| it.to);
    let all = tables.all::<CaRecord>();
    let mut roots: Vec<CaRoot> = all
        .filter(|it| it.id.starts_with("root"))
        .map(|it| CaRoot {
            generation: it.generation,
            sha256: sha256_hex(&it.certificate),
            created_at: time(it.created_at),
            expires_at: time(it.not_after),
            signs: it.generation == newest,
        })
        .collect();
    roots.sort_by_key(|it| it.generation);
    roots
}

fn rotation(tables: &Tables, it: &state::CaRotation, now: Timestamp) -> CaRotation {
    let phase = match it.phase {
        state::CaPhase::Overlap => CaPhase::Overlap,
        state::CaPhase::Switched => CaPhase::Switched,
        state::CaPhase::Done => CaPhase::Done,
    };
    let waiting = tables
        .all::<state::Identity>()
        .filter(|identity| identity.is_live(now) && identity.authority < it.to)
        .count();
    CaRotation {
        from: it.from,
        to: it.to,
        phase: phase.into(),
        forced: it.is_forced,
        began_at: time(it.began_at),
        until: time(it.until),
        switched_at: it.switched_at.and_then(time),
        done_at: it.done_at.and_then(time),
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
