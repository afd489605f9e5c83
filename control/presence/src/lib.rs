//! Presence: the time at which this node last heard each machine and an agent of each partition,
//! which agents and machines have a session, the last counters of switch ports and of firewalls, and
//! the rules that firewalls are asked about. In memory, never in the log.
//!
//! The gateway and the services for published agents record; the duties of the leader, the API and
//! the doctor read. [`Presence::agents`] and [`Presence::switch`] ask the leader, so that every node
//! answers the same.
//!
//! Invariants:
//! - only messages that this node received itself count;
//! - the record is cleared when the node begins to lead, so that no machine is judged by messages
//!   that another node received;
//! - machines of a partition that is cut off, or that came back within its grace period, are not
//!   judged;
//! - counters of at most 10,000 switches with 512 ports each are kept, and of at most 10,000
//!   firewalls, whose counters end with their allocation;
//! - a firewall is asked about one candidate at a time, those of one project about at most 8 and all
//!   together about at most 32; a caller is woken by the answer;
//! - at most 200,000 machines are remembered; beyond that the longest silent one is forgotten.

mod counters;
mod firewall;
mod firewall_presence;
mod heard;
mod numbers;
mod question;

use std::sync::{Arc, OnceLock};

use control_state::{Partition, SWITCH_HEALTH, feature_level};
use control_store::{Store, StoreError};
use parking_lot::Mutex;
use proto_identity::SpiffeId;
use proto_link::{LinkStats, Presence as SessionView, TurnedAway};
use proto_types::{MachineId, PartitionId, SwitchId, Timestamp};

use counters::Counters;
use firewall::FirewallBooks;
use heard::Heard;

pub use firewall::{
    CandidateEffect, CandidateInbox, CandidateOutcome, CounterKind, CounterNumber, CounterSum,
    FirewallNumbers, FirewallTotals, ReportOutcome, RuleCandidate,
};
pub use firewall_presence::FirewallPresence;
pub use heard::Fleet;
pub use numbers::{OpticsReading, PortNumbers, SwitchNumbers};
pub use question::HeardSwitch;
use question::{LeaderAnswer, LeaderQuestion};

/// Most machines in one question to the leader. More are asked about in several.
const MACHINES_ASKED_MAX: usize = 1_000;

/// Presence of partitions and machines as observed by this node. Cheap to clone (`Arc`).
#[derive(Clone)]
pub struct Presence {
    store: Store,
    heard: Arc<Mutex<Heard>>,
    counters: Arc<Mutex<Counters>>,
    firewalls: FirewallBooks,
    sessions: Arc<OnceLock<SessionView>>,
}

impl std::fmt::Debug for Presence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presence").finish_non_exhaustive()
    }
}

impl Presence {
    /// An empty record that begins now.
    pub fn new(store: Store) -> Self {
        let heard = Heard::since(store.now());
        let presence = Self {
            store,
            heard: Arc::new(Mutex::new(heard)),
            counters: Arc::default(),
            firewalls: FirewallBooks::default(),
            sessions: Arc::default(),
        };
        presence.answer_followers();
        presence
    }

    /// Answers the other nodes while this one leads.
    fn answer_followers(&self) {
        let (counters, sessions) = (self.counters.clone(), self.sessions.clone());
        let (firewalls, heard) = (self.firewalls.clone(), self.heard.clone());
        self.store.answer_questions(move |asked: LeaderQuestion| {
            let is_here = |view: &SessionView, id: &String| {
                id.parse::<SpiffeId>().is_ok_and(|id| view.is_here(&id))
            };
            let agents =
                |view: &SessionView| asked.agents.iter().map(|id| is_here(view, id)).collect();
            let answer = LeaderAnswer {
                sessions: sessions.get().map(agents),
                numbers: asked.switch.as_ref().and_then(|id| counters.lock().of(id)),
                firewall: None,
                heard: heard_of(&heard.lock(), &asked.machines),
            };
            let firewalls = firewalls.clone();
            async move {
                let firewall = match asked.firewall {
                    Some(about) => Some(firewalls.answer(about).await),
                    None => None,
                };
                LeaderAnswer { firewall, ..answer }
            }
        });
    }

    /// Adds the sessions of the mesh endpoint, once it is bound. A second endpoint changes nothing.
    pub fn watch_sessions(&self, sessions: SessionView) {
        self.sessions.get_or_init(|| sessions);
    }

