//! The operator who forms the cluster and changes its members, and how anybody asks a node.

use std::time::Duration;

use control_store::MemberChange;
use tokio::sync::oneshot;

use crate::net;
use crate::node::{NodeRequest, Shared};
use crate::plan::NODES_MAX;
use crate::random::Random;
use crate::workload::Workload;

/// How long the operator waits for one answer.
const OPERATOR_PATIENCE: Duration = Duration::from_secs(15);

/// Sends one request; `None` when there was no answer.
pub(crate) async fn ask<W: Workload, T>(
    world: &Shared<W>,
    node: u64,
    patience: Duration,
    request: impl FnOnce(oneshot::Sender<T>) -> NodeRequest<W>,
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

/// Makes the cluster what the plan says, before any fault.
pub(crate) async fn form<W: Workload>(world: Shared<W>) {
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
async fn admit<W: Workload>(world: &Shared<W>, node: u64) {
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
async fn change_members<W: Workload>(world: &Shared<W>, change: MemberChange) -> bool {
    let Some(leader) = world.borrow().leader() else {
        return false;
    };
    let to_ask = change.clone();
    let request = |to| NodeRequest::Members(to_ask, to);
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
pub(crate) async fn operate<W: Workload>(world: Shared<W>) {
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
                ask(&world, node, patience, NodeRequest::Snapshot).await;
            }
        }
    }
}
