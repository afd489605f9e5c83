//! Export of the state for a backup, and restore of a backup into a new data directory.
//!
//! A restored directory belongs to a new cluster of one node:
//! - it has another id, so that nodes of the old cluster are refused;
//! - its term is far above the old one, so that agents, which refuse orders of a lower term than
//!   they have seen, obey it;
//! - its revision is far above the old one, so that no watch of the old cluster resumes in it;
//! - its log begins behind the state, so that members that join receive the state as a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use control_state::{ClusterClock, Kind, Record, Restored, Tables, feature_level};
use openraft::vote::RaftLeaderId;
use openraft::{BasicNode, Membership};
use proto_types::Timestamp;
use uuid::Uuid;

use crate::codec::StoreCodecError;
use crate::config::StartMode;
use crate::engine::{AppliedProgress, StateEngine};
use crate::error::{OpenError, StoreError};
use crate::identity::{self, io_error};
use crate::log_store::LogStore;
use crate::machine::{StateMachine, StateRow};
use crate::platform::NodePlatform;
use crate::raft_types::{LogId, StoredMembership, TypeConfig, Vote};
use crate::snapshot::SnapshotStore;
use crate::store::Store;
use crate::tables;
use crate::wal::segment::SEGMENT_BYTES;
use crate::wal::{LogOwner, Wal};

/// Distance of the restored term from the term of the backup. Each election takes one term; the old
/// cluster must not have held this many since the backup.
const TERM_JUMP: u64 = 1 << 20;
/// Distance of the restored revision from the revision of the backup, which must be above the
/// number of commands that the old cluster has applied since.
const REVISION_JUMP: u64 = 1 << 32;
/// Rows in one batch of the state engine. It bounds the memory of the batch only: the rows are also
/// loaded into a state in memory, to be checked.
const ROWS_AT_ONCE: usize = 1000;
/// Key prefixes of rows that are not restored: they describe the nodes of the old cluster.
const LEFT_OUT: [&[u8]; 1] = [b"control-node/"];

/// The complete state as of one revision.
#[derive(Debug)]
pub struct StateExport {
    /// Name of the cluster.
    pub cluster: String,
    /// Id of the cluster.
    pub cluster_id: Uuid,
    /// Node that made the export.
    pub node: u64,
    /// Term of the export.
    pub term: u64,
    /// Revision of the state.
    pub revision: u64,
    /// Feature level that every node of the cluster knew.
    pub feature_level: u32,
    records: Vec<(Record, u64)>,
}

impl StateExport {
    /// Returns the objects as rows of the store, in the order of kinds and keys.
    pub fn rows(&self) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreCodecError>> + '_ {
        self.records.iter().map(|(record, revision)| {
            let key = tables::row_key(record.kind(), &record.key());
            Ok((key, tables::row_value(record, *revision)?))
        })
    }
}

impl Store<Tables> {
    /// Exports the state with everything that was acknowledged before the call.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn export(&self) -> Result<StateExport, StoreError> {
        // Pointers to the objects, which are immutable: the lock is held for microseconds, and the
        // backup is written while the state changes.
        let collect = |tables: &Tables| {
            let kinds = control_state::Kind::ALL.iter();
            let records = kinds.flat_map(|kind| tables.records(*kind)).collect();
            (records, tables.revision(), feature_level(tables))
        };
        let (records, revision, feature_level) = self.read(collect).await?;
        Ok(StateExport {
            cluster: self.0.raft.config().cluster_name.clone(),
            cluster_id: self.cluster_id(),
            node: self.node_id(),
            term: self.term(),
            revision,
            feature_level,
            records,
        })
    }
}

/// A restore of a backup into a new data directory.
#[derive(Debug, Clone)]
pub struct StateRestore {
    /// The new data directory, which must not exist.
    pub dir: PathBuf,
    /// Name of the new cluster.
    pub cluster: String,
    /// Id of its only node.
    pub node_id: u64,
    /// Term of the backup.
    pub term: u64,
    /// Revision of the backup.
    pub revision: u64,
    /// Time of the backup. The new cluster decides nothing about machines until an operator has
    /// reconciled it. `None` makes a directory that continues as if no time had passed.
    pub made_at: Option<Timestamp>,
}

