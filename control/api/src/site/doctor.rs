//! Facts about the node that answers, for `metalmesh doctor`.

use control_convert::time;
use control_gate::refusal::of_store;
use control_state::{CaRecord, FEATURE_LEVEL, Tables, strangers};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::doctor_service_server::DoctorService;
use tonic::Request;

use crate::doctor::Premises;
use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl DoctorService for Services {
    async fn get(
        &self,
        _request: Request<mesh::DoctorServiceGetRequest>,
    ) -> ApiResult<mesh::DoctorServiceGetResponse> {
        let store = &self.gate.store;
        let authority = store.read_local(authority).map_err(of_store)?;
        let metrics = store.metrics();
        let Premises {
            started_at,
            snapshot_every,
            disk_bytes,
            disk_free_bytes,
            api_certificate_ends,
            exposed,
            has_schedule,
            backups,
            unobserved,
            turned_away,
        } = self.node.surveyor.look();
        let unknown = store.read_local(unknown_machines).map_err(of_store)?;
        let serves_sessions = store.is_leader();
        let unobserved = unobserved.iter().map(ToString::to_string);
        let turned_away = turned_away
            .into_iter()
            .map(|refused| mesh::DoctorTurnedAway {
                identity: refused.identity,
                times: refused.times,
                last: time(refused.last),
            });
        let backups = backups.into_iter().map(|backup| mesh::DoctorBackup {
            place: backup.place,
            newest: backup.newest.and_then(time),
            error: backup.error,
            every_minutes: backup.every_minutes,
        });
        ok(mesh::DoctorServiceGetResponse {
            node: metrics.node_id,
            leader: metrics.leader.unwrap_or(0),
            now: time(self.gate.now()),
            started_at: time(started_at),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            feature_level: FEATURE_LEVEL,
            last_log: metrics.last_log.unwrap_or(0),
            applied: metrics.applied.unwrap_or(0),
            snapshot: metrics.snapshot.unwrap_or(0),
            purged: metrics.purged.unwrap_or(0),
            snapshot_every,
            sync_p50_us: metrics.syncs.p50_us,
            sync_p99_us: metrics.syncs.p99_us,
            disk_bytes,
            disk_free_bytes,
            api_certificate_ends: api_certificate_ends.and_then(time),
            authority,
            exposed,
            has_schedule,
            backups: backups.collect(),
            serves_sessions,
            unobserved_partitions: unobserved.filter(|_| serves_sessions).collect(),
            turned_away: turned_away.collect(),
            unknown_machines: unknown,
        })
    }
}

fn unknown_machines(tables: &Tables) -> Vec<mesh::DoctorUnknownMachines> {
    let all = strangers(tables).into_iter();
    all.map(|found| mesh::DoctorUnknownMachines {
        partition: found.partition.to_string(),
        machines: u32::try_from(found.machines).unwrap_or(u32::MAX),
        macs: found.macs.iter().map(ToString::to_string).collect(),
        is_full: found.is_full,
    })
    .collect()
}

/// Certificates of the authority that sign or are trusted. Retired ones, which are trusted only
/// until an overlap ends, are left out.
fn authority(tables: &Tables) -> Vec<mesh::DoctorAuthority> {
    let all = tables.all::<CaRecord>().filter(|record| !record.retired);
    all.map(|record| mesh::DoctorAuthority {
        id: record.id.clone(),
        ends: time(record.not_after),
    })
    .collect()
}
