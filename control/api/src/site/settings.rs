//! Settings of the cluster: retention of the audit trail, budgets.

use control_convert::{required, time};
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state};
use control_state::{self as state, SetSettings, query};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::settings_service_server::SettingsService;
use proto_types::Timestamp;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl SettingsService for Services {
    async fn get(
        &self,
        request: Request<mesh::SettingsServiceGetRequest>,
    ) -> ApiResult<mesh::SettingsServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let settings = self
            .gate
            .read(&caller, |tables| Ok(query::settings(tables)));
        ok(mesh::SettingsServiceGetResponse {
            settings: Some(shown(&settings.await?)),
        })
    }

    async fn set(
        &self,
        request: Request<mesh::SettingsServiceSetRequest>,
    ) -> ApiResult<mesh::SettingsServiceSetResponse> {
        let caller = Caller::of(&request)?;
        let wanted = required("settings", request.into_inner().settings)?;
        let before = self
            .gate
            .read(&caller, |tables| Ok(query::settings(tables)))
            .await?;
        let op = SetSettings {
            audit: wanted
                .audit
                .map(|audit| retention(before.audit, &audit))
                .transpose()?,
            budgets: wanted
                .budgets
                .map(|wanted| budgets(before.budgets, &wanted)),
        };
        let reply = self.gate.propose(&caller, op).await?;
        let set = reply.settings().map_err(of_state)?;
        ok(mesh::SettingsServiceSetResponse {
            settings: Some(shown(&set)),
        })
    }
}

fn retention(
    before: state::AuditRetention,
    wanted: &mesh::AuditRetention,
) -> Result<state::AuditRetention, Status> {
    Ok(state::AuditRetention {
        records_max: wanted.records_max.unwrap_or(before.records_max),
        unread_max: wanted.unread_max.unwrap_or(before.unread_max),
        age_max_ms: match &wanted.age_max {
            Some(age) => age_limit(age)?,
            None => before.age_max_ms,
        },
    })
}

/// The maximum age of audit records, milliseconds. `None` means no limit, which the contract writes
/// as zero.
///
/// # Errors
/// `invalid_argument` for a negative duration.
fn age_limit(age: &prost_types::Duration) -> Result<Option<u64>, Status> {
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(age.seconds), u64::try_from(age.nanos)) else {
        let rule = "must not be negative; 0s means no limit";
        return Err(invalid("audit.age_max", rule));
    };
    // Rounded up: a part of a millisecond must not become "no limit".
    let parts_ms = nanos.div_ceil(1_000_000);
    let age_ms = seconds.saturating_mul(1_000).saturating_add(parts_ms);
    Ok((age_ms > 0).then_some(age_ms))
}

fn budgets(before: state::Budgets, wanted: &mesh::Budgets) -> state::Budgets {
    state::Budgets {
        tokens_per_user: wanted.tokens_per_user.unwrap_or(before.tokens_per_user),
        tenants_per_user: wanted.tenants_per_user.unwrap_or(before.tenants_per_user),
        projects_per_tenant: wanted
            .projects_per_tenant
            .unwrap_or(before.projects_per_tenant),
        invites_per_user: wanted.invites_per_user.unwrap_or(before.invites_per_user),
        ips_per_project: wanted.ips_per_project.unwrap_or(before.ips_per_project),
        networks_per_project: wanted
            .networks_per_project
            .unwrap_or(before.networks_per_project),
    }
}

fn shown(settings: &state::Settings) -> mesh::Settings {
    let state::Settings { audit, budgets, .. } = settings;
    let seconds = audit.age_max_ms.unwrap_or(0) / 1_000;
    mesh::Settings {
        audit: Some(mesh::AuditRetention {
            records_max: Some(audit.records_max),
            unread_max: Some(audit.unread_max),
            age_max: Some(prost_types::Duration {
                seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
                nanos: 0,
            }),
        }),
        budgets: Some(mesh::Budgets {
            tokens_per_user: Some(budgets.tokens_per_user),
            tenants_per_user: Some(budgets.tenants_per_user),
            projects_per_tenant: Some(budgets.projects_per_tenant),
            invites_per_user: Some(budgets.invites_per_user),
            ips_per_project: Some(budgets.ips_per_project),
            networks_per_project: Some(budgets.networks_per_project),
        }),
        updated_at: match settings.updated_at {
            Timestamp::ZERO => None,
            at => time(at),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_limit_is_never_negative_and_only_zero_is_no_limit() {
        let limit = |seconds, nanos| age_limit(&prost_types::Duration { seconds, nanos });
        for (seconds, nanos) in [(-1, 0), (0, -1), (i64::MIN, 0)] {
            let refused = limit(seconds, nanos).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::InvalidArgument);
            assert!(refused.message().contains("audit.age_max"), "{refused}");
        }
        assert_eq!(limit(0, 0).unwrap(), None);
        assert_eq!(limit(0, 1).unwrap(), Some(1));
        assert_eq!(limit(3600, 0).unwrap(), Some(3_600_000));
    }
}
