//! The prefixes that firewalls announce by EVPN, compared with those that they may announce.
//!
//! FRR 8.4.4 cannot compare them when they arrive, so that they are read at intervals. A prefix that
//! is there twice in a row, [`CONFIRM`] apart, counts: control may have sent the filter of an address
//! that a firewall was quick to announce in between.

use std::collections::BTreeMap;
use std::time::Duration;

use agents_nos::Nos;
use agents_nos::model::PortName;
use base_runtime::Chain;
use proto_mesh::{PortPlace, SwitchDesired};
use proto_types::IpNet;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::debug;

use crate::firewall_routes::FirewallRoutes;
use crate::suspension::Suspended;

/// Time between a finding and the second look at it. Control's changes are at both leaves within a
/// second (`./dev bench switch`).
const CONFIRM: Duration = Duration::from_secs(2);

/// A prefix of each VNI of a firewall in which there is one that does not belong.
pub(crate) type Findings = BTreeMap<Suspended, IpNet>;

/// Looks for prefixes that firewalls may not announce. A port that cannot be read has none: the next
/// reading follows soon.
pub(crate) async fn audit<S: Nos>(
    switch: &S,
    desired: &watch::Receiver<Option<SwitchDesired>>,
) -> Findings {
    let first = look(switch, desired).await;
    if first.is_empty() {
        return first;
    }
    sleep(CONFIRM).await;
    let mut second = look(switch, desired).await;
    second.retain(|of, _| first.contains_key(of));
    second
}

async fn look<S: Nos>(switch: &S, desired: &watch::Receiver<Option<SwitchDesired>>) -> Findings {
    let ports: Vec<PortName> = firewalls(desired.borrow().as_ref()).into_keys().collect();
    let mut findings = Findings::new();
    for port in ports {
        let announced = match switch.announced(&port).await {
            Ok(announced) => announced,
            Err(error) => {
                debug!(%port, error = %Chain(&error), "routes of a firewall cannot be read");
                continue;
            }
        };
        // Read after the routes, so that it is not older than they are.
        let permitted = firewalls(desired.borrow().as_ref());
        let Some(routes) = permitted.get(&port) else {
            continue;
        };
        for route in &announced {
            for vni in &route.vnis {
                if !routes.permits(*vni, &route.prefix) {
                    let of = Suspended {
                        port: port.to_string(),
                        vni: Some(*vni),
                    };
                    findings.entry(of).or_insert(route.prefix);
                }
            }
        }
    }
    findings
}

/// The firewalls whose prefixes control knows. One with an invalid filter has no session.
fn firewalls(desired: Option<&SwitchDesired>) -> BTreeMap<PortName, FirewallRoutes> {
    let ports = desired.iter().flat_map(|desired| &desired.ports);
    let firewalls = ports.filter(|port| port.place == i32::from(PortPlace::Underlay));
    let firewalls = firewalls.filter_map(|port| {
        let routes = FirewallRoutes::of(port.filter.as_ref()?).ok()??;
        Some((PortName::new(&port.name).ok()?, routes))
    });
    firewalls.collect()
}
