//! Nobody starves, over random lines of claims: a host that becomes free goes to the first claim that
//! it fits, and no claim waits while a host is free for it. A node that has just started gives the same
//! answers.

use std::cmp::Reverse;

use control_state::*;
use proptest::prelude::*;
use proto_types::*;

use super::properties::reloaded;
use super::site::*;
use crate::world::*;

/// Machines of the pool, of three kinds.
const HOSTS: u128 = 4;
/// Projects that claim.
const PROJECTS: u128 = 3;
/// Steps between two answers that are held against those of a node that has just started.
const RESTART_EVERY: usize = 3;

#[derive(Debug, Clone)]
enum QueueStep {
    Ask {
        project: u128,
        /// 0 stands for any kind.
        kind: u8,
        priority: u32,
    },
    /// Ends one of the claims that are not over.
    End(usize),
    Bound {
        project: u128,
        machines: u32,
    },
    /// Takes a host out of service, or back into it.
    Cordon {
        host: u128,
        is_cordoned: bool,
    },
}

fn step() -> impl Strategy<Value = QueueStep> {
    let project = || 1..=PROJECTS;
    prop_oneof![
        6 => (project(), 0..4_u8, 0..4_u32).prop_map(|(project, kind, priority)| {
            QueueStep::Ask { project, kind, priority }
        }),
        5 => (0..64_usize).prop_map(QueueStep::End),
        1 => (project(), 0..3_u32)
            .prop_map(|(project, machines)| QueueStep::Bound { project, machines }),
        1 => (1..=HOSTS, any::<bool>())
            .prop_map(|(host, is_cordoned)| QueueStep::Cordon { host, is_cordoned }),
    ]
}

fn start() -> World {
    let mut world = World::pooled();
    world.ok(project(3, "acme"));
    for number in 1..=HOSTS {
        world.waiting(number);
        world.ok(plain(number));
    }
    world
}

fn kind(number: u128) -> String {
    format!("kind={}", number % 3)
}

fn plain(number: u128) -> SetPoolHost {
    host(number, &[&kind(number)])
}

/// Claims that are not over, in the order of ids.
fn live(tables: &Tables) -> Vec<Claim> {
    let claims = tables.all::<Claim>();
    let live = claims.filter(|claim| claim.state != ClaimState::Gone);
    live.map(|claim| Claim::clone(claim)).collect()
}

/// The command of a step. `None` means that there is nothing to do.
fn op_of(tables: &Tables, step: &QueueStep, counter: u128) -> Option<Op> {
    Some(match step {
        QueueStep::Ask {
            project,
            kind,
            priority,
        } => {
            let of: Vec<String> = (*kind > 0)
                .then(|| format!("kind={}", kind - 1))
                .into_iter()
                .collect();
            let of: Vec<&str> = of.iter().map(String::as_str).collect();
            let spec = ClaimSpec {
                priority: *priority,
                ..asking(&of)
            };
            claim(counter, *project, spec).into()
        }
        QueueStep::End(at) => {
            let live = live(tables);
            let ended = live.get(at % live.len().max(1))?;
            DeleteClaim {
                id: ended.id,
                project: ended.project,
                epoch: None,
            }
            .into()
        }
        QueueStep::Bound { project, machines } => SetQuota {
            subject: QuotaSubject::Project(id(*project)),
            limits: Limits {
                machines: Some(*machines),
                ..Limits::default()
            },
        }
        .into(),
        QueueStep::Cordon { host, is_cordoned } => SetPoolHost {
            cordon: is_cordoned.then(|| "broken".to_owned()),
            ..plain(*host)
        }
        .into(),
    })
}

/// The place of a claim in the line for a host: less is earlier.
fn place(claim: &Claim) -> (Reverse<u32>, u64) {
    (Reverse(claim.spec.priority), claim.queue.number)
}

fn fits(claim: &Claim, host: &PoolHost) -> bool {
    let labels = &host.meta.labels;
    let selector = &claim.spec.selector;
    selector.holds(|key| labels.get(key).map(String::as_str))
}

