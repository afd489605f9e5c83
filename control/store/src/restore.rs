//! Out of the state and into a new data directory: what backups are made of.
//!
//! A restored directory is that of a new cluster of one node. It has another id, so nodes of the
//! old one are refused; its term is far above the old one's, so that agents, which refuse orders
//! of a lower term than they have seen, obey it; its revision is far above the old one's, so that
//! no watch of the old cluster goes on in it. Its log begins behind the state: members that join
//! get the state as a snapshot.

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

/// How far the term of a restored cluster is above that of its backup. An election is a term; the
/// old cluster has had fewer than this many since.
const TERM_JUMP: u64 = 1 << 20;
/// How far the revision is above: more commands than the old cluster has carried out since.
const REVISION_JUMP: u64 = 1 << 32;
/// Rows written at once.
const ROWS_AT_ONCE: usize = 1000;
/// Kinds that belong to the old cluster's nodes and not to the new one's.
const LEFT_OUT: [&[u8]; 1] = [b"control-node/"];

/// The whole state at one moment.
#[derive(Debug)]
pub struct StateExport {
    /// Name of the cluster.
    pub cluster: String,
    /// Its id.
    pub cluster_id: Uuid,
    /// The node that was asked.
    pub node: u64,
    /// The term at that moment.
    pub term: u64,
    /// The revision at that moment.
    pub revision: u64,
    /// The feature level that every node knew at that moment.
    pub feature_level: u32,
    records: Vec<(Record, u64)>,
}

impl StateExport {
    /// The objects as the store keeps them, in the order of kinds and keys.
    pub fn rows(&self) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreCodecError>> + '_ {
        self.records.iter().map(|(record, revision)| {
            let key = tables::row_key(record.kind(), &record.key());
            Ok((key, tables::row_value(record, *revision)?))
        })
    }
}

impl Store<Tables> {
    /// Everything that was acknowledged before the call. Holds pointers to the objects, which do
    /// not change: the state goes on meanwhile.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn export(&self) -> Result<StateExport, StoreError> {
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

/// What a directory is restored from and to.
#[derive(Debug, Clone)]
pub struct StateRestore {
    /// The new data directory; must not exist.
    pub dir: PathBuf,
    /// Name of the new cluster.
    pub cluster: String,
    /// The number of its only node.
    pub node_id: u64,
    /// The term of the backup.
    pub term: u64,
    /// The revision of the backup.
    pub revision: u64,
    /// When the backup was made: nothing is judged in the new cluster until an operator has
    /// reconciled it. `None` makes a directory that goes on as if nothing had happened since.
    pub made_at: Option<Timestamp>,
}

/// A directory could not be restored. It may hold a part of the state: remove it.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError<E: std::error::Error + 'static> {
    /// There is something already.
    #[error("{path} exists already; name a directory that does not, or move that one away")]
    Taken {
        /// Which directory.
        path: PathBuf,
    },
    /// The rows ended with an error.
    #[error(transparent)]
    Rows(E),
    /// A row is none of this state's.
    #[error(
        "the object {key} cannot be restored by this metalmeshd; use the version that made the \
         backup, or a newer one"
    )]
    Row {
        /// Kind and key.
        key: String,
        /// Why.
        #[source]
        source: StoreCodecError,
    },
    /// The directory could not be written.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl StateRestore {
    /// Makes the directory. Each row is read as the store would, so that what is restored also
    /// starts. Returns the id of the new cluster.
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
        let engine = disk
            .open_state(&self.dir.join("state"))
            .map_err(OpenError::from)?;
        self.fill(&*engine, rows)?;
        let identity = identity::claim(
            disk,
            &self.dir,
            &self.cluster,
            self.node_id,
            StartMode::Form,
        )?;
        self.finish(&platform, &*engine, identity.cluster_id)
            .await?;
        Ok(identity.cluster_id)
    }

    fn fill<E: std::error::Error + 'static>(
        &self,
        engine: &dyn StateEngine,
        rows: impl IntoIterator<Item = Result<(Vec<u8>, Vec<u8>), E>>,
    ) -> Result<(), RestoreError<E>> {
        let mut proof = Tables::new();
        let mut waiting = Vec::with_capacity(ROWS_AT_ONCE);
        for row in rows {
            let (key, value) = row.map_err(RestoreError::Rows)?;
            if LEFT_OUT.iter().any(|kind| key.starts_with(kind)) {
                continue;
            }
            StateMachine::load(&mut proof, &key, &value).map_err(|source| RestoreError::Row {
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
        let hold = self.hold(&proof).map_err(|source| RestoreError::Row {
            key: Kind::ClusterClock.to_string(),
            source,
        })?;
        waiting.extend(hold);
        self.commit(engine, &waiting)?;
        Ok(())
    }

    /// The row that keeps the new cluster from judging, in the place of the backup's clock.
    fn hold(&self, state: &Tables) -> Result<Option<StateRow>, StoreCodecError> {
        let Some(made_at) = self.made_at else {
            return Ok(None);
        };
        let known = state.get::<ClusterClock>(&ClusterClock::ONE.to_owned());
        let clock = ClusterClock {
            restored: Some(Restored {
                made_at,
                revision: self.revision,
            }),
            ..known.map_or_else(|| ClusterClock::at(made_at), |it| ClusterClock::clone(it))
        };
        let record = Record::ClusterClock(Arc::new(clock));
        let value = tables::row_value(&record, self.revision)?;
        Ok(Some(StateRow {
            key: tables::row_key(record.kind(), &record.key()),
            value: Some(value),
        }))
    }

    fn commit(&self, engine: &dyn StateEngine, rows: &[StateRow]) -> Result<(), OpenError> {
        let last = self.last();
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

    /// The entry that the state is as of, and behind which the log begins.
    fn last(&self) -> LogId {
        let term = self.term.saturating_add(TERM_JUMP);
        let leader = <TypeConfig as openraft::RaftTypeConfig>::LeaderId::new(term, self.node_id);
        LogId::new(leader.to_committed(), 1)
    }

    /// A snapshot of the state, and a log that begins behind it.
    async fn finish(
        &self,
        platform: &NodePlatform,
        engine: &dyn StateEngine,
        cluster: Uuid,
    ) -> Result<(), OpenError> {
        let disk = platform.disk.clone();
        let snapshots = SnapshotStore::open(disk.clone(), &self.dir.join("snapshots"))?;
        snapshots.make(engine)?;
        engine.close()?;
        let log = self.dir.join("log");
        let owner = LogOwner {
            cluster,
            node: self.node_id,
        };
        let wal = Wal::open(platform, &log, owner, SEGMENT_BYTES)?;
        let failed = |e| io_error("write", &log, e);
        let last = self.last();
        let term = last.committed_leader_id().term;
        let vote = Vote::new(term, self.node_id);
        wal.save_vote(vote).await.map_err(failed)?;
        wal.purge(last).await.map_err(failed)?;
        wal.close();
        disk.sync_dir(&self.dir)
            .map_err(|e| io_error("sync", &self.dir, e))
    }
}
