//! Sessions between two FRRs: what a delta does not name goes on, and a filter takes effect.

use std::time::{Duration, Instant};

use agents_nos::frr::sessions::BgpSession;
use agents_nos::frr::{
    BgpInstance, BgpVrf, FrrConfig, Neighbour, PeerSettings, Redistribute, Remote, RemoteAs,
};

use super::daemons::{DEADLINE, Switch, ip, is_available};
use super::live::reconcile;
use super::sample::{asn, filter, join, leaf, machine, or_longer, port, tenant};

/// FRR itself judges routes again this long after a filter changed.
const OWN_DELAY: Duration = Duration::from_secs(5);

fn machine_config() -> FrrConfig {
    let mut instance = BgpInstance::new(asn(4_210_000_001));
    instance.router_id = Some([10, 1, 0, 1].into());
    instance.ebgp_requires_policy = false;
    instance.redistribute.ipv4 = Redistribute::Connected;
    instance.redistribute.ipv6 = Redistribute::Connected;
    let mut settings = PeerSettings::default();
    settings.families.ipv4.activate = true;
    settings.families.ipv6.activate = true;
    let leaf = Neighbour {
        remote: Remote::As(RemoteAs::External),
        settings,
    };
    instance.neighbours.insert(port("eth0"), leaf);
    let mut config = FrrConfig::default();
    config.bgp.insert(BgpVrf::Default, instance);
    config
}

/// A leaf whose tenant is in the default VRF: the host's kernel may have no other.
fn leaf_config() -> FrrConfig {
    let mut config = FrrConfig::default();
    let mut instance = BgpInstance::new(asn(4_200_000_011));
    instance.router_id = Some([10, 0, 0, 11].into());
    instance.neighbours.insert(port("swp1"), machine("tenant"));
    config.bgp.insert(BgpVrf::Default, instance);
    filter(&mut config, "tenant");
    config.prefixes.insert(or_longer("tenant", "10.1.0.0/16"));
    config
        .prefixes
        .insert(or_longer("tenant", "2001:db8:1::/48"));
    config
}

/// Both families of the machine's session, as soon as they have so many prefixes.
async fn received(leaf: &Switch, count: u64) -> Vec<BgpSession> {
    let until = Instant::now() + DEADLINE;
    loop {
        let mut sessions = leaf.frr.sessions().await.unwrap();
        sessions.retain(|session| session.neighbour == "swp1" && session.vrf == "default");
        let there = |s: &BgpSession| s.is_established() && s.received == count;
        if sessions.len() == 2 && sessions.iter().all(there) {
            return sessions;
        }
        assert!(Instant::now() < until, "not {count}: {sessions:#?}");
    }
}

fn assert_no_flap(sessions: &[BgpSession], since: Instant) {
    for session in sessions {
        assert_eq!(
            (session.established, session.dropped),
            (1, 0),
            "{session:?}"
        );
        assert!(session.age >= since.elapsed(), "{session:?}");
    }
}

#[tokio::test]
async fn a_session_goes_on_while_all_around_it_changes() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("s-leaf", &["swp2", "swp3"]).await;
    let host = Switch::start("s-host", &[]).await;
    let (l, h) = (&leaf.name, &host.name);
    ip(&format!(
        "-n {l} link add swp1 type veth peer name eth0 netns {h}"
    ));
    leaf.ip("link set swp1 up");
    host.ip("link set eth0 up");
    for address in [
        "10.1.0.1/32",
        "10.2.0.1/32",
        "2001:db8:1::1/128",
        "2001:db8:2::1/128",
    ] {
        host.ip(&format!("addr add {address} dev lo"));
    }
    reconcile(&host, &machine_config()).await;
    let mut desired = leaf_config();
    reconcile(&leaf, &desired).await;
    assert_no_flap(&received(&leaf, 1).await, Instant::now());
    let since = Instant::now();

    join(&mut desired, tenant(27, &["swp3"]));
    let default = desired.bgp.get_mut(&BgpVrf::Default).unwrap();
    default.neighbours.insert(port("swp2"), machine("other"));
    default.multipath_relax = true;
    filter(&mut desired, "other");
    desired.prefixes.insert(or_longer("other", "10.3.0.0/16"));
    reconcile(&leaf, &desired).await;
    assert_no_flap(&received(&leaf, 1).await, since);

    let grown = Instant::now();
    desired.prefixes.insert(or_longer("tenant", "10.2.0.0/16"));
    desired
        .prefixes
        .insert(or_longer("tenant", "2001:db8:2::/48"));
    reconcile(&leaf, &desired).await;
    let sessions = received(&leaf, 2).await;
    let took = grown.elapsed();
    println!("a grown filter took effect after {took:?}");
    assert!(took < OWN_DELAY, "no refresh: {took:?}");
    assert_no_flap(&sessions, since);

    let before = desired.clone();
    desired = leaf_config();
    let shrunk = Instant::now();
    reconcile(&leaf, &desired).await;
    let sessions = received(&leaf, 1).await;
    println!("a shrunk filter took effect after {:?}", shrunk.elapsed());
    assert!(shrunk.elapsed() < OWN_DELAY);
    assert_no_flap(&sessions, since);
    reconcile(&leaf, &before).await;
    assert_no_flap(&received(&leaf, 2).await, since);
}

