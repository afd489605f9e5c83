//! Calls of people and agents: a message, or its answer, may be lost, and a message may come twice.

use std::time::Duration;

use control_state::{Machine, Op, Reply, StateError, Tables};
use control_store::ProposeError;
use proto_types::{AllocationId, MachineId};

use super::work::{SiteRequest, TenantWork};
use crate::node::{NodeRequest, Shared};
use crate::operator::ask;
use crate::random::Random;

/// Most attempts of a call; its sender then goes on without an answer.
const TRIES_MAX: u32 = 100;
/// Calls of a hundred that get lost, and as many answers.
const LOST_PERCENT: u64 = 3;
/// Calls of a hundred that come once more, later.
const TWICE_PERCENT: u64 = 3;
/// Time after which a call that comes twice has come, milliseconds.
const TWICE_WITHIN_MS: u64 = 3_000;

/// The credential of an agent: the gateway refuses one that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Of hammer, for one boot.
    Boot { machine: MachineId, boot: String },
    /// Of an installed system, for one tenancy.
    Tenancy {
        machine: MachineId,
        allocation: AllocationId,
    },
}

impl Proof {
    pub(crate) const fn machine(&self) -> MachineId {
        match self {
            Self::Boot { machine, .. } | Self::Tenancy { machine, .. } => *machine,
        }
    }

    /// Is it good by these tables?
    pub(crate) fn is_good(&self, tables: &Tables) -> bool {
        let Some(machine) = tables.get::<Machine>(&self.machine()) else {
            return false;
        };
        match self {
            Self::Boot { boot, .. } => machine.boot_id == *boot,
            Self::Tenancy { allocation, .. } => {
                let held = machine.allocation.as_ref();
                held.is_some_and(|held| held.id == *allocation) && !machine.is_leaving()
            }
        }
    }
}

/// The sender of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sender {
    /// A person, or an agent that is always there.
    Steady,
    /// A machine, as long as one of its power cycles lasts.
    Machine { number: u64, cycle: u64 },
}

/// A command and its sender.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) actor: String,
    pub(crate) op: Op,
    pub(crate) proof: Option<Proof>,
    pub(crate) sender: Sender,
}

impl Call {
    /// A call of a person.
    pub(crate) fn of(actor: &str, op: impl Into<Op>) -> Self {
        Self {
            actor: actor.to_owned(),
            op: op.into(),
            proof: None,
            sender: Sender::Steady,
        }
    }

    /// May it come once more, later? A machine that has no credential yet proves its boot by a ticket,
    /// which is good once.
    const fn may_come_twice(&self) -> bool {
        self.proof.is_some() || matches!(self.sender, Sender::Steady)
    }
}

/// The answer of a node.
pub(crate) type NodeAnswer = Result<Reply, ProposeError<StateError>>;

/// Sends a call until the state has answered it. `None` means that the sender ended before.
pub(crate) async fn deliver(
    world: &Shared<TenantWork>,
    random: &mut Random,
    call: &Call,
) -> Option<Result<Reply, StateError>> {
    for _ in 0..TRIES_MAX {
        if !wait_until_there(world, call.sender).await {
            return None;
        }
        let node = next_node(world, random);
        let patience = Duration::from_millis(random.within(2_000..12_000));
        if random.chance(LOST_PERCENT) {
            tokio::time::sleep(patience / 4).await;
            continue;
        }
        if random.chance(TWICE_PERCENT) && call.may_come_twice() {
            repeat_later(world, random, call);
        }
        let answer = send(world, node, patience, call).await;
        // The sender does not know of an answer that was lost, and sends the call again.
        let answer = answer.filter(|_| !random.chance(LOST_PERCENT));
        match answer {
            Some(Ok(reply)) => return Some(Ok(reply)),
            Some(Err(ProposeError::Rejected(error))) => return Some(Err(error)),
            Some(Err(ProposeError::Store(_))) | None => {
                let pause = random.within(200..1_500);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
    }
    None
}

/// Waits until the sender's messages go through. `false` means that the sender has ended.
async fn wait_until_there(world: &Shared<TenantWork>, sender: Sender) -> bool {
    const LOOK_EVERY_MS: u64 = 1_000;
    loop {
        let away_ms = {
            let world = world.borrow();
            if world.is_calm {
                return false;
            }
            match sender {
                Sender::Steady => 0,
                Sender::Machine { number, cycle } => {
                    let chassis = &world.work.chassis[&number];
                    if !chassis.lives(cycle) {
                        return false;
                    }
                    chassis.away_until_ms.saturating_sub(world.now_ms)
                }
            }
        };
        if away_ms == 0 {
            return true;
        }
        let pause = Duration::from_millis(away_ms.min(LOOK_EVERY_MS));
        tokio::time::sleep(pause).await;
    }
}

/// The leader most of the time, and else any node: it forwards.
pub(crate) fn next_node(world: &Shared<TenantWork>, random: &mut Random) -> u64 {
    let world = world.borrow();
    match world.leader() {
        Some(leader) if random.chance(80) => leader,
        _ => random.within(1..world.plan.voters + 1),
    }
}

async fn send(
    world: &Shared<TenantWork>,
    node: u64,
    patience: Duration,
    call: &Call,
) -> Option<NodeAnswer> {
    let sent = Box::new(call.clone());
    let answer = ask(world, node, patience, |to| {
        NodeRequest::Work(SiteRequest::Call(sent, to))
    })
    .await;
    let mut world = world.borrow_mut();
    let verdict = match &answer {
        Some(Ok(_)) => "done".to_owned(),
        Some(Err(ProposeError::Rejected(error))) => format!("refused, {}", error.code),
        Some(Err(ProposeError::Store(error))) => error.to_string(),
        None => "no answer".to_owned(),
    };
    world.work.tally.note(&answer);
    let (actor, name) = (&call.actor, call.op.name());
    world.log(format_args!("{name} of {actor} at n{node}: {verdict}"));
    answer
}

/// The network delivers the call once more, a little later and maybe elsewhere.
fn repeat_later(world: &Shared<TenantWork>, random: &mut Random, call: &Call) {
    let node = next_node(world, random);
    let pause = Duration::from_millis(random.within(0..TWICE_WITHIN_MS));
    let (world, call) = (world.clone(), call.clone());
    tokio::task::spawn_local(async move {
        tokio::time::sleep(pause).await;
        if !world.borrow().is_calm {
            let patience = Duration::from_millis(TWICE_WITHIN_MS);
            drop(send(&world, node, patience, &call).await);
        }
    });
}
