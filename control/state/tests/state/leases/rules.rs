//! Each rule of owners and leases, as tables.

use super::*;

#[test]
fn an_administrator_sets_and_clears_owners() {
    let mut world = with_machine();
    let set = world.ok(owner(1, Some(OWNER))).machine().unwrap();
    assert_eq!(set.tenure.owner, Some(id(OWNER)));
    // Again: nothing changes.
    assert_eq!(world.apply(owner(1, Some(OWNER))).changes, vec![]);
    assert_eq!(world.refused(owner(1, Some(9))), ErrorCode::NotFound);
    assert_eq!(world.refused(owner(9, Some(OWNER))), ErrorCode::NotFound);
    world.ok(owner(1, Some(STRANGER)));
    let cleared = world.ok(owner(1, None)).machine().unwrap();
    assert!(cleared.tenure.is_default());
}

#[test]
fn an_owner_does_not_change_during_a_lease() {
    let mut world = leased();
    let transfer = TransferMachine {
        machine: id(1),
        project: id(OWNER),
        to: id(STRANGER),
    };
    assert_eq!(
        world.refused(owner(1, Some(STRANGER))),
        ErrorCode::MachineLeased
    );
    assert_eq!(world.refused(owner(1, None)), ErrorCode::MachineLeased);
    assert_eq!(world.refused(transfer.clone()), ErrorCode::MachineLeased);
    world.ok(end(by(LESSEE)));
    world.ok(transfer);
    assert_eq!(world.machine(1).tenure.owner, Some(id(STRANGER)));
}

#[test]
fn no_machine_is_taken_from_under_its_user() {
    let mut world = with_machine();
    world.ok(named(1));
    // It is project 1's by now, as a machine of the site.
    assert_eq!(
        world.refused(owner(1, Some(OWNER))),
        ErrorCode::MachineAllocated
    );
    world.ok(owner(1, Some(LESSEE)));
    let by_owner = GrantLease {
        project: id(LESSEE),
        lessee: id(STRANGER),
        ..grant(&world)
    };
    assert_eq!(world.refused(by_owner.clone()), ErrorCode::MachineAllocated);
    let transfer = TransferMachine {
        machine: id(1),
        project: id(LESSEE),
        to: id(STRANGER),
    };
    assert_eq!(world.refused(transfer), ErrorCode::MachineAllocated);
    // Once it is on its way back, the next one may have it: it gets it wiped.
    world.free(1);
    world.ok(by_owner);
    world.ok(end(by(STRANGER)));
    world.ok(owner(1, None));
}

#[test]
fn grants() {
    type Change = fn(&mut GrantLease);
    let cases: &[(Change, ErrorCode)] = &[
        (|op| op.machine = id(9), ErrorCode::NotFound),
        (|op| op.project = id(STRANGER), ErrorCode::NotFound),
        (|op| op.project = id(LESSEE), ErrorCode::NotFound),
        (|op| op.lessee = id(9), ErrorCode::NotFound),
        (|op| op.lessee = id(OWNER), ErrorCode::InvalidField),
        (|op| op.expires_at = ms(1), ErrorCode::InvalidField),
        (
            |op| op.expires_at = op.expires_at.plus_ms(LEASE_MS_MAX),
            ErrorCode::InvalidField,
        ),
        (
            |op| op.extendable_until = Some(ms(op.expires_at.ms() - 1)),
            ErrorCode::InvalidField,
        ),
        (
            |op| op.extendable_until = Some(op.expires_at.plus_ms(LEASE_MS_MAX)),
            ErrorCode::InvalidField,
        ),
        (|op| op.comment = "x".repeat(257), ErrorCode::InvalidField),
    ];
    let mut world = owned();
    for (at, (change, code)) in cases.iter().enumerate() {
        let mut op = grant(&world);
        change(&mut op);
        assert_eq!(world.refused(op), *code, "case {at}");
    }
    let lease = grant(&world);
    let lease = world.ok(lease).lease().unwrap();
    assert_eq!((lease.owner, lease.lessee), (id(OWNER), id(LESSEE)));
    assert_eq!(lease.warning_ms, LEASE_WARNING_MS);
    assert_eq!(world.machine(1).tenure.lessee, Some(id(LESSEE)));
    // One lease of a machine at a time.
    let second = GrantLease {
        lessee: id(STRANGER),
        ..grant(&world)
    };
    assert_eq!(world.refused(second), ErrorCode::MachineLeased);
}