    /// Clears the record when this node begins to lead: until now agents reported to another node,
    /// so older times do not prove silence.
    pub fn begin(&self) {
        self.with_heard(|heard| *heard = Heard::since(self.store.now()));
        *self.counters.lock() = Counters::default();
        self.firewalls.clear();
    }

    /// Records a message from an agent of this partition.
    pub fn heard_partition(&self, id: &PartitionId, now: Timestamp) {
        self.with_heard(|heard| heard.partition(id, now));
    }

    /// Records a message from a machine.
    pub fn heard_machine(&self, id: MachineId, now: Timestamp) {
        self.with_heard(|heard| heard.machine(id, now));
    }

    /// Keeps the numbers of a switch's ports.
    pub fn keep_numbers(&self, switch: &SwitchId, numbers: SwitchNumbers) {
        self.counters.lock().keep(switch, numbers);
    }

    /// Counters of firewalls, and the rules that they are asked about.
    pub fn firewalls(&self) -> FirewallPresence<'_> {
        FirewallPresence {
            store: &self.store,
            books: &self.firewalls,
        }
    }

    /// The session and the last numbers of a switch, as the leader knows them.
    ///
    /// # Errors
    /// When no leader answers.
    pub async fn switch(
        &self,
        switch: &SwitchId,
        agent: Option<&SpiffeId>,
    ) -> Result<HeardSwitch, StoreError> {
        let question = LeaderQuestion {
            switch: Some(switch.clone()),
            ..LeaderQuestion::about(agent)
        };
        let answer = self.ask(question).await?;
        let connected = answer
            .sessions
            .and_then(|sessions| sessions.first().copied());
        Ok(HeardSwitch {
            connected,
            numbers: answer.numbers,
        })
    }

    /// `true` for each agent that has a session with the leader. `None` means that it is not known:
    /// an older control node is in the cluster, or the leader serves no sessions yet.
    ///
    /// # Errors
    /// When no leader answers.
    pub async fn agents(&self, agents: &[SpiffeId]) -> Result<Option<Vec<bool>>, StoreError> {
        let answer = self.ask(LeaderQuestion::about(agents)).await?;
        Ok(answer
            .sessions
            .filter(|sessions| sessions.len() == agents.len()))
    }

    /// When the leader last heard each of the machines. `None` for one that it has not heard since it
    /// leads.
    ///
    /// # Errors
    /// When no leader answers.
    pub async fn machines_heard(
        &self,
        machines: &[MachineId],
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let mut found = Vec::with_capacity(machines.len());
        for asked in machines.chunks(MACHINES_ASKED_MAX) {
            let question = LeaderQuestion {
                machines: asked.to_vec(),
                ..LeaderQuestion::default()
            };
            let mut heard = self.ask(question).await?.heard;
            heard.resize(asked.len(), None);
            found.append(&mut heard);
        }
        Ok(found)
    }

    /// Asks the leader. Nothing is known as long as an older control node is in the cluster, which
    /// could not read the question.
    async fn ask(&self, question: LeaderQuestion) -> Result<LeaderAnswer, StoreError> {
        let level = self.store.read_local(feature_level)?;
        if level < SWITCH_HEALTH && !self.store.is_leader() {
            return Ok(LeaderAnswer::default());
        }
        self.store.ask_leader(&question).await
    }

    /// The presence of all machines and partitions now.
    pub fn fleet(&self) -> Fleet {
        let partitions = self.store.read_local(|tables| {
            let partitions = tables.all::<Partition>();
            partitions.map(|partition| partition.id.clone()).collect()
        });
        // A store that is shutting down cannot be read; no partition is judged then.
        let partitions: Vec<PartitionId> = partitions.unwrap_or_default();
        let now = self.store.now();
        self.with_heard(|heard| heard.fleet(partitions.iter(), now))
    }

    /// Revoked identities that tried to open a session with this node.
    pub fn turned_away(&self) -> Vec<TurnedAway> {
        let sessions = self.sessions.get();
        sessions.map(SessionView::turned_away).unwrap_or_default()
    }

    /// Counters and sessions of the mesh endpoint. `None` means that it is not bound yet.
    pub fn link(&self) -> Option<LinkStats> {
        self.sessions.get().map(SessionView::stats)
    }

    fn with_heard<T>(&self, work: impl FnOnce(&mut Heard) -> T) -> T {
        work(&mut self.heard.lock())
    }
}

fn heard_of(heard: &Heard, machines: &[MachineId]) -> Vec<Option<Timestamp>> {
    machines
        .iter()
        .map(|machine| heard.last(*machine))
        .collect()
}
