//! The VPN by which operators reach firewalls. Each project is one user of it.

use std::sync::Arc;
use std::time::Duration;

use control_convert::{parse, parse_opt, time};
use control_front::listing::{EncodedItems, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::{invalid, refused};
use control_state::{ErrorCode, Project};
use control_vpn::{Vpn, WantedVpnKey};
use proto_public::admin::v2 as admin;
use proto_public::admin::v2::vpn_service_server::VpnService;
use proto_public::api::v2;
use proto_types::ProjectId;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

use crate::resource::vpn::{LIFE_DEFAULT, failed};

/// Longest life of a key. A request for more is refused.
const LIFE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

#[tonic::async_trait]
impl VpnService for Services {
    async fn auth_key(
        &self,
        request: Request<admin::VpnServiceAuthKeyRequest>,
    ) -> ApiResult<admin::VpnServiceAuthKeyResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let life = life(request.expires)?;
        let read = |tables: &control_state::Tables| tables.require::<Project>(&project).map(drop);
        self.gate.read(&caller, read).await?;
        let vpn = self.vpn()?;
        let wanted = WantedVpnKey {
            user: project.to_string(),
            ephemeral: request.ephemeral,
            reusable: request.reusable,
            life,
        };
        let made = vpn.key(wanted).await.map_err(failed)?;
        ok(admin::VpnServiceAuthKeyResponse {
            address: vpn.address().to_owned(),
            auth_key: made.key,
            ephemeral: request.ephemeral,
            expires_at: time(made.expires_at),
            created_at: time(made.created_at),
            reusable: request.reusable,
        })
    }

    async fn list_nodes(
        &self,
        request: Request<admin::VpnServiceListNodesRequest>,
    ) -> ApiResult<admin::VpnServiceListNodesResponse> {
        let project = request.into_inner().project;
        let project: Option<ProjectId> = parse_opt("project", project.as_ref())?;
        let user = project.map(|project| project.to_string());
        let found = self.vpn()?.nodes(user.as_deref()).await.map_err(failed)?;
        let nodes = found.into_iter().map(|node| v2::VpnNode {
            id: node.id,
            name: node.name,
            project: node.user,
            ip_addresses: node.addresses,
            last_seen: node.last_seen.and_then(time),
            online: node.online,
        });
        listing_encoded(nodes.collect::<EncodedItems>())
    }
}

fn life(wanted: Option<prost_types::Duration>) -> Result<Duration, Status> {
    let Some(wanted) = wanted else {
        return Ok(LIFE_DEFAULT);
    };
    let life = u64::try_from(wanted.seconds).map_or(Duration::ZERO, Duration::from_secs);
    if life.is_zero() || life > LIFE_MAX {
        return Err(invalid("expires", "must be 1 s to 365 days"));
    }
    Ok(life)
}

impl Services {
    fn vpn(&self) -> Result<&Arc<dyn Vpn>, Status> {
        let vpn = self.node.vpn.as_ref();
        vpn.ok_or_else(|| refused(ErrorCode::NoVpn, "no VPN is configured"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_of_keys() {
        let of = |seconds| life(Some(prost_types::Duration { seconds, nanos: 0 }));
        assert_eq!(life(None).unwrap(), LIFE_DEFAULT);
        assert_eq!(of(60).unwrap(), Duration::from_secs(60));
        for bad in [-1, 0, 366 * 24 * 3600] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
