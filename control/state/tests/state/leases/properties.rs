//! Rules of owners, leases and node allocations, over random sequences of commands.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::node_allocations::wanted;

const MACHINES: u128 = 3;

#[derive(Debug, Clone)]
enum Step {
    Owner(u128, Option<u128>),
    Transfer(u128, u128, u128),
    Grant(u128, u128, u128, u64),
    Extend(u128, u128, u64),
    End(u128, Option<u128>),
    Request(u128, u128, Option<u128>),
    Decide(u128, u128, u128, bool),
    Class(u128, Option<u128>, bool),
    Hold(Option<u128>, u64, bool),
    Backfill(Option<u128>, u128),
    Release(usize, Option<u128>),
    Use(u128, u128),
    Free(u128),
    Bmc,
    Switch,
    Reboot(u128),
    Lock(u128, bool),
    Delete(u128),
    Tick(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let machine = || 1..=MACHINES;
    let project = || 1..=3u128;
    let maybe = || proptest::option::of(1..=3u128);
    prop_oneof![
        4 => (machine(), maybe()).prop_map(|(m, p)| Step::Owner(m, p)),
        1 => (machine(), project(), project()).prop_map(|(m, p, to)| Step::Transfer(m, p, to)),
        6 => (machine(), project(), project(), 1..40u64)
            .prop_map(|(m, p, to, days)| Step::Grant(m, p, to, days)),
        2 => (machine(), project(), 1..60u64).prop_map(|(m, p, days)| Step::Extend(m, p, days)),
        2 => (machine(), maybe()).prop_map(|(m, p)| Step::End(m, p)),
        2 => (machine(), project(), maybe()).prop_map(|(m, p, to)| Step::Request(m, p, to)),
        3 => (machine(), project(), project(), any::<bool>())
            .prop_map(|(m, p, to, yes)| Step::Decide(m, p, to, yes)),
        3 => (machine(), maybe(), any::<bool>()).prop_map(|(m, p, gold)| Step::Class(m, p, gold)),
        6 => (maybe(), any::<u64>(), any::<bool>())
            .prop_map(|(p, seed, gold)| Step::Hold(p, seed, gold)),
        2 => (maybe(), machine()).prop_map(|(p, m)| Step::Backfill(p, m)),
        2 => (0..8usize, maybe()).prop_map(|(at, p)| Step::Release(at, p)),
        6 => (machine(), project()).prop_map(|(m, p)| Step::Use(m, p)),
        3 => machine().prop_map(Step::Free),
        4 => Just(Step::Bmc),
        2 => Just(Step::Switch),
        4 => machine().prop_map(Step::Reboot),
        1 => (machine(), any::<bool>()).prop_map(|(m, yes)| Step::Lock(m, yes)),
        1 => machine().prop_map(Step::Delete),
        4 => (0..8 * DAY_MS).prop_map(Step::Tick),
    ]
}

fn class(gold: bool) -> &'static str {
    if gold { "gold" } else { "silver" }
}

/// The network of a project.
fn network_of(project: u128) -> String {
    format!("net-{project}")
}

fn used_by(machine: u128, project: u128, allocation: u128) -> AllocateMachine {
    AllocateMachine {
        machine: Some(id(machine)),
        project: id(project),
        networks: vec![WantedNetwork {
            network: text(&network_of(project)),
            ips: vec![],
        }],
        ..named(allocation)
    }
}

