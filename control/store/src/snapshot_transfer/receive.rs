//! Receives a snapshot from the leader: file by file, verified, then installed.
//!
//! What was received stays when the channel breaks or the process ends, and the next attempt goes
//! on from there, as long as the leader offers the same snapshot.

use std::io;
use std::sync::Arc;

use openraft::Raft;
use openraft::async_runtime::WatchReceiver;
use openraft::storage::Snapshot;
use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::wire::{FILES_MAX, OfferReply, SnapshotOffer, SnapshotPiece, is_inside};
use crate::applier::Applier;
use crate::channel::Channel;
use crate::machine::StateMachine;
use crate::platform::StoreThreads;
use crate::raft_types::{SnapshotMeta, TypeConfig, Vote};
use crate::snapshot::partial::{PartialError, PartialHeader, PartialSnapshot, bad};
use crate::snapshot::{SnapshotStore, snapshot_name};
use crate::transfers::Transfers;
use crate::wire::{self, Installed};

/// Takes in one snapshot at a time.
#[derive(Debug)]
pub(crate) struct SnapshotReceiver {
    snapshots: SnapshotStore,
    threads: StoreThreads,
    transfers: Arc<Transfers>,
    /// What is there so far, unless it is only on disk.
    partial: Arc<Mutex<Option<PartialSnapshot>>>,
    /// The attempt that is on: a leader that begins anew has given up the one before.
    attempt: Mutex<CancellationToken>,
    /// Held while a received snapshot is installed: nobody may touch it then.
    installing: Arc<tokio::sync::Mutex<()>>,
    /// An installation goes on when the channel breaks.
    installs: Mutex<JoinSet<()>>,
}

impl SnapshotReceiver {
    pub(crate) fn new(
        snapshots: SnapshotStore,
        threads: StoreThreads,
        transfers: Arc<Transfers>,
    ) -> Self {
        Self {
            snapshots,
            threads,
            transfers,
            partial: Arc::default(),
            attempt: Mutex::default(),
            installing: Arc::default(),
            installs: Mutex::default(),
        }
    }

    pub(crate) async fn receive<M: StateMachine>(
        &self,
        raft: &Arc<Raft<TypeConfig, Applier<M>>>,
        mut channel: Channel,
    ) -> io::Result<()> {
        let offer: SnapshotOffer = wire::hear(&channel.next().await?)?;
        check(&offer)?;
        let attempt = self.begin_attempt();
        let _incoming = self.transfers.begin_incoming();
        let vote = offer.vote;
        let received = async {
            // Nobody touches what an attempt before is installing.
            drop(self.installing.lock().await);
            if let Some(answer) = self.declined(raft, &offer).await? {
                let nothing = wire::say(&OfferReply::Nothing(answer))?;
                return channel.send(nothing).await.map(|()| None);
            }
            self.take_in(&attempt, offer, &mut channel).await?;
            // An attempt that begins after this waits; one that has begun has the word.
            let held = self.installing.clone().lock_owned().await;
            match attempt.is_cancelled() {
                true => Err(given_up()),
                false => Ok(Some(held)),
            }
        };
        let received = tokio::select! {
            biased;
            received = received => received?,
            () = attempt.cancelled() => return Err(given_up()),
        };
        let Some(held) = received else {
            return Ok(());
        };
        let installed = self.install(raft.clone(), vote, held).await?;
        channel.send(wire::say(&installed)?).await
    }

    /// The answer to an offer that is of no use: of a leader that is none any more, or of what
    /// this node has, because a channel broke between the last piece and the answer.
    async fn declined<M: StateMachine>(
        &self,
        raft: &Raft<TypeConfig, Applier<M>>,
        offer: &SnapshotOffer,
    ) -> io::Result<Option<Installed>> {
        let ours = raft.metrics().borrow_watched().vote;
        if ours > offer.vote {
            return Ok(Some(Installed::new(ours)));
        }
        let snapshots = self.snapshots.clone();
        let newest = self.threads.blocking(move || snapshots.newest()).await?;
        let newest = newest.ok().flatten();
        let is_enough = |meta: &SnapshotMeta| snapshot_name(meta.last_log_id) >= offer.name;
        let Some((meta, snapshot)) = newest.filter(|(meta, _)| is_enough(meta)) else {
            return Ok(None);
        };
        // Has nothing to install; but whether it still follows this leader is for Raft to say, and
        // not for the metrics, which may be older than its vote.
        let snapshot = Snapshot { meta, snapshot };
        let installed = raft.install_full_snapshot(offer.vote, snapshot).await;
        installed.map(Some).map_err(io::Error::other)
    }

    fn begin_attempt(&self) -> CancellationToken {
        let mut attempt = self.attempt.lock();
        attempt.cancel();
        *attempt = CancellationToken::new();
        attempt.clone()
    }

