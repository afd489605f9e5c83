//! [`StateEngine`] on RocksDB, without RocksDB's own write-ahead log.
//!
//! Everything is in one column family: column families are flushed one by one, and without a log a
//! batch over two of them would not be atomic after a crash.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rocksdb::checkpoint::Checkpoint;
use rocksdb::{
    BlockBasedOptions, Cache, DB, FlushOptions, IteratorMode, Options, ReadOptions, WriteBatch,
    WriteOptions,
};

use super::{AppliedProgress, EngineError, RowVisitor, StateEngine};
use crate::codec::{self, StoreCodecError};
use crate::machine::StateRow;

/// Key of the progress.
const PROGRESS_KEY: &[u8] = b"m/applied";
/// First byte of the key of a row.
const ROW_PREFIX: u8 = b'r';
/// End of the key range of rows, exclusive.
const ROW_END: &[u8] = b"s";
/// Size at which RocksDB flushes the rows in memory by itself, bytes.
const WRITE_BUFFER_BYTES: usize = 16 << 20;
/// Bound of RocksDB's block cache, bytes. Beyond it RocksDB evicts blocks. Small, because the rows
/// are read once at the start, and reads are answered from the state in memory.
const BLOCK_CACHE_BYTES: usize = 1 << 20;
/// Bound of the table files that RocksDB keeps open; it reopens the others when needed.
const OPEN_FILES_MAX: i32 = 256;
/// Number of RocksDB's text logs that are kept; it removes older ones.
const TEXT_LOGS_MAX: usize = 2;

/// [`StateEngine`] on RocksDB.
#[derive(Debug)]
pub(crate) struct RocksEngine {
    path: PathBuf,
    /// `None` after [`close`](StateEngine::close).
    db: RwLock<Option<Arc<DB>>>,
}

impl RocksEngine {
    /// Opens or creates the database in `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, EngineError> {
        let db = DB::open(&options(), path).map_err(|e| rocks_error("open", path, e))?;
        Ok(Self {
            path: path.to_owned(),
            db: RwLock::new(Some(Arc::new(db))),
        })
    }

    fn db(&self) -> Result<Arc<DB>, EngineError> {
        // A clone and not the guard: a snapshot takes seconds, and must not hold up `close`.
        self.db.read().clone().ok_or(EngineError::Closed)
    }

    fn error(&self, action: &'static str) -> impl Fn(rocksdb::Error) -> EngineError {
        let path = self.path.clone();
        move |e| rocks_error(action, &path, e)
    }

    fn write(&self, db: &DB, batch: WriteBatch) -> Result<(), EngineError> {
        let mut options = WriteOptions::default();
        // The Raft log has every entry already, durably; a second log would double each write.
        options.disable_wal(true);
        db.write_opt(batch, &options).map_err(self.error("write"))
    }

    fn flush_db(&self, db: &DB) -> Result<(), EngineError> {
        let mut options = FlushOptions::default();
        // Callers purge the log after this: returning before the files are synced loses entries.
        options.set_wait(true);
        db.flush_opt(&options).map_err(self.error("flush"))
    }
}

impl StateEngine for RocksEngine {
    fn progress(&self) -> Result<AppliedProgress, EngineError> {
        read_progress(&*self.db()?, &self.path)
    }

    fn rows(&self, each: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        let db = self.db()?;
        // No row is read twice: caching the blocks would only cost memory.
        let mut once = ReadOptions::default();
        once.fill_cache(false);
        let from = IteratorMode::From(&[ROW_PREFIX], rocksdb::Direction::Forward);
        for row in db.iterator_opt(from, once) {
            let (key, value) = row.map_err(self.error("read"))?;
            let Some((&ROW_PREFIX, name)) = key.split_first() else {
                break;
            };
            each(name, &value).map_err(|source| value_error(&self.path, &key, source))?;
        }
        Ok(())
    }

    fn commit(&self, rows: &[StateRow], progress: &AppliedProgress) -> Result<(), EngineError> {
        let mut batch = WriteBatch::default();
        for row in rows {
            match &row.value {
                Some(value) => batch.put(row_key(&row.key), value),
                None => batch.delete(row_key(&row.key)),
            }
        }
        put_progress(&mut batch, progress, &self.path)?;
        self.write(&*self.db()?, batch)
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.flush_db(&*self.db()?)
    }

