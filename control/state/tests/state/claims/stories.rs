//! The user stories of HostClaim, on the state alone.

use control_state::*;

use super::site::*;
use crate::world::*;

/// "As a user I would like to execute a workload on an arbitrary server."
#[test]
fn a_simple_workload() {
    let mut world = World::hosting(&[&["infra-kind=medium"], &["infra-kind=large"]]);
    // "I create a resource": online false, no image, a label of the kind of server.
    let mut spec = ClaimSpec {
        powered_on: false,
        ..asking(&["infra-kind=medium"])
    };
    world.ok(claim(1, 1, spec.clone()));
    // "After a while, the system associates the claim with a real server": labels and hardware of
    // it are there to customise the scripts with.
    let host = query::host_of_claim(&world.tables, claim_id(1)).unwrap();
    let published = query::published_labels(&world.tables, host);
    assert_eq!(published, labels(&["infra-kind=medium"]));
    let machine = query::machine_of_claim(&world.tables, claim_id(1)).unwrap();
    assert_eq!(machine.hardware.nics[0].mac, mac(1));
    // "I modify the HostClaim to point to those secrets and start the server."
    spec = ClaimSpec {
        powered_on: true,
        userdata: "I2Nsb3VkLWNvbmZpZw==".into(),
        ..installing(&["infra-kind=medium"])
    };
    world.ok(intent(1, spec.clone()));
    assert_eq!(
        world.machine(1).allocation.as_ref().unwrap().userdata,
        spec.userdata
    );
    world.installed_claim(1);
    // "When the machine is fully provisioned, ready becomes true."
    assert!(world.condition(1, ClaimConditionKind::Ready).status);
    // "I can stop the server by changing the online status."
    spec.powered_on = false;
    world.ok(intent(1, spec.clone()));
    world.bmc(BmcAction::PowerOff, None);
    spec.powered_on = true;
    world.ok(intent(1, spec));
    world.bmc(BmcAction::PowerOn, None);
    // "I can also perform a reboot."
    world.ok(RebootClaim {
        id: claim_id(1),
        project: id(1),
        epoch: None,
        request: "annotation-1".into(),
        mode: RebootMode::Soft,
    });
    world.bmc(BmcAction::PowerReset, None);
    // "When I destroy the host, the association is broken and another user can take over."
    world.ok(claim(2, 2, asking(&["infra-kind=medium"])));
    world.ok(deletion(1, 1));
    assert_eq!(world.host_of(2), None, "not before it is wiped");
    world.reclaimed(1, "zero");
    assert_eq!(world.host_of(2), Some(1));
}

/// "As the owner of the bare metal servers, I would like to easily control the users": by a regular
/// expression over the namespace, or by a label of it.
#[test]
fn the_owner_of_the_servers_controls_who_may_use_them() {
    let hosts = |pattern: &str| DeployPolicy {
        name: "namespaces".into(),
        pattern: Some(pattern.into()),
        ..DeployPolicy::default()
    };
    let alias = |project, alias: &str| SetProjectLabels {
        project: id(project),
        alias: Some(alias.into()),
        labels: Labels::new(),
    };
    for (pattern, first, second) in [
        (".*", true, true),
        ("n1|n2", true, false),
        ("p-.*", false, true),
    ] {
        let mut world = World::hosting(&[&[], &[]]);
        world.ok(alias(1, "n1"));
        world.ok(alias(2, "p-2"));
        for number in [1, 2] {
            world.ok(SetPoolHost {
                only: vec![hosts(pattern)],
                ..host(number, &[])
            });
        }
        world.ok(claim(1, 1, ClaimSpec::default()));
        world.ok(claim(2, 2, ClaimSpec::default()));
        assert_eq!(world.host_of(1).is_some(), first, "{pattern}");
        assert_eq!(world.host_of(2).is_some(), second, "{pattern}");
    }
}

/// "As an infrastructure administrator I would like to host several isolated clusters": claims of
/// tenants come and go on the same servers.
#[test]
fn servers_are_recycled_among_tenants() {
    let mut world = World::hosting(&[&[], &[]]);
    for (number, project) in [(1, 1), (2, 2)] {
        world.ok(claim(number, project, asking(&[])));
    }
    // A rollout: the new claim of the cluster waits, and takes the server of the one it replaces.
    world.ok(claim(3, 1, asking(&[])));
    assert_eq!(world.host_of(3), None);
    let old = world.host_of(1);
    world.ok(deletion(1, 1));
    assert_eq!(world.host_of(3), old);
    // The other tenant's cluster takes over a server of the first.
    world.ok(claim(4, 2, asking(&[])));
    world.ok(deletion(3, 1));
    assert_eq!(world.host_of(4), old);
    let projects = world.tables.all::<PoolHost>();
    let projects = projects.filter_map(|host| host.binding.as_ref());
    assert!(
        projects
            .map(|binding| binding.project)
            .all(|project| project == id(2))
    );
}

/// "Tenants trying to bypass the selection mechanism": the host's own word decides, and a claim that
/// says otherwise has nothing.
#[test]
fn a_claim_that_says_it_has_a_host_has_none() {
    let mut world = World::hosting(&[&[], &[]]);
    world.ok(claim(1, 1, asking(&[])));
    world.ok(claim(2, 2, asking(&[])));
    let theirs = world.host_of(1).unwrap();
    // The row of the claim, with another binding than the host's.
    let mut forged = world.claim(2).clone();
    forged.binding.as_mut().unwrap().machine = id(theirs);
    let record = Record::Claim(forged.into());
    world
        .tables
        .load(Kind::Claim, &record.encode().unwrap(), 1)
        .unwrap();
    let mut world = World::of(world.tables, world.now);
    assert_eq!(world.host_of(1), Some(theirs));
    assert_ne!(world.host_of(2), Some(theirs));
    // Its installation touches no host of another claim.
    world.ok(child("other", 2));
    let spec = ClaimSpec {
        networks: vec![WantedNetwork {
            network: text("other"),
            ips: vec![],
        }],
        ..installing(&[])
    };
    world.ok(UpdateClaim {
        project: id(2),
        ..intent(2, spec)
    });
    assert_eq!(world.machine(theirs).allocation, None);
    assert_eq!(world.state(2), ClaimState::Bound);
}
