//! Rules of the contract that hold for every caller.

use control_state::*;

use crate::networks::no_change;
use crate::world::*;

fn rename(name: Option<&str>) -> UpdateNetwork {
    UpdateNetwork {
        project: Some(id(1)),
        name: name.map(str::to_owned),
        ..no_change("private")
    }
}

#[test]
fn an_update_without_a_change_is_none() {
    let mut world = World::new();
    let named = world.ok(rename(Some("one"))).network().unwrap();
    world.later(1000);
    let outcome = world.apply(rename(Some("one")));
    let same = outcome.result.unwrap().network().unwrap();
    assert_eq!(same.meta, named.meta);
    assert_eq!(outcome.changes, vec![]);
    // A client that read the network before can still change it.
    let guarded = UpdateNetwork {
        lock: Lock::Client(named.meta.updated_at),
        ..rename(Some("two"))
    };
    let renamed = world.ok(guarded).network().unwrap();
    assert_eq!(renamed.meta.generation, named.meta.generation + 1);
}

/// Address of the firewall of project 1 in the underlay.
fn firewall_address(world: &mut World) -> IpKey {
    let names = world.with_firewall_networks();
    world.waiting(1);
    world.ok(AllocateMachine {
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: names
            .map(|name| WantedNetwork {
                network: text(name),
                ips: vec![],
            })
            .to_vec(),
        ..allocation_of(1)
    });
    let mut all = world.tables.all::<Ip>();
    let found = all.find(|ip| ip.network.as_str() == "underlay").unwrap();
    IpKey {
        namespace: None,
        ip: found.ip,
    }
}

fn keep(key: IpKey) -> UpdateIp {
    UpdateIp {
        key,
        lock: Lock::Server,
        project: id(1),
        name: None,
        description: None,
        kind: Some(IpType::Static),
        labels: None,
        underlay: false,
    }
}

#[test]
fn an_underlay_address_goes_with_its_firewall() {
    let mut world = World::new();
    let key = firewall_address(&mut world);
    assert_eq!(world.refused(keep(key)), ErrorCode::PermissionDenied);
    let mut same = keep(key);
    same.kind = Some(IpType::Ephemeral);
    world.ok(same);
    let delete = |underlay| DeleteIp {
        key,
        project: id(1),
        underlay,
    };
    assert_eq!(world.refused(delete(false)), ErrorCode::PermissionDenied);
    assert_eq!(world.refused(delete(true)), ErrorCode::AddressInUse);
    // An administrator may, and it goes all the same.
    world.ok(UpdateIp {
        underlay: true,
        ..keep(key)
    });
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    assert!(world.tables.get::<Ip>(&key).is_none());
}

#[test]
fn a_personal_tenant_is_deleted_by_administrators_only() {
    let mut world = World::new();
    let delete = |login: &str, personal| DeleteTenant {
        login: text(login),
        personal,
    };
    world.ok(tenant("ann", Some("ann")));
    world.ok(tenant("shared", Some("ann")));
    world.ok(delete("shared", false));
    let code = world.refused(delete("ann", false));
    assert_eq!(code, ErrorCode::PermissionDenied);
    world.ok(delete("ann", true));
}

/// A world in which the super network was made by a program that took children as long as the
/// prefix itself.
fn with_lax_super() -> World {
    let world = World::new();
    let mut tables = Tables::new();
    let all = Kind::ALL
        .iter()
        .flat_map(|kind| world.tables.records(*kind));
    for (record, revision) in all {
        let mut bytes = record.encode().unwrap();
        if matches!(&record, Record::Network(network) if network.id.as_str() == "super") {
            let Record::Network(network) = &record else {
                continue;
            };
            let mut lax = Network::clone(network);
            lax.default_child_length.v4 = Some(lax.prefixes[0].prefix_len());
            bytes = Record::Network(lax.into()).encode().unwrap();
        }
        tables.load(record.kind(), &bytes, revision).unwrap();
    }
    tables.set_revision(world.tables.revision());
    World::of(tables, world.now)
}

#[test]
fn lengths_are_checked_when_they_change() {
    let mut world = with_lax_super();
    let stored = world.tables.get::<Network>(&text("super")).unwrap().clone();
    let change = || UpdateNetwork {
        id: text("super"),
        project: None,
        ..rename(Some("renamed"))
    };
    world.ok(change());
    // As it is, it may be sent back.
    world.ok(UpdateNetwork {
        prefixes: Some(stored.prefixes.clone()),
        default_child_length: Some(stored.default_child_length),
        min_child_length: Some(stored.min_child_length),
        ..change()
    });
    let more = [stored.prefixes[0], "172.20.0.0/16".parse().unwrap()];
    let refused = world.refused(UpdateNetwork {
        prefixes: Some(more.to_vec()),
        ..change()
    });
    assert_eq!(refused, ErrorCode::InvalidField);
    let refused = world.refused(UpdateNetwork {
        min_child_length: Some(ChildLength {
            v4: stored.default_child_length.v4,
            v6: None,
        }),
        ..change()
    });
    assert_eq!(refused, ErrorCode::InvalidField);
}

/// The constraints of the small size with other bounds of cores.
fn cores(world: &World, min: u64, max: u64) -> Vec<SizeConstraint> {
    let small = world.tables.get::<Size>(&text(SIZE)).unwrap();
    let mut constraints = small.constraints.clone();
    for constraint in &mut constraints {
        if constraint.kind == SizeConstraintType::Cores {
            (constraint.min, constraint.max) = (min, max);
        }
    }
    constraints
}

#[test]
fn a_size_can_be_cut_in_two() {
    let mut world = World::new();
    world.running(1, 1);
    world.waiting(2);
    let small = Some(text(SIZE));
    // No other size can take over what this one covers before this one lets go of it.
    let many = cores(&world, 60, 64);
    world.ok(UpdateSize {
        id: text(SIZE),
        lock: Lock::Server,
        name: None,
        description: None,
        constraints: Some(many),
        labels: None,
    });
    assert_eq!(world.machine(1).size, small, "its project booked it");
    assert_eq!(world.machine(2).size, None);
    assert!(world.machine(2).reason.contains("no size matches"));
    let few = cores(&world, 1, 4);
    world.ok(CreateSize(Size {
        id: text("tiny"),
        meta: Meta::default(),
        name: None,
        description: None,
        constraints: few,
    }));
    let tiny = Some(text("tiny"));
    assert_eq!(world.machine(1).size, small);
    assert_eq!(world.machine(2).size, tiny);
    assert_eq!(world.machine(2).reason, "");
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    assert_eq!(world.machine(1).size, tiny, "as soon as it is free");
}
