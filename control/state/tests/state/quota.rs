//! Quotas: what grows is held against them, in the command that makes it grow.

use std::collections::BTreeMap;

use control_state::*;

use crate::world::*;

fn of_project(limits: Limits) -> SetQuota {
    SetQuota {
        subject: QuotaSubject::Project(id(1)),
        limits,
    }
}

fn of_tenant(limits: Limits) -> SetQuota {
    SetQuota {
        subject: QuotaSubject::Tenant(text("acme")),
        limits,
    }
}

fn machines(limit: u32) -> Limits {
    Limits {
        machines: Some(limit),
        ..Limits::default()
    }
}

fn ips(limit: u32) -> Limits {
    Limits {
        ips: Some(limit),
        ..Limits::default()
    }
}

#[test]
fn machines_are_bounded_by_number_and_by_size() {
    let mut world = World::new();
    for number in [1, 2, 3] {
        world.waiting(number);
    }
    world.ok(of_project(machines(1)));
    world.allocate(1);
    assert_eq!(world.refused(allocation_of(2)), ErrorCode::QuotaExceeded);
    let size = Limits {
        machines: Some(3),
        machines_of_size: BTreeMap::from([(text(SIZE), 2)]),
        ..Limits::default()
    };
    world.ok(of_project(size));
    world.allocate(2);
    let refused = world.apply(allocation_of(3)).result.unwrap_err();
    assert_eq!(refused.code, ErrorCode::QuotaExceeded);
    let wanted = format!("has 2 of 2 machines of size \"{SIZE}\" and wants 1 more");
    assert!(refused.message.contains(&wanted), "{}", refused.message);
}

#[test]
fn a_machine_counts_until_it_is_back() {
    let mut world = World::new();
    world.running(1, 1);
    world.waiting(2);
    world.ok(of_project(machines(1)));
    world.free(1);
    assert_eq!(world.refused(allocation_of(2)), ErrorCode::QuotaExceeded);
    world.ok(of_project(machines(2)));
    world.allocate(2);
}

#[test]
fn the_addresses_of_machines_count() {
    let mut world = World::new();
    world.waiting(1);
    world.ok(of_project(ips(1)));
    world.ok(ip(1, "private", 1));
    assert_eq!(world.refused(ip(2, "private", 1)), ErrorCode::QuotaExceeded);
    assert_eq!(world.refused(allocation_of(1)), ErrorCode::QuotaExceeded);
    world.ok(of_project(ips(2)));
    world.allocate(1);
}

#[test]
fn a_tenant_shares_its_quota_among_its_projects() {
    let mut world = World::new();
    world.ok(child("second", 2));
    let networks = Limits {
        networks: Some(3),
        ..ips(1)
    };
    world.ok(of_tenant(networks));
    world.ok(of_project(ips(10)));
    world.ok(ip(1, "second", 2));
    assert_eq!(world.refused(ip(2, "private", 1)), ErrorCode::QuotaExceeded);
    world.ok(child("third", 1));
    assert_eq!(world.refused(child("fourth", 2)), ErrorCode::QuotaExceeded);
}

#[test]
fn a_lowered_quota_takes_nothing_away_and_lets_other_things_grow() {
    let mut world = World::new();
    for number in [1, 2] {
        world.ok(ip(number, "private", 1));
    }
    world.ok(of_project(ips(1)));
    assert_eq!(world.tables.all::<Ip>().count(), 2);
    world.ok(child("second", 1));
    assert_eq!(world.refused(ip(3, "private", 1)), ErrorCode::QuotaExceeded);
    let removed = world.ok(RemoveQuota {
        subject: QuotaSubject::Project(id(1)),
    });
    assert_eq!(removed.quota().unwrap().limits, ips(1));
    world.ok(ip(3, "private", 1));
}

#[test]
fn what_a_quota_must_be() {
    let mut world = World::new();
    let nobody = SetQuota {
        subject: QuotaSubject::Tenant(text("nobody")),
        limits: machines(1),
    };
    assert_eq!(world.refused(nobody), ErrorCode::NotFound);
    assert_eq!(
        world.refused(of_project(Limits::default())),
        ErrorCode::InvalidField
    );
    let unknown = Limits {
        machines_of_size: BTreeMap::from([(text("wings"), 1)]),
        ..Limits::default()
    };
    assert_eq!(world.refused(of_project(unknown)), ErrorCode::NotFound);
    let gone = RemoveQuota {
        subject: QuotaSubject::Project(id(2)),
    };
    assert_eq!(world.refused(gone), ErrorCode::NotFound);
    world.ok(SetQuota {
        subject: QuotaSubject::Project(id(2)),
        limits: machines(1),
    });
    world.ok(DeleteProject { id: id(2) });
    assert_eq!(world.tables.all::<Quota>().count(), 0, "it goes along");
}