#[test]
fn a_warning_takes_at_most_half_of_the_lease() {
    let mut world = owned();
    let hour = 3_600_000;
    let short = GrantLease {
        expires_at: world.now.plus_ms(2 * hour),
        ..grant(&world)
    };
    let lease = world.ok(short).lease().unwrap();
    assert_eq!(lease.warning_ms, hour);
    assert_eq!(lease.due_at(), world.now.plus_ms(hour));
}

#[test]
fn extensions() {
    let mut world = leased();
    let end_of = |world: &World| world.lease().unwrap().expires_at;
    let first = end_of(&world);
    let later = first.plus_ms(DAY_MS);
    let limited = |project, limit| ExtendLease {
        expires_at: None,
        limit,
        ..extend(project, later)
    };
    // Without a limit only the owner extends it.
    let refused = world.error(extend(LESSEE, later));
    assert_eq!(refused.code, ErrorCode::LeaseLimited);
    assert!(refused.message.contains("only its owner"), "{refused}");
    assert_eq!(world.refused(extend(STRANGER, later)), ErrorCode::NotFound);
    world.ok(extend(OWNER, later));
    // A lease is never made shorter.
    for project in [OWNER, LESSEE] {
        let code = world.refused(extend(project, first));
        assert_eq!(code, ErrorCode::InvalidField, "{project}");
    }
    let too_long = world.now.plus_ms(LEASE_MS_MAX + 1);
    assert_eq!(
        world.refused(extend(OWNER, too_long)),
        ErrorCode::InvalidField
    );
    // The limit is the owner's.
    let limit = later.plus_ms(2 * DAY_MS);
    let until = ExtensionLimit::Until(limit);
    let refused = world.error(limited(LESSEE, until));
    assert_eq!(refused.code, ErrorCode::TenureRefused);
    assert!(refused.message.contains("is the lessee"), "{refused}");
    world.ok(limited(OWNER, until));
    world.ok(extend(LESSEE, limit));
    assert_eq!(end_of(&world), limit);
    let beyond = limit.plus_ms(1);
    assert_eq!(
        world.refused(extend(LESSEE, beyond)),
        ErrorCode::LeaseLimited
    );
    let before_end = ExtensionLimit::Until(first);
    assert_eq!(
        world.refused(limited(OWNER, before_end)),
        ErrorCode::InvalidField
    );
    world.ok(limited(OWNER, ExtensionLimit::Clear));
    assert_eq!(world.lease().unwrap().extendable_until, None);
    // Of another lease than the one that the caller has seen.
    let other = ExtendLease {
        lease: Some(id(501)),
        ..extend(OWNER, beyond)
    };
    assert_eq!(world.refused(other), ErrorCode::Conflict);
}

#[test]
fn ends() {
    for (ender, is_used, refusal) in [
        (by(LESSEE), false, None),
        (by(LESSEE), true, None),
        (by(OWNER), false, None),
        (by(OWNER), true, Some(ErrorCode::MachineAllocated)),
        (by(STRANGER), false, Some(ErrorCode::NotFound)),
        (LeaseEnder::Administrator, false, None),
        (LeaseEnder::Administrator, true, None),
    ] {
        let mut world = leased();
        if is_used {
            world.ok(named(1));
        }
        match refusal {
            Some(code) => assert_eq!(world.refused(end(ender)), code, "{ender:?}"),
            None => {
                let ended = world.ok(end(ender)).lease().unwrap();
                assert_eq!(ended.lessee, id(LESSEE));
                assert_eq!(world.lease(), None);
                assert_eq!(world.machine(1).tenure.lessee, None);
                assert_eq!(world.machine(1).tenure.owner, Some(id(OWNER)));
                assert_eq!(world.machine(1).is_leaving(), is_used, "{ender:?}");
                let again = world.apply(end(ender)).result.unwrap_err().code;
                let gone = match ender {
                    LeaseEnder::Project(project) if project == id(LESSEE) => ErrorCode::NotFound,
                    _ => ErrorCode::MachineNotLeased,
                };
                assert_eq!(again, gone, "{ender:?}");
            }
        }
    }
}