    fn checkpoint(&self, dir: &Path) -> Result<AppliedProgress, EngineError> {
        let db = self.db()?;
        // RocksDB flushes its memory first, as there is no log to copy, and then links the table
        // files: the copy costs no reading of the state.
        let checkpoint = Checkpoint::new(&db).map_err(self.error("checkpoint"))?;
        checkpoint
            .create_checkpoint(dir)
            .map_err(self.error("checkpoint"))?;
        // From the copy and not from here: entries may have been applied since the flush.
        read_progress(&open_copy(dir)?, dir)
    }

    fn replace(&self, dir: &Path) -> Result<AppliedProgress, EngineError> {
        let copy = open_copy(dir)?;
        let progress = read_progress(&copy, dir)?;
        let mut batch = WriteBatch::default();
        // Deletion, new rows and progress are one batch: a crash leaves the old state or the new
        // one. Rows that the copy does not have must not survive it.
        batch.delete_range(&[ROW_PREFIX][..], ROW_END);
        for row in copy.iterator(IteratorMode::From(
            &[ROW_PREFIX],
            rocksdb::Direction::Forward,
        )) {
            let (key, value) = row.map_err(|e| rocks_error("read", dir, e))?;
            if key.first() != Some(&ROW_PREFIX) {
                break;
            }
            batch.put(key, value);
        }
        put_progress(&mut batch, &progress, &self.path)?;
        let db = self.db()?;
        self.write(&db, batch)?;
        // Raft purges its log up to the snapshot next, and then replay cannot restore these rows.
        self.flush_db(&db)?;
        Ok(progress)
    }

    fn close(&self) -> Result<(), EngineError> {
        let db = self.db.write().take();
        match db {
            // Not needed for durability, which the log has; it saves the next start the replay.
            Some(db) => self.flush_db(&db),
            None => Ok(()),
        }
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(rocksdb::DBCompressionType::Lz4);
    options.set_write_buffer_size(WRITE_BUFFER_BYTES);
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(BLOCK_CACHE_BYTES));
    options.set_block_based_table_factory(&blocks);
    options.set_max_open_files(OPEN_FILES_MAX);
    options.set_keep_log_file_num(TEXT_LOGS_MAX);
    // Damage of a table file is an error at the start, and not a state that lacks rows.
    options.set_paranoid_checks(true);
    options
}

/// Opens a copy without writing to it: its files are hard links of the engine's own.
fn open_copy(dir: &Path) -> Result<DB, EngineError> {
    DB::open_for_read_only(&Options::default(), dir, false)
        .map_err(|e| rocks_error("open the copy of", dir, e))
}

fn row_key(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 1);
    out.push(ROW_PREFIX);
    out.extend_from_slice(key);
    out
}

fn put_progress(
    batch: &mut WriteBatch,
    progress: &AppliedProgress,
    path: &Path,
) -> Result<(), EngineError> {
    let value = codec::encode(progress).map_err(|e| value_error(path, PROGRESS_KEY, e))?;
    batch.put(PROGRESS_KEY, value);
    Ok(())
}

fn read_progress(db: &DB, path: &Path) -> Result<AppliedProgress, EngineError> {
    match db
        .get(PROGRESS_KEY)
        .map_err(|e| rocks_error("read", path, e))?
    {
        Some(bytes) => codec::decode(&bytes).map_err(|e| value_error(path, PROGRESS_KEY, e)),
        None => Ok(AppliedProgress::default()),
    }
}

fn rocks_error(action: &'static str, path: &Path, source: rocksdb::Error) -> EngineError {
    EngineError::Rocks {
        action,
        path: path.to_owned(),
        source,
    }
}

fn value_error(path: &Path, key: &[u8], source: StoreCodecError) -> EngineError {
    let key = key.escape_ascii().to_string();
    EngineError::Value {
        path: path.to_owned(),
        key,
        source,
    }
}