/// The commands of a step; none where there is nothing to do.
fn ops(world: &World, step: &Step, counter: u128) -> Vec<Op> {
    let now = world.now;
    match step {
        Step::Owner(machine, project) => vec![owner(*machine, *project).into()],
        Step::Transfer(machine, project, to) => vec![
            TransferMachine {
                machine: id(*machine),
                project: id(*project),
                to: id(*to),
            }
            .into(),
        ],
        Step::Grant(machine, project, lessee, days) => vec![
            GrantLease {
                id: id(counter),
                machine: id(*machine),
                project: id(*project),
                lessee: id(*lessee),
                expires_at: now.plus_ms(days * DAY_MS),
                extendable_until: Some(now.plus_ms(50 * DAY_MS)),
                ..grant(world)
            }
            .into(),
        ],
        Step::Extend(machine, project, days) => vec![
            ExtendLease {
                machine: id(*machine),
                ..extend(*project, now.plus_ms(days * DAY_MS))
            }
            .into(),
        ],
        Step::End(machine, project) => vec![
            EndLease {
                machine: id(*machine),
                ..end(project.map_or(LeaseEnder::Administrator, by))
            }
            .into(),
        ],
        Step::Request(machine, project, to) => vec![
            RequestLeaseTransfer {
                machine: id(*machine),
                ..request(*project, *to)
            }
            .into(),
        ],
        Step::Decide(machine, project, to, consent) => vec![
            DecideLeaseTransfer {
                machine: id(*machine),
                ..decide(*project, *to, *consent)
            }
            .into(),
        ],
        other => ops_of_machines(world, other, counter),
    }
}

fn ops_of_machines(world: &World, step: &Step, counter: u128) -> Vec<Op> {
    match step {
        Step::Class(machine, project, gold) => vec![
            SetMachineCapability {
                machine: id(*machine),
                project: project.map(id),
                resource_class: ClassChange::Set(class(*gold).parse().unwrap()),
                traits: None,
            }
            .into(),
        ],
        Step::Hold(project, seed, gold) => vec![
            CreateNodeAllocation {
                seed: *seed,
                name: Some(format!("n{}", counter % 5)),
                ..wanted(counter, *project, class(*gold))
            }
            .into(),
        ],
        Step::Backfill(project, machine) => vec![
            CreateNodeAllocation {
                resource_class: None,
                backfill: Some(id(*machine)),
                ..wanted(counter, *project, "gold")
            }
            .into(),
        ],
        Step::Release(at, project) => {
            let held = world.tables.all::<NodeAllocation>().nth(*at);
            let project = project.map(id);
            let delete = |id| DeleteNodeAllocation { id, project };
            held.map(|held| delete(held.id).into())
                .into_iter()
                .collect()
        }
        Step::Use(machine, project) => vec![used_by(*machine, *project, counter).into()],
        Step::Free(machine) => {
            let machine: MachineId = id(*machine);
            let found = world.tables.get::<Machine>(&machine);
            let user = found.and_then(|found| found.allocation.as_ref());
            let project = user.map(|user| user.project);
            vec![
                FreeMachine {
                    id: machine,
                    project,
                }
                .into(),
            ]
        }
        Step::Lock(machine, lock) => vec![
            SetMachineState {
                id: id(*machine),
                state: if *lock {
                    Availability::Locked
                } else {
                    Availability::Available
                },
                description: if *lock { "why".into() } else { String::new() },
            }
            .into(),
        ],
        Step::Delete(machine) => vec![DeleteMachine { id: id(*machine) }.into()],
        Step::Tick(_) => vec![
            AcceptTime { time: world.now }.into(),
            Tick::default().into(),
        ],
        _ => Vec::new(),
    }
}

/// The agents do what they shall.
fn agents_work(world: &mut World, step: &Step) {
    match step {
        Step::Bmc => {
            if let Some(action) = world.open_orders().first().copied() {
                world.bmc(action, None);
            }
        }
        Step::Switch => world.switch_obeys(),
        Step::Reboot(number) => {
            let known = world.tables.get::<Machine>(&id(*number));
            let is_due = known.is_none_or(|machine| {
                let is_awaited = matches!(
                    machine.phase,
                    Phase::New | Phase::ReclaimRegister | Phase::Wiping
                );
                is_awaited && machine.condition.state == Availability::Available
            });
            if is_due {
                world.boot(*number, &format!("boot-{}", world.now));
                world.wipe(*number);
                world.event(*number, EventKind::Waiting);
            }
        }
        _ => {}
    }
}

