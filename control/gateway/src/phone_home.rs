//! Installed machines, under the identity of the project that has them.

use control_state::life;
use control_state::{EventKind, PhoneHome};
use proto_link::{LinkStatus, Peer};
use proto_mesh::{PhoneHomeRequest, PhoneHomeResponse, PhoneHomeService};

use crate::access;
use crate::parts::GatewayParts;

/// When a machine calls again, seconds.
const INTERVAL_S: u32 = 60;

impl PhoneHomeService for GatewayParts {
    async fn phone_home(
        &self,
        peer: &Peer,
        request: PhoneHomeRequest,
    ) -> Result<PhoneHomeResponse, LinkStatus> {
        let (project, id) = access::project_machine(peer)?;
        let now = self.store.now();
        let heartbeat = self.look(|t| {
            access::owns(t, peer, project, id)?;
            Ok::<_, LinkStatus>(life::event_is_heartbeat(t, id, EventKind::PhonedHome))
        })??;
        self.presence.heard_machine(id, now);
        if !heartbeat {
            let message = format!("kernel {}, up {} s", request.kernel, request.uptime_s);
            self.propose(
                peer,
                PhoneHome {
                    id,
                    project,
                    message,
                    time: now,
                },
            )
            .await?;
        }
        Ok(PhoneHomeResponse {
            interval_s: INTERVAL_S,
        })
    }
}