#[test]
fn transfers_need_the_owners_consent() {
    let mut world = leased();
    for (op, code) in [
        (request(OWNER, Some(STRANGER)), ErrorCode::TenureRefused),
        (request(STRANGER, Some(STRANGER)), ErrorCode::NotFound),
        (request(LESSEE, Some(LESSEE)), ErrorCode::InvalidField),
        (request(LESSEE, Some(OWNER)), ErrorCode::InvalidField),
        (request(LESSEE, Some(9)), ErrorCode::NotFound),
    ] {
        assert_eq!(world.refused(op.clone()), code, "{op:?}");
    }
    // Nobody consents to what is not asked for.
    let early = decide(OWNER, STRANGER, true);
    assert_eq!(world.refused(early.clone()), ErrorCode::Conflict);
    world.ok(request(LESSEE, Some(STRANGER)));
    // The request alone changes nothing: the stranger still has no relation.
    assert_eq!(world.machine(1).tenure.lessee, Some(id(LESSEE)));
    assert_eq!(world.refused(request(STRANGER, None)), ErrorCode::NotFound);
    let forged = decide(LESSEE, STRANGER, true);
    assert_eq!(world.refused(forged), ErrorCode::TenureRefused);
    assert_eq!(world.refused(decide(OWNER, 9, true)), ErrorCode::Conflict);
    world.ok(decide(OWNER, STRANGER, false));
    assert_eq!(world.lease().unwrap().transfer_to, None);
    assert_eq!(world.refused(early.clone()), ErrorCode::Conflict);

    // The next lessee gets no machine on which the system of the last one runs.
    world.ok(request(LESSEE, Some(STRANGER)));
    world.ok(named(1));
    assert_eq!(world.refused(early.clone()), ErrorCode::MachineAllocated);
    world.free(1);
    world.ok(early);
    let lease = world.lease().unwrap();
    assert_eq!((lease.lessee, lease.transfer_to), (id(STRANGER), None));
    assert_eq!(world.machine(1).tenure.lessee, Some(id(STRANGER)));
    assert_eq!(world.refused(request(LESSEE, None)), ErrorCode::NotFound);
}

#[test]
fn a_request_can_be_taken_back() {
    let mut world = leased();
    world.ok(request(LESSEE, Some(STRANGER)));
    world.ok(request(LESSEE, None));
    let late = decide(OWNER, STRANGER, true);
    assert_eq!(world.refused(late), ErrorCode::Conflict);
}

#[test]
fn what_is_promised_to_a_project_is_not_deleted() {
    let mut world = leased();
    let machine = DeleteMachine { id: id(1) };
    assert_eq!(world.refused(machine), ErrorCode::MachineLeased);
    for number in [OWNER, LESSEE] {
        let project = DeleteProject { id: id(number) };
        let error = world.error(project);
        assert_eq!(error.code, ErrorCode::StillInUse, "{number}");
    }
}

#[test]
fn classes_and_traits_are_the_owners() {
    let mut world = leased();
    let set = |project: Option<u128>, class: ClassChange| SetMachineCapability {
        machine: id(1),
        project: project.map(id),
        resource_class: class,
        traits: None,
    };
    let gold = || ClassChange::Set("gold".parse().unwrap());
    world.ok(set(None, gold()));
    world.ok(set(Some(OWNER), ClassChange::Clear));
    let lessee = world.refused(set(Some(LESSEE), gold()));
    assert_eq!(lessee, ErrorCode::TenureRefused);
    assert_eq!(
        world.refused(set(Some(STRANGER), gold())),
        ErrorCode::NotFound
    );
    let traits = |traits| SetMachineCapability {
        traits: Some(traits),
        ..set(Some(OWNER), ClassChange::Keep)
    };
    let name = |number: usize| -> TraitName { format!("CUSTOM_{number}").parse().unwrap() };
    let many = |count: usize| TraitsChange::Replace((0..count).map(name).collect());
    assert_eq!(
        world.refused(traits(many(TRAITS_MAX + 1))),
        ErrorCode::InvalidField
    );
    world.ok(traits(many(TRAITS_MAX)));
    world.ok(traits(TraitsChange::Patch {
        add: [name(99)].into(),
        remove: [name(0), name(77)].into(),
    }));
    let now = &world.machine(1).capability.traits;
    assert_eq!(now.len(), TRAITS_MAX);
    assert!(now.contains(&name(99)) && !now.contains(&name(0)));
}
