//! A transaction: writes go to the tables at once and are undone when the command fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_errors::Error;
use proto_types::Timestamp;
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use super::change::Change;
use super::{Entity, Kind, Record, Tables};
use crate::meta::Meta;

type Undo = Box<dyn FnOnce(&mut Tables)>;

/// An object before and after the command.
struct Touched {
    before: Option<Record>,
    after: Option<Record>,
}

/// One command at work.
pub(crate) struct Tx<'a> {
    tables: &'a mut Tables,
    /// Time of the command.
    pub(crate) now: Timestamp,
    /// Who wants it.
    pub(crate) actor: &'a str,
    /// The trace that it belongs to.
    pub(crate) trace: Option<&'a str>,
    undo: Vec<Undo>,
    touched: BTreeMap<(Kind, String), Touched>,
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
            derived: 0,
        }
    }

    pub(crate) fn tables(&self) -> &Tables {
        self.tables
    }
    pub(crate) fn get<T: Entity>(&self, key: &T::Key) -> Option<&Arc<T>> {
        self.tables.get::<T>(key)
    }
    /// A copy to change, or `NotFound`.
    pub(crate) fn require<T: Entity>(&self, key: &T::Key) -> Result<T, Error> {
        self.tables.require::<T>(key).map(|it| T::clone(it))
    }

    /// Writes an object as it is: an observation, or a record without a head.
    /// An object that did not change is not written.
    pub(crate) fn save<T: Entity>(&mut self, value: T) -> Arc<T> {
        let key = value.key();
        if let Some(old) = self.tables.get::<T>(&key)
            && **old == value
        {
            return Arc::clone(old);
        }
        let value = Arc::new(value);
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

    /// Remembers that an object changed; of several changes the first `before` stays.
    fn touch<T: Entity>(&mut self, key: &T::Key, before: Option<&Arc<T>>, after: Option<&Arc<T>>) {
        let record = |it: Option<&Arc<T>>| it.map(|it| T::record(Arc::clone(it)));
        let touched = self
            .touched
            .entry((T::KIND, key.to_string()))
            .or_insert_with(|| Touched {
                before: record(before),
                after: None,
            });
        touched.after = record(after);
    }

    /// A new object; refuses a key that is there.
    pub(crate) fn create<T: Entity + Headed>(&mut self, mut value: T) -> Result<Arc<T>, Error> {
        let key = value.key();
        if self.tables.get::<T>(&key).is_some() {
            return Err(Error::already_exists(T::KIND.as_str(), key));
        }
        value.meta_mut().create(self.now);
        Ok(self.save(value))
    }

    /// A change of intent: counts as a generation. A value that equals what is stored is no
    /// change: generation and time of the update stay, so that writing back what was read does
    /// not invalidate what others have read.
    pub(crate) fn update<T: Entity + Headed>(&mut self, mut value: T) -> Arc<T> {
        if let Some(old) = self.tables.get::<T>(&value.key())
            && **old == value
        {
            return Arc::clone(old);
        }
        value.meta_mut().touch(self.now);
        self.save(value)
    }

    pub(crate) fn delete<T: Entity>(&mut self, key: &T::Key) -> Option<Arc<T>> {
        let old = self.tables.remove_raw::<T>(key)?;
        self.touch(key, Some(&old.value), None);
        let value = Arc::clone(&old.value);
        self.undo.push(Box::new(move |tables| {
            drop(tables.put_raw(old.value, old.revision));
        }));
        Some(value)
    }

    /// An id that every replica computes alike: UUIDv7 of the command's time, with bits out of
    /// the revision and a counter in place of randomness.
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

    /// A number that grows with every use, over all commands.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.derived += 1;
        (self.tables.revision << 20) | self.derived
    }

    /// Keeps what was written; counts a revision when anything was.
    pub(crate) fn commit(mut self) -> Vec<Change> {
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

    /// Takes everything back.
    pub(crate) fn abort(self) {
        drop(self);
    }
}

/// What was not committed is taken back, also when the command panics: a trial that does must
/// leave the tables whole.
impl Drop for Tx<'_> {
    fn drop(&mut self) {
        for undo in std::mem::take(&mut self.undo).into_iter().rev() {
            undo(self.tables);
        }
    }
}

/// An object with a head.
pub(crate) trait Headed {
    fn meta_mut(&mut self) -> &mut Meta;
}

macro_rules! headed {
    ($($entity:ident)*) => {
        $(impl Headed for crate::$entity {
            fn meta_mut(&mut self) -> &mut Meta {
                &mut self.meta
            }
        })*
    };
}

headed! {
    Tenant Project Token Partition Size SizeReservation SizeImageConstraint Image Layout Network
    Ip Machine Switch
}
