//! Receives a snapshot from the leader: file by file, verified, then installed.
//!
//! What was received stays when the channel breaks, and the next attempt goes on from there, as
//! long as the leader offers the same snapshot.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use openraft::Raft;
use openraft::async_runtime::WatchReceiver;
use openraft::storage::Snapshot;
use tokio_util::sync::CancellationToken;

use crate::applier::Applier;
use crate::disk::{Disk, DiskFile};
use crate::machine::StateMachine;
use crate::platform::Threads;
use crate::raft::types::TypeConfig;
use crate::raft::wire::{self, Installed};
use crate::snapshot::{SnapshotDir, Snapshots};
use crate::snapshot_wire::{FILES_MAX, Listed, Offer, Piece, Wanted, at, is_inside, measure};
use crate::transport::Channel;

/// Takes in one snapshot at a time.
#[derive(Debug)]
pub(crate) struct Receiver {
    snapshots: Snapshots,
    threads: Threads,
    /// What is there of a snapshot so far.
    partial: tokio::sync::Mutex<Option<Partial>>,
    /// Ends the attempt before: a leader that begins anew has given it up.
    attempt: Mutex<CancellationToken>,
}

#[derive(Debug)]
struct Partial {
    name: String,
    files: Vec<Listed>,
    /// Bytes of each file that are here.
    have: Vec<u64>,
    dir: PathBuf,
}

impl Receiver {
    pub(crate) fn new(snapshots: Snapshots, threads: Threads) -> Self {
        Self {
            snapshots,
            threads,
            partial: tokio::sync::Mutex::new(None),
            attempt: Mutex::new(CancellationToken::new()),
        }
    }

    pub(crate) async fn receive<M: StateMachine>(
        &self,
        raft: &Raft<TypeConfig, Applier<M>>,
        mut channel: Channel,
    ) -> io::Result<()> {
        let offer: Offer = wire::hear(&channel.next().await?)?;
        check(&offer)?;
        let ours = raft.metrics().borrow_watched().vote;
        if ours > offer.vote {
            let answer = Wanted::Nothing(Installed::new(ours));
            return channel.send(wire::say(&answer)?).await;
        }
        let given_up = self.begin_attempt();
        let received = async {
            let mut slot = self.partial.lock().await;
            let dir = self.take_in(&mut slot, &offer, &mut channel).await?;
            // Whatever comes of it, this directory is not gone on with.
            *slot = None;
            let installed = self.install(raft, &offer, dir.clone()).await;
            self.remove(dir).await?;
            installed
        };
        let installed = tokio::select! {
            biased;
            installed = received => installed?,
            () = given_up.cancelled() => {
                return Err(io::Error::other("the leader began to send a snapshot anew"));
            }
        };
        channel.send(wire::say(&installed)?).await
    }

    fn begin_attempt(&self) -> CancellationToken {
        let mut attempt = self
            .attempt
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        attempt.cancel();
        *attempt = CancellationToken::new();
        attempt.clone()
    }

