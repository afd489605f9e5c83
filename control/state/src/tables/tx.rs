//! A transaction: writes go to the tables at once and are rolled back when the command fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_errors::Error;
use proto_types::Timestamp;
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use super::change::Change;
use super::headed::Headed;
use super::touched::{Touched, WasTouched};
use super::{Entity, Kind, Record, Tables};

type Undo = Box<dyn FnOnce(&mut Tables)>;

/// The transaction of one command.
pub(crate) struct Tx<'a> {
    tables: &'a mut Tables,
    /// Time of the command.
    pub(crate) now: Timestamp,
    /// Login or SPIFFE id of the caller.
    pub(crate) actor: &'a str,
    /// The trace of the command. `None` means that it is not traced.
    pub(crate) trace: Option<&'a str>,
    /// Inverse of each write, in the order of the writes.
    undo: Vec<Undo>,
    touched: BTreeMap<(Kind, String), Touched>,
    /// Entries of `touched` as they were before each write of a part of the command. `None` while no
    /// part is under way.
    journal: Option<Vec<WasTouched>>,
    /// Number of ids and sequences derived so far: makes each of them unique in the command.
    derived: u64,
}

impl<'a> Tx<'a> {
    pub(crate) fn new(tables: &'a mut Tables, now: Timestamp, actor: &'a str) -> Self {
        Self {
            tables,
            now,
            actor,
            trace: None,
            undo: Vec::new(),
            touched: BTreeMap::new(),
            journal: None,
            derived: 0,
        }
    }

    pub(crate) fn tables(&self) -> &Tables {
        self.tables
    }
    pub(crate) fn get<T: Entity>(&self, key: &T::Key) -> Option<&Arc<T>> {
        self.tables.get::<T>(key)
    }
    /// A copy of an object, to change it.
    ///
    /// # Errors
    /// `NotFound` with the kind and the key.
    pub(crate) fn require<T: Entity>(&self, key: &T::Key) -> Result<T, Error> {
        self.tables.require::<T>(key).map(|object| T::clone(object))
    }

    /// Writes an object without a change of its head: an observation, or a record that has no
    /// head. An object that equals the stored one is not written, so that it counts no revision.
    pub(crate) fn save<T: Entity>(&mut self, value: T) -> Arc<T> {
        let key = value.key();
        if let Some(old) = self.tables.get::<T>(&key)
            && **old == value
        {
            return Arc::clone(old);
        }
        let value = Arc::new(value);
        // `commit` advances the tables to this revision; all objects of the command get the same.
        let revision = self.tables.revision + 1;
        let old = self.tables.put_raw(Arc::clone(&value), revision);
        let before = old.as_ref().map(|slot| &slot.value);
        self.touch(&key, before, Some(&value));
        self.undo.push(Box::new(move |tables| {
            match old {
                Some(old) => drop(tables.put_raw(old.value, old.revision)),
                None => drop(tables.remove_raw::<T>(&key)),
            };
        }));
        value
    }

    /// Records that an object changed. After several changes of one object, `before` is the
    /// object before the command, not before the last change.
    fn touch<T: Entity>(&mut self, key: &T::Key, before: Option<&Arc<T>>, after: Option<&Arc<T>>) {
        let record = |object: Option<&Arc<T>>| object.map(|object| T::record(Arc::clone(object)));
        let at = (T::KIND, key.to_string());
        if let Some(journal) = &mut self.journal {
            journal.push((at.clone(), self.touched.get(&at).cloned()));
        }
        let touched = self.touched.entry(at).or_insert_with(|| Touched {
            before: record(before),
            after: None,
        });
        touched.after = record(after);
    }

    /// Creates an object.
    ///
    /// # Errors
    /// `AlreadyExists` if the key is taken.
    pub(crate) fn create<T: Entity + Headed>(&mut self, mut value: T) -> Result<Arc<T>, Error> {
        let key = value.key();
        if self.tables.get::<T>(&key).is_some() {
            return Err(Error::already_exists(T::KIND.as_str(), key));
        }
        value.meta_mut().create(self.now);
        Ok(self.save(value))
    }

