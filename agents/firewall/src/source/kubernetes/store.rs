use std::collections::BTreeMap;
use std::sync::Arc;

use super::{KubernetesError, ObjectKey, WatchEvent};

/// Objects of one kind that may be followed.
pub(super) const OBJECTS_MAX: usize = 20_000;
/// Bytes of all objects of one kind, as the server wrote them. It bounds the agent's memory: about
/// three times as much for each kind.
pub(super) const BYTES_MAX: usize = 64 * 1024 * 1024;

/// The parts of an object that the agent keeps.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredObject {
    /// The object as the configuration has it.
    pub(super) value: serde_norway::Value,
    /// State in its status. Empty if it has none.
    pub(super) state: String,
}

/// The objects of one kind, bounded.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectStore {
    objects: BTreeMap<ObjectKey, Arc<StoredObject>>,
    sizes: BTreeMap<ObjectKey, usize>,
    bytes: usize,
}

impl ObjectStore {
    /// Adds or replaces an object. Returns `true` if that changed anything.
    ///
    /// # Errors
    /// There are too many objects.
    pub(super) fn put(
        &mut self,
        key: ObjectKey,
        object: StoredObject,
        bytes: usize,
    ) -> Result<bool, KubernetesError> {
        let old = self.sizes.insert(key.clone(), bytes).unwrap_or(0);
        self.bytes = self.bytes - old + bytes;
        let too_large = |what: &str, limit| KubernetesError::TooLarge {
            what: what.to_owned(),
            limit,
        };
        if self.sizes.len() > OBJECTS_MAX {
            return Err(too_large("objects", format!("{OBJECTS_MAX} of one kind")));
        }
        if self.bytes > BYTES_MAX {
            return Err(too_large(
                "objects",
                format!("{BYTES_MAX} bytes of one kind"),
            ));
        }
        let is_same = self.objects.get(&key).is_some_and(|old| **old == object);
        if !is_same {
            self.objects.insert(key, Arc::new(object));
        }
        Ok(!is_same)
    }

    /// Removes an object. Returns `true` if it was there.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> bool {
        self.bytes -= self.sizes.remove(key).unwrap_or(0);
        self.objects.remove(key).is_some()
    }

    /// Carries out an event. Returns `true` if that changed anything.
    ///
    /// # Errors
    /// There are too many objects.
    pub(super) fn carry_out(
        &mut self,
        event: WatchEvent,
        convert: fn(&super::KubernetesObject) -> Option<StoredObject>,
        bytes: usize,
    ) -> Result<bool, KubernetesError> {
        match event {
            WatchEvent::Put(object) => match convert(&object) {
                Some(stored) => self.put(object.key(), stored, bytes),
                None => Ok(self.remove(&object.key())),
            },
            WatchEvent::Removed(object) => Ok(self.remove(&object.key())),
            WatchEvent::Bookmark(_) => Ok(false),
        }
    }

    /// All objects.
    pub(super) fn objects(&self) -> &BTreeMap<ObjectKey, Arc<StoredObject>> {
        &self.objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: usize) -> ObjectKey {
        ObjectKey {
            namespace: String::new(),
            name: name.to_string(),
        }
    }

    fn object(value: u32) -> StoredObject {
        StoredObject {
            value: value.into(),
            state: String::new(),
        }
    }

    #[test]
    fn a_store_knows_what_changed_and_its_bounds() {
        let mut store = ObjectStore::default();
        assert!(store.put(key(0), object(1), 10).unwrap());
        assert!(!store.put(key(0), object(1), 20).unwrap());
        assert!(store.put(key(0), object(2), 30).unwrap());
        assert_eq!(store.bytes, 30);
        assert!(store.put(key(1), object(1), BYTES_MAX).is_err());
        assert!(store.remove(&key(0)));
        assert!(!store.remove(&key(0)));
        assert_eq!(store.bytes, BYTES_MAX);
        let mut store = ObjectStore::default();
        for number in 0..OBJECTS_MAX {
            store.put(key(number), object(0), 1).unwrap();
        }
        assert!(store.put(key(OBJECTS_MAX), object(0), 1).is_err());
    }
}
