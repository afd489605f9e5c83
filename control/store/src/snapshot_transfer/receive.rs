//! Receives a snapshot from the leader, verifies it and has Raft install it.
//!
//! Received bytes stay when the channel breaks or the process ends, and the next attempt resumes
//! there, as long as the leader offers the same snapshot.

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
use crate::snapshot::file::SnapshotManifest;
use crate::snapshot::partial::{PartialError, PartialSnapshot, invalid_data};
use crate::snapshot::{SnapshotStore, snapshot_name};
use crate::transfers::Transfers;
use crate::wire::{self, Installed};

/// Receives one snapshot at a time: a new attempt cancels the one before.
#[derive(Debug)]
pub(crate) struct SnapshotReceiver {
    snapshots: SnapshotStore,
    threads: StoreThreads,
    transfers: Arc<Transfers>,
    /// The partly received snapshot; `None` if there is none, or it is on disk alone.
    partial: Arc<Mutex<Option<PartialSnapshot>>>,
    /// Cancels the running attempt. A leader that begins again has given up the attempt before.
    attempt: Mutex<CancellationToken>,
    /// Held while a received snapshot is installed: no attempt may change its files then.
    installing: Arc<tokio::sync::Mutex<()>>,
    /// Running installations, which continue when the channel breaks.
    installs: Mutex<JoinSet<()>>,
}

impl SnapshotReceiver {
    /// Returns a receiver for the snapshots of this node.
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

    /// Serves one channel of the leader: receives the offered snapshot, installs it and answers.
    ///
    /// # Errors
    /// When the channel breaks, the bytes do not match the offer, the disk fails, or the leader has
    /// begun another attempt.
    pub(crate) async fn receive<M: StateMachine>(
        &self,
        raft: &Arc<Raft<TypeConfig, Applier<M>>>,
        mut channel: Channel,
    ) -> io::Result<()> {
        let offer: SnapshotOffer = wire::hear(&channel.next().await?)?;
        check_offer(&offer)?;
        let attempt = self.begin_attempt();
        let _incoming = self.transfers.begin_incoming();
        let vote = offer.vote;
        let received = async {
            // An installation by an earlier attempt may make this transfer needless, and moves the
            // files that it would write to.
            drop(self.installing.lock().await);
            if let Some(answer) = self.declined(raft, &offer).await? {
                let nothing = wire::say(&OfferReply::Nothing(answer))?;
                return channel.send(nothing).await.map(|()| None);
            }
            self.receive_files(&attempt, offer, &mut channel).await?;
            // From here on a new attempt waits. One that began before this has cancelled this one,
            // and may have replaced the files.
            let held = self.installing.clone().lock_owned().await;
            match attempt.is_cancelled() {
                true => Err(attempt_cancelled()),
                false => Ok(Some(held)),
            }
        };
        let received = tokio::select! {
            // In order, so that a simulation repeats itself.
            biased;
            received = received => received?,
            () = attempt.cancelled() => return Err(attempt_cancelled()),
        };
        let Some(held) = received else {
            return Ok(());
        };
        let installed = self.install(raft.clone(), vote, held).await?;
        channel.send(wire::say(&installed)?).await
    }

