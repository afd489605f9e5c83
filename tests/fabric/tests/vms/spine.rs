//! The only spine fails.

use super::power::Power;
use super::rack::Spine;
use super::site::Site;
use super::traffic::Traffic;

/// Name of the spine.
const NAME: &str = "spine21";

/// Takes the spine's power and gives it back. Machines on both leaves need no spine to reach each
/// other, unless one uses one leaf alone: a bond with an active cable.
pub(crate) async fn fails(site: &Site, power: &Power, traffic: &mut Traffic) {
    let since = traffic.now();
    power.off(NAME);
    traffic.measure(power, "the spine stops", &since, false);
    let since = traffic.now();
    traffic.measure(power, "without a spine", &since, false);
    let since = traffic.now();
    power.on(NAME);
    assert!(Spine::new().has_sessions().await, "the spine's sessions");
    traffic.measure(power, "until the spine is back", &since, false);
    let since = traffic.now();
    traffic.measure(power, "the spine is back", &since, true);
    traffic.whole(site).await;
    traffic.cross(site).await;
}
