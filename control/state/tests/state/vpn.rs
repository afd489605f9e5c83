//! Firewalls in the VPN.

use control_state::*;

use crate::world::*;

fn access() -> VpnAccess {
    VpnAccess {
        address: "https://vpn.example".into(),
        key_id: "7".into(),
        sealed_key: b"the sealed secret".to_vec(),
        expires_at: ms(2_000_000_000),
    }
}

/// Project 1 wants the firewall, with a way into the VPN.
fn firewall(world: &mut World) -> AllocateMachine {
    let names = world.with_firewall_networks();
    AllocateMachine {
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: names
            .iter()
            .map(|name| WantedNetwork {
                network: text(name),
                ips: vec![],
            })
            .collect(),
        vpn: Some(access()),
        ..allocation_of(1)
    }
}

fn members(world: &World) -> Vec<VpnMember> {
    let all = world.tables.all::<VpnMember>();
    all.map(|member| VpnMember::clone(member)).collect()
}

fn leaving(world: &World) -> usize {
    query::vpn_leaving(&world.tables).count()
}

#[test]
fn a_firewall_is_a_member_until_its_node_is_gone() {
    let mut world = World::new();
    world.waiting(1);
    let wanted = firewall(&mut world);
    let machine = world.ok(wanted).machine().unwrap();
    assert_eq!(members(&world).len(), 1);
    assert_eq!(members(&world)[0].machine, machine.id);
    assert_eq!(leaving(&world), 0);

    let seen = ReportVpn {
        allocation: id(1),
        connected: true,
        ips: vec!["100.64.0.1".parse().unwrap()],
    };
    world.ok(seen.clone());
    let member = members(&world).remove(0);
    assert!(member.connected && member.access.sealed_key.is_empty());
    assert_eq!(member.ips, seen.ips);

    world.ok(FreeMachine {
        id: machine.id,
        project: Some(id(1)),
    });
    assert_eq!(leaving(&world), 1, "from the first step of the way back");
    world.bmc(BmcAction::PowerOff, None);
    assert_eq!(leaving(&world), 1, "however far the way back is");
    for _ in 0..2 {
        world.ok(ForgetVpn { allocation: id(1) });
        assert_eq!(members(&world), vec![]);
    }
    assert_eq!(world.refused(seen), ErrorCode::NotFound);
}

#[test]
fn only_firewalls_are_members_and_secrets_are_not_shown() {
    let mut world = World::new();
    world.waiting(1);
    world.ok(AllocateMachine {
        vpn: Some(access()),
        ..allocation_of(1)
    });
    assert_eq!(members(&world), vec![]);
    let shown = format!("{:?}", access());
    assert!(shown.contains("vpn.example") && !shown.contains("the secret"));
}