fn machines_of(tables: &Tables, project: ProjectId) -> u32 {
    let bindings = tables
        .all::<PoolHost>()
        .filter_map(|host| host.binding.as_ref());
    let own = bindings.filter(|binding| binding.project == project);
    u32::try_from(own.count()).unwrap()
}

fn has_room(tables: &Tables, project: ProjectId) -> bool {
    let quota = tables.get::<Quota>(&QuotaSubject::Project(project));
    let limit = quota.and_then(|quota| quota.limits.machines);
    limit.is_none_or(|limit| machines_of(tables, project) < limit)
}

fn waiting(tables: &Tables) -> Vec<Claim> {
    let mut live = live(tables);
    live.retain(|claim| claim.state == ClaimState::Pending);
    live
}

/// No claim waits that a free host would serve.
fn nothing_is_left_over(tables: &Tables) {
    let free = |host: &&std::sync::Arc<PoolHost>| {
        host.binding.is_none() && host.cordon.is_none() && host.is_clean() && host.seen.is_ready
    };
    for host in tables.all::<PoolHost>().filter(free) {
        for claim in waiting(tables) {
            let is_servable = fits(&claim, host) && has_room(tables, claim.project);
            assert!(!is_servable, "{claim:?} waits beside {host:?}");
        }
    }
}

/// A host that a claim gave back goes to nobody as long as a claim before that one in the line fits it.
fn nobody_is_passed_over(before: &Tables, after: &Tables) {
    for host in after.all::<PoolHost>() {
        let was = before.get::<PoolHost>(&host.machine).unwrap();
        let (Some(had), Some(has)) = (&was.binding, &host.binding) else {
            continue;
        };
        if had.claim == has.claim {
            continue;
        }
        let winner = after.get::<Claim>(&has.claim).unwrap();
        for claim in waiting(after) {
            let is_servable = fits(&claim, host) && has_room(after, claim.project);
            let is_behind = place(winner) < place(&claim);
            assert!(!is_servable || is_behind, "{winner:?} passed {claim:?}");
        }
    }
}

/// Quotas are kept, and what they are held against is what a count comes to.
fn quotas_hold(before: &Tables, after: &Tables) {
    for quota in after.all::<Quota>() {
        let QuotaSubject::Project(project) = &quota.subject else {
            continue;
        };
        let machines = machines_of(after, *project);
        assert_eq!(query::counts(after, quota).machines, machines);
        let is_more = machines > machines_of(before, *project);
        let limit = quota.limits.machines.unwrap_or(u32::MAX);
        assert!(!is_more || machines <= limit, "{machines} of {limit}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 1000, ..ProptestConfig::default() })]

    #[test]
    fn hosts_go_to_the_first_in_the_line_and_nobody_starves(
        steps in prop::collection::vec(step(), 1..80)
    ) {
        let mut world = start();
        for (at, step) in steps.iter().enumerate() {
            world.later(1_000);
            let Some(op) = op_of(&world.tables, step, at as u128) else {
                continue;
            };
            let before = world.tables.clone();
            let outcome = world.apply(op.clone());
            prop_assert!(outcome.result.is_ok(), "{:?}", outcome.result);
            if at % RESTART_EVERY == 0 {
                let mut restarted = reloaded(&before);
                let command = Command::new(world.now, "tester", op);
                prop_assert_eq!(&apply(&mut restarted, &command), &outcome);
            }
            nothing_is_left_over(&world.tables);
            nobody_is_passed_over(&before, &world.tables);
            quotas_hold(&before, &world.tables);
        }
        // Whoever has a host gives it back, again and again: in the end only those wait for whom there is
        // no host or no quota.
        for _ in 0..=steps.len() {
            let bound = live(&world.tables).into_iter().find(|claim| claim.state.has_host());
            let Some(claim) = bound else { break };
            let end = DeleteClaim { id: claim.id, project: claim.project, epoch: None };
            let before = world.tables.clone();
            world.ok(end);
            nobody_is_passed_over(&before, &world.tables);
        }
        nothing_is_left_over(&world.tables);
        let is_held = world.tables.all::<PoolHost>().any(|host| host.binding.is_some());
        prop_assert!(!is_held, "more releases than claims");
    }
}
