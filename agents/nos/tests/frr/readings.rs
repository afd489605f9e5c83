//! Readings of FRR's configuration in a pass of the Linux back-end: one at its start, and one after
//! each change.

use std::path::Path;
use std::time::Duration;

use agents_nos::frr::Vtysh;
use agents_nos::linux::{Config, FilterConfig, Linux};
use agents_nos::model::{
    AsPathList, Bgp, BgpNeighbour, PolicyName, Port, PortName, PrefixList, PrefixListId,
    PrefixRule, RouteMap, RouteMatch, RouteRule,
};
use agents_nos::{Limits, Membership, SwitchModel, observe, run_pass};
use proto_types::Asn;

use super::daemons::{Switch, is_available};
use super::hosts::inside;

const LIMITS: Limits = Limits {
    step: Duration::from_secs(30),
    observe: Duration::from_secs(30),
};

fn name(text: &str) -> PolicyName {
    PolicyName::new(text).unwrap()
}

/// A switch with a firewall on `swp1`, which may announce this prefix.
pub(crate) fn firewall(prefix: &str) -> SwitchModel {
    let mut model = SwitchModel::default();
    let port = PortName::new("swp1").unwrap();
    let up = Port {
        admin_up: true,
        mtu: None,
        membership: Membership::Underlay,
    };
    model.ports.insert(port.clone(), up);
    let prefix: ipnet::IpNet = prefix.parse().unwrap();
    let rules = [PrefixRule::new(prefix, prefix.max_prefix_len()).unwrap()].into();
    let id = PrefixListId {
        is_v6: false,
        name: name("MM-swp1-in"),
    };
    let policies = &mut model.policies;
    policies
        .prefix_lists
        .insert(id.clone(), PrefixList { rules });
    let origins = AsPathList::new([Asn(4_210_000_001)]).unwrap();
    policies.as_path_lists.insert(name("MM-swp1-in"), origins);
    let of = |matches: &[RouteMatch]| {
        let is_import = !matches.is_empty();
        let matches = matches.iter().cloned().collect();
        let permits = true;
        RouteMap::new([RouteRule {
            permits,
            matches,
            is_last_resort: false,
            clears_communities: is_import,
        }])
        .unwrap()
    };
    let import = of(&[
        RouteMatch::Prefix(id),
        RouteMatch::AsPath(name("MM-swp1-in")),
    ]);
    policies.route_maps.insert(name("MM-swp1-in"), import);
    policies.route_maps.insert(name("MM-swp1-out"), of(&[]));
    let mut bgp = Bgp::new(Asn(4_200_000_011), [10, 0, 0, 11].into()).unwrap();
    let session = BgpNeighbour::filtered(name("MM-swp1-in"), name("MM-swp1-out"));
    bgp.underlay.insert(port, session);
    model.bgp = Some(bgp);
    model
}

/// The back-end over a vtysh that notes what it is told.
fn open(name: &str, log: &Path) -> Linux {
    let log = log.display();
    let script = format!("echo \"$*\" >> {log}; exec vtysh -N {name} \"$@\"");
    let command = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    Linux::open(Config {
        ports: vec!["swp*".into()],
        vtep: [0, 0, 0, 0].into(),
        frr: Some(Vtysh {
            command,
            ..Vtysh::default()
        }),
        filter: FilterConfig::default(),
    })
    .unwrap()
}

/// Makes a pass, with `meanwhile` between its first observation and its first step. Returns the
/// number of readings.
async fn pass(
    switch: &Linux,
    log: &Path,
    desired: &SwitchModel,
    meanwhile: impl FnOnce(),
) -> usize {
    std::fs::write(log, "").unwrap();
    let seen = observe(switch, LIMITS).await.unwrap();
    meanwhile();
    let passed = run_pass(switch, desired, seen, &[], LIMITS).await.unwrap();
    assert_eq!(passed.rest, vec![], "{:#?}", passed.failed);
    let log = std::fs::read_to_string(log).unwrap();
    let now = observe(switch, LIMITS).await.unwrap().model;
    assert_eq!(now.bgp, desired.bgp);
    assert_eq!(now.policies, desired.policies);
    log.matches("show running-config bgpd").count()
}

#[tokio::test]
async fn a_pass_reads_frr_once_and_after_each_change() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("reads", &["swp1"]).await;
    let log = tempfile::NamedTempFile::new().unwrap();
    let (namespace, log) = (leaf.name.clone(), log.path().to_owned());
    inside(&leaf.name.clone(), async move || {
        let switch = open(&namespace, &log);
        let before = firewall("198.51.100.0/24");
        pass(&switch, &log, &before, || ()).await;
        let idle = pass(&switch, &log, &before, || ()).await;
        assert_eq!(idle, 1, "nothing to do");
        // Somebody took the port away: the session leaves and the filter changes, the port leaves
        // and enters, and the session enters, in four rounds.
        leaf.ip("link add br-mine type bridge");
        leaf.ip("link set swp1 master br-mine");
        let after = firewall("203.0.113.0/24");
        let moved = pass(&switch, &log, &after, || ()).await;
        assert_eq!(moved, 3, "two changes of FRR");
        let lost = "configure terminal\nrouter bgp 4200000011\nno neighbor swp1 interface";
        leaf.vtysh(lost);
        let healed = pass(&switch, &log, &after, || ()).await;
        assert_eq!(healed, 2, "drift between two passes is seen by the second");
        // A change by hand after the reading: the change is verified, so that it is found out.
        pass(&switch, &log, &before, || drop(leaf.vtysh(lost))).await;
    });
}
