use agents_nos::linux::{Config, FilterConfig, Linux};
use agents_nos::model::{ModelError, Mtu, PolicyName, PortName, PrefixRule, Table, Vlan};
use agents_nos::{Capability, Membership, Nos, Vni, plan};

use crate::fixture::{
    Build, export_map, neighbour, policy, routed, rule, segment_place, short, tenant, vrf,
};

/// A plan of a switch in few words: its steps and its problems.
fn planned(from: &Build, to: &Build, capabilities: &[Capability]) -> [Vec<String>; 2] {
    let plan = plan(&from.0, &to.0, capabilities);
    let problems = plan.problems.iter().map(ToString::to_string);
    [plan.steps.iter().map(short).collect(), problems.collect()]
}

#[test]
fn a_port_without_a_place_is_quarantined_and_told() {
    let from = Build::default()
        .port("p1", segment_place(10), true)
        .segment(10, &[]);
    let to = Build::default()
        .port("p1", segment_place(11), true)
        .port("p7", segment_place(10), true)
        .segment(10, &[]);
    let [steps, problems] = planned(&from, &to, Capability::ALL);
    assert_eq!(steps, ["p1 leaves"]);
    assert_eq!(
        problems,
        [
            "port p1 is for segment 11, which is unknown",
            "port p7 is not on this switch"
        ]
    );
}

#[tokio::test]
async fn a_switch_with_segments_only_takes_them_and_tells_the_rest() {
    let from = Build::default()
        .port("p1", Membership::Quarantine, true)
        .port("p2", Membership::Quarantine, true);
    let to = tenant()
        .port("p2", segment_place(10), true)
        .segment(10, &[1])
        .gateway(10, "Vrf27", "10.0.0.1/8");
    let linux = Linux::open(Config {
        ports: vec!["p*".into()],
        vtep: [10, 0, 0, 11].into(),
        frr: None,
        filter: FilterConfig::default(),
    });
    let [steps, problems] = planned(&from, &to, linux.unwrap().capabilities());
    assert_eq!(steps, ["make 10", "10 to 10.0.0.1", "p2 enters 10"]);
    assert_eq!(
        problems,
        [
            "port p1 needs VRFs, which this switch lacks",
            "gateway of segment 10 needs VRFs, which this switch lacks",
            "VRF Vrf27 needs VRFs, which this switch lacks",
            "IPv4 prefix list MM-list needs a BGP daemon, which this switch lacks",
            "as-path list MM-paths needs a BGP daemon, which this switch lacks",
            "route map MM-in needs a BGP daemon, which this switch lacks",
            "route map MM-out needs a BGP daemon, which this switch lacks",
            "BGP needs a BGP daemon, which this switch lacks",
        ]
    );
}

#[test]
fn what_would_open_a_tenant_is_left_out() {
    let mut to = tenant().port("p2", Membership::Quarantine, true);
    let bgp = to.0.bgp.as_mut().unwrap();
    let of = bgp.vrfs.get_mut(&vrf("Vrf27")).unwrap();
    let mut open = neighbour();
    open.import = Some(policy("MM-out"));
    of.insert(crate::fixture::port("p1"), open);
    let mut bare = neighbour();
    bare.export = None;
    of.insert(crate::fixture::port("eth9"), bare);
    of.insert(crate::fixture::port("p2"), neighbour());
    let from = Build::default()
        .port("p1", Membership::Quarantine, true)
        .port("p2", Membership::Quarantine, true);
    let [steps, problems] = planned(&from, &to, Capability::ALL);
    assert!(!steps.iter().any(|step| step.starts_with("neighbour")));
    assert_eq!(
        problems,
        [
            "neighbour eth9 in VRF Vrf27 has no route map for each direction",
            "neighbour p1 in VRF Vrf27 imports routes by MM-out, which does not check both prefix \
             and AS path of each",
            "neighbour p2 in VRF Vrf27 is on a port that is not in its VRF",
        ]
    );
}

#[test]
fn numbers_and_names_are_not_shared() {
    let to = Build::default()
        .vrf("Vrf1", 1, 1001)
        .vrf("Vrf2", 1, 1002)
        .vrf("mgmt2", 3, 1003)
        .vrf("Vrf4", 4, 1009)
        .segment(1, &[])
        .change(|model| {
            let maps = &mut model.policies.route_maps;
            maps.insert(policy("theirs"), export_map());
        });
    let from = Build::default().vrf("mgmt", 300, 1009);
    let [steps, problems] = planned(&from, &to, Capability::ALL);
    assert_eq!(steps, ["make Vrf1"]);
    assert_eq!(
        problems,
        [
            "segment 1 has the VNI 1 of VRF Vrf1",
            "VRF Vrf2 has the VNI 1 of VRF Vrf1",
            "VRF Vrf4 has the table 1009 of VRF mgmt",
            "VRF mgmt2 has a name that is not ours: Vrf and a number, or MM-…",
            "route map theirs has a name that is not ours: Vrf and a number, or MM-…",
        ]
    );
    let stolen = Build::default().port("p1", routed("mgmt"), true);
    let from = from.port("p1", Membership::Quarantine, true);
    let [steps, problems] = planned(&from, &stolen, Capability::ALL);
    assert_eq!(steps, [""; 0]);
    assert_eq!(problems, ["port p1 is for VRF mgmt, which is unknown"]);
}

#[test]
fn values_are_checked_where_they_are_made() {
    for bad in ["", "swp 1", "a\nb", "..", "abcdefghijklmnop"] {
        assert!(PortName::new(bad).is_err(), "{bad:?}");
    }
    assert!(PolicyName::new("PL_a.b:1").is_ok());
    assert_eq!(Mtu::new(1279), Err(ModelError::Mtu(1279)));
    assert!(Vlan::new(0).is_err() && Vlan::new(4095).is_err() && Vlan::new(4094).is_ok());
    assert!(Table::new(254).is_err() && Table::new(1001).is_ok());
    let prefix = "10.1.2.3/8".parse().unwrap();
    assert_eq!(
        PrefixRule::new(prefix, 32).unwrap(),
        rule("10.0.0.0/8"),
        "host bits have no meaning"
    );
    assert!(PrefixRule::new(prefix, 7).is_err());
    for bad in [0, Vni::MAX + 1, u32::MAX] {
        assert!(Vni::new(bad).is_err());
    }
    assert_eq!(Vni::new(Vni::MAX).unwrap().get(), Vni::MAX);
}