    /// Returns the answer to an offer that needs no transfer: from a leader of an earlier term, or
    /// of a snapshot that this node has, because the channel broke between last piece and answer.
    /// `None` means that the snapshot must be received.
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
        // An unreadable snapshot is no reason to refuse the leader's, which replaces it.
        let newest = newest.ok().flatten();
        let is_enough = |meta: &SnapshotMeta| snapshot_name(meta.last_log_id) >= offer.name;
        let Some((meta, snapshot)) = newest.filter(|(meta, _)| is_enough(meta)) else {
            return Ok(None);
        };
        // Nothing to install, but Raft must decide if this node still follows this leader: the
        // metrics may be older than its vote.
        let snapshot = Snapshot { meta, snapshot };
        let installed = raft.install_full_snapshot(offer.vote, snapshot).await;
        installed.map(Some).map_err(io::Error::other)
    }

    /// Cancels the running attempt and begins another one.
    fn begin_attempt(&self) -> CancellationToken {
        let mut attempt = self.attempt.lock();
        attempt.cancel();
        *attempt = CancellationToken::new();
        attempt.clone()
    }

    /// Runs `work` on the partly received snapshot, on the thread pool, unless `attempt` was
    /// cancelled.
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
            // Checked under the lock: work of a cancelled attempt that waited for its thread must
            // not write into the files of the next attempt.
            let mut partial = partial.lock();
            match attempt.is_cancelled() {
                true => Err(attempt_cancelled()),
                false => work(&snapshots, &mut partial),
            }
        };
        self.threads.blocking(work).await?
    }

    /// Receives the missing bytes. The snapshot is complete, verified and durable when this
    /// returns.
    async fn receive_files(
        &self,
        attempt: &CancellationToken,
        offer: SnapshotOffer,
        channel: &mut Channel,
    ) -> io::Result<()> {
        let manifest = SnapshotManifest {
            name: offer.name,
            files: offer.files,
        };
        let open = move |snapshots: &SnapshotStore, slot: &mut Option<PartialSnapshot>| {
            let partial = match find_partial(snapshots, slot.take(), &manifest) {
                Some(partial) => partial,
                None => snapshots.begin_partial(manifest)?,
            };
            Ok(slot.insert(partial).received_bytes())
        };
        let have = self.with_partial(attempt, open).await?;
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
                let partial = slot.as_mut().ok_or_else(attempt_cancelled)?;
                let appended = partial.append(file, offset, &bytes);
                appended.or_else(|error| discard_failed(snapshots, slot, error))
            };
            self.with_partial(attempt, append).await?;
        }
        let verify = |snapshots: &SnapshotStore, slot: &mut Option<PartialSnapshot>| {
            let partial = slot.as_mut().ok_or_else(attempt_cancelled)?;
            let verified = partial.verify();
            verified.or_else(|error| discard_failed(snapshots, slot, error))
        };
        self.with_partial(attempt, verify).await
    }

    /// Installs the received snapshot in a task of its own and waits for it. `held` is the guard of
    /// `installing`.
    async fn install<M: StateMachine>(
        &self,
        raft: Arc<Raft<TypeConfig, Applier<M>>>,
        vote: Vote,
        held: OwnedMutexGuard<()>,
    ) -> io::Result<Installed> {
        let (to, answer) = oneshot::channel();
        let (snapshots, partial) = (self.snapshots.clone(), self.partial.clone());
        let threads = self.threads.clone();
        // A task of its own: this future is dropped when the channel breaks, but Raft goes on with
        // the installation. Until its end `held` keeps new attempts from changing the files.
        let install = async move {
            let installed = install_received(&raft, &snapshots, vote).await;
            if installed.is_ok() {
                let clear = move || {
                    *partial.lock() = None;
                    snapshots.clear_partial()
                };
                if let Ok(Err(error)) = threads.blocking(clear).await {
                    tracing::warn!(error = %error, "cannot remove the rest of a received snapshot");
                }
            }
            drop(held);
            // The channel may have broken.
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

/// Has Raft install the received snapshot.
async fn install_received<M: StateMachine>(
    raft: &Raft<TypeConfig, Applier<M>>,
    snapshots: &SnapshotStore,
    vote: Vote,
) -> io::Result<Installed> {
    let snapshot = snapshots.received_dir();
    let meta = snapshots.describe(&snapshot)?;
    let index = meta.last_log_id.map_or(0, |id| id.index);
    tracing::info!(index, "installing a snapshot from the leader");
    let snapshot = Snapshot { meta, snapshot };
    let installed = raft.install_full_snapshot(vote, snapshot).await;
    installed.map_err(io::Error::other)
}

/// Returns the received part of the snapshot `manifest`, from memory or from disk.
fn find_partial(
    snapshots: &SnapshotStore,
    held: Option<PartialSnapshot>,
    manifest: &SnapshotManifest,
) -> Option<PartialSnapshot> {
    // Equal manifests have equal checksums: bytes of another snapshot are never mixed in.
    held.filter(|partial| partial.manifest() == manifest && partial.exists())
        .or_else(|| snapshots.resume_partial(manifest))
}

/// Discards the state in memory after a failure, and after a failed sync the files as well; returns
/// the error. The next attempt reads the files again and resumes as far as the checksums confirm
/// them.
fn discard_failed<T>(
    snapshots: &SnapshotStore,
    slot: &mut Option<PartialSnapshot>,
    error: PartialError,
) -> io::Result<T> {
    *slot = None;
    match error {
        PartialError::Piece(error) => Err(error),
        PartialError::Disk(error) => {
            snapshots.drop_partial("the disk failed a sync")?;
            Err(error)
        }
    }
}

/// Refuses an offer whose name or paths could not be of a snapshot.
fn check_offer(offer: &SnapshotOffer) -> io::Result<()> {
    let is_name = |name: &str| {
        let parts = name.split_once('-');
        let is_number =
            |part: &str| part.len() == 20 && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.is_some_and(|(term, index)| is_number(term) && is_number(index))
    };
    if !is_name(&offer.name) {
        return Err(invalid_data("a snapshot whose name is no term and index"));
    }
    if offer.files.len() > FILES_MAX || !offer.files.iter().all(|file| is_inside(&file.path)) {
        return Err(invalid_data(
            "a snapshot with files that do not belong there",
        ));
    }
    Ok(())
}

fn attempt_cancelled() -> io::Error {
    io::Error::other("the leader has begun another attempt to send a snapshot")
}