/// A directory could not be restored. It may hold a part of the state, and must be removed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError<E: std::error::Error + 'static> {
    /// The directory exists.
    #[error("{path} exists already; name a directory that does not, or move that one away")]
    Taken {
        /// The directory.
        path: PathBuf,
    },
    /// The source of the rows reported an error.
    #[error(transparent)]
    Rows(E),
    /// A row is not of this state.
    #[error(
        "the object {key} cannot be restored by this metalmeshd; use the version that made the \
         backup, or a newer one"
    )]
    Row {
        /// Kind and key of the object.
        key: String,
        /// The reason.
        #[source]
        source: StoreCodecError,
    },
    /// The directory could not be written.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl StateRestore {
    /// Makes the directory and returns the id of the new cluster.
    ///
    /// # Errors
    /// When the directory exists or cannot be written, or a row is unreadable.
    pub async fn run<E: std::error::Error + 'static>(
        &self,
        rows: impl IntoIterator<Item = Result<(Vec<u8>, Vec<u8>), E>>,
    ) -> Result<Uuid, RestoreError<E>> {
        if self.dir.exists() {
            let path = self.dir.clone();
            return Err(RestoreError::Taken { path });
        }
        let platform = NodePlatform::default();
        let disk = &*platform.disk;
        for dir in [
            self.dir.clone(),
            self.dir.join("state"),
            self.dir.join("log"),
        ] {
            disk.create_dir(&dir)
                .map_err(|e| io_error("create", &dir, e))?;
        }
        // Before the first row: a state without an owner is refused.
        let identity = identity::claim(
            disk,
            &self.dir,
            &self.cluster,
            self.node_id,
            StartMode::Form,
        )?;
        let engine = disk
            .open_state(&self.dir.join("state"))
            .map_err(OpenError::from)?;
        // Every batch of rows holds the progress too. So a state with rows contains an entry that
        // the log lacks until it is written at the end, and a start refuses the directory before:
        // no node ever starts on a part of a backup.
        self.write_rows(&*engine, rows)?;
        self.write_snapshot_and_log(&platform, &*engine, identity.cluster_id)
            .await?;
        Ok(identity.cluster_id)
    }

    /// Writes the rows into the engine.
    fn write_rows<E: std::error::Error + 'static>(
        &self,
        engine: &dyn StateEngine,
        rows: impl IntoIterator<Item = Result<(Vec<u8>, Vec<u8>), E>>,
    ) -> Result<(), RestoreError<E>> {
        let mut loaded = Tables::new();
        let mut waiting = Vec::with_capacity(ROWS_AT_ONCE);
        for row in rows {
            let (key, value) = row.map_err(RestoreError::Rows)?;
            if LEFT_OUT.iter().any(|kind| key.starts_with(kind)) {
                continue;
            }
            // Loaded as at a start: a row that would refuse the start refuses the restore already.
            StateMachine::load(&mut loaded, &key, &value).map_err(|source| RestoreError::Row {
                key: String::from_utf8_lossy(&key).into_owned(),
                source,
            })?;
            waiting.push(StateRow {
                key,
                value: Some(value),
            });
            if waiting.len() == ROWS_AT_ONCE {
                self.commit(engine, &waiting)?;
                waiting.clear();
            }
        }
        let clock = self
            .clock_row(&loaded)
            .map_err(|source| RestoreError::Row {
                key: Kind::ClusterClock.to_string(),
                source,
            })?;
        // After the rows of the backup: its own clock has the same key, and the last write wins.
        waiting.extend(clock);
        self.commit(engine, &waiting)?;
        Ok(())
    }

    /// Returns the cluster clock with the mark of a restore, which replaces the clock of the
    /// backup.
    fn clock_row(&self, state: &Tables) -> Result<Option<StateRow>, StoreCodecError> {
        let Some(made_at) = self.made_at else {
            return Ok(None);
        };
        let known = state.get::<ClusterClock>(&ClusterClock::ONE.to_owned());
        let clock = ClusterClock {
            restored: Some(Restored {
                made_at,
                revision: self.revision,
            }),
            ..known.map_or_else(
                || ClusterClock::at(made_at),
                |clock| ClusterClock::clone(clock),
            )
        };
        let record = Record::ClusterClock(Arc::new(clock));
        let value = tables::row_value(&record, self.revision)?;
        Ok(Some(StateRow {
            key: tables::row_key(record.kind(), &record.key()),
            value: Some(value),
        }))
    }

    /// Writes rows to the engine, with the progress of the restored state.
    fn commit(&self, engine: &dyn StateEngine, rows: &[StateRow]) -> Result<(), OpenError> {
        let last = self.last_log_id();
        let voters = BTreeSet::from([self.node_id]);
        let nodes = BTreeMap::from([(self.node_id, BasicNode::default())]);
        let membership =
            Membership::new(vec![voters], nodes).map_err(|e| OpenError::Raft(e.to_string()))?;
        let progress = AppliedProgress {
            last_applied: Some(last),
            membership: StoredMembership::new(Some(last), membership),
            revision: self.revision.saturating_add(REVISION_JUMP),
        };
        Ok(engine.commit(rows, &progress)?)
    }

    /// Returns the id of the entry as of which the state is, and behind which the log begins.
    fn last_log_id(&self) -> LogId {
        let term = self.term.saturating_add(TERM_JUMP);
        let leader = <TypeConfig as openraft::RaftTypeConfig>::LeaderId::new(term, self.node_id);
        LogId::new(leader.to_committed(), 1)
    }

    /// Makes a snapshot of the state, and a log that begins behind it.
    async fn write_snapshot_and_log(
        &self,
        platform: &NodePlatform,
        engine: &dyn StateEngine,
        cluster: Uuid,
    ) -> Result<(), OpenError> {
        let disk = platform.disk.clone();
        let snapshots = SnapshotStore::open(disk.clone(), &self.dir.join("snapshots"))?;
        // The snapshot before the purge below: a log that begins behind entry 1 is complete only
        // with a snapshot of that entry, which is also what joining members receive.
        snapshots.make(engine)?;
        engine.close()?;
        let log = self.dir.join("log");
        let owner = LogOwner {
            cluster,
            node: self.node_id,
        };
        let wal = Wal::open(platform, &log, owner, SEGMENT_BYTES)?;
        let failed = |e| io_error("write", &log, e);
        let last = self.last_log_id();
        let term = last.committed_leader_id().term;
        let vote = Vote::new(term, self.node_id);
        // From the vote on a start accepts the directory, so rows and snapshot are durable before.
        // The vote is not a committed one: the node has to win an election above this term first.
        wal.save_vote(vote).await.map_err(failed)?;
        wal.purge(last).await.map_err(failed)?;
        wal.close();
        disk.sync_dir(&self.dir)
            .map_err(|e| io_error("sync", &self.dir, e))
    }
}
