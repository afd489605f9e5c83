//! Clients that read and write.

use std::time::Duration;

use control_store::StoreError;

use crate::machine::{Put, applied};
use crate::node::{NodeRequest, Shared, World};
use crate::operator::ask;
use crate::plan::NODES_MAX;
use crate::random::Random;
use crate::registers::{RegisterRequest, RegisterWork};

const KEYS: u64 = 6;

/// One client, call after call, until the clients are to stop.
pub(crate) async fn run(world: Shared<RegisterWork>, number: u64) {
    let plan = world.borrow().plan.clone();
    let mut random = Random::new(plan.seed, &format!("client {number}"));
    let mut leader = None;
    for call in 0_u64.. {
        let pause = random.within(0..plan.think_ms_max);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if world.borrow().is_calm {
            return;
        }
        // Most clients follow the leader, some ask whom they like.
        let node = match leader.take() {
            Some(leader) if random.chance(70) => leader,
            _ => random.within(1..NODES_MAX + 1),
        };
        let patience = Duration::from_millis(random.within(500..8000));
        let key = random.within(0..KEYS) as u8;
        if random.chance(50) {
            let value = (number << 32) | call;
            leader = put(
                &world,
                node,
                patience,
                Put {
                    key,
                    value,
                    at_ms: 0,
                },
            )
            .await;
        } else {
            leader = read(&world, node, patience, key).await;
        }
    }
}

/// Writes; returns whom to ask next.
async fn put(world: &Shared<RegisterWork>, node: u64, patience: Duration, put: Put) -> Option<u64> {
    let began = {
        let mut world = world.borrow_mut();
        world.work.oracle.issue(&put);
        world.work.oracle.begin()
    };
    let answer = ask(world, node, patience, |to| {
        NodeRequest::Work(RegisterRequest::Put(put, to))
    })
    .await;
    let mut world = world.borrow_mut();
    world.log(format_args!("put {} at n{node}: {answer:?}", put.value));
    match answer {
        Some(Ok(revision)) => {
            let told = applied(|a| world.work.oracle.acknowledge(began, &put, revision, a));
            judge(&mut world, told);
            Some(node)
        }
        Some(Err(error)) => {
            if is_refusal(&error) {
                world.work.oracle.refuse(&put);
            }
            next_node(&error)
        }
        None => None,
    }
}

async fn read(world: &Shared<RegisterWork>, node: u64, patience: Duration, key: u8) -> Option<u64> {
    let began = world.borrow().work.oracle.begin();
    let answer = ask(world, node, patience, |to| {
        NodeRequest::Work(RegisterRequest::Read(key, to))
    })
    .await;
    let mut world = world.borrow_mut();
    world.log(format_args!("read {key} at n{node}: {answer:?}"));
    match answer {
        Some(Ok(found)) => {
            let told = applied(|a| world.work.oracle.read(began, key, found, a));
            judge(&mut world, told);
            Some(node)
        }
        Some(Err(error)) => next_node(&error),
        None => None,
    }
}

fn judge(world: &mut World<RegisterWork>, told: Result<(), String>) {
    if let Err(reason) = told {
        world.fail(reason);
    }
}

/// Does the error promise that nothing was done?
fn is_refusal(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::NotLeader { .. } | StoreError::Busy { .. } | StoreError::ShutDown
    )
}

fn next_node(error: &StoreError) -> Option<u64> {
    match error {
        StoreError::NotLeader { leader } => *leader,
        _ => None,
    }
}
