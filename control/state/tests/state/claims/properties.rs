//! Invariants of claims and pools, over random sequences of commands.

use std::collections::BTreeSet;

use control_state::*;
use proptest::prelude::*;

use super::site::*;
use crate::leases::owner;
use crate::node_allocations::{capable, wanted};
use crate::world::*;

/// Machines of the pool.
const HOSTS: u128 = 3;
/// Claims that steps name.
const CLAIMS: u128 = 6;
/// Machines that the quota of project 1 allows.
const QUOTA: u32 = 2;
/// Most steps that a machine needs from anywhere to the pool.
const ROUND_MAX: usize = 24;

#[derive(Debug, Clone)]
enum ClaimStep {
    Create {
        claim: u128,
        kind: u8,
        image: bool,
        reuse: bool,
    },
    Delete {
        claim: u128,
    },
    Image {
        claim: u128,
        there: bool,
    },
    Hold {
        claim: u128,
        is_held: bool,
    },
    Advance {
        host: u128,
    },
    Relabel {
        host: u128,
        kind: u8,
        is_cordoned: bool,
    },
    Admit {
        project: Option<u128>,
    },
    Remove {
        host: u128,
    },
    Own {
        host: u128,
        project: Option<u128>,
    },
    Reserve,
    Unreserve,
    Tick {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = ClaimStep> {
    let claim = 0..CLAIMS;
    let host = 1..=HOSTS;
    prop_oneof![
        4 => (claim.clone(), 0..3_u8, any::<bool>(), any::<bool>()).prop_map(
            |(claim, kind, image, reuse)| ClaimStep::Create { claim, kind, image, reuse }
        ),
        3 => claim.clone().prop_map(|claim| ClaimStep::Delete { claim }),
        2 => (claim.clone(), any::<bool>())
            .prop_map(|(claim, there)| ClaimStep::Image { claim, there }),
        1 => (claim, any::<bool>()).prop_map(|(claim, is_held)| ClaimStep::Hold { claim, is_held }),
        12 => host.clone().prop_map(|host| ClaimStep::Advance { host }),
        1 => (host.clone(), 0..3_u8, any::<bool>()).prop_map(
            |(host, kind, is_cordoned)| ClaimStep::Relabel { host, kind, is_cordoned }
        ),
        1 => prop_oneof![Just(None), Just(Some(1)), Just(Some(2))]
            .prop_map(|project| ClaimStep::Admit { project }),
        1 => host.clone().prop_map(|host| ClaimStep::Remove { host }),
        1 => (host, prop_oneof![Just(None), Just(Some(2))])
            .prop_map(|(host, project)| ClaimStep::Own { host, project }),
        1 => Just(ClaimStep::Reserve),
        1 => Just(ClaimStep::Unreserve),
        2 => prop_oneof![Just(2_000), Just(90_000), Just(700_000)]
            .prop_map(|ms| ClaimStep::Tick { ms }),
    ]
}

/// Claims with even numbers are of project 1, the others of project 2.
fn project_of(claim: u128) -> u128 {
    1 + claim % 2
}

fn spec(claim: u128, kind: u8, image: bool, reuse: bool) -> ClaimSpec {
    let of: Vec<String> = (kind > 0)
        .then(|| format!("kind={kind}"))
        .into_iter()
        .collect();
    let of: Vec<&str> = of.iter().map(String::as_str).collect();
    let mut spec = match image {
        true => installing(&of),
        false => asking(&of),
    };
    if project_of(claim) == 2 {
        for wanted in &mut spec.networks {
            wanted.network = text("other");
        }
    }
    spec.reuse = reuse.then(|| ReuseWish {
        key: "k".into(),
        required: false,
        keep_ms: 60_000,
        wipe: (kind > 0).then_some(WipeLevel::Metadata),
    });
    spec
}

fn start() -> World {
    let mut world = World::pooled();
    world.ok(keeping_pool());
    world.ok(child("other", 2));
    world.ok(SetQuota {
        subject: QuotaSubject::Project(id(1)),
        limits: Limits {
            machines: Some(QUOTA),
            ..Limits::default()
        },
    });
    for number in 1..=HOSTS {
        world.waiting(number);
        world.ok(capable(number, "gold", &[]));
        world.ok(host(number, &[&format!("kind={}", number % 3)]));
    }
    world
}

fn take(world: &mut World, step: &ClaimStep, counter: u128) {
    world.later(1_000);
    let op: Op = match step {
        ClaimStep::Create {
            claim: number,
            kind,
            image,
            reuse,
        } => CreateClaim {
            id: id(0xd000 + counter),
            name: format!("claim-{number}"),
            ..claim(
                *number,
                project_of(*number),
                spec(*number, *kind, *image, *reuse),
            )
        }
        .into(),
        ClaimStep::Delete { claim } => match named(world, *claim) {
            Some(found) => DeleteClaim {
                id: found.id,
                project: found.project,
                epoch: None,
            }
            .into(),
            None => return,
        },
        ClaimStep::Image { claim, there } => match named(world, *claim) {
            Some(found) => {
                let mut changed = found.spec.clone();
                let with = spec(*claim, 0, *there, false);
                changed.image = with.image;
                changed.networks = with.networks;
                changed.layout = with.layout;
                UpdateClaim {
                    id: found.id,
                    project: found.project,
                    ..intent(0, changed)
                }
                .into()
            }
            None => return,
        },
        ClaimStep::Hold { claim, is_held } => match named(world, *claim) {
            Some(found) => HoldClaim {
                id: found.id,
                project: found.project,
                epoch: None,
                key: "k".into(),
                is_held: *is_held,
                reason: String::new(),
            }
            .into(),
            None => return,
        },
        ClaimStep::Advance { host } => return advance(world, *host),
        ClaimStep::Relabel {
            host: number,
            kind,
            is_cordoned,
        } => SetPoolHost {
            cordon: is_cordoned.then(|| "broken".to_owned()),
            ..host(*number, &[&format!("kind={kind}")])
        }
        .into(),
        ClaimStep::Admit { project } => SetPool {
            policies: vec![project.map_or_else(everybody, only)],
            ..keeping_pool()
        }
        .into(),
        ClaimStep::Remove { host } => RemovePoolHost {
            machine: id(*host),
            force: true,
        }
        .into(),
        ClaimStep::Own { host, project } => owner(*host, *project).into(),
        ClaimStep::Reserve => wanted(0xe000 + counter, None, "gold").into(),
        ClaimStep::Unreserve => match world.tables.all::<NodeAllocation>().next() {
            Some(held) => DeleteNodeAllocation {
                id: held.id,
                project: None,
            }
            .into(),
            None => return,
        },
        ClaimStep::Tick { ms } => {
            world.later(*ms);
            Tick::default().into()
        }
    };
    // A command may be refused: what must hold holds after refusals too.
    let _refused = world.apply(op).result.is_err();
}

fn named(world: &World, number: u128) -> Option<Claim> {
    let name = format!("claim-{number}");
    let found = query::named_claim(&world.tables, id(project_of(number)), &name);
    found.map(|claim| Claim::clone(claim))
}

/// At most one claim a host and one host a claim, and both say so; quotas hold; nothing that is
/// dirty, or has data of another project, is bound to somebody new; BMCs get orders of the current
/// epoch alone.
fn check(before: &Tables, after: &Tables) {
    let mut bound = BTreeSet::new();
    let mut of_first = 0;
    for host in after.all::<PoolHost>() {
        let Some(binding) = &host.binding else {
            continue;
        };
        assert!(
            bound.insert(binding.claim),
            "{:?} has two hosts",
            binding.claim
        );
        of_first += u32::from(binding.project == id(1));
        let claim = after.get::<Claim>(&binding.claim).unwrap();
        let own = claim.binding.as_ref().unwrap();
        assert_eq!((own.machine, own.epoch), (host.machine, host.epoch));
        assert!(claim.state.has_host(), "{claim:?}");
        let was = before.get::<PoolHost>(&host.machine);
        let was_bound = was.is_some_and(|was| was.epoch == host.epoch && was.binding.is_some());
        if !was_bound {
            let machine = before.get::<Machine>(&host.machine).unwrap();
            let is_fresh = was.is_none_or(|was| was.epoch + 1 == host.epoch);
            assert!(is_fresh, "an epoch was left out");
            // The command that binds may be the one that says that the host is clean.
            let now = after.get::<Machine>(&host.machine).unwrap();
            let is_allocated = now.allocation.is_some();
            assert!(is_allocated || !now.dirty, "{machine:?}");
            // Data that was left is the project's own.
            let kept = was.and_then(|was| was.reserved.as_ref());
            let is_own = kept.is_some_and(|kept| kept.project == binding.project);
            assert!(!is_light(now) || is_own, "{was:?} {now:?}");
            // Nobody is bound whom the pool does not admit at that time.
            let pool = after.get::<HostPool>(&host.pool).unwrap();
            let admits = |policy: &DeployPolicy| {
                policy.allow_all || policy.projects.contains(&binding.project)
            };
            assert!(pool.policies.iter().any(admits), "{host:?}");
        }
    }
    for claim in after.all::<Claim>() {
        assert_eq!(
            claim.state.has_host(),
            bound.contains(&claim.id),
            "{claim:?}"
        );
    }
    assert!(of_first <= QUOTA, "{of_first} machines of project 1");
    for order in life::bmc_desired(after, &text(PARTITION)) {
        let host = after.get::<PoolHost>(&order.machine);
        let is_current = host.is_none_or(|host| order.epoch == host.epoch);
        assert!(is_current, "of another binding: {order:?}");
    }
    check_machines(after);
}

/// A machine is where its host says, serves its claim alone, and is offered without data.
fn check_machines(after: &Tables) {
    for machine in after.all::<Machine>() {
        let is_offered = !machine.dirty && machine.pool.is_none();
        assert!(!(is_offered && is_light(machine)), "{machine:?}");
        let host = after.get::<PoolHost>(&machine.id);
        assert_eq!(machine.pool.as_ref(), host.map(|host| &host.pool));
        assert!(host.is_none() || machine.tenure.is_default(), "{machine:?}");
        let Some(grant) = machine.allocation.as_ref().and_then(|found| found.claim) else {
            continue;
        };
        let binding = host.and_then(|host| host.binding.as_ref());
        let is_current = binding.is_some_and(|binding| binding.claim == grant.claim);
        assert!(is_current || machine.is_leaving(), "{machine:?}");
    }
}

/// The same tables as a node has that was started anew.
pub(super) fn reloaded(tables: &Tables) -> Tables {
    let mut fresh = Tables::new();
    for kind in Kind::ALL {
        for (record, revision) in tables.records(*kind) {
            fresh
                .load(*kind, &record.encode().unwrap(), revision)
                .unwrap();
        }
    }
    fresh.set_revision(tables.revision());
    fresh
}

/// Runs steps. A node that starts anew before one of them comes to the same state.
fn run(steps: &[ClaimStep], restarts_at: Option<usize>) -> World {
    let mut world = start();
    for (at, step) in steps.iter().enumerate() {
        if restarts_at == Some(at) {
            let fresh = reloaded(&world.tables);
            assert_eq!(fresh.indexes(), world.tables.indexes());
            world = World::of(fresh, world.now);
        }
        let before = world.tables.clone();
        take(&mut world, step, at as u128);
        check(&before, &world.tables);
    }
    world
}

/// Everything is given back, and every host that is in the pool is offered again.
fn drain(world: &mut World) {
    for claim in 0..CLAIMS {
        take(world, &ClaimStep::Delete { claim }, 0);
    }
    for number in 1..=HOSTS {
        for _ in 0..ROUND_MAX {
            advance(world, number);
        }
    }
    world.ok(keeping_pool());
    let all = world.tables.all::<NodeAllocation>();
    let held: Vec<_> = all.map(|held| held.id).collect();
    for allocation in held {
        world.ok(DeleteNodeAllocation {
            id: allocation,
            project: None,
        });
    }
    for number in 1..=HOSTS {
        world.ok(owner(number, None));
        world.ok(host(number, &[]));
    }
    // Reservations end, and whoever waits is looked at once more.
    world.tick(61_000);
    // A host that was kept with data is wiped in full first.
    for number in 1..=HOSTS {
        for _ in 0..ROUND_MAX {
            advance(world, number);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 1000, ..ProptestConfig::default() })]

    #[test]
    fn one_claim_a_host_and_one_host_a_claim(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = run(&steps, None);
        let restarted = run(&steps, Some(steps.len() / 2));
        let hash = world.tables.state_hash().unwrap();
        prop_assert_eq!(hash, restarted.tables.state_hash().unwrap());
        drain(&mut world);
        let over = world.tables.all::<Claim>().all(|claim| claim.state == ClaimState::Gone);
        prop_assert!(over, "{:?}", world.tables.all::<Claim>().collect::<Vec<_>>());
        // Nobody starves: as many claims as there are hosts are served, those of project 1 within
        // its quota.
        let quota = u128::from(QUOTA);
        for number in 0..HOSTS {
            let project = if number < quota { 1 } else { 2 };
            world.ok(claim(100 + number, project, asking(&[])));
            prop_assert!(world.host_of(100 + number).is_some(), "{:?}", world.claim(100 + number));
        }
    }
}