#[tokio::test]
async fn the_state_of_a_bare_switch_and_of_evpn_is_read() {
    if !is_available() {
        return;
    }
    let switch = Switch::start("s-evpn", &[]).await;
    assert_eq!(switch.frr.sessions().await.unwrap(), vec![]);
    assert_eq!(switch.frr.vnis().await.unwrap(), vec![]);
    reconcile(&switch, &leaf()).await;
    switch.ip("addr add 10.0.0.11/32 dev lo");
    switch.ip("link add mmb100 type bridge");
    switch.ip("link add mmx100 type vxlan id 100 local 10.0.0.11 dstport 4789 nolearning");
    switch.ip("link set mmx100 master mmb100 up");
    switch.ip("link set mmb100 up");
    let until = Instant::now() + DEADLINE;
    let vni = loop {
        let vnis = switch.frr.vnis().await.unwrap();
        if let [vrf27, vrf28, segment] = vnis.as_slice() {
            // The host's kernel need not have VRFs: only FRR knows these.
            assert!(vrf27.routed && vrf28.routed && vrf27.device.is_none());
            break segment.clone();
        }
        assert!(Instant::now() < until, "zebra does not see the VNI");
    };
    assert_eq!((vni.vni.get(), vni.routed), (100, false));
    assert_eq!(vni.device.as_deref(), Some("mmx100"));
    assert_eq!(vni.vrf.as_deref(), Some("default"));
    assert_eq!(vni.remote_vteps, Some(0));
    let sessions = switch.frr.sessions().await.unwrap();
    let of = |vrf: &str| sessions.iter().filter(|s| s.vrf == vrf).count();
    // Two uplinks with IPv4 and EVPN; two machines and one, with both families.
    assert_eq!((of("default"), of("Vrf27"), of("Vrf28")), (4, 4, 2));
    assert!(!sessions.iter().any(BgpSession::is_established));
}

/// Waits until a host sees, or sees no more, a community of a route.
async fn community(host: &Switch, prefix: &str, wanted: bool) {
    let until = Instant::now() + DEADLINE;
    loop {
        let shown = host.vtysh(&format!("show bgp ipv4 unicast {prefix}"));
        if shown.contains("graceful-shutdown") == wanted && shown.contains("best") {
            return;
        }
        assert!(Instant::now() < until, "not {wanted}: {shown}");
    }
}

#[tokio::test]
async fn a_drained_leaf_announces_its_routes_as_the_last_resort() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("s-drain", &["swp2"]).await;
    let host = Switch::start("s-peer", &[]).await;
    let (l, h) = (&leaf.name, &host.name);
    ip(&format!(
        "-n {l} link add swp1 type veth peer name eth0 netns {h}"
    ));
    leaf.ip("link set swp1 up");
    host.ip("link set eth0 up");
    host.ip("addr add 10.1.0.1/32 dev lo");
    host.ip("addr add 2001:db8:1::1/128 dev lo");
    leaf.ip("addr add 10.9.0.1/32 dev lo");
    reconcile(&host, &machine_config()).await;
    let mut desired = leaf_config();
    let default = desired.bgp.get_mut(&BgpVrf::Default).unwrap();
    // Without it nothing leaves over a session that has no export (RFC 8212).
    default.ebgp_requires_policy = false;
    default.redistribute.ipv4 = Redistribute::Connected;
    default.neighbours.insert(port("swp2"), machine("tenant"));
    reconcile(&leaf, &desired).await;
    received(&leaf, 1).await;
    let since = Instant::now();
    community(&host, "10.9.0.1/32", false).await;
    for is_drained in [true, false] {
        let default = desired.bgp.get_mut(&BgpVrf::Default).unwrap();
        default.graceful_shutdown = is_drained;
        reconcile(&leaf, &desired).await;
        community(&host, "10.9.0.1/32", is_drained).await;
        assert_no_flap(&received(&leaf, 1).await, since);
    }
    // The other port has no cable: its session never came up, and FRR tells why.
    let failures = leaf.frr.session_failures().await.unwrap();
    let of_port = failures.iter().find(|one| one.neighbour == "swp2");
    println!("FRR on a port without a cable: {of_port:?}");
    assert!(
        of_port.is_some_and(|one| !one.reason.is_empty()),
        "{failures:?}"
    );
}
