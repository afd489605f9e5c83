//! Sessions and sizes of EVPN, from FRR.

use super::Router;
use crate::back_end::NosError;
use crate::frr::InterfaceName;
use crate::frr::announced::AnnouncedPrefix;
use crate::frr::sessions::BgpSession;
use crate::model::PortName;
use crate::telemetry::{EvpnSizes, Telemetry};

/// Address family of EVPN in FRR's words.
const EVPN: &str = "l2VpnEvpn";

impl Router {
    /// IP prefixes that the neighbour on a port announces by EVPN.
    pub(crate) async fn announced(
        &self,
        port: &PortName,
    ) -> Result<Vec<AnnouncedPrefix>, NosError> {
        // A port that FRR cannot have has no session.
        let Ok(port) = InterfaceName::new(port.as_ref()) else {
            return Ok(Vec::new());
        };
        Ok(self.frr.announced(&port).await?)
    }

    /// Adds the sessions, their failures and the sizes of EVPN.
    pub(crate) async fn read_sessions(&self, telemetry: &mut Telemetry) -> Result<(), NosError> {
        telemetry.sessions = self.frr.sessions().await?;
        if !telemetry.sessions.iter().all(BgpSession::is_established) {
            telemetry.failures = self.frr.session_failures().await?;
        }
        let vnis = self.frr.vnis().await?;
        let routed = vnis.iter().filter(|vni| vni.routed).count();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let evpn = telemetry.sessions.iter().filter(|one| one.family == EVPN);
        let routes = evpn.map(|session| session.table).max();
        if routes.is_some() || !vnis.is_empty() {
            telemetry.evpn = Some(EvpnSizes {
                l2_vnis: count(vnis.len() - routed),
                l3_vnis: count(routed),
                routes: routes.unwrap_or_default(),
            });
        }
        Ok(())
    }
}
