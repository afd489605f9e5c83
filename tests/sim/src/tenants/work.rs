//! The workload: the state of a site, and how a node answers people and agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use control_state::{Command, ErrorCode, StateError, Tables, Tick, tick_may_change};
use control_store::{ProposeError, Store, StoreError};
use tokio::sync::oneshot;

use super::calls::{Call, NodeAnswer, Proof};
use super::chassis::Chassis;
use super::ledger;
use super::watched::Watched;
use crate::node::{Shared, World};
use crate::workload::Workload;

/// Counts of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallTally {
    pub(crate) done: u64,
    pub(crate) refused: u64,
    pub(crate) unanswered: u64,
}

impl CallTally {
    pub(crate) fn note(&mut self, answer: &Option<NodeAnswer>) {
        match answer {
            Some(Ok(_)) => self.done += 1,
            Some(Err(ProposeError::Rejected(_))) => self.refused += 1,
            Some(Err(ProposeError::Store(_))) | None => self.unanswered += 1,
        }
    }
}

/// All that people and agents share.
#[derive(Debug, Default)]
pub(crate) struct TenantWork {
    /// The newest state that agents know.
    pub(crate) view: Option<Arc<Tables>>,
    pub(crate) chassis: BTreeMap<u64, Chassis>,
    /// Pools, projects and machines are there; tenants may come.
    pub(crate) is_set_up: bool,
    /// Tenants give everything back.
    pub(crate) is_draining: bool,
    /// Everything was given back, and each tenant makes one last claim.
    pub(crate) is_finale: bool,
    /// The last claims are made.
    pub(crate) is_over: bool,
    pub(crate) tally: CallTally,
}

/// A request to a node.
#[derive(Debug)]
pub(crate) enum SiteRequest {
    Call(Box<Call>, oneshot::Sender<NodeAnswer>),
    /// The duty of a leader, with the credentials of those whom it heard.
    Tick(Vec<Proof>, oneshot::Sender<()>),
    /// Asks for the whole state.
    View(oneshot::Sender<Result<Arc<Tables>, StoreError>>),
}

impl Workload for TenantWork {
    type Machine = Watched;
    type Request = SiteRequest;

    async fn answer(store: Store<Watched>, request: SiteRequest) {
        // Whoever asked may be gone.
        match request {
            SiteRequest::Call(call, to) => drop(to.send(carry_out(&store, *call).await)),
            SiteRequest::Tick(heard, to) => {
                tick(&store, &heard).await;
                to.send(()).ok();
            }
            SiteRequest::View(to) => {
                let copy = store.read(|state| Arc::new(state.0.clone())).await;
                drop(to.send(copy));
            }
        }
    }

    fn observe(_world: &Shared<Self>, _id: u64, _store: &Store<Watched>) {}

    fn inspect(world: &World<Self>) -> Result<(), String> {
        if let Some(broken) = ledger::broken() {
            return Err(broken);
        }
        if !ledger::is_comparison_due(world.now_ms) {
            return Ok(());
        }
        for (id, store, _) in world.probes() {
            let state = store.read_local(|state| (state.0.revision(), Self::digest(state)));
            // A node that stops just now has nothing to compare.
            if let Ok((revision, digest)) = state {
                ledger::compare(id, revision, digest)?;
            }
        }
        Ok(())
    }

    fn digest(state: &Watched) -> Vec<u8> {
        state
            .0
            .state_hash()
            .map_or_else(|error| error.to_string().into_bytes(), |hash| hash.to_vec())
    }
}

async fn carry_out(store: &Store<Watched>, call: Call) -> NodeAnswer {
    if let Some(proof) = &call.proof {
        // The leader alone serves agents, as the gateway has it.
        if !store.is_leader() {
            let leader = store.leader();
            return Err(StoreError::NotLeader { leader }.into());
        }
        if !store.read_local(|state| proof.is_good(&state.0))? {
            let what = "the credential is over";
            let refusal = StateError::new(ErrorCode::MachineForeign, what);
            return Err(ProposeError::Rejected(refusal));
        }
    }
    let command = Command::new(store.now(), call.actor, call.op);
    store.propose(&(), &command).await
}

/// The tick of a leader, as its duties make it: an idle cluster writes nothing.
async fn tick(store: &Store<Watched>, heard: &[Proof]) {
    let now = store.now();
    let due = store.read_local(|state| {
        let good = heard.iter().filter(|proof| proof.is_good(&state.0));
        let tick = Tick {
            heard: good.map(|proof| (proof.machine(), now)).collect(),
            node: store.node_id(),
            ..Tick::default()
        };
        tick_may_change(&state.0, &tick, now).then_some(tick)
    });
    if let Ok(Some(tick)) = due
        && store.is_leader()
    {
        let command = Command::new(now, "metalmesh", tick);
        // One that fails is followed by another.
        drop(store.propose(&(), &command).await);
    }
}
