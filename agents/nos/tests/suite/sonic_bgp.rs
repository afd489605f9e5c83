//! SONiC's back-end with a real FRR beside a real redis.

use agents_nos::chaos::Chaos;
use agents_nos::frr::Vtysh;
use agents_nos::model::Bgp;
use agents_nos::{Capability, Nos, SwitchModel, plan};
use proto_types::Asn;

use crate::back_ends::RATES;
use crate::daemons;
use crate::run::run_between;
use crate::sonic_switch::{OTHERS, Switch};
use crate::states::{PORTS, port, states};

/// States with all that FRR keeps, and one without.
const STATES: [&str; 3] = ["provisioning", "a tenant", "a drained tenant"];

/// FRR in a namespace of its own, and the switch that it belongs to. `None` where something is
/// missing, which is said.
async fn start(test: &str, seed: u64) -> Option<(daemons::Switch, Switch)> {
    if !daemons::is_available() {
        return None;
    }
    let frr = daemons::Switch::start(test, &[]).await;
    let vtysh = Vtysh {
        command: ["vtysh", "-N", &frr.name].map(str::to_owned).to_vec(),
        ..Vtysh::default()
    };
    let switch = Switch::start(seed, &PORTS, Some(vtysh))?;
    switch.remove_map_of_site();
    Some((frr, switch))
}

#[tokio::test(flavor = "multi_thread")]
async fn sonic_with_frr_passes() {
    let Some((_frr, switch)) = start("sonic", 0).await else {
        return;
    };
    assert!(switch.sonic.capabilities().contains(&Capability::Bgp));
    run_between(&switch.sonic, &STATES).await;
    switch.client().set(4, OTHERS[4].0, OTHERS[4].1);
    switch.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn sonic_with_frr_and_faults_passes() {
    let Some((_frr, switch)) = start("sonicf", 7).await else {
        return;
    };
    let chaos = Chaos::new(switch.sonic, 7, RATES);
    run_between(&chaos, &["nothing", "a tenant"]).await;
    assert_eq!(switch.orchagent.wrong(), Vec::<String>::new());
}

/// The tenant's leaf with a spine that speaks EVPN.
fn leaf() -> SwitchModel {
    let (_, mut leaf) = states().swap_remove(8);
    let tenant = leaf.bgp.take().unwrap();
    let mut bgp = Bgp::new(Asn(4_200_000_011), tenant.router_id()).unwrap();
    bgp.vrfs = tenant.vrfs;
    let of_tenant = bgp.vrfs.values().next().unwrap();
    let mut spine = of_tenant.values().next().unwrap().clone();
    spine.has_evpn = true;
    bgp.underlay.insert(port("swp3"), spine);
    leaf.bgp = Some(bgp);
    leaf.ports.get_mut(&port("swp3")).unwrap().membership = agents_nos::Membership::Underlay;
    leaf.vtep = Some([10, 9, 0, 7].into());
    leaf
}

#[tokio::test(flavor = "multi_thread")]
async fn frr_announces_the_loopback_of_sonic_and_a_crash_of_it_is_healed() {
    let Some((mut frr, switch)) = start("sonicl", 0).await else {
        return;
    };
    let desired = leaf();
    let capabilities = switch.sonic.capabilities();
    // Ports of machines wait for the fabric, which this spine never is.
    let mut down = desired.clone();
    for port in down.ports.values_mut() {
        port.admin_up = false;
    }
    switch.reach(&down).await;
    let running = frr.vtysh("show running-config");
    for line in [
        " match interface Loopback0",
        "vrf Vrf27\n vni 27",
        "router bgp 4200000011 vrf Vrf27",
        " neighbor swp1 interface",
        "  advertise-all-vni",
        "  neighbor swp3 activate",
    ] {
        assert!(running.contains(line), "{line} is missing in {running}");
    }
    let seen = switch.sonic.observe().await.unwrap().model;
    assert_eq!(plan(&seen, &down, capabilities).steps, []);
    frr.crash_bgpd().await;
    assert!(
        switch.sonic.observe().await.is_err(),
        "no state without bgpd"
    );
    frr.restart_bgpd().await;
    let seen = switch.sonic.observe().await.unwrap().model;
    assert_eq!(seen.bgp, None);
    switch.reach(&down).await;
    let seen = switch.sonic.observe().await.unwrap().model;
    assert_eq!(plan(&seen, &down, capabilities).steps, []);
    // zebra forgets the VNI, which SONiC still has: the VRF is not whole.
    frr.vtysh("configure terminal\nvrf Vrf27\nno vni 27");
    let seen = switch.sonic.observe().await.unwrap().model;
    assert!(!seen.vrfs.values().all(|vrf| vrf.is_intact));
    switch.reach(&down).await;
    let seen = switch.sonic.observe().await.unwrap().model;
    assert_eq!(plan(&seen, &down, capabilities).steps, []);
    switch.reach(&SwitchModel::default()).await;
    assert_eq!(switch.sonic.observe().await.unwrap().model.bgp, None);
}