    /// Receives what is missing; returns the directory with the whole, verified snapshot.
    async fn take_in(
        &self,
        slot: &mut Option<Partial>,
        offer: &Offer,
        channel: &mut Channel,
    ) -> io::Result<PathBuf> {
        let same = |p: &Partial| p.name == offer.name && p.files == offer.files;
        if let Some(other) = slot.take_if(|p| !same(p)) {
            self.remove(other.dir).await?;
        }
        let partial = match slot {
            Some(partial) => partial,
            None => slot.insert(Partial {
                name: offer.name.clone(),
                files: offer.files.clone(),
                have: vec![0; offer.files.len()],
                dir: self.snapshots.new_temporary()?,
            }),
        };
        let wanted = Wanted::From(partial.have.clone());
        channel.send(wire::say(&wanted)?).await?;
        let mut open: Option<(usize, Arc<dyn DiskFile>)> = None;
        loop {
            let Piece::Data {
                file,
                offset,
                bytes,
            } = wire::hear(&channel.next().await?)?
            else {
                break;
            };
            let listed = partial
                .files
                .get(file)
                .ok_or_else(|| bad("an unknown file"))?;
            let have = &mut partial.have[file];
            if *have != offset || offset + bytes.len() as u64 > listed.bytes {
                return Err(bad("a piece out of order"));
            }
            let (held, path) = (open.take(), partial.dir.join(&listed.path));
            let held = held.filter(|(number, _)| *number == file);
            let (disk, written) = (self.snapshots.disk().clone(), bytes.len() as u64);
            let write = move || write(&*disk, held.map(|(_, file)| file), &path, &bytes, offset);
            open = Some((file, self.threads.blocking(write).await??));
            *have += written;
        }
        drop(open);
        let (disk, dir) = (self.snapshots.disk().clone(), partial.dir.clone());
        let (files, have) = (partial.files.clone(), partial.have.clone());
        let verified = move || verify(&*disk, &dir, &files, have);
        let (have, verified) = self.threads.blocking(verified).await?;
        partial.have = have;
        verified?;
        Ok(partial.dir.clone())
    }

    async fn install<M: StateMachine>(
        &self,
        raft: &Raft<TypeConfig, Applier<M>>,
        offer: &Offer,
        dir: PathBuf,
    ) -> io::Result<Installed> {
        let snapshot = SnapshotDir(dir);
        let meta = self.snapshots.describe(&snapshot)?;
        tracing::info!(name = %offer.name, "installing a snapshot from the leader");
        let snapshot = Snapshot { meta, snapshot };
        raft.install_full_snapshot(offer.vote, snapshot)
            .await
            .map_err(io::Error::other)
    }

    /// Removes what was not adopted.
    async fn remove(&self, dir: PathBuf) -> io::Result<()> {
        let disk = self.snapshots.disk().clone();
        let remove = move || match disk.exists(&dir) {
            true => disk.remove_dir(&dir).map_err(|e| at(&dir, e)),
            false => Ok(()),
        };
        self.threads.blocking(remove).await?
    }
}

fn check(offer: &Offer) -> io::Result<()> {
    if offer.files.len() > FILES_MAX || !offer.files.iter().all(|f| is_inside(&f.path)) {
        return Err(bad("a snapshot with files that do not belong there"));
    }
    Ok(())
}

fn write(
    disk: &dyn Disk,
    held: Option<Arc<dyn DiskFile>>,
    path: &Path,
    bytes: &[u8],
    offset: u64,
) -> io::Result<Arc<dyn DiskFile>> {
    let file = match held {
        Some(file) => file,
        None if offset == 0 => disk.create(path).map_err(|e| at(path, e))?,
        None => disk.open(path).map_err(|e| at(path, e))?,
    };
    file.write_at(bytes, offset).map_err(|e| at(path, e))?;
    Ok(file)
}

/// Checks every file against its checksum and makes it durable. A damaged one counts as not
/// there, so that the next attempt sends it again.
fn verify(
    disk: &dyn Disk,
    dir: &Path,
    files: &[Listed],
    mut have: Vec<u64>,
) -> (Vec<u64>, io::Result<()>) {
    for (number, listed) in files.iter().enumerate() {
        let path = dir.join(&listed.path);
        let check = || {
            let file = match listed.bytes {
                0 => disk.create(&path)?,
                _ => disk.open(&path)?,
            };
            let found = measure(&*file)?;
            file.sync()?;
            Ok(found)
        };
        let wrong = match check() {
            Ok(found) if found == (listed.bytes, listed.crc) => continue,
            Ok(_) => bad(&format!("{}, but other bytes arrived", listed.path)),
            Err(error) => at(&path, error),
        };
        have[number] = 0;
        return (have, Err(wrong));
    }
    let synced = disk
        .sync_dir(&dir.join("state"))
        .and_then(|()| disk.sync_dir(dir));
    (have, synced)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the leader sent {what}"),
    )
}