    /// Writes a change of intent, which counts a generation. A value that equals the stored one
    /// changes neither the generation nor the time of the update: writing back an object that was
    /// read does not break the optimistic locks of other callers.
    pub(crate) fn update<T: Entity + Headed>(&mut self, mut value: T) -> Arc<T> {
        if let Some(old) = self.tables.get::<T>(&value.key())
            && **old == value
        {
            return Arc::clone(old);
        }
        value.meta_mut().touch(self.now);
        self.save(value)
    }

    /// Deletes an object. `None` means that there was none.
    pub(crate) fn delete<T: Entity>(&mut self, key: &T::Key) -> Option<Arc<T>> {
        let old = self.tables.remove_raw::<T>(key)?;
        self.touch(key, Some(&old.value), None);
        let value = Arc::clone(&old.value);
        self.undo.push(Box::new(move |tables| {
            drop(tables.put_raw(old.value, old.revision));
        }));
        Some(value)
    }

    /// Applies a part of the command that may fail by itself: a failure takes back the writes of the
    /// part, and the command goes on. Parts are not nested.
    ///
    /// # Errors
    /// Those of the part.
    pub(crate) fn part<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let begin = self.undo.len();
        debug_assert!(self.journal.is_none(), "a part within a part");
        self.journal = Some(Vec::new());
        let result = change(self);
        let journal = self.journal.take().unwrap_or_default();
        if result.is_err() {
            for undo in self.undo.split_off(begin).into_iter().rev() {
                undo(self.tables);
            }
            for (at, before) in journal.into_iter().rev() {
                match before {
                    Some(before) => self.touched.insert(at, before),
                    None => self.touched.remove(&at),
                };
            }
        }
        result
    }

    /// The keys of the objects of a kind that the command wrote so far.
    pub(crate) fn touched_keys(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let first = (kind, String::new());
        let keys = self.touched.range(first..);
        keys.take_while(move |((of, _), _)| *of == kind)
            .map(|((_, key), _)| key.as_str())
    }

    /// An object of a kind as it was before the command, if the command wrote it. `None` also means
    /// that it did not exist.
    pub(crate) fn before(&self, kind: Kind, key: &str) -> Option<&Record> {
        let touched = self.touched.get(&(kind, key.to_owned()))?;
        touched.before.as_ref()
    }

    /// An id that all replicas compute alike: a UUIDv7 of the command's time, with bits of the
    /// revision and a counter instead of random ones.
    pub(crate) fn derive_uuid(&mut self) -> Uuid {
        self.derived += 1;
        let mut hash = Sha256::new();
        hash.update(self.tables.revision.to_be_bytes());
        hash.update(self.derived.to_be_bytes());
        hash.update(self.now.ms().to_be_bytes());
        let mut bits = [0u8; 10];
        bits.iter_mut()
            .zip(hash.finalize())
            .for_each(|(to, from)| *to = from);
        Builder::from_unix_timestamp_millis(self.now.ms(), &bits).into_uuid()
    }

    /// A number that increases with every use, over all commands.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.derived += 1;
        // The revision in front keeps the order over commands without a stored counter; a command
        // derives far fewer than 2^20 numbers.
        (self.tables.revision << 20) | self.derived
    }

    /// Commits the writes, and counts a revision if there were any.
    pub(crate) fn commit(mut self) -> Vec<Change> {
        // `drop` rolls back what is in here: without this line a commit would undo itself.
        self.undo.clear();
        if self.touched.is_empty() {
            return Vec::new();
        }
        self.tables.revision += 1;
        let revision = self.tables.revision;
        std::mem::take(&mut self.touched)
            .into_iter()
            .map(|((kind, key), Touched { before, after })| Change {
                kind,
                key,
                revision,
                before,
                record: after,
            })
            .collect()
    }

    /// Rolls back all writes.
    pub(crate) fn abort(self) {
        drop(self);
    }
}

/// Rolls back a transaction that was not committed, also when its command panics: a trial that
/// panics must leave the tables as they were.
impl Drop for Tx<'_> {
    fn drop(&mut self) {
        // Newest first: each step restores the row that the steps before it have left behind.
        for undo in std::mem::take(&mut self.undo).into_iter().rev() {
            undo(self.tables);
        }
    }
}