    /// Works on what is there so far, on the disk's threads; never for an attempt that is over.
    async fn with_partial<T: Send + 'static>(
        &self,
        attempt: &CancellationToken,
        work: impl FnOnce(&SnapshotStore, &mut Option<PartialSnapshot>) -> io::Result<T>
        + Send
        + 'static,
    ) -> io::Result<T> {
        let (snapshots, partial) = (self.snapshots.clone(), self.partial.clone());
        let attempt = attempt.clone();
        let work = move || {
            let mut partial = partial.lock();
            match attempt.is_cancelled() {
                true => Err(given_up()),
                false => work(&snapshots, &mut partial),
            }
        };
        self.threads.blocking(work).await?
    }

    /// Receives what is missing; then the whole, verified snapshot is on disk.
    async fn take_in(
        &self,
        attempt: &CancellationToken,
        offer: SnapshotOffer,
        channel: &mut Channel,
    ) -> io::Result<()> {
        let header = PartialHeader {
            name: offer.name,
            files: offer.files,
        };
        let find = move |snapshots: &SnapshotStore, slot: &mut Option<PartialSnapshot>| {
            let partial = match find(snapshots, slot.take(), &header) {
                Some(partial) => partial,
                None => snapshots.begin_partial(header)?,
            };
            Ok(slot.insert(partial).have())
        };
        let have = self.with_partial(attempt, find).await?;
        self.transfers.kept(have.iter().sum());
        channel.send(wire::say(&OfferReply::From(have))?).await?;
        while let SnapshotPiece::Data {
            file,
            offset,
            bytes,
        } = wire::hear(&channel.next().await?)?
        {
            self.transfers.received(bytes.len() as u64);
            let append = move |snapshots: &SnapshotStore, slot: &mut Option<PartialSnapshot>| {
                let partial = slot.as_mut().ok_or_else(given_up)?;
                let appended = partial.append(file, offset, &bytes);
                appended.or_else(|flaw| put_away(snapshots, slot, flaw))
            };
            self.with_partial(attempt, append).await?;
        }
        let verify = |snapshots: &SnapshotStore, slot: &mut Option<PartialSnapshot>| {
            let partial = slot.as_mut().ok_or_else(given_up)?;
            let verified = partial.verify();
            verified.or_else(|flaw| put_away(snapshots, slot, flaw))
        };
        self.with_partial(attempt, verify).await
    }

    async fn install<M: StateMachine>(
        &self,
        raft: Arc<Raft<TypeConfig, Applier<M>>>,
        vote: Vote,
        held: OwnedMutexGuard<()>,
    ) -> io::Result<Installed> {
        let (to, answer) = oneshot::channel();
        let (snapshots, partial) = (self.snapshots.clone(), self.partial.clone());
        let threads = self.threads.clone();
        let install = async move {
            let installed = install(&raft, &snapshots, vote).await;
            if installed.is_ok() {
                let clear = move || {
                    *partial.lock() = None;
                    snapshots.clear_partial()
                };
                if let Ok(Err(error)) = threads.blocking(clear).await {
                    tracing::warn!(error = %error, "what is left of a received snapshot stays");
                }
            }
            drop(held);
            // The channel may be gone.
            drop(to.send(installed));
        };
        {
            let mut installs = self.installs.lock();
            while installs.try_join_next().is_some() {}
            installs.spawn(install);
        }
        let stopped = |_| io::Error::other("this node stopped while it installed a snapshot");
        answer.await.map_err(stopped)?
    }
}

async fn install<M: StateMachine>(
    raft: &Raft<TypeConfig, Applier<M>>,
    snapshots: &SnapshotStore,
    vote: Vote,
) -> io::Result<Installed> {
    let snapshot = snapshots.received();
    let meta = snapshots.describe(&snapshot)?;
    let index = meta.last_log_id.map_or(0, |id| id.index);
    tracing::info!(index, "installing a snapshot from the leader");
    let snapshot = Snapshot { meta, snapshot };
    let installed = raft.install_full_snapshot(vote, snapshot).await;
    installed.map_err(io::Error::other)
}

/// What is there already of the snapshot `header`.
fn find(
    snapshots: &SnapshotStore,
    held: Option<PartialSnapshot>,
    header: &PartialHeader,
) -> Option<PartialSnapshot> {
    held.filter(|partial| partial.header() == header && partial.exists())
        .or_else(|| snapshots.resume_partial(header))
}

/// After a failure only what is on disk counts, as far as it can be trusted.
fn put_away<T>(
    snapshots: &SnapshotStore,
    slot: &mut Option<PartialSnapshot>,
    flaw: PartialError,
) -> io::Result<T> {
    *slot = None;
    match flaw {
        PartialError::Piece(error) => Err(error),
        PartialError::Disk(error) => {
            snapshots.drop_partial("the disk failed a sync")?;
            Err(error)
        }
    }
}

fn check(offer: &SnapshotOffer) -> io::Result<()> {
    let is_name = |name: &str| {
        let parts = name.split_once('-');
        let is_number = |part: &str| part.len() == 20 && part.bytes().all(|b| b.is_ascii_digit());
        parts.is_some_and(|(term, index)| is_number(term) && is_number(index))
    };
    if !is_name(&offer.name) {
        return Err(bad("a snapshot whose name is no term and index"));
    }
    if offer.files.len() > FILES_MAX || !offer.files.iter().all(|f| is_inside(&f.path)) {
        return Err(bad("a snapshot with files that do not belong there"));
    }
    Ok(())
}

fn given_up() -> io::Error {
    io::Error::other("the leader began to send a snapshot anew")
}
