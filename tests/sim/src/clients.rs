//! Clients that read and write, and the operator who forms the cluster and changes its members.

use std::time::Duration;

use control_store::{MemberChange, StoreError};
use tokio::sync::oneshot;

use crate::machine::{Put, applied};
use crate::net;
use crate::node::{Request, Shared, World};
use crate::plan::NODES_MAX;
use crate::random::Random;

const KEYS: u64 = 6;
/// How long the operator waits for one answer.
const OPERATOR_PATIENCE: Duration = Duration::from_secs(15);

/// One client, call after call, until the clients are to stop.
pub(crate) async fn run(world: Shared, number: u64) {
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

/// Sends one request; `None` when there was no answer.
async fn ask<T>(
    world: &Shared,
    node: u64,
    patience: Duration,
    request: impl FnOnce(oneshot::Sender<T>) -> Request,
) -> Option<T> {
    let mailbox = world.borrow().nodes.get(&node)?.mailbox.clone()?;
    let (to, answer) = oneshot::channel();
    mailbox.try_send(request(to)).ok()?;
    // The requests of a crashed node end in an order that differs from process to process, so
    // that a client must not notice: it waits as if the answer had been lost on its way.
    let answer = async {
        match answer.await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::time::timeout(patience, answer).await.ok()
}

/// Writes; returns whom to ask next.
async fn put(world: &Shared, node: u64, patience: Duration, put: Put) -> Option<u64> {
    let began = {
        let mut world = world.borrow_mut();
        world.oracle.issue(&put);
        world.oracle.begin()
    };
    let answer = ask(world, node, patience, |to| Request::Put(put, to)).await;
    let mut world = world.borrow_mut();
    world.log(format_args!("put {} at n{node}: {answer:?}", put.value));
    match answer {
        Some(Ok(revision)) => {
            let told = applied(|a| world.oracle.acknowledge(began, &put, revision, a));
            judge(&mut world, told);
            Some(node)
        }
        Some(Err(error)) => {
            if is_refusal(&error) {
                world.oracle.refuse(&put);
            }
            next_node(&error)
        }
        None => None,
    }
}

async fn read(world: &Shared, node: u64, patience: Duration, key: u8) -> Option<u64> {
    let began = world.borrow().oracle.begin();
    let answer = ask(world, node, patience, |to| Request::Read(key, to)).await;
    let mut world = world.borrow_mut();
    world.log(format_args!("read {key} at n{node}: {answer:?}"));
    match answer {
        Some(Ok(found)) => {
            let told = applied(|a| world.oracle.read(began, key, found, a));
            judge(&mut world, told);
            Some(node)
        }
        Some(Err(error)) => next_node(&error),
        None => None,
    }
}

fn judge(world: &mut World, told: Result<(), String>) {
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

/// Makes the cluster what the plan says, before any fault.
pub(crate) async fn form(world: Shared) {
    let voters = world.borrow().plan.voters;
    for node in 1..=voters {
        if let Some(node) = world.borrow_mut().nodes.get_mut(&node) {
            node.is_wanted = true;
        }
        if node > 1 {
            admit(&world, node).await;
        }
    }
    world.borrow_mut().is_formed = true;
}

/// Adds a node, and gives it a vote once it has caught up.
async fn admit(world: &Shared, node: u64) {
    if let Some(node) = world.borrow_mut().nodes.get_mut(&node) {
        node.is_wanted = true;
    }
    let address = net::host(node);
    for change in [
        MemberChange::Add { node, address },
        MemberChange::Promote { node },
    ] {
        while !world.borrow().is_calm && !change_members(world, change.clone()).await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// True when the change is made, or was before.
async fn change_members(world: &Shared, change: MemberChange) -> bool {
    let Some(leader) = world.borrow().leader() else {
        return false;
    };
    let to_ask = change.clone();
    let request = |to| Request::Members(to_ask, to);
    let answer = ask(world, leader, OPERATOR_PATIENCE, request).await;
    let mut world = world.borrow_mut();
    world.log(format_args!("{change:?} at n{leader}: {answer:?}"));
    match (&answer, &change) {
        (Some(Ok(())), _) => true,
        (Some(Err(_)), MemberChange::Add { node, .. }) => world.members().contains(node),
        (Some(Err(_)), MemberChange::Promote { node }) => world.voters().contains(node),
        (Some(Err(_)), MemberChange::Remove { node }) => !world.members().contains(node),
        _ => false,
    }
}

/// Changes the membership, over and over, while faults happen.
pub(crate) async fn operate(world: Shared) {
    let plan = world.borrow().plan.clone();
    let mut random = Random::new(plan.seed, "operator");
    let mut fresh = plan.voters + 1;
    loop {
        let pause = random.within(200..6000);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if world.borrow().is_calm {
            return;
        }
        let voters = world.borrow().voters();
        let Some(node) = random.pick(&voters).copied() else {
            continue;
        };
        match random.within(0..10) {
            0..5 if fresh <= NODES_MAX => {
                admit(&world, fresh).await;
                fresh += 1;
            }
            0..7 if voters.len() > 2 => {
                change_members(&world, MemberChange::Remove { node }).await;
            }
            7..9 => {
                change_members(&world, MemberChange::Lead { node }).await;
            }
            _ => {
                let patience = OPERATOR_PATIENCE;
                ask(&world, node, patience, Request::Snapshot).await;
            }
        }
    }
}
