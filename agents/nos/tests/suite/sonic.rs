//! SONiC's back-end on a real redis.

use std::sync::atomic::Ordering;
use std::time::Duration;

use agents_nos::chaos::Chaos;
use agents_nos::model::Tunnel;
use agents_nos::sonic::{Address, Config, Sonic};
use agents_nos::{Membership, Nos, Refusal, Step, SwitchObject, fit, plan};

use crate::back_ends::RATES;
use crate::run::run;
use crate::sonic_switch::{OTHERS, Switch};
use crate::states::{PORTS, port, private, segment, states, vni};

#[tokio::test(flavor = "multi_thread")]
async fn sonic_passes() {
    if let Some(switch) = Switch::start(0, &PORTS, None) {
        switch.remove_map_of_site();
        run(&switch.sonic).await;
        switch.client().set(4, OTHERS[4].0, OTHERS[4].1);
        switch.check();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sonic_with_faults_passes() {
    if let Some(switch) = Switch::start(7, &PORTS, None) {
        switch.remove_map_of_site();
        let chaos = Chaos::new(switch.sonic, 7, RATES);
        run(&chaos).await;
        assert_eq!(switch.orchagent.wrong(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tunnel_ends_is_refused_by_name() {
    let Some(switch) = Switch::start(0, &PORTS, None) else {
        return;
    };
    let seen = switch.sonic.observe().await.unwrap().model;
    let (_, provisioning) = states().swap_remove(4);
    let problems = fit(&seen, &provisioning, switch.sonic.capabilities()).problems;
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let lacks = "segment 4000 needs lists of remote tunnel ends, which this switch lacks";
    assert_eq!(told, [lacks]);
    assert!(matches!(problems[0].refusal, Refusal::Unsupported(_)));
    assert_eq!(problems[0].object, SwitchObject::Segment(vni(4000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_port_is_isolated_by_the_asic_and_by_the_kernel() {
    let Some(switch) = Switch::start(0, &PORTS, None) else {
        return;
    };
    let (_, mut provisioning) = states().swap_remove(4);
    // As with EVPN: the segment ends at the switch.
    let made = provisioning.segments.get_mut(&vni(4000)).unwrap();
    made.tunnel = Tunnel::Absent;
    made.remotes.clear();
    switch.reach(&provisioning).await;
    let place = async |name: &str| {
        let seen = switch.sonic.observe().await.unwrap().model;
        seen.ports[name].membership.clone()
    };
    let flag = |name: &str| {
        let kernel = switch.orchagent.kernel.path();
        kernel.join(name).join("brport/isolated")
    };
    assert_eq!(place("swp1").await, private(4000));
    assert_eq!(place("swp3").await, segment(4000));
    let rows = |db| switch.client().rows(db).unwrap();
    let group = &rows(0)["ISOLATION_GROUP_TABLE:metalmesh"];
    assert_eq!(
        (&*group["PORTS"], &*group["MEMBERS"]),
        ("swp1,swp2", "swp1,swp2")
    );
    let maps = rows(4)
        .into_keys()
        .filter(|key| key.ends_with("mm_segment_4000"));
    assert_eq!(
        maps.collect::<Vec<_>>(),
        ["METALMESH_SEGMENT|mm_segment_4000"]
    );
    // What only one of both knows is nobody's place, and is healed.
    std::fs::write(flag("swp1"), "0").unwrap();
    assert!(matches!(place("swp1").await, Membership::Foreign(_)));
    switch.reach(&provisioning).await;
    assert_eq!(place("swp1").await, private(4000));
    assert_eq!(std::fs::read_to_string(flag("swp1")).unwrap().trim(), "1");
    // A tenant's port is not isolated any more.
    switch.reach(&states().swap_remove(1).1).await;
    assert_eq!(place("swp1").await, segment(10));
    assert_eq!(std::fs::read_to_string(flag("swp1")).unwrap().trim(), "0");
    assert_eq!(rows(0)["ISOLATION_GROUP_TABLE:metalmesh"]["PORTS"], "");
    switch.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_sonic_does_not_take_stays_in_quarantine() {
    let Some(mut switch) = Switch::start(0, &PORTS, None) else {
        return;
    };
    switch.sonic = Sonic::open(Config {
        ports: vec!["swp*".into()],
        redis: Address::Unix(switch.redis.socket()),
        confirm: Duration::from_millis(50),
        ..Config::default()
    });
    let seen = switch.sonic.observe().await.unwrap().model;
    let (_, desired) = states().swap_remove(1);
    let steps = plan(&seen, &desired, switch.sonic.capabilities()).steps;
    let is_entry = |step: &&Step| matches!(step, Step::Enter { .. });
    for step in steps
        .iter()
        .filter(|step| matches!(step, Step::EnsureSegment { .. }))
    {
        while switch.sonic.apply(step).await.is_err() {}
    }
    switch.orchagent.stalls.store(true, Ordering::Relaxed);
    let entry = steps.iter().find(is_entry).unwrap();
    let refused = switch.sonic.apply(entry).await.unwrap_err();
    let cause = std::error::Error::source(&refused).unwrap().to_string();
    assert!(
        cause.starts_with("SONiC has not confirmed VLAN_MEMBER_TABLE:"),
        "{cause}"
    );
    let seen = switch.sonic.observe().await.unwrap().model;
    assert_eq!(seen.ports["swp1"].membership, Membership::Quarantine);
    // Written by hand, and on its way: nobody's place, but no quarantine.
    switch.client().set(
        4,
        "VLAN_MEMBER|Vlan50|swp1",
        &[("tagging_mode", "untagged")],
    );
    let seen = switch.sonic.observe().await.unwrap().model;
    assert!(matches!(
        seen.ports["swp1"].membership,
        Membership::Foreign(_)
    ));
    assert_ne!(seen.ports["swp1"].membership, segment(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hand_is_noticed_and_a_dead_redis_is_told() {
    let Some(mut switch) = Switch::start(0, &PORTS, None) else {
        return;
    };
    let wait = Duration::from_secs(10);
    let mut client = switch.client();
    let told = async {
        loop {
            client.set(4, "PORT|swp1", &[("admin_status", "up")]);
            let news = tokio::time::timeout(Duration::from_millis(100), switch.sonic.changed());
            if news.await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(wait, told).await.unwrap();
    switch.redis.end();
    let error = switch.sonic.observe().await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        cause.contains("redis at ") && cause.ends_with(" is away"),
        "{cause}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbours_are_those_of_sonic() {
    let Some(switch) = Switch::start(0, &PORTS, None) else {
        return;
    };
    let row = [
        ("lldp_rem_chassis_id", "02:00:00:00:00:aa"),
        ("lldp_rem_port_id", "02:00:00:00:00:bb"),
        ("lldp_rem_sys_name", "machine"),
    ];
    switch.client().set(0, "LLDP_ENTRY_TABLE:swp2", &row);
    let table = switch.sonic.neighbours().unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(20), table.changed());
    heard.await.unwrap();
    let frames = table.on("swp2");
    assert_eq!(frames[0].source, [2, 0, 0, 0, 0, 0xbb]);
    assert_eq!(frames[0].system_name, "machine");
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_and_optics_are_those_of_sonic() {
    let Some(switch) = Switch::start(0, &PORTS, None) else {
        return;
    };
    let mut client = switch.client();
    let counters = [
        ("SAI_PORT_STAT_IF_IN_OCTETS", "1000"),
        ("SAI_PORT_STAT_IF_OUT_UCAST_PKTS", "7"),
        ("SAI_PORT_STAT_IF_OUT_NON_UCAST_PKTS", "2"),
        ("SAI_PORT_STAT_IF_IN_ERRORS", "3"),
    ];
    client.set(2, "COUNTERS:oid:swp2", &counters);
    let info = [
        ("manufacturer", "Maker "),
        ("model", "SR4"),
        ("serial", "X1"),
    ];
    client.set(6, "TRANSCEIVER_INFO|swp2", &info);
    let sensor = [
        ("rx1power", "-2.35"),
        ("tx1power", "N/A"),
        ("temperature", "31.6"),
    ];
    client.set(6, "TRANSCEIVER_DOM_SENSOR|swp2", &sensor);
    let telemetry = switch.sonic.telemetry().await.unwrap();
    assert_eq!(telemetry.ports[&port("swp1")].optics, None);
    let seen = &telemetry.ports[&port("swp2")];
    let counters = seen.counters.unwrap();
    assert_eq!(
        (counters.rx_bytes, counters.tx_packets, counters.rx_errors),
        (1000, 9, 3)
    );
    let optics = seen.optics.clone().unwrap();
    assert_eq!((&*optics.vendor, &*optics.part), ("Maker", "SR4"));
    assert_eq!(
        (optics.rx_power, optics.tx_power, optics.temperature),
        (-235, 0, 32)
    );
}