fn check_machines(tables: &Tables) {
    let (partition, size) = (text(PARTITION), text(SIZE));
    let offered = query::allocatable_machines(tables, &partition, &size);
    let offered: BTreeSet<MachineId> = offered.map(|machine| machine.id).collect();
    for machine in tables.all::<Machine>() {
        let tenure = &machine.tenure;
        let lease = tables.get::<Lease>(&machine.id);
        assert_eq!(
            lease.map(|lease| lease.lessee),
            tenure.lessee,
            "{machine:?}"
        );
        assert_eq!(lease.map(|lease| lease.expires_at), tenure.lease_expires_at);
        assert_eq!(
            lease.and_then(|lease| lease.warned_at),
            tenure.lease_warned_at
        );
        if let Some(lease) = lease {
            assert_eq!(
                Some(lease.owner),
                tenure.owner,
                "an owner changed: {lease:?}"
            );
            assert_ne!(lease.owner, lease.lessee);
        }
        let is_offered = offered.contains(&machine.id);
        assert!(!is_offered || tenure.is_default(), "on offer: {machine:?}");
        // Nobody but its user has it, unless it is on its way back.
        if let (Some(used), MachinePool::Of(user)) = (&machine.allocation, tenure.pool())
            && !machine.is_leaving()
        {
            assert_eq!(used.project, user, "{machine:?}");
        }
        if let Some(holder) = tenure.reserved_by {
            let holder = tables.get::<NodeAllocation>(&holder).unwrap();
            assert_eq!(holder.machine, Some(machine.id));
        }
    }
    for lease in tables.all::<Lease>() {
        assert!(tables.get::<Machine>(&lease.machine).is_some(), "{lease:?}");
    }
}

fn check_allocations(tables: &Tables) {
    let (mut held, mut names) = (BTreeSet::new(), BTreeSet::new());
    for allocation in tables.all::<NodeAllocation>() {
        if let Some(name) = &allocation.name {
            assert!(names.insert((allocation.owner, name)), "a name twice");
        }
        let Some(id) = allocation.machine else {
            assert_eq!(allocation.state, NodeAllocationState::Error);
            assert!(!allocation.last_error.is_empty());
            continue;
        };
        assert_eq!(allocation.state, NodeAllocationState::Active);
        assert!(held.insert(id), "two node allocations hold one machine");
        let machine = tables.get::<Machine>(&id).unwrap();
        assert_eq!(machine.tenure.reserved_by, Some(allocation.id));
        let user = machine.allocation.as_ref().map(|used| used.project);
        // One that is bound to a project holds no machine of another one.
        if let Some(owner) = allocation.owner {
            let is_own = machine.tenure.pool() == MachinePool::Of(owner);
            assert!(is_own || user == Some(owner), "{allocation:?} {machine:?}");
            assert!(user.is_none_or(|user| user == owner), "{machine:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn machines_are_their_owners_and_lessees(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        world.ok(project(STRANGER, "acme"));
        for number in 1..=3 {
            world.ok(child(&network_of(number), number));
        }
        for number in 1..=MACHINES {
            world.waiting(number);
            world.ok(SetMachineCapability {
                machine: id(number),
                project: None,
                resource_class: ClassChange::Set("gold".parse().unwrap()),
                traits: None,
            });
        }
        let mut replica = world.tables.clone();
        for (counter, step) in steps.iter().enumerate() {
            world.later(match step { Step::Tick(by_ms) => *by_ms, _ => 1000 });
            agents_work(&mut world, step);
            replica.clone_from(&world.tables);
            for op in ops(&world, step, counter as u128 + 1000) {
                let before = world.tables.clone();
                let command = Command::new(world.now, "random", op);
                let outcome = apply(&mut world.tables, &command);
                if outcome.result.is_err() {
                    prop_assert_eq!(&world.tables, &before);
                }
                prop_assert_eq!(&apply(&mut replica, &command), &outcome);
            }
            world = World::of(world.tables, world.now);
            check_machines(&world.tables);
            check_allocations(&world.tables);
        }
        prop_assert_eq!(replica.state_hash().unwrap(), world.tables.state_hash().unwrap());
        // The indexes are those that loading makes.
        let mut loaded = Tables::new();
        for kind in Kind::ALL {
            for (record, revision) in world.tables.records(*kind) {
                loaded.load(*kind, &record.encode().unwrap(), revision).unwrap();
            }
        }
        prop_assert_eq!(loaded.indexes(), world.tables.indexes());
    }
}
