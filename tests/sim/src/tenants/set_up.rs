//! Everything that is there before the first tenant comes.

use std::collections::BTreeMap;
use std::time::Duration;

use control_state::{
    ChildLength, CreateChildNetwork, CreateImage, CreateNetwork, CreatePartition, CreateProject,
    CreateSize, ErrorCode, ErrorKind, Limits, Machine, NetworkType, Op, Phase, QuotaSubject,
    RegisterSwitch, SetMachineOwner, SetProjectLabels, SetQuota, Tables,
};
use tests_support::announcement;
use tests_support::objects::{
    IMAGE, PARTITION, child, image, leaf, network, partition, project, size, tenant,
};
use tokio::task::JoinSet;

use super::calls::{Call, deliver};
use super::site::{self, HOSTS, LEAVES, MACHINES, POOLS, PORTS, TENANTS};
use super::work::TenantWork;
use super::{ids, people};
use crate::node::Shared;
use crate::random::Random;

/// Most machines of a project: one, two or three.
pub(crate) fn quota(tenant: u64, machines: u64) -> SetQuota {
    SetQuota {
        subject: QuotaSubject::Project(ids::project(tenant)),
        limits: Limits {
            machines: u32::try_from(machines).ok(),
            ..Limits::default()
        },
    }
}

/// The label that the pool `gold` asks for, of every fifth tenant.
pub(crate) fn tier(tenant: u64, is_gold: bool) -> SetProjectLabels {
    let label = ("tier".to_owned(), "gold".to_owned());
    SetProjectLabels {
        project: ids::project(tenant),
        alias: Some(format!("team-{tenant}")),
        labels: is_gold.then_some(label).into_iter().collect(),
    }
}

/// Commands in stages: those of one stage do not depend on each other.
fn stages() -> Vec<Vec<Op>> {
    let tenants = || 1..=TENANTS;
    let login = |number: u64| format!("tenant-{number}");
    let mut catalogue: Vec<Op> = vec![
        CreatePartition(partition(PARTITION)).into(),
        CreateSize(size()).into(),
        CreateImage(image(IMAGE)).into(),
    ];
    catalogue.extend(tenants().map(|number| Op::from(tenant(&login(number), None))));
    let mut projects: Vec<Op> = tenants()
        .map(|number| {
            let made = project(u128::from(number), &login(number));
            let id = ids::project(number);
            Op::from(CreateProject { id, ..made })
        })
        .collect();
    projects.push(super_network().into());
    projects.extend((1..=LEAVES).map(|number| Op::from(leaf_of(number))));
    projects.extend(POOLS.map(|pool| Op::from(site::pool(pool, 0))));
    let mut rights: Vec<Op> = tenants()
        .map(|number| quota(number, number % 3 + 1).into())
        .collect();
    rights.extend(tenants().map(|number| Op::from(tier(number, number.is_multiple_of(5)))));
    rights.extend(tenants().map(|number| Op::from(child_of(number))));
    vec![vec![announcement(1).into()], catalogue, projects, rights]
}

fn super_network() -> CreateNetwork {
    CreateNetwork {
        kind: NetworkType::Super,
        // Room for a network of each tenant.
        default_child_length: ChildLength {
            v4: Some(24),
            v6: None,
        },
        ..network("super")
    }
}

fn child_of(tenant: u64) -> CreateChildNetwork {
    CreateChildNetwork {
        id: site::network_of(tenant),
        project: ids::project(tenant),
        ..child("private", 1)
    }
}

fn leaf_of(number: u64) -> RegisterSwitch {
    let ports: BTreeMap<_, _> = (1..=PORTS)
        .map(|port| (format!("swp{port}"), None))
        .collect();
    RegisterSwitch {
        ports,
        vtep_ip: format!("10.0.0.{number}").parse().ok(),
        ..leaf(&site::leaf_name(number), &format!("rack-{number}"))
    }
}

/// Hosts enter their pools, and the other machines get their owners.
fn machines() -> Vec<Op> {
    let hosts = (1..=HOSTS).map(|number| Op::from(site::host(number)));
    let owned = (HOSTS + 1..=MACHINES).map(|number| {
        Op::from(SetMachineOwner {
            machine: ids::machine(number),
            owner: Some(ids::project(site::owner_of(number))),
        })
    });
    hosts.chain(owned).collect()
}

/// Makes the site, and powers its machines on.
pub(crate) async fn run(world: Shared<TenantWork>) {
    for (number, stage) in stages().into_iter().enumerate() {
        insist_on_all(&world, stage, &format!("stage {number}")).await;
    }
    for chassis in world.borrow_mut().work.chassis.values_mut() {
        chassis.reset();
    }
    people::wait_until(&world, all_wait).await;
    insist_on_all(&world, machines(), "machines").await;
    world.borrow_mut().work.is_set_up = true;
}

/// Does every machine wait, wiped?
fn all_wait(tables: &Tables) -> bool {
    let machines = tables.all::<Machine>();
    let waiting = machines.filter(|machine| machine.phase == Phase::Waiting && !machine.dirty);
    u64::try_from(waiting.count()) == Ok(MACHINES)
}

/// Has commands of one stage carried out, all at the same time.
async fn insist_on_all(world: &Shared<TenantWork>, stage: Vec<Op>, name: &str) {
    let seed = world.borrow().plan.seed;
    let mut tasks = JoinSet::new();
    for (number, op) in stage.into_iter().enumerate() {
        let random = Random::new(seed, &format!("{name}, {number}"));
        tasks.spawn_local(insist(world.clone(), random, op));
    }
    while tasks.join_next().await.is_some() {}
}

/// Has a command carried out. Repeated after a lost answer it may be refused: the object is there. A
/// node that lags does not know yet what all nodes know.
async fn insist(world: Shared<TenantWork>, mut random: Random, op: Op) {
    const PAUSE: Duration = Duration::from_millis(500);
    let call = Call::of("administrator", op);
    while !world.borrow().is_calm {
        match deliver(&world, &mut random, &call).await {
            Some(Ok(_)) => return,
            Some(Err(error)) if error.kind() == ErrorKind::AlreadyExists => return,
            Some(Err(error)) if error.code != ErrorCode::NotEnabled => {
                let name = call.op.name();
                world.borrow_mut().fail(format!("set-up: {name}: {error}"));
                return;
            }
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}
